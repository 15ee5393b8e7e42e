"""Inputs that show a difference, made smaller: fewer elements in an axis, fewer numbers that are not zero."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from onnxlab.transforms.verification import Feeds

SECONDS: Final = 3.0
"""Time that making inputs smaller may take."""

_MOST_TRIES: Final = 200


def smallest(
    feeds: Feeds, differs: Callable[[Feeds], bool], axes: Sequence[Sequence[tuple[str, int]]], seconds: float = SECONDS
) -> dict[str, Any]:
    """Make inputs smaller for as long as they still show what they show.

    First the sizes of symbolic dims: 1, then half of what they are. Then the elements: zeros in half of the elements of
    floats, in a quarter, and so on, as far as the time goes.

    Args:
        feeds: inputs that show a difference.
        differs: whether others show it too.
        axes: of each symbolic dim the axes of inputs that have its size.
        seconds: time to spend.
    """
    end = time.perf_counter() + seconds
    current, tries = dict(feeds), 0

    def is_kept(candidate: dict[str, Any]) -> bool:
        nonlocal current, tries
        tries += 1
        if tries > _MOST_TRIES or time.perf_counter() > end or not differs(candidate):
            return False
        current = candidate
        return True

    for same in axes:
        _shrink(same, lambda: current, is_kept)
    for name in feeds:
        _clear(name, lambda: current, is_kept)
    return current


Keep = Callable[[dict[str, Any]], bool]


def _shrink(same: Sequence[tuple[str, int]], current: Callable[[], dict[str, Any]], is_kept: Keep) -> None:
    """Cut the axes of one symbolic dim, from either end."""
    if is_kept(_cut(current(), same, slice(0, 1))):
        return
    while True:
        name, axis = same[0]
        size = current()[name].shape[axis]
        half = size // 2
        if half < 1 or not any(is_kept(_cut(current(), same, part)) for part in (slice(0, half), slice(half, size))):
            return


def _cut(feeds: dict[str, Any], same: Sequence[tuple[str, int]], part: slice) -> dict[str, Any]:
    smaller = dict(feeds)
    for name, axis in same:
        smaller[name] = np.ascontiguousarray(smaller[name][(slice(None),) * axis + (part,)])
    return smaller


def _clear(name: str, current: Callable[[], dict[str, Any]], is_kept: Keep) -> None:
    """Let elements of an input be zero, in ever smaller blocks."""
    array = current()[name]
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or not array.size:
        return
    block = array.size
    while block:
        for start in range(0, array.size, block):
            present = current()[name].reshape(-1)
            if not np.any(present[start : start + block]):
                continue
            cleared = present.copy()
            cleared[start : start + block] = 0
            is_kept({**current(), name: cleared.reshape(array.shape)})
        block //= 2 if block > 1 else 2
        if array.size // max(block, 1) > _MOST_TRIES:
            return


def axes_of(shapes: dict[str, Sequence[Any]]) -> list[list[tuple[str, int]]]:
    """Of each symbolic dim the axes that have it; dims are equal by what they are called."""
    known: dict[str, list[tuple[str, int]]] = {}
    for name, axis, dim in _symbolic(shapes):
        known.setdefault(dim, []).append((name, axis))
    return list(known.values())


def _symbolic(shapes: dict[str, Sequence[Any]]) -> Iterator[tuple[str, int, str]]:
    for name, dims in shapes.items():
        for axis, dim in enumerate(dims):
            if not isinstance(dim, int):
                yield name, axis, str(dim)
