"""Values inside a region: where its plan leaves them in memory, and a run of the plan that copies some of them.

A plan works in an arena in which buffers share memory, so a value is in memory from the record that makes it until
another one overwrites it. A value that no kernel writes (such as the product before a fused activation) has no place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.plan import engine
from onnxlab.execution.numba.plan.checkpoints import PlanCheckpoint, ResumedRun
from onnxlab.execution.numba.plan.plan import Course, Plan
from onnxlab.execution.numba.plan.views import Array, View, plain
from onnxlab.execution.numba.rules.fusion.fusions import Fused
from onnxlab.execution.program.executor import NodeContext
from onnxlab.graph.edit.snapshot import NodeView

_TIMED = 3  # runs of a measurement; the shortest time of each step counts


@dataclass(frozen=True, slots=True)
class ArenaPlace:
    """The place of a value after the first `record` records of a plan.

    Attributes:
        view: of an input or output, or of the whole arena, whatever buffer of it the value is in.
    """

    record: int
    view: View

    def copy(self, arena: Array, inputs: Sequence[Array], outputs: Sequence[Array]) -> Array:
        """The value as an array of its own."""
        kind, number = self.view.buffer.kind, self.view.buffer.index
        owner = arena if kind == "arena" else (inputs if kind == "input" else outputs)[number]
        memory = owner.reshape(-1).view(np.uint8) if kind != "arena" else owner
        return np.ndarray(self.view.shape, self.view.dtype, memory, self.view.offset, self.view.strides).copy()


def places_of(binder: Binder) -> dict[str, ArenaPlace]:
    """The places of the values of a plan that has just been finished, by name."""
    places: dict[str, ArenaPlace] = {}
    written, record = dict[str, tuple[View, int]](), 0
    for step in binder.memo.made.values():
        record += len(step.piece.kernels)
        written.update((name, (view, record)) for name, view in binder.written_views(step))
    for name, (view, after) in written.items():
        buffer = view.buffer
        if buffer.kind not in ("arena", "input", "output") or (buffer.kind == "arena" and buffer.first < 0):
            continue
        if buffer.kind == "arena" and buffer.last < after - 1:  # another name for a value that is not read any more
            after = buffer.last + 1
        if buffer.is_replaced:
            after = min(after, buffer.last)
        base = buffer.offset if buffer.kind == "arena" else 0  # a later layout may move the buffer
        places[name] = ArenaPlace(after, replace(view, offset=view.offset + base))
    return places


def steps_of(binder: Binder) -> list[tuple[tuple[NodeView, ...], int]]:
    """(nodes, number of records) of each step of a plan that has just been finished, in order.

    A node that is lowered without a record waits for its reader, and is part of the first later step with records.
    """
    steps: list[tuple[tuple[NodeView, ...], int]] = []
    waiting: dict[str, tuple[NodeView, ...]] = {}  # by the name of an output
    for lowered in binder.memo.made.values():
        nodes = lowered.step.match.nodes if isinstance(lowered.step, Fused) else (lowered.step,)
        chosen: dict[NodeView, None] = {}
        for node in nodes:
            if isinstance(node, NodeView):
                chosen.update(dict.fromkeys(reader for name in node.inputs for reader in waiting.pop(name, ())))
                chosen[node] = None
        if lowered.piece.kernels or not chosen:
            steps.append((tuple(chosen), len(lowered.piece.kernels)))
        else:
            waiting[[*chosen][-1].outputs[0]] = tuple(chosen)
    return [*steps, *((nodes, 0) for nodes in waiting.values())]


class InnerValues:
    """A plan of a region for arrays of certain shapes, the places of values in it, and the nodes of its steps.

    Attributes:
        names: of the values that have a place.
        plan: that of the region's runs, where it is equal to what the places were determined with.
    """

    def __init__(
        self, plan: Plan, places: Mapping[str, ArenaPlace], steps: Sequence[tuple[tuple[NodeView, ...], int]]
    ) -> None:
        self.plan = plan
        self._places = places
        self.names = frozenset(places)
        self._steps = steps

    def read(
        self, names: Iterable[str], arrays: Sequence[Array], threads: int, context: NodeContext,
        before: PlanCheckpoint | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """Run the plan as far as these values need, and copy them; none where the run fails, whose error NumPy raises.

        Args:
            before: checkpoint of a run, which is resumed where it was a run of an equal plan on these arrays.

        Raises:
            LimitError: the memory of the plan is more than the run may use.
            RunStopped: the run was told to stop.
        """
        places, dense = {name: self._places[name] for name in names}, plain(arrays)
        copying = CopyingCourse(places, dense, self._resumed(places.values(), dense, before))
        context.reserve(self.plan.nbytes)
        try:
            self.plan.run(copying.inputs, threads, engine.interpret, context.check, context.listening, copying)
        except IndexError:  # an index beyond its axis
            return {}
        return copying.values

    def _resumed(
        self, places: Iterable[ArenaPlace], inputs: Sequence[Array], before: PlanCheckpoint | None
    ) -> ResumedRun | None:
        """The course that begins at a state before the first of these values is written; None where there is none."""
        if before is None or not before.states:
            return None
        first = self.plan.trace.firsts.searchsorted(min((place.record for place in places), default=0))
        resumed = ResumedRun(self.plan, before, inputs, (), int(first) - 1)
        return resumed if resumed.first else None

    def shares(
        self, arrays: Sequence[Array], threads: int, context: NodeContext
    ) -> list[tuple[tuple[NodeView, ...], float]]:
        """(nodes, their part of the time of a run) of each step.

        Raises:
            LimitError: what the plan works in is more than the run may use.
            RunStopped: the run was told to stop.
        """
        ends = np.cumsum([records for _, records in self._steps]).tolist()
        context.reserve(self.plan.nbytes)
        plan, dense = self.plan.exchanged(()), plain(arrays)
        best = np.full(self.plan.records + 1, np.inf)
        for _ in range(_TIMED):
            course = TimingCourse({*ends, self.plan.records})
            plan.run(dense, threads, engine.interpret, context.check, context.listening, course)
            best[[*course.seconds]] = np.minimum(best[[*course.seconds]], [*course.seconds.values()])
        spent = [float(best[end]) if records else 0.0 for end, (_, records) in zip(ends, self._steps, strict=True)]
        whole = sum(spent) or 1.0
        return [(nodes, seconds / whole) for (nodes, _), seconds in zip(self._steps, spent, strict=True)]


class TimingCourse(Course):
    """The course of a run that is timed between some of its records."""

    def __init__(self, ends: Iterable[int]) -> None:
        self._ends = sorted(end for end in ends if end > 0)
        self._before = 0.0
        self.seconds: dict[int, float] = {}

    def ends(self, stages: Iterable[int]) -> list[int]:
        """Records to stop before."""
        return self._ends

    def begin(self, arena: Array, outputs: Sequence[Array]) -> None:
        """Begin to measure."""
        self._before = perf_counter()

    def passed(self, record: int, arena: Array, outputs: Sequence[Array]) -> None:
        """Note the seconds since the records before."""
        now = perf_counter()
        self.seconds[record], self._before = now - self._before, now


class CopyingCourse(Course):
    """The course of a run that stops where values can be copied, and after the last.

    Args:
        resumed: brings memory to the state that the run begins with; None where it begins with the first record.
    """

    def __init__(
        self, places: Mapping[str, ArenaPlace], inputs: Sequence[Array], resumed: ResumedRun | None = None
    ) -> None:
        self.first = 0 if resumed is None else resumed.first
        self.inputs = list(inputs)
        self.values: dict[str, Array] = {}
        self._resumed = resumed
        self._at: dict[int, list[tuple[str, ArenaPlace]]] = {}
        for name, place in places.items():
            self._at.setdefault(place.record, []).append((name, place))

    def ends(self, stages: Iterable[int]) -> list[int]:
        """Records to stop before."""
        last = max(self._at, default=0)
        return sorted({end for end in (*stages, *self._at) if self.first < end <= last})

    def begin(self, arena: Array, outputs: Sequence[Array]) -> None:
        """Copy the values that are in memory before the first record of this run."""
        if self._resumed is not None:
            self._resumed.begin(arena, outputs)
        self.passed(self.first, arena, outputs)

    def passed(self, record: int, arena: Array, outputs: Sequence[Array]) -> None:
        """Copy the values that are in memory after `record` records."""
        for name, place in self._at.get(record, ()):
            self.values[name] = place.copy(arena, self.inputs, outputs)
