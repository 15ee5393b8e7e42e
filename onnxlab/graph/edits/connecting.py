"""Whether a wire may be drawn: the slot by the schema, visibility, cycles, types."""

from collections.abc import Callable

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import SetInputs
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.index.topology import reachable

MOST_SLOTS = 1 << 16
"""Most inputs of a node: a new input in a far slot fills all slots before it with empty names."""

Refusal = Callable[[ValueRecord, NodeRecord, int], "str | None"]
"""(value, node, slot) -> why the types forbid the wire, or None."""


def can_connect(
    graph: ModelGraph, value: ValueRecord, node: NodeRecord, slot: int, types: Refusal | None = None
) -> str | None:
    """The reason why a node must not read a value in an input slot, as a sentence; None where it may.

    Checked are the slot by the operator's schema, the visibility of the value, cycles, and types by calling `types`.
    The search visits at most the nodes between the two in topological order.
    """
    return Targets(graph, value, types, whole=False).refusal(node, slot)


class Targets:
    """The slots that one value may be wired to, for a front end that dims all others while a wire is dragged.

    The answers hold for the graph as it is when the object is made. With `whole`, all nodes on which the value depends
    are collected once, so that each answer costs one look-up.
    """

    def __init__(self, graph: ModelGraph, value: ValueRecord, types: Refusal | None = None, whole: bool = True) -> None:
        self._graph = graph
        self._value = value
        self._types = types
        self._maker = graph.nodes[value.producer[0]] if value.producer else None
        self._behind = self._ancestors(self._maker) if whole and self._maker else None

    def refusal(self, node: NodeRecord, slot: int) -> str | None:
        """The reason why the node must not read the value in this slot, or None."""
        graph, value = self._graph, self._value
        if graph.index.lookup(graph.scopes[node.scope], value.name) != value.id:
            return f"{value.name!r} is not visible from {graph.label(node)}: it belongs to another graph or function"
        if problem := slot_problem(graph, node, slot):
            return problem
        if self._maker and self._closes_cycle(node, self._maker):
            label, maker = graph.label(node), graph.label(self._maker)
            return f"{label} would depend on itself: {value.name!r} is made by {maker}, which depends on {label}"
        return self._types(value, node, slot) if self._types else None

    def _closes_cycle(self, node: NodeRecord, maker: NodeRecord) -> bool:
        nodes, index = self._graph.nodes, self._graph.index
        top = index.owner_in(node, maker.scope)
        if not top:
            return False
        if self._behind is not None:
            return top in self._behind
        high = index.rank(maker)
        if index.rank(nodes[top]) > high:
            return False
        behind = reachable([top], lambda at: index.consumers(nodes[at]), lambda at: index.rank(nodes[at]) <= high)
        return maker.id in behind

    def _ancestors(self, maker: NodeRecord) -> set[int]:
        nodes, index = self._graph.nodes, self._graph.index
        return reachable([maker.id], lambda at: index.producers(nodes[at]), lambda _: True)


def reading(graph: ModelGraph, node: NodeRecord, old: ValueRecord, new: ValueRecord) -> SetInputs:
    """The change that lets a node read `new` wherever it reads `old`.

    Raises:
        EditError: the new value is not visible in the node's scope, or another value of its name hides it there.
    """
    if node.scope != new.scope and graph.index.lookup(graph.scopes[node.scope], new.name) != new.id:
        raise EditError(f"{new.name!r} is not visible from {graph.label(node)}, which reads {old.name!r}")
    before, now = old.name, new.name
    return SetInputs(node.id, tuple([now if name == before else name for name in node.proto.input[:]]))


def slot_problem(graph: ModelGraph, node: NodeRecord, slot: int) -> str | None:
    """The reason why a node has no such input slot, or None."""
    label = graph.label(node)
    if slot < 0:
        return f"input slots are counted from 0; {label} has no slot {slot}"
    if (function := graph.index.functions.get(function_key(node.proto))) is not None:
        most: int = len(graph.scopes[function].inputs)
    else:
        schema = graph.schema(node)
        most = MOST_SLOTS if schema is None else min(schema.max_input, MOST_SLOTS)
    return f"{label} ({node.op_type}) takes at most {most} inputs; there is no slot {slot}" if slot >= most else None
