"""Tables of objects that exist once for each key, for as long as somebody holds them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any
from weakref import ref


class Interned(dict[Hashable, Any]):
    """Weak references by key. A look, `(ref := table.get(key)) and ref()`, runs no Python code but the caller's."""

    __slots__ = ("_died", "_lock")

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()  # an object may die, and `_forget` be called, while its own thread holds it
        self._died = self._forget  # one method object for all references

    def made(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What the key stands for, from now on what `make` returns where it stands for nothing."""
        with self._lock:
            known = self.get(key)
            found = known and known()
            if found is None:
                found = make()
                self[key] = ref(found, partial(self._died, key))
            return found

    def _forget(self, key: Hashable, dead: ref[Any]) -> None:
        with self._lock:
            if self.get(key) is dead:  # else the key stands for another object by now
                del self[key]
