"""Constant folding: results of instructions that read constants alone are kept from the first run of a program.

From then on, its frames begin with these results, as far as there is memory for them, and only the other instructions
run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab.execution.program.program import Program, Row
from onnxlab.limits import available_memory
from onnxlab.ops.base.prepared_constants import mark_constant

SHARE_OF_MEMORY = 0.25
"""Share of the available memory that results of constant instructions may take."""

_NOTE = "folded"

Finish = Callable[[Sequence[Any]], None]
"""A function for the frame of a run at its end."""


@dataclass(frozen=True, slots=True)
class FoldedProgram:
    """A program some of whose results are known: the frame to begin with, and the rows that are left."""

    template: list[Any]
    rows: tuple[Row, ...]

    def holding(self, slots: Container[int]) -> FoldedProgram:
        """The program none of whose rows lets any of `slots` go."""
        rows = [(*row[:6], tuple([slot for slot in row[6] if slot not in slots])) for row in self.rows]
        return FoldedProgram(self.template, tuple(rows))

    def knowing(
        self, program: Program, slots: Iterable[int], frame: Sequence[Any], room: float, largest: float
    ) -> FoldedProgram:
        """The program with values of a frame at its end, as far as there is room for them.

        Args:
            slots: of the values.
            room, largest: bytes that all and each of them may take.
        """
        template = list(self.template)
        for slot in slots:
            value = frame[slot]
            if template[slot] is None and type(value) is np.ndarray and value.nbytes <= min(largest, room):
                room -= value.nbytes
                template[slot] = persistent(value)
        return FoldedProgram(template, needed(program, template))


def known_fold(program: Program) -> FoldedProgram | None:
    """The folded program after a run: the program itself without constant instructions."""
    return program.notes.get(_NOTE) if program.foldable else FoldedProgram(program.template, program.rows)


def first(program: Program, begin: FoldedProgram, then: Finish | None) -> tuple[FoldedProgram, Finish]:
    """The program of a first run, and a function that keeps the results of constant instructions at its end.

    Args:
        begin, then: of a run without that.
    """
    border = _border(program)

    def finish(frame: Sequence[Any]) -> None:
        room = SHARE_OF_MEMORY * available_memory()
        program.notes[_NOTE] = FoldedProgram(program.template, ()).knowing(program, border, frame, room, room)
        if then is not None:
            then(frame)

    return begin.holding(border), finish


def carry(before: Program, after: Program) -> None:
    """Keep the results of constant instructions after an edit that left all of these as they were."""
    known, old, new = before.notes.get(_NOTE), before.template, after.template
    pairs = [(a, b) for a, b in zip(before.instructions, after.instructions, strict=True) if a.constant]
    if known is not None and all(a is b and all(old[slot] is new[slot] for slot in a.reads) for a, b in pairs):
        template = [folded if array is None else array for folded, array in zip(known.template, new, strict=True)]
        after.notes[_NOTE] = FoldedProgram(template, needed(after, template))


def _border(program: Program) -> Collection[int]:
    """Slots of constant results that other instructions read, or that are outputs."""
    read = {slot for i in program.instructions if not i.constant for slot in i.reads}.union(program.output_slots)
    return {slot for i in program.instructions if i.constant for slot in i.results if slot in read}


def needed(program: Program, known: Sequence[Any]) -> tuple[Row, ...]:
    """Rows that must run for outputs and impure steps where `known` holds some slots' values."""
    unmade = {slot for slot in program.output_slots if known[slot] is None}
    rows = []
    for instruction in reversed(program.instructions):
        if not (instruction.step.pure and unmade.isdisjoint(instruction.results)):
            rows.append(instruction.row)
            unmade.update(slot for slot in instruction.reads if known[slot] is None)
    rows.reverse()
    return tuple(rows)


def persistent(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array to keep, read-only for good: a copy where it is a view of a part of a larger array."""
    base = value.base
    if isinstance(base, np.ndarray) and base.flags.writeable and base.nbytes > 2 * value.nbytes:
        value = value.copy()
    value.flags.writeable = False
    mark_constant(value)
    return value
