"""Python's garbage collector: kept out while many records are made at once, called where few objects hold much."""

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from onnxlab.forking import fork_safe

AGED = 2_000_000
"""Objects that may be put among the old ones before a whole collection looks for garbage in them."""

PATIENCE = 5
"""How many times as many where a picture is waited for: nothing in one refers to itself."""

HELD = 1 << 28
"""Bytes that models may come to hold before a whole collection looks for those that are referenced no more."""

_aged = 0
_held = 0
_foreign = False  # whether other code has frozen objects
_freezing = fork_safe(threading.Lock())


@contextlib.contextmanager
def no_collection(before: bool = True, most: int | None = None) -> Iterator[None]:
    """Collect no garbage inside: it takes a third of the time in which 100,000 records are made, and finds nothing.

    Nor does the collection that would follow: what was made counts as old at once. Since that keeps it out of the sums
    by which Python decides on a whole collection, one is made here after some millions of objects, so that a program
    that opens one model after the other does not keep them all.

    Args:
        before: whether that may be now; False where others wait for what is done.
        most: objects that may be old before one is made here, by default AGED.
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
    """Put all that was made since the last collection among the old objects: it counts for no whole collection.

    Not where other code keeps objects out of collections, as servers do before they fork: unfreezing would end it.
    That is asked until it is so, because Python answers by counting all of them, 20 ms for a million.
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

    A model that was dropped goes at once, but where something refers to it that refers to itself, as its networkx
    graphs do: then when Python collects garbage. That counts objects: it would let ten large models pile up, of a few
    thousand objects each.
    """
    global _aged, _held
    if _held and _held + nbytes > HELD and gc.isenabled():
        _aged = _held = 0
        gc.collect()
    _held += nbytes


def give_back() -> None:
    """Give memory that is free back to the system, after something large was replaced by its like.

    The C library of Linux keeps some large pieces for later, and protobuf's and NumPy's are seldom of one size.
    """
    if trim := _trim():
        trim(0)


@cache
def _trim() -> Callable[[int], Any] | None:
    import ctypes

    with contextlib.suppress(OSError, TypeError, AttributeError):  # other systems have none
        return ctypes.CDLL(None).malloc_trim
    return None
