"""What a primitive change is: the vocabulary itself is in `node_changes.py`, `graph_changes.py` and `changes.py`."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from onnxlab.graph.edit.model_graph import ModelGraph


class Change(Protocol):
    """One primitive change."""

    def apply(self, graph: "ModelGraph") -> "Change":
        """Make the change and return its inverse."""
        ...
