"""com.microsoft attention: Attention, MultiHeadAttention, GroupQueryAttention, RotaryEmbedding, QAttention."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import attention_flops, packed_attention_flops
from onnxlab.ops.base.kernel_helpers import Array, narrow, widen
from onnxlab.ops.base.one_line_rules import law
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, elem_type, like, unknown_shape
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN
from onnxlab.ops.onnx.math.matmul import for_blas, product
from onnxlab.ops.onnx.nn.attention import grouped, heads, masked_softmax, merged, rotate, scaled_scores, soft_capped
from onnxlab.ops.onnx.nn.quantization import dequantize_linear
from onnxlab.shapes import Dim, Fact, TensorFact, floor_div
from onnxlab.shapes import product as product_of_dims

_CACHED = 1 << 22
"""Bytes of scores up to which all heads are computed at once."""

_MASKED = -10000.0
"""The summand of masked scores, where `mask_filter_value` is absent."""


def _causal(queries: int, keys: int, past: int) -> Array:
    """bool[S, T]: whether a query may look at a key."""
    return np.arange(keys) <= past + np.arange(queries)[:, None]


def _attend(
    ctx: RunContext, query: Array, key: Array, value: Array, scale: float | None, bias: Sequence[Array | None]
) -> Array:
    """softmax(Q·Kᵀ·scale + Σ bias)·V of [B, H, S, D]."""
    factor = scale or 1 / sqrt(query.shape[-1])
    nbytes = query.itemsize * prod(query.shape[:3]) * key.shape[2]
    terms = [term for term in bias if term is not None]
    if nbytes <= _CACHED or key.shape[:2] != query.shape[:2]:
        ctx.reserve(nbytes, "the attention scores")
        return _attended(query, key, value, factor, terms)
    ctx.reserve(nbytes // prod(query.shape[:2]), "the attention scores of a head")
    whole = (*query.shape[:3], key.shape[2])
    terms = [np.broadcast_to(term, whole) for term in terms]
    result = np.empty((*query.shape[:3], value.shape[3]), query.dtype)
    for place in np.ndindex(*query.shape[:2]):  # one head at a time: its scores stay in the cache
        ctx.check()
        result[place] = _attended(query[place], key[place], value[place], factor, [term[place] for term in terms])
    return result


def _attended(query: Array, key: Array, value: Array, factor: float, terms: Sequence[Array]) -> Array:
    scores = scaled_scores(query, key, factor)
    for term in terms:
        np.add(scores, term, out=scores)
    return np.matmul(masked_softmax(scores), for_blas(value))


def mask_bias(mask: Array | None, batch: int, queries: int, keys: int, filtered: float) -> Array | None:
    """The summand of a mask for the scores, [B, 1, 1 or S, T]; zeros of the mask are masked.

    A mask is [B] lengths, [2·B] ends and then starts, [B, T], [B, S, T] or [B, 1, M, M].

    Raises:
        ValueError: the mask has another shape.
    """
    if mask is None:
        return None
    place = np.arange(keys)
    if mask.ndim == 1 and len(mask) == batch:
        seen = (place < mask[:, None])[:, None, None, :]
    elif mask.ndim == 1 and len(mask) == 2 * batch:
        seen = ((place < mask[:batch, None]) & (place >= mask[batch:, None]))[:, None, None, :]
    elif mask.ndim == 2:
        seen = (mask[:, :keys] != 0)[:, None, None, :]
    elif mask.ndim == 3:
        seen = (mask != 0)[:, None]
    elif mask.ndim == 4:
        seen = (mask != 0)[:, :, keys - queries : keys, :keys]
    else:
        raise ValueError(f"the mask has shape {mask.shape}: expected [{batch}], [{2 * batch}], rank 2, 3 or 4")
    return np.where(seen, np.float32(0), np.float32(filtered))


@kernel("Attention", domain=DOMAIN, context=True)
def attention_ms(
    ctx: RunContext,
    x: Array,
    weights: Array,
    bias: Array | None = None,
    mask_index: Array | None = None,
    past: Array | None = None,
    attention_bias: Array | None = None,
    past_sequence_length: Array | None = None,
    do_rotary: int = 0,
    mask_filter_value: float = _MASKED,
    num_heads: int = 1,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Sequence[int] | None = None,
    rotary_embedding_dim: int = 0,
    scale: float | None = None,
    unidirectional: int = 0,
) -> tuple[Array, Array]:
    """Self-attention of X [B, S, D] with weights [D, Q+K+V] in front: (Y, present [2, B, H, T, d])."""
    if do_rotary or past_present_share_buffer:
        raise ValueError("do_rotary and past_present_share_buffer are not supported on a CPU")
    batch, steps = x.shape[:2]
    projected = product(widen(x), widen(weights))
    if bias is not None:
        projected = projected + widen(bias)
    sizes = list(qkv_hidden_sizes) if qkv_hidden_sizes else [weights.shape[1] // 3] * 3
    parts = np.split(projected, np.cumsum(sizes)[:2].tolist(), axis=2)
    query, key, value = (heads(part, num_heads, "input") for part in parts)
    before = 0
    if past is not None:
        before = past.shape[3]
        key, value = np.concatenate([widen(past[0]), key], axis=2), np.concatenate([widen(past[1]), value], axis=2)
    total = key.shape[2]
    terms = [mask_bias(mask_index, batch, steps, total, mask_filter_value)]
    terms.append(None if attention_bias is None else widen(attention_bias))
    if unidirectional:
        terms.append(np.where(_causal(steps, total, before), np.float32(0), np.float32(mask_filter_value)))
    y = merged(_attend(ctx, query, key, value, scale, terms))
    present = np.stack([key, value]) if key.shape == value.shape else np.zeros(0, y.dtype)
    return narrow(y, x.dtype), narrow(present, x.dtype)


@kernel("QAttention", domain=DOMAIN, context=True)
def q_attention(
    ctx: RunContext,
    x: Array,
    weight: Array,
    bias: Array,
    input_scale: Array,
    weight_scale: Array,
    mask_index: Array | None = None,
    input_zero_point: Array | None = None,
    weight_zero_point: Array | None = None,
    past: Array | None = None,
    mask_filter_value: float = _MASKED,
    num_heads: int = 1,
    unidirectional: int = 0,
    scale: float | None = None,
    do_rotary: int = 0,
    past_present_share_buffer: int = 0,
) -> tuple[Array, Array]:
    """Attention of a quantized X with quantized weights, as floats."""
    data = dequantize_linear(x, input_scale, input_zero_point)
    weights = dequantize_linear(weight, weight_scale, weight_zero_point, axis=1)
    return attention_ms(
        ctx,
        data,
        weights,
        bias,
        mask_index,
        past,
        mask_filter_value=mask_filter_value,
        num_heads=num_heads,
        scale=scale,
        unidirectional=unidirectional,
    )


@kernel("MultiHeadAttention", domain=DOMAIN, context=True)
def multi_head_attention(
    ctx: RunContext,
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    bias: Array | None = None,
    key_padding_mask: Array | None = None,
    attention_bias: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    past_sequence_length: Array | None = None,
    cache_indirection: Array | None = None,
    mask_filter_value: float = _MASKED,
    num_heads: int = 1,
    scale: float | None = None,
    unidirectional: int = 0,
) -> tuple[Array, Array, Array]:
    """Attention of projected inputs: (Y, present key, present value).

    Query is [B, S, D] (or [B, S, H, 3, d] with key and value packed in), key [B, T, D] (or [B, T, H, 2, d]),
    key and value [B, H, T, d] where they come from another attention.
    """
    if query.ndim == 5:
        q, k, v = (widen(query[:, :, :, part]).swapaxes(1, 2) for part in range(3))
    elif key is not None and key.ndim == 5:
        q = heads(widen(query), num_heads, "query")
        k, v = (widen(key[:, :, :, part]).swapaxes(1, 2) for part in range(2))
    elif key is None or value is None:
        raise ValueError("key and value are absent: expected them, or a query [B, S, H, 3, d] that holds them")
    else:
        q, k, v = (
            heads(widen(item), num_heads, name) for item, name in ((query, "query"), (key, "key"), (value, "value"))
        )
    if bias is not None:
        width = q.shape[1] * q.shape[3]
        wide = widen(bias)
        for target, part in ((0, wide[:width]), (1, wide[width : 2 * width]), (2, wide[2 * width :])):
            added = part.reshape(q.shape[1], 1, -1)
            if target == 0:
                q = q + added
            elif target == 1 and (key is None or key.ndim != 4):
                k = k + added
            elif target == 2 and (value is None or value.ndim != 4):
                v = v + added
    before = 0
    if past_key is not None and past_value is not None:
        before = past_key.shape[2]
        k, v = np.concatenate([widen(past_key), k], axis=2), np.concatenate([widen(past_value), v], axis=2)
    terms = [mask_bias(key_padding_mask, len(q), q.shape[2], k.shape[2], mask_filter_value)]
    terms.append(None if attention_bias is None else widen(attention_bias))
    if unidirectional:
        allowed = _causal(q.shape[2], k.shape[2], before)
        terms.append(np.where(allowed, np.float32(0), np.float32(mask_filter_value)))
    y = merged(_attend(ctx, q, k, v, scale, terms))
    return narrow(y, query.dtype), narrow(k, query.dtype), narrow(v, query.dtype)


@kernel("RotaryEmbedding", domain=DOMAIN)
def rotary_embedding_ms(
    x: Array,
    position_ids: Array,
    cos_cache: Array,
    sin_cache: Array,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Array:
    """Rotary position embedding of [B, S, D] or [B, H, S, d]; positions are [B, S], or [1] where they start."""
    width = rotary_embedding_dim or 2 * cos_cache.shape[1]
    if x.ndim == 3:
        rows = x.reshape(*x.shape[:2], num_heads or x.shape[2] // (2 * cos_cache.shape[1]), -1)
    else:
        rows = x.transpose(0, 2, 1, 3)
    places = position_ids
    if position_ids.size == 1:
        places = int(position_ids.reshape(())) + np.arange(rows.shape[1])[None]
    y = rotate(widen(rows), widen(cos_cache)[places], widen(sin_cache)[places], bool(interleaved), width)
    return narrow(y.reshape(x.shape) if x.ndim == 3 else y.transpose(0, 2, 1, 3), x.dtype)


@kernel("GroupQueryAttention", domain=DOMAIN, context=True)
def group_query_attention(
    ctx: RunContext,
    query: Array,
    key: Array | None,
    value: Array | None,
    past_key: Array | None,
    past_value: Array | None,
    seqlens_k: Array,
    total_sequence_length: Array,
    cos_cache: Array | None = None,
    sin_cache: Array | None = None,
    position_ids: Array | None = None,
    attention_bias: Array | None = None,
    head_sink: Array | None = None,
    do_rotary: int = 0,
    kv_num_heads: int = 1,
    local_window_size: int = -1,
    num_heads: int = 1,
    rotary_interleaved: int = 0,
    scale: float | None = None,
    smooth_softmax: int = -1,
    softcap: float = 0.0,
    **options: object,
) -> tuple[Array, Array, Array]:
    """Causal attention where groups of query heads share keys and values: (Y, present key, present value).

    seqlens_k [B] is the number of keys, past and new ones, minus 1. Past keys stand at the front of the cache.
    """
    q, k, v = unpacked(query, key, value, num_heads, kv_num_heads)
    batch, steps = q.shape[0], q.shape[2]
    lengths = seqlens_k.reshape(-1).astype(np.int64) + 1
    total = int(total_sequence_length.reshape(-1)[0])
    prompt = steps == total  # the first call: sequences are padded at the end and have no past
    offsets = np.zeros(batch, np.int64) if prompt else lengths - steps
    if do_rotary and cos_cache is not None and sin_cache is not None:
        places = offsets[:, None] + np.arange(steps) if position_ids is None else position_ids
        cos, sin = widen(cos_cache)[places], widen(sin_cache)[places]
        width = 2 * cos_cache.shape[1]
        q, k = (
            rotate(part.transpose(0, 2, 1, 3), cos, sin, bool(rotary_interleaved), width).transpose(0, 2, 1, 3)
            for part in (q, k)
        )
    size = max(total, past_key.shape[2] if past_key is not None else 0)
    keys, values = (cache(ctx, past, new, offsets, size) for past, new in ((past_key, k), (past_value, v)))
    factor = scale or 1 / sqrt(q.shape[-1])
    ctx.reserve(q.itemsize * batch * num_heads * steps * total, "the attention scores")
    scores = scaled_scores(q, grouped(keys[:, :, :total], num_heads), factor)
    soft_capped(scores, softcap)
    if attention_bias is not None:
        np.add(scores, widen(attention_bias)[..., :total], out=scores)
    place, at_key = offsets[:, None, None, None] + np.arange(steps)[:, None], np.arange(total)
    allowed = at_key <= place
    if local_window_size >= 0:
        allowed = allowed & (at_key > place - local_window_size)
    np.copyto(scores, -np.inf, where=~allowed)
    weights = _smooth(scores, head_sink, smooth_softmax)
    y = merged(np.matmul(weights, for_blas(grouped(values[:, :, :total], num_heads))))
    return narrow(y, query.dtype), narrow(keys, query.dtype), narrow(values, query.dtype)


def unpacked(
    query: Array, key: Array | None, value: Array | None, num_heads: int, kv_num_heads: int
) -> tuple[Array, Array, Array]:
    """Q, K and V as [B, H, S, D], from one packed tensor where key and value are absent."""
    if key is None or value is None:
        size = query.shape[2] // (num_heads + 2 * kv_num_heads)
        query, key, value = np.split(query, [num_heads * size, (num_heads + kv_num_heads) * size], axis=2)
    q = heads(widen(query), num_heads, "query")
    return q, heads(widen(key), kv_num_heads, "key"), heads(widen(value), kv_num_heads, "value")


def cache(ctx: RunContext, past: Array | None, new: Array, offsets: Array, size: int) -> Array:
    """[B, H, size, D]: past and new keys or values, the new ones of entry b from offsets[b] on."""
    batch, count, steps, width = new.shape
    ctx.reserve(new.itemsize * batch * count * size * width, "the key and value cache")
    cache = np.zeros((batch, count, size, width), new.dtype)
    if past is not None:
        cache[:, :, : past.shape[2]] = past
    for entry, offset in enumerate(offsets.tolist()):
        cache[entry, :, offset : offset + steps] = new[entry, :, : size - offset]
    return cache


def _smooth(scores: Array, head_sink: Array | None, smooth_softmax: int) -> Array:
    """Softmax with one more score in the denominator: 0 (smooth_softmax), or a number for each head (head_sink)."""
    if head_sink is None and smooth_softmax != 1:
        return masked_softmax(scores)
    sink = np.zeros((1, 1, 1), scores.dtype) if head_sink is None else widen(head_sink).reshape(-1, 1, 1)
    column = np.broadcast_to(sink, (*scores.shape[:-1], 1))
    return masked_softmax(np.concatenate([scores, column], axis=-1))[..., :-1]


# -- shape rules -------------------------------------------------------------------------------------------------------


def input_at(inputs: tuple[MaybeFact, ...], slot: int) -> MaybeFact:
    """The fact of an input, None where the node has no such slot."""
    return inputs[slot] if slot < len(inputs) else None


def total_length(ctx: InferContext, past: MaybeFact, axis: int, rank: int, slot: int, out: int) -> Dim:
    """The length of the past keys: 0 without any."""
    if past is None:
        return 0
    return past.shape[axis] if past.shape is not None and len(past.shape) == rank else ctx.symbol(slot, out)


@rule("Attention", domain=DOMAIN)
def attention_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, weights: Fact, bias: MaybeFact = None, *others: MaybeFact
) -> tuple[Fact, ...]:
    """[batch, seq, hidden of V]; the present keys and values [2, batch, heads, total, head size]."""
    return _merged(ctx, attributes, x, weights, input_at(others, 1), elem_type(x))


@rule("QAttention", domain=DOMAIN)
def q_attention_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, weights: Fact, *others: MaybeFact
) -> tuple[Fact, ...]:
    """Attention in floats."""
    return _merged(ctx, attributes, x, weights, input_at(others, 6), dtypes.FLOAT)


def _merged(
    ctx: InferContext, attributes: Attributes, x: Fact, weights: Fact, past: MaybeFact, elem: int
) -> tuple[Fact, Fact]:
    """Attention whose weights make queries, keys and values at once; a shared buffer keeps its shape."""
    if x.shape is None or len(x.shape) != 3:
        return TensorFact(elem, unknown_shape(ctx, 3)), TensorFact(elem)
    heads = attributes["num_heads"]
    hidden = hidden_size(ctx, attributes, weights, 2)
    if past is not None and attributes.get("past_present_share_buffer"):
        return TensorFact(elem, (*x.shape[:2], hidden)), TensorFact(elem, past.shape)
    total = x.shape[1] + total_length(ctx, past, 3, 5, 1, 3)
    present = (2, x.shape[0], heads, total, floor_div(hidden, heads))
    return TensorFact(elem, (*x.shape[:2], hidden)), TensorFact(elem, present)


def hidden_size(ctx: InferContext, attributes: Attributes, weights: Fact, axis: int) -> Dim:
    """Width of the values that merged weights make."""
    if sizes := attributes.get("qkv_hidden_sizes"):
        return int(sizes[2])
    return floor_div(weights.shape[-1], 3) if weights.shape else ctx.symbol(0, axis)


@rule("MultiHeadAttention", domain=DOMAIN)
def multi_head_attention_rule(
    ctx: InferContext,
    attributes: Attributes,
    query: Fact,
    key: MaybeFact = None,
    value: MaybeFact = None,
    *others: MaybeFact,
) -> tuple[Fact, ...]:
    """[batch, seq, hidden of V]; present keys and values [batch, heads, total, head size]."""
    unknown = like(query, unknown_shape(ctx, 4, 1))
    if query.shape is None:
        return like(query, unknown_shape(ctx, 3)), unknown, unknown
    batch, seq = query.shape[:2]
    if len(query.shape) == 5:  # packed: [batch, seq, heads, 3, head size]
        hidden = query.shape[2] * query.shape[4]
        return like(query, (batch, seq, hidden)), unknown, unknown
    hidden = width_of(value, query.shape[2])
    present = _present(ctx, query, key, input_at(others, 3), attributes["num_heads"])
    return like(query, (batch, seq, hidden)), present, present


def width_of(value: MaybeFact, otherwise: Dim) -> Dim:
    """Width of the values: [batch, seq, hidden], or [batch, heads, seq, head size]."""
    if value is None or value.shape is None:
        return otherwise
    return value.shape[2] if len(value.shape) == 3 else product_of_dims((value.shape[1], value.shape[3]))


def _present(ctx: InferContext, query: Fact, key: MaybeFact, past: MaybeFact, heads: int) -> Fact:
    """Keys so far: the past ones and those of this call."""
    assert query.shape is not None
    new: Dim = ctx.symbol(1, 2)
    if key is not None and key.shape is not None:
        new = key.shape[1] if len(key.shape) == 3 else key.shape[2]
    total = total_length(ctx, past, 2, 4, 1, 2) + new
    return like(query, (query.shape[0], heads, total, floor_div(query.shape[-1], heads)))


@rule("GroupQueryAttention", domain=DOMAIN)
def group_query_attention_rule(
    ctx: InferContext,
    attributes: Attributes,
    query: Fact,
    key: MaybeFact = None,
    value: MaybeFact = None,
    past_key: MaybeFact = None,
    past_value: MaybeFact = None,
    *others: MaybeFact,
) -> tuple[Fact, ...]:
    """The query's shape (packed: without keys and values); present keys and values [batch, groups, total, head]."""
    heads, groups = attributes["num_heads"], attributes["kv_num_heads"]
    if query.shape is None or len(query.shape) != 3:
        unknown = like(query, unknown_shape(ctx, 4, 1))
        return like(query, unknown_shape(ctx, 3)), unknown, unknown
    batch, seq, width = query.shape
    head = head_size(attributes, width, key)
    present = like(query, (batch, groups, ctx.symbol(1, 2), head))
    return like(query, (batch, seq, head * heads)), present, present


def head_size(attributes: Attributes, width: Dim, key: MaybeFact) -> Dim:
    """Size of a head; where there are no keys, the queries hold keys and values too."""
    heads = attributes["num_heads"]
    return floor_div(width, heads if key is not None else heads + 2 * attributes["kv_num_heads"])


law("MRotaryEmbedding", "-> 0")
law("RotaryEmbedding", "-> 0")
law("LinearAttentionGate", "-> 0 | 0")
law("GemmaRotaryEmbedding", "-> 1 | 3")
law("RelativePositionBias", "?, H | =Q | =K -> 0: 1, H, Q, K")
law("GatedRelativePositionBias", "B, S, ? -> 0: B, @num_heads, S, S")
law("RestorePadding", "?, H | B, S -> 0: B, S, H")
law("RemovePadding", "B, S, H -> 0: ?, H | int32: B, S | int32: B + 1 | int32: 1")


# -- traits ------------------------------------------------------------------------------------------------------------


traits(
    "Attention QAttention",
    OpTraits(category="matrix", shape="shapes", flops=packed_attention_flops, layer="attention"),
    DOMAIN,
)
traits(
    "GatedRelativePositionBias GemmaRotaryEmbedding LinearAttentionGate MRotaryEmbedding",
    OpTraits(category="elementwise", shape="shapes", flops=1),
    DOMAIN,
)
traits("RotaryEmbedding", OpTraits(category="elementwise", shape="shapes", flops=1, layer="attention"), DOMAIN)
traits(
    "GroupQueryAttention",
    OpTraits(category="matrix", shape="elements", flops=attention_flops, layer="attention"),
    DOMAIN,
)
traits(
    "MultiHeadAttention", OpTraits(category="matrix", shape="shapes", flops=attention_flops, layer="attention"), DOMAIN
)
traits("RelativePositionBias", OpTraits(category="elementwise", shape="elements", flops=1), DOMAIN)
traits("RemovePadding", OpTraits(category="shape", shape="data", flops=0), DOMAIN)
traits("RestorePadding", OpTraits(category="shape", shape="shapes", flops=0), DOMAIN)
