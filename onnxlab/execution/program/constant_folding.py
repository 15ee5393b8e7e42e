"""Constant folding: instructions that read constants alone run once, and their results are kept.

A program with such instructions is folded by its first run: afterwards its frames begin with the results of the
constant instructions, as far as the budget allows, and only the other instructions run. Results outlive edits that do
not change what they are computed from.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab.execution.program.program import Instruction, Program, Row
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


class Folder:
    """Results of constant instructions, by the call and the inputs that they are made from.

    Every array has a token; the token of a result is determined by its call and the tokens of the inputs. A result that
    is not asked for is kept for one change of the model and dropped at the second.
    """

    def __init__(self, budget: int | None = None) -> None:
        self._budget = budget
        self._lock = fork_safe(threading.Lock())
        self._next = 1
        self._arrays: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._calls: dict[tuple[Any, ...], tuple[int, Any]] = {}
        self._results: dict[tuple[int, int], Any] = {}
        self._before: dict[tuple[int, int], Any] = {}

    def turn(self) -> None:
        """Begin a new version of the model: results that are not asked for until the next call are dropped."""
        with self._lock:
            self._before, self._results = self._results, {}
            if len(self._calls) > 1 << 17:
                self._calls.clear()
                self._before.clear()

    def room(self) -> int:
        """Bytes that may still be kept."""
        budget = int(SHARE_OF_MEMORY * available_memory()) if self._budget is None else self._budget
        return budget - sum(int(array.nbytes) for array in self._results.values())

    def get(self, key: tuple[int, int]) -> Any:
        """The folded array of a key, None where it was not folded."""
        with self._lock:
            array = self._results.get(key)
            if array is None and (array := self._before.get(key)) is not None:
                self._results[key] = array
            return array

    def put(self, key: tuple[int, int], array: Any) -> None:
        """Keep a folded array."""
        with self._lock:
            self._results[key] = array

    def token(self, value: Any) -> int:
        """A number for a constant, the same as long as it is the same array."""
        if value is None:
            return 0
        with self._lock:
            entry = self._arrays.get(id(value))
            if entry is not None and entry[0]() is value:
                return entry[1]
            self._next += 1
            if isinstance(value, np.ndarray):
                self._arrays[id(value)] = (weakref.ref(value), self._next)
            return self._next

    def call(self, instruction: Instruction, inputs: tuple[int, ...]) -> int:
        """A number for the result of a call on inputs with these tokens."""
        function, opsets = instruction.call, instruction.step.opsets
        needed = tuple([slot >= 0 for slot in instruction.results])
        key = (id(function), tuple(opsets.items()), needed, inputs)
        with self._lock:
            entry = self._calls.get(key)
            if entry is None:
                self._next += 1
                entry = self._calls[key] = self._next, function  # held, so that no other object gets its id
            return entry[0]


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
    keys = _keys(program, folder)
    border = _border(program, keys)
    template = program.template.copy()
    for slot in border:
        if (known := folder.get(keys[slot])) is not None:
            template[slot] = known
    missing = [slot for slot in border if template[slot] is None]
    gathered = _Gatherer(missing)
    if missing:
        frame = template.copy()
        rows = needed(program, template, missing)
        try:
            loop(program, frame, run, gathered, rows)
        finally:
            run.memory.leave(id(frame))
    room = folder.room()
    for slot, value in gathered.values.items():
        if isinstance(value, np.ndarray) and value.nbytes <= room:
            room -= value.nbytes
            value = persistent(value)
            folder.put(keys[slot], value)
            template[slot] = value
    return FoldedProgram(template, needed(program, template))


def _keys(program: Program, folder: Folder) -> dict[int, tuple[int, int]]:
    """{slot: (token of the call, number of the output)} of what constant instructions make."""
    tokens = {slot: 0 for slot, value in enumerate(program.template) if value is None}
    keys: dict[int, tuple[int, int]] = {}

    def token(slot: int) -> int:
        if slot not in tokens:
            tokens[slot] = folder.token(program.template[slot])
        return tokens[slot]

    for instruction in program.instructions:
        if instruction.constant:
            call = folder.call(instruction, tuple(map(token, instruction.reads)))
            for number, slot in enumerate(instruction.results):
                if slot > 0:
                    keys[slot] = call, number
                    tokens[slot] = -(call * 64 + number)
    return keys


def _border(program: Program, keys: dict[int, tuple[int, int]]) -> list[int]:
    """Slots of constant results that other instructions read, or that are outputs."""
    read = dict.fromkeys(slot for i in program.instructions if not i.constant for slot in i.reads)
    return [slot for slot in (*read, *program.output_slots) if slot in keys]


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


def persistent(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array to keep, read-only for good: a copy where it is a view of a part of a larger array."""
    base = value.base
    if isinstance(base, np.ndarray) and base.flags.writeable and base.nbytes > 2 * value.nbytes:
        value = value.copy()
    value.flags.writeable = False
    mark_constant(value)
    return value


class _Gatherer:
    """An observer that collects the values of some slots."""

    def __init__(self, slots: Iterable[int]) -> None:
        self._slots = frozenset(slots)
        self.values: dict[int, Any] = {}

    def reuse(self, instruction: Instruction, frame: list[Any]) -> None:
        return None

    def done(self, instruction: Instruction, frame: list[Any], reused: bool, seconds: float) -> Iterable[int]:
        for slot in instruction.results:
            if slot in self._slots:
                self.values[slot] = frame[slot]
        return [slot for slot in instruction.drop if slot not in self._slots]
