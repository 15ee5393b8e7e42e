"""Shape rules of normalizations with more than one output, dropout and quantization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, dims_text, elem_type, like, normal_axis
from onnxlab.shapes import Dim, Fact, FactError, TensorFact

Attributes = Mapping[str, Any]


@rule("BatchNormalization", since=7)
def batch_normalization(
    ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact, bias: Fact, mean: Fact, variance: Fact
) -> tuple[Fact, ...]:
    """The input's shape; in training also the running mean and variance of each channel."""
    if x.shape is not None and len(x.shape) > 1:
        channels = x.shape[1]
        for name, fact in (("scale", scale), ("B", bias), ("mean", mean), ("var", variance)):
            if fact.shape is not None and len(fact.shape) == 1 and _differ(fact.shape[0], channels):
                raise FactError(
                    f"{name} has shape {dims_text(fact.shape)}, the input {dims_text(x.shape)} has {channels} channels",
                    code="channel-mismatch",
                    expected=f"[{channels}]",
                    found=dims_text(fact.shape),
                )
    return (x.bare, *[each.bare for each in (mean, variance, mean, variance)][: max(len(ctx.outputs) - 1, 0)])


def _differ(a: Dim, b: Dim) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


@rule("LayerNormalization", since=17)
@rule("LayerNormalization", since=1)
def layer_normalization(
    ctx: InferContext, attributes: Attributes, x: Fact, scale: MaybeFact = None, bias: MaybeFact = None
) -> tuple[Fact, ...]:
    """The input's shape; mean and inverse deviation have 1 from `axis` on."""
    if x.shape is None:
        return like(x, None), TensorFact(dtypes.FLOAT), TensorFact(dtypes.FLOAT)
    axis = normal_axis(attributes.get("axis", -1), len(x.shape))
    stash = TensorFact(attributes.get("stash_type", 1), (*x.shape[:axis], *(1,) * (len(x.shape) - axis)))
    return x.bare, stash, stash


@rule("RMSNormalization", since=23)
def rms_normalization(ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact) -> Fact:
    """The input's shape."""
    return x.bare


@rule("Dropout", since=7)
def dropout_with_typed_mask(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """The input's shape, and a mask of the input's type."""
    return x.bare, x.bare


@rule("Dropout", since=10)
def dropout(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> tuple[Fact, Fact]:
    """The input's shape, and a mask of booleans."""
    return x.bare, TensorFact(dtypes.BOOL, x.shape)


@rule("QuantizeLinear", since=10)
def quantize_linear(
    ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact, zero_point: MaybeFact = None
) -> Fact:
    """The input's shape in the type of the zero point, else of `output_dtype`, else uint8."""
    elem = elem_type(zero_point) or attributes.get("output_dtype") or dtypes.UINT8
    return TensorFact(elem, x.shape)


@rule("DequantizeLinear", since=10)
def dequantize_linear(
    ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact, zero_point: MaybeFact = None
) -> Fact:
    """The input's shape in the type of the scale."""
    return TensorFact(attributes.get("output_dtype") or elem_type(scale) or dtypes.FLOAT, x.shape)


@rule("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact, Fact]:
    """The input's shape in uint8, a scale and a zero point."""
    return TensorFact(dtypes.UINT8, x.shape), TensorFact(dtypes.FLOAT, ()), TensorFact(dtypes.UINT8, ())
