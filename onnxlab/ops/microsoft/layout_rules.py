"""Shape rules of ONNX Runtime's operators on other layouts of images: channels last, and channels in blocks (NCHWc).

Blocked tensors are described by their logical dims [N, C, …], as ONNX Runtime does. Source: its contrib_ops schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, like, unknown_shape
from onnxlab.ops.onnx.math.elementwise_rules import same_as_first
from onnxlab.ops.onnx.nn.conv_rules import average_pool, conv, conv_transpose, global_pool, max_pool, qlinear_conv
from onnxlab.ops.onnx.tensor.resize_rules import grid_sample
from onnxlab.ops.onnx.tensor.shape_rules import depth_to_space, space_to_depth
from onnxlab.shapes import Fact, Shape, ceil_div

Attributes = Mapping[str, Any]
Infer = Callable[..., Any]

BLOCKED = "com.microsoft.nchwc"
INTERNAL = "com.ms.internal.nhwc"
BLOCKS = (8, 16)
"""Channels are padded to whole blocks, of a size by the processor."""


def channels_first(shape: Shape | None) -> Shape | None:
    """[N, …, C] as [N, C, …]."""
    return shape if shape is None or len(shape) < 2 else (shape[0], shape[-1], *shape[1:-1])


def channels_last(shape: Shape | None) -> Shape | None:
    """[N, C, …] as [N, …, C]."""
    return shape if shape is None or len(shape) < 2 else (shape[0], *shape[2:], shape[1])


def on_channels_last(infer: Infer) -> Infer:
    """A rule for images with channels last, from one for [N, C, …]; its first output alone."""

    def moved(ctx: InferContext, attributes: Attributes, x: Fact, *others: MaybeFact) -> Fact:
        found = infer(ctx, attributes, like(x, channels_first(x.shape)), *others)
        first: Fact = found[0] if isinstance(found, tuple) else found
        return like(first, channels_last(first.shape))

    moved.__doc__ = f"{infer.__doc__} Channels last."
    return moved


def _activation_conv(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, *_others: MaybeFact) -> Fact:
    """A convolution; a sum and an activation after it change no dim."""
    return conv(ctx, attributes, x, w)


def _conv_of_last(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, *_others: MaybeFact) -> Fact:
    """A convolution with channels last in the filters too."""
    return conv(ctx, attributes, x, like(w, channels_first(w.shape)))


def _quantized_conv_transpose(
    ctx: InferContext, attributes: Attributes, x: Fact, x_scale: Fact, x_zero: Fact, w: Fact, *_others: MaybeFact
) -> Fact:
    """A quantized transposed convolution; the filters have their channels first."""
    return conv_transpose(ctx, attributes, x, w)


def _of_image_alone(infer: Infer) -> Infer:
    """A rule that sees the first input only: scales and zero points change no dim."""
    return lambda ctx, attributes, x, *_others: infer(ctx, attributes, x)


rule("NhwcMaxPool", domain="com.microsoft")(on_channels_last(max_pool))
rule("NhwcConv", domain="com.microsoft")(on_channels_last(_conv_of_last))
rule("NhwcFusedConv", domain="com.microsoft")(on_channels_last(_activation_conv))

for _name, _pool in (("MaxPool", max_pool), ("AveragePool", average_pool)):
    rule(_name, domain=BLOCKED)(_pool)
    rule(_name, domain=INTERNAL)(on_channels_last(_pool))
for _name in ("GlobalMaxPool", "GlobalAveragePool"):
    rule(_name, domain=BLOCKED)(global_pool)
    rule(_name, domain=INTERNAL)(on_channels_last(global_pool))
rule("Conv", domain=BLOCKED)(_activation_conv)
_OF_LAST: dict[str, Infer] = {
    "Conv": _activation_conv, "ConvTranspose": conv_transpose, "QLinearConv": qlinear_conv,
    "QLinearConvTranspose": _quantized_conv_transpose, "QLinearAveragePool": _of_image_alone(average_pool),
    "LpPool": average_pool, "GlobalLpPool": global_pool, "GridSample": grid_sample,
    "DepthToSpace": depth_to_space, "SpaceToDepth": space_to_depth,
}  # fmt: skip
for _name, _infer in _OF_LAST.items():
    rule(_name, domain=INTERNAL)(on_channels_last(_infer))
for _name in ("BatchNormalization", "InstanceNormalization", "LRN"):
    rule(_name, domain=INTERNAL)(same_as_first)


@rule("QLinearConv", domain="com.microsoft")
def qlinear_conv_of_last(ctx: InferContext, attributes: Attributes, x: Fact, *others: Any) -> Fact:
    """A quantized convolution; the image has its channels last by the attribute, the filters never."""
    infer = on_channels_last(qlinear_conv) if attributes.get("channels_last") else qlinear_conv
    found: Fact = infer(ctx, attributes, x, *others)
    return found


@rule("ReorderInput", domain=BLOCKED)
def reorder_input(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Into blocks: the same logical dims, channels filled up to whole blocks where these are as many for all sizes."""
    shape = channels_first(x.shape) if attributes.get("channels_last") else x.shape
    if shape is None or len(shape) < 2:
        return like(x, shape)
    padded = {ceil_div(shape[1], block) * block for block in BLOCKS}
    channels = padded.pop() if len(padded) == 1 else ctx.symbol(0, 1)
    return like(x, (shape[0], channels, *shape[2:]))


@rule("ReorderOutput", domain=BLOCKED)
def reorder_output(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Out of blocks, with the number of channels that there really are."""
    if x.shape is None or len(x.shape) < 2:
        return like(x, None)
    shape = (x.shape[0], attributes.get("channels") or ctx.symbol(0, 1), *x.shape[2:])
    return like(x, channels_last(shape) if attributes.get("channels_last") else shape)


@rule("Upsample", domain=BLOCKED)
def upsample(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Each dim times its whole scale."""
    scales = attributes.get("scales") or ()
    if x.shape is None or len(scales) != len(x.shape):
        return like(x, None if x.shape is None else unknown_shape(ctx, len(x.shape)))
    return like(x, tuple(dim * int(scale) for dim, scale in zip(x.shape, scales, strict=True)))
