"""Runs that would take hours: Stop and interrupt give the prompt back within a second, also while a cell runs."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.browser.support.lab import Lab, Widget

WITHIN = 15_000.0
"""Milliseconds from the click to the prompt, on a machine that others use too; the models never end by themselves.
What is promised, a second, is measured by `python -m bench execution` and printed here."""

_INTERRUPT = """async () => {
    const panel = window.jupyterapp.shell.currentWidget, cells = panel.content.widgets;
    const asked = performance.now();
    await panel.sessionContext.session.kernel.interrupt();
    while (!cells[cells.length - 1].model.executionCount) await new Promise((resolve) => setTimeout(resolve, 5));
    return performance.now() - asked;
}"""


@pytest.fixture
def endless(lab: Lab) -> Path:
    """x -> Relu -> a Loop of 2**60 additions -> y."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["again"], ["go_on"]),
            helper.make_node("Add", ["before", "one"], ["after"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("number", TensorProto.INT64, []),
            helper.make_tensor_value_info("again", TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, [4]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", TensorProto.FLOAT, [4]),
        ],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["r"], name="relu", doc_string="first"),
            helper.make_node("Loop", ["trips", "", "r"], ["y"], name="loop", body=body),
        ],
        "endless",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
        [
            numpy_helper.from_array(np.array(2**60), "trips"),
            numpy_helper.from_array(np.ones(4, np.float32), "one"),
        ],
    )
    path = lab.jupyter.folder / "endless.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


def show(lab: Lab, path: Path, subshells: bool = True) -> Widget:
    """The model's widget; without subshells, messages wait for the cell."""
    load = f"import onnxlab, json, time\nimport numpy as np\nmodel = onnxlab.load({str(path)!r})"
    lab.open("interrupt.ipynb", [load, "model"])
    if not subshells:
        lab.page.evaluate(
            """() => {
                const {session} = window.jupyterapp.shell.currentWidget.sessionContext;
                session.kernel.commsOverSubshells = 'disabled';
            }"""
        )
    lab.run_all()
    return lab.widget()


def usable(lab: Lab, widget: Widget) -> None:
    """Prompt, model and view work."""
    assert lab.python("print(json.dumps(float(model.run({'x': -np.ones(4, 'f4')}, outputs=['r'])['r'].sum())))") == 0
    widget.select(widget.node("relu"))
    assert set(widget.run()) == {"r"}


@pytest.mark.parametrize("subshells", [True, False])
def test_stop_in_the_widget(lab: Lab, endless: Path, subshells: bool) -> None:
    widget = show(lab, endless, subshells)
    widget.get("toolbar-run").click()
    widget.get("toolbar-stop").wait_for()
    lab.page.wait_for_timeout(500)
    milliseconds = widget.root.evaluate(
        """(root) => new Promise((resolve) => {
            const asked = performance.now();
            root.querySelector('[data-testid="toolbar-stop"]').click();
            const {running} = root.__onnxlab.app.runs;
            const look = () => running.value ? setTimeout(look, 5) : resolve(performance.now() - asked);
            look();
        })"""
    )
    print(f"\nStop, subshells {'on' if subshells else 'off'}: {milliseconds:.0f} ms")
    assert milliseconds < WITHIN
    assert widget.toasts() == ["Run stopped"]
    usable(lab, widget)


def test_interrupting_a_cell_that_runs_the_model(lab: Lab, endless: Path) -> None:
    widget = show(lab, endless)
    milliseconds = []
    for code in ("while True: time.sleep(0.01)", "model.run({'x': np.ones(4, 'f4')})"):
        lab.add_cell(code)  # the first traceback imports IPython's printers, which write lines of their own
        lab.page.wait_for_timeout(1500)
        milliseconds.append(lab.page.evaluate(_INTERRUPT))
        assert lab.cell_outputs(-1)[0]["ename"] == "KeyboardInterrupt"
    print(f"\ninterrupting a loop: {milliseconds[0]:.0f} ms, a run: {milliseconds[1]:.0f} ms")
    assert milliseconds[1] < WITHIN
    usable(lab, widget)


def test_the_widget_works_while_a_cell_runs(lab: Lab, endless: Path) -> None:
    widget = show(lab, endless)
    until = "until, version = time.monotonic() + 30, model.version"
    lab.add_cell(
        f"{until}\nwhile model.version == version and time.monotonic() < until: time.sleep(0.05)\nprint(model.version)"
    )
    lab.page.wait_for_timeout(300)
    widget.select(widget.node("relu"))
    assert set(widget.run()) == {"r"}
    assert lab.cell_outputs(-1) == []
    widget.evaluate("(handle, node) => handle.app.edits.renameNode(node, 'renamed')", widget.node("relu"))
    widget.wait("handle => handle.store.history.undo !== null")
    lab.wait_executed()
    assert lab.cell_outputs(-1)[0]["text"].strip() == "1", "the edit came while the cell ran, and ended it"


def test_without_subshells_the_widget_waits_for_the_cell(lab: Lab, endless: Path) -> None:
    widget = show(lab, endless, subshells=False)
    lab.add_cell("time.sleep(4)")
    lab.page.wait_for_timeout(500)
    widget.evaluate("(handle, node) => { void handle.app.edits.renameNode(node, 'renamed'); }", widget.node("relu"))
    widget.wait("handle => handle.client.connection === 'waiting'")
    assert widget.version == 1
    widget.wait_version(2)
    widget.wait("handle => handle.client.connection === 'ready'")
