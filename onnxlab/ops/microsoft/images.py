"""com.microsoft operators on images and signals: CropAndResize, ConvTransposeWithDynamicPads, Fourier transforms.

Sources: docs/ContribOperators.md of ONNX Runtime; TensorFlow's crop_and_resize.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import transform_flops, transposed_flops
from onnxlab.ops.base.kernel_helpers import Array, integers, narrow, widen, widened
from onnxlab.ops.base.one_line_rules import law
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, known_integers, like, unknown_shape
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN, broadcast_rule
from onnxlab.ops.onnx.nn.conv import conv_transpose, conv_transpose_rule
from onnxlab.shapes import Fact, floor_div


def _lines(first: Array, last: Array, count: int, size: int) -> Array:
    """[boxes, count]: where each line of a crop lies in an axis of `size`, corners on corners."""
    if count > 1:
        step = (last - first) * (size - 1) / (count - 1)
        return first[:, None] * (size - 1) + np.arange(count, dtype=first.dtype) * step[:, None]
    return (first + last)[:, None] * first.dtype.type(0.5) * (size - 1)


@kernel("CropAndResize", domain=DOMAIN, context=True)
def crop_and_resize(
    ctx: RunContext,
    x: Array,
    rois: Array,
    batch_indices: Array,
    crop_size: Array,
    mode: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Array:
    """[R, C, h, w]: boxes [R, 4] (y1, x1, y2, x2, from 0 to 1) of images [N, C, H, W], each resized to crop_size."""
    if mode not in ("bilinear", "nearest"):
        raise ValueError(f"mode is {mode!r}: expected bilinear or nearest")
    height, width = integers(crop_size)
    images, rois = widen(x), widen(rois)
    ctx.reserve(images.itemsize * len(rois) * x.shape[1] * height * width, "the crops")
    rows = _lines(rois[:, 0], rois[:, 2], height, x.shape[2])
    columns = _lines(rois[:, 1], rois[:, 3], width, x.shape[3])
    y = np.empty((len(rois), x.shape[1], height, width), images.dtype)
    for box, (batch, down, across) in enumerate(zip(integers(batch_indices), rows, columns, strict=True)):
        ctx.check()
        y[box] = _sampled(images[batch], down, across, mode)
        outside = ((down < 0) | (down > x.shape[2] - 1))[:, None] | ((across < 0) | (across > x.shape[3] - 1))
        y[box][:, outside] = extrapolation_value
    return narrow(y, x.dtype)


def _sampled(image: Array, down: Array, across: Array, mode: str) -> Array:
    """[C, h, w]: an image at the crossings of rows and columns."""
    down, across = np.clip(down, 0, image.shape[1] - 1), np.clip(across, 0, image.shape[2] - 1)
    if mode == "nearest":
        picked = np.floor(down + 0.5).astype(np.intp)[:, None], np.floor(across + 0.5).astype(np.intp)
        return image[:, picked[0], picked[1]]
    top, left = np.floor(down).astype(np.intp), np.floor(across).astype(np.intp)
    bottom, right = np.ceil(down).astype(np.intp), np.ceil(across).astype(np.intp)
    dy, dx = (down - top).astype(image.dtype)[:, None], (across - left).astype(image.dtype)
    upper = image[:, top[:, None], left] * (1 - dx) + image[:, top[:, None], right] * dx
    lower = image[:, bottom[:, None], left] * (1 - dx) + image[:, bottom[:, None], right] * dx
    return upper * (1 - dy) + lower * dy


@kernel("ConvTransposeWithDynamicPads", domain=DOMAIN, context=True)
def conv_transpose_with_dynamic_pads(
    ctx: RunContext, x: Array, w: Array, pads: Array | None = None, b: Array | None = None, **geometry: Any
) -> Array:
    """ConvTranspose, its pads an input."""
    amounts = None if pads is None else integers(pads)
    return conv_transpose(ctx, x, w, b, pads=amounts, **geometry)


def _complex(x: Array) -> Array:
    return x[..., 0] + 1j * x[..., 1]


def _pairs(x: Array, dtype: np.dtype[Any]) -> Array:
    """Complex numbers as pairs along a last axis."""
    return np.stack([x.real, x.imag], axis=-1).astype(dtype)


@kernel("ComplexMul", domain=DOMAIN)
@widened
def complex_mul(a: Array, b: Array) -> Array:
    """A · B of complex numbers, pairs along the last axis."""
    return _pairs(_complex(a) * _complex(b), a.dtype)


@kernel("ComplexMulConj", domain=DOMAIN)
@widened
def complex_mul_conj(a: Array, b: Array) -> Array:
    """A times the conjugate of B."""
    return _pairs(_complex(a) * np.conj(_complex(b)), a.dtype)


def _only_plain(onesided: int, normalized: int) -> None:
    if not onesided or normalized:
        raise ValueError(f"onesided is {onesided}, normalized {normalized}: expected 1 and 0, as in ONNX Runtime")


@kernel("Rfft", domain=DOMAIN)
@widened
def rfft(x: Array, onesided: int = 1, normalized: int = 0, signal_ndim: int = 1) -> Array:
    """The one-sided Fourier transform over the last `signal_ndim` axes, as pairs along a new last one."""
    _only_plain(onesided, normalized)
    return _pairs(np.fft.rfftn(x, axes=tuple(range(-signal_ndim, 0))), x.dtype)


@kernel("Irfft", domain=DOMAIN)
@widened
def irfft(x: Array, signal_ndim: int, onesided: int = 1, normalized: int = 0) -> Array:
    """The inverse of Rfft: real numbers, an even number of them along the last axis."""
    _only_plain(onesided, normalized)
    return np.fft.irfftn(_complex(x), axes=tuple(range(-signal_ndim, 0))).astype(x.dtype)


# -- shape rules -------------------------------------------------------------------------------------------------------


law("CropAndResize", "?, C, ?, ? | R, ? | | =Y, X -> 0: R, C, Y, X")


rule("ComplexMul ComplexMulConj", domain=DOMAIN)(broadcast_rule(0, 1))


@rule("ConvTransposeWithDynamicPads", domain=DOMAIN)
def conv_transpose_with_dynamic_pads_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, pads: MaybeFact = None, bias: MaybeFact = None
) -> Fact:
    """ConvTranspose whose pads are an input."""
    known_pads = None if pads is None else known_integers(pads)
    if pads is None or known_pads is not None:
        return conv_transpose_rule(
            ctx, {**attributes, **({"pads": known_pads} if known_pads is not None else {})}, x, w
        )
    if x.shape is None or w.shape is None:
        return like(x, None if x.shape is None else unknown_shape(ctx, len(x.shape)))
    spatial = unknown_shape(ctx, len(x.shape))[2:]
    return like(x, (x.shape[0], w.shape[1] * attributes.get("group", 1), *spatial))


@rule("Rfft", domain=DOMAIN)
def rfft_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The last dim as frequencies, half of them if onesided, then real and imaginary part."""
    if not x.shape:
        return like(x, None)
    last = floor_div(x.shape[-1], 2) + 1 if attributes.get("onesided", 1) else x.shape[-1]
    return like(x, (*x.shape[:-1], last, 2))


@rule("Irfft", domain=DOMAIN)
def irfft_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The shape of Rfft's input, from that of its output."""
    if x.shape is None or len(x.shape) < 2:
        return like(x, None)
    last = (x.shape[-2] - 1) * 2 if attributes.get("onesided", 1) else x.shape[-2]
    return like(x, (*x.shape[:-2], last))


# -- traits ------------------------------------------------------------------------------------------------------------


traits("ComplexMul ComplexMulConj", OpTraits(category="elementwise", shape="shapes", flops=1), DOMAIN)
traits("ConvTransposeWithDynamicPads", OpTraits(category="convolution", shape="sizes", flops=transposed_flops), DOMAIN)
traits("CropAndResize", OpTraits(category="pooling", shape="sizes", flops=1), DOMAIN)
traits("Irfft Rfft", OpTraits(category="signal", shape="shapes", flops=transform_flops), DOMAIN)
