"""Builders of plans: records with symbolic addresses come in, `finish` lays out the arena and links them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from onnxlab.execution.base.background import paced
from onnxlab.execution.numba.machine.records import FIELDS, WORDS
from onnxlab.execution.numba.plan import arena
from onnxlab.execution.numba.plan.checkpoints import StepTokens
from onnxlab.execution.numba.plan.memory import address
from onnxlab.execution.numba.plan.pieces import FAULT, PlanPiece, Word, Words
from onnxlab.execution.numba.plan.plan import Patches, Plan, Result
from onnxlab.execution.numba.plan.views import ArenaBuffer, Array, View, dense


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

    def fault(self) -> View:
        """The place where kernels report an index beyond its axis: an int64 that is 0 when a run begins."""
        return FAULT

    def table(self, words: Sequence[Word]) -> tuple[ArenaBuffer, int]:
        """Words beside the records, which may hold addresses; returns their place."""
        return self.piece.table(words)

    def emit(
        self, kernel: str, units: int, values: Mapping[str, Word],
        reads: Sequence[View | None] = (), writes: Sequence[View] = (), work: float = 0.0,
    ) -> None:  # fmt: skip
        """Append a record.

        Args:
            kernel: name of the kernel.
            units: number of pieces of work that threads may share.
            values: words of the record by the names of FIELDS; those left out are 0.
            reads, writes: buffers that the record uses, for the layout of the arena, besides those in `values`.
            work: estimate of the nanoseconds that the record takes.

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

    def finish(self, inputs: int, outputs: Sequence[Result], address_of: Callable[[str], int]) -> Plan:
        """Lay out the arena and make the plan; `address_of` is asked for the code of each kernel."""
        kernels = [kernel for piece in paced(self._pieces) for kernel in piece.kernels]
        alive = self._alive()
        fault = ArenaBuffer("arena", 8, first=0, last=len(kernels))  # alive from the first record to the last
        faults = any(piece.faults for piece in self._pieces)
        nbytes = arena.lay_out([*alive, fault] if faults else alive)
        flat = [piece.flat() for piece in paced(self._pieces)]
        words = [*(rows for rows, *_ in paced(flat)), *(table for _, *tables in paced(flat) for table in tables)]
        template = np.concatenate([item.numbers for item in paced(words)])
        template[: len(kernels) * WORDS : WORDS] = [address_of(kernel) for kernel in paced(kernels)]
        patches, constants = _link(words, template, fault)
        arrays = [array for piece in paced(self._pieces) for array in piece.arrays]
        arrays += [buffer.array for item in paced(words) for _, buffer, _ in item.addresses if buffer.array is not None]
        work = np.array([cost for piece in paced(self._pieces) for cost in piece.work])
        place = fault.offset if faults else -1
        trace = self._trace(alive, [len(item.numbers) for item in words]).knowing(
            {number: where for (kind, number), (where, _) in patches.items() if kind == "output"})  # fmt: skip
        return Plan(template, patches, nbytes, inputs, tuple(outputs), arrays, work, place, constants, trace)

    def _trace(self, alive: Sequence[ArenaBuffer], sizes: Sequence[int]) -> StepTokens:
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
        return StepTokens(
            tuple(token for token, _ in paced(steps)),
            np.array([*(record for _, record in paced(steps)), first]),
            np.cumsum([0, *sizes[:-1]]),
            np.array([*numbers, *tables]),
            tuple(alive),
            np.array(spans, np.int64).reshape(-1, 4).T,
        )

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


def _link(words: Sequence[Words], template: Array, fault: ArenaBuffer) -> tuple[Patches, dict[int, list[int]]]:
    """Fill the addresses of constants into a plan's table; `words` are blocks of it that follow each other.

    Returns:
        the words of addresses that are known only in a run, and {address of a constant: words that hold it}.
    """
    bases = np.cumsum([0, *(len(item.numbers) for item in paced(words))]).tolist()
    for item, base in zip(paced(words), bases, strict=False):
        if item.buffer is not None:
            item.buffer.offset = 8 * base
    places: dict[tuple[str, int], list[tuple[int, int]]] = {}
    constants: dict[int, list[int]] = {}
    for item, base in zip(paced(words), bases, strict=False):
        for at, buffer, offset in item.addresses:
            if buffer.array is not None:
                start = address(buffer.array)
                template[base + at] = start + offset
                constants.setdefault(start, []).append(base + at)
            else:
                known = fault if buffer.kind == "fault" else buffer
                places.setdefault((known.kind, known.index), []).append((base + at, known.offset + offset))
    return {key: tuple(np.array(pairs, np.int64).T.copy()) for key, pairs in places.items()}, constants
