"""Attention and what transformers put around it: Attention, RotaryEmbedding, LinearAttention, CausalConvWithState."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from math import sqrt

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import Body, InferContext, RunContext
from onnxlab.ops.base.estimates import attention_flops
from onnxlab.ops.base.kernel_helpers import Array, is_small_float, narrow, widen
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, dims_text, like, must_equal
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.onnx.math.matmul import for_blas
from onnxlab.ops.onnx.nn.activation import swish
from onnxlab.shapes import Dim, Fact, FactError, floor_div


def heads(x: Array, count: int | None, name: str) -> Array:
    """[B, H, S, D] of [B, H, S, D] or [B, S, H·D].

    Raises:
        ValueError: rank 3 without a number of heads that divides the last axis.
    """
    if x.ndim == 4:
        return x
    if x.ndim != 3 or not count or x.shape[2] % count:
        raise ValueError(f"{name} has shape {x.shape}: expected rank 4, or rank 3 and heads ({count}) that divide it")
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def merged(x: Array) -> Array:
    """[B, S, H·D] of [B, H, S, D]."""
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def scaled_scores(query: Array, key: Array, factor: float) -> Array:
    """Q·Kᵀ·factor of [..., S, D] and [..., T, D].

    The product is scaled instead of the queries, as in ONNX Runtime, so that both overflow in the same places.
    """
    scores = np.matmul(query, for_blas(key.swapaxes(-1, -2)))
    return np.multiply(scores, scores.dtype.type(factor), out=scores)


def masked_softmax(scores: Array) -> Array:
    """Softmax over the last axis, in place; a row of nothing but −inf becomes zeros."""
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    np.copyto(top, 0, where=np.isneginf(top))
    np.subtract(scores, top, out=scores)
    np.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    np.copyto(total, 1, where=total == 0)
    return np.divide(scores, total, out=scores)


def soft_capped(scores: Array, cap: float) -> Array:
    """cap · tanh(scores / cap), in place; a cap of 0 or less does nothing."""
    if cap > 0:
        np.divide(scores, scores.dtype.type(cap), out=scores)
        np.tanh(scores, out=scores)
        np.multiply(scores, scores.dtype.type(cap), out=scores)
    return scores


def grouped(x: Array, query_heads: int) -> Array:
    """Keys or values [B, Hkv, T, D] repeated so that every query head has its own."""
    if query_heads % x.shape[1]:
        raise ValueError(f"{query_heads} query heads are no multiple of the {x.shape[1]} key and value heads")
    return x if x.shape[1] == query_heads else x.repeat(query_heads // x.shape[1], axis=1)


def additive(mask: Array, total: int, dtype: np.dtype[np.generic]) -> Array:
    """An attention mask as numbers to add: 0 and −inf for a boolean one; missing keys at the end are masked."""
    bias = np.where(mask, 0, -np.inf).astype(dtype) if mask.dtype.kind == "b" else widen(mask).astype(dtype)
    if bias.shape[-1] < total:
        width = [(0, 0)] * (bias.ndim - 1) + [(0, total - bias.shape[-1])]
        bias = np.pad(bias, width, constant_values=-np.inf)
    return bias


def visible(
    queries: int, keys: int, offset: Array, causal: bool, left: int = -1, right: int = -1, used: Array | None = None
) -> Array | None:
    """Whether a query may look at a key: bool[B or 1, 1, S, T], None where all may.

    Args:
        offset: [B or 1] absolute position of the first query.
        left: number of keys before its own place that a query sees, −1 for all.
        right: number of keys after its own place that a query sees, −1 for all.
        used: [B] number of keys that are no padding.
    """
    place = offset.reshape(-1, 1, 1, 1) + np.arange(queries)[:, None]
    key = np.arange(keys)
    allowed = np.ones((1, 1, queries, keys), bool)
    if causal:
        allowed = allowed & (key <= place)
    if left >= 0:
        allowed = allowed & (key >= place - left)
    if right >= 0:
        allowed = allowed & (key <= place + right)
    if used is not None:
        allowed = allowed & (key < used.reshape(-1, 1, 1, 1))
    return None if allowed.all() else allowed


@kernel("Attention", since=23, context=True)
def attention(
    ctx: RunContext,
    q: Array,
    k: Array,
    v: Array,
    attn_mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    nonpad_kv_seqlen: Array | None = None,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Scaled dot product attention: (Y, present key, present value, scores at the stage asked for)."""
    dtype, flat = q.dtype, q.ndim == 3
    query, key, value = heads(q, q_num_heads, "Q"), heads(k, kv_num_heads, "K"), heads(v, kv_num_heads, "V")
    past = 0
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        key, value = np.concatenate([past_key, key], axis=2), np.concatenate([past_value, value], axis=2)
    present = key, value
    wide = widen(query)
    factor = scale if scale is not None else 1 / sqrt(query.shape[-1])
    batch, count, queries = query.shape[:3]
    ctx.reserve(wide.itemsize * batch * count * queries * key.shape[2], "the attention scores")
    scores = scaled_scores(wide, grouped(widen(key), count), factor)
    stages = [scores.copy() if qk_matmul_output_mode == 0 and ctx.outputs[3:4] == (True,) else scores]
    soft_capped(scores, softcap)
    stages.append(scores.copy() if qk_matmul_output_mode == 1 else scores)
    offset = np.array([past]) if nonpad_kv_seqlen is None else nonpad_kv_seqlen - queries
    allowed = visible(
        queries, key.shape[2], offset, bool(is_causal), left_window_size, right_window_size, nonpad_kv_seqlen
    )
    if attn_mask is not None:
        np.add(scores, additive(attn_mask, key.shape[2], scores.dtype), out=scores)
    if allowed is not None:
        np.copyto(scores, -np.inf, where=~allowed)
    stages.append(scores.copy() if qk_matmul_output_mode == 2 else scores)
    if softmax_precision == dtypes.DOUBLE:
        scores = scores.astype(np.float64)
    weights = masked_softmax(scores).astype(wide.dtype, copy=False)
    stages.append(weights)
    y = np.matmul(weights, for_blas(grouped(widen(value), count)))
    outputs = (merged(y) if flat else y, stages[qk_matmul_output_mode])
    rounded = tuple(narrow(array, dtype) if is_small_float(dtype) else array for array in outputs)
    return rounded[0], *present, rounded[1]


@kernel("FlexAttention", domain="ai.onnx.preview", context=True)
def flex_attention(
    ctx: RunContext,
    q: Array,
    k: Array,
    v: Array,
    prob_mod: Body | None = None,
    scale: float | None = None,
    score_mod: Body | None = None,
    softmax_precision: int | None = None,
) -> Array:
    """Attention of [B, H, S, D] with bodies that change the scores and the probabilities [B, H, S, T]."""
    count = q.shape[1]
    default = dtypes.DOUBLE if q.dtype == np.float64 else dtypes.FLOAT
    precision = dtypes.to_numpy(softmax_precision or default)
    ctx.reserve(4 * q.size // max(1, q.shape[-1]) * k.shape[2], "the attention scores")
    factor = scale if scale is not None else 1 / sqrt(q.shape[-1])
    query, keys, values = widen(q), grouped(widen(k), count), grouped(widen(v), count)
    scores = scaled_scores(query, keys, factor)
    scores = scores.astype(precision, copy=False)
    if score_mod is not None:
        (scores,) = ctx.run(score_mod, (scores,))
    weights = masked_softmax(np.array(widen(scores))).astype(precision, copy=False)
    if prob_mod is not None:
        (weights,) = ctx.run(prob_mod, (weights,))
    return np.matmul(widen(weights).astype(values.dtype, copy=False), for_blas(values)).astype(q.dtype, copy=False)


def rotate(x: Array, cos: Array, sin: Array, interleaved: bool, width: int = 0) -> Array:
    """Rotate pairs of the first `width` features of [B, S, H, D]; cos and sin are [B or 1, S, width / 2]."""
    width = width or x.shape[-1]
    if cos.shape[-1] * 2 != width or sin.shape[-1] * 2 != width:
        raise ValueError(f"the caches have {cos.shape[-1]} columns: {width} rotated features need {width // 2}")
    cos, sin = cos[:, :, None, :], sin[:, :, None, :]
    first = x[..., 0:width:2] if interleaved else x[..., : width // 2]
    second = x[..., 1:width:2] if interleaved else x[..., width // 2 : width]
    y = np.array(x, order="C", copy=True)
    real, imaginary = first * cos - second * sin, first * sin + second * cos
    if interleaved:
        y[..., 0:width:2], y[..., 1:width:2] = real, imaginary
    else:
        y[..., : width // 2], y[..., width // 2 : width] = real, imaginary
    return y


@kernel("RotaryEmbedding", since=23)
def rotary_embedding(
    x: Array,
    cos_cache: Array,
    sin_cache: Array,
    position_ids: Array | None = None,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Array:
    """Rotary position embedding of [B, H, S, D] or [B, S, H·D]; caches are by position, or by token without ids."""
    rows = heads(x, num_heads or None, "X").transpose(0, 2, 1, 3)
    cos, sin = widen(cos_cache), widen(sin_cache)
    if position_ids is not None:
        cos, sin = cos[position_ids], sin[position_ids]
    y = rotate(widen(rows), cos, sin, bool(interleaved), rotary_embedding_dim)
    y = y.reshape(x.shape) if x.ndim == 3 else y.transpose(0, 2, 1, 3)
    return y.astype(x.dtype, copy=False)


@kernel("LinearAttention", since=27, context=True)
def linear_attention(
    ctx: RunContext,
    query: Array,
    key: Array,
    value: Array,
    past_state: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
    q_num_heads: int = 0,
    kv_num_heads: int = 0,
    chunk_size: int = 64,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> tuple[Array, Array]:
    """Recurrent attention over a state [B, H, dk, dv], step by step: (output [B, T, Hq·dv], last state).

    S ← e^g·S + k ⊗ β(v − (e^g·S)ᵀk); the gate g is 0 and the correction absent where the rule has none.
    """
    if update_rule not in ("linear", "gated", "delta", "gated_delta"):
        raise ValueError(f"update_rule is {update_rule!r}: expected linear, gated, delta or gated_delta")
    gated, delta = "gated" in update_rule, "delta" in update_rule
    if (gated and decay is None) or (delta and beta is None):
        raise ValueError(f"update_rule {update_rule} needs {'decay' if gated and decay is None else 'beta'}")
    q, k, v = heads(widen(query), q_num_heads, "query"), heads(widen(key), kv_num_heads, "key"), \
        heads(widen(value), kv_num_heads, "value")  # fmt: skip
    batch, steps = query.shape[:2]
    factor = scale or 1 / sqrt(q.shape[-1])
    state = np.zeros((batch, kv_num_heads, k.shape[-1], v.shape[-1]), q.dtype)
    if past_state is not None:
        state += widen(past_state)
    gate = None if not gated or decay is None else np.exp(widen(decay)).reshape(batch, steps, kv_num_heads, -1)
    rate = None if not delta or beta is None else widen(beta).reshape(batch, steps, -1, 1)
    group_size = q_num_heads // kv_num_heads
    output = np.empty((batch, q_num_heads, steps, v.shape[-1]), q.dtype)
    for t in range(steps):
        ctx.check()
        if gate is not None:
            state = state * gate[:, t, :, :, None]
        new = v[:, :, t]
        if rate is not None:
            new = rate[:, t] * (new - np.einsum("bhkv,bhk->bhv", state, k[:, :, t]))
        state = state + k[:, :, t, :, None] * new[:, :, None, :]
        queries = q[:, :, t].reshape(batch, kv_num_heads, group_size, -1)
        output[:, :, t] = (np.matmul(queries, state) * q.dtype.type(factor)).reshape(batch, q_num_heads, -1)
    return narrow(merged(output), query.dtype), narrow(state, query.dtype if past_state is None else past_state.dtype)


@kernel("CausalConvWithState", since=27)
def causal_conv_with_state(
    x: Array, weight: Array, bias: Array | None = None, past_state: Array | None = None, activation: str = "none"
) -> tuple[Array, Array]:
    """Depthwise convolution of [B, C, L] that looks back only: (output, the last k − 1 inputs)."""
    if activation not in ("none", "silu", "swish"):
        raise ValueError(f"activation is {activation!r}: expected none, silu or swish")
    back, length = weight.shape[2] - 1, x.shape[2]
    past = np.zeros((*x.shape[:2], back), x.dtype) if past_state is None else past_state
    padded = np.concatenate([past.astype(x.dtype, copy=False), x], axis=2)
    wide, kernels = widen(padded), widen(weight)[:, 0]
    y = np.zeros(x.shape, wide.dtype)
    for tap in range(back + 1):
        y += wide[:, :, tap : tap + length] * kernels[:, tap, None]
    if bias is not None:
        y += widen(bias)[:, None]
    if activation != "none":
        y = swish(y)
    return y.astype(x.dtype, copy=False), padded[:, :, padded.shape[2] - back :]


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("Attention", since=23)
def attention_rule(
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
    if not len(q.shape) == len(k.shape) == len(v.shape):
        raise FactError(
            f"Q, K and V have the shapes {dims_text(q.shape)}, {dims_text(k.shape)} and {dims_text(v.shape)}",
            code="rank-mismatch",
            expected="one rank, 3 or 4",
            found=f"ranks {len(q.shape)}, {len(k.shape)} and {len(v.shape)}",
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
        groups, new, key_size, value_size = k.shape[1], k.shape[2], k.shape[3], v.shape[3]
        y = like(q, (batch, heads, seq, value_size))
    total = new
    _past_fits("past_key", past_key, (batch, groups, key_size))
    _past_fits("past_value", past_value, (batch, groups, value_size))
    if past_key is not None:
        total = new + past_key.shape[2] if past_key.shape and len(past_key.shape) == 4 else ctx.symbol(1, 2)
    present = like(k, (batch, groups, total, key_size))
    return y, present, like(v, (batch, groups, total, value_size)), like(q, (batch, heads, seq, total))


def _past_fits(name: str, past: MaybeFact, expected: tuple[Dim, Dim, Dim]) -> None:
    """Raise FactError where a cache is certainly not [batch, heads, length, size] of the new keys or values."""
    if past is None or past.shape is None:
        return
    if len(past.shape) != 4:
        raise FactError(
            f"{name} has shape {dims_text(past.shape)}", code="rank-mismatch", expected="rank 4",
            found=f"rank {len(past.shape)}",
        )  # fmt: skip
    batch, heads, _, size = past.shape
    for dim, size_of_past, part in zip(expected, (batch, heads, size), ("batch", "heads", "head size"), strict=True):
        must_equal(dim, size_of_past, "the {} of {} {} is another than that of the new ones", part, name, past.shape)


@rule("RotaryEmbedding", since=23)
def rotary_embedding_rule(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> Fact:
    """The input's shape."""
    return x.bare


# -- traits ------------------------------------------------------------------------------------------------------------


traits(
    "Attention",
    OpTraits(
        category="matrix",
        shape="shapes",
        flops=attention_flops,
        elements="none",
        signature="B Q L D/B L ?|B K S D/B S ?|B K S V/B S ?|?/? ?/? ? ?/? ? ? ?|B K P D|B K P V|B",
        layer="attention",
    ),
)
traits(
    "CausalConvWithState", OpTraits(category="convolution", shape="shapes", flops=1, signature="B C L|C 1 K|C|B C P")
)
traits("LinearAttention", OpTraits(category="matrix", shape="shapes", flops=1))
traits(
    "RotaryEmbedding",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        elements="none",
        signature="B ? ? ?/B L ?|M d/B L d|M d/B L d|B L",
        layer="attention",
    ),
)
traits(
    "FlexAttention",
    OpTraits(category="matrix", shape="shapes", flops=attention_flops, signature="B Q L D|B K S D|B K S V"),
    "ai.onnx.preview",
)
