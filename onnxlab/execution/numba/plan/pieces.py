"""Pieces of plans: the records of one step with symbolic addresses, and the words that they become."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from onnxlab.execution.numba.machine.records import WORDS
from onnxlab.execution.numba.plan.views import ArenaBuffer, Array, View

FAULT = View(ArenaBuffer("fault", 8), 0, (1,), (8,), np.dtype(np.int64))
"""The place where kernels report an index beyond its axis."""

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
        faults: whether a record may report an index beyond its axis.
        token: identity of the piece.
    """

    before: Sequence[View] = ()
    views: list[View] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    touched: list[list[ArenaBuffer]] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
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
        """Words beside the records; their address."""
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
