"""Kernels of ONNX Runtime's operators on other layouts of images: channels in blocks (NCHWc), and channels last.

Its optimizer puts them into the models that it saves. A blocked tensor has the logical dims [N, C, H, W], with C filled
up to whole blocks of b channels, and holds [N, C/b, H, W, b]; filters lie in blocks of both their axes, or of outputs
alone where an image has fewer channels than a block. Source: nchwc_transformer.cc and mlas/lib/reorder.cpp.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from onnxlab.limits import RunContext
from onnxlab.ops.base.estimates import convolution_flops, quantized_flops, transposed_flops
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.prepared_constants import prepared
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN, fused_conv
from onnxlab.ops.microsoft.layout_rules import BLOCKED, INTERNAL
from onnxlab.ops.onnx.nn.conv import conv
from onnxlab.ops.onnx.nn.pool import average_pool, global_average_pool, global_max_pool, max_pool
from onnxlab.ops.onnx.tensor.resize import resize_11


@cache
def block_size() -> int:
    """Channels of a block on this processor, as ONNX Runtime chooses: 8 on x86 without AVX-512, else 16."""
    features = getattr(np._core._multiarray_umath, "__cpu_features__", {})  # type: ignore[attr-defined]
    x86 = platform.machine().lower() in ("x86_64", "amd64", "i386", "i686")
    return 8 if x86 and not features.get("AVX512F") else 16


def block_of(channels: int) -> int:
    """The size of the blocks of so many channels: a file made on another processor may have blocks of 8."""
    size = block_size()
    return size if channels % size == 0 else 8


def unblocked(x: Array) -> Array:
    """A blocked tensor [N, C, H, W] as its dims say.

    Raises:
        ValueError: the channels are not whole blocks.
    """
    size = block_of(x.shape[1])
    if x.shape[1] % size:
        raise ValueError(f"X has {x.shape[1]} channels: expected whole blocks of {size}")
    blocks = x.reshape(len(x), -1, *x.shape[2:], size)
    return np.moveaxis(blocks, -1, 2).reshape(x.shape)


def blocked(x: Array) -> Array:
    """An image [N, C, H, W] in blocks, C filled up with zeros."""
    size = block_size()
    missing = -x.shape[1] % size
    if missing:
        x = np.concatenate([x, np.zeros((len(x), missing, *x.shape[2:]), x.dtype)], axis=1)
    split = x.reshape(len(x), -1, size, *x.shape[2:])
    return np.ascontiguousarray(np.moveaxis(split, 2, -1)).reshape(x.shape)


def unblocked_filters(w: Array) -> Array:
    """Filters out of their blocks; of a constant, once for as long as it is there."""
    return prepared("unblocked filters", _filters, w)


def _filters(w: Array) -> Array:
    """Filters [M, C, kH, kW] stored as [M/b, C/b, kH, kW, b (of C), b (of M)] or [M/b, C, kH, kW, b], as dims say."""
    m, c, *k = w.shape
    size = block_of(m)
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
    **geometry: Any,
) -> Array:
    """activation(Conv(X, W, B) + total) of a blocked image, or of a plain one with fewer channels than a block."""
    if x.ndim != 4 or w.ndim != 4:
        raise ValueError(f"X has shape {x.shape}, W {w.shape}: expected 4 axes each, those of images in blocks")
    image = x if x.shape[1] % block_of(x.shape[1]) else unblocked(x)
    added = None if total is None else unblocked(total)
    plain = unblocked_filters(w)
    return blocked(fused_conv(ctx, image, plain, b, added, activation, activation_params, **geometry))


def _on_blocks(function: Callable[..., Array]) -> Callable[..., Array]:
    """A kernel for a blocked image, from one for [N, C, H, W]."""

    def run(ctx: RunContext, x: Array, **attributes: Any) -> Array:
        return blocked(function(ctx, unblocked(x), **attributes))

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
    found = max_pool(ctx, x, **attributes)
    return found if isinstance(found, np.ndarray) else found[0]


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
def reorder_input(x: Array, channels_last: int = 0) -> Array:
    """Into blocks, from [N, C, H, W] or with channels_last from [N, H, W, C]."""
    return blocked(np.moveaxis(x, -1, 1) if channels_last else x)


@kernel("ReorderOutput", domain=BLOCKED)
def reorder_output(x: Array, channels: int = 0, channels_last: int = 0) -> Array:
    """Out of blocks, the first `channels` of them."""
    y = unblocked(x)[:, : channels or None]
    return np.ascontiguousarray(np.moveaxis(y, 1, -1) if channels_last else y)


@kernel("Upsample", domain=BLOCKED, context=True)
def blocked_upsample(
    ctx: RunContext,
    x: Array,
    scales: Sequence[int] = (),
    mode: str = "nearest",
    coordinate_transformation_mode: str = "asymmetric",
) -> Array:
    """Each axis a whole number of times as long."""
    where = "asymmetric" if mode == "nearest" else coordinate_transformation_mode
    factors = np.asarray(scales, np.float32)
    y = resize_11(ctx, unblocked(x), None, factors, mode=mode, coordinate_transformation_mode=where,
                  nearest_mode="floor")  # fmt: skip
    return blocked(y)


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


traits(
    "NhwcConv NhwcFusedConv", OpTraits(category="convolution", shape="shapes", flops=convolution_flops), "com.microsoft"
)
traits("NhwcMaxPool", OpTraits(category="pooling", shape="shapes", flops=1), "com.microsoft")
traits(
    "AveragePool GlobalAveragePool GlobalMaxPool MaxPool Upsample",
    OpTraits(category="pooling", shape="shapes", flops=1),
    BLOCKED,
)
traits("Conv", OpTraits(category="convolution", shape="shapes", flops=convolution_flops), BLOCKED)
traits("ReorderInput ReorderOutput", OpTraits(category="shape", shape="shapes", flops=0), BLOCKED)
traits(
    "AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample LpPool MaxPool QLinearAveragePool",
    OpTraits(category="pooling", shape="shapes", flops=1),
    INTERNAL,
)
traits("BatchNormalization", OpTraits(category="normalization", shape="shapes", flops=2), INTERNAL)
traits("Conv", OpTraits(category="convolution", shape="shapes", flops=convolution_flops), INTERNAL)
traits("ConvTranspose", OpTraits(category="convolution", shape="shapes", flops=transposed_flops), INTERNAL)
traits("DepthToSpace SpaceToDepth", OpTraits(category="shape", shape="shapes", flops=0), INTERNAL)
traits("InstanceNormalization", OpTraits(category="normalization", shape="shapes", flops=8), INTERNAL)
traits("LRN", OpTraits(category="normalization", shape="shapes", flops=1), INTERNAL)
traits("QLinearConv", OpTraits(category="convolution", shape="shapes", flops=quantized_flops), INTERNAL)
traits("QLinearConvTranspose", OpTraits(category="convolution", shape="shapes", flops=1), INTERNAL)
