"""A second model in the place of a view: chosen, walked through, run, dropped as a file, and the way back."""

from pathlib import Path

import onnxlab
from tests.browser.support.dropping import drop
from tests.browser.support.lab import Lab

EDITED = """
import onnxlab
model = onnxlab.load()
model.nodes["/stem/relu/Relu"].op_type = "Abs"
model.nodes["/block1/conv1/Conv"].attributes["pads"] = [0, 0, 2, 2]
weight = model.nodes["/head/fc/Gemm"].inputs[1]
weight.array = weight.array + 0.5
"""


def test_a_view_is_compared_with_its_model_as_loaded_and_comes_back_as_it_was(lab: Lab) -> None:
    lab.open("in_place.ipynb", [EDITED, "view = onnxlab.show(model)\nview"]).run_all()
    page, widget = lab.page, lab.widget()
    widget.evaluate("h => h.view.unfoldAll()")
    widget.settle()
    boxes = len(widget.debug()["boxes"])
    widget.get("toolbar-compare").click()
    widget.get("counterpart-list").select_option(label="as loaded – 3 edits ago")
    widget.get("counterpart-submit").click()
    page.get_by_test_id("pair-panel").wait_for()
    assert not widget.root.is_visible()

    parts = []
    for place in range(3):
        page.keyboard.press("Alt+ArrowDown") if place else page.get_by_test_id("pair-next").click()
        page.get_by_test_id("pair-at").get_by_text(f"{place + 1} of 3").wait_for()
        page.locator(".ol-pair-differs").first.wait_for()
        page.wait_for_timeout(300)
        parts += page.locator(".ol-pair-differs th").all_inner_texts()
    assert sorted(parts) == ["input 1", "operator", "pads"]
    page.get_by_test_id("pair-tab-errors").click()
    page.get_by_test_id("pair-run").click()
    page.get_by_test_id("pair-guilty").get_by_text("stem/relu_out").wait_for()
    page.get_by_test_id("pair-tolerance").fill("1e9")
    page.get_by_text("All values agree within 1000000000").wait_for()
    lab.screenshot(Path("build/screens/in_place.png"))

    page.get_by_test_id("pair-end").click()
    page.get_by_test_id("onnxlab-pair").wait_for(state="detached")
    widget.root.wait_for()
    widget.settle()
    assert len(widget.debug()["boxes"]) == boxes, "what was unfolded is so still"
    assert lab.python("print(view.sides)") == 0
    assert lab.errors == []


def test_a_pair_outlives_a_reload_and_leaves_its_place_when_the_kernel_ends(lab: Lab) -> None:
    begin = "view = onnxlab.show(model)\nview.show_pair(model.changes_since())\nview"
    lab.open("outlives.ipynb", [EDITED, begin]).run_all()
    page = lab.page
    page.get_by_test_id("pair-change").first.wait_for()
    lab.command("docmanager:save")
    page.reload()
    lab.wait_ready("outlives.ipynb")
    page.get_by_test_id("pair-change").first.wait_for()
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.get_by_test_id("onnxlab-pair").wait_for(state="detached")
    page.get_by_test_id("banner").first.wait_for()


def test_a_dropped_model_is_compared_and_a_broken_one_refused_with_a_way_out(lab: Lab) -> None:
    lab.open("dropped_pair.ipynb", [EDITED, "onnxlab.show(model)"]).run_all()
    page, widget = lab.page, lab.widget()
    widget.get("toolbar-compare").click()
    broken = {"name": "broken.onnx", "mimeType": "", "buffer": b"no model at all"}
    widget.get("counterpart-file").set_input_files([broken])  # type: ignore[list-item]
    assert "broken.onnx" in widget.get("counterpart-refused").inner_text()
    page.keyboard.press("Escape")
    drop(widget, "before.onnx", onnxlab.load().to_bytes())
    widget.get("file-way-compare").check()
    widget.get("file-submit").click()
    page.get_by_test_id("pair-panel").wait_for()
    assert page.get_by_test_id("pair-change").count() == 3
    assert "before.onnx" in page.get_by_test_id("pair-side-1").inner_text()
    assert lab.errors == []
