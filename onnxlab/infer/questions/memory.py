"""Bytes of values and the most that live at once, by facts alone: nothing is run.

A value lives from the node that makes it to its last reader; inputs and outputs of the graph live as long as the
graph runs, weights (initializers and constants) always. While an operator with bodies, or a call of a function, runs,
the most that its inside needs comes on top. Values do not share memory, though an executor may let them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import cast

from onnxlab import dtypes
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.operators import Operator
from onnxlab.infer.walk.function_calls import CallKey
from onnxlab.infer.walk.walker import Walker
from onnxlab.shapes import Fact, TensorFact


def nbytes(fact: Fact) -> int | None:
    """Bytes of a dense tensor of known size, low-bit types packed; None for all else, strings included."""
    if not isinstance(fact, TensorFact) or fact.shape is None or not all(isinstance(dim, int) for dim in fact.shape):
        return None
    try:
        bits = dtypes.bits(fact.elem_type)
    except ValueError:  # undefined, or newer than this onnxlab
        return None
    return -(-prod(cast("tuple[int, ...]", fact.shape)) * bits // 8) if bits else None


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a scope.

    Attributes:
        peak: the most bytes of inputs and values that live at once, weights apart.
        at: id of the node that runs at the peak, 0 where there is none.
        unknown: ids of values whose bytes are not known: they count as 0.
    """

    peak: int
    at: int
    unknown: frozenset[int]


class Liveness:
    """Follows which values live while the nodes of a scope run in topological order."""

    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self._graph = walker.graph
        self._measured: dict[CallKey, Memory] = {}

    def measure(self, frame: FactFrame, scope: Scope, own_inputs: bool = True) -> Memory:
        """The peak of a scope; `own_inputs`: whether its inputs are its own, not values of a scope around it."""
        order = self._graph.index.topological(scope)
        last = self._last_reads(frame, scope, order)
        unknown: set[int] = set()

        def size(values: Iterable[int]) -> int:
            sizes = {vid: nbytes(frame.facts[vid]) if vid in frame.facts else None for vid in values if vid}
            unknown.update(vid for vid, count in sizes.items() if count is None)
            return sum(count or 0 for count in sizes.values())

        live = size(scope.inputs) if own_inputs else 0
        peak, at = live, 0
        for position, node_id in enumerate(order):
            node = self._graph.nodes[node_id]
            if not self.is_constant(frame, node):
                live += size(node.outputs)
            inner = self.inside(frame, node)
            unknown.update(inner.unknown)
            now = live + inner.peak
            if now > peak:
                peak, at = now, node_id
            live -= size(last.get(position, ()))
        return Memory(peak, at, frozenset(unknown))

    def inside(self, frame: FactFrame, node: NodeRecord) -> Memory:
        """The most that the bodies of a node, or the function that it calls, hold besides the node's inputs."""
        parts = [self._inside(frame, node), *self._bodies(frame, node)]
        largest = max(parts, key=lambda part: part.peak)
        return Memory(largest.peak, largest.at, frozenset().union(*(part.unknown for part in parts)))

    def is_constant(self, frame: FactFrame, node: NodeRecord) -> bool:
        """Whether a node holds its output as an attribute, as a Constant does."""
        return not isinstance(self._walker.catalogue.find(frame, node), Operator)

    def _last_reads(self, frame: FactFrame, scope: Scope, order: list[int]) -> Mapping[int, list[int]]:
        """By position, the values that are not read later in the scope; its outputs stay."""
        places = {node: position for position, node in enumerate(order)}
        staying = {0, *scope.outputs}
        last_reads: dict[int, list[int]] = {}
        for node_id in order:
            node = self._graph.nodes[node_id]
            for vid in node.outputs if not self.is_constant(frame, node) else ():
                if vid not in staying:
                    last = max([places[node_id], *(places.get(reader, 0) for reader in self._readers(vid, scope))])
                    last_reads.setdefault(last, []).append(vid)
        return last_reads

    def _readers(self, vid: int, scope: Scope) -> Iterable[int]:
        """The nodes of a scope that read a value, or hold a reader in a body."""
        index = self._graph.index
        return (index.owner_in(self._graph.nodes[reader], scope.id) for reader, _ in self._graph.values[vid].uses)

    def _bodies(self, frame: FactFrame, node: NodeRecord) -> list[Memory]:
        scopes = (self._graph.scopes[body] for bodies in node.bodies.values() for body in bodies)
        return [self.measure(frame, scope, node.op_type != "If") for scope in scopes]

    def _inside(self, frame: FactFrame, node: NodeRecord) -> Memory:
        """Memory that the function of a call holds besides the node's inputs; none for other nodes."""
        key = self._walker.calls.key(frame, node.id) if node.id in self._walker.catalogue.call_nodes else None
        call = self._walker.calls.memo.get(key) if key is not None else None
        if key is None or call is None:
            return Memory(0, 0, frozenset())
        if key not in self._measured:
            self._measured[key] = Memory(0, 0, frozenset())  # ends a recursion of functions, which no model can run
            self._measured[key] = self.measure(call.frame, self._graph.scopes[key[0]], own_inputs=False)
        return self._measured[key]
