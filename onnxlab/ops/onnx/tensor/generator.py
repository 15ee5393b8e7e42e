"""Operators that make tensors: Constant, ConstantOfShape, Range, EyeLike."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil, isfinite, prod
from typing import Any, cast

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.kernel_helpers import Array, integers, is_small_float
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import as_dim, elem_type, fits, items, kind_of, scalar, unknown_shape
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Dim, Expr, Fact, FactError, TensorFact, ceil_div, from_items, maximum
from onnxlab.shapes.values import MAX_ELEMENTS


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
        if isinstance(array, np.ndarray):
            return array
        if array is not None:
            raise ValueError(f"the attribute value is of type {type(array).__name__}: expected a tensor")
    for item, dtype in (
        (value_int, np.int64),
        (value_ints, np.int64),
        (value_float, np.float32),
        (value_floats, np.float32),
    ):
        if item is not None:
            return np.array(item, dtype)
    for text in (value_string, value_strings):
        if text is not None:
            if not all(isinstance(element, str) for element in (text if isinstance(text, Sequence) else [text])):
                raise ValueError(f"the attribute value_string or value_strings is {text!r}: expected strings")
            return np.array(text, object)
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


# -- shape rules -------------------------------------------------------------------------------------------------------


MAX_FLOATS = 16
"""Float tensors up to this size are followed element by element: scales and limits, not weights."""


@rule("ConstantOfShape", since=9)
def constant_of_shape_rule(ctx: InferContext, attributes: Attributes, shape: Fact) -> Fact:
    """The shape that the input's elements say, each element `value` (default: float32 zero)."""
    value = attributes.get("value")
    elem = dtypes.FLOAT if value is None else value.data_type
    sizes = items(shape)
    if sizes is None:
        return TensorFact(elem, None)
    negative = [dim for dim in sizes if isinstance(dim, int) and dim < 0]
    if negative:
        raise FactError(f"the shape holds {negative[0]}", expected="sizes from 0 on", found=str(negative[0]))
    dims = tuple(as_dim(ctx, dim, 0, axis) for axis, dim in enumerate(sizes))
    if not all(isinstance(dim, int) for dim in dims) or prod(cast("tuple[int, ...]", dims)) > MAX_ELEMENTS:
        return TensorFact(elem, dims)
    item = 0.0 if value is None else _single(value)
    kind = kind_of(elem)
    if not kind or item is None or (kind == "f" and prod(cast("tuple[int, ...]", dims)) > MAX_FLOATS):
        return TensorFact(elem, dims)
    count = prod(cast("tuple[int, ...]", dims))
    return TensorFact(elem, dims, from_items(cast("tuple[int, ...]", dims), [fits(item, elem)] * count, kind))


def _single(tensor: Any) -> Any:
    """The element of a one-element TensorProto; None where it cannot be read."""
    return _single_of(tensor.SerializeToString())


@lru_cache(256)
def _single_of(encoded: bytes) -> Any:
    import onnx.numpy_helper

    try:
        array = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(encoded))
        return array.item() if array.size == 1 and array.dtype.kind in "iufb" else None
    except (ValueError, TypeError):
        return None


@rule("Range", since=11)
def range__rule(ctx: InferContext, attributes: Attributes, start: Fact, limit: Fact, delta: Fact) -> Fact:
    """ceil((limit - start) / delta) numbers."""
    elem = elem_type(start) or elem_type(limit)
    first, last, step = scalar(start), scalar(limit), scalar(delta)
    if step == 0:
        raise FactError("a step of 0 never reaches the limit", expected="a step that is not 0", found="0")
    if first is None or last is None or step is None:
        return TensorFact(elem, (ctx.symbol(0, 0),))
    if any(isinstance(bound, Expr) for bound in (first, last, step)):
        return TensorFact(elem, (_symbolic_count(ctx, first, last, step),))
    many = (last - first) / step
    if not isfinite(many):
        raise FactError(f"it counts from {first} to {last} by {step}", expected="finite numbers", found=str(many))
    count = max(ceil(many), 0)
    if isinstance(first, int) and isinstance(last, int) and isinstance(step, int):
        count = max(-((first - last) // step), 0)  # exact beyond the 53 bits of a float
    kind = kind_of(elem)
    if kind and count <= MAX_ELEMENTS:
        numbers = [fits(first + step * index, elem) for index in range(count)]
        return TensorFact(elem, (count,), from_items((count,), numbers, kind))
    return TensorFact(elem, (count,))


def _symbolic_count(ctx: InferContext, first: Any, last: Any, step: Any) -> Dim:
    if not isinstance(step, (int, float)) or step != int(step):
        return ctx.symbol(0, 0)
    first, last = (int(bound) if isinstance(bound, float) and bound == int(bound) else bound for bound in (first, last))
    if isinstance(first, float) or isinstance(last, float):
        return ctx.symbol(0, 0)
    step = int(step)
    distance = last - first if step > 0 else first - last
    return maximum(ceil_div(distance, abs(step)), 0)


@rule("EyeLike", since=9)
def eye_like_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape, which must be a matrix."""
    if x.shape is not None and len(x.shape) != 2:
        raise FactError(f"the input has rank {len(x.shape)}", expected="a matrix", found=f"rank {len(x.shape)}")
    shape = unknown_shape(ctx, 2) if x.shape is None else x.shape
    return TensorFact(attributes.get("dtype") or elem_type(x), shape)


# -- traits ------------------------------------------------------------------------------------------------------------


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
