"""Runs after an edit begin where it begins to matter: the steps before it would do what they did in the run before.

Each step of a plan has a token. Where two plans begin with the same tokens and get equal inputs, the arena and the
outputs are the same after these steps, bit by bit. So the first run of a plan after an edit copies the memory that is
alive between some of its steps, where that is little, as a `MemoryState`. The first run of the next plan begins with
the last `MemoryState` that the next edit does not affect. Runs without an edit before them neither copy nor reuse
states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import is_

import numpy as np

from onnxlab.execution.base.array_memory import same
from onnxlab.execution.base.lru import Lru
from onnxlab.execution.numba.plan.plan import Course, Plan
from onnxlab.execution.numba.plan.views import ArenaBuffer, Array

_SPANS = 8  # number of spans of equal work in a run; in each span, a state may be noted
_COPYING = 0.25  # nanoseconds per byte of a state that is noted
_SHARE = 0.1  # share of a span's work that noting a state may take
_ALWAYS = 0.006  # share of a run's work that noting states in every run may take
_AGAIN = 0.1  # nanoseconds per byte of a state that is copied into memory of an earlier run
# Shares of a run's work between which a state is noted in every run, the most useful first. Of edits that are as likely
# in one place as in another, three states at the quarters save the most; later ones take less memory.
_NEAR = ((0.34, 0.46), (0.59, 0.71), (0.79, 0.91))
_KEPT = 8  # regions and shapes whose last run is remembered
_LEAST = 1 << 24  # bytes that states may take even where constants take less


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


class ResumedRun(Course):
    """One run of a plan that may begin at a state of an earlier run, and that notes states.

    Args:
        before: an earlier run.
        steps: steps before which states are noted; default: those that the next edit may need.
        latest: the last step that the run may begin with.
    """

    def __init__(
        self, plan: Plan, before: PlanCheckpoint, inputs: Sequence[Array], steps: Iterable[int] | None = None,
        latest: int | None = None,
    ) -> None:  # fmt: skip
        self._trace = trace = plan.trace
        common = sum(1 for _ in takewhile(bool, map(is_, before.tokens, trace.tokens)))
        known = len(before.inputs) == len(inputs) and all(map(same, before.inputs, inputs))
        self._before = before.inputs if known else (None,) * len(inputs)
        self._given = inputs
        last = common if latest is None else min(common, latest)
        states = {step: state for step, state in before.states.items() if known and step <= last}
        places = ((step, trace.alive(step)) for step in sorted(states, reverse=True))
        whole = ((step, alive) for step, alive in places if all(buffer in states[step].arena for buffer, _ in alive))
        self._begin, self._alive = next(whole, (0, []))  # the last state that holds all memory a run from there needs
        self._states = {step: state for step, state in states.items() if step <= self._begin}
        self.first = int(trace.firsts[self._begin])
        self._place = common if steps is None else before.place
        if steps is None:  # successive edits at one place need no further states
            at_one_place = self._begin and before.place == common
            steps = () if at_one_place else (step for step in steps_to_note(plan, common) if step > self._begin)
        self._steps = {int(trace.firsts[step]): step for step in steps}
        self.nbytes = int(trace.sizes(plan.outputs)[[*self._steps.values()]].sum()) if self._steps else 0
        self.nbytes += 0 if known else sum(array.nbytes for array in inputs)

    def ends(self, stages: Iterable[int]) -> list[int]:
        """Records to stop before: to check the stop flag, or to note a state."""
        return sorted({end for end in (*stages, *self._steps) if end > self.first})

    def begin(self, arena: Array, outputs: Sequence[Array]) -> None:
        """Bring memory to the state of the earlier run."""
        if self._begin:
            state = self._states[self._begin]
            for buffer, place in self._alive:
                arena[place] = state.arena[buffer]
            for number, array in state.outputs.items():
                outputs[number][...] = array

    def passed(self, record: int, arena: Array, outputs: Sequence[Array]) -> None:
        """Note the state before a record, if it was chosen."""
        step = self._steps.get(record)
        if step is not None:
            held = {buffer: arena[place].copy() for buffer, place in self._trace.alive(step)}
            copies = {number: outputs[number].copy() for number, first in self._trace.outputs.items() if first < step}
            self._states[step] = MemoryState(held, copies)

    def past(self, is_kept: bool) -> PlanCheckpoint:
        """The checkpoint of this run for later runs, made when it is over; `is_kept` as of `_lasts`."""
        inputs = [new if _lasts(new, is_kept) else new.copy() if old is None else old
                  for old, new in zip(self._before, self._given, strict=True)]  # fmt: skip
        return PlanCheckpoint(self._trace.tokens, self._place, tuple(inputs), self._states)


def steps_to_note(plan: Plan, place: int, copied: int | None = None) -> list[int]:
    """The steps before which a state is worth its copying.

    These are the first step that the last edit affected, since the next edit may be at the same place, and in each of
    some spans of the work the step with the least memory alive.

    Args:
        place: the first step that the last edit affected.
        copied: bytes that each run copies in any case, where every run is to note states, in next to no time; default:
            for a run after an edit, which may note the end, too.
    """
    trace = plan.trace
    sizes = trace.sizes(plan.outputs)
    spent = np.concatenate(([0.0], np.cumsum(plan.work)))[trace.firsts]
    last, room = len(trace.tokens), max(plan.constants_nbytes, _LEAST)
    spans, likely = [(n / _SPANS, (n + 1) / _SPANS) for n in range(_SPANS)], [place, last]
    most = spent[-1] / _SPANS * _SHARE / _COPYING
    if copied is not None:
        spans, likely = [*_NEAR], [place]
        room = most = min(spent[-1] * _ALWAYS / _AGAIN, room) - copied
    for first, end in np.searchsorted(spent, np.array(spans) * spent[-1]).tolist():
        likely += sorted(range(max(first, 1), min(end, last)), key=lambda step: (sizes[step], step))[:1]
    chosen: list[int] = []
    for step in dict.fromkeys(likely):
        if step > 0 and sizes[step] <= min(room, most):
            room -= int(sizes[step])
            chosen.append(step)
    return sorted(chosen)


def _lasts(array: Array, is_kept: bool) -> bool:
    """Whether nothing will write to an array: runs whose values are kept get their inputs as read-only copies."""
    return is_kept and array.base is None and not array.flags.writeable


class Checkpoints(Lru[object, PlanCheckpoint]):
    """The last run of each of a provider's regions, by key (see `course`)."""

    def __init__(self) -> None:
        super().__init__("runs of regions", _KEPT)

    def course(
        self, about: object, plan: Plan, inputs: Sequence[Array], edited: bool, noting: bool
    ) -> ResumedRun | None:
        """The course of a run that begins at a state, or notes some; None where there is nothing to gain by either.

        Args:
            about: key of the region, the same after edits, and of the shapes of its inputs.
            plan: one that is `long`.
            edited: whether it is the first run after an edit.
            noting: whether a whole run notes states, for `look` and for the next edit. Those of the run before are then
                dropped, so that the new ones take no further memory.
        """
        before, copied = self.get(about), sum(array.nbytes for array in inputs if not _lasts(array, noting))
        if edited and before is None:
            self.put(about, plan, PlanCheckpoint(plan.trace.tokens))
        elif edited and before is not None and copied <= max(plan.constants_nbytes, _LEAST):
            return ResumedRun(plan, before, inputs)
        place = -1 if before is None else before.place
        if noting and plan.cheap is None:
            plan.cheap = steps_to_note(plan, place, copied)
        if not noting or not plan.cheap:
            return None
        empty = PlanCheckpoint(plan.trace.tokens, place)
        self.put(about, plan, empty)
        return ResumedRun(plan, empty, inputs, plan.cheap)

    def put(self, about: object, plan: Plan, past: PlanCheckpoint) -> None:
        """Remember a run in place of the one before. All runs together take no more than the constants of the plan."""
        self.keep(about, past)
        for other in [*self][:-1]:
            if self.nbytes > max(plan.constants_nbytes, _LEAST):
                self.pop(other, None)

    @property
    def nbytes(self) -> int:
        """Bytes of all remembered runs."""
        pasts = [*self.values()]  # of a moment: other threads put theirs meanwhile
        states = [state for past in pasts for state in past.states.values()]
        held = [array for state in states for array in (*state.arena.values(), *state.outputs.values())]
        return sum(array.nbytes for array in (*(array for past in pasts for array in past.inputs), *held))
