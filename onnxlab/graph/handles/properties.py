"""Live mappings of what a model says about itself: metadata_props and opset imports; writing into one is an edit."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from onnxlab.errors import EditError, MissingKeyError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits import metadata
from onnxlab.graph.index.records import Scope, ValueRecord
from onnxlab.graph.protos.renaming import canonical
from onnxlab.spelling import Spelled


class Metadata(Spelled, MutableMapping[str, str]):
    """metadata_props of the model, a graph, function, node or value: text by key, in the file's order.

    Where a file repeats a key, the last entry counts.
    """

    __slots__ = ("_bearer", "_graph")

    def __init__(self, graph: ModelGraph, bearer: Callable[[], Any]) -> None:
        self._graph = graph
        self._bearer = bearer

    def _entries(self) -> dict[str, str]:
        bearer = self._bearer()
        proto: Any = self._graph.proto
        if bearer is not None:
            proto = metadata.description(bearer) if isinstance(bearer, ValueRecord) else bearer.proto
        return {} if proto is None else {entry.key: entry.value for entry in proto.metadata_props}

    def __getitem__(self, key: str) -> str:
        return self._found(key)

    def __setitem__(self, key: str, text: str) -> None:
        metadata.set_metadata(self._graph, self._bearer(), {key: text})

    def __delitem__(self, key: str) -> None:
        self._found(key)
        metadata.set_metadata(self._graph, self._bearer(), {key: None})

    def _found(self, key: str) -> str:
        entries = self._entries()
        if key not in entries:
            raise MissingKeyError(f"there is no metadata {key!r}; there is {', '.join(map(repr, entries)) or 'none'}")
        return entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())

    def __repr__(self) -> str:
        return repr(self._entries())


class Opsets(Spelled, MutableMapping[str, int]):
    """Opset versions that a model, or a function of it, imports, by operator domain; "" and "ai.onnx" are the same.

    Setting a version converts nothing, and is refused where the nodes do not fit.

    Raises:
        EditError: the scope is no function: graphs have no imports of their own.
    """

    __slots__ = ("_function", "_graph")

    def __init__(self, graph: ModelGraph, function: Scope | None = None) -> None:
        if function is not None and not function.is_function:
            where = graph.scope_path(function) or "the main graph"
            raise EditError(f"{where} is no function; graphs and bodies go by the model's opsets")
        self._graph = graph
        self._function = function

    def _imports(self) -> dict[str, int]:
        proto = self._function.proto if self._function else self._graph.proto
        return {canonical(entry.domain): entry.version for entry in proto.opset_import}

    def __getitem__(self, domain: str) -> int:
        imports = self._imports()
        if canonical(domain) not in imports:
            raise MissingKeyError(
                f"no opset of domain {domain!r} is imported; there are {', '.join(map(repr, imports))}"
            )
        return imports[canonical(domain)]

    def __setitem__(self, domain: str, version: int) -> None:
        metadata.set_opset(self._graph, domain, version, self._function)

    def __delitem__(self, domain: str) -> None:
        _ = self[domain]
        metadata.set_opset(self._graph, domain, None, self._function)

    def __iter__(self) -> Iterator[str]:
        return iter(self._imports())

    def __len__(self) -> int:
        return len(self._imports())

    def __repr__(self) -> str:
        return repr(self._imports())
