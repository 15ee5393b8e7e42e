"""Edits by hand: the palette by keyboard alone, a wire dragged to another node, the history stepped through."""

from pathlib import Path

import pytest

import onnxlab
from tests.browser.support.lab import Lab, Widget
from tests.support.corpus import Corpus


@pytest.fixture
def shown(lab: Lab, corpus: Corpus) -> Widget:
    """whisper_encoder in a notebook."""
    load = f"import onnxlab, json\nmodel = onnxlab.load({str(corpus['whisper_encoder'])!r})"
    lab.open("editing.ipynb", [load, "onnxlab.show(model, height=800)"])
    lab.run_all()
    return lab.widget()


def test_a_node_is_inserted_by_keyboard_and_the_history_steps_back(lab: Lab, shown: Widget) -> None:
    shown.select(shown.node("node_gelu"))
    shown.press("i")
    field = shown.get("palette-input")
    field.fill("identity")
    shown.get("operator-Identity").wait_for()
    field.press("Enter")
    shown.wait("handle => handle.store.history.position === 1")
    line = "model.value('gelu').insert_after('Identity')"
    assert shown.get("python-line").inner_text() == line
    shown.get("status-history").click()
    assert line in shown.get("history-1").inner_text()
    shown.get("history-0").click()
    shown.wait("handle => handle.store.history.position === 0")
    shown.get("history-1").click()
    shown.wait("handle => handle.store.history.position === 1")
    assert lab.python("print(json.dumps([node.op_type for node in model.nodes].count('Identity')))") == 1


def test_a_wire_is_dragged_to_another_node(lab: Lab, shown: Widget) -> None:
    gelu, conv = shown.node("node_gelu_1"), shown.node("node_Conv_146")
    shown.reveal(gelu)
    value = shown.evaluate("(handle, node) => handle.store.nodes.get(node).outputs[0]", shown.node("node_Conv_145"))
    shown.evaluate("(handle, value) => handle.app.picked.selectValue(value)", value)
    source, target = shown.box(shown.node("node_Conv_145")), shown.box(gelu)
    assert source is not None
    assert target is not None
    mouse = lab.page.mouse
    mouse.move(source["x"] + source["w"] / 2, source["y"] + source["h"] + 8)
    mouse.down()
    mouse.move(target["x"] + target["w"] / 2, target["y"] - 20, steps=4)
    shown.wait("handle => handle.app.wires.wire.value?.targets")
    box = shown.box(shown.node("node_Conv_145"))
    assert box is not None
    mouse.move(box["x"] + 20, box["y"] + 10)
    shown.root.get_by_text("depend on itself").wait_for()
    mouse.move(target["x"] + target["w"] / 2, target["y"] + target["h"] / 2, steps=3)
    mouse.up()
    shown.wait("handle => handle.store.history.position === 1")
    inputs = shown.evaluate("(handle, node) => handle.store.nodes.get(node).inputs", gelu)
    assert inputs == [value]
    assert shown.evaluate("(handle, node) => handle.store.nodes.has(node)", conv)


def test_a_save_is_shown_before_and_a_copy_is_offered(lab: Lab, tmp_path: Path) -> None:
    path = onnxlab.load().save(tmp_path / "digits.onnx")
    before = path.read_bytes()
    lab.open("saving.ipynb", ["import onnxlab", f"model = onnxlab.load({str(path)!r})", "model"])
    lab.run_all()
    widget = lab.widget()
    widget.select(widget.node("/stem/conv/Conv"))
    widget.set_field("strides", "2, 2")
    widget.wait("h => h.store.dirty")

    widget.press("Control+s")
    widget.get("save-confirm").wait_for()
    assert widget.get("save-edits").inner_text() == "set strides of /stem/conv/Conv"
    assert "(1, 1) → (2, 2)" in (widget.get("save-fields").text_content() or "")
    widget.page.keyboard.press("Escape")
    widget.get("save-panel").wait_for(state="detached")
    assert path.read_bytes() == before

    widget.get("toolbar-save").click()
    widget.get("save-confirm").wait_for()
    lab.python("model.nodes[0].name = 'meanwhile'; print(1)")
    widget.page.wait_for_function("() => document.querySelectorAll('[data-testid=save-edits] li').length === 2")
    widget.get("save-copy").click()
    widget.wait("h => !h.store.dirty && h.store.path.endsWith('digits-edited.onnx')")
    assert path.read_bytes() == before
    assert onnxlab.load(tmp_path / "digits-edited.onnx").nodes[0].name == "meanwhile"
