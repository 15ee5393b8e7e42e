"""Watches as the page lists them: checked as of now, nothing is run."""

from typing import TYPE_CHECKING

from onnxlab.analysis.watches.expression import CLOSE_TO, MEASURES
from onnxlab.analysis.watches.watches import EVERYTHING
from onnxlab.errors import NameLookupError
from onnxlab.notebook.protocol.messages import JSON
from onnxlab.printable import printable

if TYPE_CHECKING:
    from onnxlab.model import Model

VALUES = 100
"""Most values of a watch that are sent to the page."""


def watches(model: "Model") -> JSON:
    """All watches."""
    listed = [
        {
            "name": printable(checked.value),
            "text": printable(checked.text),
            "state": checked.state,
            "why": printable(checked.why),
            "values": list(checked.values[:VALUES]),
        }
        for checked in model.watches.check(compute=False)
    ]
    refused = [printable(problem) for problem in model.watches.refused]
    return {"watches": listed, "refused": refused, "measures": [*MEASURES, CLOSE_TO]}


def watch(model: "Model", value: int | None, text: str) -> JSON:
    """Add a watch of a value, or of every value.

    Raises:
        NameLookupError: there is no such value.
        WatchError: the expression cannot be read.
    """
    if value is not None and value not in model.graph.values:
        raise NameLookupError(f"value {value} is not in the model any more")
    model.watches.add(EVERYTHING if value is None else value, text)
    return watches(model)


def unwatch(model: "Model", place: int) -> JSON:
    """Remove a watch by its place."""
    model.watches.remove(place)
    return watches(model)
