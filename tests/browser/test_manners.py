"""Being a guest in a notebook: wheel, keyboard and processor are taken only while the widget is in view."""

from tests.browser.support.lab import Lab, Widget
from tests.support.corpus import Corpus


def seen(widget: Widget) -> tuple[float, float]:
    """The place of the first box inside the picture."""
    place = widget.get("stage").bounding_box()
    box = widget.debug()["boxes"][0]
    assert place is not None
    return round(box["x"] - place["x"]), round(box["y"] - place["y"])


def test_wheel_and_frames_only_where_they_are_wanted(lab: Lab, corpus: Corpus) -> None:
    load = f"import onnxlab, json\nmodel = onnxlab.load({str(corpus['lstm_gru'])!r})"
    lab.open("manners.ipynb", [load, "model", *(["print('\\n' * 60)"] * 3)])
    lab.run_all()
    widget, page = lab.widget(), lab.page
    page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer')?.scrollTo(0, 0)")
    place = widget.get("stage").bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + 30, place["y"] + place["height"] - 30)
    still = seen(widget)
    page.mouse.wheel(0, 40)
    page.wait_for_timeout(200)
    assert seen(widget) == still, "without focus the wheel is the page's"

    widget.root.scroll_into_view_if_needed()
    widget.get("outline").focus()
    place = widget.get("stage").bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + 30, place["y"] + place["height"] - 30)
    page.mouse.wheel(0, 40)
    page.wait_for_timeout(200)
    moved = seen(widget)
    assert moved != still, "with focus it pans"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.mouse.wheel(0, 40)
    page.wait_for_timeout(200)
    assert seen(widget) == moved, "Escape gives it back"

    # scrolled away, an edit costs no frame; back again it is there
    gather = widget.node("/e/Gather")
    page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer').scrollTo(0, 1e6)")
    page.wait_for_timeout(300)
    frames = widget.debug()["frames"]
    widget.evaluate("(h, node) => h.app.edits.setAttribute(node, 'axis', 1, 'int')", gather)
    widget.wait("h => h.store.history.position === 1")
    page.wait_for_timeout(300)
    assert widget.debug()["frames"] == frames
    widget.root.scroll_into_view_if_needed()
    widget.wait("(h, frames) => h.view.debug().frames > frames", frames)


def test_nothing_of_a_narrow_view_is_cut_off(fresh_lab: Lab) -> None:
    """The bar of a live view has more in it than that of a page."""
    fresh_lab.open("narrow.ipynb", ["import onnxlab", "onnxlab.load()"])
    fresh_lab.command("application:toggle-left-area")
    fresh_lab.run_all()
    widget = fresh_lab.widget()
    widget.run()
    widget.evaluate("h => h.app.picked.select([[...h.store.nodes.keys()][0]])")
    for width in (760, 735, 690, 600, 520):
        fresh_lab.page.set_viewport_size({"width": width, "height": 900})
        fresh_lab.page.wait_for_timeout(300)
        for line, last in ((".ol-toolbar", "toolbar-inspector"), (".ol-status", "status-problems")):
            place, end = widget.root.locator(line).bounding_box(), widget.get(last).bounding_box()
            assert place is not None
            assert end is not None
            assert end["x"] + end["width"] <= place["x"] + place["width"], (line, width)


def test_open_panels_leave_dialogs_their_width_in_a_narrow_view(fresh_lab: Lab) -> None:
    fresh_lab.open("panels.ipynb", ["import onnxlab", "onnxlab.load()"])
    fresh_lab.command("application:toggle-left-area")
    fresh_lab.page.set_viewport_size({"width": 500, "height": 900})
    fresh_lab.theme("JupyterLab Dark")
    fresh_lab.run_all()
    widget = fresh_lab.widget()
    widget.evaluate("h => { h.app.inspectorOpen.value = true; h.app.outlineOpen.value = true; }")
    widget.get("tree").wait_for()
    widget.get("inspector").wait_for()
    widget.get("status-problems").click()
    widget.evaluate("h => { h.app.edits.savePanel.value = true; }")  # the model has no file
    widget.get("save-panel").wait_for()
    whole, dialog, picture = (
        place.bounding_box() for place in (widget.root, widget.get("save-panel"), widget.get("stage"))
    )
    assert whole is not None
    assert dialog is not None
    assert picture is not None
    assert whole["width"] < 450
    assert dialog["width"] > 0.8 * whole["width"]
    assert picture["width"] >= 0.98 * whole["width"] - 2
    assert picture["height"] > 90


def test_what_is_fitted_is_fitted_to_a_full_window_too(fresh_lab: Lab) -> None:
    fresh_lab.open("fitted.ipynb", ["import onnxlab", "onnxlab.load()"])
    fresh_lab.run_all()
    widget = fresh_lab.widget()
    widget.press("Space")
    widget.settle()
    before = widget.debug()["zoom"]
    widget.get("toolbar-full").click()
    widget.wait("(h, zoom) => h.view.debug().zoom > zoom", before)
    widget.get("toolbar-full").click()
    widget.wait("(h, zoom) => Math.abs(h.view.debug().zoom - zoom) < 1e-6", before)


def test_a_new_view_of_the_output_is_a_view_of_its_own(lab: Lab, corpus: Corpus) -> None:
    load = f"import onnxlab, json\nmodel = onnxlab.load({str(corpus['lstm_gru'])!r})"
    lab.open("output.ipynb", [load, "model"])
    lab.run_all()
    first = lab.widget()
    lab.page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1; }")
    lab.command("notebook:create-output-view")
    lab.page.wait_for_function("() => document.querySelectorAll('[data-testid=\"onnxlab-root\"]').length === 2")
    other = lab.widget(1)
    gather = first.node("/e/Gather")
    other.evaluate("(h, node) => h.app.edits.setAttribute(node, 'axis', 1, 'int')", gather)
    first.wait("h => h.store.history.position === 1")
    other.wait("h => h.store.history.position === 1")
    assert first.labels() == other.labels()
    lab.command("application:close")
    lab.page.wait_for_function("() => document.querySelectorAll('[data-testid=\"onnxlab-root\"]').length === 1")
    first.evaluate("h => h.app.edits.undo()")
    first.wait("h => h.store.history.position === 0")
