"""The protocol of primitive changes: `graph/edit/changes.py` has those that there are."""

from typing import Protocol

from onnxlab.graph.state.graph_state import GraphState


class Change(Protocol):
    """One primitive change."""

    def apply(self, graph: GraphState) -> "Change":
        """Make the change and return its inverse."""
        ...
