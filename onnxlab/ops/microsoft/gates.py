"""com.microsoft operators that gate and normalize: scaled and gated forms, GroupNorm with a skip.

Sources: docs/ContribOperators.md and the schemas of ONNX Runtime.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import product_flops
from onnxlab.ops.base.kernel_helpers import Array, narrow, widen, widened
from onnxlab.ops.base.one_line_rules import law
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, like, rank_at_least, unknown_shape
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN, fast_gelu, group_norm, product_rule
from onnxlab.ops.onnx.math.matmul import mat_mul
from onnxlab.ops.onnx.nn.activation import sigmoid, swish
from onnxlab.ops.onnx.nn.attention import causal_conv_with_state, linear_attention
from onnxlab.ops.onnx.nn.norm import standardize
from onnxlab.shapes import Dim, Fact, Shape, floor_div


@kernel("ScaledSiLU", domain=DOMAIN)
def scaled_silu(x: Array, scale: Array | None = None, alpha: float = 1.0) -> Array:
    """z · sigmoid(z) of z = scale · X, every step rounded to X's type."""
    factor = np.float32(alpha) if scale is None else widen(scale).reshape(())
    scaled = (widen(x) * factor).astype(x.dtype)
    return (widen(scaled) * widen(sigmoid(scaled))).astype(x.dtype)


@kernel("GatedAdd", domain=DOMAIN)
def gated_add(x: Array, y: Array, gate: Array) -> Array:
    """X + Y · gate, the product rounded to X's type."""
    return (widen(x) + widen((widen(y) * widen(gate)).astype(x.dtype))).astype(x.dtype)


def _in_rows(x: Array, width: int, epsilon: float) -> Array:
    """Every run of `width` elements along the last axis divided by its root mean square."""
    y, _, _ = standardize(np.ascontiguousarray(widen(x)).reshape(-1, width), epsilon, center=False)
    return y.reshape(x.shape)


@kernel("GatedRMSNorm", domain=DOMAIN)
def gated_rms_norm(x: Array, scale: Array, gate: Array, activation: str = "silu", epsilon: float = 1e-5) -> Array:
    """RMS normalization of runs as long as scale, times scale, times the activation of the gate."""
    if activation not in ("silu", "swish", "sigmoid"):
        raise ValueError(f"activation is {activation!r}: expected silu, swish or sigmoid")
    opened = widen(gate)
    opened = sigmoid(opened) if activation == "sigmoid" else swish(opened)
    runs = _in_rows(x, len(scale), epsilon).reshape(*x.shape[:-1], -1, len(scale)) * widen(scale)
    return narrow(runs.reshape(x.shape) * opened, x.dtype)


@kernel("BranchwiseRMSNorm", domain=DOMAIN)
def branchwise_rms_norm(x: Array, scale: Array | None = None, num_branches: int = 0, epsilon: float = 1e-5) -> Array:
    """RMS normalization of every branch: [.., C, H], or [.., C·H] of `num_branches`; scale is [C·H], [C, H] or [H]."""
    grouped = x.reshape(*x.shape[:-1], num_branches, -1) if num_branches else x
    y = _in_rows(grouped, grouped.shape[-1], epsilon)
    if scale is not None:
        y = y * widen(scale).reshape(-1 if scale.size > grouped.shape[-1] else 1, grouped.shape[-1])
    return narrow(y.reshape(x.shape), x.dtype)


@kernel("SkipGroupNorm", domain=DOMAIN)
@widened
def skip_group_norm(
    x: Array,
    gamma: Array,
    beta: Array,
    skip: Array,
    bias: Array | None = None,
    activation: int = 0,
    groups: int = 1,
    channels_last: int = 1,
    epsilon: float = 1e-5,
) -> tuple[Array, Array]:
    """GroupNorm of X + skip + bias, and that sum."""
    channels = (-1,) if channels_last else (-1, 1, 1)
    image = skip.reshape(skip.shape[0], 1, 1, -1) if skip.ndim == 2 else skip
    total = x + image
    if bias is not None:
        total = total + bias.reshape(channels)
    return group_norm(
        total, gamma, beta, activation=activation, groups=groups, channels_last=channels_last, epsilon=epsilon
    ), total


@kernel("GemmFastGelu", domain=DOMAIN)
def gemm_fast_gelu(x: Array, w: Array, bias: Array | None = None) -> Array:
    """FastGelu of X @ W + bias."""
    return fast_gelu(mat_mul(x, w), bias)


def _refused(op_type: str, default: Mapping[str, int], attributes: Mapping[str, Any]) -> None:
    """Raise NotImplementedError for attributes that only ONNX Runtime's form of an operator has."""
    for name, value in default.items():
        if attributes.get(name, value) != value:
            raise NotImplementedError(f"{op_type} with {name} {attributes[name]} has no kernel here: expected {value}")


@kernel("LinearAttention", domain=DOMAIN, context=True)
def linear_attention_ms(ctx: RunContext, *inputs: Any, state_window: int = 0, **attributes: Any) -> tuple[Array, Array]:
    """LinearAttention-27 of ai.onnx."""
    _refused("LinearAttention", {"state_window": 0}, {"state_window": state_window})
    return linear_attention(ctx, *inputs, **attributes)


@kernel("CausalConvWithState", domain=DOMAIN)
def causal_conv_with_state_ms(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    past_state: Array | None = None,
    activation: str = "none",
    **layout: int,
) -> tuple[Array, Array]:
    """CausalConvWithState-27 of ai.onnx."""
    _refused("CausalConvWithState", {"channels_last": 0, "dilation": 1, "ndim": 1, "state_window": 0}, layout)
    return causal_conv_with_state(x, weight, bias, past_state, activation)


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("LinearAttention", domain=DOMAIN)
def linear_attention_rule(
    ctx: InferContext, attributes: Attributes, query: Fact, key: Fact, value: Fact, *_others: MaybeFact
) -> tuple[Fact, Fact]:
    """[batch, seq, heads · v] of the larger number of heads, and the state [batch, kv heads, k, v]."""
    if query.shape is None or value.shape is None:
        return like(query, None), like(value, None)
    for fact, name in ((query, "query"), (value, "value")):
        rank_at_least(fact, 3, name)
    queries, heads = attributes["q_num_heads"], attributes["kv_num_heads"]
    inner, outer = floor_div(query.shape[-1], queries), floor_div(value.shape[-1], heads)
    state: Shape = (query.shape[0], heads, inner, outer)
    return like(query, (*query.shape[:2], max(queries, heads) * outer)), like(value, _windowed(attributes, state))


@rule("CausalConvWithState", domain=DOMAIN)
def causal_conv(
    ctx: InferContext, attributes: Attributes, x: Fact, weight: Fact, *_others: MaybeFact
) -> tuple[Fact, Fact]:
    """The input's shape; the state [batch, channels, reach] is what the next call's first window reaches back to."""
    if x.shape is None:
        return x.bare, like(x, None)
    rank_at_least(x, 3, "the input")
    reach: Dim = ctx.symbol(1, 2)
    if weight.shape is not None:
        reach = (weight.shape[-1] - 1) * attributes.get("dilation", 1)
    state: Shape = (x.shape[0], x.shape[1], reach)
    if attributes.get("channels_last") or attributes.get("ndim", 1) != 1:
        state = unknown_shape(ctx, len(x.shape), 1)
    return x.bare, like(x, _windowed(attributes, state))


def _windowed(attributes: Attributes, state: Shape) -> Shape:
    """One state for each of the last `state_window` tokens, where there are to be several."""
    window = attributes.get("state_window", 0)
    return (window, *state) if window else state


law("BranchwiseRMSNorm", "-> 0")
law("GatedAdd", "-> 0")
law("GatedRMSNorm", "-> 0")
law("ScaledSiLU", "-> 0")
law("EngramGate", "-> 0 | 0")
law("HyperConnectionPostMix", "-> 0")
law("SkipGroupNorm", "-> 0 | 0")
law("VarlenCausalConvWithState", "T, C | | | | B, ?, ? -> 0 | 4 | 0: B, @?state_update_capacity, C")


rule("GemmFastGelu", domain=DOMAIN)(product_rule(1))


@rule("HyperConnectionPreMix", domain=DOMAIN)
def hyper_connection_pre_mix(ctx: InferContext, attributes: Attributes, streams: Fact, gates: Fact) -> Fact:
    """[..., C, H] without C; unknown with `num_branches`, where the streams may also be flat, [..., C * H]."""
    if streams.shape is None or len(streams.shape) < 2 or attributes.get("num_branches"):
        return like(streams, None)
    return like(streams, (*streams.shape[:-2], streams.shape[-1]))


# -- traits ------------------------------------------------------------------------------------------------------------


traits("BranchwiseRMSNorm GatedRMSNorm", OpTraits(category="normalization", shape="shapes", flops=1), DOMAIN)
traits(
    "CausalConvWithState VarlenCausalConvWithState", OpTraits(category="convolution", shape="shapes", flops=1), DOMAIN
)
traits(
    "EngramGate GatedAdd HyperConnectionPostMix HyperConnectionPreMix",
    OpTraits(category="elementwise", shape="shapes", flops=1),
    DOMAIN,
)
traits("GemmFastGelu", OpTraits(category="matrix", shape="shapes", flops=product_flops), DOMAIN)
traits("LinearAttention", OpTraits(category="matrix", shape="shapes", flops=1), DOMAIN)
traits("ScaledSiLU", OpTraits(category="activation", shape="shapes", flops=1), DOMAIN)
traits("SkipGroupNorm", OpTraits(category="normalization", shape="shapes", flops=8, elements="none"), DOMAIN)
