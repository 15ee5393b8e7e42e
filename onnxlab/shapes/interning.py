"""Tables of objects that exist once for each key, for as long as they are referenced."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any
from weakref import ref

from onnxlab.forking import fork_safe


class _Kept(ref[Any]):
    """A weak reference that tells for which key it stands in its table."""

    __slots__ = ("key",)

    key: Hashable


class Interned(dict[Hashable, Any]):
    """Weak references by key. A look, `(ref := table.get(key)) and ref()`, runs no Python code but the caller's."""

    __slots__ = ("_died", "_lock")

    def __init__(self) -> None:
        super().__init__()
        # reentrant: an object may die, and `_forget` be called, in the thread that holds the lock
        self._lock = fork_safe(threading.RLock())
        self._died = self._forget  # one method object for all references

    def keep(self, key: Hashable, fresh: Any) -> Any:
        """Enter `fresh` for a key without an object and return the key's object: another thread may have been first."""
        reference = _Kept(fresh, self._died)
        reference.key = key
        if self.setdefault(key, reference) is reference:  # setdefault is atomic: no lock
            return fresh
        with self._lock:
            before = self.setdefault(key, reference)()
            if before is None:  # the object died; its `_forget` has yet to run
                self[key] = reference
                return fresh
            return before

    def _forget(self, dead: _Kept) -> None:
        with self._lock:
            if self.get(dead.key) is dead:  # else the key stands for another object by now
                del self[dead.key]
