"""Memory of runs: aligned, and the addresses of arrays in it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import c_size_t
from math import prod
from typing import Any

import numpy as np

from onnxlab.execution.numba.plan.views import Array

ALIGNMENT = 64

empty = np.empty
"""Memory for outputs."""


def aligned(nbytes: int) -> Array:
    """Fresh memory that begins at a cache line."""
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    skip = -int(raw.__array_interface__["data"][0]) % ALIGNMENT
    return raw[skip : skip + nbytes]


def allocated(result: Any) -> int:
    """Bytes that a run allocates for an output of a plan: 0 where the output is the same array in every run."""
    return prod(result[0]) * np.dtype(result[1]).itemsize if isinstance(result, tuple) else 0


# Where an array object has the address of its elements: the first field behind the object's own.
_DATA = object.__basicsize__


def _by_interface(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


# All memory as an array of words: reading one takes half of the time of making a ctypes object at its address.
_WORDS = (c_size_t * (1 << 59)).from_address(0) if sys.maxsize > 1 << 32 else None


def _by_field(array: Array) -> int:
    """The address by the field of the C struct: ten times as fast as `_by_interface`. The layout is NumPy's C API."""
    assert _WORDS is not None
    return _WORDS[(id(array) + _DATA) >> 3]


_SAMPLES: list[Array] = [np.zeros(3), np.zeros((2, 3))[1:, ::2], np.zeros(9, np.uint8)[1:5].view(np.float32)]
_agree = (
    sys.implementation.name == "cpython"
    and _WORDS is not None
    and all(_by_field(array) == _by_interface(array) for array in _SAMPLES)
)
address: Callable[[Array], int] = _by_field if _agree else _by_interface
"""The address of an array's first element."""
