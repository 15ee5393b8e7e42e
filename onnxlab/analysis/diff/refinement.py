"""Weisfeiler-Lehman refinement of the vertices of two scopes, anchored at the pairs that are known.

Each round describes a vertex without a partner by its neighbors: one number for what it is made from, one for what is
made of it. Each pair has a number of its own that no round changes, so that certainty spreads from pairs. All of this
is arithmetic of whole arrays, on 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from onnxlab.analysis.diff.vertices import Numbers, Places, Vertices

DEPTHS = (24, 12, 6, 3, 1, 0)
"""Rounds after which vertices are compared, the deepest first; a node and a value take one each."""

_ANCHOR = np.uint64(0x9E3779B97F4A7C15)
_DOWN = np.uint64(0xD1B54A32D192ED03)
_UP = np.uint64(0x8CB92BA72F3D8DD7)


def mixed(numbers: Numbers) -> Numbers:
    """The finalizer of splitmix64: every bit of the result depends on every bit."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


class Refinement:
    """Numbers of the vertices after some rounds.

    Args:
        partner: of each vertex the other model's, -1 where it has none; the next call sees what changes in it.
    """

    def __init__(self, vertices: Vertices, partner: list[int]) -> None:
        self._vertices, self._partner = vertices, partner
        self._source, self._target, self._slot = vertices.edges()
        self._labels = {
            "strict": _as_numbers(vertices.strict),
            "loose": _as_numbers(vertices.loose),
        }

    def levels(self, labels: str, depths: Sequence[int] = DEPTHS) -> Iterator[tuple[Places, Numbers]]:
        """(vertices without a partner, their numbers) after as many rounds as each depth says."""
        partner = np.array(self._partner, np.int64)
        open_ = np.flatnonzero(partner < 0)
        base = mixed(self._labels[labels] + np.uint64(1))
        first = np.arange(len(partner))
        pair = np.where(first < self._vertices.first, first, partner)
        base = np.where(partner < 0, base, mixed(pair.astype(np.uint64) + _ANCHOR))
        up = _Sums(self._source, self._target, self._slot * _UP, partner < 0)
        down = _Sums(self._target, self._source, self._slot * _DOWN, partner < 0)
        above, below = base.copy(), base.copy()
        numbers = {0: base[open_]}
        for depth in range(1, max(depths) + 1):
            up.add(above, base)
            down.add(below, base)
            if depth in depths:
                numbers[depth] = mixed(above[open_] + _UP) + mixed(below[open_] + _DOWN)
        for depth in depths:
            yield open_, numbers[depth]


class _Sums:
    """A round in one direction: what comes over the wires, summed by the vertex that they lead to."""

    def __init__(self, source: Places, target: Places, slot: Numbers, included: Places) -> None:
        chosen = np.flatnonzero(included[target])
        order = chosen[np.argsort(target[chosen], kind="stable")]
        self._source, self._slot = source[order], slot[order]
        targets = target[order]
        starts = np.flatnonzero(np.diff(targets, prepend=-1))
        self._starts, self._targets = starts, targets[starts]

    def add(self, numbers: Numbers, base: Numbers) -> None:
        """Give every vertex with wires the number of itself and of what they bring."""
        if not len(self._targets):
            return
        brought = mixed(numbers[self._source] + self._slot)
        sums = np.add.reduceat(brought, self._starts)
        numbers[self._targets] = mixed(base[self._targets] + sums)


def _as_numbers(hashes: list[int]) -> Numbers:
    return np.array(hashes, np.int64).view(np.uint64)


def unique_pairs(open_: Places, numbers: Numbers, first: int) -> Iterator[tuple[int, int]]:
    """Pairs of vertices whose number is that of one vertex in each model, and of no other; in order of the first."""
    order = np.argsort(numbers, kind="stable")
    ordered, vertices = numbers[order], open_[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else order
    sizes = np.diff(starts, append=len(ordered))
    twos = starts[sizes == 2]
    ours, theirs = vertices[twos], vertices[twos + 1]
    crossing = (ours < first) & (theirs >= first)
    yield from sorted(zip(ours[crossing].tolist(), theirs[crossing].tolist(), strict=True))


def groups(open_: Places, numbers: Numbers, first: int) -> Iterator[tuple[list[int], list[int]]]:
    """(vertices of the one model, of the other) with the same number, as many on either side; in order of the first."""
    order = np.argsort(numbers, kind="stable")
    ordered, vertices = numbers[order], open_[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    split = np.split(vertices, cuts) if len(vertices) else []
    for group in sorted(split, key=lambda members: int(members[0])):  # numbers differ from process to process
        if len(group) > 1 and len(group) % 2 == 0 and int((group < first).sum()) * 2 == len(group):
            half = len(group) // 2
            yield group[:half].tolist(), group[half:].tolist()
