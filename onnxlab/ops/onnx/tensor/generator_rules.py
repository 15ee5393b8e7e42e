"""Shape rules of operators that make tensors from sizes: ConstantOfShape, Range, EyeLike, random numbers and others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import ceil, isfinite, prod
from typing import Any, cast

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import as_dim, elem_type, fits, items, kind_of, scalar, unknown_shape
from onnxlab.shapes import Dim, Expr, Fact, FactError, TensorFact, ceil_div, from_items, maximum
from onnxlab.shapes.values import MAX_ELEMENTS

Attributes = Mapping[str, Any]

MAX_FLOATS = 16
"""Float tensors up to this size are followed element by element: scales and limits, not weights."""


@rule("ConstantOfShape", since=9)
def constant_of_shape(ctx: InferContext, attributes: Attributes, shape: Fact) -> Fact:
    """The shape that the input's elements say, each element `value` (default: float32 zero)."""
    value = attributes.get("value")
    elem = dtypes.FLOAT if value is None else value.data_type
    wanted = items(shape)
    if wanted is None:
        return TensorFact(elem, None)
    negative = [dim for dim in wanted if isinstance(dim, int) and dim < 0]
    if negative:
        raise FactError(f"the shape holds {negative[0]}", expected="sizes from 0 on", found=str(negative[0]))
    dims = tuple(as_dim(ctx, dim, 0, axis) for axis, dim in enumerate(wanted))
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
def range_(ctx: InferContext, attributes: Attributes, start: Fact, limit: Fact, delta: Fact) -> Fact:
    """ceil((limit - start) / delta) numbers."""
    elem = elem_type(start) or elem_type(limit)
    first, last, step = scalar(start), scalar(limit), scalar(delta)
    if step == 0:
        raise FactError("a step of 0 never reaches the limit", expected="a step that is not 0", found="0")
    if first is None or last is None or step is None:
        return TensorFact(elem, (ctx.symbol(0, 0),))
    if any(isinstance(each, Expr) for each in (first, last, step)):
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
    first, last = (int(each) if isinstance(each, float) and each == int(each) else each for each in (first, last))
    if isinstance(first, float) or isinstance(last, float):
        return ctx.symbol(0, 0)
    step = int(step)
    distance = last - first if step > 0 else first - last
    return maximum(ceil_div(distance, abs(step)), 0)


@rule("EyeLike", since=9)
def eye_like(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape, which must be a matrix."""
    if x.shape is not None and len(x.shape) != 2:
        raise FactError(f"the input has rank {len(x.shape)}", expected="a matrix", found=f"rank {len(x.shape)}")
    shape = unknown_shape(ctx, 2) if x.shape is None else x.shape
    return TensorFact(attributes.get("dtype") or elem_type(x), shape)


@rule("RandomNormal")
@rule("RandomUniform")
def random(ctx: InferContext, attributes: Attributes) -> Fact:
    """The shape and dtype of the attributes."""
    return TensorFact(attributes.get("dtype", dtypes.FLOAT), tuple(attributes["shape"]))


@rule("RandomNormalLike")
@rule("RandomUniformLike")
def random_like(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape, in the type that `dtype` asks for."""
    return TensorFact(attributes.get("dtype") or elem_type(x), x.shape)


@rule("HannWindow", since=17)
@rule("HammingWindow", since=17)
@rule("BlackmanWindow", since=17)
def window(ctx: InferContext, attributes: Attributes, size: Fact) -> Fact:
    """A vector of `size` numbers."""
    count = scalar(size)
    dim = as_dim(ctx, count if isinstance(count, (int, Expr)) else None, 0, 0)
    return TensorFact(attributes.get("output_datatype", dtypes.FLOAT), (dim,))


@rule("Multinomial", since=7)
def multinomial(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """[batch, sample_size] draws."""
    batch = x.shape[0] if x.shape else ctx.symbol(0, 0)
    return TensorFact(attributes.get("dtype", dtypes.INT32), (batch, attributes.get("sample_size", 1)))
