"""The cache that execution uses: a few entries by key, of which the one that was kept longest ago goes first."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Lru(OrderedDict[K, V]):
    """Entries by key, no more than a bound; `keep` adds one, or makes one the newest.

    A lookup leaves the order as it is: lookups are most of the work of the shortest runs. Threads may share a cache:
    no method fails where another thread takes an entry out meanwhile.

    Args:
        name: what the entries are, for tests and for reading.
        bound: how many there may be.
    """

    def __init__(self, name: str, bound: int) -> None:
        super().__init__()
        self.name = name
        self.bound = bound

    def keep(self, key: K, value: V) -> V:
        """Make an entry the newest, and drop the oldest entries beyond the bound; returns the value."""
        self.pop(key, None)
        self[key] = value
        while len(self) > self.bound:
            self.popitem(last=False)
        return value

    def __repr__(self) -> str:
        return f"<{len(self)} of {self.bound} {self.name}>"
