"""Locks that are free in a forked child, where no other thread lives that could hold them; imports are whole there.

Otherwise a child would wait forever for a thread that it does not have, such as the one that compiles in the
background. Work that another thread was doing at the moment of the fork stays half done in the child. The caches of
onnxlab tolerate that; a caller must not fork while another thread is in the middle of an edit.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

L = TypeVar("L")
F = TypeVar("F", bound=Callable[[], None])

_PATIENCE = 1.0  # seconds that a fork waits for imports, or for a lock

_locks: WeakSet[Any] = WeakSet()
_awaited: WeakSet[Any] = WeakSet()
_taken = threading.local()


def fork_safe(lock: L, await_holder: bool = False) -> L:
    """A `threading.Lock()` or `RLock()`, made free in forked children, where the thread that forks does not hold it.

    With `await_holder` a fork waits for the thread that holds the lock, since that is in foreign code with a lock of
    its own, which nothing frees in the child: OpenBLAS has one for its number of threads.
    """
    (_awaited if await_holder else _locks).add(lock)
    return lock


def in_child(function: F) -> F:
    """Have a function called in forked children; may be used as a decorator."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


def _take() -> None:
    _taken.locks = [lock for lock in list(_awaited) if lock.acquire(timeout=_PATIENCE)]


def _release() -> None:
    for lock in _taken.locks:
        lock.release()


def _free() -> None:
    for lock in [*_locks, *_awaited]:
        if lock in _awaited or not getattr(lock, "_is_owned", bool)():  # of an RLock
            lock._at_fork_reinit()


def _wait_for_imports() -> None:
    """Let other threads finish what they import: a child has half of such a module for ever.

    Many modules are imported when they are first used, by NumPy too. A fork inside of an import does not wait for that
    import.
    """
    until = time.monotonic() + _PATIENCE
    while _is_importing() and not _is_inside_import() and time.monotonic() < until:
        time.sleep(0.001)


def _is_importing() -> bool:
    specs = (getattr(module, "__spec__", None) for module in list(sys.modules.values()))
    return any(getattr(spec, "_initializing", False) is True for spec in specs)


def _is_inside_import() -> bool:
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


def _forget_half_imports() -> None:
    """Have the child import anew what another thread was still importing: the wait was too short, or just over.

    The import system has no public way to tell which thread imports a module: `_module_locks` is CPython's own.
    """
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    for name, reference in list(locks.items()):
        lock = reference()
        if getattr(lock, "owner", None) not in (None, threading.get_ident()):
            del locks[name]
            sys.modules.pop(name, None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports, after_in_child=_free)
    os.register_at_fork(after_in_child=_forget_half_imports)
    os.register_at_fork(before=_take, after_in_parent=_release)
