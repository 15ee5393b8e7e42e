"""Vectors where a row may end: whole where there is room for one, else its first lanes."""

from __future__ import annotations

from onnxlab.execution.numba.kernels.simd.lanes import WIDTH
from onnxlab.execution.numba.kernels.simd.memory import load, load_part, store, store_part
from onnxlab.execution.numba.machine.object_cache import helper


@helper
def get(address, count):
    """The vector at an address of which `count` elements are left."""
    return load(address) if count >= WIDTH else load_part(address, count)


@helper
def put(address, value, count):
    """Write as much of a vector as `count` elements take."""
    if count >= WIDTH:
        store(address, value)
    else:
        store_part(address, value, count)
