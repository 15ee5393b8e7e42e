"""Let go of over the picture: an operator, arrays, and a file of each format; and what a crash left behind."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from tests.browser.support.dropping import drop
from tests.browser.support.jupyter import REPOSITORY
from tests.browser.support.lab import Lab, Widget
from tests.support.samples import FORMATS, ort_pairs, samples

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
        output = "y" if operator == operators[-1] else operator[0].lower()
        nodes.append(helper.make_node(operator, reads, [output], operator.lower()))
        value = output
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in "xy"]
    weights = [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")] if "Gemm" in operators else []
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def on_line(widget: Widget, value: str) -> tuple[float, float]:
    ident = widget.evaluate("(h, name) => [...h.store.values.values()].find((v) => v.name === name).id", value)
    point = widget.evaluate(_ON_LINE, ident)
    assert point is not None, f"no line of {value} shows"
    return point[0], point[1]


def stored(array: np.ndarray) -> bytes:
    np.save(file := io.BytesIO(), array)
    return file.getvalue()


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


# -- files of all formats ---------------------------------------------------------------------------------------------


SCREENS = Path("build/screens/formats")


def small() -> onnx.ModelProto:
    """x → Gemm(w, b) → Relu → y."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], "gemm"), helper.make_node("Relu", ["h"], ["y"], "relu"),
    ]  # fmt: skip
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 4]) for name in ("x", "y")]
    weights = [
        numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in (("w", (4, 4)), ("b", (4,)))
    ]
    graph = helper.make_graph(nodes, "small", ends[:1], ends[1:], weights)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def weights(folder: Path, name: str, **arrays: np.ndarray) -> bytes:
    """A file of weights."""
    model = onnxlab.load(helper.make_model(helper.make_graph([], "g", [], []), ir_version=10))
    for key, array in arrays.items():
        model.add_initializer(key, array)
    return model.files.save_weights(folder / name).read_bytes()


FULL = {"w": 2 * np.eye(4, dtype=np.float32), "b": np.full(4, 3, np.float32)}


def files(folder: Path) -> dict[str, tuple[bytes, str]]:
    """{name: (bytes, what the page calls the format)}, a file of each format that opens without torch."""
    model = onnxlab.load(small())
    glow, caffe2 = samples("glow/samples"), samples("caffe2/samples")
    return {
        "plain.onnx": (small().SerializeToString(), "ONNX"),
        "plain.json": (model.save(folder / "m.json").read_bytes(), "JSON"),
        "plain.textproto": (model.save(folder / "m.textproto").read_bytes(), "protobuf text"),
        "plain.onnxtxt": (model.save(folder / "m.onnxtxt").read_bytes(), "ONNX text"),
        "scan.ort": (ort_pairs()["399_scan9_sum"][1], "ORT format"),
        "checkpoint_opt.ckpt": (samples("training/artifacts")["checkpoint_opt.ckpt"], "a training checkpoint"),
        "glow.onnxtxt": (glow["glow_custom_dag_multi_op.onnxtxt"], "protobuf text"),
        "ge_onnx_00000001.pbtxt": (next((FORMATS / "ge").glob("*PreRunBegin.pbtxt")).read_bytes(), "a GE dump"),
        "fc_predict_net.pbtxt": (caffe2["fc_predict_net.pbtxt"], "a Caffe2 net"),
        "module.pt2": ((FORMATS / "pt2" / "module.pt2").read_bytes(), "a torch.export archive"),
        "full.safetensors": (weights(folder, "w.safetensors", **FULL), "safetensors"),
        "full.npz": (weights(folder, "w.npz", **FULL), "an .npz archive"),
    }  # fmt: skip


def opened(lab: Lab, widget: Widget, name: str, data: bytes) -> Widget:
    """Drop a file and open it in the place of the model."""
    shown = widget.evaluate("h => h.client.former + h.store.title")
    drop(widget, name, data)
    widget.get("file-about").wait_for()
    widget.get("file-way-open").check()
    widget.get("file-submit").click()
    lab.page.wait_for_function(
        """([name]) => document.querySelector('[data-testid="onnxlab-root"]')?.__onnxlab?.app.title.value === name
            && document.querySelector('[data-testid="onnxlab-root"]').__onnxlab.store.version > 0""", arg=[name],
    )  # fmt: skip
    assert shown
    return Widget(lab.page, lab.page.get_by_test_id("onnxlab-root").first)


def test_a_file_of_each_format_opens_by_dropping(lab: Lab, tmp_path: Path) -> None:
    path = lab.jupyter.folder / "first.onnx"
    onnx.save(small(), path)
    load = f"import json, onnxlab\nmodel = onnxlab.load({str(path)!r})\nview = onnxlab.show(model, height=620)"
    lab.open("files.ipynb", [load, "view"])
    lab.run_all()
    widget = lab.widget()
    for name, (data, title) in files(tmp_path).items():
        drop(widget, name, data)
        widget.get("file-about").wait_for()
        assert title in widget.get("file-about").inner_text(), name
        lab.screenshot(SCREENS / f"ask-{name}.png")
        lab.page.keyboard.press("Escape")
        widget = opened(lab, widget, name, data)
        if widget.evaluate("h => h.store.nodes.size"):
            widget.wait_drawn()
        lab.page.wait_for_timeout(400)
        lab.screenshot(SCREENS / f"{name}.png")
        count = len(onnxlab.load(data).nodes)
        assert lab.python("print(json.dumps([len(view.model.nodes), model.version]))") == [count, 0], name
        lab.page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer, .jp-Notebook').scrollTo(0, 0)")
    widget.get("toast-back-to-module-pt2")


def test_weights_are_applied_and_a_model_comes_back(lab: Lab, tmp_path: Path) -> None:
    path = lab.jupyter.folder / "weights.onnx"
    onnx.save(small(), path)
    load = f"import json, onnxlab\nmodel = onnxlab.load({str(path)!r})\nview = onnxlab.show(model, height=620)"
    lab.open("weights.ipynb", [load, "view"])
    lab.run_all()
    widget = lab.widget()
    drop(widget, "full.safetensors", weights(tmp_path, "w.safetensors", **FULL))
    assert "Replaces 2 initializers" in widget.get("file-weights").inner_text()
    widget.get("file-submit").click()
    widget.wait("h => h.store.history.position === 1")
    assert widget.get("python-line").inner_text() == "model.files.load_weights('full.safetensors')"
    assert lab.python("print(json.dumps(float(model.value('w').array.sum())))") == 8
    widget.press("Control+z")
    widget.wait("h => h.store.history.position === 0")
    odd = weights(tmp_path, "odd.npz", w=np.ones((2, 8), np.float32), other=np.ones(3, np.float32))
    drop(widget, "odd.npz", odd)
    text = widget.get("file-weights").inner_text()
    assert "w: the model has the shape [4, 4], the file [2, 8]" in text
    assert widget.get("file-way-weights").is_disabled()
    lab.screenshot(SCREENS / "weights-misfit.png")
    lab.page.keyboard.press("Escape")
    drop(widget, "some.npz", weights(tmp_path, "some.npz", w=FULL["w"], other=FULL["b"]))
    widget.get("file-weights").wait_for()
    for summary in widget.get("file-weights").locator("summary").all():
        summary.click()
    lab.screenshot(SCREENS / "weights-some.png")
    lab.theme("JupyterLab Dark")
    lab.screenshot(SCREENS / "weights-some-dark.png")
    widget.get("file-submit").click()
    widget.wait("h => h.store.history.position === 1")
    widget = opened(lab, widget, "module.pt2", (FORMATS / "pt2" / "module.pt2").read_bytes())
    lab.screenshot(SCREENS / "opened-dark.png")
    widget.get("toast-back-to-weights-onnx").click()
    lab.page.wait_for_function(
        """() => document.querySelector('[data-testid="onnxlab-root"]')?.__onnxlab?.store.history?.length === 1"""
    )
    assert lab.python("print(json.dumps(view.model is model))")


def test_what_needs_torch_is_left_to_a_cell(lab: Lab) -> None:
    path = lab.jupyter.folder / "torch.onnx"
    onnx.save(small(), path)
    lab.open("torch.ipynb", [f"import onnxlab\nonnxlab.show({str(path)!r}, height=620)"])
    lab.run_all()
    widget = lab.widget()
    drop(widget, "traced.pt", samples("pt2/torch")["traced.pt"])
    assert "runs code" in widget.get("file-refused").inner_text()
    assert "trust=True" in widget.get("file-torch").inner_text()
    assert widget.get("file-submit").count() == 0
    lab.screenshot(SCREENS / "torchscript.png")
    lab.page.keyboard.press("Escape")
    widget.get("file-panel").wait_for(state="detached")
