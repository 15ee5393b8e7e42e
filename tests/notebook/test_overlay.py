"""Colors by number: what Python gives and what is measured reaches the page, and the page that comes later."""

import numpy as np
import pytest
from onnx import parser

import onnxlab
from onnxlab.notebook.panels.overlay import MEASURES, measured
from tests.notebook.conftest import Page


@pytest.mark.parametrize("by", [by for by in MEASURES if by not in ("range", "partition")])
def test_a_measure_has_a_number_for_the_convolution(by: str, page: Page, model: onnxlab.Model) -> None:
    page.ask("overlay", by=by)
    event = next(event for event in page.events if event["event"] == "overlay")
    numbers = dict(zip(event["nodes"], event["numbers"], strict=True))
    conv = numbers[model.nodes["/stem/conv"].id]
    assert conv == 0 if by == "provider" else conv in (0, 1) if by == "bound" else conv > 0
    if by == "parameters":
        assert conv == model.value("w").array.size
        assert len(numbers) == 1
    assert page.ask("snapshot")["overlay"]["nodes"] == event["nodes"]
    page.ask("overlay")
    assert page.ask("snapshot")["overlay"] is None


def test_the_range_is_that_of_the_last_run(page: Page, model: onnxlab.Model) -> None:
    assert page.refused("overlay", by="range")["code"] == "nothing"
    page.ask("run", nodes=None)
    page.ask("overlay", by="range")
    event = page.events[-1]
    assert set(event["nodes"]) == set(model.graph.nodes)
    assert page.refused("overlay", by="color")["code"] == "malformed"


def test_the_range_is_computed_of_a_run_in_a_cell_and_after_an_edit(page: Page, model: onnxlab.Model) -> None:
    conv = model.nodes["/stem/conv"]
    feeds = model.sample_inputs()
    for _ in range(3):  # from the second run on only borders are kept
        model.run(feeds)
    for factor in (1, 3):
        model.value("w").array = model.value("w").array * np.float32(factor)
        page.ask("overlay", by="range")
        event = page.events[-1]
        numbers = dict(zip(event["nodes"], event["numbers"], strict=True))
        assert numbers.keys() == {*model.graph.nodes}
        expected = model.run(feeds, [conv.outputs[0].name], exact=True)[conv.outputs[0].name]
        assert numbers[conv.id] == pytest.approx(np.abs(expected).max(), rel=1e-4)


def test_the_range_does_without_what_a_failing_node_makes() -> None:
    """Seen: a node whose results no output needs kept the numbers of all others from being shown."""
    failing = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[2] x, int64[1] s) => (float[2] y) { y = Neg (x) w = Reshape (x, s) z = Abs (w) }""")
    opened = onnxlab.load(failing)
    opened.run({"x": np.array([1, -3], np.float32), "s": np.array([5])})
    overlay = measured(opened, "range", {})
    assert overlay.title == "largest magnitude (2 failed)"
    assert dict(overlay.numbers) == {opened.nodes[0].id: 3}


def test_a_view_takes_numbers_by_name_handle_and_id(model: onnxlab.Model) -> None:
    view = model.view()
    relu, pool = model.nodes["/stem/relu"], model.nodes["/head/pool"]
    view.overlay({"/stem/conv": 1.0, relu: float("nan"), pool.id: 3}, title="doubt")
    assert view._session is not None
    assert view._session.overlay is not None
    shown = view._session.overlay.on_wire()
    assert shown == {
        "title": "doubt", "unit": "", "numbers": [1.0, "nan", 3.0],
        "nodes": [model.nodes["/stem/conv"].id, relu.id, pool.id],
    }  # fmt: skip
    with pytest.raises(onnxlab.errors.NameLookupError):
        view.overlay({"/stem/con": 1})
    view.overlay(None)
    assert view._session.overlay is None


def test_words_are_kinds(model: onnxlab.Model, page: Page) -> None:
    view = model.view()
    view.overlay({"/stem/conv": "gpu", "/stem/relu": "cpu", "/head/pool": "gpu"})
    assert view._session is not None
    assert view._session.overlay is not None
    shown = view._session.overlay.on_wire()
    assert (shown["numbers"], shown["kinds"]) == ([0.0, 1.0, 0.0], ["gpu", "cpu"])
    page.ask("overlay", by="provider")
    assert page.events[-1]["kinds"] == ["numba"], "what would run them"
    for _ in range(3):
        model.run(model.sample_inputs())
        assert model.compiled.wait(600)
    page.ask("overlay", by="provider")
    assert page.events[-1]["kinds"] == ["numba, compiled"]
    assert sorted(page.events[-1]["nodes"]) == sorted(model.graph.nodes)
