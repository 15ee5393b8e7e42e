"""Runs after an edit begin where it begins to matter: the steps before it would do what they did in the run before.

Each step of a plan has a token. Where two plans begin with the same tokens and get equal inputs, the arena and the
outputs are the same after these steps, bit by bit. So the first run of a plan after an edit copies the memory that is
alive between some of its steps, where that is little, as a `MemoryState`. The first run of the next plan begins with
the last `MemoryState` that the next edit does not affect. Runs without an edit before them neither copy nor reuse
states.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from operator import is_
from typing import Any, Protocol

import numpy as np

from onnxlab.execution.base.array_memory import same
from onnxlab.execution.base.lru import Lru
from onnxlab.execution.numba.plan.memory import allocated
from onnxlab.execution.numba.plan.views import ArenaBuffer, Array
from onnxlab.forking import fork_safe

_WORTH = 2e6  # nanoseconds of work from which a run may begin at a state
_SPANS = 16  # number of spans of equal work in a run; in each span, a state may be noted
_COPYING = 0.25  # nanoseconds per byte of a state that is noted
_SHARE = 0.2  # share of a span's work that noting a state may take
_ALWAYS = 0.006  # share of a run's work that noting states in every run may take
_AGAIN = 0.1  # nanoseconds per byte of a state that is copied into memory of an earlier run
_SHARES = (0.5, 0.75, 0.9)  # shares of a run's work after which states are noted in every run, the most useful first
_WIDTH = 0.06  # distance from these shares within which the step with the least memory alive is chosen
_KEPT = 8  # regions and shapes whose last run is remembered
_LEAST = 1 << 24  # bytes that states may take even where constants take less


class Traced(Protocol):
    """The members of a plan that checkpoints use.

    Attributes:
        outputs: outputs of the plan.
        work: nanoseconds of each record.
        trace: steps of the plan, None where they were not noted.
        constants_nbytes: bytes of the constants that the plan holds.
        cheap: the steps before which every run may note a state, None where they were not chosen yet.
    """

    outputs: tuple[Any, ...]
    work: Array
    trace: StepTokens | None
    cheap: list[int] | None

    @property
    def constants_nbytes(self) -> int:
        """Bytes of the constants that the plan holds."""


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

    def knowing(self, outputs: Mapping[int, Array]) -> StepTokens:
        """The trace with the words that are addresses in outputs."""
        return replace(self, outputs={number: int(self.steps_of(words).min()) for number, words in outputs.items()})

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

    def sizes(self, outputs: Mapping[int, int]) -> Array:
        """Bytes that are alive before each step, and after the last; `outputs` gives the bytes of each output."""
        change = np.zeros(int(self.firsts[-1]) + 2, np.int64)
        _, sizes, first, last = self.spans
        np.add.at(change, first + 1, sizes)
        np.subtract.at(change, last + 1, sizes)
        alive_bytes: Array = np.cumsum(change)[self.firsts]
        for number, step in self.outputs.items():
            alive_bytes[step + 1 :] += outputs.get(number, 0)
        return alive_bytes


@dataclass(frozen=True, slots=True, eq=False)
class MemoryState:
    """The memory before a step: buffers of the arena, as bytes, and outputs by number."""

    arena: Mapping[ArenaBuffer, Array]
    outputs: Mapping[int, Array]


@dataclass(frozen=True, slots=True, eq=False)
class PlanCheckpoint:
    """A run: the tokens of its steps, copies of its inputs, and {step: state before it} of some steps.

    `place` is the first step that the edit before the run had changed.
    """

    tokens: tuple[object, ...]
    place: int = -1
    inputs: tuple[Array, ...] = ()
    states: Mapping[int, MemoryState] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        held = [array for state in self.states.values() for array in (*state.arena.values(), *state.outputs.values())]
        return sum(array.nbytes for array in (*self.inputs, *held))


class Course(Protocol):
    """The start of one run of a plan, and the work between its records.

    Attributes:
        first: the record that the run begins with.
        nbytes: bytes that the run is going to keep.
    """

    first: int
    nbytes: int

    def ends(self, stages: Iterable[int]) -> list[int]:
        """Records to stop before."""
        ...

    def begin(self, arena: Array, outputs: Sequence[Array]) -> None:
        """Bring memory to the state before the first record."""

    def passed(self, record: int, arena: Array, outputs: Sequence[Array]) -> None:
        """Called when the run stops before a record that `ends` named."""


class ResumedRun:
    """One run of a plan that may begin at a state of an earlier run, and that notes states.

    Args:
        before: an earlier run.
        steps: steps before which states are noted; default: those that the next edit may need.
        latest: the last step that the run may begin with.

    Attributes:
        first: the record that the run begins with.
        nbytes: bytes that the run is going to keep, besides those of the states of the earlier run.
    """

    def __init__(
        self, plan: Traced, trace: StepTokens, before: PlanCheckpoint, inputs: Sequence[Array],
        steps: Iterable[int] | None = None, latest: int | None = None,
    ) -> None:  # fmt: skip
        self._trace = trace
        common = sum(1 for _ in takewhile(bool, map(is_, before.tokens, trace.tokens)))
        known = len(before.inputs) == len(inputs) and all(map(same, before.inputs, inputs))
        self._inputs = before.inputs if known else None
        self._given = inputs
        common = common if latest is None else min(common, latest)
        self._states = {step: state for step, state in before.states.items() if known and step <= common}
        self._begin = next(filter(self._serves, sorted(self._states, reverse=True)), 0)
        self._states = {step: state for step, state in self._states.items() if step <= self._begin}
        self.first = int(trace.firsts[self._begin])
        self._place = common if steps is None else before.place
        self.nbytes = 0 if known else sum(array.nbytes for array in inputs)
        self._steps: dict[int, int] = {}
        if steps is not None:
            self._steps = {int(trace.firsts[step]): step for step in steps}
        elif not (self._begin and before.place == common):  # else successive edits are at one place
            self._choose(plan)
        self._alive = {step: trace.alive(step) for step in (self._begin, *self._steps.values())}
        if steps is not None:
            noted = [place for step in self._steps.values() for _, place in self._alive[step]]
            self.nbytes += sum(place.stop - place.start for place in noted)

    def _choose(self, plan: Traced) -> None:
        """Choose the states to note."""
        trace = self._trace
        sizes = trace.sizes({number: allocated(result) for number, result in enumerate(plan.outputs)})
        chosen = [step for step in _chosen(plan, trace, sizes, self._place) if step > self._begin]
        self._steps = {int(trace.firsts[step]): step for step in chosen}
        self.nbytes += int(sizes[chosen].sum())

    def _serves(self, step: int) -> bool:
        """Whether the state before a step holds all memory that a run from there needs."""
        return all(buffer in self._states[step].arena for buffer, _ in self._trace.alive(step))

    def ends(self, stages: Iterable[int]) -> list[int]:
        """Records to stop before: to check the stop flag, or to note a state."""
        return sorted({end for end in (*stages, *self._steps) if end > self.first})

    def begin(self, arena: Array, outputs: Sequence[Array]) -> None:
        """Bring memory to the state of the earlier run."""
        if self._begin:
            state = self._states[self._begin]
            for buffer, place in self._alive[self._begin]:
                arena[place] = state.arena[buffer]
            for number, array in state.outputs.items():
                outputs[number][...] = array

    def passed(self, record: int, arena: Array, outputs: Sequence[Array]) -> None:
        """Note the state before a record, if it was chosen."""
        step = self._steps.get(record)
        if step is not None:
            held = {buffer: arena[place].copy() for buffer, place in self._alive[step]}
            copies = {number: outputs[number].copy() for number, first in self._trace.outputs.items() if first < step}
            self._states[step] = MemoryState(held, copies)

    def past(self) -> PlanCheckpoint:
        """The checkpoint of this run for later runs, made when it is over."""
        inputs = tuple([array.copy() for array in self._given]) if self._inputs is None else self._inputs
        return PlanCheckpoint(self._trace.tokens, self._place, inputs, self._states)


def _chosen(plan: Traced, trace: StepTokens, sizes: Array, common: int) -> Iterator[int]:
    """The steps before which a state is worth its copying, the end among them.

    These are, in each span of the work, the step with the least memory alive, and the first step that the last edit
    affected, since the next edit may be at the same place.
    """
    spent = np.concatenate(([0.0], np.cumsum(plan.work)))[trace.firsts]
    span = spent[-1] / _SPANS
    worth = sizes * _COPYING <= span * _SHARE
    room = max(plan.constants_nbytes, _LEAST)
    narrowest: dict[int, tuple[int, int]] = {}
    for step, (place, nbytes) in enumerate(zip((spent // span).tolist(), sizes.tolist(), strict=True)):
        if 0 < step < len(trace.tokens):
            narrowest[place] = min(narrowest.get(place, (nbytes, step)), (nbytes, step))
    for step in dict.fromkeys((common, len(trace.tokens), *(step for _, step in narrowest.values()))):
        if step and worth[step] and sizes[step] <= room:
            room -= int(sizes[step])
            yield step


def cheap_steps(plan: Traced, trace: StepTokens, copied: int, place: int) -> list[int]:
    """Steps before which a state may be noted in every run, the most useful first: it takes next to no time.

    Args:
        copied: bytes that each run copies in any case.
        place: the first step that the last edit affected: the next edit is often at the same place.
    """
    sizes = trace.sizes({number: allocated(result) for number, result in enumerate(plan.outputs)})
    spent = np.concatenate(([0.0], np.cumsum(plan.work)))[trace.firsts]
    room = min(spent[-1] * _ALWAYS / _AGAIN, max(plan.constants_nbytes, _LEAST)) - copied
    spans = [np.searchsorted(spent, (np.array([-1, 1]) * _WIDTH + share) * spent[-1]).tolist() for share in _SHARES]
    chosen: list[int] = []
    for first, last in ([place, place + 1], *spans):
        near = [(int(sizes[step]), step) for step in range(max(first, 1), min(last, len(trace.tokens)))]
        nbytes, step = min(near, default=(0, 0))
        if step and nbytes <= room and step not in chosen:
            room -= nbytes
            chosen.append(step)
    return sorted(chosen)


class Checkpoints:
    """The last runs of the regions of a provider."""

    def __init__(self) -> None:
        self._lock = fork_safe(threading.Lock())
        self._kept: Lru[object, PlanCheckpoint] = Lru("runs of regions", _KEPT)

    def course(self, about: object, plan: Traced, inputs: Sequence[Array]) -> ResumedRun | None:
        """A way to run a plan for the first time; None where there was no run before, or it is too short to matter.

        Args:
            about: key of the region, the same after edits, and of the shapes of its inputs.
        """
        trace = plan.trace
        if trace is None or plan.work.sum() < _WORTH:
            return None
        with self._lock:
            before = self._kept.get(about)
        if before is None:
            self.put(about, plan, PlanCheckpoint(trace.tokens))
            return None
        if sum(array.nbytes for array in inputs) > max(plan.constants_nbytes, _LEAST):
            return None
        return ResumedRun(plan, trace, before, inputs)

    def get(self, about: object) -> PlanCheckpoint | None:
        """The states of the last run; see `course`."""
        with self._lock:
            return self._kept.get(about)

    def noting(self, about: object, plan: Traced, inputs: Sequence[Array]) -> ResumedRun | None:
        """A run of a whole plan that notes some states, for `look` and for the next edit; None where it is short.

        The states of the run before are dropped, so that the new ones take no further memory.
        """
        trace = plan.trace
        if trace is None or plan.work.sum() < _WORTH:
            return None
        before = self.get(about)
        place = -1 if before is None else before.place
        if plan.cheap is None:
            plan.cheap = cheap_steps(plan, trace, sum(array.nbytes for array in inputs), place)
        if not plan.cheap:
            return None
        with self._lock:
            self._kept.pop(about, None)
        return ResumedRun(plan, trace, PlanCheckpoint(trace.tokens, place), inputs, plan.cheap)

    def put(self, about: object, plan: Traced, past: PlanCheckpoint) -> None:
        """Remember a run in place of the one before. All runs together take no more than the constants of the plan."""
        with self._lock:
            self._kept.keep(about, past)
            limit = max(plan.constants_nbytes, _LEAST)
            while len(self._kept) > 1 and self.nbytes > limit:
                del self._kept[next(iter(self._kept))]

    @property
    def nbytes(self) -> int:
        """Bytes of all remembered runs."""
        return sum(past.nbytes for past in self._kept.values())
