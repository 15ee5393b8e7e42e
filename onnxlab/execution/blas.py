"""BLAS threads during runs.

OpenBLAS wakes all of its threads for products of a few microseconds and lets them spin: measured on two cores, the
products of a small transformer take four times as long with two threads as with one, and fifty times as long when
another process wants a core. So runs use one thread unless asked otherwise.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


@cache
def controller() -> Any:
    """threadpoolctl's controller of the libraries in this process; finding them takes milliseconds, so once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def limited(threads: int) -> AbstractContextManager[Any]:
    """Let BLAS use at most this many threads meanwhile; 0 changes nothing.

    The limit is the process's. The first of several threads that set one keeps control until it has put it back,
    so that a limit which the user set stays, and of runs at once the first decides.
    """
    if not threads:
        return nullcontext()
    limit: AbstractContextManager[Any] = controller().limit(limits=threads, user_api="blas")
    return limit
