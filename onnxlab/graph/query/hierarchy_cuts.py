"""Cuts of a long row of boxes into parts, where few values are live. Pure functions of positions.

A row is in topological order, so that its parts form no cycle wherever the cuts are.
"""

from collections.abc import Sequence
from functools import partial
from math import ceil, isqrt
from typing import Any

import numpy as np

Spans = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""For each value, the position of its producer and that of its last reader, which is greater."""


def cut(boxes: int, spans: Spans, former: Sequence[int], starts: int, limit: int) -> list[int]:
    """Return where parts start, 0 first: at most `limit` parts, none longer than `limit` where it can be.

    Args:
        boxes: number of boxes in the row.
        spans: positions of every value that lives within the row.
        former: positions of boxes that started a part the last time; kept as long as the parts stay within
            bounds, so that an edit does not shift every later cut.
        starts: number of parts the last time.
        limit: most boxes of a level.
    """
    positions = [0, *filter(None, former)]
    if len(positions) > max(1, starts // 2) and _longest(positions, boxes) <= limit:
        return positions
    return _cut_where_narrow(live_values(boxes, spans), part_length(boxes, limit))


PARTS = 18
"""About the most parts of a long row; parts that are still too long are cut again."""


def part_length(boxes: int, limit: int) -> int:
    """The length of parts: √boxes, longer where that would be more than PARTS (or half of `limit`) parts."""
    return max(isqrt(boxes), ceil(boxes / min(PARTS, max(1, limit // 2))))


def live_values(boxes: int, spans: Spans) -> np.ndarray[Any, Any]:
    """Number of values that are live between each position and the one before it; entry 0 is 0."""
    begins, read = spans
    change = np.bincount(begins + 1, minlength=boxes + 1) - np.bincount(read + 1, minlength=boxes + 1)
    return np.cumsum(change[:boxes])


_SHORT = 100
"""Places up to which a loop over a list is faster than an array operation."""


def _cut_where_narrow(live: np.ndarray[Any, Any], length: int) -> list[int]:
    """Start each part at the narrowest place 0.5 to 1.5 times `length` behind the last start, the nearest to `length`.

    Of two places equally near, the first is taken.
    """
    narrowest = partial(_narrowest, live) if length > _SHORT else partial(_narrowest_of_few, live.tolist())
    starts = [0]
    end = len(live) - length // 2
    while (low := starts[-1] + max(1, length // 2)) < end:
        ideal = starts[-1] + length
        high = min(starts[-1] + length + length // 2 + 1, end)
        starts.append(narrowest(low, high, ideal))
    return starts


def _narrowest(live: np.ndarray[Any, Any], low: int, high: int, ideal: int) -> int:
    window = live[low:high]
    places = np.flatnonzero(window == window.min()) + low
    return int(places[np.abs(places - ideal).argmin()])


def _narrowest_of_few(live: list[int], low: int, high: int, ideal: int) -> int:
    least = min(live[low:high])
    return min((at for at in range(low, high) if live[at] == least), key=lambda at: abs(at - ideal))


def _longest(starts: Sequence[int], boxes: int) -> int:
    return max(after - start for start, after in zip(starts, [*starts[1:], boxes], strict=True))
