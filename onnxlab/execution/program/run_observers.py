"""Observers of runs: a count of how far one got, and takers of values that are kept, or handed over when made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnxlab.execution.base.kept_arrays import buffers
from onnxlab.execution.base.output_sizes import is_of_pairs
from onnxlab.execution.program.program import Instruction, Program, Taker

StepRow: TypeAlias = tuple[Any, bool | None, Taker, Callable[..., Any], int, int]
"""(size to ask, one input, take, call, slot, value id) of an instruction; 0 for the value where it makes several, none,
or has bodies; False for the size where it is called with a context; None instead of False for one input where `fits`
may be asked first."""


def step_row(instruction: Instruction, value: int) -> StepRow:
    """The fields for running an instruction that makes a value."""
    step, slot = instruction.step, instruction.result
    size = False if step.context or instruction.quick is not None else step.size
    single: bool | None = instruction.arity == 1
    if instruction.arity == 2 and is_of_pairs(step.size):
        single = None
    usual = slot > 0 and not instruction.captures
    return size, single, instruction.take, instruction.call, slot, value if usual else 0


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Instructions to run, in order, and a row for each."""

    instructions: Sequence[Instruction]
    rows: Sequence[StepRow]


@dataclass(slots=True)
class Position:
    """The progress of a run; written by the run's thread, read by the caller's."""

    total: int
    done: int = 0
    instructions: Sequence[Instruction] = ()  # all of them, in order
    entered: Instruction | None = None  # that is under way, where they are not listed

    @property
    def instruction(self) -> Instruction | None:
        """The instruction under way."""
        done = self.done
        return self.instructions[done] if done < len(self.instructions) else self.entered

    @property
    def label(self) -> str:
        """Of the node that is under way."""
        instruction = self.instruction
        return "" if instruction is None else instruction.step.label

    def expect(self, total: int) -> None:
        """Expect so many further steps."""
        self.total = total


class Counter:
    """An observer that only counts steps and lets arrays go as usual."""

    def __init__(self, position: Position) -> None:
        self._position = position

    def reuse(self, instruction: Instruction, frame: list[Any]) -> None:
        """Note the instruction whose result is reused."""
        self._position.entered = instruction

    def done(self, instruction: Instruction, frame: list[Any], reused: bool, seconds: float) -> Iterable[int]:
        """Count the instruction and name the slots to drop."""
        self._position.done += 1
        return instruction.drop


class BorderValues:
    """The values of one run of a program that are kept when no step needs them any more.

    Args:
        program: what is run.
        budget: bytes; where they are more, those that were made first go.

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
        """Keep what is in these slots of a frame, which are about to be dropped, if it is of the border."""
        for slot in dropped:
            if slot in self._slots:
                self._keep(slot, frame[slot])

    def _keep(self, slot: int, value: Any) -> None:
        nbytes = sum(buffers((value,)).values())
        if nbytes > self._budget:
            return
        self.values[slot], self._sizes[slot] = value, nbytes
        while sum(self._sizes.values()) > self._budget:
            first = next(iter(self.values))
            del self.values[first], self._sizes[first]

    def in_order(self) -> list[Any]:
        """The values that are kept, in the order of the program's border; None for the others."""
        return [self.values.get(slot) for _, slot in self._border]


Take: TypeAlias = Callable[[int, Any], None]
"""take(place among the outputs, value). A value is only to be read, and may be gone after the next one."""

_NOTE = "handed values"


@dataclass(frozen=True, slots=True)
class _Handing:
    """The values that are handed over, and the steps at which.

    Attributes:
        steps: for each instruction, (slot, place) of what it makes, and the slots that can be let go after it.
        rest: places of outputs that no such instruction makes: fed ones, and those that constants make.
    """

    steps: dict[Instruction, tuple[tuple[tuple[int, int], ...], tuple[int, ...]]]
    rest: tuple[int, ...]


class HandedValues:
    """An observer that hands the outputs of a program over, and lets each go after its last reader.

    Args:
        program: whose outputs are handed over.
        take: told each of them.
    """

    def __init__(self, program: Program, take: Take) -> None:
        handing = program.notes.get(_NOTE)
        if handing is None:
            handing = program.notes[_NOTE] = _handing(program)
        self._steps, self._rest, self._take = handing.steps, handing.rest, take

    def reuse(self, instruction: Instruction, frame: list[Any]) -> None:
        """Reuse nothing."""

    def done(self, instruction: Instruction, frame: list[Any], reused: bool, seconds: float) -> Iterable[int]:
        """Hand over what a step made, and name the slots that nothing reads any more."""
        outputs, drop = self._steps[instruction]
        for slot, place in outputs:
            self._take(place, frame[slot])
        return drop

    def finish(self, results: Sequence[Any]) -> None:
        """Hand over what no step made, of the results of the run."""
        for place in self._rest:
            self._take(place, results[place])


def _handing(program: Program) -> _Handing:
    """Walk backward: the last reader of an output drops it, or what makes it where none reads."""
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
