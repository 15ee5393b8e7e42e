"""Shape rules of the attention operators of ai.onnx."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, dims_text, like, unknown_shape
from onnxlab.shapes import Dim, Fact, FactError, floor_div

Attributes = Mapping[str, Any]


@rule("Attention", since=23)
def attention(
    ctx: InferContext,
    attributes: Attributes,
    q: Fact,
    k: Fact,
    v: Fact,
    mask: MaybeFact = None,
    past_key: MaybeFact = None,
    past_value: MaybeFact = None,
    *_others: MaybeFact,
) -> tuple[Fact, ...]:
    """Y like Q with V's head size; keys and values so far [batch, heads, total, head size]; Q·K [.., seq, total]."""
    if q.shape is None or k.shape is None or v.shape is None:
        return (like(q, None), like(k, None), like(v, None), like(q, None))
    for name, fact in (("Q", q), ("K", k), ("V", v)):
        if fact.shape is not None and len(fact.shape) not in (3, 4):
            raise FactError(
                f"{name} has shape {dims_text(fact.shape)}",
                code="rank-mismatch",
                expected="rank 3 or 4",
                found=f"rank {len(fact.shape)}",
            )
    if len(q.shape) == 3:
        q_heads, kv_heads = attributes.get("q_num_heads"), attributes.get("kv_num_heads")
        if not q_heads or not kv_heads:
            raise FactError(
                "attributes q_num_heads and kv_num_heads are needed for inputs of rank 3", code="bad-attribute"
            )
        batch, seq, _ = q.shape
        heads: Dim = q_heads
        groups: Dim = kv_heads
        new, key_size, value_size = k.shape[1], floor_div(k.shape[2], kv_heads), floor_div(v.shape[2], kv_heads)
        y = like(q, (batch, seq, value_size * q_heads))
    else:
        batch, heads, seq, _ = q.shape
        if len(k.shape) != 4 or len(v.shape) != 4:
            return (like(q, unknown_shape(ctx, 4)), like(k, None), like(v, None), like(q, None))
        groups, new, key_size, value_size = k.shape[1], k.shape[2], k.shape[3], v.shape[3]
        y = like(q, (batch, heads, seq, value_size))
    total = new
    if past_key is not None:
        total = new + past_key.shape[2] if past_key.shape and len(past_key.shape) == 4 else ctx.symbol(1, 2)
    present = like(k, (batch, groups, total, key_size))
    return y, present, like(v, (batch, groups, total, value_size)), like(q, (batch, heads, seq, total))


@rule("RotaryEmbedding", since=23)
def rotary_embedding(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> Fact:
    """The input's shape."""
    return x.bare
