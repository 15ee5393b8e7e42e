"""Operations and bytes of a node, from facts and the operators' traits; bodies and called functions included."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from onnxlab.analysis.flops import flops
from onnxlab.graph.edit.snapshot import SnapshotAttributes
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.infer.questions.memory import Liveness, nbytes
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.walk.function_calls import CallKey
from onnxlab.infer.walk.walker import Walker
from onnxlab.ops import find_traits
from onnxlab.shapes import Fact


class Count(NamedTuple):
    """Operations, and bytes read and written."""

    flops: int = 0
    read: int = 0
    written: int = 0

    def plus(self, other: Count, times: int = 1) -> Count:
        """The sum with `times` times another count."""
        return Count(*(count + times * other_count for count, other_count in zip(self, other, strict=True)))


NOTHING = Count()


class OperationCounter:
    """Counts what nodes do, by the facts of an inference.

    Attributes:
        open: names of nodes with an unknown size: their work is not counted in full.
        iterating: names of nodes whose body was counted once, since its iterations are not known.
    """

    def __init__(self, walker: Walker) -> None:
        self._walker, self._liveness = walker, Liveness(walker)
        self._graph = walker.graph
        self._arrays: dict[Fact, Any] = {}
        self._calls: dict[CallKey, Count] = {}
        self.open: dict[str, None] = {}
        self.iterating: dict[str, None] = {}

    def scope(self, frame: FactFrame, scope: Scope) -> Count:
        """All nodes of a scope together."""
        total = NOTHING
        for ident in scope.node_ids:
            total = total.plus(self.node(frame, self._graph.nodes[ident]))
        return total

    def node(self, frame: FactFrame, node: NodeRecord) -> Count:
        """The work of a node, its bodies included."""
        if self._liveness.is_constant(frame, node) and node.id not in self._walker.catalogue.call_nodes:
            return NOTHING
        if node.bodies:
            return self._bodies(frame, node)
        if (key := self._key(frame, node)) is not None:
            return self._call(key)
        name = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        inputs = [self._array(frame, vid) for vid in node.inputs]
        outputs = [self._array(frame, vid) for vid in node.outputs if vid]
        if any(array is None for array in outputs):
            self.open[self._graph.label(node)] = None
        return Count(flops(name, inputs, outputs, SnapshotAttributes(node)), *self._traffic(frame, node))

    def _traffic(self, frame: FactFrame, node: NodeRecord) -> tuple[int, int]:
        """Bytes read and written: a view moves nothing, and of a table only the entries taken out of it are read."""
        row = find_traits(node.domain, node.op_type)
        if row.reshapes or node.op_type == "Identity":
            return 0, 0
        written = sum(self._nbytes(frame, vid) for vid in node.outputs)
        if row.shape_only:
            return 0, written
        sizes = {vid: self._nbytes(frame, vid) for vid in node.inputs if vid}
        if row.indexes and node.inputs:
            sizes[node.inputs[0]] = min(sizes.get(node.inputs[0], 0), written)
        return sum(sizes.values()), written

    def _bodies(self, frame: FactFrame, node: NodeRecord) -> Count:
        """The costliest branch of several; the body of a loop as often as it is known to run, else once."""
        scopes = [self._graph.scopes[body] for bodies in node.bodies.values() for body in bodies]
        counts = [self.scope(frame, scope) for scope in scopes]
        if not find_traits(node.domain, node.op_type).iterates:
            return max(counts, key=lambda count: (count.flops, count.read + count.written), default=NOTHING)
        times = self._iterations(frame, node, scopes)
        if times is None:
            self.iterating[self._graph.label(node)] = None
        total = NOTHING
        for count in counts:
            total = total.plus(count, 1 if times is None else times)
        return total

    def _iterations(self, frame: FactFrame, node: NodeRecord, scopes: list[Scope]) -> int | None:
        """The number of iterations: the trip count where it is known, or the length of what is scanned along axis 0."""
        first = frame.facts.get(node.inputs[0]) if node.inputs and node.inputs[0] else None
        if node.op_type == "Loop":
            known = None if first is None else first.value
            return None if known is None or known.size != 1 else max(0, int(known.reshape(-1)[0]))
        scanned = next((item.i for item in node.proto.attribute if item.name == "num_scan_inputs"), 0)
        if not scanned or len(node.inputs) < scanned:
            return None
        axes = next((list(item.ints) for item in node.proto.attribute if item.name == "scan_input_axes"), [0])
        fact = frame.facts.get(node.inputs[-scanned])
        shape = None if fact is None else fact.shape
        if not shape or not -len(shape) <= axes[0] < len(shape):
            return None
        length = shape[axes[0]]
        return length if isinstance(length, int) else None

    def _key(self, frame: FactFrame, node: NodeRecord) -> CallKey | None:
        return self._walker.calls.key(frame, node.id) if node.id in self._walker.catalogue.call_nodes else None

    def _call(self, key: CallKey) -> Count:
        """The work of a call of a function."""
        call = self._walker.calls.memo.get(key)
        if call is None:
            return NOTHING
        if key not in self._calls:
            self._calls[key] = NOTHING  # for a function that calls itself, which no runtime runs
            self._calls[key] = self.scope(call.frame, self._graph.scopes[key[0]])
        return self._calls[key]

    def _nbytes(self, frame: FactFrame, vid: int) -> int:
        fact = frame.facts.get(vid)
        return 0 if fact is None else nbytes(fact) or 0

    def _array(self, frame: FactFrame, vid: int) -> Any:
        """An array of the shape of a value that takes no memory; None where it is not known."""
        fact = frame.facts.get(vid)
        if fact is None or fact.shape is None or not all(isinstance(dim, int) for dim in fact.shape):
            return None
        if fact not in self._arrays:
            self._arrays[fact] = stand_in(fact.shape)
        return self._arrays[fact]


def stand_in(shape: Iterable[Any]) -> Any:
    """An array of a shape that takes no memory; None where NumPy has no such array."""
    try:
        return np.broadcast_to(np.zeros((), np.bool_), tuple(shape))
    except (ValueError, OverflowError):  # more dims, or larger ones, than NumPy has
        return None
