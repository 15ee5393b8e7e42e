"""The kernel `tally`, called from Python."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from onnxlab.execution.numba.machine.tally_rows import DATA, SCRATCH

Table = np.ndarray[Any, np.dtype[np.int64]]


@cache
def _kernel() -> Any:
    """The compiled function, None where there is no compiler; made once per machine, which takes some seconds."""
    probe = np.zeros(1)
    if ctypes.c_int64.from_address(id(probe) + 8 * DATA).value != probe.ctypes.data:
        return None  # objects of this Python have another head
    try:
        from onnxlab.execution.numba.plan import engine

        address = engine.address_of("tally")
    except Exception:  # no Numba here, or a processor that LLVM does not know: NumPy counts
        return None
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(address)


def is_compiled() -> bool:
    """Whether arrays are counted by compiled code here."""
    return _kernel() is not None


def tally_rows(table: Table) -> None:
    """Fill the rows of a table; see `machine.tally_rows`. The arrays that it names have to live meanwhile.

    Raises:
        RuntimeError: there is no compiled code; see `is_compiled`.
    """
    function = _kernel()
    if function is None:
        raise RuntimeError("there is no compiled kernel to count with")
    scratch = np.zeros(SCRATCH, np.uint8)
    function(table.ctypes.data, len(table), scratch.ctypes.data)
