"""Layouts of images in ONNX Runtime: channels last, and channels in blocks (NCHWc), each with a domain of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import Attributes
from onnxlab.ops.base.rule_helpers import MaybeFact, like
from onnxlab.shapes import Fact, Shape

# -- shape rules -------------------------------------------------------------------------------------------------------


Infer = Callable[..., Any]


BLOCKED = "com.microsoft.nchwc"


INTERNAL = "com.ms.internal.nhwc"


BLOCKS = (8, 16)
"""Channels of a block, which depend on the processor; channels are padded to whole blocks."""


def channels_first(shape: Shape | None) -> Shape | None:
    """[N, …, C] as [N, C, …]."""
    return shape if shape is None or len(shape) < 2 else (shape[0], shape[-1], *shape[1:-1])


def channels_last(shape: Shape | None) -> Shape | None:
    """[N, C, …] as [N, …, C]."""
    return shape if shape is None or len(shape) < 2 else (shape[0], *shape[2:], shape[1])


def rule_on_channels_last(infer: Infer) -> Infer:
    """A rule for images with channels last, from one for [N, C, …]; its first output alone."""

    def moved(ctx: InferContext, attributes: Attributes, x: Fact, *others: MaybeFact) -> Fact:
        inferred = infer(ctx, attributes, like(x, channels_first(x.shape)), *others)
        first: Fact = inferred[0] if isinstance(inferred, tuple) else inferred
        return like(first, channels_last(first.shape))

    moved.__doc__ = f"{infer.__doc__} Channels last."
    return moved
