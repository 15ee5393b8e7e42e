"""Plans: records for the interpreter, linked for one set of input shapes, and one run of them.

A `Plan` is immutable; the memory that a run writes to is in a `PlanFrame`, and each run has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np

from onnxlab.execution.numba.machine.records import CALL
from onnxlab.execution.numba.plan import memory as run_memory
from onnxlab.execution.numba.plan.memory import address
from onnxlab.execution.numba.plan.views import ArenaBuffer, Array

Result: TypeAlias = "tuple[tuple[int, ...], Any] | Array"
"""Shape and dtype of an output, or the output itself where it is the same in every run."""

Patches: TypeAlias = Mapping[tuple[str, int], tuple[Array, ...]]
"""{(kind, number) of a buffer: (words of the plan's table, offsets to add to its address)}."""

Constants: TypeAlias = Mapping[int, tuple[Array, list[int]]]
"""{address of a constant: (the constant, words of the plan's table that are addresses in it)}."""

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
        self.table = np.empty_like(template)
        self.words = self.table.data
        self.fill(template, patches)
        self.shared = np.zeros(2 * records, np.int64)
        self._stop = np.zeros(1, np.int64)
        self._scratch: list[Array] = []
        self._called: list[Array] = []
        self._calls: dict[int, list[int]] = {}

    def fill(self, template: Array, patches: Patches) -> None:
        """Have the table be that of a plan, which differs from the one before in constants alone."""
        self.table[:] = template
        for key, base in ((("arena", -1), address(self.arena)), (("table", -1), address(self.table))):
            if key in patches:
                where, offsets = patches[key]
                self.table[where] = offsets + base

    def halt(self) -> None:
        """End the run before its next unit of work; the frame is not used again."""
        self._stop[0] = 1

    @property
    def halted(self) -> bool:
        """Whether the run has been asked to stop."""
        return bool(self._stop[0])

    def calls(self, threads: int) -> list[int]:
        """The addresses of the words with which each of `threads` threads calls the interpreter."""
        if threads not in self._calls:
            while len(self._scratch) < threads:
                self._scratch.append(run_memory.aligned(SCRATCH))
            common = {"table": address(self.table), "threads": threads, "shared": address(self.shared),
                      "stop": address(self._stop)}  # fmt: skip
            rows = [common | {"scratch": address(memory)} for memory in self._scratch[:threads]]
            words = [np.array([row.get(name, 0) for name in CALL], np.int64) for row in rows]
            self._called += words
            self._calls[threads] = [address(row) for row in words]
        return self._calls[threads]

    def repeat(self, moves: Array, condition: int) -> Array:
        """Have calls of one thread run a loop (see `records.CALL`); returns the words of the call, with its repeats."""
        self.calls(1)
        self._called[0][[CALL.index(name) for name in ("moves", "moved", "condition")]] = (
            address(moves), len(moves), condition,
        )  # fmt: skip
        return self._called[0]


@dataclass(frozen=True, slots=True, eq=False)
class StepTokens:
    """The steps of a plan that have records.

    Attributes:
        tokens: token of each step. Equal tokens in two plans mean equal records on the same buffers and constants.
        firsts: number of the first record of each step, followed by the number of all records.
        starts, owners: words of the plan's table from `starts[i]` on belong to step `owners[i]`.
        buffers: buffers of the arena; `spans` are offset, bytes, first and last record in use, of each.
        outputs: {number of an output: the first step that holds its address}.
    """

    tokens: tuple[object, ...]
    firsts: Array
    starts: Array
    owners: Array
    buffers: tuple[ArenaBuffer, ...]
    spans: Array
    outputs: Mapping[int, int] = field(default_factory=dict)

    def steps_of(self, words: Any) -> Array:
        """The steps that words of the table belong to."""
        return self.owners[np.searchsorted(self.starts, words, side="right") - 1]  # type: ignore[no-any-return]

    def changed(self, words: Iterable[int]) -> StepTokens:
        """The trace with new tokens for the steps that own these changed words of the table."""
        changed = [*words]
        if not changed:
            return self
        tokens = [*self.tokens, None]  # one more: no step follows the last
        for step in set(self.steps_of(changed).tolist()):
            tokens[step] = object()
        return replace(self, tokens=tuple(tokens[:-1]))

    def alive(self, step: int) -> list[tuple[ArenaBuffer, slice]]:
        """(buffer, its bytes in the arena) of the buffers that are written before a step and read by it or later."""
        record, (_, _, first, last) = self.firsts[step], self.spans
        numbers = np.flatnonzero((first < record) & (record <= last)).tolist()
        places, sizes = self.spans[:2, numbers].tolist()
        return [(self.buffers[number], slice(place, place + size))
                for number, place, size in zip(numbers, places, sizes, strict=True)]  # fmt: skip

    def sizes(self, outputs: Sequence[Result]) -> Array:
        """Bytes that are alive before each step, and after the last, `outputs` of the plan among them."""
        change = np.zeros(int(self.firsts[-1]) + 2, np.int64)
        _, sizes, first, last = self.spans
        np.add.at(change, first + 1, sizes)
        np.subtract.at(change, last + 1, sizes)
        alive_bytes: Array = np.cumsum(change)[self.firsts]
        for number, step in self.outputs.items():
            alive_bytes[step + 1 :] += run_memory.allocated(outputs[number])
        return alive_bytes


class Course:
    """The start of one run of a plan, and the work between its records; by itself, all of them run.

    Attributes:
        first: the record that the run begins with.
        nbytes: bytes that the run is going to keep.
    """

    first = 0
    nbytes = 0

    def ends(self, stages: Iterable[int]) -> list[int]:
        """Records to stop before."""
        return [*stages]

    def begin(self, arena: Array, outputs: Sequence[Array]) -> None:
        """Bring memory to the state before the first record."""

    def passed(self, record: int, arena: Array, outputs: Sequence[Array]) -> None:
        """Called when the run stops before a record that `ends` named."""


_WHOLE = Course()


class Plan:
    """A compiled region for one set of input shapes.

    Attributes:
        nbytes: bytes that a run takes besides its inputs.
        records: number of records; `work` estimates the nanoseconds of each, `nanoseconds` those of all.
        inputs: number of inputs; `outputs` are shape and dtype of each output, or the output itself.
        reads, writes: (word, offset, number) of the addresses in inputs, and in outputs.
        fault: offset in the arena where kernels report an index beyond its axis, -1 where none does.
        trace: steps of the plan.
        cheap: the steps before which every run may note a state (see `checkpoints`).
        new: whether the plan is the first of its region for these shapes, and has not run.
        short: whether a run takes milliseconds, so that it needs no way to stop it.
        long: whether runs take so long that one may begin at a state of another.
        alone: whether a run is so short that other threads would start too late.
        before: the plan with the constants before an edit, until an idle frame of it is taken over.
        brief, loops: notes of the region: how it calls the plan where that takes microseconds, and runs it in loops.
    """

    def __init__(
        self, template: Array, patches: Patches, arena: int, inputs: int,
        outputs: tuple[Result, ...], arrays: Sequence[Array], work: Array, fault: int,
        constants: Constants, trace: StepTokens,
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
        self._arrays = arrays
        self._constants = constants
        self.reads, self.writes = _ports(patches, "input", inputs), _ports(patches, "output", len(outputs))
        self.nbytes = arena + sum(map(run_memory.allocated, outputs))
        self._idle: list[PlanFrame] = []
        self.stages = _stages(work)
        self.short = len(self.stages) == 1
        self.nanoseconds = float(work.sum())
        self.alone = self.nanoseconds < _SHARED
        self.long = self.nanoseconds >= _LONG
        self.before: Plan | None = None
        self.brief: Any = None
        self.loops: dict[Any, Any] = {}

    def run(
        self,
        inputs: Sequence[Array],
        threads: int,
        interpret: Callable[..., Any],
        check: Callable[[], None] | None = None,
        listening: Callable[[Callable[[], None]], AbstractContextManager[None]] | None = None,
        course: Course = _WHOLE,
    ) -> list[Array]:
        """Run on contiguous arrays of the shapes that it was made for; may be called from many threads at once.

        Args:
            interpret: `interpret(frame, first, last, threads)`.
            check: called every few milliseconds of work; may raise to end the run.
            listening: `with listening(halt): …` has `halt` called when the run has to end inside the block, for
                records that take long.
            course: where the run begins, and what it does between records.

        Raises:
            IndexError: an index was beyond its axis.
        """
        threads = 1 if self.alone else threads
        outputs = [run_memory.empty(*result) if isinstance(result, tuple) else result for result in self.outputs]
        try:
            frame = self._idle.pop()
        except IndexError:
            frame = self.frame()
        words = frame.words
        for ports, arrays in ((self.reads, inputs), (self.writes, outputs)):
            addresses = [*map(address, arrays)]  # once, also where many words hold the address of one
            for word, offset, number in ports:
                words[word] = addresses[number] + offset
        if self.fault >= 0:
            frame.arena[self.fault] = 0
        if self.short and course is _WHOLE:
            interpret(frame, 0, self.records, threads)
        else:
            with nullcontext() if listening is None or self.short else listening(frame.halt):
                self._run(frame, outputs, partial(interpret, threads=threads), check, course)
        if not frame.halted:  # a halted frame is not reused, even where all records had run
            self._idle.append(frame)
        if self.fault >= 0 and frame.arena[self.fault]:
            raise IndexError("an index is beyond its axis")
        return outputs

    def _run(
        self, frame: PlanFrame, outputs: Sequence[Array], interpret: Callable[[PlanFrame, int, int], Any],
        check: Callable[[], None] | None, course: Course,
    ) -> None:  # fmt: skip
        """Run stage by stage."""
        first = course.first
        course.begin(frame.arena, outputs)
        for last in course.ends(self.stages):
            interpret(frame, first, last)
            first = last
            if check is not None:
                check()
            course.passed(last, frame.arena, outputs)

    def frame(self) -> PlanFrame:
        """Memory for one run."""
        before, self.before = self.before or self, None
        try:
            frame = before._idle.pop()
        except IndexError:
            return PlanFrame(self.template, self.patches, self.records, self.arena)
        frame.fill(self.template, self.patches)
        return frame

    @cached_property
    def constants_nbytes(self) -> int:
        """Bytes of the constants that the plan holds addresses of; exchanged constants have the same size."""
        return sum(array.nbytes for array in (*self._arrays, *(array for array, _ in self._constants.values())))

    def exchanged(self, pairs: Iterable[tuple[Array, Array]]) -> Plan:
        """The plan with some constants exchanged for others of the same layout: [(constant of this plan, new one)].

        The two plans share no memory that runs write to; without pairs, the result is this plan without its frames.
        """
        _ = self.constants_nbytes  # the copy has it, too
        plan = copy(self)
        plan._idle, plan.brief, plan.loops, plan.before = [], None, {}, None
        moved = {address(old): new for old, new in pairs if address(old) in self._constants}
        if not moved:
            return plan
        plan.template = self.template.copy()
        constants = dict(self._constants)
        for start, new in moved.items():
            _, words = constants.pop(start)
            plan.template[words] += address(new) - start
            constants[address(new)] = new, words
        plan._constants = constants
        plan.trace = self.trace.changed(word for start in moved for word in self._constants[start][1])
        return plan


def _ports(patches: Patches, kind: str, count: int) -> list[tuple[int, int, int]]:
    """(word, offset, number of the array) of every word that is an address in the caller's arrays of a kind."""
    return [
        (*port, number) for number in range(count) if (kind, number) in patches
        for port in zip(*(part.tolist() for part in patches[kind, number]), strict=True)
    ]  # fmt: skip


_SHARED = 1e6  # nanoseconds of work that are worth waking another thread for
_LONG = 2e6  # nanoseconds of work from which a run may begin at a state
_STAGE = 20e6  # nanoseconds of work between looks at the stop flag


def _stages(work: Array) -> list[int]:
    """Ends of runs of records that take about _STAGE each."""
    stages = np.cumsum(work) // _STAGE
    return [*(np.flatnonzero(np.diff(stages, prepend=0.0)) + 1).tolist(), len(work)]
