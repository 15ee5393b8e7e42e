"""Ends of a view: closed, reloaded, restarted, run again; and the messages to the user then."""

import pytest

from tests.browser.support.lab import Lab, Widget
from tests.support.corpus import Corpus


@pytest.fixture
def shown(lab: Lab, corpus: Corpus) -> Widget:
    """lstm_gru in a notebook, in the last cell's output."""
    load = f"import onnxlab, json\nmodel = onnxlab.load({str(corpus['lstm_gru'])!r})"
    lab.open("life.ipynb", [load, "model"])
    lab.run_all()
    return lab.widget()


def edit(widget: Widget) -> None:
    """Set an attribute of /e/Gather from the page."""
    widget.select(widget.node("/e/Gather"))
    widget.set_field("axis", "1")
    widget.wait_label("/e/Gather_output_0", "200×b×t")


def test_a_closed_view_leaves_the_page_and_the_model_goes_on(lab: Lab, shown: Widget) -> None:
    edit(shown)
    assert lab.python("model.view().close(); print(len(model._subscribers))") == 0
    shown.root.wait_for(state="detached")
    lab.add_cell("model")
    again = lab.widget()
    assert again.label("/e/Gather_output_0") == "200×b×t"
    again.press("Control+z")
    again.wait_label("/e/Gather_output_0", "b×t×24")


def test_clearing_the_output_and_showing_again(lab: Lab, shown: Widget) -> None:
    edit(shown)
    lab.command("notebook:clear-all-cell-outputs")
    shown.root.wait_for(state="detached")
    assert lab.python("print(model.version)") == 1
    lab.add_cell("model")
    assert lab.widget().label("/e/Gather_output_0") == "200×b×t"


def test_a_reloaded_page_shows_the_model_as_it_is(lab: Lab, shown: Widget) -> None:
    edit(shown)
    lab.command("docmanager:save")
    lab.page.reload()
    lab.wait_ready()
    widget = lab.widget()
    assert widget.label("/e/Gather_output_0") == "200×b×t"
    widget.select(widget.node("/e/Gather"))
    widget.press("Control+z")
    widget.wait_label("/e/Gather_output_0", "b×t×24")


def test_a_restarted_kernel_is_noticed_and_running_again_brings_it_back(lab: Lab, shown: Widget) -> None:
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    shown.get("banner").wait_for()
    lab.wait_ready()
    shown.wait("handle => handle.client.connection === 'gone'")
    assert len(shown.debug()["boxes"]) > 0, "the picture stays to be looked at"
    lab.run_all()
    widget = lab.widget()
    edit(widget)


def test_running_the_cell_again_keeps_the_edits(lab: Lab, shown: Widget) -> None:
    edit(shown)
    lab.page.evaluate(
        """() => {
            window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1;
            return window.jupyterapp.commands.execute('notebook:run-cell');
        }"""
    )
    lab.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.content.widgets[1].model.executionCount === 3", polling=50
    )
    widget = lab.widget()
    assert lab.page.get_by_test_id("onnxlab-root").count() == 1
    assert widget.label("/e/Gather_output_0") == "200×b×t"
    assert lab.python("print(len(model._subscribers))") == lab.python("print(len(model._subscribers))") == 2


def test_two_views_of_a_model_stay_equal(lab: Lab, shown: Widget) -> None:
    lab.add_cell("onnxlab.show(model)")
    other = lab.widget(1)
    edit(shown)
    other.wait_label("/e/Gather_output_0", "200×b×t")
    assert other.labels() == shown.labels()
    assert other.selection() == []
    other.press("Control+z")
    shown.wait_label("/e/Gather_output_0", "b×t×24")


def test_the_selection_goes_both_ways(lab: Lab, shown: Widget) -> None:
    gather = shown.node("/e/Gather")
    lab.python("model.view().selection = ['/e/Gather', '/l/LSTM']; print(0)")
    shown.wait("(handle, node) => handle.app.picked.nodes.length === 2 && handle.app.picked.nodes[0] === node", gather)
    shown.select(shown.node("/l/LSTM"))
    assert lab.python("print(json.dumps([node.name for node in model.view().selection]))") == ["/l/LSTM"]
