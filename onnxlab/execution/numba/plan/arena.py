"""The layout of the arena: buffers that are not alive at once share memory."""

from __future__ import annotations

from bisect import insort
from functools import lru_cache

from onnxlab.execution.base import background
from onnxlab.execution.base.background import paced
from onnxlab.execution.numba.plan.memory import ALIGNMENT
from onnxlab.execution.numba.plan.views import ArenaBuffer


def lay_out(buffers: list[ArenaBuffer]) -> int:
    """Give each buffer an offset; returns the arena's size. Cached, since most edits leave sizes and uses alone."""
    offsets, total = _places(tuple((buffer.nbytes, buffer.first, buffer.last) for buffer in paced(buffers)))
    for buffer, offset in paced(zip(buffers, offsets, strict=True)):
        buffer.offset = offset
    return total


@lru_cache(maxsize=32)
def _places(spans: tuple[tuple[int, int, int], ...]) -> tuple[list[int], int]:
    """Offsets of buffers by (bytes, first and last use), the largest first; buffers alive at once do not overlap."""
    buffers = [ArenaBuffer("arena", nbytes, first=first, last=last) for nbytes, first, last in paced(spans)]
    placed: list[ArenaBuffer] = []
    total = 0
    for buffer in sorted(buffers, key=lambda item: -item.nbytes):
        background.rest()  # it is clear of all that were placed before
        size = -(-buffer.nbytes // ALIGNMENT) * ALIGNMENT + ALIGNMENT
        offset = 0
        for other in placed:  # by offset
            if other.first > buffer.last or other.last < buffer.first:
                continue
            if other.offset - offset >= size:
                break
            offset = max(offset, other.offset + -(-other.nbytes // ALIGNMENT) * ALIGNMENT + ALIGNMENT)
        buffer.offset = offset
        total = max(total, offset + size)
        insort(placed, buffer, key=lambda item: item.offset)
    return [buffer.offset for buffer in buffers], total
