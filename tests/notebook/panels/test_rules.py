"""ONNX's rules in a view: what inference cannot see is a problem there too, and follows the edits."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.notebook.session import hub
from onnxlab.notebook.widgets.html_page import record
from tests.notebook.conftest import Page


def circle() -> onnx.ModelProto:
    """p and q read each other."""
    nodes = [helper.make_node("Add", ["a", "x"], ["b"], "p"), helper.make_node("Relu", ["b"], ["a"], "q")]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "a")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])


def codes(diagnostics: list[dict[str, Any]]) -> list[str]:
    return [diagnostic["code"] for diagnostic in diagnostics]


def test_a_cycle_is_told_once_the_page_asks_and_after_each_edit() -> None:
    model = onnxlab.load(circle())
    page = Page(model)
    assert codes(page.ask("snapshot")["diagnostics"]) == []
    assert page.ask("check") == {}
    assert page.events[-1]["event"] == "diagnostics"
    (problem,) = page.events[-1]["diagnostics"]
    assert (problem["code"], problem["severity"], problem["node"]) == ("cycle", "error", model.nodes["p"].id)
    assert codes(page.ask("inspect", node=model.nodes["p"].id)["diagnostics"]) == ["cycle"]
    assert codes(page.ask("snapshot")["diagnostics"]) == ["cycle"]
    model.nodes["p"].set_input(0, model.value("x"))
    assert codes(page.events[-1]["diagnostics"]) == []
    model.undo()
    assert codes(page.events[-1]["diagnostics"]) == ["cycle"]


def test_weights_that_are_not_there_are_told(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones((4, 5), np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "fc")
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, size]) for n, size in (("x", 4), ("y", 5))]
    proto = helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:], [weight]), ir_version=10)
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    page = Page(onnxlab.load(path))
    page.ask("check")
    (problem,) = page.events[-1]["diagnostics"]
    assert "weights.bin" in problem["message"]
    assert problem["value"] == page.model.value("w").id


def test_large_models_are_checked_when_asked_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MOST_CHECKED", 1)
    page = Page(onnxlab.load(circle()))
    page.ask("check")
    assert codes(page.events[-1]["diagnostics"]) == ["cycle"]
    page.model.nodes["q"].name = "r"
    assert codes(page.events[-1]["diagnostics"]) == []
    page.ask("check")
    assert codes(page.events[-1]["diagnostics"]) == ["cycle"]


def test_a_page_without_a_kernel_has_them_recorded() -> None:
    answers = record(hub.hub_of(onnxlab.load(circle())))["answers"]
    assert codes(answers["snapshot"][""]["diagnostics"]) == ["cycle"]
