"""Kernels of ONNX Runtime's operators on other layouts of images: channels in blocks (NCHWc), and channels last.

ONNX Runtime's optimizer puts these operators into the models that it saves. A blocked tensor has the logical dims
[N, C, H, W], with C filled up to whole blocks of b channels, and holds [N, C/b, H, W, b]; filters lie in blocks of both
their axes, or of outputs alone where an image has fewer channels than a block. The kernels' `block` is b: a plan finds
it for the whole model. Source: nchwc_transformer.cc and
mlas/lib/reorder.cpp.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import convolution_flops, quantized_flops, transposed_flops
from onnxlab.ops.base.image_layouts import (
    BLOCKED,
    BLOCKS,
    INTERNAL,
    Infer,
    channels_first,
    channels_last,
    rule_on_channels_last,
)
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.prepared_constants import prepared
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, like, same_as_first, unknown_shape
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN, fused_conv
from onnxlab.ops.onnx.nn.conv import conv, conv_rule, conv_transpose_rule
from onnxlab.ops.onnx.nn.pool import (
    average_pool,
    average_pool_rule,
    global_average_pool,
    global_max_pool,
    global_pool,
    max_pool,
    max_pool_rule,
)
from onnxlab.ops.onnx.nn.quantization import qlinear_conv
from onnxlab.ops.onnx.tensor.resize import resize_11
from onnxlab.ops.onnx.tensor.shape import depth_to_space_rule, space_to_depth_rule
from onnxlab.ops.onnx.tensor.vision import grid_sample_rule
from onnxlab.shapes import Fact, ceil_div

VARIABLE = "ONNXLAB_BLOCK_SIZE"
"""The environment variable with the channels of a block, for models that do not tell."""


def block_size() -> int:
    """Channels of a block where the model does not tell: what VARIABLE says, else those of this processor.

    Raises:
        ValueError: VARIABLE is no size that ONNX Runtime has.
    """
    stated = os.environ.get(VARIABLE, "")
    if stated and stated not in map(str, BLOCKS):
        raise ValueError(f"{VARIABLE}={stated}: expected {' or '.join(map(str, BLOCKS))}")
    return int(stated) if stated else _block_of_processor()


@cache
def _block_of_processor() -> int:
    """Channels of a block on this processor, as ONNX Runtime chooses: 8 on x86 without AVX-512, else 16."""
    features = getattr(np._core._multiarray_umath, "__cpu_features__", {})  # type: ignore[attr-defined]
    x86 = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")
    return 8 if x86 and not features.get("AVX512F") else 16


def block_of(channels: int, block: int = 0) -> int:
    """The size of the blocks of so many channels: `block`, or where that is 0 the likeliest one.

    A file made on another processor may have blocks of 8, which only its other nodes may tell.
    """
    size = block or block_size()
    return size if block or channels % size == 0 else 8


def unblocked(x: Array, block: int = 0) -> Array:
    """A blocked tensor [N, C, H, W] as its dims say.

    Raises:
        ValueError: the channels are not whole blocks.
    """
    size = block_of(x.shape[1], block)
    if x.shape[1] % size:
        raise ValueError(f"X has {x.shape[1]} channels: expected whole blocks of {size}")
    blocks = x.reshape(len(x), -1, *x.shape[2:], size)
    return np.moveaxis(blocks, -1, 2).reshape(x.shape)


def blocked(x: Array, block: int = 0) -> Array:
    """An image [N, C, H, W] in blocks, C filled up with zeros."""
    size = block or block_size()
    missing = -x.shape[1] % size
    if missing:
        x = np.concatenate([x, np.zeros((len(x), missing, *x.shape[2:]), x.dtype)], axis=1)
    split = x.reshape(len(x), -1, size, *x.shape[2:])
    return np.ascontiguousarray(np.moveaxis(split, 2, -1)).reshape(x.shape)


def unblocked_filters(w: Array, block: int = 0) -> Array:
    """Filters out of their blocks; computed once of a constant."""
    size = block_of(w.shape[0], block)
    return prepared(f"filters out of blocks of {size}", partial(_filters, size), w)


def _filters(size: int, w: Array) -> Array:
    """Filters [M, C, kH, kW] stored as [M/b, C/b, kH, kW, b (of C), b (of M)] or [M/b, C, kH, kW, b], as dims say."""
    m, c, *k = w.shape
    if m % size:
        raise ValueError(f"W has {m} filters: expected whole blocks of {size}")
    if c % size:
        return w.reshape(m // size, c, *k, size).transpose(0, 4, 1, 2, 3).reshape(w.shape)
    stored = w.reshape(m // size, c // size, *k, size, size)
    return stored.transpose(0, 5, 1, 4, 2, 3).reshape(w.shape)


@kernel("Conv", domain=BLOCKED, context=True)
def blocked_conv(
    ctx: RunContext,
    x: Array,
    w: Array,
    b: Array | None = None,
    total: Array | None = None,
    activation: str = "",
    activation_params: Sequence[float] = (),
    block: int = 0,
    **geometry: Any,
) -> Array:
    """activation(Conv(X, W, B) + total) of a blocked image, or of a plain one with fewer channels than a block."""
    if x.ndim != 4 or w.ndim != 4:
        raise ValueError(f"X has shape {x.shape}, W {w.shape}: expected 4 axes each, those of images in blocks")
    image = x if x.shape[1] % block_of(x.shape[1], block) else unblocked(x, block)
    added = None if total is None else unblocked(total, block)
    plain = unblocked_filters(w, block)
    return blocked(fused_conv(ctx, image, plain, b, added, activation, activation_params, **geometry), block)


def _on_blocks(function: Callable[..., Array]) -> Callable[..., Array]:
    """A kernel for a blocked image, from one for [N, C, H, W]."""

    def run(ctx: RunContext, x: Array, block: int = 0, **attributes: Any) -> Array:
        return blocked(function(ctx, unblocked(x, block), **attributes), block)

    run.__doc__ = f"{function.__doc__} Channels in blocks."
    return run


def on_channels_last(function: Callable[..., Any]) -> Callable[..., Array]:
    """A kernel for an image [N, H, W, C], from one for [N, C, H, W]."""

    def run(ctx: RunContext, x: Array, *others: Array | None, **attributes: Any) -> Array:
        return np.moveaxis(function(ctx, np.moveaxis(x, -1, 1), *others, **attributes), 1, -1)

    run.__doc__ = f"{function.__doc__} Channels last."
    return run


def _only(function: Callable[..., Any], ctx: RunContext, x: Array, **attributes: Any) -> Array:
    """A kernel that needs no context."""
    return function(x, **attributes)


def _largest(ctx: RunContext, x: Array, **attributes: Any) -> Array:
    """The largest element of every window."""
    pooled = max_pool(ctx, x, **attributes)
    return pooled if isinstance(pooled, np.ndarray) else pooled[0]


_POOLS: dict[str, Callable[..., Array]] = {
    "MaxPool": _largest,
    "AveragePool": partial(_only, average_pool),
    "GlobalMaxPool": partial(_only, global_max_pool),
    "GlobalAveragePool": partial(_only, global_average_pool),
}
for _name, _pool in _POOLS.items():
    kernel(_name, domain=BLOCKED, context=True)(_on_blocks(_pool))
    kernel(_name, domain=INTERNAL, context=True)(on_channels_last(_pool))


@kernel("ReorderInput", domain=BLOCKED)
def reorder_input(x: Array, channels_last: int = 0, block: int = 0) -> Array:
    """Into blocks, from [N, C, H, W] or with channels_last from [N, H, W, C]."""
    return blocked(np.moveaxis(x, -1, 1) if channels_last else x, block)


@kernel("ReorderOutput", domain=BLOCKED)
def reorder_output(x: Array, channels: int = 0, channels_last: int = 0, block: int = 0) -> Array:
    """Out of blocks, the first `channels` of them."""
    y = unblocked(x, block)[:, : channels or None]
    return np.ascontiguousarray(np.moveaxis(y, 1, -1) if channels_last else y)


@kernel("Upsample", domain=BLOCKED, context=True)
def blocked_upsample(
    ctx: RunContext,
    x: Array,
    scales: Sequence[int] = (),
    mode: str = "nearest",
    coordinate_transformation_mode: str = "asymmetric",
    block: int = 0,
) -> Array:
    """Each axis a whole number of times as long."""
    where = "asymmetric" if mode == "nearest" else coordinate_transformation_mode
    factors = np.asarray(scales, np.float32)
    y = resize_11(ctx, unblocked(x, block), None, factors, mode=mode, coordinate_transformation_mode=where,
                  nearest_mode="floor")  # fmt: skip
    return blocked(y, block)


def _conv_of_last(ctx: RunContext, x: Array, w: Array, b: Array | None = None, **geometry: Any) -> Array:
    """A convolution whose filters [M, kH, kW, C] have their channels last too."""
    return conv(ctx, x, np.moveaxis(w, -1, 1), b, **geometry)


def _fused_of_last(
    ctx: RunContext,
    x: Array,
    w: Array,
    b: Array | None = None,
    z: Array | None = None,
    activation: str = "",
    activation_params: Sequence[float] = (),
    **geometry: Any,
) -> Array:
    """activation(Conv(X, W, B) + Z), Z like the output."""
    added = None if z is None else np.moveaxis(z, -1, 1)
    return fused_conv(ctx, x, w, b, added, activation, activation_params, **geometry)


kernel("NhwcMaxPool", domain=DOMAIN, context=True)(on_channels_last(_largest))
kernel("NhwcConv", domain=DOMAIN, context=True)(on_channels_last(_conv_of_last))
kernel("NhwcFusedConv", domain=DOMAIN, context=True)(on_channels_last(_fused_of_last))


# -- shape rules -------------------------------------------------------------------------------------------------------


def _activation_conv(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, *_others: MaybeFact) -> Fact:
    """A convolution; a sum and an activation after it change no dim."""
    return conv_rule(ctx, attributes, x, w)


def _conv_of_last_rule(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, *_others: MaybeFact) -> Fact:
    """A convolution with channels last in the filters too."""
    return conv_rule(ctx, attributes, x, like(w, channels_first(w.shape)))


def _quantized_conv_transpose(
    ctx: InferContext, attributes: Attributes, x: Fact, x_scale: Fact, x_zero: Fact, w: Fact, *_others: MaybeFact
) -> Fact:
    """A quantized transposed convolution; the filters have their channels first."""
    return conv_transpose_rule(ctx, attributes, x, w)


def _of_image_alone(infer: Infer) -> Infer:
    """A rule that sees the first input only: scales and zero points change no dim."""
    return lambda ctx, attributes, x, *_others: infer(ctx, attributes, x)


rule("NhwcMaxPool", domain="com.microsoft")(rule_on_channels_last(max_pool_rule))
rule("NhwcConv", domain="com.microsoft")(rule_on_channels_last(_conv_of_last_rule))
rule("NhwcFusedConv", domain="com.microsoft")(rule_on_channels_last(_activation_conv))
rule("MaxPool", domain=BLOCKED)(max_pool_rule)
rule("AveragePool", domain=BLOCKED)(average_pool_rule)
rule("GlobalMaxPool GlobalAveragePool", domain=BLOCKED)(global_pool)
rule("Conv", domain=BLOCKED)(_activation_conv)
rule("MaxPool", domain=INTERNAL)(rule_on_channels_last(max_pool_rule))
rule("AveragePool LpPool", domain=INTERNAL)(rule_on_channels_last(average_pool_rule))
rule("GlobalMaxPool GlobalAveragePool GlobalLpPool", domain=INTERNAL)(rule_on_channels_last(global_pool))
rule("Conv", domain=INTERNAL)(rule_on_channels_last(_activation_conv))
rule("ConvTranspose", domain=INTERNAL)(rule_on_channels_last(conv_transpose_rule))
rule("QLinearConv", domain=INTERNAL)(rule_on_channels_last(qlinear_conv))
rule("QLinearConvTranspose", domain=INTERNAL)(rule_on_channels_last(_quantized_conv_transpose))
rule("QLinearAveragePool", domain=INTERNAL)(rule_on_channels_last(_of_image_alone(average_pool_rule)))
rule("GridSample", domain=INTERNAL)(rule_on_channels_last(grid_sample_rule))
rule("DepthToSpace", domain=INTERNAL)(rule_on_channels_last(depth_to_space_rule))
rule("SpaceToDepth", domain=INTERNAL)(rule_on_channels_last(space_to_depth_rule))
rule("BatchNormalization InstanceNormalization LRN", domain=INTERNAL)(same_as_first)


@rule("ReorderInput", domain=BLOCKED)
def reorder_input_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Into blocks: the same logical dims; the padded channels are known where all sizes of blocks give as many."""
    shape = channels_first(x.shape) if attributes.get("channels_last") else x.shape
    if shape is None or len(shape) < 2:
        return like(x, shape)
    padded = {ceil_div(shape[1], block) * block for block in BLOCKS}
    channels = padded.pop() if len(padded) == 1 else ctx.symbol(0, 1)
    return like(x, (shape[0], channels, *shape[2:]))


@rule("ReorderOutput", domain=BLOCKED)
def reorder_output_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Out of blocks, with the number of channels before padding."""
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


# -- traits ------------------------------------------------------------------------------------------------------------


traits(
    "NhwcConv NhwcFusedConv", OpTraits(category="convolution", shape="shapes", flops=convolution_flops), "com.microsoft"
)
traits("NhwcMaxPool", OpTraits(category="pooling", shape="shapes", flops=1), "com.microsoft")
traits(
    "AveragePool GlobalAveragePool GlobalMaxPool MaxPool Upsample",
    OpTraits(category="pooling", shape="shapes", flops=1),
    BLOCKED,
)
traits("Conv", OpTraits(category="convolution", shape="shapes", flops=convolution_flops, layer="convolution"), BLOCKED)
traits("ReorderInput ReorderOutput", OpTraits(category="shape", shape="shapes", flops=0), BLOCKED)
traits(
    "AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample LpPool MaxPool QLinearAveragePool",
    OpTraits(category="pooling", shape="shapes", flops=1),
    INTERNAL,
)
traits("BatchNormalization", OpTraits(category="normalization", shape="shapes", flops=2), INTERNAL)
traits("Conv", OpTraits(category="convolution", shape="shapes", flops=convolution_flops, layer="convolution"), INTERNAL)
traits(
    "ConvTranspose",
    OpTraits(category="convolution", shape="shapes", flops=transposed_flops, layer="convolution"),
    INTERNAL,
)
traits("DepthToSpace SpaceToDepth", OpTraits(category="shape", shape="shapes", flops=0), INTERNAL)
traits("InstanceNormalization", OpTraits(category="normalization", shape="shapes", flops=8), INTERNAL)
traits("LRN", OpTraits(category="normalization", shape="shapes", flops=1), INTERNAL)
traits(
    "QLinearConv",
    OpTraits(category="convolution", shape="shapes", flops=quantized_flops, layer="convolution"),
    INTERNAL,
)
traits("QLinearConvTranspose", OpTraits(category="convolution", shape="shapes", flops=1), INTERNAL)
