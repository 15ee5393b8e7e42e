"""Shape rules of Resize, Upsample and GridSample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import Any

from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, items, known_of, like, unknown_shape
from onnxlab.shapes import Dim, Fact, FactError, Shape, floor_div

Attributes = Mapping[str, Any]


@rule("Resize", since=11)
def resize(
    ctx: InferContext,
    attributes: Attributes,
    x: Fact,
    roi: MaybeFact = None,
    scales: MaybeFact = None,
    sizes: MaybeFact = None,
) -> Fact:
    """The given sizes, or each dim times its scale, rounded down."""
    if x.shape is None:
        return like(x, None)
    rank = len(x.shape)
    axes = [axis % rank for axis in attributes.get("axes") or range(rank)]
    if sizes is not None and sizes.shape != (0,):
        return like(x, _resized_to(ctx, attributes, x.shape, axes, items(sizes)))
    if scales is None and sizes is None:
        raise FactError("it has neither scales nor sizes", code="arity", expected="scales or sizes", found="none")
    given = known_of(scales)
    if given is not None and any(isinstance(item, (int, float)) and item <= 0 for item in given.items):
        raise FactError(f"its scales are {given}", expected="scales above 0", found=str(given))
    if attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        return like(x, _scaled_crop(ctx, x.shape, axes, roi, scales))
    return like(x, _scaled(ctx, x.shape, axes, scales))


def _resized_to(
    ctx: InferContext, attributes: Attributes, shape: Shape, axes: Sequence[int], wanted: Sequence[Dim | None] | None
) -> Shape:
    dims = list(shape)
    if wanted is None or len(wanted) != len(axes):
        if wanted is not None:
            raise FactError(
                f"it has {len(wanted)} sizes for {len(axes)} axes", expected=str(len(axes)), found=str(len(wanted))
            )
        return tuple(ctx.symbol(0, axis) if axis in axes else dim for axis, dim in enumerate(dims))
    policy = attributes.get("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        return _keeping_aspect(ctx, shape, axes, wanted, policy)
    for axis, size in zip(axes, wanted, strict=True):
        dims[axis] = ctx.symbol(0, axis) if size is None else size
    return tuple(dims)


def _keeping_aspect(
    ctx: InferContext, shape: Shape, axes: Sequence[int], wanted: Sequence[Dim | None], policy: str
) -> Shape:
    """One scale for all axes: the least or greatest of size / dim; sizes are rounded half up."""
    dims = list(shape)
    pairs = [(shape[axis], size) for axis, size in zip(axes, wanted, strict=True)]
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
        return floor(dim * scale)
    exact = Fraction(scale)
    return floor_div(dim * exact.numerator, exact.denominator) if exact.denominator <= 1024 else None


def _scaled_crop(ctx: InferContext, shape: Shape, axes: Sequence[int], roi: MaybeFact, scales: MaybeFact) -> Shape:
    """floor(dim * (end - start) * scale) for a region of interest."""
    region, factors = known_of(roi), known_of(scales)
    dims = list(shape)
    for position, axis in enumerate(axes):
        size: Dim | None = None
        if region is not None and factors is not None and len(region.items) == 2 * len(axes):
            start, end, scale = region.items[position], region.items[position + len(axes)], factors.items[position]
            numbers = all(isinstance(n, (int, float)) for n in (start, end, scale))
            if numbers and isinstance(dims[axis], int):
                size = floor(dims[axis] * (end - start) * scale)  # type: ignore[operator]
        dims[axis] = ctx.symbol(0, axis) if size is None else size
    return tuple(dims)


@rule("Resize", since=10)
@rule("Upsample", since=9)
def resize_by_scales(ctx: InferContext, attributes: Attributes, x: Fact, scales: Fact) -> Fact:
    """Each dim times its scale, rounded down."""
    return like(x, None if x.shape is None else _scaled(ctx, x.shape, range(len(x.shape)), scales))


@rule("GridSample", since=16)
def grid_sample(ctx: InferContext, attributes: Attributes, x: Fact, grid: Fact) -> Fact:
    """[N, C, …] with the spatial dims of the grid."""
    if x.shape is None or grid.shape is None:
        return like(x, None if x.shape is None else (*x.shape[:2], *unknown_shape(ctx, len(x.shape))[2:]))
    return like(x, (*x.shape[:2], *grid.shape[1:-1]))
