"""The questions that a Model answers about its structure, by names and handles: thin calls of `queries` and `cones`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onnxlab.graph.handles.handles import Node, Value
from onnxlab.graph.handles.model_edits import Editing, NodeKey, NodeKeys
from onnxlab.graph.index.records import ValueRecord
from onnxlab.graph.query import cones, queries
from onnxlab.graph.query.cones import Via
from onnxlab.graph.query.queries import Pattern

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


class Querying(Editing):
    """What can be asked about a model's structure. Nodes come back as handles, scope by scope in file order.

    `via` chooses the wires: "data" from node to node, "capture" into the bodies of If, Loop and Scan, or "any".
    """

    def find(
        self,
        op_type: Pattern | None = None,
        *,
        domain: Pattern | None = None,
        name: Pattern | None = None,
        dtype: Any = None,
        shape: Sequence[Any] | None = None,
        scope: str | None = None,
        where: Callable[[Node], Any] | None = None,
        **attributes: Any,
    ) -> list[Node]:
        """The nodes for which all holds that is given: `find("Conv", name="*/attn/*", shape=(…, 768), group=1)`.

        Args:
            op_type: a glob ("Conv*"), or several of which one must match.
            domain: the same for the operator's domain.
            name: the same for the node's name.
            dtype: of one of the outputs, by inference.
            shape: of the same output: ints, names of dims, None for any dim, `...` for any number of dims.
            scope: a path to search alone ("" is the main graph); None searches bodies and functions too.
            where: asked last, with a handle.
            attributes: values by name, defaults included; `...` for "is set", None for "is not set".
        """
        asked = None if where is None else (lambda node: where(Node(self.graph, node.id)))
        found = queries.find(
            self.graph, self.fact_of, op_type=op_type, domain=domain, name=name, dtype=dtype, shape=shape,
            scope=None if scope is None else self.scope_record(scope), where=asked, attributes=attributes,
        )  # fmt: skip
        return [Node(self.graph, node) for node in found]

    def find_values(
        self,
        name: Pattern | None = None,
        *,
        dtype: Any = None,
        shape: Sequence[Any] | None = None,
        kind: str | None = None,
        scope: str | None = None,
    ) -> list[Value]:
        """The values for which all that is given holds; kinds: "input", "output", "initializer", "made", "unused"."""
        where = None if scope is None else self.scope_record(scope)
        found = queries.find_values(
            self.graph, self.fact_of, name=name, dtype=dtype, shape=shape, kind=kind, scope=where
        )
        return [Value(self.graph, value) for value in found]

    def ancestors(self, starts: Starts, via: Via = "any") -> list[Node]:
        """All that nodes depend on; of a value also the node that makes it."""
        nodes, values = self._sorted_out(starts)
        makers = [value.producer[0] for value in values if value.producer]
        return self._handles(cones.ancestors(self.graph, nodes, via) | cones.cone(self.graph, makers, via))

    def descendants(self, starts: Starts, via: Via = "any") -> list[Node]:
        """All that depends on nodes; of a value also the nodes that read it."""
        nodes, values = self._sorted_out(starts)
        readers = {reader for value in values for reader in cones.readers(self.graph, value, via)}
        return self._handles(cones.descendants(self.graph, [*nodes, *readers], via) | readers)

    def cone(self, ends: Starts, via: Via = "any") -> list[Node]:
        """Nodes, or what makes values, with all that they depend on."""
        nodes, values = self._sorted_out(ends)
        makers = [value.producer[0] for value in values if value.producer]
        return self._handles(cones.cone(self.graph, [*nodes, *makers], via))

    def between(self, starts: NodeKeys, ends: NodeKeys, via: Via = "any") -> list[Node]:
        """The nodes on any path from one of `starts` to one of `ends`, both included."""
        return self._handles(cones.between(self.graph, self._ids(starts), self._ids(ends), via))

    def paths(self, start: NodeKey, end: NodeKey, via: Via = "any") -> Iterator[tuple[Node, ...]]:
        """Every path from one node to another, lazily: there can be very many."""
        for path in cones.paths(self.graph, self.node_record(start).id, self.node_record(end).id, via):
            yield tuple(Node(self.graph, node) for node in path)

    def connected(self, start: NodeKey, end: NodeKey, via: Via = "any") -> bool:
        """Whether `end` depends on `start`."""
        return cones.connected(self.graph, self.node_record(start).id, self.node_record(end).id, via)

    def is_convex(self, nodes: NodeKeys) -> bool:
        """Whether every path between two of the nodes stays among them."""
        return cones.is_convex(self.graph, self._ids(nodes))

    def boundary(self, nodes: NodeKeys) -> Boundary:
        """What a selection reads from outside and what it gives."""
        found = cones.boundary(self.graph, self._ids(nodes))
        sides = (found.inputs, found.initializers, found.captures, found.outputs, found.internal, found.unused)
        return Boundary(*(tuple(Value(self.graph, value) for value in side) for side in sides))

    def _sorted_out(self, starts: Starts) -> tuple[list[int], list[ValueRecord]]:
        """Ids of the nodes, and records of the values, among what was given."""
        several = [starts] if isinstance(starts, int | str | Node | Value) else list(starts)
        values = [self.value_record(key) for key in several if isinstance(key, Value)]
        return [self.node_record(key).id for key in several if not isinstance(key, Value)], values

    def _ids(self, nodes: NodeKeys) -> list[int]:
        return [record.id for record in self.node_records(nodes)]

    def _handles(self, nodes: Iterable[int]) -> list[Node]:
        return [Node(self.graph, node) for node in cones.file_order(self.graph, nodes)]
