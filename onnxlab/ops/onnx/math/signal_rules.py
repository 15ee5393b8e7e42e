"""Shape rules of Fourier transforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, as_dim, like, normal_axis, scalar
from onnxlab.shapes import Dim, Expr, Fact, floor_div

Attributes = Mapping[str, Any]


def _bins(length: Dim, one_sided: bool) -> Dim:
    return floor_div(length, 2) + 1 if one_sided else length


def _size(fact: MaybeFact) -> Dim | None:
    element = scalar(fact)
    return element if isinstance(element, (int, Expr)) else None


@rule("STFT", since=17)
def stft(
    ctx: InferContext,
    attributes: Attributes,
    signal: Fact,
    step: Fact,
    window: MaybeFact = None,
    length: MaybeFact = None,
) -> Fact:
    """[batch, frames, bins, 2]: as many frames as fit the signal, bins up to half the frame where one-sided."""
    batch = signal.shape[0] if signal.shape else ctx.symbol(0, 0)
    frame = _size(length)
    if frame is None and length is None and window is not None and window.shape:
        frame = window.shape[0]
    hop = _size(step)
    frames: Dim = ctx.symbol(0, 1)
    if signal.shape is not None and len(signal.shape) > 1 and frame is not None and isinstance(hop, int) and hop > 0:
        frames = floor_div(signal.shape[1] - frame, hop) + 1
    one_sided = bool(attributes.get("onesided", 1))
    bins = ctx.symbol(0, 2) if frame is None else _bins(as_dim(ctx, frame, 0, 2), one_sided)
    return like(signal, (batch, frames, bins, 2))


@rule("DFT", since=20)
def dft(ctx: InferContext, attributes: Attributes, x: Fact, length: MaybeFact = None, axis: MaybeFact = None) -> Fact:
    """The input's shape with complex numbers at the end, the transformed axis as long as asked for."""
    chosen = -2 if axis is None else scalar(axis)
    return _dft(ctx, attributes, x, length, chosen)


@rule("DFT", since=17)
def dft_by_attribute(ctx: InferContext, attributes: Attributes, x: Fact, length: MaybeFact = None) -> Fact:
    """The same with the axis in an attribute."""
    return _dft(ctx, attributes, x, length, attributes.get("axis", 1))


def _dft(ctx: InferContext, attributes: Attributes, x: Fact, length: MaybeFact, axis: Any) -> Fact:
    if x.shape is None:
        return like(x, None)
    if attributes.get("onesided") and attributes.get("inverse"):
        raise NotImplementedError("onnx's own rule decides")
    rank = len(x.shape)
    if not isinstance(axis, int) and length is None and not attributes.get("onesided"):
        return like(x, (*x.shape[:-1], 2))
    if not isinstance(axis, int):
        return like(x, (*(ctx.symbol(0, place) for place in range(rank - 1)), 2))
    axis = normal_axis(axis, rank)
    size = _size(length) if length is not None else x.shape[axis]
    bins = ctx.symbol(0, axis) if size is None else _bins(size, bool(attributes.get("onesided")))
    return like(x, (*x.shape[:axis], bins, *x.shape[axis + 1 : -1], 2))
