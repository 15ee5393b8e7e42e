"""What a primitive change is: those that there are stand in `graph/edit/changes.py`."""

from typing import Protocol

from onnxlab.graph.state.graph_state import GraphState


class Change(Protocol):
    """One primitive change."""

    def apply(self, graph: GraphState) -> "Change":
        """Make the change and return its inverse."""
        ...
