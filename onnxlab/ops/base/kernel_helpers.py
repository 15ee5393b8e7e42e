"""Helpers of kernels: small floats, cache-sized blocks, axes, old broadcasting."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from math import prod
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from onnxlab.ops.base.half_arithmetic import BLOCK, to_half, to_single
from onnxlab.ops.base.prepared_constants import prepared

Array = NDArray[Any]
P = ParamSpec("P")
R = TypeVar("R")


def is_small_float(dtype: np.dtype[Any]) -> bool:
    """True for float16 and the floats of ml_dtypes: kernels compute in float32 and round once at the end."""
    return dtype.char == "e" or (dtype.kind == "V" and "float" in dtype.name)


def widen(array: Array) -> Array:
    """Return a float32 copy of an array of small floats (made once of a constant), any other array as it is."""
    return prepared("widened", to_single, array) if is_small_float(array.dtype) else array


def widened(function: Callable[P, R]) -> Callable[P, R]:
    """Let a kernel written for float32 and float64 take small floats: widen its inputs, round its outputs.

    Outputs of float32 get the dtype of the first input.
    """

    @wraps(function)
    def run(*inputs: P.args, **attributes: P.kwargs) -> R:
        dtype: np.dtype[Any] = inputs[0].dtype  # type: ignore[attr-defined]
        if not is_small_float(dtype):
            return function(*inputs, **attributes)
        wide: tuple[Any, ...] = tuple(widen(x) if isinstance(x, np.ndarray) else x for x in inputs)
        result: R = narrow(function(*wide, **attributes), dtype)
        return result

    return run


def narrow(result: Any, dtype: np.dtype[Any]) -> Any:
    """Round float32 results (an array, or those of a tuple) to `dtype`."""
    if isinstance(result, tuple):
        return tuple(narrow(item, dtype) for item in result)
    if result is None or result.dtype != np.float32 or dtype == np.float32:
        return result
    return to_half(np.asarray(result)) if dtype == np.float16 else np.asarray(result).astype(dtype)


def blocked(x: Array, function: Callable[[Array, Array, Array], None], rows: int, out: Array | None = None) -> Array:
    """Apply an elementwise function block by block, so that its temporaries stay in the cache.

    Args:
        x: float array of any shape; not written.
        function: (block, result, temporaries) -> None. `temporaries` has `rows` rows of the block's length. The result
            may be the block itself, so it is written last.
        out: x itself, where it may be overwritten.

    Returns:
        an array of x's shape and dtype, a new one without `out`.
    """
    result = np.empty(x.shape, x.dtype) if out is None else out
    source, flat = np.ascontiguousarray(x).reshape(-1), result.reshape(-1)
    if flat.size <= BLOCK:
        function(source, flat, scratch((rows, flat.size), flat.dtype))
        return result
    temporaries = scratch((rows, BLOCK), flat.dtype)
    for start in range(0, flat.size, BLOCK):
        part = slice(start, start + BLOCK)
        function(source[part], flat[part], temporaries[:, : flat.size - start])
    return result


@lru_cache(maxsize=64)
def averaging(width: int, dtype: np.dtype[Any]) -> Array:
    """The vector by which BLAS multiplies a row to get its mean: several times as fast as adding rows up one by one."""
    return np.full(width, 1 / width if width else 0, dtype)


_local = threading.local()


def scratch(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An uninitialized array to work in, which belongs to the thread until it asks for the next one.

    Up to 8 MB are kept, because the first access to new memory costs more than the work in it.
    """
    nbytes = prod(shape) * dtype.itemsize
    if nbytes > 1 << 23:
        return np.empty(shape, dtype)
    buffer: Array | None = getattr(_local, "scratch", None)
    if buffer is None or buffer.nbytes < nbytes:
        buffer = _local.scratch = np.empty(nbytes, np.uint8)
    return buffer[:nbytes].view(dtype).reshape(shape)


def legacy_operand(a: Array, b: Array, broadcast: int, axis: int | None) -> Array:
    """Return `b` shaped for NumPy's broadcasting against `a`, by the rule of opsets 1 to 6.

    In these opsets `b` is stretched only when `broadcast` is set: its shape is a run of `a`'s dims that starts at
    `axis` (default: the last dims).

    Raises:
        ValueError: the shapes differ and `broadcast` is 0, or b's shape is no such run.
    """
    if not broadcast:
        if a.shape != b.shape:
            raise ValueError(f"B has shape {b.shape}, A {a.shape}; without broadcast=1 they must be equal")
        return b
    if axis is None or b.size == 1:
        return b
    start = axis % a.ndim if a.ndim else 0
    return b.reshape(b.shape + (1,) * (a.ndim - start - b.ndim))


def at(*index: Any) -> Any:
    """An index of slices, ints, arrays and ellipses, for `x[at(..., *slices)]`: NumPy's types know no mixed ones."""
    return index


def normal_axis(axis: int, rank: int, label: str = "axis") -> int:
    """Return a possibly negative axis as one from 0 to rank − 1.

    Raises:
        ValueError: out of range.
    """
    if not -rank <= axis < rank:
        expected = f"expected {-rank} to {rank - 1}" if rank else "a scalar has no axes"
        raise ValueError(f"{label} {axis} is out of range for rank {rank}: {expected}")
    return int(axis) % rank


def normal_axes(axes: Sequence[int] | Array | None, rank: int) -> tuple[int, ...]:
    """Return axes from 0 to rank − 1 in the order given; every axis when None."""
    if axes is None:
        return tuple(range(rank))
    if isinstance(axes, list) and len(axes) == 1 and -rank <= axes[0] < rank:
        return (axes[0] % rank,)
    return tuple([normal_axis(int(axis), rank) for axis in axes])


def integers(array: Array | Sequence[int]) -> tuple[int, ...]:
    """Return a 1-D (or 0-D) integer tensor as a tuple of Python ints."""
    return tuple(int(item) for item in np.asarray(array).reshape(-1).tolist())
