"""Observers of runs: a count of how far one got, and takers of values that are kept, or handed over when made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnxlab.execution.base.array_memory import total
from onnxlab.execution.program.program import Instruction, Program


@dataclass(slots=True)
class Position:
    """The progress of a run; written by the run's thread, read by the caller's."""

    total: int
    done: int = 0
    entered: Instruction | None = None  # the one under way

    @property
    def label(self) -> str:
        """The label of the node under way."""
        return "" if self.entered is None else self.entered.step.label

    def expect(self, total: int) -> None:
        """Expect so many further steps."""
        self.total = total


class StepCounter:
    """An observer that only counts steps and lets arrays go as usual."""

    def __init__(self, position: Position) -> None:
        self._position = position

    def begins(self, instruction: Instruction) -> None:
        """Note the instruction that is under way."""
        self._position.entered = instruction

    def done(self, instruction: Instruction, frame: list[Any], seconds: float) -> Iterable[int]:
        """Count the instruction and name the slots to drop."""
        self._position.done += 1
        return instruction.drop


class BorderValues:
    """The values of one run of a program that are kept when no step needs them any more.

    Args:
        program: what is run.
        budget: bytes that the values may take; beyond it, those made first are dropped.

    Attributes:
        values: {slot: value}.
    """

    def __init__(self, program: Program, budget: int) -> None:
        self._slots: Collection[int] = frozenset(slot for _, slot in program.border)
        self._border = program.border
        self._budget = budget
        self._sizes: dict[int, int] = {}
        self.values: dict[int, Any] = {}

    def take(self, frame: Sequence[Any], dropped: Iterable[int]) -> None:
        """Keep the values of the border among the slots of a frame that are about to be dropped."""
        for slot in dropped:
            if slot in self._slots:
                self._keep(slot, frame[slot])

    def _keep(self, slot: int, value: Any) -> None:
        size = total((value,))
        if size > self._budget:
            return
        self.values[slot], self._sizes[slot] = value, size
        while sum(self._sizes.values()) > self._budget:
            first = next(iter(self.values))
            del self.values[first], self._sizes[first]

    def in_order(self) -> list[Any]:
        """The kept values in the order of the program's border, None for values that are not kept."""
        return [self.values.get(slot) for _, slot in self._border]


Take: TypeAlias = Callable[[int, Any], None]
"""take(index of the output, value). The value must not be written to, and may be freed when the next is handed over."""

_NOTE = "handed values"


@dataclass(frozen=True, slots=True)
class _Handing:
    """The outputs to hand over, by the step that makes them.

    Attributes:
        steps: for each instruction, (slot, index) of the outputs that it makes, and the slots to drop after it.
        rest: indices of outputs that no such instruction makes: fed ones, and results of constant instructions.
    """

    steps: dict[Instruction, tuple[tuple[tuple[int, int], ...], tuple[int, ...]]]
    rest: tuple[int, ...]


class HandedValues:
    """An observer that hands the outputs of a program over, and lets each go after its last reader.

    Args:
        program: whose outputs are handed over.
        take: called with each output.
    """

    def __init__(self, program: Program, take: Take) -> None:
        handing: _Handing = program.notes.get(_NOTE) or program.notes.setdefault(_NOTE, _handing(program))
        self._steps, self._rest, self._take = handing.steps, handing.rest, take

    def begins(self, instruction: Instruction) -> None:
        """Wait for the step's outputs."""

    def done(self, instruction: Instruction, frame: list[Any], seconds: float) -> Iterable[int]:
        """Hand over the outputs that a step made; returns the slots that no later step reads."""
        outputs, drop = self._steps[instruction]
        for slot, place in outputs:
            self._take(place, frame[slot])
        return drop

    def finish(self, results: Sequence[Any]) -> None:
        """Hand over those results of the run that no step made."""
        for place in self._rest:
            self._take(place, results[place])


def _handing(program: Program) -> _Handing:
    """Walk backward: the last reader of an output drops it, or its maker where no step reads it."""
    places: dict[int, list[int]] = {}
    for place, slot in enumerate(program.output_slots):
        places.setdefault(slot, []).append(place)
    instructions = program.instructions
    handed = {slot for step in instructions if not step.constant for slot in step.results if slot in places}
    alive: set[int] = set()
    steps = {}
    for step in reversed(instructions):
        touched = {slot for slot in (*step.reads, *step.results) if slot in handed}
        drop = (*step.drop, *(touched - alive))
        alive |= touched
        outputs = tuple((slot, place) for slot in step.results if slot in handed for place in places[slot])
        steps[step] = outputs, drop
    rest = tuple(place for place, slot in enumerate(program.output_slots) if slot not in handed)
    return _Handing(steps, rest)
