"""A model as it was at another state of its history."""

from __future__ import annotations

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph


def as_of(graph: ModelGraph, position: int) -> ModelGraph:
    """A copy of a model as it was when `position` edits had been made; the model itself stays as it is.

    Raises:
        EditError: the history had to drop the edits since then, or an edit is open.
    """
    proto = onnx.ModelProto()
    with graph.lock:
        if graph.transaction is not None:
            raise EditError("end the open edit first: it is what happened since a state that is asked for")
        changes = graph.history.changes_to(position)
        if not changes:
            proto.CopyFrom(graph.proto)
        else:
            with graph.edit("look back") as edit:
                edit.take_back()
                for change in changes:
                    edit.apply(change)
                proto.CopyFrom(graph.proto)
    return ModelGraph(proto, graph.base_dir, shared=False)
