"""Look-up of the keys and handles that a Model's methods are given."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import onnx

from onnxlab.argument_types import expect, listed, plain
from onnxlab.errors import NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.handles import Node, Value
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.query.node_search import FactOf
from onnxlab.shapes import UNKNOWN
from onnxlab.spelling import Spelled

NodeKey = int | str | Node
"""Position, name, output or path of a node, or its handle."""

NodeKeys = NodeKey | Iterable[NodeKey]
"""One node or several."""

ValueKey = str | Value
"""Name or path of a value, or its handle."""

ValueKeys = ValueKey | Iterable[ValueKey]
"""One value or several."""

Handle = TypeVar("Handle", Node, Value)


def own(graph: ModelGraph, handle: Handle) -> Handle:
    """A handle, if it is one of this graph."""
    if handle._graph is not graph:
        raise NameLookupError(f"{handle!r} belongs to another model; look it up by name in this one")
    return handle


def by_name(graph: ModelGraph, keys: Any) -> Any:
    """Names in the place of handles of values: of one, several, or the keys of a mapping; all else as it is."""
    if keys is None or (type(keys) is dict and _are_names(keys)):  # in every run: isinstance of a Mapping is slow
        return keys
    if isinstance(keys, Value):
        return own(graph, keys).path
    if isinstance(keys, Mapping | list | tuple) and any([isinstance(key, Value) for key in keys]):  # noqa: C419 - faster
        names = [by_name(graph, key) for key in keys]
        return dict(zip(names, keys.values(), strict=True)) if isinstance(keys, Mapping) else names
    return keys


def _are_names(keys: Mapping[Any, Any]) -> bool:
    for key in keys:  # noqa: SIM110 - faster
        if type(key) is not str:
            return False
    return True


class Lookup(Spelled):
    """The records of what users name: nodes, values, and scopes by path."""

    __slots__ = ()

    graph: ModelGraph

    def _node_record(self, key: NodeKey | Value) -> NodeRecord:
        """The record of what a user calls a node; NameLookupError for a value, or what is not in the model."""
        if isinstance(key, Node):
            return self._own(key)._record
        if isinstance(key, Value):
            raise NameLookupError(f"{key!r} is a value, not a node; its producer and uses are nodes")
        return self.graph.nodes[self.graph.resolve_node(key)]

    def _node_records(self, keys: NodeKeys) -> list[NodeRecord]:
        """The records of several nodes, or of one."""
        keys = plain(keys)
        several = [keys] if isinstance(keys, int | str | Node) else keys
        words = "a node or several, as positions, names or handles"
        return [self._node_record(key) for key in listed(several, "what to look up", words)]

    def _value_record(self, key: ValueKey | Node) -> ValueRecord:
        """The record of what a user calls a value; NameLookupError for a node, or what is not in the model."""
        if isinstance(key, Value):
            return self._own(key)._record
        if isinstance(key, Node):
            raise NameLookupError(f"{key!r} is a node, not a value; its inputs and outputs are values")
        return self.graph.values[self.graph.resolve_value(key)]

    def _value_records(self, keys: ValueKeys) -> list[ValueRecord]:
        """The records of several values, or of one."""
        several = [keys] if isinstance(keys, str | Value | Node) else keys
        words = "a value or several, as names or handles"
        return [self._value_record(key) for key in listed(several, "what to look up", words)]

    def _by_name(self, keys: Any) -> Any:
        """Names in the place of handles: see `by_name`."""
        return by_name(self.graph, keys)

    def _own(self, handle: Handle) -> Handle:
        """A handle, if it is one of this model."""
        return own(self.graph, handle)

    def _scope_record(self, path: str) -> Scope:
        """The scope at a path: "" for the main graph, "if_3/then_branch", "domain::name" of a function.

        Where several nodes have the same name, "If#3/then_branch" identifies one by operator and position.

        Raises:
            NameLookupError: no scope has this path; the message lists the paths of scopes.
        """
        return self.graph.names.find_scope(path)

    def node_at(self, scope: str, position: int) -> Node:
        """Look a node up by its place in a body or function.

        Args:
            scope: path of the scope, "" for the main graph.
            position: index in the file order of that scope.

        Returns:
            Node: the node.

        Raises:
            NameLookupError: there is no such scope, or no node at that place.

        Examples:
            >>> model.node_at("", 2)
            <Node '/stem/relu/Relu': Relu>
        """
        ids = self._scope_record(scope).node_ids
        position = expect(position, int, "position", "the place of a node in its scope")
        if not -len(ids) <= position < len(ids):
            raise NameLookupError(f"{scope or 'the main graph'} has {len(ids)} nodes, so there is none at {position}")
        return Node(self.graph, ids[position])

    def value_at(self, scope: str, name: str) -> Value:
        """Look a value up in the scope that defines it.

        Args:
            scope: path of the scope, "" for the main graph.
            name: name of the value there.

        Returns:
            Value: the value.

        Raises:
            NameLookupError: there is no such scope, or no value of that name.

        Examples:
            >>> model.value_at("", "stem/relu_out")
            <Value 'stem/relu_out'>
        """
        where = self._scope_record(scope)
        if not isinstance(name, str) or name not in where.names:
            raise NameLookupError(f"no value of {scope or 'the main graph'} is called {name!r:.80}")
        return Value(self.graph, where.names[name])

    def _type_refusal(self, value: ValueRecord, node: NodeRecord, slot: int) -> str | None:
        """The reason why types forbid a wire; a Model asks its inference."""
        return None

    @property
    def _fact_of(self) -> FactOf:
        """The fact of a value id; a Model asks its inference."""
        return lambda _: UNKNOWN

    def _declaration(self, value: int) -> onnx.ValueInfoProto | None:
        """The declaration of a value id that becomes an output; a Model asks its inference."""
        return self.graph.values[value].info
