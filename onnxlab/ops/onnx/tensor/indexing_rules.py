"""Shape rules of operators that pick elements: Gather, Slice, TopK, NonZero, OneHot, Unique and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import (
    MaybeFact,
    as_dim,
    dims_text,
    integers,
    is_size,
    items,
    like,
    normal_axes,
    normal_axis,
    rank_at_least,
    rearranged,
    scalar,
    unknown_shape,
)
from onnxlab.shapes import (
    Dim,
    Expr,
    Fact,
    FactError,
    Shape,
    TensorFact,
    at_least,
    ceil_div,
    maximum,
    minimum,
)

Attributes = Mapping[str, Any]


@rule("Gather")
def gather(ctx: InferContext, attributes: Attributes, data: Fact, indices: Fact) -> Fact:
    """The dims of `data` with `axis` replaced by the dims of `indices`."""
    if data.shape is None or indices.shape is None:
        if data.shape is not None:
            rank_at_least(data, 1, "the data")
        return like(data, None)
    rank_at_least(data, 1, "the data")
    axis = normal_axis(attributes.get("axis", 0), len(data.shape))
    result = like(data, (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))
    chosen = integers(indices)
    if chosen is None:
        return result
    dim = data.shape[axis]
    if isinstance(dim, int) and any(not -dim <= index < dim for index in chosen):
        wrong = next(index for index in chosen if not -dim <= index < dim)
        raise FactError(
            f"index {wrong} is out of range for axis {axis} of {dims_text(data.shape)}",
            code="index-out-of-range",
            expected=f"{-dim} to {dim - 1}",
            found=str(wrong),
        )
    where = np.array(chosen, np.int64).reshape(cast("tuple[int, ...]", indices.shape))
    return rearranged(result, data, lambda array: np.take(array, where, axis))


@rule("GatherElements", since=11)
def gather_elements(ctx: InferContext, attributes: Attributes, data: Fact, indices: Fact) -> Fact:
    """The shape of the indices."""
    return like(data, indices.shape)


@rule("GatherND", since=11)
def gather_nd(ctx: InferContext, attributes: Attributes, data: Fact, indices: Fact) -> Fact:
    """The dims of the indices but the last, then the dims of `data` that an index tuple does not cover."""
    if data.shape is None or indices.shape is None:
        return like(data, None)
    rank_at_least(data, 1, "the data")
    rank_at_least(indices, 1, "the indices")
    depth = indices.shape[-1]
    if not isinstance(depth, int):
        return like(data, None)
    covered = attributes.get("batch_dims", 0) + depth
    if covered > len(data.shape):
        raise FactError(
            f"the indices address {covered} axes of {dims_text(data.shape)}",
            expected=f"at most {len(data.shape)}",
            found=str(covered),
        )
    return like(data, (*indices.shape[:-1], *data.shape[covered:]))


# -- Slice --------------------------------------------------------------------------------------------------------


@rule("Slice", since=10)
def slice_(
    ctx: InferContext,
    attributes: Attributes,
    data: Fact,
    starts: Fact,
    ends: Fact,
    axes: MaybeFact = None,
    steps: MaybeFact = None,
) -> Fact:
    """Each axis cut from its start to its end by its step."""
    if data.shape is None:
        return like(data, None)
    first, last = items(starts), items(ends)
    count = len(first) if first is not None else len(last) if last is not None else None
    chosen = integers(axes) if axes is not None else None if count is None else list(range(count))
    stride = items(steps) if steps is not None else None if count is None else [1] * count
    if chosen is None or count is None or stride is None:
        return like(data, unknown_shape(ctx, len(data.shape)))
    return _sliced(ctx, data, first or [None] * count, last or [None] * count, chosen, stride)


@rule("Slice", since=1)
def slice_by_attributes(ctx: InferContext, attributes: Attributes, data: Fact) -> Fact:
    """The same with starts, ends and axes in attributes."""
    if data.shape is None:
        return like(data, None)
    starts, ends = list(attributes["starts"]), list(attributes["ends"])
    axes = list(attributes.get("axes", range(len(starts))))
    return _sliced(ctx, data, starts, ends, axes, [1] * len(starts))


def _sliced(
    ctx: InferContext,
    data: Fact,
    starts: Sequence[Dim | None],
    ends: Sequence[Dim | None],
    axes: Sequence[int],
    steps: Sequence[Dim | None],
) -> Fact:
    shape = data.shape or ()
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise FactError(
            f"it has {len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps",
            expected="as many of each",
        )
    dims: list[Dim] = list(shape)
    cuts = [slice(None)] * len(shape)
    exact = True
    for axis, start, end, step in zip(normal_axes(axes, len(shape)), starts, ends, steps, strict=True):
        if step == 0:
            raise FactError("a step of 0 never ends", expected="a step that is not 0", found="0")
        size = cut_size(shape[axis], start, end, step)
        dims[axis] = ctx.symbol(0, axis) if size is None else size
        if size is not None and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
            stop = None if step < 0 and end < -2_000_000_000 else end
            cuts[axis] = slice(start, stop, step)
        else:
            exact = False
    result = like(data, tuple(dims))
    return rearranged(result, data, lambda array: array[tuple(cuts)]) if exact else result


_TO_THE_END = (2**31 - 1, 2**63 - 1)
"""Ends that stand for the end of an axis, whatever its size."""


def cut_size(dim: Dim, start: Dim | None, end: Dim | None, step: Dim | None) -> Dim | None:
    """How many elements dim[start:end:step] has; None where that depends on what is not known."""
    if start is None or end is None or not isinstance(step, int):
        return None
    if step < 0 and end in _TO_THE_END:  # nothing by NumPy's rules, down to the first element in ONNX Runtime
        return None
    if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int):
        stop = None if step < 0 and end < -dim else end
        return len(range(dim)[start:stop:step])
    if step < 0:
        return _reversed_size(dim, start, end, step)
    low, high = clamped(start, dim), clamped(end, dim)
    if low is None or high is None:
        return None
    if at_least(start, 0):  # beyond the end it gives a negative size, which is cut off anyway
        low = start
    return maximum(ceil_div(high - low, step), 0)


def _reversed_size(dim: Dim, start: Dim, end: Dim, step: int) -> Dim | None:
    """All of an axis backwards, which is the one backward slice of an unknown size that can be told."""
    if start == -1 and isinstance(end, int) and end < -(2**31) + 2:
        return ceil_div(dim, -step)
    return None


def clamped(position: Dim, dim: Dim) -> Dim | None:
    """A slice bound as a number from 0 to dim; None where its sign is not known."""
    if isinstance(position, int):
        if position >= 2**31 - 1:
            return dim
        return minimum(position, dim) if position >= 0 else maximum(dim + position, 0)
    if at_least(position, 0):
        return minimum(position, dim)
    if at_least(-position, 1):
        return maximum(dim + position, 0)
    if at_least(dim, position) and is_size(position):  # seq - 1: a size that an exporter computed
        return maximum(position, 0)
    return minimum(maximum(position, 0), dim) if is_size(position) else None


# -- Scatter has the rule of elementwise operators; what follows chooses by value ---------------------------------


@rule("TopK", since=10)
def top_k(ctx: InferContext, attributes: Attributes, x: Fact, k: Fact) -> tuple[Fact, Fact]:
    """The k greatest along `axis`, and their indices."""
    if k.shape not in (None, (), (1,)) and all(isinstance(dim, int) for dim in k.shape or ()):
        found = dims_text(k.shape)
        raise FactError(f"k has shape {found}", code="rank-mismatch", expected="[1]", found=found)
    return _top_k(ctx, attributes, x, scalar(k))


@rule("TopK", since=1)
def top_k_by_attribute(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """The same with k in an attribute."""
    return _top_k(ctx, attributes, x, attributes["k"])


def _top_k(ctx: InferContext, attributes: Attributes, x: Fact, k: Dim | None) -> tuple[Fact, Fact]:
    if x.shape is None:
        return like(x, None), TensorFact(dtypes.INT64, None)
    axis = normal_axis(attributes.get("axis", -1), len(x.shape))
    dim = x.shape[axis]
    if isinstance(k, int) and isinstance(dim, int) and k > dim:
        raise FactError(
            f"k is {k} but axis {axis} of {dims_text(x.shape)} has {dim}", expected=f"at most {dim}", found=str(k)
        )
    shape = (*x.shape[:axis], as_dim(ctx, k, 0, axis), *x.shape[axis + 1 :])
    return like(x, shape), TensorFact(dtypes.INT64, shape)


@rule("NonZero", since=9)
def non_zero(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Indices of the elements that are not zero: [rank, how many].

    Of a scalar the operator's page says [0, how many], and ONNX Runtime makes [1, how many].
    """
    rank = len(x.shape) if x.shape else ctx.symbol(0, 0)
    return TensorFact(dtypes.INT64, (rank, ctx.symbol(0, 1)))


@rule("Compress", since=9)
def compress(ctx: InferContext, attributes: Attributes, x: Fact, condition: Fact) -> Fact:
    """The slices of `axis` (or the elements, flattened) where the condition is true."""
    if "axis" not in attributes:
        return like(x, (ctx.symbol(0, 0),))
    if x.shape is None:
        return like(x, None)
    axis = normal_axis(attributes["axis"], len(x.shape))
    return like(x, (*x.shape[:axis], ctx.symbol(0, axis), *x.shape[axis + 1 :]))


@rule("Unique", since=11)
def unique(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact, Fact, Fact]:
    """The different elements (or slices of `axis`), their first indices, where each is found, and how often."""
    count = ctx.symbol(0, attributes.get("axis", 0))
    indices = TensorFact(dtypes.INT64, (count,))
    if "axis" in attributes:
        if x.shape is None:
            return like(x, None), indices, TensorFact(dtypes.INT64, (ctx.symbol(2, 0),)), indices
        axis = normal_axis(attributes["axis"], len(x.shape))
        count = ctx.symbol(0, axis)
        indices = TensorFact(dtypes.INT64, (count,))
        values = like(x, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
        return values, indices, TensorFact(dtypes.INT64, (x.shape[axis],)), indices
    total: Dim = ctx.symbol(2, 0)
    if x.shape is not None:
        total = 1
        for dim in x.shape:
            total = total * dim
    return like(x, (count,)), indices, TensorFact(dtypes.INT64, (total,)), indices


@rule("OneHot", since=9)
def one_hot(ctx: InferContext, attributes: Attributes, indices: Fact, depth: Fact, values: Fact) -> Fact:
    """The dims of the indices with `depth` inserted at `axis`."""
    if indices.shape is None:
        return like(values, None)
    axis = normal_axis(attributes.get("axis", -1), len(indices.shape) + 1)
    count = scalar(depth)
    if isinstance(count, float):
        count = int(count)
    size = as_dim(ctx, count if isinstance(count, (int, Expr)) else None, 0, axis)
    return like(values, (*indices.shape[:axis], size, *indices.shape[axis:]))


@rule("ArgMax")
@rule("ArgMin")
def arg_max(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Indices along `axis`, which becomes 1 or, without keepdims, goes."""
    if x.shape is None:
        return TensorFact(dtypes.INT64, None)
    axis = normal_axis(attributes.get("axis", 0), len(x.shape))
    kept: Shape = (1,) if attributes.get("keepdims", 1) == 1 else ()
    return TensorFact(dtypes.INT64, (*x.shape[:axis], *kept, *x.shape[axis + 1 :]))


@rule("NonMaxSuppression", since=10)
def non_max_suppression(ctx: InferContext, attributes: Attributes, *inputs: MaybeFact) -> Fact:
    """[how many, 3]: batch, class and box of each one chosen."""
    return TensorFact(dtypes.INT64, (ctx.symbol(0, 0), 3))
