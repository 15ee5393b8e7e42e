"""Subgraphs drawn inside their node, and runs of equal blocks: opened, gone through, edited, folded in place."""

from tests.browser.support.lab import Lab, Widget
from tests.support.corpus import path

CELLS = """import onnxlab
model = onnxlab.load({path!r})
view = onnxlab.show(model, height=640)
view"""


def find_in_its_place(widget: Widget) -> int:
    """Search for a node four frames deep: it is seen in its place, the way to it in the breadcrumb; returns it."""
    main = widget.debug()["scope"]
    deep: int = widget.evaluate("h => [...h.store.nodes.values()].find((node) => node.op.endsWith('swish')).id")
    widget.get("toolbar-fold").click()
    widget.wait("h => !h.view.debug().boxes.some((box) => box.kind === 'frame')")
    widget.get("search-input").fill("swish")
    widget.get("search-result").first.click()
    widget.wait(
        "(h, node) => h.view.debug().boxes.some((box) => box.id === node && box.kind === 'node' && box.depth === 4)",
        deep,
    )
    assert widget.debug()["scope"] == main
    widget.get("breadcrumb-2").get_by_text("then_branch").wait_for()
    return deep


def edit_in_its_place(lab: Lab, widget: Widget, deep: int) -> None:
    """Edit a node where it is drawn; its box walks to what reads it."""
    node = widget.evaluate("(h, node) => h.store.uses(h.store.nodes.get(node).outputs[0])[0].node", deep)
    widget.select(node)
    widget.press("F2")
    lab.page.keyboard.type("together")
    lab.page.keyboard.press("Enter")
    widget.wait("(h, node) => h.store.nodes.get(node).name === 'together'", node)
    assert lab.python(f"import json; print(json.dumps(model.node({node}).name))") == "together"


def unfold_equal_blocks(widget: Widget) -> None:
    """One for all of a run of equal layers, then all of them, then another one for all."""
    run = "h => h.view.debug().boxes.find((box) => ['frame', 'repeat'].includes(box.kind) && box.label.includes('…'))"
    widget.wait(f"h => ({run})(h)")
    first = widget.evaluate(run)["id"]
    widget.wait("h => h.app.blocks.equal.value.size > 0")
    groups = widget.evaluate("(h, group) => h.view.repeatOf(group).likes", first)
    assert len(groups) == 4
    assert set(groups) <= set(widget.evaluate("(h, group) => h.app.blocks.equal.value.get(group)", first))
    widget.evaluate("(h, group) => h.app.picked.revealGroup(group)", groups[2])
    widget.wait(f"h => ({run})(h).kind === 'frame'")
    shown = len(widget.debug()["boxes"])
    widget.get("block-all").click()
    widget.wait("(h, shown) => h.view.debug().boxes.length >= shown + 3", shown)
    widget.get("block-one").click()
    widget.wait("(h, shown) => h.view.debug().boxes.length === shown", shown)
    inside = widget.evaluate("(h, id) => [...h.store.nodes.values()].find(({group}) => group === id).id", groups[2])
    widget.wait("(h, node) => h.view.debug().boxes.some((box) => box.id === node && box.kind === 'node')", inside)


def test_subgraphs_are_found_and_edited_in_place(lab: Lab) -> None:
    lab.open("inside.ipynb", [CELLS.format(path=str(path("script_control")))])
    lab.run_all()
    widget = lab.widget()
    kinds = "h => h.view.debug().boxes.filter((box) => box.kind === 'frame').map((box) => box.label)"
    widget.evaluate("h => h.view.unfoldAll()")
    widget.wait(f"h => ['then_branch', 'else_branch'].every((name) => ({kinds})(h).includes(name))")
    deep = find_in_its_place(widget)
    edit_in_its_place(lab, widget, deep)


def test_runs_of_equal_blocks_are_unfolded_in_place(lab: Lab) -> None:
    lab.open("blocks.ipynb", [CELLS.format(path=str(path("whisper_encoder")))])
    lab.run_all()
    unfold_equal_blocks(lab.widget())
