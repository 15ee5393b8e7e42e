"""Tables of objects that exist once for each key, for as long as somebody holds them."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from functools import partial
from typing import Any
from weakref import ref


class Interned(dict[Hashable, Any]):
    """Weak references by key. A lookup, `(ref := table.get(key)) and ref()`, runs no Python code but the caller's.

    Attributes:
        lock: to be held from the last look whether a key is missing until `keep` has been called for it.
    """

    __slots__ = ("_died", "lock")

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.RLock()  # an object may die, and `_forget` be called, while its own thread holds it
        self._died = self._forget  # one method object for all references

    def keep(self, key: Hashable, value: Any) -> None:
        """Make `value` what the key stands for."""
        self[key] = ref(value, partial(self._died, key))

    def _forget(self, key: Hashable, dead: ref[Any]) -> None:
        with self.lock:
            if self.get(key) is dead:  # else the key stands for another object by now
                del self[key]
