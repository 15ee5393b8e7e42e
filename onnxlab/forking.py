"""Locks that are free in a forked child, where no other thread lives that could hold them.

Without, a child would wait for ever for a thread that it does not have, such as the one that compiles in the
background. What such a thread was about at that moment stays half done in the child: caches of ours bear that, and an
edit that another thread was in the middle of is the caller's to keep apart from a fork.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar
from weakref import WeakSet

L = TypeVar("L")

_locks: WeakSet[Any] = WeakSet()


def fork_safe(lock: L) -> L:
    """A `threading.Lock()` or `RLock()`, made free in forked children, where the thread that forks does not hold it."""
    _locks.add(lock)
    return lock


def _free() -> None:
    for lock in list(_locks):
        if not getattr(lock, "_is_owned", bool)():  # of an RLock
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)
