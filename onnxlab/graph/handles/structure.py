"""Reachability in a model, by names and handles: thin calls of `cones` and `block_copies`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from onnxlab.argument_types import listed
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
    """The values that cross the edge of a selection, as handles; see `cones.Boundary`."""

    inputs: tuple[Value, ...]
    initializers: tuple[Value, ...]
    captures: tuple[Value, ...]
    outputs: tuple[Value, ...]
    internal: tuple[Value, ...]
    unused: tuple[Value, ...]


class Structure(Spelled, metaclass=ShortHelp):
    """Reachability in a model: `model.structure`.

    Upstream and downstream: ancestors, descendants, cone, connected
    Between nodes: between, paths
    Selections: boundary, is_convex, copies

    Nodes come back as handles, scope by scope in file order. `via` chooses the wires: "data" from node to node,
    "capture" into the bodies of If, Loop and Scan, or "any".

    Examples:
        >>> model.structure.connected("/stem/conv/Conv", "/head/Softmax")
        True
    """

    __slots__ = ("_graph", "_model")

    def __init__(self, model: Editing) -> None:
        self._model = model
        self._graph = model.graph

    def ancestors(self, starts: Starts, via: Via = "any") -> list[Node]:
        """List all that nodes depend on; of a value also the node that makes it.

        Args:
            starts: nodes, as positions, names or handles, and handles of values.
            via: the wires to follow: "data", "capture" or "any".

        Returns:
            list[Node]: the nodes upstream.

        Examples:
            >>> model.structure.ancestors("/stem/relu/Relu")
            [<Node '/stem/conv/Conv': Conv>, <Node '/stem/bn/BatchNormalization': BatchNormalization>]
        """
        nodes, values = self._sorted_out(starts)
        makers = [value.producer[0] for value in values if value.producer]
        return self._handles(cones.ancestors(self._graph, nodes, via) | cones.cone(self._graph, makers, via))

    def descendants(self, starts: Starts, via: Via = "any") -> list[Node]:
        """List all that depends on nodes; of a value also the nodes that read it.

        Args:
            starts: nodes, as positions, names or handles, and handles of values.
            via: the wires to follow: "data", "capture" or "any".

        Returns:
            list[Node]: the nodes downstream.

        Examples:
            >>> model.structure.descendants(model.value("logits"))
            [<Node '/head/Softmax': Softmax>]
        """
        nodes, values = self._sorted_out(starts)
        readers = {reader for value in values for reader in cones.readers(self._graph, value, via)}
        return self._handles(cones.descendants(self._graph, [*nodes, *readers], via) | readers)

    def cone(self, ends: Starts, via: Via = "any") -> list[Node]:
        """List nodes, or what makes values, with all that they depend on.

        Args:
            ends: nodes, as positions, names or handles, and handles of values.
            via: the wires to follow: "data", "capture" or "any".

        Returns:
            list[Node]: the nodes and those upstream.

        Examples:
            >>> len(model.structure.cone(model.outputs)) == len(model.nodes)
            True
        """
        nodes, values = self._sorted_out(ends)
        makers = [value.producer[0] for value in values if value.producer]
        return self._handles(cones.cone(self._graph, [*nodes, *makers], via))

    def between(self, starts: NodeKeys, ends: NodeKeys, via: Via = "any") -> list[Node]:
        """List the nodes on any path from one of some nodes to one of others, both included.

        Args:
            starts: nodes, as positions, names or handles.
            ends: the same.
            via: the wires to follow: "data", "capture" or "any".

        Returns:
            list[Node]: the nodes.

        Examples:
            >>> len(model.structure.between("/stem/relu/Relu", "/block1/Add"))
            7
        """
        return self._handles(cones.between(self._graph, self._ids(starts), self._ids(ends), via))

    def paths(self, start: NodeKey, end: NodeKey, via: Via = "any") -> Iterator[tuple[Node, ...]]:
        """Go over every path from one node to another, lazily: there can be very many.

        Args:
            start: node, as a position, name or handle.
            end: the same.
            via: the wires to follow: "data", "capture" or "any".

        Returns:
            Iterator[tuple[Node, ...]]: the nodes of each path, both ends included.

        Examples:
            >>> [len(path) for path in model.structure.paths("/stem/relu/Relu", "/block1/Add")]
            [7, 2]
        """
        for path in cones.paths(self._graph, self._model._node_record(start).id, self._model._node_record(end).id, via):
            yield tuple(Node(self._graph, node) for node in path)

    def connected(self, start: NodeKey, end: NodeKey, via: Via = "any") -> bool:
        """Tell whether one node depends on another.

        Args:
            start: node, as a position, name or handle.
            end: the node that would depend on it.
            via: the wires to follow: "data", "capture" or "any".

        Returns:
            bool: whether there is a path.

        Examples:
            >>> model.structure.connected("/head/Softmax", "/stem/conv/Conv")
            False
        """
        return cones.connected(self._graph, self._model._node_record(start).id, self._model._node_record(end).id, via)

    def is_convex(self, nodes: NodeKeys) -> bool:
        """Tell whether every path between two of some nodes stays among them.

        Args:
            nodes: one or several, as positions, names or handles.

        Returns:
            bool: whether they could become one node.

        Examples:
            >>> model.structure.is_convex(["/stem/relu/Relu", "/block1/Add"])
            False
        """
        return cones.is_convex(self._graph, self._ids(nodes))

    def boundary(self, nodes: NodeKeys) -> Boundary:
        """Tell what a selection of nodes reads from outside and what it gives.

        Args:
            nodes: one or several, as positions, names or handles.

        Returns:
            Boundary: inputs, initializers, captures, outputs, internal and unused values.

        Examples:
            >>> model.structure.boundary(["/stem/conv/Conv", "/stem/bn/BatchNormalization"]).outputs
            (<Value 'stem/bn_out'>,)
        """
        ids = cones.boundary(self._graph, self._ids(nodes))
        sides = (ids.inputs, ids.initializers, ids.captures, ids.outputs, ids.internal, ids.unused)
        return Boundary(*(tuple(Value(self._graph, value) for value in side) for side in sides))

    def copies(self, nodes: NodeKeys) -> list[list[Node]]:
        """Find other blocks that are like some nodes, operator by operator and wire by wire.

        Args:
            nodes: the block, as positions, names or handles.

        Returns:
            list[list[Node]]: the nodes of each other block, in the order of those given.

        Examples:
            >>> block = ["/stem/conv/Conv", "/stem/bn/BatchNormalization", "/stem/relu/Relu"]
            >>> len(model.structure.copies(block))
            0
        """
        records = self._model._node_records(nodes)
        blocks = find_copies(self._graph, records)
        return [[Node(self._graph, copy[node.id]) for node in records] for copy in blocks]

    def _sorted_out(self, starts: Starts) -> tuple[list[int], list[ValueRecord]]:
        """Ids of the nodes, and records of the values, among what was given."""
        words = "a node or value or several, as positions, names or handles"
        several = [starts] if isinstance(starts, int | str | Node | Value) else listed(starts, "where to start", words)
        values = [self._model._value_record(key) for key in several if isinstance(key, Value)]
        return [self._model._node_record(key).id for key in several if not isinstance(key, Value)], values

    def _ids(self, nodes: NodeKeys) -> list[int]:
        return [record.id for record in self._model._node_records(nodes)]

    def _handles(self, nodes: Iterable[int]) -> list[Node]:
        return [Node(self._graph, node) for node in cones.file_order(self._graph, nodes)]
