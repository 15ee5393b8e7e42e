"""A tree ensemble as the page shows it: sizes, the use of features, and one tree as text."""

from typing import TYPE_CHECKING

from onnxlab.errors import NameLookupError
from onnxlab.notebook.protocol.messages import JSON, ProtocolError, number

if TYPE_CHECKING:
    from onnxlab.model import Model

FEATURES = 40
"""Features that are listed, those with the most splits."""


def trees(model: "Model", node: int, tree: int | None) -> JSON:
    """The trees of a node, one of them as text.

    Raises:
        NameLookupError: there is no such node.
        EditError: the node is no tree ensemble, or its attributes hold no trees.
        ProtocolError: there is no such tree.
    """
    if node not in model.graph.nodes:
        raise NameLookupError(f"node {node} is not in the model any more")
    ensemble = model.trees(model.node(node))
    place = tree or 0
    if place >= len(ensemble):
        raise ProtocolError("nothing", f"There is no tree {place}: the ensemble has {len(ensemble)}.")
    return {
        "count": len(ensemble),
        "splits": sum(ensemble.splits),
        "leaves": sum(ensemble.leaves),
        "depth": [min(ensemble.depths), max(ensemble.depths)],
        "features": [
            {"feature": use.feature, "splits": use.splits, "low": number(use.low), "high": number(use.high)}
            for use in ensemble.features[:FEATURES]
        ],
        "more": max(0, len(ensemble.features) - FEATURES),
        "tree": place,
        "text": ensemble.text(place),
    }
