"""Shape specialization: results of shapes alone, computed once for inputs of the same shapes.

Exporters write the arithmetic of sizes into the graph: Shape, Gather, Concat, Reshape, a dozen nodes for one view. The
results of these nodes depend on the shapes of the feeds, not on the elements. The second run with the same shapes keeps
these results. From the third run on, frames begin with them, and nodes that only computed them are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from onnxlab.execution.base.lru import Lru
from onnxlab.execution.program.constant_folding import Finish, FoldedProgram, known_fold
from onnxlab.execution.program.program import Program
from onnxlab.ops import traits_of

LARGEST: Final = 1 << 20
"""Bytes of an array above which computing it again is better than keeping it."""

_ROOM = 1 << 23  # bytes kept for the first set of shapes, and less for each that follows, about 4 times as much in all
_KEPT = 32  # sets of shapes: a function may be called once for each column of a table
_SEEN = 64  # sets of shapes that were fed once and are remembered
_NOTE = "shaped"

Signature = tuple[tuple[int, ...], ...]


def decided(program: Program) -> frozenset[int]:
    """Numbers of the instructions whose results the shapes of the feeds decide, those of constants included."""
    values = {slot for slot, array in enumerate(program.template) if array is not None} | {0}
    shapes = values | set(program.feed_slots)
    numbers = set()
    for number, instruction in enumerate(program.instructions):
        if not instruction.step.pure or instruction.captures:
            continue
        inputs, results = instruction.reads, [slot for slot in instruction.results if slot > 0]
        row = traits_of(instruction.step.op)
        first, others = inputs[:1], inputs[1:]
        if values.issuperset(inputs) or (row.shape_only and shapes.issuperset(inputs)):
            numbers.add(number)
            values.update(results)
            shapes.update(results)
        elif (row.shape == "shapes" and shapes.issuperset(inputs)) or (
            row.shape == "sizes" and shapes.issuperset(first) and values.issuperset(others)
        ):
            shapes.update(results)
    return frozenset(numbers)


@dataclass(slots=True)
class ShapeSpecialization:
    """The specializations of one program by the shapes of its feeds.

    Attributes:
        border: slots of values that shapes decide and that other instructions read.
        known: {shapes that were fed twice: the program for them}.
        seen: shapes that were fed once.
    """

    border: frozenset[int]
    known: Lru[Signature, FoldedProgram] = field(default_factory=lambda: Lru("specializations", _KEPT))
    seen: Lru[Signature, None] = field(default_factory=lambda: Lru("shapes that came once", _SEEN))

    def specialized(
        self, program: Program, key: Signature, begin: FoldedProgram
    ) -> tuple[FoldedProgram, Finish | None]:
        """`specialized` for feeds of these shapes."""
        if (match := self.known.get(key)) is not None:
            return match, None
        if key not in self.seen:
            self.seen.keep(key, None)
            return begin, None
        self.seen.pop(key, None)

        def finish(frame: Sequence[Any]) -> None:
            folded = known_fold(program) or begin  # constants are folded first, maybe at the end of this run
            self.known.keep(key, folded.knowing(program, self.border, frame, _ROOM // (1 + len(self.known)), LARGEST))

        return begin.holding(self.border), finish


def specialized(program: Program, feeds: Sequence[Any], begin: FoldedProgram) -> tuple[FoldedProgram, Finish | None]:
    """The program and first slots of a run of these feeds, and a function for its frame at the end.

    Args:
        begin: the program and first slots where shapes decide nothing, or are fed for the first time.
    """
    if _NOTE not in program.notes:  # most programs run once: the analysis waits for the second run
        program.notes[_NOTE] = None
        return begin, None
    specialization: ShapeSpecialization | bool | None = program.notes[_NOTE]
    if specialization is None:
        specialization = program.notes[_NOTE] = _analyzed(program)
    if not isinstance(specialization, ShapeSpecialization) or (key := _signature(feeds)) is None:
        return begin, None
    return specialization.specialized(program, key, begin)


def expect(program: Program, feeds: Sequence[Any]) -> None:
    """Have the next run of a program specialize it for the shapes of these feeds: others like it are expected."""
    specialization = program.notes[_NOTE] = _analyzed(program)
    if isinstance(specialization, ShapeSpecialization) and (key := _signature(feeds)) is not None:
        specialization.seen.keep(key, None)


def final(program: Program, feeds: Sequence[Any], begin: FoldedProgram | None) -> FoldedProgram | None:
    """The program of all further runs of feeds of these shapes, None before it is known; see `specialized`."""
    specialization: ShapeSpecialization | bool | None = program.notes.get(_NOTE)
    if not isinstance(specialization, ShapeSpecialization):
        return begin if specialization is False else None
    key = _signature(feeds)
    return begin if key is None else specialization.known.get(key)


def _analyzed(program: Program) -> ShapeSpecialization | bool:
    numbers = decided(program)
    decided_slots = {slot for number in numbers if not program.instructions[number].constant
            for slot in program.instructions[number].results if slot > 0}  # fmt: skip
    read = {slot for number, i in enumerate(program.instructions) if number not in numbers for slot in i.reads}
    border = decided_slots.intersection(read.union(program.output_slots))
    return ShapeSpecialization(frozenset(border)) if border else False


def _signature(feeds: Sequence[Any]) -> Signature | None:
    """The shapes of feeds, None where one is not an array."""
    shapes = tuple([array.shape for array in feeds if type(array) is np.ndarray])
    return shapes if len(shapes) == len(feeds) else None
