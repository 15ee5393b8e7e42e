"""N-grams as a tree of items: all places of an array go down one item at a time, together."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from onnxlab.ops.base.kernel_helpers import Array

Gram = tuple[Any, ...]
_DENSE = 1 << 16
"""The most entries of a table that has one for each pair of a node and an item; larger ones are searched."""


def columns_of(pool: Sequence[Any], counts: Sequence[int], indexes: Sequence[int]) -> dict[Gram, int]:
    """The column of each n-gram of a pool, in which `counts` says where those of each length begin."""
    numbers: dict[Gram, int] = {}
    for length, (start, stop) in enumerate(pairwise([*counts, len(pool)]), 1):
        for place in range(start, stop, length):
            numbers.setdefault(tuple(pool[place : place + length]), len(numbers))
    return {gram: indexes[number] for gram, number in numbers.items()}


def width_of(indexes: Sequence[int] | None) -> int:
    """The number of columns of n-grams at these indexes."""
    return max(indexes or (), default=-1) + 1


_LARGE = 1e20
"""Weights below it stay finite, times any count."""


def _weights(width: int, indexes: Sequence[int], weights: Sequence[float] | None) -> Array:
    """The weight of each column."""
    weight = np.ones(width, np.float32)
    if weights is not None:
        weight[list(indexes)] = weights
    return weight


class GramTree:
    """N-grams of at least one item.

    Args:
        columns: the column of each.
        width: the column of what is no n-gram.

    Attributes:
        items: {item of an n-gram: its number}.
        unknown: the number of what is no item.
        levels: one for each item of the longest n-grams.
    """

    def __init__(self, columns: Mapping[Gram, int], width: int) -> None:
        items = {item: number for number, item in enumerate(dict.fromkeys(item for gram in columns for item in gram))}
        self.items, self.unknown, self._width = items, len(items), width
        self._first, self._numbers = _table(items)
        self.levels: list[GramLevel] = []
        nodes: dict[Gram, int] = {(): 0}
        for depth in range(1, max(map(len, columns), default=0) + 1):
            grams = dict.fromkeys(gram[:depth] for gram in columns if len(gram) >= depth)
            level = {nodes[gram[:-1]] * (len(items) + 1) + items[gram[-1]]: gram for gram in grams}
            self.levels.append(GramLevel(level, columns, len(nodes), len(items), width))
            nodes = {gram: number for number, gram in enumerate(grams)}

    def number(self, item: Any) -> int:
        """The number of an item, another one for what is no item."""
        return self.items.get(item, self.unknown)

    def columns(self, numbers: Array, least: int, most: int, skip: int) -> Array:
        """[rows, n-grams]: the column of each in [rows, items], of these lengths, up to `skip` items between two.

        N-grams of a single item are listed once, since they have nothing to skip.

        Args:
            numbers: of the items.
        """
        size, levels = numbers.shape[1], self.levels[:most]
        parts = []
        for distance in range(1, max(1, min(skip + 1, size)) + 1):
            keys = nodes = numbers
            for depth, level in enumerate(levels):
                if depth:
                    keys = nodes[:, :-distance] + numbers[:, depth * distance :]
                if not keys.size:
                    break
                places = level.places(keys)
                if depth + 1 >= least and (depth or distance == 1):
                    parts.append(level.columns.take(places))
                if level is not levels[-1]:
                    nodes = level.nodes.take(places)
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts, axis=1) if parts else np.full((len(numbers), 0), self._width, np.intp)

    def numbered(self, rows: Array) -> Array:
        """The number of each item of an array."""
        if self._numbers is not None and rows.dtype.kind in "iu":
            return self._numbers.take(rows.astype(np.int64, copy=False) - self._first, mode="clip")
        numbers = map(self.items.get, rows.ravel().tolist(), repeat(self.unknown))
        return np.fromiter(numbers, np.intp, rows.size).reshape(rows.shape)


def _table(items: Mapping[Any, int]) -> tuple[int, Array | None]:
    """(one less than the least item, the number of each from there on, unknown ones at both ends): of whole numbers."""
    if not items or not all(isinstance(item, int | np.integer) for item in items):
        return 0, None
    first, last = int(min(items)) - 1, int(max(items)) + 1
    if last - first > _DENSE or first < -(1 << 63):
        return 0, None
    numbers = np.full(last - first + 1, len(items), np.intp)
    numbers[np.array([*items]) - first] = [*items.values()]
    return first, numbers


class GramLevel:
    """The pairs of a node of one depth and an item, and where they lead.

    Args:
        grams: what each pair of a node and an item leads to, by `node * (items + 1) + item`.
        columns: the columns of those that are n-grams.
        count: of nodes of this depth.
        items: how many there are; this number itself stands for unknown ones.
        width: the column of what is no n-gram.

    Attributes:
        keys: those of the pairs in order, and -1; None where each key is its own place.
        nodes: first key of what is led to, by the place of the pair.
        columns: its column.
    """

    def __init__(
        self, grams: Mapping[int, Gram], columns: Mapping[Gram, int], count: int, items: int, width: int
    ) -> None:  # fmt: skip
        keys = sorted(grams)
        order = {gram: number for number, gram in enumerate(grams.values())}
        dead = (len(grams) * (items + 1),)
        nodes = [order[grams[key]] * (items + 1) for key in keys]
        ends = [columns.get(grams[key], width) for key in keys]
        size = (count + 1) * (items + 1)
        self.keys: Array | None = None
        if size > _DENSE:
            self.keys = np.array([*keys, -1])
            self.nodes, self.columns = np.array([*nodes, *dead]), np.array([*ends, width])
        else:
            self.nodes, self.columns = np.full(size, dead), np.full(size, width)
            self.nodes[keys], self.columns[keys] = nodes, ends

    def places(self, keys: Array) -> Array:
        """The places of keys in `nodes` and `columns`."""
        if self.keys is None:
            return keys
        places = np.searchsorted(self.keys[:-1], keys)
        return np.where(self.keys.take(places) == keys, places, len(self.keys) - 1)


class GramCounter:
    """Counts and weights of n-grams by the columns of TfIdfVectorizer.

    Attributes:
        tree: of the n-grams.
        width: number of columns.
        once: whether it only counts whether an n-gram is there.
        weight: float32 of each column; None where none is to be multiplied.
    """

    def __init__(
        self, pool: Sequence[Any], counts: Sequence[int], indexes: Sequence[int], mode: str,
        weights: Sequence[float] | None,
    ) -> None:  # fmt: skip
        self.width = width_of(indexes)
        self.tree = GramTree(columns_of(pool, counts, indexes), self.width)
        self.once = mode == "IDF"
        weight = None if mode == "TF" else _weights(self.width, indexes, weights)
        self.weight = None if weight is None or (weight == 1).all() else weight
        self._large = weight is not None and not np.abs(weight).max(initial=0) < _LARGE
        row = self.width + 1
        self._begin = lru_cache(8)(lambda rows: np.arange(0, rows * row, row)[:, None])

    def counted(self, places: Array) -> Array:
        """float32 [rows, width]: counts, or weights, of columns [rows, n-grams], in which `width` is no n-gram."""
        rows, row = len(places), self.width + 1
        if rows > 1:
            places += self._begin(rows)
        counts: Array = np.bincount(places.ravel(), minlength=rows * row)
        counts = counts.reshape(rows, row)[:, : self.width]
        if self.once:
            counts = counts > 0
        numbers = counts.astype(np.float32)
        if self.weight is not None:
            with np.errstate(all="ignore") if self._large else nullcontext():
                numbers *= self.weight
        return numbers
