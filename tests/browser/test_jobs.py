"""Twelve jobs that people come for, each in so many actions from the overview with nothing selected."""

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.browser.support.actions import Actions
from tests.browser.support.job_models import MODELS
from tests.browser.support.lab import Lab

Start = Callable[[str], Actions]


@pytest.fixture
def start(lab: Lab, tmp_path: Path) -> Start:
    """Opens a model; nothing has been done yet."""

    def opened(name: str) -> Actions:
        path = tmp_path / f"{name}.onnx"
        onnx.save(MODELS[name](), path)
        cell = (
            f"import json, onnxlab\nmodel = onnxlab.load({str(path)!r})\nview = onnxlab.show(model, height=720)\nview"
        )
        lab.open(f"{name}.ipynb", [cell])
        lab.run_all()
        widget = lab.widget()
        widget.settle()
        widget.root.scroll_into_view_if_needed()
        assert widget.selection() == []
        return Actions(widget)

    return opened


def test_which_node_is_slow(start: Start) -> None:
    actions = start("network")
    actions.click("toolbar-profile")
    slowest = actions.widget.get("profile-row").first
    slowest.wait_for()
    assert slowest.get_attribute("data-node") == str(actions.widget.node("/block3/conv/Conv"))
    assert "numpy" in slowest.inner_text()
    assert len(actions) <= 2, actions.taken


def test_cut_the_nms_tail(start: Start, lab: Lab) -> None:
    actions = start("detector")
    actions.click_at(*actions.box("nms"), "the group nms", button="right")
    actions.click("menu-cut_before")
    actions.widget.get("cut-make").wait_for()
    assert actions.widget.get("cut-outputs-that-go").inner_text() == "sel, det"
    assert actions.widget.get("cut-new-outputs").inner_text() == "boxes, scores"
    actions.click("cut-make")
    actions.widget.wait("h => h.store.history.position === 1")
    assert lab.python("print(json.dumps([value.name for value in model.outputs]))") == ["features", "boxes", "scores"]
    assert lab.python("print(json.dumps(model.find('NonMaxSuppression')))") == []
    assert len(actions) <= 4, actions.taken


def test_replace_all_hardswish(start: Start, lab: Lab) -> None:
    actions = start("network")
    actions.click("search-input")
    actions.type("op:HardSwish")
    actions.click("search-replace")
    actions.click("operator-Relu")
    actions.widget.wait("h => h.store.history.position === 1")
    assert lab.python("print(json.dumps([len(model.find('HardSwish')), len(model.find('Relu'))]))") == [0, 8]
    assert len(actions) <= 4, actions.taken
    actions.click("toast-undo")
    actions.widget.wait("h => h.store.history.position === 0")
    assert lab.python("print(json.dumps(len(model.find('HardSwish'))))") == 8


def test_all_convolutions_3x3_with_stride_2(start: Start, lab: Lab) -> None:
    actions = start("network")
    actions.click("search-input")
    actions.type("op:Conv kernel_shape:3,3 strides:2,2")
    actions.widget.get("search-select-all").wait_for()
    shown = actions.widget.get("search-result").evaluate_all("rows => rows.map((row) => Number(row.dataset.id))")
    wanted = lab.python("print(json.dumps([n.id for n in model.find('Conv', kernel_shape=[3, 3], strides=[2, 2])]))")
    assert sorted(shown) == sorted(wanted)
    assert len(wanted) == 3
    assert len(actions) <= 2, actions.taken


def test_make_97_batches_dynamic(start: Start, lab: Lab) -> None:
    actions = start("decoder")
    actions.click("status-dims")
    actions.click("size-dynamic-0-1")
    actions.widget.wait("h => h.store.history.position === 1")
    facts = lab.python("print(json.dumps([str(model.fact(value.name)) for value in model.inputs]))")
    assert len(facts) == 97
    assert all("[batch," in fact for fact in facts)
    assert lab.python("print(json.dumps([str(each) for each in model.diagnostics]))") == []
    assert len(actions) <= 3, actions.taken
