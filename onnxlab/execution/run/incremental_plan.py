"""Runs that keep their values: of a program of the whole graph, only instructions run whose results are not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat
from math import inf
from typing import Any

from onnxlab.execution.base.value_store import StoreState
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.program.program import Program

_NOTE = "incremental"  # note of a program: its plan


@dataclass(frozen=True, slots=True, eq=False)
class Worklist:
    """The part of a program that has to run where some values are stale.

    Attributes:
        stale: ids of the stale values.
        numbers: of the instructions to run.
        values: id of a value that each of these makes; 0 for none.
        border: (slot, value id) of stored values that the steps or the caller read.
    """

    stale: frozenset[int]
    numbers: tuple[int, ...]
    values: tuple[int, ...]
    border: tuple[tuple[int, int], ...]

    def fill(self, frame: list[Any], arrays: Mapping[int, Any]) -> bool:
        """Put the stored values into a frame; False, and none is, where one is not stored any more."""
        if not all(value in arrays for _, value in self.border):
            return False
        for slot, value in self.border:
            frame[slot] = arrays[value]
        return True

    def expected(self, seconds: Mapping[int, float]) -> float:
        """Seconds that the steps took when they last ran; infinite where one never did."""
        return sum(map(seconds.get, self.values, repeat(inf)))


@dataclass(frozen=True, slots=True, eq=False)
class IncrementalPlan:
    """The places of the values in a program with every value visible, and in those that edits make of it.

    Attributes:
        values: value id by slot, 0 for none.
        constants: slots of what Constant nodes hold.
        maker: {slot: number of the instruction}.
        made: id of a value that an instruction makes, by its number; 0 for none.
        parts: ids of values that steps of several nodes make.
        last: the last selection, if any: most edits are like the edit before.
    """

    values: tuple[int, ...]
    constants: tuple[int, ...]
    maker: Mapping[int, int]
    made: tuple[int, ...]
    parts: frozenset[int]
    last: list[Worklist] = field(default_factory=list)

    def select(self, program: Program, state: StoreState, stale: frozenset[int], frame: list[Any]) -> Worklist:
        """Select what must run for the outputs; stored values that it reads are put into the frame.

        The last selection is reused where the same values are stale: if the store now holds values that it would make,
        the run finds them.
        """
        for selection in self.last[:]:
            if (selection.stale is stale or selection.stale == stale) and selection.fill(frame, state.arrays):
                return selection
        worklist = self._walk(program, state, stale, frame)
        self.last[:] = [worklist]
        return worklist

    def _walk(self, program: Program, state: StoreState, stale: frozenset[int], frame: list[Any]) -> Worklist:
        values, arrays, makers = self.values, state.arrays, self.maker
        chosen, border = set[int](), []
        waiting = [slot for slot in program.output_slots if frame[slot] is None]
        seen = set(waiting)
        while waiting:
            slot = waiting.pop()
            value = values[slot]
            if value in arrays and value not in stale:
                frame[slot] = arrays[value]
                border.append((slot, value))
                continue
            number = makers.get(slot)
            if number is None or number in chosen:
                continue
            chosen.add(number)
            for read in program.instructions[number].reads:
                if frame[read] is None and read not in seen:
                    seen.add(read)
                    waiting.append(read)
        numbers = tuple(sorted(chosen))
        ids = tuple([self.made[number] for number in numbers])
        return Worklist(stale, numbers, ids, tuple(border))


def plan_of(compiler: Compiler, program: Program) -> IncrementalPlan:
    """The plan of a program in which every value stays readable, made once."""
    plan: IncrementalPlan | None = program.notes.get(_NOTE)
    if plan is None:
        ids, held, instructions = compiler.ids, compiler.main.scope.initializers, program.instructions
        values = [0] * len(program.template)
        for name, slot in program.slots.items():
            values[slot] = ids.get(name, 0)
        constants = (slot for name, slot in program.slots.items() if name not in held)
        plan = program.notes[_NOTE] = IncrementalPlan(
            tuple(values),
            tuple(slot for slot in constants if program.template[slot] is not None),
            {slot: number for number, i in enumerate(instructions) for slot in i.results if slot > 0},
            tuple(values[max(i.results, default=0)] for i in instructions),
            frozenset([values[slot] for i in instructions if not i.step.node for slot in i.results if slot > 0]),
        )
    return plan
