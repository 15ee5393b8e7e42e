"""Dims that sliding windows give: what the shape rules of convolutions and poolings share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import Attributes
from onnxlab.shapes import Dim, FactError, Shape, ceil_div, floor_div, minimum


@lru_cache(4096)
def slide(dim: Dim, kernel: Dim, stride: int, dilation: int, before: int, after: int, ceil_mode: bool = False) -> Dim:
    """The number of places of a dilated window in a padded dim.

    With `ceil_mode` the last window may reach beyond the dim, but must start inside the input or its leading pad.
    """
    free = dim + (before + after - (kernel - 1) * dilation - 1)
    if not ceil_mode:
        return free + 1 if stride == 1 else floor_div(free + stride, stride)
    count = ceil_div(free, stride) + 1
    inside = floor_div(dim + before - 1, stride) + 1
    return minimum(count, inside)


@lru_cache(1024)
def _geometry(
    count: int,
    strides: tuple[int, ...] | None,
    dilations: tuple[int, ...] | None,
    pads: tuple[int, ...] | None,
    auto_pad: str,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], bool]:
    """Strides, dilations and pads of a window over `count` axes, and whether only the strides matter."""
    strides = checked("strides", strides, count, 1)
    dilations = checked("dilations", dilations, count, 1)
    pads = checked("pads", pads, 2 * count, 0)
    if auto_pad == "VALID":
        pads = (0,) * (2 * count)
    return strides, dilations, pads, auto_pad in ("SAME_UPPER", "SAME_LOWER")


def checked(name: str, values: tuple[int, ...] | None, count: int, default: int) -> tuple[int, ...]:
    """A list attribute of a value per spatial axis. Raises FactError for the wrong number of them."""
    if not values:
        return (default,) * count
    if len(values) != count:
        raise FactError(
            f"attribute {name}={list(values)} has {len(values)} values",
            code="bad-attribute",
            expected=f"{count} values",
            found=f"{len(values)} values",
            hint=f"give {name} one value for each spatial axis" + (", before then after" if name == "pads" else ""),
        )
    if name in ("strides", "dilations", "kernel_shape") and min(values) < 1:
        raise FactError(
            f"attribute {name}={list(values)}",
            code="bad-attribute",
            expected="values from 1 on",
            found=str(min(values)),
        )
    return values


def windows(
    ctx: InferContext, attributes: Attributes, space: Sequence[Dim], kernel: Sequence[Dim], ceil_mode: bool = False
) -> Shape:
    """Spatial dims of a convolution or pooling by kernel, strides, dilations, pads and auto_pad."""
    strides, dilations, pads, same = _geometry(
        len(space),
        attributes.get("strides"),
        attributes.get("dilations"),
        attributes.get("pads"),
        attributes.get("auto_pad", "NOTSET"),
    )
    if same:
        return tuple([ceil_div(dim, stride) for dim, stride in zip(space, strides, strict=True)])
    count = len(space)
    dims = []
    for axis, dim in enumerate(space):
        before, after = pads[axis], pads[axis + count]
        size = slide(dim, kernel[axis], strides[axis], dilations[axis], before, after, ceil_mode)
        if isinstance(size, int) and size < (0 if before + after < 0 else 1):
            reach = (kernel[axis] - 1) * dilations[axis] + 1
            raise FactError(
                f"a window of {reach} does not fit spatial axis {axis} of size {dim} padded by {before} and {after}",
                code="window-too-large",
                expected=f"at least {reach}",
                found=str(dim + before + after),
                hint="use a smaller kernel or dilation, or more padding",
            )
        dims.append(size)
    return tuple(dims)
