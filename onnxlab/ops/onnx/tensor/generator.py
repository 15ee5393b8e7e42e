"""Operators that make tensors: Constant, ConstantOfShape, Range, EyeLike."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import RunContext
from onnxlab.ops.base.kernel_helpers import Array, integers, is_small_float
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits


@kernel("Constant")
def constant(
    value: Array | None = None,
    sparse_value: Array | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_string: str | None = None,
    value_strings: Sequence[str] | None = None,
) -> Array:
    """The one attribute that is set, as a tensor; a sparse value comes here dense."""
    for array in (value, sparse_value):
        if array is not None:
            return array
    for item, dtype in (
        (value_int, np.int64),
        (value_ints, np.int64),
        (value_float, np.float32),
        (value_floats, np.float32),
        (value_string, object),
        (value_strings, object),
    ):
        if item is not None:
            return np.array(item, dtype)
    raise ValueError("none of the attributes value, sparse_value, value_int, … is set: expected exactly one")


@kernel("ConstantOfShape", since=9, context=True)
def constant_of_shape(ctx: RunContext, shape: Array, value: Array | None = None) -> Array:
    """A tensor of this shape with every element `value` (default float32 0)."""
    dims = integers(shape)
    if any(dim < 0 for dim in dims):
        raise ValueError(f"input holds the shape {list(dims)}: dimensions are at least 0")
    fill = np.zeros(1, np.float32) if value is None else value
    ctx.reserve(prod(dims) * fill.itemsize, "the constant tensor")
    return np.full(dims, fill.reshape(-1)[0], fill.dtype)


@kernel("Range", since=11, context=True)
def range_(ctx: RunContext, start: Array, limit: Array, delta: Array, stash_type: int | None = None) -> Array:
    """start, start + delta, … below (above, for a negative delta) the limit, which is excluded."""
    whole = start.dtype.kind in "iu"
    first, last, step = (x.reshape(()).astype(x.dtype if whole else np.float64).item() for x in (start, limit, delta))
    if step == 0:
        raise ValueError("delta is 0: the range would never end")
    length = -((first - last) // step) if whole else (last - first) / step
    if not np.isfinite(float(length)):
        raise ValueError(f"start {first}, limit {last} and delta {step} make no finite range")
    count = max(0, ceil(length))
    ctx.reserve(count * start.itemsize, "the range")
    if whole:
        return (first + step * np.arange(count, dtype=start.dtype)).astype(start.dtype)
    dtype = np.dtype(np.float32) if is_small_float(start.dtype) else start.dtype
    steps = np.arange(count, dtype=dtype)
    np.multiply(steps, dtype.type(step), out=steps)
    return np.add(steps, dtype.type(first), out=steps).astype(start.dtype, copy=False)


@kernel("EyeLike", since=9)
def eye_like(x: Array, dtype: int | None = None, k: int = 0) -> Array:
    """Ones on the k-th diagonal of a matrix of x's shape."""
    if x.ndim != 2:
        raise ValueError(f"input has shape {x.shape}: expected a matrix")
    return np.eye(x.shape[0], x.shape[1], k=k).astype(x.dtype if dtype is None else dtypes.to_numpy(dtype))


def _constant_of_shape_bytes(attributes: Mapping[str, Any], shape: Any) -> int:
    value = attributes.get("value")
    return int(prod(map(int, shape)) * (value.itemsize if value is not None else 4))


def _range_bytes(attributes: Mapping[str, Any], start: Any, limit: Any, delta: Any) -> int:
    count = ceil((limit.item() - start.item()) / delta.item())
    return int(max(0, count) * int(start.itemsize))


traits(
    "Constant", OpTraits(category="constant", shape="shapes", flops=0, quiet=True, size_arithmetic=True, same_since=1)
)
traits(
    "ConstantOfShape",
    OpTraits(
        category="constant",
        shape="elements",
        flops=0,
        out_bytes=_constant_of_shape_bytes,
        size_arithmetic=True,
        sizes={0: "one"},
        zero_gradient=True,
    ),
)
traits("EyeLike", OpTraits(category="constant", shape="shapes", flops=1))
traits(
    "Range",
    OpTraits(
        category="constant",
        shape="elements",
        flops=0,
        elements="all",
        out_bytes=_range_bytes,
        size_arithmetic=True,
        sizes={0: "zero", 1: "few", 2: "one"},
        float_sizes=True,
    ),
)
