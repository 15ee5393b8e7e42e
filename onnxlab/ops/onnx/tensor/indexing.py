"""Operators that pick or place elements by index: Gather, Scatter, Slice, TopK, OneHot, NonZero, Unique and others."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.derivatives import Arrays, derivative
from onnxlab.ops.base.kernel_helpers import Array, at, integers, normal_axis
from onnxlab.ops.base.registry import Attributes, kernel, rule, windowed
from onnxlab.ops.base.rule_helpers import (
    MaybeFact,
    as_dim,
    checked_axes,
    checked_axis,
    dims_text,
    is_size,
    items,
    known_integers,
    like,
    rank_at_least,
    rearranged,
    same_as_first,
    scalar,
    unknown_shape,
)
from onnxlab.ops.base.stored_operand import StoredOperand
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Dim, Expr, Fact, FactError, TensorFact, at_least, ceil_div, maximum, minimum


@kernel("Gather")
def gather(data: Array, indices: Array, axis: int = 0) -> Array:
    """The slices of `data` along `axis` that `indices` name; negative ones count from the end."""
    try:
        if indices.ndim and data.ndim:
            return data.take(indices, axis)
        where: tuple[Any, ...] = (*(slice(None),) * normal_axis(axis, data.ndim), int(indices), ...)
        return data[where]  # a view: nothing to copy
    except IndexError:  # NumPy's error for an axis that is not there is one too
        axis = normal_axis(axis, data.ndim)
        raise _out_of_range("indices", indices, data.shape[axis], axis) from None


@windowed("Gather")
def gather_from_file(data: StoredOperand, indices: Array, axis: int = 0) -> Array | None:
    """The rows of a tensor in a file that `indices` name, as an embedding needs them; no others are read."""
    if normal_axis(axis, len(data.shape)) != 0 or not indices.size:
        return None
    numbers, places = np.unique(np.where(indices < 0, indices + data.shape[0], indices), return_inverse=True)
    if numbers[0] < 0 or numbers[-1] >= data.shape[0]:
        raise _out_of_range("indices", indices, data.shape[0], 0)
    return data.rows(numbers).take(places.reshape(indices.shape), 0)


def _out_of_range(name: str, indices: Array, size: int, axis: int) -> IndexError:
    low, high = int(indices.min()), int(indices.max())
    return IndexError(f"{name} run from {low} to {high}: axis {axis} has {size} elements ({-size} to {size - 1})")


def _grid(indices: Array, axis: int) -> list[Any]:
    """An open index grid over `indices`' shape, `indices` itself at `axis`."""
    grid: list[Any] = list(np.ogrid[tuple(slice(dim) for dim in indices.shape)])
    grid[axis] = indices
    return grid


@kernel("GatherElements", since=11)
def gather_elements(data: Array, indices: Array, axis: int = 0) -> Array:
    """output[i][j] = data[indices[i][j]][j] for axis 0, and so on."""
    axis = normal_axis(axis, data.ndim)
    try:
        return data[tuple(_grid(indices, axis))]
    except IndexError:
        raise _out_of_range("indices", indices, data.shape[axis], axis) from None


@kernel("GatherND", since=11)
def gather_nd(data: Array, indices: Array, batch_dims: int = 0) -> Array:
    """The slices of `data` at the index tuples in the last axis of `indices`."""
    batch = [np.arange(dim).reshape((-1,) + (1,) * (indices.ndim - 2 - axis))
             for axis, dim in enumerate(indices.shape[:batch_dims])]  # fmt: skip
    depth = indices.shape[-1]
    if depth + batch_dims > data.ndim:
        raise ValueError(f"indices of shape {indices.shape} name {depth} axes: data has {data.ndim - batch_dims}")
    if not depth:  # every tuple names the whole of data, or of a batch's part
        lead = indices.shape[batch_dims:-1]
        parts = data.reshape(*data.shape[:batch_dims], *(1,) * len(lead), *data.shape[batch_dims:])
        return np.broadcast_to(parts, (*data.shape[:batch_dims], *lead, *data.shape[batch_dims:])).copy()
    return np.asarray(data[(*batch, *(indices[..., i] for i in range(depth)))])


_REDUCTIONS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter(data: Array, where: tuple[Any, ...], updates: Array, reduction: str) -> Array:
    """A copy of `data` with `updates` assigned, or combined one by one, at an index."""
    result = data.copy()
    if reduction == "none":
        result[where] = updates
    elif reduction in _REDUCTIONS:
        places = _places(data.shape, where)
        if places.shape != updates.shape:
            places = np.broadcast_to(places, updates.shape)
        _REDUCTIONS[reduction].at(result.reshape(-1), places.reshape(-1), updates.reshape(-1))  # fast where flat
    else:
        raise ValueError(f"reduction is {reduction!r}: expected none, {', '.join(_REDUCTIONS)}")
    return result


def _places(shape: tuple[int, ...], where: tuple[Any, ...]) -> Array:
    """The positions in a contiguous array of this shape that an index of its first axes names. Raises IndexError."""
    places: Any = None
    for axis, (index, size) in enumerate(zip(where, shape, strict=False)):
        index = np.asarray(index, np.int64, order="C")
        if index.size and index.view(np.uint64).max() >= size:  # a negative one is the largest then
            if index.min() < -size or index.max() >= size:
                raise _out_of_range("indices", index, size, axis)
            index = np.where(index < 0, index + size, index)
        places = index if places is None else places * size + index
    places = np.zeros((), np.int64) if places is None else places
    rest = shape[len(where) :]
    inside = np.arange(math.prod(rest)).reshape(rest)
    return np.asarray(places.reshape((*places.shape, *(1,) * len(rest))) * inside.size + inside)


def _is_repeated(indices: Array, axis: int) -> bool:
    """Whether an index is expanded along every other axis."""
    others = [stride == 0 or size == 1 for stride, size in zip(indices.strides, indices.shape, strict=True)]
    return indices.ndim > 1 and indices.size > 0 and all(others[:axis] + others[axis + 1 :])


def _combined_slices(data: Array, indices: Array, updates: Array, axis: int, combine: Any) -> Array:
    """A copy of `data`, slices of it combined with whole slices of `updates`, one after the other."""
    result = data.copy()
    targets, slices = result.swapaxes(0, axis), updates.swapaxes(0, axis)
    targets = targets[(slice(None), *map(slice, slices.shape[1:]))]
    for place, update in zip(indices.reshape(len(indices), -1)[:, 0].tolist(), slices, strict=True):
        target = targets[place]
        combine(target, update, out=target)
    return result


@kernel("ScatterElements", since=11)
def scatter_elements(data: Array, indices: Array, updates: Array, axis: int = 0, reduction: str = "none") -> Array:
    """A copy of `data` with output[indices[i][j]][j] = updates[i][j] for axis 0, and so on."""
    axis = normal_axis(axis, data.ndim)
    if indices.shape != updates.shape:
        raise ValueError(f"indices have shape {indices.shape}, updates {updates.shape}: expected equal shapes")
    try:
        if reduction in _REDUCTIONS and _is_repeated(indices, axis):  # as graph neural networks do
            if indices.shape[axis] ** 2 <= indices.size:  # fewer entries than copies of each
                return _combined_slices(data, indices.swapaxes(0, axis), updates, axis, _REDUCTIONS[reduction])
            if not axis and data.shape[1:] == indices.shape[1:]:
                return _scatter(data, (indices[at(slice(None), *(0,) * (indices.ndim - 1))],), updates, reduction)
        return _scatter(data, tuple(_grid(indices, axis)), updates, reduction)
    except IndexError:
        raise _out_of_range("indices", indices, data.shape[axis], axis) from None


kernel("Scatter", since=9)(scatter_elements)


@kernel("ScatterND", since=11)
def scatter_nd(data: Array, indices: Array, updates: Array, reduction: str = "none") -> Array:
    """A copy of `data`, the slices at the index tuples in the last axis of `indices` replaced or combined."""
    where = tuple(indices[..., i] for i in range(indices.shape[-1]))
    return _scatter(data, where, updates, reduction)


@kernel("TensorScatter", since=24)
def tensor_scatter(
    past_cache: Array,
    update: Array,
    write_indices: Array | None = None,
    axis: int = -2,
    mode: str = "linear",
) -> Array:
    """A copy of a cache with `update` written along `axis`, from write_indices[b] on in batch entry b.

    Raises:
        ValueError: in mode "linear", an update that would run past the end.
    """
    axis = normal_axis(axis, past_cache.ndim)
    cache, length, size = past_cache.copy(), update.shape[axis], past_cache.shape[axis]
    starts = [0] * len(cache) if write_indices is None else integers(write_indices)
    for batch, start in enumerate(starts):
        if mode == "linear" and start + length > size:
            raise ValueError(f"write_indices[{batch}] is {start}: {length} steps run past the cache's {size}")
        places = (start + np.arange(length)) % size
        # one batch entry has lost its axis 0, hence axis - 1
        np.moveaxis(cache[batch], axis - 1, 0)[places] = np.moveaxis(update[batch], axis - 1, 0)
    return cache


@kernel("Slice", since=10)
def slice_(data: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None) -> Array:
    """A view of `data` from starts to ends (exclusive, clamped; negative ones count from the end)."""
    begin, end = starts.reshape(-1).tolist(), ends.reshape(-1).tolist()
    places = range(len(begin)) if axes is None else axes.reshape(-1).tolist()
    step = [1] * len(begin) if steps is None else steps.reshape(-1).tolist()
    where = [slice(None)] * data.ndim
    for axis, lower, upper, stride in zip(places, begin, end, step, strict=True):
        place = normal_axis(axis, data.ndim)
        where[place] = _clamped(lower, upper, stride, data.shape[place])
    return data[tuple(where)]


def _clamped(start: int, end: int, step: int, size: int) -> slice:
    """A slice by ONNX's rules: backwards, a start before the first element means the first (Python: nothing).

    Raises:
        ValueError: the step is 0.
    """
    if step == 0:
        raise ValueError("a step is 0: expected a positive or negative one")
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    if size == 0:
        return slice(0, 0)
    end = min(max(end, -1), size - 1)
    return slice(min(max(start, 0), size - 1), None if end < 0 else end, step)


@kernel("Slice", since=1)
def slice_1(data: Array, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None = None) -> Array:
    """Slice-10 with attributes and without steps."""
    axes_array = None if axes is None else np.asarray(axes, np.int64)
    return slice_(data, np.asarray(starts, np.int64), np.asarray(ends, np.int64), axes_array)


@kernel("OneHot", since=9, context=True)
def one_hot(ctx: RunContext, indices: Array, depth: Array, values: Array, axis: int = -1) -> Array:
    """values[1] where the new axis' position is the index (from −depth to depth − 1), else values[0]."""
    size = int(depth.reshape(-1)[0])
    if size < 1:
        raise ValueError(f"depth is {size}: expected at least 1")
    axis = normal_axis(axis, indices.ndim + 1)
    ctx.reserve(indices.size * size * max(1, values.itemsize), "the one-hot tensor")
    places = indices.astype(np.int64)
    places = np.where(places < 0, places + size, places)
    hot = np.expand_dims(places, axis) == np.arange(size).reshape((-1,) + (1,) * (indices.ndim - axis))
    return np.where(hot, values[1], values[0]).astype(values.dtype, copy=False)


@kernel("TopK", since=10)
def top_k(x: Array, k: Array, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Array, Array]:
    """The k largest or smallest elements along `axis` in order, equal ones by index, and their indices."""
    axis, count = normal_axis(axis, x.ndim), int(k.reshape(-1)[0])
    size = x.shape[axis]
    if not 0 <= count <= size:
        raise ValueError(f"K is {count}: axis {axis} of X has {size} elements")
    every, first = (slice(None),) * axis, slice(count)
    if largest:
        # ascending and stable from the back, read backwards: descending, and equal elements by ascending index
        backwards = at(*every, slice(None, None, -1))
        indices = size - 1 - np.argsort(x[backwards], axis=axis, kind="stable")[backwards][at(*every, first)]
    else:
        indices = np.argsort(x, axis=axis, kind="stable")[at(*every, first)]
    if axis < x.ndim - 1 or not x.size:
        return np.take_along_axis(x, indices, axis), indices.astype(np.int64, copy=False)
    starts = np.arange(0, x.size, size).reshape(*x.shape[:-1], 1)  # np.take_along_axis takes three times as long
    return x.reshape(-1).take(indices + starts), indices.astype(np.int64, copy=False)


@kernel("TopK", since=1)
def top_k_1(x: Array, k: int, axis: int = -1) -> tuple[Array, Array]:
    """TopK-10 with k as an attribute."""
    return top_k(x, np.asarray([k]), axis=axis)


@kernel("NonZero", since=9, context=True)
def non_zero(ctx: RunContext, x: Array) -> Array:
    """int64[rank, count]: the indices of the elements that are not 0, in row-major order."""
    ctx.reserve(8 * x.ndim * int(np.count_nonzero(x)), "the indices")
    if x.ndim == 0:
        return np.zeros((0, int(bool(x))), np.int64)
    return np.stack(np.nonzero(x)).astype(np.int64, copy=False)


@kernel("Compress", since=9)
def compress(x: Array, condition: Array, axis: int | None = None) -> Array:
    """The slices along `axis` (elements of the flattened input by default) where the condition holds."""
    axis = axis if axis is None else normal_axis(axis, x.ndim)
    size = x.size if axis is None else x.shape[axis]
    return np.compress(condition[:size], x, axis=axis)


@kernel("Unique", since=11)
def unique(x: Array, axis: int | None = None, sorted: int = 1) -> tuple[Array, Array, Array, Array]:
    """Distinct elements (or slices along `axis`), first indices, inverse indices and counts.

    The elements are in ascending order, or with sorted=0 in the order of their first occurrence.
    """
    axis = axis if axis is None else normal_axis(axis, x.ndim)
    rows = x.reshape(-1) if axis is None else x
    values, first, inverse, counts = np.unique(
        rows, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        values, first, counts = np.take(values, order, axis=axis or 0), first[order], counts[order]
        inverse = rank[inverse]
    return values, *(part.astype(np.int64) for part in (first, inverse, counts))  # type: ignore[return-value]


# -- shape rules -------------------------------------------------------------------------------------------------------


rule("ScatterElements Scatter ScatterND TensorScatter")(same_as_first)


@rule("Gather")
def gather_rule(ctx: InferContext, attributes: Attributes, data: Fact, indices: Fact) -> Fact:
    """The dims of `data` with `axis` replaced by the dims of `indices`."""
    if data.shape is None or indices.shape is None:
        if data.shape is not None:
            rank_at_least(data, 1, "the data")
        return like(data, None)
    rank_at_least(data, 1, "the data")
    axis = checked_axis(attributes.get("axis", 0), len(data.shape))
    result = like(data, (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))
    chosen = known_integers(indices)
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
def gather_elements_rule(ctx: InferContext, attributes: Attributes, data: Fact, indices: Fact) -> Fact:
    """The shape of the indices."""
    return like(data, indices.shape)


@rule("GatherND", since=11)
def gather_nd_rule(ctx: InferContext, attributes: Attributes, data: Fact, indices: Fact) -> Fact:
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


@rule("Slice", since=10)
def slice__rule(
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
    chosen = known_integers(axes) if axes is not None else None if count is None else list(range(count))
    stride = items(steps) if steps is not None else None if count is None else [1] * count
    if chosen is None or count is None or stride is None:
        return like(data, unknown_shape(ctx, len(data.shape)))
    return _sliced(ctx, data, first or [None] * count, last or [None] * count, chosen, stride)


@rule("Slice", since=1)
def slice_by_attributes(ctx: InferContext, attributes: Attributes, data: Fact) -> Fact:
    """Slice-10 with starts, ends and axes in attributes."""
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
    for axis, start, end, step in zip(checked_axes(axes, len(shape)), starts, ends, steps, strict=True):
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
    """The number of elements of dim[start:end:step]; None where that depends on what is not known."""
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
    if at_least(start, 0):  # beyond the end it gives a negative size, which becomes 0 below
        low = start
    return maximum(ceil_div(high - low, step), 0)


def _reversed_size(dim: Dim, start: Dim, end: Dim, step: int) -> Dim | None:
    """The size of a whole axis backwards, the only backward slice of an unknown size that is known; else None."""
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


@rule("TopK", since=10)
def top_k_rule(ctx: InferContext, attributes: Attributes, x: Fact, k: Fact) -> tuple[Fact, Fact]:
    """The k greatest along `axis`, and their indices."""
    if k.shape not in (None, (), (1,)) and all(isinstance(dim, int) for dim in k.shape or ()):
        shape = dims_text(k.shape)
        raise FactError(f"k has shape {shape}", code="rank-mismatch", expected="[1]", found=shape)
    return _top_k(ctx, attributes, x, scalar(k))


@rule("TopK", since=1)
def top_k_by_attribute(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """TopK-10 with k in an attribute."""
    return _top_k(ctx, attributes, x, attributes["k"])


def _top_k(ctx: InferContext, attributes: Attributes, x: Fact, k: Dim | None) -> tuple[Fact, Fact]:
    if x.shape is None:
        return like(x, None), TensorFact(dtypes.INT64, None)
    axis = checked_axis(attributes.get("axis", -1), len(x.shape))
    dim = x.shape[axis]
    if isinstance(k, int) and isinstance(dim, int) and k > dim:
        raise FactError(
            f"k is {k} but axis {axis} of {dims_text(x.shape)} has {dim}", expected=f"at most {dim}", found=str(k)
        )
    shape = (*x.shape[:axis], as_dim(ctx, k, 0, axis), *x.shape[axis + 1 :])
    return like(x, shape), TensorFact(dtypes.INT64, shape)


@rule("NonZero", since=9)
def non_zero_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Indices of the elements that are not zero: [rank, how many].

    For a scalar, the operator's page says [0, how many], and ONNX Runtime makes [1, how many].
    """
    rank = len(x.shape) if x.shape else ctx.symbol(0, 0)
    return TensorFact(dtypes.INT64, (rank, ctx.symbol(0, 1)))


@rule("Compress", since=9)
def compress_rule(ctx: InferContext, attributes: Attributes, x: Fact, condition: Fact) -> Fact:
    """The slices of `axis` (or the elements, flattened) where the condition is true."""
    if "axis" not in attributes:
        return like(x, (ctx.symbol(0, 0),))
    if x.shape is None:
        return like(x, None)
    axis = checked_axis(attributes["axis"], len(x.shape))
    return like(x, (*x.shape[:axis], ctx.symbol(0, axis), *x.shape[axis + 1 :]))


@rule("Unique", since=11)
def unique_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact, Fact, Fact]:
    """The different elements (or slices of `axis`), their first indices, where each is found, and how often."""
    count = ctx.symbol(0, attributes.get("axis", 0))
    indices = TensorFact(dtypes.INT64, (count,))
    if "axis" in attributes:
        if x.shape is None:
            return like(x, None), indices, TensorFact(dtypes.INT64, (ctx.symbol(2, 0),)), indices
        axis = checked_axis(attributes["axis"], len(x.shape))
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
def one_hot_rule(ctx: InferContext, attributes: Attributes, indices: Fact, depth: Fact, values: Fact) -> Fact:
    """The dims of the indices with `depth` inserted at `axis`."""
    if indices.shape is None:
        return like(values, None)
    axis = checked_axis(attributes.get("axis", -1), len(indices.shape) + 1)
    count = scalar(depth)
    if isinstance(count, float):
        count = int(count)
    size = as_dim(ctx, count if isinstance(count, (int, Expr)) else None, 0, axis)
    return like(values, (*indices.shape[:axis], size, *indices.shape[axis:]))


# -- gradients ---------------------------------------------------------------------------------------------------------


@derivative("Gather")
def _gather_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (x, indices), (g,) = inputs, gradients
    axis = normal_axis(attributes["axis"], x.ndim)
    gradient = np.zeros_like(x)
    front = np.moveaxis(gradient, axis, 0)
    rows = g.reshape(*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
    np.add.at(front, indices.reshape(-1), np.moveaxis(rows, axis, 0))
    return [gradient, None]


@derivative("Slice")
def _slice_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    x = inputs[0]
    bounds: list[Any] = [None if part is None else part.tolist() for part in inputs[1:]]
    if not bounds:  # opsets 1 to 9
        bounds = [attributes["starts"], attributes["ends"], attributes.get("axes")]
    (starts, ends), (axes, steps) = bounds[:2], (*bounds[2:], None, None)[:2]
    where: list[slice] = [slice(None)] * x.ndim
    for number, axis in enumerate(axes or range(len(starts))):
        step = steps[number] if steps else 1
        end = ends[number]
        where[axis] = slice(starts[number], None if step < 0 and end < -x.shape[axis] else end, step)
    gradient = np.zeros_like(x)
    gradient[tuple(where)] = gradients[0]
    return [gradient, *[None] * (len(inputs) - 1)]


# -- traits ------------------------------------------------------------------------------------------------------------


def _gather_bytes(attributes: Mapping[str, Any], array: Any, indices: Any) -> int:
    if not array.size:
        return 0
    return int(indices.size) * int(array.nbytes // array.shape[attributes.get("axis", 0)])


def _gather_nd_bytes(attributes: Mapping[str, Any], array: Any, indices: Any) -> int:
    axes = indices.shape[-1] + attributes.get("batch_dims", 0)
    return int(prod(indices.shape[:-1]) * prod(array.shape[axes:]) * int(array.itemsize))


def _one_hot_bytes(attributes: Mapping[str, Any], indices: Any, depth: Any, values: Any) -> int:
    return int(indices.size) * int(depth.reshape(-1)[0]) * int(values.itemsize)


traits("Compress", OpTraits(category="shape", shape="data", flops=1, elements="none"))
traits(
    "Gather",
    OpTraits(
        int8="moved",
        category="shape",
        shape="shapes",
        flops=0,
        half="exact",
        out_bytes=_gather_bytes,
        quiet=True,
        size_arithmetic=True,
        indexes="axis",
        layer="lookup",
    ),
)
traits(
    "GatherElements", OpTraits(category="shape", shape="shapes", flops=0, half="exact", indexes="axis", layer="lookup")
)
traits(
    "GatherND",
    OpTraits(
        category="shape",
        shape="shapes",
        flops=0,
        elements="none",
        half="exact",
        out_bytes=_gather_nd_bytes,
        indexes="axes",
        layer="lookup",
    ),
)
traits("NonZero", OpTraits(category="shape", shape="data", flops=1, elements="none", zero_gradient=True))
traits("OneHot", OpTraits(category="constant", shape="sizes", flops=0, out_bytes=_one_hot_bytes, sizes={1: "few"}))
_REDUCTION_VERSIONS = {"reduction": {"max": (18, None), "min": (18, None)}}
traits(
    "Scatter ScatterElements",
    OpTraits(category="shape", shape="shapes", flops=0, indexes="axis", value_versions=_REDUCTION_VERSIONS),
)
traits(
    "ScatterND",
    OpTraits(
        category="shape", shape="shapes", flops=0, elements="none", indexes="axes", value_versions=_REDUCTION_VERSIONS
    ),
)
traits(
    "Slice",
    OpTraits(
        int8="moved",
        category="shape",
        shape="sizes",
        flops=0,
        half="exact",
        quiet=True,
        size_arithmetic=True,
        forwards=True,
        sizes={1: "zero", 2: "one", 3: "zero", 4: "one"},
        was_attribute={10: {1: ("starts", "ints"), 2: ("ends", "ints"), 3: ("axes", "ints")}},
        neutral_input={4: 1},
    ),
)
traits("TensorScatter", OpTraits(category="shape", shape="shapes", flops=1, signature="B ...|B ...|B"))
traits(
    "TopK",
    OpTraits(
        category="reduction",
        shape="sizes",
        flops=1,
        half="exact",
        sizes={1: "one"},
        was_attribute={10: {1: ("k", "int")}},
    ),
)
traits("Unique", OpTraits(category="elementwise", shape="data", flops=1))
