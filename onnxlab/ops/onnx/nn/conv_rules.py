"""Shape rules of what slides a window: Conv and its kin, pooling, and Resize, which scales the same dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import (
    MaybeFact,
    dims_text,
    elem_type,
    like,
    rank_at_least,
    unknown_shape,
)
from onnxlab.shapes import Dim, Fact, FactError, Shape, TensorFact, ceil_div, floor_div, minimum

Attributes = Mapping[str, Any]


@lru_cache(4096)
def slide(dim: Dim, kernel: Dim, stride: int, dilation: int, before: int, after: int, ceil_mode: bool = False) -> Dim:
    """How many times a dilated window fits a padded dim.

    With `ceil_mode` the last one may hang over, but must start inside the input or its leading pad.
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
    strides = _checked("strides", strides, count, 1)
    dilations = _checked("dilations", dilations, count, 1)
    pads = _checked("pads", pads, 2 * count, 0)
    if auto_pad == "VALID":
        pads = (0,) * (2 * count)
    return strides, dilations, pads, auto_pad in ("SAME_UPPER", "SAME_LOWER")


def _checked(name: str, given: tuple[int, ...] | None, count: int, default: int) -> tuple[int, ...]:
    """A list attribute of a value per spatial axis. Raises FactError for the wrong number of them."""
    if not given:
        return (default,) * count
    if len(given) != count:
        raise FactError(
            f"attribute {name}={list(given)} has {len(given)} values",
            code="bad-attribute",
            expected=f"{count} values",
            found=f"{len(given)} values",
            hint=f"give {name} one value for each spatial axis" + (", before then after" if name == "pads" else ""),
        )
    if name in ("strides", "dilations", "kernel_shape") and min(given) < 1:
        raise FactError(
            f"attribute {name}={list(given)}", code="bad-attribute", expected="values from 1 on", found=str(min(given))
        )
    return given


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


def _conv_shape(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact) -> Shape | None:
    given = attributes.get("kernel_shape")
    if x.shape is None and w.shape is None:
        return unknown_shape(ctx, 2 + len(given)) if given else None
    rank = len(x.shape if x.shape is not None else w.shape or ())
    if rank < 3:
        shown = dims_text(x.shape if x.shape is not None else w.shape)
        raise FactError(
            f"it convolves {shown}", code="rank-mismatch", expected="[N, C, one or more spatial dims]", found=shown
        )
    if x.shape is not None and w.shape is not None:
        _check_channels(x.shape, w.shape, attributes.get("group", 1))
    kernel: Sequence[Dim] | None = w.shape[2:] if w.shape is not None else None
    if given:
        _check_kernel(given, kernel, rank - 2)
        kernel = given
    batch = x.shape[0] if x.shape is not None else ctx.symbol(0, 0)
    channels = w.shape[0] if w.shape is not None else ctx.symbol(0, 1)
    if x.shape is None or kernel is None:
        return (batch, channels, *unknown_shape(ctx, rank)[2:])
    return (batch, channels, *windows(ctx, attributes, x.shape[2:], kernel))


def _check_channels(x: Shape, w: Shape, group: int) -> None:
    """Raise FactError where the input's channels are not the weight's times the number of groups."""
    if len(x) != len(w):
        raise FactError(
            f"the input {dims_text(x)} and the weight {dims_text(w)} have different ranks",
            code="rank-mismatch",
            expected=f"rank {len(x)}",
            found=f"rank {len(w)}",
        )
    wanted = w[1] * group
    if isinstance(x[1], int) and isinstance(wanted, int) and x[1] != wanted:
        raise FactError(
            f"the input {dims_text(x)} has {x[1]} channels, the weight {dims_text(w)} with group={group} "
            f"takes {wanted}",
            code="channel-mismatch",
            expected=f"{wanted} channels",
            found=f"{x[1]} channels",
            hint="change the weight, the attribute group, or what makes the input",
        )
    if isinstance(w[0], int) and group > 0 and w[0] % group:
        raise FactError(
            f"group={group} does not divide the {w[0]} output channels of the weight",
            code="channel-mismatch",
            expected=f"a multiple of {group}",
            found=str(w[0]),
        )


def _check_kernel(given: Sequence[int], kernel: Sequence[Dim] | None, count: int) -> None:
    if len(given) != count:
        raise FactError(
            f"attribute kernel_shape={list(given)} has {len(given)} values",
            code="bad-attribute",
            expected=f"{count} values",
            found=f"{len(given)} values",
        )
    if given == kernel:
        return
    for axis, (attribute, stored) in enumerate(zip(given, kernel or given, strict=True)):
        if isinstance(stored, int) and attribute != stored:
            raise FactError(
                f"attribute kernel_shape={list(given)} contradicts the weight, whose spatial axis {axis} has {stored}",
                code="bad-attribute",
                expected=str(stored),
                found=str(attribute),
                hint="leave kernel_shape out: it follows from the weight",
            )


@rule("Conv")
def conv(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, bias: MaybeFact = None) -> Fact:
    """[N, M, …]: a filter's channels, and the windows that fit each spatial dim."""
    shape = _conv_shape(ctx, attributes, x, w)
    if bias is not None and bias.shape is not None and w.shape is not None and bias.shape != w.shape[:1]:
        ints = all(isinstance(dim, int) for dim in (*bias.shape, w.shape[0]))
        if len(bias.shape) != 1 or ints:
            raise FactError(
                f"the bias has shape {dims_text(bias.shape)} for {w.shape[0]} output channels",
                expected=f"[{w.shape[0]}]",
                found=dims_text(bias.shape),
            )
    return TensorFact(elem_type(x) or elem_type(w), shape)


@rule("ConvInteger", since=10)
def conv_integer(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, *_zero_points: MaybeFact) -> Fact:
    """A convolution in int32."""
    return TensorFact(dtypes.INT32, _conv_shape(ctx, attributes, x, w))


@rule("QLinearConv", since=10)
def qlinear_conv(
    ctx: InferContext,
    attributes: Attributes,
    x: Fact,
    x_scale: Fact,
    x_zero_point: Fact,
    w: Fact,
    w_scale: Fact,
    w_zero_point: Fact,
    y_scale: Fact,
    y_zero_point: Fact,
    bias: MaybeFact = None,
) -> Fact:
    """A convolution in the type of the output's zero point."""
    return TensorFact(elem_type(y_zero_point) or elem_type(x), _conv_shape(ctx, attributes, x, w))


@rule("ConvTranspose")
def conv_transpose(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, bias: MaybeFact = None) -> Fact:
    """[N, M * group, …]: each spatial dim spread by the stride, or what `output_shape` says."""
    if x.shape is None or w.shape is None:
        return like(x, None if x.shape is None else unknown_shape(ctx, len(x.shape)))
    rank_at_least(x, 3, "the input")
    count = len(x.shape) - 2
    group = attributes.get("group", 1)
    if isinstance(x.shape[1], int) and isinstance(w.shape[0], int) and x.shape[1] != w.shape[0]:
        raise FactError(
            f"the input {dims_text(x.shape)} has {x.shape[1]} channels, the weight {dims_text(w.shape)} "
            f"takes {w.shape[0]}",
            code="channel-mismatch",
            expected=f"{w.shape[0]} channels",
            found=f"{x.shape[1]} channels",
        )
    kernel = attributes.get("kernel_shape") or w.shape[2:]
    strides = _checked("strides", attributes.get("strides"), count, 1)
    dilations = _checked("dilations", attributes.get("dilations"), count, 1)
    pads = _checked("pads", attributes.get("pads"), 2 * count, 0)
    extra = _checked("output_padding", attributes.get("output_padding"), count, 0)
    wanted = attributes.get("output_shape")
    auto = attributes.get("auto_pad", "NOTSET")
    dims: list[Dim] = []
    for axis, dim in enumerate(x.shape[2:]):
        if wanted:
            dims.append(wanted[axis - count])
        elif auto in ("SAME_UPPER", "SAME_LOWER"):
            dims.append(dim * strides[axis])
        else:
            cut = 0 if auto == "VALID" else pads[axis] + pads[axis + count]
            reach = (kernel[axis] - 1) * dilations[axis] + 1
            dims.append((dim - 1) * strides[axis] + extra[axis] + reach - cut)
    return like(x, (x.shape[0], w.shape[1] * group, *dims))


# -- pooling ------------------------------------------------------------------------------------------------------


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
def average_pool(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The windows that fit each spatial dim."""
    return like(x, _pooled(ctx, attributes, x))


@rule("MaxPool")
def max_pool(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
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
