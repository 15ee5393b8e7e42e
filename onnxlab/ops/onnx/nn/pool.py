"""Pools: MaxPool, AveragePool, LpPool, their global forms, MaxUnpool."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.derivatives import derivative, unary
from onnxlab.ops.base.estimates import pooling_flops
from onnxlab.ops.base.kernel_helpers import Array, at, averaging, widened
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import dims_text, like, rank_at_least, unknown_shape
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.base.window_geometry import Window, window
from onnxlab.ops.onnx.nn.window_dims import windows
from onnxlab.shapes import Fact, FactError, Shape, TensorFact


def _along(shape: Window, x: Array, ufunc: Any, initial: Any) -> Array:
    """Fold every window with a ufunc, one spatial axis after the other: Σk passes instead of Πk."""
    for axis in range(len(shape.kernel)):
        place = 2 + axis
        dims = (*x.shape[:place], shape.output[axis], *x.shape[place + 1 :])
        folded = np.full(dims, initial, x.dtype)
        lead = (slice(None),) * place
        for position in range(shape.kernel[axis]):
            served, read = shape.tap(axis, position)
            target = folded[(*lead, served)]
            ufunc(target, x[(*lead, read)], out=target)
        x = folded
    return x


def lowest(dtype: np.dtype[Any]) -> Any:
    """The smallest value of a dtype: −inf for floats."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return dtype.type(-np.inf)


@kernel("MaxPool", context=True)
def max_pool(
    ctx: RunContext,
    x: Array,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    storage_order: int = 0,
    strides: Sequence[int] | None = None,
) -> Array | tuple[Array, Array]:
    """The largest element of every window and, where wanted, its index in the flattened X (of its first occurrence)."""
    shape = window(x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    if len(ctx.outputs) < 2 or not ctx.outputs[1]:
        return _along(shape, x, np.maximum, lowest(x.dtype))
    best = np.full((*x.shape[:2], *shape.output), lowest(x.dtype), x.dtype)
    index = np.zeros(best.shape, np.int64)
    places = _places(x.shape, storage_order)
    for number, (_position, served, read) in enumerate(shape.taps()):
        seen, chosen = x[at(..., *read)], at(..., *served)
        better = seen > best[chosen] if number else np.ones(seen.shape, bool)
        np.copyto(best[chosen], seen, where=better)
        np.copyto(index[chosen], places[at(..., *read)], where=better)
    return best, index


def _places(shape: Sequence[int], storage_order: int) -> Array:
    """The index of every element; column-major inside an image when storage_order is 1."""
    if not storage_order:
        return np.arange(prod(shape), dtype=np.int64).reshape(shape)
    spatial = shape[2:]
    inner = np.arange(prod(spatial), dtype=np.int64).reshape(spatial, order="F")
    images = np.arange(shape[0] * shape[1], dtype=np.int64) * prod(spatial)
    return images.reshape(*shape[:2], *(1,) * len(spatial)) + inner


@kernel("AveragePool")
@widened
def average_pool(
    x: Array,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """The mean of every window; padding counts as elements of value 0 only where asked."""
    shape = window(x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    total = _along(shape, x, np.add, 0)
    counts = np.ones((1,) * len(shape.output), x.dtype)
    for axis in range(len(shape.output)):
        counts = counts * _counts(shape, axis, count_include_pad).reshape((-1,) + (1,) * (len(shape.output) - axis - 1))
    return np.divide(total, counts.astype(x.dtype), out=total)


def _counts(shape: Window, axis: int, count_include_pad: int) -> Array:
    """The number of elements in the windows along one axis, without those that ceil_mode adds at the end."""
    starts = np.arange(shape.output[axis])[:, None] * shape.strides[axis]
    read = starts + np.arange(shape.kernel[axis]) * shape.dilations[axis] - shape.begin[axis]
    low, high = (-shape.begin[axis], shape.size[axis] + shape.end[axis]) if count_include_pad else (0, shape.size[axis])
    return np.maximum(((read >= low) & (read < high)).sum(axis=1), 1)


@kernel("LpPool", since=2)
@widened
def lp_pool(
    x: Array,
    kernel_shape: Sequence[int],
    p: float = 2,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """The p-norm of every window."""
    shape = window(x, kernel_shape, strides, pads, dilations, auto_pad, ceil_mode)
    total = _along(shape, np.abs(x) ** x.dtype.type(p), np.add, 0)
    return np.power(total, x.dtype.type(1 / p), out=total)


@kernel("LpPool", since=1)
def lp_pool_1(
    x: Array,
    kernel_shape: Sequence[int] | None = None,
    p: float = 2.0,
    auto_pad: str = "NOTSET",
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """LpPool-2 with p as a float."""
    return lp_pool(x, kernel_shape or x.shape[2:], p=p, auto_pad=auto_pad, pads=pads, strides=strides)


def _spatial(x: Array) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


@kernel("GlobalAveragePool")
@widened
def global_average_pool(x: Array) -> Array:
    """The mean over the spatial axes, kept as axes of size 1."""
    width = prod(x.shape[2:])
    if not width or x.dtype.char not in "fd":
        return np.mean(x, axis=_spatial(x), keepdims=True)
    return (x.reshape(-1, width) @ averaging(width, x.dtype)).reshape(*x.shape[:2], *(1,) * (x.ndim - 2))


@kernel("GlobalMaxPool")
def global_max_pool(x: Array) -> Array:
    """The maximum over the spatial axes, kept as axes of size 1."""
    return np.max(x, axis=_spatial(x), keepdims=True)


@kernel("GlobalLpPool")
@widened
def global_lp_pool(x: Array, p: float = 2) -> Array:
    """The p-norm over the spatial axes, kept as axes of size 1."""
    total = np.sum(np.abs(x) ** x.dtype.type(p), axis=_spatial(x), keepdims=True)
    return np.power(total, x.dtype.type(1 / p))


@kernel("MaxUnpool", since=9, context=True)
def max_unpool(
    ctx: RunContext,
    x: Array,
    indices: Array,
    output_shape: Array | None = None,
    kernel_shape: Sequence[int] = (),
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """Put the elements of X at their indices in an otherwise zero tensor: the inverse of MaxPool."""
    rank = len(kernel_shape)
    steps, amounts = tuple(strides or (1,) * rank), tuple(pads or (0,) * (2 * rank))
    inferred = (*x.shape[:2], *(
        (dim - 1) * step + k - amounts[axis] - amounts[axis + rank]
        for axis, (dim, step, k) in enumerate(zip(x.shape[2:], steps, kernel_shape, strict=True))
    ))  # fmt: skip
    dims = inferred if output_shape is None else tuple(output_shape.tolist())
    ctx.reserve(prod(dims) * x.itemsize, "the output")
    y = np.zeros(dims, x.dtype)
    # indices count inside the inferred shape; a larger output_shape has its origin in the same corner
    places = np.unravel_index(indices.reshape(-1), inferred)
    y[places] = x.reshape(-1)
    return y


# -- shape rules -------------------------------------------------------------------------------------------------------


def _pooled(ctx: InferContext, attributes: Attributes, x: Fact) -> Shape | None:
    kernel = attributes["kernel_shape"]
    if min(kernel, default=1) < 1:
        raise FactError(
            f"attribute kernel_shape={list(kernel)}", code="bad-attribute", expected="values from 1 on",
            found=str(min(kernel)),
        )  # fmt: skip
    if x.shape is None:
        return unknown_shape(ctx, 2 + len(kernel))
    if len(kernel) != len(x.shape) - 2:
        raise FactError(
            f"attribute kernel_shape={list(kernel)} does not fit {dims_text(x.shape)}",
            code="bad-attribute",
            expected=f"{len(x.shape) - 2} values",
            found=f"{len(kernel)} values",
        )
    return (*x.shape[:2], *windows(ctx, attributes, x.shape[2:], kernel, bool(attributes.get("ceil_mode"))))


@rule("AveragePool")
@rule("LpPool", since=2)
def average_pool_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The windows that fit each spatial dim."""
    return like(x, _pooled(ctx, attributes, x))


@rule("MaxPool")
def max_pool_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """The windows that fit each spatial dim, and the indices of their maxima."""
    shape = _pooled(ctx, attributes, x)
    return like(x, shape), TensorFact(dtypes.INT64, shape)


@rule("GlobalAveragePool")
@rule("GlobalMaxPool")
@rule("GlobalLpPool")
def global_pool(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Every spatial dim becomes 1."""
    if x.shape is None:
        return like(x, None)
    rank_at_least(x, 2, "the input")
    return like(x, (*x.shape[:2], *(1,) * (len(x.shape) - 2)))


# -- gradients ---------------------------------------------------------------------------------------------------------


derivative("GlobalAveragePool")(unary(lambda x, y, g, a: np.broadcast_to(g / prod(x.shape[2:]), x.shape)))


# -- traits ------------------------------------------------------------------------------------------------------------


traits(
    "AveragePool GlobalAveragePool",
    OpTraits(
        category="pooling", shape="shapes", flops=pooling_flops, elements="none", half="rounded", int8="pointwise"
    ),
)
traits("GlobalLpPool LpPool", OpTraits(category="pooling", shape="shapes", flops=pooling_flops, elements="none"))
traits(
    "GlobalMaxPool",
    OpTraits(category="pooling", shape="shapes", flops=pooling_flops, elements="none", half="exact"),
)
traits(
    "MaxPool",
    OpTraits(category="pooling", shape="shapes", flops=pooling_flops, elements="none", half="exact", int8="moved"),
)
traits("MaxUnpool", OpTraits(category="pooling", shape="elements", flops=1))
