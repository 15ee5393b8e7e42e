"""Python's garbage collector: kept out while many records are made at once, called where few objects hold much."""

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from onnxlab.forking import fork_safe

AGED = 2_000_000
"""Objects that may be moved to the oldest generation before a full collection looks for garbage among them."""

PATIENCE = 5
"""Factor of AGED while a picture is waited for: nothing in a picture refers to itself."""

HELD = 1 << 28
"""Bytes that models may come to hold before a full collection looks for models that are referenced no more."""

_aged = 0
_held = 0
_foreign = False  # whether other code has frozen objects
_freezing = fork_safe(threading.Lock())


@contextlib.contextmanager
def no_collection(before: bool = True, most: int | None = None) -> Iterator[None]:
    """Collect no garbage inside: it takes a third of the time in which 100,000 records are made, and finds nothing.

    The next collection does not look at the objects made inside either: they are moved to the oldest generation at
    once. Since Python's thresholds for a full collection do not count them then, a full collection is made here after
    some millions of objects, so that a program that opens one model after the other does not keep them all.

    Args:
        before: whether a full collection may run now; False where a user waits for what is done inside.
        most: moved objects up to which no full collection is made here; default: AGED.
    """
    global _aged
    enabled = gc.isenabled()
    if before and enabled and _aged > (AGED if most is None else most):
        _aged = 0
        gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            count_as_old()
            gc.enable()


def count_as_old() -> None:
    """Move all objects made since the last collection to the oldest generation: they count for no full collection.

    Nothing is done where other code keeps objects out of collections, as servers do before they fork: unfreezing would
    end that. Once this is known it is not asked again, because Python counts all frozen objects for the answer, 20 ms
    for a million.
    """
    global _aged, _foreign
    if _foreign or not _freezing.acquire(blocking=False):
        return
    try:
        _foreign = gc.get_freeze_count() > 0
        if not _foreign:
            _aged += gc.get_count()[0]
            gc.freeze()
            gc.unfreeze()
    finally:
        _freezing.release()


def about_to_hold(nbytes: int) -> None:
    """Count what a model is about to hold, and collect garbage before it is too much.

    A model without references is freed at once, unless it is part of a reference cycle, as its networkx graphs make
    one: then the next garbage collection frees it. Python's thresholds count objects, and would let ten large models of
    a few thousand objects each pile up.
    """
    global _aged, _held
    if _held and _held + nbytes > HELD and gc.isenabled():
        _aged = _held = 0
        gc.collect()
    _held += nbytes


def give_back() -> None:
    """Give memory that is free back to the system, after something large was replaced by its like.

    The C library of Linux keeps some large freed blocks for later, and those of protobuf and NumPy seldom have the same
    size.
    """
    if trim := _trim():
        trim(0)


@cache
def _trim() -> Callable[[int], Any] | None:
    import ctypes

    with contextlib.suppress(OSError, TypeError, AttributeError):  # other systems have none
        return ctypes.CDLL(None).malloc_trim
    return None
