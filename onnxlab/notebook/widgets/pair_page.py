"""Two models side by side as one HTML page that needs neither kernel nor network."""

from html import escape
from os import PathLike
from pathlib import Path

from onnxlab.formats import kinds, output
from onnxlab.model.viewable_diffs import ModelComparison, ModelDiff
from onnxlab.notebook.panels.pairing import Pairing
from onnxlab.notebook.session.hub import hub_of
from onnxlab.notebook.widgets.bundle import page_parts
from onnxlab.notebook.widgets.html_page import assembled, record


def write(subject: ModelDiff | ModelComparison, path: str | PathLike[str]) -> Path:
    """Write the page; returns its path.

    Raises:
        SaveError: the page cannot be written.
    """
    pairing = Pairing(subject)
    models = [model for model in pairing.models if model is not None]
    sources = [model.path for model in models]
    output.check(path, kinds.PAGE, sources)  # before the page is made, which may take long
    sides = []
    for model in models:
        with model.graph.lock:
            sides.append(record(hub_of(model)))
    described = pairing.pair(again=False)
    sides[0]["answers"]["pair"] = {"": described}
    title = " ↔ ".join(described["names"])
    text = f'<pre style="white-space: pre-wrap; padding: 1em">{escape(str(subject))}</pre>'
    page = assembled(title, text, {"sides": sides}, page_parts(), "offlinePair")
    return output.write(path, page.encode(), kinds.PAGE, sources)
