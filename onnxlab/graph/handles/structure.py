"""What depends on what in a model, asked by names and handles: thin calls of `cones` and `block_copies`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from onnxlab.graph.handles.handles import Node, Value
from onnxlab.graph.handles.model_edits import Editing
from onnxlab.graph.handles.model_lookup import NodeKey, NodeKeys
from onnxlab.graph.index.records import ValueRecord
from onnxlab.graph.query import cones
from onnxlab.graph.query.block_copies import find_copies
from onnxlab.graph.query.cones import Via
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import Spelled

Starts = NodeKeys | Value | Iterable[NodeKey | Value]
"""One node or value, or several of both."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """What crosses the edge of a selection, as handles; see `cones.Boundary`."""

    inputs: tuple[Value, ...]
    initializers: tuple[Value, ...]
    captures: tuple[Value, ...]
    outputs: tuple[Value, ...]
    internal: tuple[Value, ...]
    unused: tuple[Value, ...]


class Structure(Spelled, metaclass=ShortHelp):
    """What depends on what in a model: `model.structure`.

    Nodes come back as handles, scope by scope in file order. `via` chooses the wires: "data" from node to node,
    "capture" into the bodies of If, Loop and Scan, or "any".
    """

    __slots__ = ("_graph", "_model")

    def __init__(self, model: Editing) -> None:
        self._model = model
        self._graph = model.graph

    def ancestors(self, starts: Starts, via: Via = "any") -> list[Node]:
        """All that nodes depend on; of a value also the node that makes it."""
        nodes, values = self._sorted_out(starts)
        makers = [value.producer[0] for value in values if value.producer]
        return self._handles(cones.ancestors(self._graph, nodes, via) | cones.cone(self._graph, makers, via))

    def descendants(self, starts: Starts, via: Via = "any") -> list[Node]:
        """All that depends on nodes; of a value also the nodes that read it."""
        nodes, values = self._sorted_out(starts)
        readers = {reader for value in values for reader in cones.readers(self._graph, value, via)}
        return self._handles(cones.descendants(self._graph, [*nodes, *readers], via) | readers)

    def cone(self, ends: Starts, via: Via = "any") -> list[Node]:
        """Nodes, or what makes values, with all that they depend on."""
        nodes, values = self._sorted_out(ends)
        makers = [value.producer[0] for value in values if value.producer]
        return self._handles(cones.cone(self._graph, [*nodes, *makers], via))

    def between(self, starts: NodeKeys, ends: NodeKeys, via: Via = "any") -> list[Node]:
        """The nodes on any path from one of `starts` to one of `ends`, both included."""
        return self._handles(cones.between(self._graph, self._ids(starts), self._ids(ends), via))

    def paths(self, start: NodeKey, end: NodeKey, via: Via = "any") -> Iterator[tuple[Node, ...]]:
        """Every path from one node to another, lazily: there can be very many."""
        for path in cones.paths(self._graph, self._model._node_record(start).id, self._model._node_record(end).id, via):
            yield tuple(Node(self._graph, node) for node in path)

    def connected(self, start: NodeKey, end: NodeKey, via: Via = "any") -> bool:
        """Whether `end` depends on `start`."""
        return cones.connected(self._graph, self._model._node_record(start).id, self._model._node_record(end).id, via)

    def is_convex(self, nodes: NodeKeys) -> bool:
        """Whether every path between two of the nodes stays among them."""
        return cones.is_convex(self._graph, self._ids(nodes))

    def boundary(self, nodes: NodeKeys) -> Boundary:
        """What a selection reads from outside and what it gives."""
        found = cones.boundary(self._graph, self._ids(nodes))
        sides = (found.inputs, found.initializers, found.captures, found.outputs, found.internal, found.unused)
        return Boundary(*(tuple(Value(self._graph, value) for value in side) for side in sides))

    def copies(self, nodes: NodeKeys) -> list[list[Node]]:
        """Other blocks that are like the given nodes, operator by operator and wire by wire, in the same order."""
        records = self._model._node_records(nodes)
        found = find_copies(self._graph, records)
        return [[Node(self._graph, copy[node.id]) for node in records] for copy in found]

    def _sorted_out(self, starts: Starts) -> tuple[list[int], list[ValueRecord]]:
        """Ids of the nodes, and records of the values, among what was given."""
        several = [starts] if isinstance(starts, int | str | Node | Value) else list(starts)
        values = [self._model._value_record(key) for key in several if isinstance(key, Value)]
        return [self._model._node_record(key).id for key in several if not isinstance(key, Value)], values

    def _ids(self, nodes: NodeKeys) -> list[int]:
        return [record.id for record in self._model._node_records(nodes)]

    def _handles(self, nodes: Iterable[int]) -> list[Node]:
        return [Node(self._graph, node) for node in cones.file_order(self._graph, nodes)]
