"""Watching a run: keeping its values, skipping what is known, counting how far it got, timing nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab.execution.program import Instruction
from onnxlab.execution.store import State, buffers, differs, new_stamp, same
from onnxlab.ops.sequence import root

_GONE = object()  # in the place of an array that is not kept


@dataclass(slots=True)
class Position:
    """How far a run is; written by the run's thread, read by the caller's."""

    total: int
    done: int = 0
    label: str = ""

    def expect(self, total: int) -> None:
        """So many steps are to come."""
        self.total = total


class Counter:
    """An observer that only counts steps and lets arrays go as usual."""

    def __init__(self, position: Position) -> None:
        self._position = position

    def reuse(self, instruction: Instruction, frame: list[Any]) -> None:
        self._position.label = instruction.step.label

    def done(self, instruction: Instruction, frame: list[Any], reused: bool, seconds: float) -> Iterable[int]:
        self._position.done += 1
        return instruction.drop


class Recorder:
    """An observer that keeps every value, and calls no node whose inputs are as they were.

    Args:
        state: what is known when the run begins.
        values: value id by slot of the program, 0 for none.
        constants: {value id: array} of what Constant nodes hold.
        fed: (array, stamp) of each value id that is given to the program.
        budget: bytes to keep; beyond it, values that nobody needs any more go, the oldest first.
        position: counted up.
    """

    def __init__(
        self,
        state: State,
        values: Sequence[int],
        constants: Mapping[int, Any],
        fed: Mapping[int, tuple[Any, int]],
        budget: int,
        position: Position,
    ) -> None:
        self._state = state
        self._position = position
        self._budget = budget
        self._value = values
        self.arrays: dict[int, Any] = {}
        self.stamps = dict(state.stamps)
        self.sources: dict[int, Any] = {}  # of what this run made
        self.seconds: dict[int, float] = {}
        self.given: list[int] = []
        self._read: Any = ()  # stamps of what the step under way reads
        self._held: dict[int, int] = {}  # buffers of what is kept
        self._nbytes = 0
        self._dead: list[int] = []  # slots that nobody needs any more, oldest first
        for value, (array, stamp) in fed.items():
            self._give(value, array, stamp)
        for value, array in constants.items():
            if value not in fed and (state.arrays.get(value) is not array or value in state.stale):
                self._give(value, array, state.stamps.get(value, 0))
        self._stamp_at = list(map(self.stamps.get, values))  # by slot, where a step finds them as it does its inputs

    def _give(self, value: int, array: Any, stamp: int) -> None:
        self.stamps[value] = stamp
        self.given.append(value)
        self._keep(value, array)

    def reuse(self, instruction: Instruction, frame: list[Any]) -> Sequence[Any] | None:
        self._position.label = instruction.step.label
        value, stamps = self._value, self._stamp_at
        self._read = read = (
            tuple([stamps[slot] for slot in instruction.reads]) if instruction.captures else instruction.take(stamps)
        )
        results, first = instruction.results, instruction.result
        if self._state.sources.get(value[first if first > 0 else max(results, default=0)]) != read:
            return None
        arrays, dirty = self._state.arrays, self._state.dirty
        if any(slot > 0 and (value[slot] in dirty or value[slot] not in arrays) for slot in results):
            return None
        return tuple(arrays[value[slot]] if slot > 0 else None for slot in results)

    def done(self, instruction: Instruction, frame: list[Any], reused: bool, seconds: float) -> Iterable[int]:
        self._position.done += 1
        read, values = self._read, self._value
        for slot in instruction.results:
            if slot > 0:
                value, array = values[slot], frame[slot]
                if not reused:
                    self.seconds[value] = seconds
                    old = self._state.arrays.get(value, _GONE)
                    another = differs(old, array) or not same(old, array)
                    if another and (old is not _GONE or not self._again(value, read)):
                        self.stamps[value] = self._stamp_at[slot] = new_stamp()
                self.sources[value] = read
                self._keep(value, array)
        self._dead += instruction.drop
        return self._over_budget() if self._nbytes > self._budget else ()

    def _again(self, value: int, read: Any) -> bool:
        """Whether a value whose array is gone was made of the same things."""
        state = self._state
        return value in state.stamps and state.sources.get(value) == read and value not in state.dirty

    def _keep(self, value: int, array: Any) -> None:
        if type(array) is np.ndarray:
            array.setflags(write=False)
            own = array if array.base is None else root(array)
            if (key := id(own)) not in self._held:
                self._held[key] = nbytes = own.nbytes
                self._nbytes += nbytes
        else:
            freeze(array)
            for key, nbytes in buffers((array,)).items():
                if key not in self._held:
                    self._held[key] = nbytes
                    self._nbytes += nbytes
        self.arrays[value] = array

    def _over_budget(self) -> list[int]:
        """Give up values that no step needs any more, oldest first, until the rest fits."""
        dropped = []
        while self._dead and self._nbytes > self._budget:
            slot = self._dead.pop(0)
            dropped.append(slot)
            self.arrays.pop(self._value[slot], None)
            if len(dropped) % 16 == 0 or not self._dead:
                self._held = buffers(self.arrays.values())
                self._nbytes = sum(self._held.values())
        return dropped

    def state(self, stale: frozenset[int]) -> State:
        """The state after the run; `stale` is what was stale when it began, changed inputs considered."""
        old = self._state
        made = {*self.sources, *self.given}
        arrays = dict(old.arrays)
        for value in made:
            arrays.pop(value, None)
        arrays.update(self.arrays)
        seconds = {**old.seconds, **self.seconds}
        held = old.held + self._nbytes
        if held > self._budget:
            arrays = evicted(arrays, seconds, self._budget)
            held = sum(buffers(arrays.values()).values())
        return State(
            arrays,
            self.stamps,
            {**old.sources, **self.sources},
            seconds,
            old.dirty - made,
            stale - made,
            old.generation + 1,
            held,
        )


def freeze(value: Any) -> None:
    """Make a value read-only: it is kept and shared."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, list):
        for item in value:
            freeze(item)


def evicted(arrays: dict[int, Any], seconds: Mapping[int, float], budget: int) -> dict[int, Any]:
    """The arrays that fit the budget: those go first that are made again with the least time per byte."""
    held = buffers(arrays.values())
    excess = sum(held.values()) - budget
    if excess <= 0:
        return arrays
    sizes = {value: sum(buffers((array,)).values()) for value, array in arrays.items()}
    worth = sorted(
        (value for value in arrays if sizes[value] and value in seconds),
        key=lambda value: seconds[value] / sizes[value],
    )
    for value in worth:
        if excess <= 0:
            break
        excess -= sizes[value]
        del arrays[value]
    return arrays
