"""The whole tour by keyboard alone: find a node, edit it, watch the shapes, undo, edit the graph, run, save, leave."""

import shutil

from tests.browser.support.lab import Lab, Widget
from tests.support.corpus import Corpus

FOCUSED = "(h) => document.activeElement?.dataset?.testid ?? ''"


def tab_to(widget: Widget, testid: str, most: int = 60) -> None:
    """Press Tab until an element has the focus; a person would not press it oftener than `most` times."""
    for _ in range(most):
        if widget.evaluate(FOCUSED) == testid:
            return
        widget.page.keyboard.press("Tab")
    raise AssertionError(f"{testid} is not reached by {most} × Tab; the focus is on {widget.evaluate(FOCUSED)!r}")


def command(widget: Widget, words: str) -> None:
    """Choose one of all edits by a few letters."""
    widget.page.keyboard.press("e")
    widget.get("command-input").wait_for()
    widget.page.keyboard.type(words)
    widget.page.keyboard.press("Enter")


def find_edit_and_undo(widget: Widget) -> int:
    """Find a node, edit an attribute, undo; returns the node."""
    keys, labels = widget.page.keyboard, widget.labels()
    keys.press("Control+f")
    keys.type("/e/Gather")
    widget.get("search-result").first.wait_for()
    keys.press("Enter")
    gather = widget.node("/e/Gather")
    widget.wait("(h, node) => h.app.picked.nodes[0] === node", gather)
    keys.press("Escape")  # the query goes first
    keys.press("Escape")
    assert widget.evaluate(FOCUSED) == "outline"
    widget.get("attr-field-axis").wait_for()
    keys.press("F6")
    tab_to(widget, "attr-field-axis")
    keys.press("Control+a")
    keys.type("1")
    keys.press("Enter")
    widget.wait_label("/e/Gather_output_0", "200×b×t")
    keys.press("Escape")
    assert widget.evaluate(FOCUSED) == "outline"
    keys.press("Control+z")
    widget.wait_label("/e/Gather_output_0", "b×t×24")
    assert widget.labels() == labels
    return gather


def edit_the_graph(widget: Widget, gather: int) -> None:
    """A node more, a value as output, a wire that cannot be."""
    keys = widget.page.keyboard
    command(widget, "duplicate")
    widget.wait("h => h.store.history.position === 1")
    keys.press("v")
    widget.wait("h => h.store.values.get(h.app.picked.subject.value.value)?.name === '/e/Gather_output_0'")
    command(widget, "make it an output")
    widget.wait("h => h.store.history.position === 2")
    widget.evaluate("(h, node) => h.app.picked.select([node])", gather)
    keys.press("c")
    widget.get("form-value").wait_for()
    keys.press("Tab")
    keys.type("/e/Gather_output_0")
    keys.press("Enter")
    widget.get("picker-reason").wait_for()
    assert "depend on itself" in widget.get("picker-reason").inner_text()
    keys.press("Escape")
    assert widget.get("form").count() == 0


def open_the_menu_and_run(widget: Widget) -> None:
    """The menu of what has the focus, and a run."""
    keys = widget.page.keyboard
    keys.press("Shift+F10")
    widget.get("menu-replace").wait_for()
    keys.press("End")
    assert widget.evaluate(FOCUSED) == "menu-all"
    keys.press("Escape")
    keys.press("Shift+F6")
    tab_to(widget, "toolbar-run")
    keys.press("Enter")
    widget.wait("h => h.app.runs.results.value !== null")


def save_and_leave(widget: Widget) -> None:
    """Save, and go back to the notebook."""
    keys = widget.page.keyboard
    keys.press("Control+s")
    widget.get("save-confirm").wait_for()
    assert widget.evaluate(FOCUSED) == "save-confirm"
    keys.press("Enter")
    widget.wait("h => !h.store.dirty")
    widget.get("outline").focus()
    for _ in range(4):
        keys.press("Escape")
    assert not widget.evaluate("h => Boolean(document.activeElement?.closest('.onnxlab'))")


def test_the_whole_tour_without_a_mouse(lab: Lab, corpus: Corpus) -> None:
    path = lab.jupyter.folder / "keys.onnx"
    shutil.copy(corpus["lstm_gru"], path)
    lab.open(
        "keys.ipynb", [f"import onnxlab, json\nmodel = onnxlab.load({str(path)!r})", "onnxlab.show(model, height=700)"]
    )
    lab.run_all()
    widget = lab.widget()
    widget.get("outline").focus()
    gather = find_edit_and_undo(widget)
    edit_the_graph(widget, gather)
    open_the_menu_and_run(widget)
    save_and_leave(widget)
    assert lab.python("print(json.dumps(len(onnxlab.load(model.path).nodes) == len(model.nodes)))") is True
