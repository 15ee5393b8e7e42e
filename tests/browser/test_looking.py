"""Looking around: what an edit does elsewhere, inputs of a run, tensors, ways, bookmarks, back and forward, blocks."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from playwright.sync_api import Locator

from tests.browser.support.lab import Lab, Widget
from tests.browser.support.value_models import CELL, HEADS, values
from tests.support.corpus import path

CLEAR = 32
"""Pixels: MARGIN of widgets/src/graph/view/viewpoint.ts."""
CELLS = """import onnxlab
model = onnxlab.load({path!r})
view = onnxlab.show(model, height=640)
view"""


def is_at_lower_edge(notice: Locator, stage: Locator) -> bool:
    """Whether a notice lies within the strip at the foot of the picture that a first look keeps clear."""
    lying, place = notice.bounding_box(), stage.bounding_box()
    assert lying is not None
    assert place is not None
    return lying["height"] <= CLEAR and abs(lying["y"] + lying["height"] - place["y"] - place["height"]) < 1


def shown(lab: Lab, name: str) -> Widget:
    lab.open("looking.ipynb", [CELLS.format(path=str(path(name)))])
    lab.run_all()
    return lab.widget()


def test_weights_that_nodes_make_have_no_boxes_and_a_selection_is_sought(lab: Lab) -> None:
    widget = shown(lab, "light_squeezenet")
    weights, last = widget.node("conv1_w_0"), widget.evaluate("h => [...h.store.nodes.keys()].at(-1)")
    widget.evaluate("h => h.view.unfoldAll()")
    widget.wait("(h, last) => h.view.debug().boxes.some(({ kind, id }) => kind === 'node' && id === last)", last)
    boxed = "(h, node) => h.view.debug().boxes.some(({ kind, id }) => kind === 'node' && id === node)"
    assert not widget.evaluate(boxed, weights)
    widget.press("k")
    widget.wait(boxed, weights)
    widget.press("k")
    widget.wait(f"(h, node) => !({boxed})(h, node)", weights)

    # what Python selects comes into view
    reader = widget.evaluate("(h, node) => h.store.uses(h.store.nodes.get(node).outputs[0])[0].node", weights)
    for node in (last, reader):
        lab.python(f"view.selection = [model.node({node})]; print(0)")
        widget.wait("(h, node) => h.app.picked.nodes[0] === node", node)
        place, box = widget.get("stage").bounding_box(), widget.box(node)
        assert place is not None
        assert box is not None
        assert place["y"] <= box["y"] <= place["y"] + place["height"] - box["h"]


def feed_a_file_and_look(lab: Lab, widget: Widget, first: int) -> int:
    """A file for the input: values show what they are, one is looked into and kept; returns that value."""
    widget.get("toolbar-inputs").click()
    widget.get("run-how-x").select_option("file")
    array, stored = np.random.default_rng(0).random((1, 3, 96, 96)).astype(np.float32), io.BytesIO()
    np.save(stored, array)
    file = {"name": "x.npy", "mimeType": "application/octet-stream", "buffer": stored.getvalue()}
    widget.get("run-file-x").set_input_files(files=[file])
    widget.wait("handle => handle.app.numbers.asked.inputs?.x?.file !== undefined")
    widget.get("run-inputs-run").click()
    widget.wait("handle => handle.app.runs.results.value !== null")
    total = lab.python("print(json.dumps(float(model.runner.last_inputs()['x'].sum())))")
    assert abs(total - float(array.sum())) < 1
    value: int = widget.evaluate("(handle, node) => handle.store.nodes.get(node).outputs[0]", first)
    widget.evaluate("(handle, value) => handle.app.picked.revealValue(value)", value)
    widget.get("value-pin").click()
    widget.get("value-look").click()
    widget.get("tensor-canvas").first.wait_for()
    widget.get("tensor-grid").get_by_text("0").first.wait_for()
    assert lab.python(f"print(json.dumps(model.runner.store.pins.keys() == {{{value}}}))") is True
    return value


def walk_ways_and_back(lab: Lab, widget: Widget, first: int, later: int) -> None:
    """Ways, bookmarks, and back to where the view was."""
    widget.reveal(first)
    widget.press("b")
    widget.evaluate("(handle, nodes) => handle.app.picked.select(nodes)", [first, later])
    widget.press("b")
    widget.press("p")
    widget.get("trail").wait_for()
    widget.press("Escape")
    widget.get("trail").wait_for(state="detached")
    assert lab.python("print(json.dumps([node.id for node in view.bookmarks]))") == [first, later]
    widget.evaluate("(handle, node) => handle.app.picked.reveal(node)", first)
    widget.evaluate("(handle, node) => handle.app.picked.reveal(node)", later)
    widget.get("minimap").wait_for(state="visible")
    widget.press("Alt+ArrowLeft")
    widget.wait("(handle, node) => handle.app.picked.nodes[0] === node", first)


def read_to_the_right(lab: Lab, widget: Widget, first: int, later: int) -> None:
    """The other way to read, in one row, and the page of keys."""
    widget.get("toolbar-columns").click()
    widget.get("toolbar-flow").click()
    flow = """(handle, [first, later]) => {
        const nodes = handle.view.debug().boxes.filter((box) => box.kind === 'node');
        const x = (id) => nodes.find((box) => box.id === id)?.x;
        return x(later) > x(first) + 100;
    }"""
    widget.wait(flow, [first, later])
    assert lab.python("print(json.dumps(view.flow))") == "right"
    widget.press("?")
    widget.get("keys").get_by_text("back and forward").wait_for()
    lab.page.keyboard.press("Escape")
    widget.get("keys").wait_for(state="detached")


def edit_and_see_what_changed(lab: Lab, widget: Widget, node: int, value: int) -> None:
    """An edit: old and new shapes, who refuses, and why."""
    lab.add_cell(f"model.node({node}).attributes['strides'] = [2, 2]")
    widget.get("impact").wait_for()
    for _ in range(50):  # the notice slides in
        if is_at_lower_edge(widget.get("impact"), widget.get("stage")):
            break
        lab.page.wait_for_timeout(100)
    assert is_at_lower_edge(widget.get("impact"), widget.get("stage"))
    changed = widget.evaluate("(handle, value) => handle.app.impact.effects.value.changed.get(value)", value)
    assert changed[0] != changed[1]
    widget.get("impact-list").click()
    widget.get("changed-row").first.wait_for()
    widget.get("changed-row").first.get_by_text("why").click()
    widget.get("explanation").get_by_text("strides").first.wait_for()


def test_looking_at_values_ways_and_what_an_edit_does(lab: Lab) -> None:
    widget = shown(lab, "mobilenet_fp16")
    names = lab.python(
        "import json; print(json.dumps([node.outputs[0].name for node in model.nodes if node.op_type == 'Conv']))"
    )
    first, later = widget.node(names[2]), widget.node(names[6])
    value = feed_a_file_and_look(lab, widget, first)
    walk_ways_and_back(lab, widget, first, later)
    read_to_the_right(lab, widget, first, later)
    edit_and_see_what_changed(lab, widget, first, value)


COLORS = "canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size"


def opened(lab: Lab, folder: Path) -> Widget:
    file = folder / "values.onnx"
    onnx.save(values(), file)
    lab.open("values.ipynb", [CELL.format(path=str(file))])
    lab.run_all()
    widget = lab.widget()
    widget.settle()
    widget.run()
    return widget


def look(widget: Widget, name: str) -> None:
    value = widget.evaluate("(h, name) => [...h.store.values.values()].find((v) => v.name === name).id", name)
    widget.evaluate("(h, value) => void h.app.numbers.lookAtLarge(value)", value)
    widget.get("large-view").wait_for()


def ways(lab: Lab, widget: Widget) -> Iterator[str]:
    """One value after another at large, and what must be there; the name of each state."""
    look(widget, "detections")
    boxes = widget.get("found-box")
    boxes.first.wait_for(state="attached")
    assert boxes.count() == 2, "one of two that overlap, and none of a low score"
    assert widget.get("boxes-count").inner_text() == "2 boxes of 4"
    yield "boxes"
    look(widget, "weights")
    last = widget.get(f"attention-head-{HEADS - 1}")
    last.click()
    assert last.get_attribute("aria-selected") == "true"
    matrix = widget.get("attention").locator(".ol-matrix-canvas .ol-tensor-canvas")
    assert matrix.evaluate(COLORS) > 10
    matrix.hover()
    assert re.match(r"query 1[12], key 1[12]: ", widget.get("attention-place").inner_text())
    yield "attention"
    look(widget, "louder")
    spectrogram = widget.get("spectrogram").get_by_test_id("tensor-canvas")
    spectrogram.wait_for()
    assert spectrogram.evaluate(COLORS) > 50
    yield "spectrogram"
    widget.get("large-close").click()
    node = widget.node("relu")
    widget.evaluate("(h, node) => { h.app.picked.reveal(node); }", node)
    for _ in range(6):
        widget.press("+")
    widget.wait("h => [...h.store.values.values()].some(({ id }) => h.app.numbers.small(id) !== null)")
    yield "wires"


def test_values_are_shown_as_what_they_are(lab: Lab, tmp_path: Path) -> None:
    widget = opened(lab, tmp_path)
    assert list(ways(lab, widget)) == ["boxes", "attention", "spectrogram", "wires"]
