"""Inputs that show a difference, made smaller: fewer elements in an axis, fewer numbers that are not zero."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from onnxlab.shapes import Fact
from onnxlab.transforms import verification
from onnxlab.transforms.verification import Feeds, Judgment, RunModel

SECONDS: Final = 3.0
"""Time that making inputs smaller may take."""

_MOST_TRIES: Final = 200


def smallest(
    feeds: Feeds, differs: Callable[[Feeds], bool], axes: Sequence[Sequence[tuple[str, int]]], seconds: float = SECONDS
) -> dict[str, Any]:
    """Make inputs smaller as long as they still show a difference.

    The sizes of symbolic dims come first: 1 is tried, then either half, again and again. Elements of floats come next:
    blocks of all elements, of half of them, of a quarter and so on are set to zero, until the time is spent.

    Args:
        feeds: inputs that show a difference.
        differs: a function that tells whether inputs show the difference.
        axes: for each symbolic dim the axes of inputs that have its size.
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
        block //= 2
        if block and array.size // block > _MOST_TRIES:
            return


def shrunk(
    judged: Judgment, before: RunModel, after: RunModel, facts: Mapping[str, Fact], zero_signs: bool = False
) -> Judgment:
    """The judgment of two models with the smallest inputs found for the same verdict.

    Args:
        judged: what differs, with inputs.
        before: the model as it was.
        after: the model as it is now.
        facts: facts of the inputs, by name.
        zero_signs: whether the sign of a zero counts.
    """
    if judged.verdict not in ("different", "finite inputs only") or not judged.feeds:
        return judged
    smaller = judged

    def differs(feeds: Feeds) -> bool:
        nonlocal smaller
        case = verification.case_of(before, judged.kind, feeds)
        again = verification.judge(after, [case], zero_signs)
        if again.verdict == judged.verdict:
            smaller = again
        return again.verdict == judged.verdict

    axes: dict[str, list[tuple[str, int]]] = {}
    for name, fact in facts.items():
        for axis, dim in enumerate(fact.shape or ()):
            if not isinstance(dim, int) and name in judged.feeds:
                axes.setdefault(str(dim), []).append((name, axis))
    smallest(judged.feeds, differs, list(axes.values()))
    return smaller
