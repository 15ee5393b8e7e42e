"""The nodes of a scope in file order, in blocks: one goes in or out without 100,000 others being shifted for it."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import overload

from onnxlab.graph.index.order_labels import label_between, spread

BLOCK = 2048
"""Ids in a block of a file just read; a block that has grown to twice as many is split in two."""


class FileOrder(Sequence[int]):
    """Ids that read like a list, each with a label, greater than that of the id before it, by which it is found.

    Args:
        labels: ascending, one for each of `ids`; by default evenly spread.
    """

    __slots__ = ("_ends", "_firsts", "_ids", "_labels", "_moved", "_size")

    def __init__(self, ids: Iterable[int] = (), labels: list[int] | None = None) -> None:
        self._fill(list(ids), labels)

    def _fill(self, ids: list[int], labels: list[int] | None = None) -> None:
        labels = spread(len(ids)) if labels is None else labels
        cuts = range(0, len(ids), BLOCK)
        self._ids = [ids[cut : cut + BLOCK] for cut in cuts] or [[]]
        self._labels = [labels[cut : cut + BLOCK] for cut in cuts] or [[]]
        self._firsts = labels[::BLOCK] or [0]
        self._size = len(ids)
        self._ends: list[int] | None = None  # ends of the blocks, computed when first needed
        self._moved = (0, 0)  # (first block whose end has moved since, by how many)

    def insert(self, position: int, ident: int) -> int:
        """Put an id at a position and return its label; 0, with nothing done, where the gap there is used up."""
        block, at = self._find(position)
        ids, labels = self._ids[block], self._labels[block]
        if at:
            low = labels[at - 1]
        else:
            low = self._labels[block - 1][-1] if block else 0
        label = label_between(low, labels[at] if at < len(labels) else None)
        if not label:
            return 0
        ids.insert(at, ident)
        labels.insert(at, label)
        self._shift(block, 1)
        if not at:
            self._firsts[block] = label
        if len(ids) > 2 * BLOCK:
            self._cut(block)
        return label

    def remove(self, label: int) -> None:
        """Take out the id with a label."""
        block = bisect_right(self._firsts, label) - 1
        ids, labels = self._ids[block], self._labels[block]
        at = bisect_left(labels, label)
        del ids[at], labels[at]
        self._shift(block, -1)
        if not ids and len(self._ids) > 1:
            del self._ids[block], self._labels[block], self._firsts[block]
            self._ends = None
        elif not at and ids:
            self._firsts[block] = labels[0]

    def position(self, label: int) -> int:
        """Position of the id with a label."""
        block = bisect_right(self._firsts, label) - 1
        return self._start(block) + bisect_left(self._labels[block], label)

    def spread(self) -> Iterator[tuple[int, int]]:
        """Give all labels anew; returns the ids with them."""
        self._fill(list(self))
        return zip(self, chain.from_iterable(self._labels), strict=True)

    def _find(self, position: int) -> tuple[int, int]:
        """(block, place in it) of a position, or of the end."""
        ends, (at, moved) = self._known_ends(), self._moved
        if position < ends[at] + moved:
            block = bisect_right(ends, position, 0, at)
        else:
            block = min(bisect_right(ends, position - moved, at + 1), len(ends) - 1)
        return block, position - self._start(block)

    def _start(self, block: int) -> int:
        """Position of the first id of a block."""
        ends, (at, moved) = self._known_ends(), self._moved
        return (ends[block - 1] + (moved if block > at else 0)) if block else 0

    def _known_ends(self) -> list[int]:
        if self._ends is None:
            self._ends, self._moved = list(accumulate(map(len, self._ids))), (0, 0)
        return self._ends

    def _shift(self, block: int, by: int) -> None:
        """Note that a block has one id more or less. Where this follows another block's, all ends are counted anew."""
        self._size += by
        at, moved = self._moved
        if at == block or not moved:
            self._moved = (block, moved + by)
        else:
            self._ends = None

    def _cut(self, block: int) -> None:
        ids, labels = self._ids[block], self._labels[block]
        self._ids[block : block + 1] = ids[:BLOCK], ids[BLOCK:]
        self._labels[block : block + 1] = labels[:BLOCK], labels[BLOCK:]
        self._firsts.insert(block + 1, labels[BLOCK])
        self._ends = None

    # -- a sequence -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._ids)

    def __reversed__(self) -> Iterator[int]:
        return reversed(list(self))

    @overload
    def __getitem__(self, key: int) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> list[int]: ...

    def __getitem__(self, key: int | slice) -> int | list[int]:
        if isinstance(key, slice):
            return list(self)[key]
        position = key + self._size if key < 0 else key
        if not 0 <= position < self._size:
            raise IndexError(f"no node at position {key}: there are {self._size}")
        block, at = self._find(position)
        return self._ids[block][at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FileOrder({list(self)!r})"
