"""Operators that rearrange: Reshape, Transpose, Squeeze, Concat, Split, Expand, Tile, Pad, DepthToSpace and others."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from onnxlab.limits import RunContext
from onnxlab.ops.base.kernel_helpers import Array, integers, normal_axes, normal_axis
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits


@kernel("Identity")
def identity(x: Any) -> Any:
    """The input itself, whatever it is."""
    return x


@kernel("Shape")
def shape(x: Array, start: int = 0, end: int | None = None) -> Array:
    """The dimensions from `start` to `end` (exclusive; negative ones count from the end) as int64."""
    return np.array(x.shape[start:end], np.int64)


@kernel("Size")
def size(x: Array) -> Array:
    """The number of elements as an int64 scalar."""
    return np.array(x.size, np.int64)


@kernel("Reshape", since=5)
def reshape(data: Array, shape: Array, allowzero: int = 0) -> Array:
    """`data` in another shape: one dim may be −1, and a 0 keeps the input's dim unless allowzero is set."""
    if shape.ndim != 1:
        raise ValueError(f"shape has {shape.ndim} axes: expected a vector")
    dims = shape.tolist()
    if 0 in dims and not allowzero:
        try:
            dims = [dim or data.shape[axis] for axis, dim in enumerate(dims)]
        except IndexError:
            raise ValueError(f"shape {dims} copies a dimension that data of shape {data.shape} has not got") from None
    if dims and min(dims) < -1:  # NumPy takes any number below 0 for −1
        raise ValueError(f"shape {dims} holds {min(dims)}: expected sizes of 0 and more, and one −1 at most")
    if not data.size and -1 in dims:
        known = prod(dim for dim in dims if dim != -1)
        dims = [0 if dim == -1 and known else dim for dim in dims]
    try:
        return data.reshape(dims)
    except ValueError:
        raise ValueError(f"data of shape {data.shape} ({data.size:,} elements) does not fit shape {dims}") from None


@kernel("Reshape", since=1)
def reshape_1(data: Array, shape: Sequence[int], consumed_inputs: Sequence[int] | None = None) -> Array:
    """As Reshape-5, the shape as an attribute."""
    return reshape(data, np.asarray(shape, np.int64))


@kernel("Flatten")
def flatten(x: Array, axis: int = 1) -> Array:
    """A matrix: the axes before `axis` are its rows, the others its columns."""
    axis = axis if axis == x.ndim else normal_axis(axis, x.ndim) if x.ndim else 0
    return x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:]))


@kernel("Transpose")
def transpose(x: Array, perm: Sequence[int] | None = None) -> Array:
    """A view with axes in the order `perm`; reversed by default."""
    return x.transpose(perm)


@kernel("Squeeze", since=13)
def squeeze(x: Array, axes: Array | None = None) -> Array:
    """Drop axes of size 1: those named, or all where none is."""
    if axes is None or not axes.size:
        return x.squeeze()
    dropped = normal_axes(axes.reshape(-1).tolist(), x.ndim)
    for axis in dropped:
        if x.shape[axis] != 1:
            raise ValueError(f"data has shape {x.shape}: axis {axis} is not 1 and cannot be squeezed")
    return x.reshape([dim for axis, dim in enumerate(x.shape) if axis not in dropped])


@kernel("Squeeze", since=1)
def squeeze_1(x: Array, axes: Sequence[int] | None = None) -> Array:
    """As Squeeze-13, the axes as an attribute."""
    return squeeze(x, None if axes is None else np.asarray(axes, np.int64))


@kernel("Unsqueeze", since=13)
def unsqueeze(x: Array, axes: Array) -> Array:
    """Insert axes of size 1 at these places of the output."""
    inserted = axes.reshape(-1).tolist()
    rank = x.ndim + len(inserted)
    if len(inserted) == 1 and -rank <= (place := inserted[0]) < rank:  # what models do by the hundred
        return x.reshape((*x.shape[: place % rank], 1, *x.shape[place % rank :]))
    places = normal_axes(inserted, rank)
    if len(set(places)) != len(places):
        raise ValueError(f"axes {inserted} name an axis of the output of rank {rank} twice")
    dims = iter(x.shape)
    return x.reshape([1 if axis in places else next(dims) for axis in range(rank)])


@kernel("Unsqueeze", since=1)
def unsqueeze_1(x: Array, axes: Sequence[int]) -> Array:
    """As Unsqueeze-13, the axes as an attribute."""
    return unsqueeze(x, np.asarray(axes, np.int64))


@kernel("Concat", since=4)
def concat(*inputs: Array, axis: int) -> Array:
    """Join along `axis`; inputs without elements are left out where they do not fit, as in ONNX Runtime."""
    if len(inputs) == 1:
        return inputs[0]
    try:
        return np.concatenate(inputs, axis)
    except ValueError:
        rest = [x for x in inputs if x.size]
        if rest and len(rest) < len(inputs):
            return concat(*rest, axis=axis)
        shapes = ", ".join(str(x.shape) for x in inputs)
        raise ValueError(f"shapes {shapes} differ outside axis {axis} and cannot be joined") from None


@kernel("Concat", since=1)
def concat_1(*inputs: Array, axis: int = 1) -> Array:
    """As Concat-4, with a default axis."""
    return concat(*inputs, axis=axis)


def split_at(x: Array, axis: int, lengths: Sequence[int]) -> tuple[Array, ...]:
    """Views of `x` with these lengths along `axis`.

    Raises:
        ValueError: a length is negative, or they do not add up to the dimension.
    """
    if sum(lengths) != x.shape[axis] or any(length < 0 for length in lengths):
        raise ValueError(f"split {list(lengths)} does not add up to the {x.shape[axis]} of axis {axis}")
    stops = np.cumsum(lengths).tolist()
    lead = (slice(None),) * axis
    return tuple(x[(*lead, slice(stop - length, stop))] for stop, length in zip(stops, lengths, strict=True))


@kernel("Split", since=13, context=True)
def split_13(
    ctx: RunContext, x: Array, split: Array | None = None, axis: int = 0, num_outputs: int | None = None
) -> tuple[Array, ...]:
    """Cut along `axis` into the lengths given, or into equal parts (since 18 the last may be shorter)."""
    axis = normal_axis(axis, x.ndim)
    if split is not None and split.size:
        return split_at(x, axis, integers(split))
    total, count = x.shape[axis], num_outputs or len(ctx.outputs)
    if num_outputs is None and total % count:
        raise ValueError(f"axis {axis} has {total} elements, which do not split into {count} equal parts")
    part = -(-total // count)
    lengths = [max(0, min(part, total - start)) for start in range(0, part * count, part or 1)]
    return split_at(x, axis, (lengths + [0] * count)[:count])


@kernel("Split", since=1, context=True)
def split_1(
    ctx: RunContext, x: Array, lengths: Array | None = None, axis: int = 0, split: Sequence[int] | None = None
) -> tuple[Array, ...]:
    """As Split-13; the lengths are an attribute, or in opset 1 either."""
    if lengths is None and split is None:
        return split_13(ctx, x, axis=axis)
    return split_at(x, normal_axis(axis, x.ndim), integers(lengths if lengths is not None else split or ()))


@kernel("Expand", since=8, context=True)
def expand(ctx: RunContext, x: Array, shape: Array) -> Array:
    """Broadcast `x` and `shape` against each other.

    The result is a read-only view; its size is claimed all the same, for whoever touches its elements.
    """
    dims = np.broadcast_shapes(x.shape, integers(shape))
    ctx.reserve(prod(dims) * x.itemsize, "the expanded tensor")
    return np.broadcast_to(x, dims)


@kernel("Tile", since=6, context=True)
def tile(ctx: RunContext, x: Array, repeats: Array) -> Array:
    """Repeat along every axis."""
    times = integers(repeats)
    if len(times) != x.ndim or any(time < 0 for time in times):
        raise ValueError(f"repeats {list(times)}: expected {x.ndim} counts of at least 0, one for each axis")
    ctx.reserve(x.nbytes * prod(times), "the tiled tensor")
    return np.tile(x, times)


@kernel("Tile", since=1, context=True)
def tile_1(ctx: RunContext, x: Array, tiles: Array, axis: Array) -> Array:
    """Repeat along one axis."""
    repeats = np.ones(x.ndim, np.int64)
    repeats[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
    return tile(ctx, x, repeats)


@kernel("DepthToSpace")
def depth_to_space(x: Array, blocksize: int, mode: str = "DCR") -> Array:
    """[N, C, H, W] -> [N, C/b², H·b, W·b]; the channels are ordered (b, b, C) for DCR, (C, b, b) for CRD."""
    n, c, h, w = x.shape
    b, depth = blocksize, c // blocksize**2
    if mode == "DCR":
        y = x.reshape(n, b, b, depth, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, depth, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(n, depth, h * b, w * b)


@kernel("SpaceToDepth")
def space_to_depth(x: Array, blocksize: int, mode: str = "DCR") -> Array:
    """[N, C, H, W] -> [N, C·b², H/b, W/b]; the inverse of DepthToSpace."""
    n, c, h, w = x.shape
    b = blocksize
    blocks = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return blocks.transpose(order).reshape(n, c * b * b, h // b, w // b)


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@kernel("Pad", since=11, context=True)
def pad(
    ctx: RunContext,
    data: Array,
    pads: Array,
    constant_value: Array | None = None,
    axes: Array | None = None,
    mode: str = "constant",
) -> Array:
    """Add elements at both ends of the axes, or cut them off where a pad is negative.

    `pads` holds the begins of all `axes`, then their ends.
    """
    places = normal_axes(None if axes is None else axes.reshape(-1).tolist(), data.ndim)
    amounts = integers(pads)
    if len(amounts) != 2 * len(places):
        raise ValueError(f"pads has {len(amounts)} elements: expected 2 for each of {len(places)} axes")
    width = [[0, 0] for _ in range(data.ndim)]
    for axis, begin, end in zip(places, amounts[: len(places)], amounts[len(places) :], strict=True):
        width[axis] = [begin, end]
    value = constant_value.reshape(-1)[0] if constant_value is not None and constant_value.size else None
    return pad_by(ctx, data, width, mode, value)


def pad_by(ctx: RunContext, data: Array, width: Sequence[Sequence[int]], mode: str, value: Any) -> Array:
    """Pad by [begin, end] of each axis; a missing value is 0 (False, "")."""
    if mode not in _PAD_MODES:
        raise ValueError(f"mode is {mode!r}: expected one of {', '.join(_PAD_MODES)}")
    for axis, (dim, (begin, end)) in enumerate(zip(data.shape, width, strict=True)):
        if dim + begin + end < 0:
            raise ValueError(f"pads {begin} and {end} leave less than nothing of axis {axis}, which has {dim} elements")
    dims = [dim + begin + end for dim, (begin, end) in zip(data.shape, width, strict=True)]
    ctx.reserve(prod(dims) * data.itemsize, "the padded tensor")
    kept = [  # what negative pads leave of each axis
        slice(max(0, -begin), max(0, -begin, min(dim, dim + end)))
        for dim, (begin, end) in zip(data.shape, width, strict=True)
    ]
    data = data[tuple(kept)]
    if mode != "constant":
        for axis, (left, dim) in enumerate(zip(data.shape, dims, strict=True)):
            if dim and not left:
                raise ValueError(f"pads leave nothing of axis {axis}: mode {mode!r} has nothing to repeat")
        grow = [(max(0, begin), max(0, end)) for begin, end in width]
        return np.pad(data, grow, mode=_PAD_MODES[mode])  # type: ignore[call-overload]
    if value is None:
        value = "" if data.dtype == object else 0
    result = np.full(dims, value, data.dtype)
    if data.size:
        starts = [part.start + begin for part, (begin, _) in zip(kept, width, strict=True)]
        result[tuple(slice(start, start + dim) for start, dim in zip(starts, data.shape, strict=True))] = data
    return result


@kernel("Pad", since=1, context=True)
def pad_1(
    ctx: RunContext,
    data: Array,
    pads: Sequence[int] | None = None,
    mode: str = "constant",
    value: float = 0.0,
    paddings: Sequence[int] | None = None,
) -> Array:
    """As Pad-11 with attributes; opset 1 called the amounts `paddings`."""
    amounts = np.asarray(pads if pads is not None else paddings, np.int64)
    return pad(ctx, data, amounts, np.asarray(value, data.dtype), mode=mode)


@kernel("CenterCropPad", since=18, context=True)
def center_crop_pad(ctx: RunContext, x: Array, shape: Array, axes: Sequence[int] | None = None) -> Array:
    """Cut or zero-pad both ends of the axes to the sizes given; an odd element goes to the end."""
    width = [[0, 0] for _ in range(x.ndim)]
    for axis, wanted in zip(normal_axes(axes, x.ndim), integers(shape), strict=True):
        more = wanted - x.shape[axis]
        begin = more // 2 if more >= 0 else -(-more // 2)
        width[axis] = [begin, more - begin]
    return pad_by(ctx, x, width, "constant", None)


@kernel("Trilu", since=14)
def trilu(x: Array, k: Array | None = None, upper: int = 1) -> Array:
    """The upper or lower triangle of the matrices in the last two axes; the rest is 0."""
    diagonal = 0 if k is None else int(k.reshape(-1)[0])
    return np.triu(x, diagonal) if upper else np.tril(x, diagonal)


@kernel("ReverseSequence", since=10)
def reverse_sequence(x: Array, sequence_lens: Array, batch_axis: int = 1, time_axis: int = 0) -> Array:
    """Reverse the first sequence_lens[b] time steps of every batch entry b."""
    batch, time = normal_axis(batch_axis, x.ndim), normal_axis(time_axis, x.ndim)
    y = x.copy()
    source, target = np.moveaxis(x, (batch, time), (0, 1)), np.moveaxis(y, (batch, time), (0, 1))
    for entry, length in enumerate(integers(sequence_lens)):
        if not 0 <= length <= x.shape[time]:
            raise ValueError(f"sequence_lens[{entry}] is {length}: expected 0 to {x.shape[time]}")
        target[entry, :length] = source[entry, :length][::-1]
    return y


def _concat_bytes(attributes: Mapping[str, Any], *inputs: Any) -> int:
    """One input may come a thousand times."""
    return sum([int(array.nbytes) for array in inputs])


def _crop_pad_bytes(attributes: Mapping[str, Any], array: Any, shape: Any) -> int:
    dims = list(array.shape)
    for axis, size in zip(attributes.get("axes") or range(array.ndim), shape, strict=True):
        dims[axis] = int(size)
    return int(prod(dims) * int(array.itemsize))


def _expand_bytes(attributes: Mapping[str, Any], array: Any, shape: Any) -> int:
    return int(prod(np.broadcast_shapes(array.shape, tuple(map(int, shape)))) * int(array.itemsize))


def _pad_bytes(attributes: Mapping[str, Any], array: Any, pads: Any = None, value: Any = None, axes: Any = None) -> int:
    amounts = [int(pad) for pad in (attributes.get("pads", ()) if pads is None else pads.reshape(-1))]
    half = len(amounts) // 2
    shape = list(array.shape)
    for number, axis in enumerate(range(len(shape)) if axes is None else map(int, axes)):
        shape[axis] += amounts[number] + amounts[half + number]
    return int(prod(shape) * int(array.itemsize))


def _tile_bytes(attributes: Mapping[str, Any], array: Any, repeats: Any, *rest: Any) -> int:
    return int(prod(map(int, repeats)) * int(array.nbytes))


traits(
    "CenterCropPad",
    OpTraits(category="elementwise", shape="sizes", flops=1, out_bytes=_crop_pad_bytes, sizes={1: "one"}),
)
_MOVES = OpTraits(
    category="shape", shape="shapes", flops=0, half="exact", quiet=True, size_arithmetic=True, forwards=True
)
traits("Concat", replace(_MOVES, out_bytes=_concat_bytes))
traits("Flatten Transpose", _MOVES)
traits(
    "DepthToSpace SpaceToDepth",
    OpTraits(category="shape", shape="shapes", flops=0, elements="none", half="exact", signature="N C H W"),
)
traits(
    "Expand",
    OpTraits(
        category="shape",
        shape="sizes",
        flops=0,
        half="exact",
        out_bytes=_expand_bytes,
        quiet=True,
        size_arithmetic=True,
        forwards=True,
        sizes={1: "one"},
    ),
)
traits(
    "Identity",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=0,
        half="exact",
        quiet=True,
        size_arithmetic=True,
        blockwise=True,
        forwards=True,
        same_since=1,
    ),
)
traits(
    "Pad",
    OpTraits(
        category="shape",
        shape="sizes",
        flops=0,
        half="exact",
        out_bytes=_pad_bytes,
        sizes={1: "zero"},
        was_attribute={11: {1: ("pads", "ints"), 2: ("value", "float")}},
    ),
)
traits(
    "Reshape",
    OpTraits(
        category="shape",
        shape="sizes",
        flops=0,
        half="exact",
        quiet=True,
        size_arithmetic=True,
        forwards=True,
        sizes={1: "shape"},
    ),
)
traits("ReverseSequence", OpTraits(category="shape", shape="shapes", flops=1, elements="none", signature="? ? ...|?"))
traits(
    "Shape Size",
    OpTraits(
        category="shape",
        shape="shapes",
        flops=0,
        elements="none",
        shape_only=True,
        half="exact",
        quiet=True,
        zero_gradient=True,
    ),
)
traits("Split", OpTraits(category="shape", shape="sizes", flops=0, half="exact", quiet=True, size_arithmetic=True))
traits(
    "Squeeze Unsqueeze",
    OpTraits(
        category="shape",
        shape="sizes",
        flops=0,
        half="exact",
        quiet=True,
        size_arithmetic=True,
        forwards=True,
        sizes={1: "zero"},
    ),
)
traits(
    "Tile",
    OpTraits(
        category="shape",
        shape="sizes",
        flops=0,
        half="exact",
        out_bytes=_tile_bytes,
        out_bytes_since=6,
        size_arithmetic=True,
        forwards=True,
        sizes={1: "one"},
    ),
)
traits("Trilu", OpTraits(category="shape", shape="shapes", flops=1, elements="none", size_arithmetic=True))
traits("Trilu", OpTraits(category="shape", shape="shapes", flops=1), "com.microsoft")
