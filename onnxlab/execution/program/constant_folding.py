"""Constant folding: instructions that read constants alone run once, and their results are kept.

A program with such instructions is folded by its first run: afterwards its frames begin with the results of the
constant instructions, as far as the budget allows, and only the other instructions run. Results outlive edits that do
not change what they are computed from.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from onnxlab.execution.program.program import Program, Row
from onnxlab.execution.program.run_state import Run
from onnxlab.forking import fork_safe
from onnxlab.limits import available_memory
from onnxlab.ops.base.prepared_constants import mark_constant

SHARE_OF_MEMORY = 0.25
"""Share of the available memory that results of constant instructions may take."""

_NOTE = "folded"

Loop = Callable[..., None]
"""The executor's loop: (program, frame, run, observer, rows)."""


@dataclass(frozen=True, slots=True)
class FoldedProgram:
    """A program after its constant instructions ran: the frame to begin with, and the rows that are left."""

    template: list[Any]
    rows: tuple[Row, ...]


class Folding(NamedTuple):
    """A constant, or a call of constants: a number for it, the object whose id is in its key, and its results."""

    token: int
    holder: Any
    results: dict[int, Any]


class Folder:
    """Results of constant instructions, by the call and the inputs that they are made from.

    Every array has a token; the token of a call is determined by the function and the tokens of the inputs. What is not
    asked for is kept for one change of the model and dropped at the second.
    """

    def __init__(self, budget: int | None = None) -> None:
        self._budget = budget
        self._lock = fork_safe(threading.Lock())
        self._tokens = count(1)
        self._now: dict[Any, Folding] = {}
        self._before: dict[Any, Folding] = {}

    def turn(self) -> None:
        """Begin a new version of the model: what is not asked for until the next call is dropped."""
        with self._lock:
            self._before, self._now = self._now, {}

    def room(self) -> int:
        """Bytes that may still be kept."""
        budget = int(SHARE_OF_MEMORY * available_memory()) if self._budget is None else self._budget
        with self._lock:
            results = [array for folding in self._now.values() for array in list(folding.results.values())]
        return budget - sum(int(array.nbytes) for array in results)

    def of(self, key: Any, holder: Any) -> Folding:
        """The entry of a constant or call, the same as long as the key is the same; it holds `holder`."""
        with self._lock:
            folding = self._now.get(key) or self._before.get(key) or Folding(next(self._tokens), holder, {})
            self._now[key] = folding
            return folding


def folded(program: Program, run: Run, folder: Folder, loop: Loop) -> FoldedProgram | None:
    """The folded form of a program; its constant instructions are run now where they have not been.

    Returns None for a program without constant instructions. Raises the errors of the nodes.
    """
    if not program.foldable:
        return None
    known: FoldedProgram | None = program.notes.get(_NOTE)
    if known is None:
        known = program.notes[_NOTE] = _fold(program, run, folder, loop)
    return known


def known_fold(program: Program) -> FoldedProgram | None:
    """The folded program after a run: the program itself without constant instructions."""
    return program.notes.get(_NOTE) if program.foldable else FoldedProgram(program.template, program.rows)


def _fold(program: Program, run: Run, folder: Folder, loop: Loop) -> FoldedProgram:
    foldings = _foldings(program, folder)
    border = _border(program, foldings)
    template = program.template.copy()
    for slot in border:
        folding, number = foldings[slot]
        template[slot] = folding.results.get(number)
    missing = [slot for slot in border if template[slot] is None]
    frame = template.copy()
    if missing:
        try:
            loop(program, frame, run, None, holding(needed(program, template, missing), frozenset(missing)))
        finally:
            run.memory.leave(id(frame))
    room = folder.room()
    for slot in missing:
        value = frame[slot]
        if isinstance(value, np.ndarray) and value.nbytes <= room:
            room -= value.nbytes
            value = persistent(value)
            folding, number = foldings[slot]
            template[slot] = folding.results[number] = value
    return FoldedProgram(template, needed(program, template))


def _foldings(program: Program, folder: Folder) -> dict[int, tuple[Folding, int]]:
    """{slot: (folding of the call, number of the output)} of what constant instructions make."""
    tokens, foldings = dict[int, Any](), dict[int, tuple[Folding, int]]()
    for instruction in (instruction for instruction in program.instructions if instruction.constant):
        for slot in instruction.reads:
            if slot not in tokens:
                array = program.template[slot]
                tokens[slot] = 0 if array is None else folder.of(id(array), array).token
        needed = tuple([slot >= 0 for slot in instruction.results])
        inputs = tuple([tokens[slot] for slot in instruction.reads])
        key = (id(instruction.call), tuple(instruction.step.opsets.items()), needed, inputs)
        folding = folder.of(key, instruction.call)
        for number, slot in enumerate(instruction.results):
            if slot > 0:
                foldings[slot] = folding, number
                tokens[slot] = folding.token, number
    return foldings


def _border(program: Program, constants: Container[int]) -> list[int]:
    """Slots of constant results that other instructions read, or that are outputs."""
    read = dict.fromkeys(slot for i in program.instructions if not i.constant for slot in i.reads)
    return [slot for slot in dict.fromkeys((*read, *program.output_slots)) if slot in constants]


def needed(program: Program, known: Sequence[Any], slots: Iterable[int] | None = None) -> tuple[Row, ...]:
    """Rows that must run for `slots` (default: outputs and impure steps) where `known` holds some slots' values."""
    unmade = {slot for slot in (program.output_slots if slots is None else slots) if known[slot] is None}
    rows = []
    for instruction in reversed(program.instructions):
        if not unmade.isdisjoint(instruction.results) or (slots is None and not instruction.step.pure):
            rows.append(instruction.row)
            unmade.update(slot for slot in instruction.reads if known[slot] is None)
    rows.reverse()
    return tuple(rows)


def holding(rows: Iterable[Row], slots: Container[int]) -> tuple[Row, ...]:
    """The rows, none of which lets any of `slots` go."""
    return tuple([(*row[:6], tuple([slot for slot in row[6] if slot not in slots])) for row in rows])


def persistent(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array to keep, read-only for good: a copy where it is a view of a part of a larger array."""
    base = value.base
    if isinstance(base, np.ndarray) and base.flags.writeable and base.nbytes > 2 * value.nbytes:
        value = value.copy()
    value.flags.writeable = False
    mark_constant(value)
    return value
