"""Plans: records for the interpreter, linked for one set of input shapes, and one run of them.

A `Plan` is immutable; the memory that a run writes to is in a `PlanFrame`, and each run has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from onnxlab.execution.base.background import paced
from onnxlab.execution.numba.machine.records import CALL
from onnxlab.execution.numba.plan import memory as run_memory
from onnxlab.execution.numba.plan.checkpoints import Course, StepTokens
from onnxlab.execution.numba.plan.memory import address
from onnxlab.execution.numba.plan.views import Array

Result: TypeAlias = "tuple[tuple[int, ...], Any] | Array"
"""Shape and dtype of an output, or the output itself where it is the same in every run."""

Patches: TypeAlias = Mapping[tuple[str, int], tuple[Array, ...]]
"""{(kind, number) of a buffer: (words of the plan's table, offsets to add to its address)}."""

SCRATCH = 1 << 18
"""Bytes of scratch memory of a thread."""


class PlanFrame:
    """Memory of one run: arena, table with its addresses filled in, counters, stop flag and scratch of each thread.

    Args:
        template, patches: the table of the plan, and the words to fill with addresses.
        records: number of records of the plan; `arena` is the bytes of its arena.
    """

    def __init__(self, template: Array, patches: Patches, records: int, arena: int) -> None:
        self.arena = run_memory.aligned(arena)
        self.table = template.copy()
        self.words = self.table.data
        for key, base in ((("arena", -1), address(self.arena)), (("table", -1), address(self.table))):
            if key in patches:
                where, offsets = patches[key]
                self.table[where] = offsets + base
        self.shared = np.zeros(records + 1, np.int64)
        self._stop = np.zeros(1, np.int64)
        self._scratch: list[Array] = []
        self._called: list[Array] = []
        self._calls: dict[int, list[int]] = {}

    def halt(self) -> None:
        """End the run before its next unit of work; the frame is not used again."""
        self._stop[0] = 1

    @property
    def halted(self) -> bool:
        """Whether the run has been asked to stop."""
        return bool(self._stop[0])

    def calls(self, threads: int) -> list[int]:
        """The addresses of the words with which each of `threads` threads calls the interpreter."""
        calls = self._calls.get(threads)
        return self._new_calls(threads) if calls is None else calls

    def repeat(self, moves: Array, condition: int) -> Array:
        """Have calls of one thread run a loop (see `records.CALL`); returns the words of the call, with its repeats."""
        self.calls(1)
        self._called[0][[CALL.index(name) for name in ("moves", "moved", "condition")]] = (
            address(moves), len(moves), condition,
        )  # fmt: skip
        return self._called[0]

    def _new_calls(self, threads: int) -> list[int]:
        while len(self._scratch) < threads:
            self._scratch.append(run_memory.aligned(SCRATCH))
        common = {"table": address(self.table), "threads": threads, "shared": address(self.shared),
                  "stop": address(self._stop)}  # fmt: skip
        rows = [common | {"scratch": address(memory)} for memory in self._scratch[:threads]]
        words = [np.array([row.get(name, 0) for name in CALL], np.int64) for row in rows]
        self._called += words
        self._calls[threads] = [address(row) for row in words]
        return self._calls[threads]


class Plan:
    """A compiled region for one set of input shapes.

    Attributes:
        nbytes: bytes that a run takes besides its inputs.
        records: number of records; `work` estimates the nanoseconds of each.
        inputs: number of inputs; `outputs` are shape and dtype of each output, or the output itself.
        few: (word, offset, array) of the addresses in the caller's arrays, inputs first; None where there are many.
        fault: offset in the arena where kernels report an index beyond its axis, -1 where none does.
        trace: steps of the plan, None where they were not traced.
        cheap: the steps before which every run may note a state (see `checkpoints`).
        new: whether the plan is the first of its region for these shapes, and has not run.
    """

    def __init__(
        self, template: Array, patches: Patches, arena: int, inputs: int,
        outputs: tuple[Result, ...], arrays: Sequence[Array], work: Array, fault: int = -1,
        constants: Mapping[int, list[int]] | None = None, trace: StepTokens | None = None,
    ) -> None:  # fmt: skip
        self.template = template
        self.trace = trace
        self.new = False
        self.cheap: list[int] | None = None
        self.patches = patches
        self.arena = arena
        self.records = len(work)
        self.inputs = inputs
        self.work = work
        self.outputs = outputs
        self.fault = fault
        self._kept = {id(array): array for array in arrays}
        self._constants = constants or {}  # {address of a constant: words that are addresses in it}
        self._ports = _ports(patches, inputs, len(outputs))
        where, offsets, numbers = self._ports
        # a call of NumPy takes as long as some turns of a loop
        self.few = (
            [*zip(where.tolist(), offsets.tolist(), numbers.tolist(), strict=True)] if len(where) <= _FEW else None
        )
        self.nbytes = arena + sum(map(run_memory.allocated, outputs))
        self._idle: list[PlanFrame] = []
        self.stages = _stages(work)
        self.short = len(self.stages) == 1
        """Whether a run takes milliseconds, so that it needs no way to stop it."""
        self.alone = float(work.sum()) < _SHARED
        """Whether a run is so short that other threads would start too late."""
        self.brief: Any = None
        """Note of the region: how it calls the plan where that takes microseconds."""
        self.loops: dict[Any, Any] = {}
        """Note of the region: how it runs the plan in loops."""

    def run(
        self,
        inputs: Sequence[Array],
        threads: int,
        interpret: Callable[..., Any],
        check: Callable[[], None] | None = None,
        listening: Callable[[Callable[[], None]], AbstractContextManager[None]] | None = None,
        course: Course | None = None,
    ) -> list[Array]:
        """Run on contiguous arrays of the shapes that it was made for; may be called from many threads at once.

        Args:
            interpret: `interpret(frame, first, last, threads)`.
            check: called every few milliseconds of work; may raise to end the run.
            listening: `with listening(halt): …` has `halt` called when the run has to end inside the block, for
                records that take long.
            course: where the run begins, and which states it notes; default: all records run, and no state is noted.

        Raises:
            IndexError: an index was beyond its axis.
        """
        threads = 1 if self.alone else threads
        outputs = [run_memory.empty(*result) if isinstance(result, tuple) else result for result in self.outputs]
        try:
            frame = self._idle.pop()
        except IndexError:
            frame = self.frame()
        self._connect(frame, [*map(address, inputs), *map(address, outputs)])
        if self.fault >= 0:
            frame.arena[self.fault] = 0
        if self.short and course is None:
            interpret(frame, 0, self.records, threads)
        else:
            with listening(frame.halt) if listening is not None else nullcontext():
                self._run(frame, outputs, partial(interpret, threads=threads), check, course)
        if not frame.halted:  # a halted frame is not reused, even where all records had run
            self._idle.append(frame)
        if self.fault >= 0 and frame.arena[self.fault]:
            raise IndexError("an index is beyond its axis")
        return outputs

    def _run(
        self, frame: PlanFrame, outputs: Sequence[Array], interpret: Callable[[PlanFrame, int, int], Any],
        check: Callable[[], None] | None, course: Course | None,
    ) -> None:  # fmt: skip
        """Run stage by stage."""
        first, stages = 0, self.stages
        if course is not None:
            first, stages = course.first, course.ends(stages)
            course.begin(frame.arena, outputs)
        for last in stages:
            interpret(frame, first, last)
            first = last
            if check is not None:
                check()
            if course is not None:
                course.passed(last, frame.arena, outputs)

    def frame(self) -> PlanFrame:
        """Memory for one run."""
        return PlanFrame(self.template, self.patches, self.records, self.arena)

    @cached_property
    def constants_nbytes(self) -> int:
        """Bytes of the constants that the plan holds addresses of; exchanged constants have the same size."""
        return sum(array.nbytes for array in self._kept.values())

    def exchanged(self, pairs: Iterable[tuple[Array, Array]]) -> Plan:
        """The plan with some constants exchanged for others of the same layout: [(constant of this plan, new one)].

        The two plans share no memory that runs write to; without pairs, the result is this plan without its frames.
        """
        _ = self.constants_nbytes  # the copy has it, too
        plan = copy(self)
        plan._idle, plan.brief, plan.loops = [], None, {}
        exchanged = [*pairs]
        moved = {address(old): new for old, new in exchanged}
        if not moved:
            return plan
        plan.template = self.template.copy()
        for old, new in moved.items():
            plan.template[self._constants.get(old, [])] += address(new) - old
        if self.trace is not None:
            plan.trace = self.trace.changed(word for old in moved for word in self._constants.get(old, []))
        plan._constants, plan._kept = {**self._constants}, {**self._kept}
        for old in moved:  # remove all before adding any: addresses may recur
            plan._constants.pop(old, None)
        for old, new in moved.items():
            plan._constants[address(new)] = self._constants.get(old, [])
        for array, _ in exchanged:
            plan._kept.pop(id(array), None)
        plan._kept.update((id(new), new) for new in moved.values())
        return plan

    def _connect(self, frame: PlanFrame, addresses: list[int]) -> None:
        """Fill the addresses of the caller's arrays in."""
        if self.few is not None:
            words = frame.words
            for place, offset, number in self.few:
                words[place] = addresses[number] + offset
        else:
            where, offsets, numbers = self._ports
            frame.table[where] = np.array(addresses, np.int64)[numbers] + offsets


def _ports(patches: Patches, inputs: int, outputs: int) -> tuple[Array, Array, Array]:
    """(word, offset, number of the array) of every word that is an address in the caller's arrays."""
    names = [*(("input", number) for number in range(inputs)), *(("output", number) for number in range(outputs))]
    ports = [(*patches[name], number) for number, name in enumerate(names) if name in patches]
    if not ports:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    places, offsets, numbers = zip(*ports, strict=True)
    return np.concatenate(places), np.concatenate(offsets), np.repeat(numbers, [len(place) for place in places])


_FEW = 16  # addresses that are filled in one by one
_SHARED = 1e6  # nanoseconds of work that are worth waking another thread for
_STAGE = 20e6  # nanoseconds of work between looks at the stop flag


def _stages(work: Array) -> list[int]:
    """Ends of runs of records that take about _STAGE each."""
    ends = []
    spent = 0.0
    for number, cost in enumerate(paced(work)):
        spent += float(cost)
        if spent > _STAGE:
            ends.append(number + 1)
            spent = 0.0
    return [*ends, len(work)]
