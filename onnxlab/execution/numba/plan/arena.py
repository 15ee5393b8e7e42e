"""The layout of the arena: buffers that are not alive at once share memory."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from functools import lru_cache

from onnxlab.execution.base import background
from onnxlab.execution.base.background import paced
from onnxlab.execution.numba.plan.memory import ALIGNMENT
from onnxlab.execution.numba.plan.views import ArenaBuffer

Span = tuple[int, int, int]
"""Bytes that a buffer takes, its first and its last use."""


def lay_out(buffers: list[ArenaBuffer], over: Iterable[tuple[ArenaBuffer, ArenaBuffer]] = ()) -> int:
    """Give each buffer an offset; returns the arena's size. Cached, since most edits leave sizes and uses alone.

    Args:
        buffers: in the order of their first use.
        over: pairs of buffers of which the second may take the memory of the first, if no later record reads that.
    """
    before = {id(new): old for old, new in over if old.last == new.first and old.nbytes == new.nbytes}
    owners: dict[int, ArenaBuffer] = {}  # {id: the first buffer in its memory}
    ends: dict[ArenaBuffer, int] = {}  # last uses of these
    for buffer in paced(buffers):
        old = before.get(id(buffer))
        owner = owners[id(buffer)] = owners.get(id(old), buffer)
        ends[owner], buffer.is_replaced = buffer.last, False
        if old is not None and owner is not buffer:
            old.is_replaced = True
    # whole cache lines, and one more between a buffer and the next
    spans = tuple((-(-item.nbytes // ALIGNMENT) + 1) * ALIGNMENT for item in paced(ends))
    offsets, total = _places(tuple(zip(spans, [item.first for item in ends], ends.values(), strict=True)))
    places = dict(zip(ends, offsets, strict=True))
    for buffer in paced(buffers):
        buffer.offset = places[owners[id(buffer)]]
    return total


@lru_cache(maxsize=32)
def _places(spans: tuple[Span, ...]) -> tuple[list[int], int]:
    """Offsets of buffers, and the size of the arena: the largest are placed first, each as low as it fits."""
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first and last use, by offset
    offsets = [0] * len(spans)
    for number in sorted(range(len(spans)), key=lambda number: -spans[number][0]):
        background.rest()
        (size, first, last), offset = spans[number], 0
        for start, end, since, until in placed:
            if since > last or until < first:
                continue
            if start - offset >= size:
                break
            offset = max(offset, end)
        offsets[number] = offset
        insort(placed, (offset, offset + size, first, last))
    return offsets, max((end for _, end, _, _ in paced(placed)), default=0)
