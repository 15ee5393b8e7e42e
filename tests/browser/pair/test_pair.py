"""Two models side by side in JupyterLab: changes and errors listed, both views linked, both nodes side by side."""

from tests.browser.support.lab import SECONDS, Lab

DIFF = """
import onnxlab
a, b = onnxlab.load(), onnxlab.load()
b.nodes["/stem/relu/Relu"].op_type = "Abs"
onnxlab.diff(a, b).view(height=900)
"""
COMPARE = """
import onnxlab
a, b = onnxlab.load(), onnxlab.load()
b.nodes["/block1/conv1/Conv"].attributes["pads"] = [0, 0, 2, 2]
onnxlab.compare(a, b, local=True).view(height=900)
"""
_PAIR = "document.querySelector('[data-testid=onnxlab-pair]').__onnxlabPair"


def _opened(lab: Lab, name: str, cell: str) -> None:
    lab.open(name, [cell]).run_all()
    lab.page.get_by_test_id("pair-panel").wait_for()
    lab.page.wait_for_function(f"() => {_PAIR}.app(1).picture && {_PAIR}.app(1).picture.linked.look")


def test_a_change_shows_side_by_side_and_an_edit_in_the_list(lab: Lab) -> None:
    _opened(lab, "pair.ipynb", DIFF)
    page = lab.page
    page.get_by_test_id("pair-change").first.click()
    for operator in ("Relu", "Abs"):
        page.get_by_test_id("paired-nodes").get_by_text(operator, exact=True).wait_for()
    assert lab.python("b.nodes['/head/fc/Gemm'].attributes['alpha'] = 2.0; print(len(onnxlab.diff(a, b)))") == 2
    page.wait_for_function(f"() => {_PAIR}.info.value.changes.length === 2")
    assert page.get_by_test_id("pair-change").count() == 2


def test_what_is_folded_zoomed_and_selected_on_one_side_is_on_the_other(lab: Lab) -> None:
    _opened(lab, "linked.ipynb", DIFF)
    page = lab.page
    for side in (0, 1):  # nothing of a half is cut off
        pane = page.get_by_test_id(f"pair-side-{side}")
        place, last = pane.bounding_box(), pane.get_by_test_id("toolbar-inspector").bounding_box()
        assert place is not None
        assert last is not None
        assert last["x"] + last["width"] <= place["x"] + place["width"]
    looks = f"[0, 1].map((side) => {{ const {{ zoom, open, flow }} = {_PAIR}.app(side).picture.linked.look;"
    looks += " return JSON.stringify([zoom.toFixed(6), [...open].sort(), flow]); })"
    page.wait_for_function(f"() => {{ const [a, b] = {looks}; return a === b; }}")  # before any gesture
    page.get_by_test_id("pair-side-0").get_by_test_id("stage").hover()
    page.mouse.wheel(0, 1)
    page.evaluate(f"() => {_PAIR}.app(0).picture.unfoldAll()")
    same = (
        f"() => {{ const [a, b] = [0, 1].map((side) => {_PAIR}.app(side).picture);"
        " return a.linked.look.open.size > 0 && a.linked.look.open.size === b.linked.look.open.size; }"
    )
    page.wait_for_function(same, timeout=SECONDS)
    page.evaluate(f"() => {{ const app = {_PAIR}.app(0); app.picked.reveal([...app.store.nodes.keys()][3]); }}")
    page.wait_for_function(f"() => {_PAIR}.app(1).picked.nodes.length === 1")
    zooms = f"() => [0, 1].map((side) => {_PAIR}.app(side).picture.linked.look.zoom)"
    page.wait_for_function(f"() => {{ const [a, b] = ({zooms})(); return Math.abs(a - b) < 1e-6; }}")


def test_a_point_of_the_curve_shows_the_numbers_of_both_sides(lab: Lab) -> None:
    _opened(lab, "compare.ipynb", COMPARE)
    page = lab.page
    page.get_by_test_id("pair-guilty").first.click()
    for of in ("a", "b", "difference"):
        page.get_by_test_id(f"paired-{of}").locator("canvas").wait_for()
    pane = page.get_by_test_id("pair-side-0")
    assert pane.get_by_test_id("inspector-value").count() or page.evaluate(f"() => {_PAIR}.value.value") > 0
