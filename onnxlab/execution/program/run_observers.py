"""Observers of runs: rows of those that keep their values, and a count of how far a run got."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnxlab.execution.base.output_sizes import is_of_pairs
from onnxlab.execution.program.program import Instruction, Taker

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
