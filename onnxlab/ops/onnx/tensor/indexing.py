"""Operators that pick or place elements by index: Gather, Scatter, Slice, TopK, OneHot, NonZero, Unique and others."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from onnxlab.limits import RunContext
from onnxlab.ops.base.kernel_helpers import Array, integers, normal_axis
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits


@kernel("Gather")
def gather(data: Array, indices: Array, axis: int = 0) -> Array:
    """The slices of `data` along `axis` that `indices` name; negative ones count from the end."""
    axis = normal_axis(axis, data.ndim)
    try:
        if indices.ndim == 0:  # a view: nothing to copy
            where: tuple[Any, ...] = (*(slice(None),) * axis, int(indices), ...)
            return data[where]
        return data.take(indices, axis)
    except IndexError:
        raise _out_of_range("indices", indices, data.shape[axis], axis) from None


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
        places = np.broadcast_to(_places(data.shape, where), updates.shape)
        _REDUCTIONS[reduction].at(result.reshape(-1), places.reshape(-1), updates.reshape(-1))  # the quick case
    else:
        raise ValueError(f"reduction is {reduction!r}: expected none, {', '.join(_REDUCTIONS)}")
    return result


def _places(shape: tuple[int, ...], where: tuple[Any, ...]) -> Array:
    """Where in a contiguous array of this shape lies what an index of its first axes picks. Raises IndexError."""
    places: Any = np.zeros((), np.int64)
    for axis, (index, size) in enumerate(zip(where, shape, strict=False)):
        if index.size and (index.min() < -size or index.max() >= size):
            raise _out_of_range("indices", index, size, axis)
        places = places * size + np.where(index < 0, index + size, index)
    rest = shape[len(where) :]
    inside = np.arange(math.prod(rest)).reshape(rest)
    return np.asarray(places.reshape(*places.shape, *(1,) * len(rest)) * inside.size + inside)


def _is_repeated(indices: Array, axis: int) -> bool:
    """Whether an index was expanded along every other axis, to fewer places than each of them stands for."""
    others = [stride == 0 or size == 1 for stride, size in zip(indices.strides, indices.shape, strict=True)]
    if indices.ndim == 1 or not indices.size or not all(others[:axis] + others[axis + 1 :]):
        return False
    return bool(indices.shape[axis] ** 2 <= indices.size)


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
        if reduction in _REDUCTIONS and _is_repeated(indices, axis):  # as networks on graphs write it
            return _combined_slices(data, indices.swapaxes(0, axis), updates, axis, _REDUCTIONS[reduction])
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
    """As Slice-10 with attributes and without steps."""
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
    if largest:
        # ascending and stable from the back, read backwards: descending, and equal elements by ascending index
        order = size - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    indices = order[(*(slice(None),) * axis, slice(count))]
    return np.take_along_axis(x, indices, axis), indices.astype(np.int64, copy=False)


@kernel("TopK", since=1)
def top_k_1(x: Array, k: int, axis: int = -1) -> tuple[Array, Array]:
    """As TopK-10, k as an attribute."""
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

    In ascending order, or with sorted=0 in order of first occurrence.
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


@kernel("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(x: Array, y: Array) -> Array:
    """The elements of the last axis that Y names."""
    indices = y.reshape(-1)
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    return np.take(rows, indices, axis=-1)


def _feature_extractor_bytes(attributes: Mapping[str, Any], x: Any, y: Any) -> int:
    return int(x.size // max(1, x.shape[-1]) * y.size * x.itemsize)


def _gather_bytes(attributes: Mapping[str, Any], array: Any, indices: Any) -> int:
    if not array.size:
        return 0
    return int(indices.size) * int(array.nbytes // array.shape[attributes.get("axis", 0)])


def _gather_nd_bytes(attributes: Mapping[str, Any], array: Any, indices: Any) -> int:
    taken = indices.shape[-1] + attributes.get("batch_dims", 0)
    return int(prod(indices.shape[:-1]) * prod(array.shape[taken:]) * int(array.itemsize))


def _one_hot_bytes(attributes: Mapping[str, Any], indices: Any, depth: Any, values: Any) -> int:
    return int(indices.size) * int(depth.reshape(-1)[0]) * int(values.itemsize)


traits("Compress", OpTraits(category="shape", shape="data", flops=1, elements="none"))
traits(
    "Gather",
    OpTraits(
        category="shape",
        shape="shapes",
        flops=0,
        half="exact",
        out_bytes=_gather_bytes,
        quiet=True,
        size_arithmetic=True,
        indexes="axis",
    ),
)
traits("GatherElements", OpTraits(category="shape", shape="shapes", flops=0, half="exact", indexes="axis"))
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
    ),
)
traits("NonZero", OpTraits(category="shape", shape="data", flops=1, elements="none", zero_gradient=True))
traits("OneHot", OpTraits(category="constant", shape="sizes", flops=0, out_bytes=_one_hot_bytes, sizes={1: "few"}))
traits("Scatter ScatterElements", OpTraits(category="shape", shape="shapes", flops=0, indexes="axis"))
traits("ScatterND", OpTraits(category="shape", shape="shapes", flops=0, elements="none", indexes="axes"))
traits(
    "Slice",
    OpTraits(
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
traits(
    "ArrayFeatureExtractor",
    OpTraits(category="elementwise", shape="shapes", flops=1, out_bytes=_feature_extractor_bytes),
    "ai.onnx.ml",
)
traits("GatherND", OpTraits(category="shape", shape="shapes", flops=0), "com.microsoft")
