"""Pages that cannot do everything: without Workers (one VS Code webview), without binary buffers (Colab)."""

import pytest

from tests.browser.support.lab import Lab, Widget
from tests.support.corpus import Corpus

NO_WORKERS = """
    const Real = window.Worker;
    window.blockedWorkers = 0;
    window.Worker = function (url, options) {
        if (String(url).startsWith('blob:')) { window.blockedWorkers++; throw new Error('Workers are blocked here'); }
        return new Real(url, options);
    };
"""

NO_BUFFERS = """
import onnxlab
from onnxlab.notebook.widgets.widget import ModelWidget

_send = ModelWidget.send
dropped = []

def send(self, content, buffers=None):
    if buffers:
        dropped.append(len(buffers))
    _send(self, content)

ModelWidget.send = send
"""


def edit_and_undo(widget: Widget) -> None:
    """The labels follow an edit and come back."""
    before = widget.labels()
    conv = widget.evaluate("handle => [...handle.store.nodes.values()].find((node) => node.op === 'Conv').id")
    widget.select(conv)
    widget.set_field("strides", "1, 1")
    widget.wait("(handle, count) => handle.store.history.position === count", 1)
    assert widget.labels() != before
    widget.press("Control+z")
    widget.wait("(handle, count) => handle.store.history.position === count", 0)
    assert widget.labels() == before


@pytest.mark.parametrize("missing", ["workers", "buffers"])
def test_the_widget_works_without(missing: str, fresh_lab: Lab, corpus: Corpus) -> None:
    lab = fresh_lab
    cells = [f"import onnxlab\nmodel = onnxlab.load({str(corpus['light_densenet121'])!r})", "model"]
    if missing == "workers":
        lab.page.add_init_script(NO_WORKERS)
    else:
        cells.insert(0, NO_BUFFERS)
    lab.open(f"no_{missing}.ipynb", cells)
    lab.run_all()
    widget = lab.widget()
    assert len(widget.debug()["boxes"]) > 5
    edit_and_undo(widget)
    if missing == "workers":
        widget.evaluate("handle => handle.view.unfoldAll()")  # more nodes than are laid out on the main thread
        widget.wait("handle => handle.view.debug().boxes.length > 600")
        assert lab.page.evaluate("() => window.blockedWorkers") > 0, "a Worker was asked for, and refused"
    else:
        assert lab.python("import json; print(json.dumps(len(dropped)))") > 0, "buffers were sent, and lost"
