"""The kernel `tally`, called from Python."""

from __future__ import annotations

import ctypes
from functools import cache
from struct import Struct
from typing import Any

import numpy as np

from onnxlab.execution.numba.machine.tally_rows import DATA, ROW, SCRATCH

_HEAD = Struct("=3q")
_BYTES = ROW * 8
# Elements to count in one call: a call costs a microsecond, and arrays that were just made are still in a cache.
_AT_ONCE = 1 << 16


@cache
def _kernel() -> Any:
    """The compiled function, None where there is no compiler; made once per machine, which takes some seconds."""
    probe = np.zeros(1)
    if ctypes.c_int64.from_address(id(probe) + 8 * DATA).value != probe.ctypes.data:
        return None  # objects of this Python have another header
    try:
        from onnxlab.execution.numba.plan import engine

        address = engine.address_of("tally")
    except Exception:  # no Numba here, or a processor that LLVM does not know: NumPy counts
        return None
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(address)


def is_compiled() -> bool:
    """Whether arrays are counted by compiled code here."""
    return _kernel() is not None


class CountedRows:
    """Rows of arrays of float32 that compiled code counts; see `machine.tally_rows`.

    Args:
        size: arrays at most.

    Raises:
        RuntimeError: there is no compiled code; see `is_compiled`.
    """

    def __init__(self, size: int) -> None:
        function = _kernel()
        if function is None:
            raise RuntimeError("there is no compiled kernel to count with")
        self._function = function
        self._rows = np.zeros((size, ROW), np.int64)
        self._bytes = self._rows.reshape(-1).view(np.uint8).data
        self._scratch = np.zeros(SCRATCH, np.uint8)
        self._addresses = self._rows.ctypes.data, self._scratch.ctypes.data
        self._waiting: list[Any] = []  # so that the arrays live until they are counted
        self._elements = self._used = 0

    def put(self, array: Any, bins: int) -> None:
        """Count an array in the next row; `bins` is the address of its histogram, 0 for none."""
        size = array.size
        _HEAD.pack_into(self._bytes, self._used * _BYTES, id(array), size, bins)
        self._used += 1
        self._waiting.append(array)
        self._elements += size
        if self._elements >= _AT_ONCE:
            self._count()

    def _count(self) -> None:
        rows, scratch = self._addresses
        waiting = len(self._waiting)
        self._function(rows + (self._used - waiting) * _BYTES, waiting, scratch)
        self._waiting.clear()
        self._elements = 0

    def finish(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The rows of all arrays, in the order in which they were put."""
        self._count()
        return self._rows[: self._used]
