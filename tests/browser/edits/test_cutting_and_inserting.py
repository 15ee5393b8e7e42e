"""Walked with the mouse: cutting a selection out, looking at it and back; inserting a model by chosen wires; undo."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.browser.support.lab import Lab, Widget

CELL = """
import onnxlab, json
model = onnxlab.load()
view = onnxlab.show(model, height=760)
view
"""
SCREENS = Path("build/screens")


def gate() -> bytes:
    """a, b → a * b → c."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 8, 8, 8]) for name in "abc"]
    graph = helper.make_graph([helper.make_node("Mul", ["a", "b"], ["c"], "mul")], "gate", ends[:2], ends[2:])
    opset = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()  # type: ignore[no-any-return]


@pytest.fixture
def widget(lab: Lab) -> Widget:
    lab.open("parts.ipynb", [CELL]).run_all()
    shown = lab.widget()
    shown.settle()
    return shown


def test_a_selection_is_cut_out_looked_at_and_downloaded(lab: Lab, widget: Widget) -> None:
    block = [widget.node(f"/block1/{name}") for name in ("conv1/Conv", "bn1/BatchNormalization", "relu1/Relu")]
    widget.evaluate("(h, nodes) => h.app.picked.show(nodes)", block)
    widget.get("nodes-extract").click()
    widget.get("cut-make").wait_for()
    assert widget.get("cut-count").inner_text().startswith("3 nodes and 5 initializers make the new model")
    assert widget.get("cut-its-inputs").inner_text() == "stem/relu_out float32[batch,8,8,8]"
    widget.settle()
    lab.screenshot(SCREENS / "cut_out.png")
    with lab.page.expect_download() as download:
        widget.get("cut-make").click()
    part = onnx.load(download.value.path())
    assert [node.op_type for node in part.graph.node] == ["Conv", "BatchNormalization", "Relu"]

    widget.evaluate("(h, nodes) => h.app.picked.show(nodes)", block)
    widget.get("nodes-extract").click()
    widget.get("cut-open").click()
    lab.page.get_by_text("3 nodes", exact=True).wait_for()
    lab.page.get_by_test_id("toast-back-to-digits").click()
    lab.page.get_by_text("24 nodes", exact=True).wait_for()
    assert lab.python("print(json.dumps([len(model.nodes), model.dirty, view.model is model]))") == [24, False, True]
    assert lab.errors == []


def test_a_model_is_inserted_by_chosen_wires_and_taken_back(lab: Lab, widget: Widget) -> None:
    node = widget.node("/stem/relu/Relu")
    value = widget.evaluate("(h, node) => h.store.nodes.get(node).outputs[0]", node)
    widget.evaluate("(h, value) => h.app.picked.revealValue(value)", value)
    widget.press("e")
    widget.get("command-insert_onto").click()
    widget.get("file-choice").set_input_files([{"name": "gate.onnx", "mimeType": "", "buffer": gate()}])  # type: ignore[list-item]
    widget.get("insert-connect-0").wait_for()
    assert widget.get("insert-connect-0").input_value() == "stem/relu_out"
    assert widget.get("insert-feed-0").input_value() == "stem/relu_out"
    widget.get("insert-connect-1").fill("no such value")
    widget.get("file-submit").click()
    assert "no such value" in widget.get("file-problem").inner_text()
    widget.get("insert-connect-1").fill("stem/relu_out")
    widget.get("form-prefix").fill("gate/")
    assert widget.get("insert-effect").inner_text().startswith("Adds 1 node and 0 initializers; new inputs: none; new")
    lab.screenshot(SCREENS / "insert.png")
    widget.get("file-submit").click()
    widget.wait("h => h.store.history.position === 1")
    state = "print(json.dumps([len(model.nodes), [v.name for v in model.nodes['/block1/conv1/Conv'].inputs][:1]]))"
    assert lab.python(state) == [25, ["gate/c"]]
    widget.get("toolbar-undo").click()
    widget.wait("h => h.store.history.position === 0")
    assert lab.python(state) == [24, ["stem/relu_out"]]
    assert lab.errors == []
