"""Whether an edit by hand changed what a model computes: the model as it was, and as it is, on inputs of every kind."""

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.transforms.subject import Subject, Trust
from onnxlab.transforms.verification import Judgment
from onnxlab.transforms.verified import compared


class _TakeBackError(Exception):
    """Ends an edit that was only to be looked at."""


def earlier(graph: ModelGraph, position: int) -> ModelGraph:
    """A copy of a model as it was after some of its edits.

    Raises:
        EditError: the history had to drop the edits since then, or an edit is open.
    """
    copy = onnx.ModelProto()
    with graph.lock:
        if graph.transaction is not None:
            raise EditError("end the open edit first: it is what happened since a state that is asked for")
        changes = graph.history.changes_back_to(position)
        try:
            with graph.edit("look back") as edit:
                for change in changes:
                    edit.apply(change)
                copy.CopyFrom(graph.proto)
                raise _TakeBackError
        except _TakeBackError:
            pass
    return ModelGraph(copy, graph.base_dir)


def prove(before: ModelGraph, after: ModelGraph, trust: Trust) -> Judgment:
    """Run two models on the same inputs of every kind and compare their outputs, by name."""
    return compared(Subject(before, Inference(before)), Subject(after, Inference(after)), trust)
