"""Operators that add to borders or cut from them: Pad, CenterCropPad."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.kernel_helpers import Array, integers, normal_axes
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, checked_axes, dims_text, items, known_integers, like, unknown_shape
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Dim, Fact, FactError

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

    `pads` holds the amounts at the beginning of all `axes`, then those at their ends.
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
    remaining = [  # what negative pads leave of each axis
        slice(max(0, -begin), max(0, -begin, min(dim, dim + end)))
        for dim, (begin, end) in zip(data.shape, width, strict=True)
    ]
    data = data[tuple(remaining)]
    if mode != "constant":
        for axis, (left, dim) in enumerate(zip(data.shape, dims, strict=True)):
            if dim and not left:
                raise ValueError(f"pads leave nothing of axis {axis}: mode {mode!r} has nothing to repeat")
        grow = [(max(0, begin), max(0, end)) for begin, end in width]
        if prod(dims) > _SMALL or not data.size:
            return np.pad(data, grow, mode=_PAD_MODES[mode])  # type: ignore[call-overload]
        for axis, pair in enumerate(grow):
            if max(pair):
                data = data.take(_sources(data.shape[axis], pair, mode), axis)
        return data
    if value is None:
        value = "" if data.dtype == object else 0
    result = np.full(dims, value, data.dtype)
    if data.size:
        starts = [part.start + begin for part, (begin, _) in zip(remaining, width, strict=True)]
        result[tuple(slice(start, start + dim) for start, dim in zip(starts, data.shape, strict=True))] = data
    return result


_SMALL = 1 << 16
"""Elements up to which an index of each padded axis takes less time than `np.pad`, most of which is Python."""


@lru_cache(64)
def _sources(size: int, grow: tuple[int, int], mode: str) -> Array:
    """The element of an axis of `size` that each one of the padded axis repeats."""
    return np.pad(np.arange(size), grow, mode=_PAD_MODES[mode])  # type: ignore[call-overload]


@kernel("Pad", since=1, context=True)
def pad_1(
    ctx: RunContext,
    data: Array,
    pads: Sequence[int] | None = None,
    mode: str = "constant",
    value: float = 0.0,
    paddings: Sequence[int] | None = None,
) -> Array:
    """Pad-11 with attributes; opset 1 called the amounts `paddings`."""
    amounts = np.asarray(pads if pads is not None else paddings, np.int64)
    return pad(ctx, data, amounts, np.asarray(value, data.dtype), mode=mode)


@kernel("CenterCropPad", since=18, context=True)
def center_crop_pad(ctx: RunContext, x: Array, shape: Array, axes: Sequence[int] | None = None) -> Array:
    """Cut or zero-pad both ends of the axes to the sizes given; an odd element goes to the end."""
    width = [[0, 0] for _ in range(x.ndim)]
    for axis, size in zip(normal_axes(axes, x.ndim), integers(shape), strict=True):
        more = size - x.shape[axis]
        begin = more // 2 if more >= 0 else -(-more // 2)
        width[axis] = [begin, more - begin]
    return pad_by(ctx, x, width, "constant", None)


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("Pad", since=11)
def pad_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, pads: Fact, value: MaybeFact = None, axes: MaybeFact = None
) -> Fact:
    """Each dim plus what is added before and after it."""
    if x.shape is None:
        return like(x, None)
    rank = len(x.shape)
    chosen = list(range(rank)) if axes is None else known_integers(axes)
    amounts = items(pads)
    if chosen is None or amounts is None:
        return like(x, unknown_shape(ctx, rank))
    return _padded(ctx, x, amounts, checked_axes(chosen, rank))


@rule("Pad", since=2)
@rule("Pad", since=1)
def pad_by_attribute(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Pad-11 with the amounts in an attribute."""
    if x.shape is None:
        return like(x, None)
    amounts = list(attributes.get("pads") or attributes.get("paddings") or ())
    return _padded(ctx, x, amounts, list(range(len(x.shape))))


def _padded(ctx: InferContext, x: Fact, amounts: Sequence[Dim | None], axes: Sequence[int]) -> Fact:
    shape = x.shape or ()
    if len(amounts) != 2 * len(axes):
        raise FactError(
            f"it has {len(amounts)} pads for {len(axes)} axes of {dims_text(shape)}",
            expected=f"{2 * len(axes)} pads",
            found=f"{len(amounts)} pads",
            hint="give all amounts before, then all amounts after",
        )
    dims: list[Dim] = list(shape)
    for position, axis in enumerate(axes):
        before, after = amounts[position], amounts[position + len(axes)]
        dims[axis] = ctx.symbol(0, axis) if before is None or after is None else dims[axis] + before + after
    return like(x, tuple(dims))


# -- traits ------------------------------------------------------------------------------------------------------------


def _crop_pad_bytes(attributes: Mapping[str, Any], array: Any, shape: Any) -> int:
    dims = list(array.shape)
    for axis, size in zip(attributes.get("axes") or range(array.ndim), shape, strict=True):
        dims[axis] = int(size)
    return int(prod(dims) * int(array.itemsize))


def _pad_bytes(attributes: Mapping[str, Any], array: Any, pads: Any = None, value: Any = None, axes: Any = None) -> int:
    amounts = [int(pad) for pad in (attributes.get("pads", ()) if pads is None else pads.reshape(-1))]
    half = len(amounts) // 2
    shape = list(array.shape)
    for number, axis in enumerate(range(len(shape)) if axes is None else map(int, axes)):
        shape[axis] += amounts[number] + amounts[half + number]
    return int(prod(shape) * int(array.itemsize))


traits(
    "CenterCropPad",
    OpTraits(category="elementwise", shape="sizes", flops=1, out_bytes=_crop_pad_bytes, sizes={1: "one"}),
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
        value_versions={"mode": {"wrap": (19, None)}},
        was_attribute={11: {1: ("pads", "ints"), 2: ("value", "float")}},
    ),
)
