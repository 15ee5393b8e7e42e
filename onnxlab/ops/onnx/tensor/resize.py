"""Resize and Upsample: every axis by itself, as a weighted sum of a few input elements for each output element."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, prod
from typing import Any

import numpy as np

from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.kernel_helpers import Array, integers, is_small_float, normal_axes
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, items, known_of, like
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Dim, Fact, FactError, Shape, floor_div

Weights = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Axis:
    """The resizing of one axis: input and output length, scale, and the region [start, end] of tf_crop_and_resize."""

    place: int
    size: int
    output: int
    scale: float
    start: float = 0.0
    end: float = 1.0


def _coordinates(axis: Axis, mode: str) -> Array:
    """The input coordinate that each output element looks at, float32 as in ONNX Runtime."""
    f = np.float32
    i, scale, last = np.arange(axis.output, dtype=f), f(axis.scale), f(axis.size - 1)
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and axis.output > 1):
        return (i + f(0.5)) / scale - f(0.5)
    if mode == "pytorch_half_pixel":
        return np.zeros_like(i)
    if mode == "half_pixel_symmetric":
        adjustment = f(axis.output) / (scale * f(axis.size))
        return f(axis.size) / 2 * (1 - adjustment) + (i + f(0.5)) / scale - f(0.5)
    if mode == "align_corners":
        # a fractional length counts as it is, as in onnx's own cases; ONNX Runtime takes the output's, rounded down
        resized = f(axis.scale) * f(axis.size)
        return i * last / (resized - 1) if resized != 1 else np.zeros_like(i)
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_half_pixel_for_nn":
        return (i + f(0.5)) / scale
    if mode == "tf_crop_and_resize":
        if axis.output > 1:
            return f(axis.start) * last + i * (f(axis.end - axis.start) * last / f(axis.output - 1))
        return np.full_like(i, f(0.5) * f(axis.start + axis.end) * last)
    raise ValueError(f"coordinate_transformation_mode {mode!r} is unknown")


NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - np.float32(0.5)),
    "round_prefer_ceil": lambda x: np.floor(x + np.float32(0.5)),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _triangle(distance: Array) -> Array:
    return np.maximum(0, 1 - np.abs(distance))


def _cubic(a: float) -> Weights:
    """Keys' cubic convolution with coefficient a."""

    def weights(distance: Array) -> Array:
        d = np.abs(distance)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))

    return weights


def _taps(
    axis: Axis, where: Array, weights: Weights, support: int, antialias: bool, exclude_outside: bool
) -> tuple[Array, Array]:
    """(input indices, weights), both [output, taps]; what lies outside reads the border element."""
    stretch = min(1.0, axis.scale) if antialias else 1.0  # a filter for a smaller output spans more of the input
    reach = support / stretch
    count = 2 * int(np.ceil(reach))
    first = np.floor(where.astype(np.float64)) - count // 2 + 1
    index = first[:, None] + np.arange(count)
    weight = weights((index - where[:, None].astype(np.float64)) * stretch)
    if exclude_outside:
        weight = np.where((index < 0) | (index > axis.size - 1), 0, weight)
    if exclude_outside or antialias:
        weight = weight / weight.sum(axis=1, keepdims=True)
    return np.clip(index, 0, axis.size - 1).astype(np.intp), weight.astype(np.float32)


def selection(
    axis: Axis,
    mode: str,
    coordinates: str,
    nearest: Callable[[Array], Array],
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
) -> tuple[Array, Array | None]:
    """The sources of a resized axis's elements: (input indices [output, taps], weights or None for nearest)."""
    where = _coordinates(axis, coordinates)
    if mode == "nearest":
        return np.clip(nearest(where), 0, axis.size - 1).astype(np.intp)[:, None], None
    if mode == "linear" and not antialias:
        where = np.clip(where, 0, axis.size - 1)
    weights, support = (_triangle, 1) if mode == "linear" else (_cubic(cubic_coeff_a), 2)
    return _taps(axis, where, weights, support, antialias, exclude_outside and mode == "cubic")


def is_same(axis: Axis, coordinates: str) -> bool:
    """Whether an axis stays as it is."""
    return axis.output == axis.size and axis.scale == 1 and coordinates != "tf_crop_and_resize"


def outside(axis: Axis) -> Array:
    """The elements that tf_crop_and_resize takes from beyond the input."""
    where = _coordinates(axis, "tf_crop_and_resize")
    mask: Array = (where < 0) | (where > axis.size - 1)
    return mask


def _weighted(x: Array, place: int, index: Array, weight: Array) -> Array:
    """Σ over taps of x[index] · weight along one axis."""
    trailing = (1,) * (x.ndim - place - 1)
    total: Array | None = None
    for tap in range(index.shape[1]):
        factor = weight[:, tap]
        if not factor.any():
            continue
        part = x.take(index[:, tap], place)
        np.multiply(part, factor.reshape(-1, *trailing).astype(x.dtype), out=part)
        total = part if total is None else np.add(total, part, out=total)
    return x.take(index[:, 0], place) * 0 if total is None else total


def resize(
    ctx: RunContext,
    x: Array,
    axes: Sequence[Axis],
    mode: str,
    coordinates: str,
    nearest: Callable[[Array], Array],
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    extrapolation_value: float = 0.0,
) -> Array:
    """Resize along some axes."""
    dims = list(x.shape)
    for axis in axes:
        dims[axis.place] = axis.output
    ctx.reserve(prod(dims) * max(x.itemsize, 4), "the resized tensor")
    if not x.size or 0 in dims:
        return np.zeros(dims, x.dtype)
    if mode not in ("nearest", "linear", "cubic"):
        raise ValueError(f"mode is {mode!r}: expected nearest, linear or cubic")
    whole = x.dtype.kind in "iub"
    y = x.astype(np.float32) if mode != "nearest" and (whole or is_small_float(x.dtype)) else x
    beyond: list[tuple[int, Array]] = []
    for axis in axes:
        if is_same(axis, coordinates):
            continue
        if coordinates == "tf_crop_and_resize":
            beyond.append((axis.place, outside(axis)))
        index, weight = selection(axis, mode, coordinates, nearest, cubic_coeff_a, exclude_outside, antialias)
        y = y.take(index[:, 0], axis.place) if weight is None else _weighted(y, axis.place, index, weight)
    if whole and mode != "nearest":
        limits = np.iinfo(x.dtype) if x.dtype.kind != "b" else None
        y = np.rint(y) if antialias else y
        y = np.clip(y, limits.min, limits.max) if limits is not None else y
    y = y.astype(x.dtype, copy=False)
    for place, mask in beyond:
        if mask.any():
            y = np.where(mask.reshape(-1, *(1,) * (y.ndim - place - 1)), np.asarray(extrapolation_value, y.dtype), y)
    return y


def geometry(
    shape: Sequence[int],
    places: Sequence[int],
    scales: Array | None,
    sizes: Array | None,
    roi: Array | None = None,
    policy: str = "stretch",
) -> list[Axis]:
    """The axes to resize, from scales or sizes.

    Raises:
        ValueError: neither or both are given, of another length than the axes, or not positive.
    """
    factors = [] if scales is None else [float(value) for value in scales.reshape(-1)]
    targets = [] if sizes is None else list(integers(sizes))
    if bool(factors) == bool(targets):
        raise ValueError("expected either scales or sizes: the other must be empty")
    if len(factors or targets) != len(places) or min(factors or targets) < 0:
        name = "scales" if factors else "sizes"
        raise ValueError(f"{name} is {factors or targets}: expected {len(places)} positive numbers")
    dims = [shape[place] for place in places]
    if factors:
        targets = [scaled_size(dim, factor) for dim, factor in zip(dims, factors, strict=True)]
    elif policy == "stretch":
        factors = [target / dim if dim else 1.0 for target, dim in zip(targets, dims, strict=True)]
    else:
        choose = {"not_larger": min, "not_smaller": max}[policy]
        factor = choose(target / dim for target, dim in zip(targets, dims, strict=True))
        factors, targets = [factor] * len(dims), [int(np.floor(factor * dim + 0.5)) for dim in dims]
    count = len(places)
    region = [0.0] * count + [1.0] * count
    if roi is not None and roi.size == 2 * count:
        region = [float(value) for value in roi.reshape(-1)]
    return [
        Axis(place, dim, target, factor, region[number], region[count + number])
        for number, (place, dim, target, factor) in enumerate(zip(places, dims, targets, factors, strict=True))
    ]


def scaled_size(size: int, scale: float) -> int:
    """The length of a scaled axis: the product in float32, as in onnx and ONNX Runtime, rounded down."""
    return int(np.float32(size) * np.float32(scale))


@kernel("Resize", since=11, context=True)
def resize_11(
    ctx: RunContext,
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Array:
    """Resize to `sizes`, or by `scales`; antialias widens the filter where the output is smaller."""
    if nearest_mode not in NEAREST:
        raise ValueError(f"nearest_mode is {nearest_mode!r}: expected one of {', '.join(NEAREST)}")
    return resize(
        ctx,
        x,
        geometry(x.shape, normal_axes(axes, x.ndim), scales, sizes, roi, keep_aspect_ratio_policy),
        mode,
        coordinate_transformation_mode,
        NEAREST[nearest_mode],
        cubic_coeff_a,
        bool(exclude_outside),
        bool(antialias),
        extrapolation_value,
    )


@kernel("Upsample", since=9, context=True)
@kernel("Resize", since=10, context=True)
def resize_10(ctx: RunContext, x: Array, scales: Array, mode: str = "nearest") -> Array:
    """Resize-11 with asymmetric coordinates; nearest rounds up on axes that shrink, else down.

    That rounding is ONNX Runtime's; the operator's page leaves it open.
    """
    y = x
    for axis in geometry(x.shape, range(x.ndim), scales, None):
        nearest: Any = np.ceil if axis.scale < 1 else np.floor
        y = resize(ctx, y, [axis], "linear" if mode in ("linear", "bilinear") else mode, "asymmetric", nearest)
    return y


@kernel("Upsample", since=7, context=True)
def upsample_7(ctx: RunContext, x: Array, scales: Sequence[float], mode: str = "nearest") -> Array:
    """Upsample-9 with the scales as an attribute."""
    return resize_10(ctx, x, np.asarray(scales, np.float32), mode=mode)


@kernel("Upsample", since=1, context=True)
def upsample_1(ctx: RunContext, x: Array, height_scale: float, width_scale: float, mode: str = "nearest") -> Array:
    """Upsample-9 for images [N, C, H, W]."""
    return resize_10(ctx, x, np.asarray([1, 1, height_scale, width_scale], np.float32), mode=mode)


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("Resize", since=11)
def resize_rule(
    ctx: InferContext,
    attributes: Attributes,
    x: Fact,
    roi: MaybeFact = None,
    scales: MaybeFact = None,
    sizes: MaybeFact = None,
) -> Fact:
    """The given sizes, or each dim times its scale, rounded down; a region of interest changes no dim."""
    if x.shape is None:
        return like(x, None)
    rank = len(x.shape)
    axes = [axis % rank for axis in attributes.get("axes") or range(rank)]
    if sizes is not None and sizes.shape != (0,):
        return like(x, _resized_to(ctx, attributes, x.shape, axes, items(sizes)))
    if scales is None and sizes is None:
        raise FactError("it has neither scales nor sizes", code="arity", expected="scales or sizes", found="none")
    known = known_of(scales)
    if known is not None and any(isinstance(item, (int, float)) and item <= 0 for item in known.items):
        raise FactError(f"its scales are {known}", expected="scales above 0", found=str(known))
    return like(x, _scaled(ctx, x.shape, axes, scales))


def _resized_to(
    ctx: InferContext, attributes: Attributes, shape: Shape, axes: Sequence[int], sizes: Sequence[Dim | None] | None
) -> Shape:
    dims = list(shape)
    if sizes is None or len(sizes) != len(axes):
        if sizes is not None:
            raise FactError(
                f"it has {len(sizes)} sizes for {len(axes)} axes", expected=str(len(axes)), found=str(len(sizes))
            )
        return tuple(ctx.symbol(0, axis) if axis in axes else dim for axis, dim in enumerate(dims))
    policy = attributes.get("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        return _keeping_aspect(ctx, shape, axes, sizes, policy)
    for axis, size in zip(axes, sizes, strict=True):
        dims[axis] = ctx.symbol(0, axis) if size is None else size
    return tuple(dims)


def _keeping_aspect(
    ctx: InferContext, shape: Shape, axes: Sequence[int], sizes: Sequence[Dim | None], policy: str
) -> Shape:
    """One scale for all axes: the least or greatest of size / dim; sizes are rounded half up."""
    dims = list(shape)
    pairs = [(shape[axis], size) for axis, size in zip(axes, sizes, strict=True)]
    if not all(isinstance(dim, int) and dim and isinstance(size, int) for dim, size in pairs):
        return tuple(ctx.symbol(0, axis) if axis in axes else dim for axis, dim in enumerate(dims))
    ratios = [Fraction(size, dim) for dim, size in pairs]  # type: ignore[arg-type]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    for axis in axes:
        dims[axis] = floor(scale * shape[axis] + Fraction(1, 2))
    return tuple(dims)


def _scaled(ctx: InferContext, shape: Shape, axes: Sequence[int], scales: MaybeFact) -> Shape:
    known = known_of(scales)
    dims = list(shape)
    if known is None or len(known.items) != len(axes):
        return tuple(ctx.symbol(0, axis) if axis in axes else dim for axis, dim in enumerate(dims))
    for axis, scale in zip(axes, known.items, strict=True):
        size = scaled_dim(shape[axis], scale)
        dims[axis] = ctx.symbol(0, axis) if size is None else size
    return tuple(dims)


def scaled_dim(dim: Dim, scale: Any) -> Dim | None:
    """floor(dim * scale); of a symbolic dim only for scales with a small denominator."""
    if not isinstance(scale, (int, float)) or scale != scale or scale in (float("inf"), float("-inf")):
        return None
    if isinstance(dim, int):
        return scaled_size(dim, scale)
    exact = Fraction(scale)
    return floor_div(dim * exact.numerator, exact.denominator) if exact.denominator <= 1024 else None


@rule("Resize", since=10)
@rule("Upsample", since=9)
def resize_by_scales(ctx: InferContext, attributes: Attributes, x: Fact, scales: Fact) -> Fact:
    """Each dim times its scale, rounded down."""
    return like(x, None if x.shape is None else _scaled(ctx, x.shape, range(len(x.shape)), scales))


# -- traits ------------------------------------------------------------------------------------------------------------


def _resize_bytes(attributes: Mapping[str, Any], array: Any, *rest: Any) -> int:
    """Resize from opset 11 on has roi, scales and sizes; opset 10 and Upsample have scales."""
    scales = rest[0] if len(rest) == 1 else rest[1] if len(rest) > 1 else attributes.get("scales")
    sizes = rest[2] if len(rest) > 2 else None
    axes = attributes.get("axes") or range(array.ndim)
    shape = [float(size) for size in array.shape]
    for number, axis in enumerate(axes):
        if sizes is not None and len(sizes):
            shape[axis] = float(sizes[number])
        elif scales is not None and len(scales):
            shape[axis] *= float(scales[number])
    return int(prod(shape)) * int(array.itemsize)


traits(
    "Resize Upsample",
    OpTraits(
        category="pooling",
        shape="sizes",
        flops=1,
        out_bytes=_resize_bytes,
        float_sizes=True,
        value_versions={
            "mode": {"cubic": (11, None)},
            "coordinate_transformation_mode": {
                "tf_half_pixel_for_nn": (11, 12),
                "half_pixel_symmetric": (19, None),
            },
        },
    ),
)
