"""Watching a run: keeping its values, skipping what is known, counting how far it got, timing nodes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab.execution.program import Instruction, Program
from onnxlab.execution.store import State, buffers, new_stamp, same


@dataclass(slots=True)
class Position:
    """How far a run is; written by the run's thread, read by the caller's."""

    total: int
    done: int = 0
    label: str = ""


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
        program: with all values visible.
        ids: {name: value id}, initializers included.
        initializers: names that are not kept, since the model holds them; only their stamps are compared.
        fed: (array, stamp) of each value id that is given to the program.
        budget: bytes to keep; beyond it, values that nobody needs any more go, the oldest first.
        position: counted up.
    """

    def __init__(
        self,
        state: State,
        program: Program,
        ids: Mapping[str, int],
        initializers: Container[str],
        fed: Mapping[int, tuple[Any, int]],
        budget: int,
        position: Position,
    ) -> None:
        self._state = state
        self._position = position
        self._budget = budget
        self._value = [0] * len(program.template)  # value id by slot
        self._stamp = [0] * len(program.template)  # content by slot
        for name, slot in program.slots.items():
            value = ids.get(name, 0)
            self._stamp[slot] = state.stamps.get(value, 0)
            if name not in initializers:
                self._value[slot] = value
        self.arrays: dict[int, Any] = {}
        self.stamps: dict[int, int] = {}
        self.sources: dict[int, tuple[int, ...]] = {}
        self.seconds: dict[int, float] = {}
        self._held: dict[int, int] = {}  # buffers of what is kept
        self._nbytes = 0
        self._dead: list[int] = []  # slots that nobody needs any more, oldest first
        for slot, value in enumerate(self._value):
            constant = program.template[slot]
            if value and (value in fed or constant is not None):
                array, self._stamp[slot] = fed.get(value, (constant, self._stamp[slot]))
                self.stamps[value] = self._stamp[slot]
                self._keep(value, array)

    def reuse(self, instruction: Instruction, frame: list[Any]) -> Sequence[Any] | None:
        self._position.label = instruction.step.label
        state, values = self._state, [self._value[slot] for slot in instruction.results if slot > 0]
        if not self._as_before(instruction, values) or any(value not in state.arrays for value in values):
            return None
        found = iter(values)
        return tuple(state.arrays[next(found)] if slot > 0 else None for slot in instruction.results)

    def _as_before(self, instruction: Instruction, values: Sequence[int]) -> bool:
        """Whether the node and all that it reads are what they were when it made `values`."""
        if not values or not self._state.dirty.isdisjoint(values):
            return False
        return self._state.sources.get(values[0]) == self._read(instruction)

    def _read(self, instruction: Instruction) -> tuple[int, ...]:
        """Stamps of what a step reads."""
        return tuple([self._stamp[slot] for slot in instruction.reads])

    def done(self, instruction: Instruction, frame: list[Any], reused: bool, seconds: float) -> Iterable[int]:
        self._position.done += 1
        values = [self._value[slot] for slot in instruction.results if slot > 0]
        read, known = self._read(instruction), reused or self._as_before(instruction, values)
        for slot in instruction.results:
            if slot <= 0:
                continue
            value, array = self._value[slot], frame[slot]
            stamp = self._state.stamps.get(value)
            if stamp is None or not (known or same(self._state.arrays.get(value), array)):
                stamp = new_stamp()
            self._stamp[slot] = self.stamps[value] = stamp
            self.sources[value] = read
            if not reused:
                self.seconds[value] = seconds
            self._keep(value, array)
        self._dead += instruction.drop
        return self._over_budget() if self._nbytes > self._budget else ()

    def _keep(self, value: int, array: Any) -> None:
        freeze(array)
        self.arrays[value] = array
        for key, nbytes in buffers((array,)).items():
            if key not in self._held:
                self._held[key] = nbytes
                self._nbytes += nbytes

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
        made = self.stamps.keys()
        arrays = {value: array for value, array in old.arrays.items() if value not in made} | self.arrays
        return State(
            evicted(arrays, {**old.seconds, **self.seconds}, self._budget),
            {**old.stamps, **self.stamps},
            {**old.sources, **self.sources},
            {**old.seconds, **self.seconds},
            old.dirty - made,
            stale - made,
            old.generation + 1,
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
