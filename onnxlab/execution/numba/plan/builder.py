"""Plans while they are made: records with symbolic addresses in pieces, one for each step; `finish` links them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from onnxlab.execution.base.background import paced
from onnxlab.execution.numba.machine.records import FIELDS, WORDS
from onnxlab.execution.numba.plan import arena
from onnxlab.execution.numba.plan.memory import address
from onnxlab.execution.numba.plan.plan import Constants, Patches, Plan, Result, StepTokens
from onnxlab.execution.numba.plan.views import ArenaBuffer, Array, View, dense

FAULT = View(ArenaBuffer("fault", 8), 0, (1,), (8,), np.dtype(np.int64))
"""The place where kernels report an index beyond its axis: an int64 that is 0 when a run begins."""

Word: TypeAlias = "int | tuple[ArenaBuffer, int]"
"""A number, or (buffer, offset): an address."""


@dataclass(slots=True, eq=False)
class PlanPiece:
    """The records of one step of a plan, with symbolic addresses, so that several plans may share a piece.

    Attributes:
        before: values of the earlier piece, which are allocated again where size and layout are the same.
        views: the values that were allocated, in order.
        kernels, work, touched: of each record: its kernel, nanoseconds, and the buffers of the arena that it uses.
        arrays: arrays whose addresses the records hold.
        over: pairs of buffers of which the second may take the memory of the first, see `arena.lay_out`.
        faults: whether a record may report an index beyond its axis.
        token: identity of the piece.
    """

    before: Sequence[View] = ()
    views: list[View] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    touched: list[list[ArenaBuffer]] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    over: list[tuple[ArenaBuffer, ArenaBuffer]] = field(default_factory=list)
    faults: bool = False
    token: object = field(default_factory=object)
    _rows: list[Word] = field(default_factory=list)
    _tables: list[tuple[ArenaBuffer, Sequence[Word]]] = field(default_factory=list)
    _flat: list[Words] | None = None

    def place(
        self, kind: str, nbytes: int, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any],
        index: int = -1,
    ) -> View:  # fmt: skip
        """A value in a buffer of its own."""
        number = len(self.views)
        view = View(ArenaBuffer(kind, nbytes, index), 0, tuple(shape), tuple(strides), dtype)
        if number < len(self.before) and _asks(self.before[number]) == _asks(view):
            view = self.before[number]
        self.views.append(view)
        return view

    def add(self, kernel: str, row: Sequence[Word], touched: Iterable[ArenaBuffer], work: float) -> None:
        """Append a record."""
        self._rows += row
        self._rows += [0] * (WORDS - len(row))
        self.kernels.append(kernel)
        self.work.append(work)
        used = dict.fromkeys(touched)
        self.touched.append([buffer for buffer in used if buffer.kind == "arena"])
        self.faults |= FAULT.buffer in used

    def table(self, words: Sequence[Word]) -> tuple[ArenaBuffer, int]:
        """Words beside the records, which may hold addresses; returns their place."""
        buffer = ArenaBuffer("table", 8 * len(words))
        self._tables.append((buffer, tuple(words)))
        return buffer, 0

    def flat(self) -> list[Words]:
        """The words of the records and of each table; made when first asked for."""
        if self._flat is None:
            self._flat = [_words(None, self._rows), *(_words(*table) for table in self._tables)]
        return self._flat


def _asks(view: View) -> tuple[object, ...]:
    buffer = view.buffer
    return buffer.kind, buffer.index, buffer.nbytes, view.shape, view.strides, view.dtype


@dataclass(frozen=True, slots=True)
class Words:
    """Words of a plan's table: `numbers`, 0 where there is an address, and [(place, buffer, offset)] of addresses."""

    buffer: ArenaBuffer | None
    numbers: Array
    addresses: list[tuple[int, ArenaBuffer, int]]


def _words(buffer: ArenaBuffer | None, words: Sequence[Word]) -> Words:
    numbers = np.array([word if isinstance(word, int) else 0 for word in words], np.int64)
    return Words(buffer, numbers, [(at, *word) for at, word in enumerate(words) if not isinstance(word, int)])


class PlanBuilder:
    """Collects the records of a plan.

    Attributes:
        piece: receives the records of the step that is being lowered.
    """

    def __init__(self) -> None:
        self.piece = PlanPiece()
        self._pieces = [self.piece]

    def begin(self, piece: PlanPiece) -> None:
        """Append a piece, which may hold records already."""
        self.piece = piece
        self._pieces.append(piece)

    def allocate(self, shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None) -> View:
        """A new value in the arena, contiguous unless strides are given."""
        dtype = np.dtype(dtype)
        steps = dense(shape, dtype.itemsize) if strides is None else tuple(strides)
        reach = sum((size - 1) * step for size, step in zip(shape, steps, strict=True)) + dtype.itemsize
        return self.piece.place("arena", reach, shape, steps, dtype)

    def output(self, number: int, shape: Sequence[int], dtype: Any) -> View:
        """The caller's array of this number."""
        dtype = np.dtype(dtype)
        strides = dense(shape, dtype.itemsize)
        return self.piece.place("output", prod(shape) * dtype.itemsize, shape, strides, dtype, number)

    def keep(self, array: Array) -> int:
        """The address of an array that lives as long as the plan."""
        self.piece.arrays.append(array)
        return address(array)

    def emit(
        self, kernel: str, units: int, values: Mapping[str, Word],
        reads: Sequence[View | None] = (), writes: Sequence[View] = (), work: float = 0.0, over: View | None = None,
    ) -> None:  # fmt: skip
        """Append a record.

        Args:
            kernel: name of the kernel.
            units: number of pieces of work that threads may share.
            values: words of the record by the names of FIELDS; those left out are 0.
            reads, writes: buffers that the record uses, for the layout of the arena, besides those in `values`.
            work: estimate of the nanoseconds that the record takes.
            over: what is read in each place before the first of `writes` is written there, if its memory may be used.

        Raises:
            OverflowError: an element of a view lies outside of its buffer.
        """
        for view in (*reads, *writes):
            if view is not None and not view.is_inside:
                raise OverflowError(f"{kernel} would leave its memory: {view.shape} of {view.buffer.nbytes} bytes")
        row: list[Word] = [values.get(name, 0) for name in FIELDS[kernel]]
        row[1] = units
        touched = [view.buffer for view in (*reads, *writes) if view is not None]
        touched += [word[0] for word in row if isinstance(word, tuple)]
        self.piece.add(kernel, row, touched, work)
        if over is not None:
            self.piece.over.append((over.buffer, writes[0].buffer))

    def finish(self, inputs: int, outputs: Sequence[Result], address_of: Callable[[str], int]) -> Plan:
        """Lay out the arena and make the plan; `address_of` is asked for the code of each kernel."""
        self._pieces = [piece for piece in paced(self._pieces) if piece.kernels or piece.arrays]  # most add nothing
        kernels = [kernel for piece in paced(self._pieces) for kernel in piece.kernels]
        alive = self._alive()
        fault = ArenaBuffer("arena", 8, first=0, last=len(kernels))  # alive from the first record to the last
        faults = any(piece.faults for piece in self._pieces)
        over = [pair for piece in paced(self._pieces) for pair in piece.over]
        nbytes = arena.lay_out([*alive, fault] if faults else alive, over)
        flat = [piece.flat() for piece in paced(self._pieces)]
        words = [*(rows for rows, *_ in paced(flat)), *(table for _, *tables in paced(flat) for table in tables)]
        template = np.concatenate([item.numbers for item in paced(words)])
        template[: len(kernels) * WORDS : WORDS] = [address_of(kernel) for kernel in paced(kernels)]
        patches, constants = _link(words, template, fault)
        arrays = [array for piece in paced(self._pieces) for array in piece.arrays]
        work = np.array([cost for piece in paced(self._pieces) for cost in piece.work])
        place = fault.offset if faults else -1
        trace = self._trace(alive, [len(item.numbers) for item in words], patches)
        return Plan(template, patches, nbytes, inputs, tuple(outputs), arrays, work, place, constants, trace)

    def _trace(self, alive: Sequence[ArenaBuffer], sizes: Sequence[int], patches: Patches) -> StepTokens:
        """The steps of the plan; `sizes` are of the pieces' rows, then of their tables, in the plan's table."""
        steps: list[tuple[object, int]] = []
        numbers, first = [], 0
        for piece in paced(self._pieces):
            numbers.append(len(steps))  # a piece without records is part of the next step
            if piece.kernels:
                steps.append((piece.token, first))
            first += len(piece.kernels)
        placed = paced(zip(numbers, self._pieces, strict=True))
        tables = [number for number, piece in placed for _ in piece.flat()[1:]]
        spans = [(buffer.offset, buffer.nbytes, buffer.first, buffer.last) for buffer in paced(alive)]
        trace = StepTokens(
            tuple(token for token, _ in paced(steps)),
            np.array([*(record for _, record in paced(steps)), first]),
            np.cumsum([0, *sizes[:-1]]),
            np.array([*numbers, *tables]),
            tuple(alive),
            np.array(spans, np.int64).reshape(-1, 4).T,
        )
        first_words = {number: int(where.min()) for (kind, number), (where, _) in patches.items() if kind == "output"}
        return replace(trace, outputs={number: int(trace.steps_of(word)) for number, word in first_words.items()})

    def _alive(self) -> list[ArenaBuffer]:
        """The buffers of the arena, with the first and last record that uses each."""
        alive: dict[int, ArenaBuffer] = {}
        number = 0
        for piece in paced(self._pieces):
            for touched in piece.touched:
                for buffer in touched:
                    if id(buffer) not in alive:
                        alive[id(buffer)] = buffer
                        buffer.first = number
                    buffer.last = number
                number += 1
        return list(alive.values())


def _link(words: Sequence[Words], template: Array, fault: ArenaBuffer) -> tuple[Patches, Constants]:
    """Fill the addresses of constants into a plan's table; `words` are blocks of it that follow each other.

    Returns:
        the words of addresses that are known only in a run, and those of constants.
    """
    bases = np.cumsum([0, *(len(item.numbers) for item in paced(words))]).tolist()
    for item, base in zip(paced(words), bases, strict=False):
        if item.buffer is not None:
            item.buffer.offset = 8 * base
    places: dict[tuple[str, int], list[tuple[int, int]]] = {}
    constants: dict[int, tuple[Array, list[int]]] = {}
    for item, base in zip(paced(words), bases, strict=False):
        for at, buffer, offset in item.addresses:
            if buffer.array is not None:
                start = address(buffer.array)
                template[base + at] = start + offset
                constants.setdefault(start, (buffer.array, []))[1].append(base + at)
            else:
                known = fault if buffer.kind == "fault" else buffer
                places.setdefault((known.kind, known.index), []).append((base + at, known.offset + offset))
    return {key: tuple(np.array(pairs, np.int64).T.copy()) for key, pairs in places.items()}, constants
