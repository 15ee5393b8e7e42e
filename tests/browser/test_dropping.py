"""Let go of over the picture: an operator, a model and arrays; and what a crash left behind, taken up again."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.browser.support.dropping import drop
from tests.browser.support.jupyter import REPOSITORY
from tests.browser.support.lab import Lab, Widget

CRASH = """
import os, signal, sys, onnxlab
model = onnxlab.load(sys.argv[1])
model.nodes["relu"].name = "rectified"
os.kill(os.getpid(), signal.SIGKILL)
"""

# A point at which the pointer is on the line of a value: whole numbers, since events of a drag have no others.
_ON_LINE = """(handle, value) => {
    const {left, top, width, height} = document.querySelector('[data-testid="stage"]').getBoundingClientRect();
    for (let y = Math.ceil(top) + 2; y < top + height; y += 3) {
        for (let x = Math.ceil(left) + 2; x < left + width; x += 3) {
            const target = handle.view.targetAt(x, y);
            if (target?.value === value && !target.node) return [x, y];
        }
    }
    return null;
}"""


def chain(*operators: str) -> onnx.ModelProto:
    """x → each operator, named after it and its value after the first letter → y; Gemm has a weight `w`."""
    nodes, value = [], "x"
    for operator in operators:
        reads = [value, "w"] if operator == "Gemm" else [value]
        made = "y" if operator == operators[-1] else operator[0].lower()
        nodes.append(helper.make_node(operator, reads, [made], operator.lower()))
        value = made
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "xy"]
    weights = [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")] if "Gemm" in operators else []
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def on_line(widget: Widget, value: str) -> tuple[float, float]:
    ident = widget.evaluate("(h, name) => [...h.store.values.values()].find((v) => v.name === name).id", value)
    found = widget.evaluate(_ON_LINE, ident)
    assert found is not None, f"no line of {value} shows"
    return found[0], found[1]


def stored(array: np.ndarray) -> bytes:
    np.save(found := io.BytesIO(), array)
    return found.getvalue()


def test_recovered_after_a_crash_and_edited_by_dropping(lab: Lab) -> None:
    path = lab.jupyter.folder / "dropped.onnx"
    onnx.save(chain("Gemm", "Relu", "Neg"), path)
    assert subprocess.run([sys.executable, "-c", CRASH, path], cwd=REPOSITORY, check=False).returncode == -9
    load = f"import onnxlab, json\nmodel = onnxlab.load({str(path)!r})"
    lab.open("dropping.ipynb", [load, "onnxlab.show(model, height=800)"])
    lab.run_all()
    widget = lab.widget()
    assert "Never saved: 1 edit" in widget.get("recovery").inner_text()
    lab.screenshot(Path("build/screens/recovery.png"))
    widget.get("recover").click()
    widget.wait("h => h.store.history.position === 1")
    widget.get("recovery").wait_for(state="detached")
    assert widget.node("rectified")

    line = widget.get("python-line")
    widget.press("a")
    widget.get("palette-input").fill("sigmoid")
    mouse, carried = lab.page.mouse, widget.get("operator-Sigmoid").bounding_box()
    assert carried is not None
    mouse.move(carried["x"] + 20, carried["y"] + 8)
    mouse.down()
    x, y = on_line(widget, "r")
    mouse.move(x - 30, y, steps=2)
    mouse.move(x, y)
    mouse.up()
    widget.wait("h => h.store.history.position === 2")
    assert line.inner_text() == "model.value('r').insert_after('Sigmoid')"

    widget.settle()
    drop(widget, "piece.onnx", chain("Abs", "Exp").SerializeToString(), on_line(widget, "g"))
    assert widget.get("file-way-insert").is_checked(), "on a line a model is inserted unless the user says otherwise"
    widget.get("file-submit").click()
    widget.wait("h => h.store.history.position === 3")
    assert line.inner_text() == "model.insert('piece.onnx', {'x': 'g'}, add_outputs=False, feed={'g': 'y'})"

    widget.settle()
    gemm = widget.box(widget.node("gemm"))
    assert gemm is not None
    drop(widget, "w.npy", stored(2 * np.eye(4, dtype=np.float32)), (gemm["x"] + 30, gemm["y"] + 15))
    widget.get("form-submit").click()
    widget.wait("h => h.store.history.position === 4")
    assert line.inner_text() == "model.value('w').array = np.load('w.npy')"

    drop(widget, "x.npy", stored(np.ones((4, 4), np.float32)), on_line(widget, "x"))
    widget.get("run-inputs-run").click()
    widget.wait("h => h.app.runs.results.value !== null")
    assert lab.python("print(json.dumps(float(model.runner.last_inputs()['x'].sum())))") == 16
    operators = lab.python("print(json.dumps(sorted(node.op_type for node in model.nodes)))")
    assert operators == ["Abs", "Exp", "Gemm", "Neg", "Relu", "Sigmoid"]
