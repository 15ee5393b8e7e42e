"""Two orders of the same things: what has to move for one to become the other."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")


def moved(before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    """The fewest items that have to move for the common ones of two orders to agree."""
    place = {item: at for at, item in enumerate(before)}
    common = [item for item in after if item in place]
    stays = longest_increasing([place[item] for item in common])
    return [item for at, item in enumerate(common) if at not in stays]


def numbered(items: Sequence[Item]) -> list[tuple[Item, int]]:
    """Items with the number of equal ones before each: no two are the same."""
    seen: Counter[Item] = Counter()
    pairs = []
    for item in items:
        pairs.append((item, seen[item]))
        seen[item] += 1
    return pairs


def longest_increasing(numbers: Sequence[int]) -> set[int]:
    """Positions of a longest increasing part of a list of different numbers."""
    tails: list[int] = []
    ends: list[int] = []
    before = [-1] * len(numbers)
    for at, number in enumerate(numbers):
        place = bisect_left(tails, number)
        before[at] = ends[place - 1] if place else -1
        if place == len(tails):
            tails.append(number)
            ends.append(at)
        else:
            tails[place], ends[place] = number, at
    positions: set[int] = set()
    at = ends[-1] if ends else -1
    while at >= 0:
        positions.add(at)
        at = before[at]
    return positions
