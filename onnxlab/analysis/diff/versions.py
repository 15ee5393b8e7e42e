"""A model as it was at another state of its history."""

from __future__ import annotations

from contextlib import suppress

import onnx

from onnxlab.graph.edit.model_graph import ModelGraph


class _TakeBackError(Exception):
    """Ends an edit that was only to be looked at."""


def as_of(graph: ModelGraph, position: int) -> ModelGraph:
    """A copy of a model as it was when `position` edits had been made; the model itself stays as it is.

    Raises:
        EditError: the history had to drop the edits since then.
    """
    proto = onnx.ModelProto()
    with graph.lock:
        changes = graph.history.changes_to(position)
        if not changes:
            proto.CopyFrom(graph.proto)
        else:
            with suppress(_TakeBackError), graph.edit("look back") as edit:
                for change in changes:
                    edit.apply(change)
                proto.CopyFrom(graph.proto)
                raise _TakeBackError
    return ModelGraph(proto, graph.base_dir, shared=False)
