"""Runs that keep every value: each is compared with what it was, and no node is called whose inputs came out equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onnxlab.execution.base.array_memory import at_most, differs, freeze, same, total
from onnxlab.execution.base.value_store import StoreState
from onnxlab.execution.program.program import Instruction
from onnxlab.execution.program.run_observers import Position

_GONE = object()  # in the place of an array that is not kept
_AT_ONCE = 16  # arrays that are let go at once


class Recorder:
    """An observer of one run that keeps every value, and reuses those whose nodes and inputs are as they were.

    Args:
        state: the stored values when the run begins.
        values: value id by slot of the program, 0 for none.
        supplied: {value id: array} of what is fed, and of Constant nodes.
        changed: slots of supplied values that are not what they were.
        budget: bytes to keep; beyond it, values that no step needs any more are dropped, the oldest first.
        position: the progress of the run, which the recorder advances.

    Attributes:
        changed: slots of values that are not what they were.
        seconds: {value id: time that making it took}.
    """

    def __init__(
        self, state: StoreState, values: Sequence[int], supplied: Mapping[int, Any], changed: Iterable[int],
        budget: int, position: Position,
    ) -> None:  # fmt: skip
        self._state, self._values, self._budget, self._position = state, values, budget, position
        self.changed = set(changed)
        self.seconds: dict[int, float] = {}
        self._computed = {*supplied}
        self._arrays = {**supplied}
        self._nbytes = total(supplied.values())  # an upper bound
        self._dead: list[int] = []  # slots that are needed no more, oldest first
        self._reads_changes = False

    def reuse(self, instruction: Instruction, frame: list[Any]) -> Sequence[Any] | None:
        """The stored outputs of a step whose node and inputs are as they were."""
        self._position.entered = instruction
        arrays, dirty, values = self._state.arrays, self._state.dirty, self._values
        self._reads_changes = not self.changed.isdisjoint(instruction.reads)
        ids = [values[slot] for slot in instruction.results if slot > 0]
        if self._reads_changes or not ids or any(value not in arrays or value in dirty for value in ids):
            return None
        return tuple([arrays[values[slot]] if slot > 0 else None for slot in instruction.results])

    def done(self, instruction: Instruction, frame: list[Any], reused: bool, seconds: float) -> Iterable[int]:
        """Keep the outputs of a step; returns the slots to drop so that the kept values fit the budget."""
        self._position.done += 1
        arrays = []
        for slot in (slot for slot in instruction.results if slot > 0):
            value, array = self._values[slot], frame[slot]
            if not reused:
                self.seconds[value] = seconds
                if self._is_another(value, array):
                    self.changed.add(slot)
            self._arrays[value] = array
            arrays.append(array)
        freeze(arrays)
        self._computed.update([self._values[slot] for slot in instruction.results if slot > 0])
        self._dead += instruction.drop
        self._nbytes += at_most(arrays)
        return self._given_up() if self._nbytes > self._budget else ()

    def _is_another(self, value: int, array: Any) -> bool:
        """Whether an array may differ from the value before."""
        old = self._state.arrays.get(value, _GONE)
        if old is _GONE:
            return self._reads_changes or value in self._state.dirty or value not in self._state.seconds
        return differs(old, array) or not same(old, array)

    def _given_up(self) -> list[int]:
        """Slots of values that no step needs any more, oldest first, until the rest fits."""
        dropped: list[int] = []
        self._nbytes = total(self._arrays.values())
        while self._dead and self._nbytes > self._budget:
            slots, self._dead = self._dead[:_AT_ONCE], self._dead[_AT_ONCE:]
            for slot in slots:
                self._arrays.pop(self._values[slot], None)
            dropped += slots
            self._nbytes = total(self._arrays.values())
        return dropped

    def state(self, stale: frozenset[int]) -> StoreState:
        """The state after the run; `stale` are the values that were stale when it began, also by changed inputs."""
        old, computed = self._state, self._computed
        arrays = {**old.arrays, **self._arrays}
        for value in computed.difference(self._arrays):  # values that were dropped for the budget
            arrays.pop(value, None)
        seconds = {**old.seconds, **self.seconds}
        held = old.held + self._nbytes
        if held > self._budget:
            arrays = evicted(arrays, seconds, self._budget)
            held = total(arrays.values())
        return StoreState(arrays, seconds, old.dirty - computed, stale - computed, old.generation + 1, held, True)


def evicted(arrays: dict[int, Any], seconds: Mapping[int, float], budget: int) -> dict[int, Any]:
    """The arrays that fit the budget: those that take the least time per byte to make again are evicted first."""
    excess = total(arrays.values()) - budget
    if excess <= 0:
        return arrays
    sizes = {value: total((array,)) for value, array in arrays.items()}
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
