"""Shape rules of ONNX Runtime's operators that carry a state along a sequence: linear attention, causal convolution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, like, rank_at_least, unknown_shape
from onnxlab.shapes import Dim, Fact, Shape, floor_div

Attributes = Mapping[str, Any]

DOMAIN = "com.microsoft"


@rule("LinearAttention", domain=DOMAIN)
def linear_attention(
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
