"""The base of handles: a name for (ModelGraph, id) that looks everything up when asked."""

from typing import Any, Self

from onnxlab.errors import OnnxlabError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import Spelled


class Handle(Spelled, metaclass=ShortHelp):
    """(graph, id); equal and hashable by both."""

    __slots__ = ("_graph", "id")

    _graph: ModelGraph
    id: int

    def __init__(self, graph: ModelGraph, ident: int) -> None:
        _set_graph(self, graph)
        _set_id(self, ident)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and (type(other), other._graph, other.id) == (
            type(self),
            self._graph,
            self.id,
        )

    def __hash__(self) -> int:
        return hash((id(self._graph), self.id))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # a handle is a reference, as a path is

    def __reduce__(self) -> Any:
        raise OnnxlabError(
            f"a {type(self).__name__} cannot be pickled: it is a place in its model; pickle the Model, or its `proto`"
        )


# bypasses the check of names in `Spelled`: iteration makes a handle for each node
_set_graph = vars(Handle)["_graph"].__set__
_set_id = vars(Handle)["id"].__set__
