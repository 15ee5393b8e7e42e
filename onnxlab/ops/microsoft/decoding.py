"""com.microsoft attention of decoders: DecoderMaskedMultiHeadAttention, SparseAttention.

Sources: docs/ContribOperators.md and the schemas of ONNX Runtime.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from math import sqrt

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.kernel_helpers import Array, narrow, widen
from onnxlab.ops.base.one_line_rules import law
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, elem_type, like, unknown_shape
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.attention import (
    attention_rule,
    cache,
    group_query_attention_rule,
    head_size,
    hidden_size,
    input_at,
    mask_bias,
    total_length,
    unpacked,
    width_of,
)
from onnxlab.ops.microsoft.fused import DOMAIN
from onnxlab.ops.onnx.math.matmul import for_blas
from onnxlab.ops.onnx.nn.attention import grouped, heads, masked_softmax, merged, rotate, scaled_scores
from onnxlab.shapes import Dim, Fact, TensorFact, floor_div
from onnxlab.shapes import product as product_of_dims

_MASKED = -10000.0


@kernel("DecoderMaskedMultiHeadAttention", domain=DOMAIN, context=True)
def decoder_masked_multi_head_attention(
    ctx: RunContext,
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    mask_index: Array | None = None,
    attention_bias: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    past_sequence_length: Array | None = None,
    beam_width: Array | None = None,
    cache_indirection: Array | None = None,
    bias: Array | None = None,
    mask_filter_value: float = _MASKED,
    num_heads: int = 1,
    output_qk: int = 0,
    past_present_share_buffer: int = 0,
    scale: float | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Attention of one token [B, 1, D] to those before it: (Y, present key, present value, weights).

    Keys and values are projections of the token, or packed into the query, or those of another attention [B, H, T, d].
    With a shared buffer, past ones are at the front of [B, H, most, d]. cache_indirection [b, beams, most] gives the
    beam from which each past token of a beam comes.
    """
    q, k, v = _projected(query, key, value, bias, num_heads)
    crossed = key is not None and key.ndim == 4
    before = 0
    if not crossed and past_key is not None and past_value is not None:
        before = past_key.shape[2]
        if past_present_share_buffer:
            before = 0 if past_sequence_length is None else int(past_sequence_length.reshape(-1)[0])
        size = past_key.shape[2] if past_present_share_buffer else before + 1
        offsets = np.full(len(q), before)
        k, v = (cache(ctx, past, new, offsets, size) for past, new in ((past_key, k), (past_value, v)))
    total = k.shape[2] if crossed else before + 1
    keys, values = k[:, :, :total], v[:, :, :total]
    if cache_indirection is not None and beam_width is not None and not crossed:
        keys, values = (_by_beam(part, cache_indirection, int(beam_width.reshape(-1)[0]), before)
                        for part in (keys, values))  # fmt: skip
    scores = scaled_scores(q, keys, scale or 1 / sqrt(q.shape[-1]))
    for term in (mask_bias(mask_index, len(q), 1, total, mask_filter_value), attention_bias):
        if term is not None:
            np.add(scores, widen(term), out=scores)
    stage = scores.copy() if output_qk else scores
    weights = masked_softmax(scores)
    y = merged(np.matmul(weights, for_blas(values)))
    dtype = query.dtype
    return narrow(y, dtype), narrow(k, dtype), narrow(v, dtype), stage


def _projected(
    query: Array, key: Array | None, value: Array | None, bias: Array | None, num_heads: int
) -> tuple[Array, Array, Array]:
    """Q, K and V as [B, H, S, d], with their biases; keys and values of another attention have theirs already."""
    if key is None or value is None:
        width = query.shape[2] // 3
        parts = list(np.split(widen(query), [width, 2 * width], axis=2))
    else:
        parts = [widen(query), widen(key), widen(value)]
    if bias is not None:
        width = parts[0].shape[-1]
        sizes = np.split(widen(bias), [width, 2 * width])
        parts = [part + more if part.ndim == 3 else part for part, more in zip(parts, sizes, strict=True)]
    q, k, v = (heads(part, num_heads, name) for part, name in zip(parts, ("query", "key", "value"), strict=True))
    return q, k, v


def _by_beam(part: Array, indirection: Array, beams: int, before: int) -> Array:
    """Keys or values [b·beams, H, T, d] where the past ones of each beam are fetched from the beams they come from."""
    y = part.copy()
    source = indirection[:, :, :before].astype(np.intp) + np.arange(len(part) // beams)[:, None, None] * beams
    flat = source.reshape(len(part), before)
    y[:, :, :before] = part[flat[:, None, :], np.arange(part.shape[1])[None, :, None], np.arange(before)[None, None, :]]
    return y


@kernel("SparseAttention", domain=DOMAIN, context=True)
def sparse_attention(
    ctx: RunContext,
    query: Array,
    key: Array | None,
    value: Array | None,
    past_key: Array,
    past_value: Array,
    block_row_indices: Array,
    block_col_indices: Array,
    total_sequence_length: Array,
    key_total_sequence_lengths: Array,
    cos_cache: Array | None = None,
    sin_cache: Array | None = None,
    do_rotary: int = 0,
    kv_num_heads: int = 1,
    num_heads: int = 1,
    rotary_interleaved: int = 0,
    scale: float | None = None,
    sparse_block_size: int = 64,
) -> tuple[Array, Array, Array]:
    """Causal attention to some blocks of keys only, with a cache of the longest length: (Y, present key and value).

    The blocks that each block of queries sees are rows of a CSR matrix [layouts, …]; the heads use layouts in turn.
    """
    q, k, v = unpacked(query, key, value, num_heads, kv_num_heads)
    batch, steps = q.shape[0], q.shape[2]
    lengths = key_total_sequence_lengths.reshape(-1).astype(np.int64)
    total = int(total_sequence_length.reshape(-1)[0])
    offsets = np.zeros(batch, np.int64) if steps == total else lengths - steps
    if do_rotary and cos_cache is not None and sin_cache is not None:
        places = offsets[:, None] + np.arange(steps)
        cos, sin = widen(cos_cache)[places], widen(sin_cache)[places]
        q, k = (rotate(part.transpose(0, 2, 1, 3), cos, sin, bool(rotary_interleaved), 2 * cos.shape[-1])
                .transpose(0, 2, 1, 3) for part in (q, k))  # fmt: skip
    size = past_key.shape[2]
    keys, values = (cache(ctx, past, new, offsets, size) for past, new in ((past_key, k), (past_value, v)))
    ctx.reserve(q.itemsize * batch * num_heads * steps * total, "the attention scores")
    scores = scaled_scores(q, grouped(keys[:, :, :total], num_heads), scale or 1 / sqrt(q.shape[-1]))
    place, at_key = offsets[:, None] + np.arange(steps), np.arange(total)
    seen = _block_mask(block_row_indices, block_col_indices, num_heads)
    blocks = seen[:, place // sparse_block_size][..., at_key // sparse_block_size]  # [H, B, S, T]
    allowed = blocks.swapaxes(0, 1) & (at_key <= place[:, None, :, None])
    np.copyto(scores, -np.inf, where=~allowed)
    y = merged(np.matmul(masked_softmax(scores), for_blas(grouped(values[:, :, :total], num_heads))))
    return narrow(y, query.dtype), narrow(keys, query.dtype), narrow(values, query.dtype)


def _block_mask(rows: Array, columns: Array, num_heads: int) -> Array:
    """bool[heads, blocks, blocks]: which blocks of keys each block of queries sees."""
    count = rows.shape[1] - 1
    seen = np.zeros((len(rows), count, count), bool)
    for layout, (ends, visible) in enumerate(zip(rows.tolist(), columns, strict=True)):
        for row in range(count):
            seen[layout, row, visible[ends[row] : ends[row + 1]]] = True
    return seen[np.arange(num_heads) % len(rows)]


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("PackedAttention", domain=DOMAIN)
def packed_attention(ctx: InferContext, attributes: Attributes, x: Fact, weights: Fact, *_others: MaybeFact) -> Fact:
    """[tokens, hidden of V]."""
    return like(x, (x.shape[0] if x.shape else ctx.symbol(0, 0), hidden_size(ctx, attributes, weights, 1)))


@rule("PackedMultiHeadAttention", domain=DOMAIN)
def packed_multi_head_attention(
    ctx: InferContext,
    attributes: Attributes,
    query: Fact,
    key: MaybeFact = None,
    value: MaybeFact = None,
    *_: MaybeFact,
) -> Fact:
    """[tokens, hidden of V]; packed queries, keys and values are [tokens, heads, 3, head size]."""
    if query.shape is not None and len(query.shape) == 4:
        return like(query, (query.shape[0], product_of_dims((query.shape[1], query.shape[3]))))
    hidden = value.shape[-1] if value is not None and value.shape else ctx.symbol(0, 1)
    return like(query, (query.shape[0] if query.shape else ctx.symbol(0, 0), hidden))


@rule("DecoderMaskedMultiHeadAttention", domain=DOMAIN)
def decoder_masked_multi_head_attention_rule(
    ctx: InferContext,
    attributes: Attributes,
    query: Fact,
    key: MaybeFact = None,
    value: MaybeFact = None,
    *others: MaybeFact,
) -> tuple[Fact, ...]:
    """[batch, 1, hidden of V] (packed: a third of the query); present keys and values, or the buffer they share."""
    past, unknown = input_at(others, 2), like(query, unknown_shape(ctx, 4, 1))
    if query.shape is None or len(query.shape) != 3:
        output = like(query, unknown_shape(ctx, 3))
    else:
        width = floor_div(query.shape[2], 3) if key is None else width_of(value, query.shape[2])
        output = like(query, (*query.shape[:2], width))
    if attributes.get("past_present_share_buffer") and past is not None:
        return output, past.bare, past.bare
    if past is None or past.shape is None or len(past.shape) != 4 or output.shape is None:
        return output, unknown, unknown
    present = like(query, (*past.shape[:2], past.shape[2] + output.shape[1], past.shape[3]))
    return output, present, present


@rule("SparseAttention", domain=DOMAIN)
def sparse_attention_rule(
    ctx: InferContext,
    attributes: Attributes,
    query: Fact,
    key: MaybeFact,
    value: MaybeFact,
    past_key: Fact,
    past_value: Fact,
    *_others: MaybeFact,
) -> tuple[Fact, Fact, Fact]:
    """The query's shape (packed: without keys and values); the caches, which are written in place."""
    if query.shape is None or len(query.shape) != 3:
        return like(query, unknown_shape(ctx, 3)), past_key.bare, past_value.bare
    hidden = head_size(attributes, query.shape[2], key) * attributes["num_heads"]
    return like(query, (*query.shape[:2], hidden)), past_key.bare, past_value.bare


@rule("PagedAttention", domain=DOMAIN)
@rule("SparsePagedAttention", domain=DOMAIN)
def paged_attention(
    ctx: InferContext,
    attributes: Attributes,
    query: Fact,
    key: MaybeFact,
    value: MaybeFact,
    key_cache: Fact,
    value_cache: MaybeFact = None,
    *_others: MaybeFact,
) -> tuple[Fact, ...]:
    """[tokens, heads * head size of V]; the blocks of the caches, which are written in place."""
    tokens, width = query.shape if query.shape and len(query.shape) == 2 else (ctx.symbol(0, 0), None)
    heads, size = attributes["num_heads"], attributes.get("v_head_size", 0)
    if size > 0:
        hidden: Dim = heads * size
    else:
        hidden = ctx.symbol(0, 1) if width is None else head_size(attributes, width, key) * heads
    return like(query, (tokens, hidden)), key_cache.bare, (value_cache or key_cache).bare


@rule("GatedDeltaNet", domain=DOMAIN)
def gated_delta_net(
    ctx: InferContext,
    attributes: Attributes,
    query: Fact,
    key: MaybeFact = None,
    value: MaybeFact = None,
    lengths: MaybeFact = None,
    decay: MaybeFact = None,
    beta: MaybeFact = None,
    state: MaybeFact = None,
    *_others: MaybeFact,
) -> tuple[Fact, Fact, Fact]:
    """[tokens, heads of V, size of V]; the state [batch, heads of V, size of V, size of K]; what changes it.

    Without keys and values, the queries hold all three, and the state tells the sizes.
    """
    state_shape = state.shape if state is not None and state.shape is not None and len(state.shape) == 4 else None
    batch, heads, v_size, k_size = state_shape or [ctx.symbol(1, axis) for axis in range(4)]
    if lengths is not None and lengths.shape:
        batch = lengths.shape[0] - 1
    if value is not None and value.shape and len(value.shape) > 2:
        heads, v_size = value.shape[-2:]
    if key is not None and key.shape and len(key.shape) > 2:
        k_heads, k_size = key.shape[-2:]
    elif key is None and query.shape and state_shape is not None:
        k_heads = floor_div(query.shape[-1] - heads * v_size, 2 * k_size)
    else:
        k_heads = ctx.symbol(2, 1)
    tokens = None if query.shape is None else query.shape[: -1 if value is None else -2]
    capacity = attributes.get("state_update_capacity", 0)
    factors = capacity * (heads + k_heads * k_size + heads * v_size)
    held = elem_type(state) or elem_type(decay) or elem_type(beta)
    output = like(query, None if tokens is None else (*tokens, heads, v_size))
    return output, TensorFact(held, (batch, heads, v_size, k_size)), TensorFact(held, (batch, factors))


def _capacity(ctx: InferContext, attributes: Attributes, axis: int) -> Dim:
    """The most entries that an indexer selects for a query."""
    if attributes["policy_mode"] == "csa":
        return int(attributes["index_topk"]) if "index_topk" in attributes else ctx.symbol(0, axis)
    budget = attributes.get("token_budget")
    return ctx.symbol(0, axis) if budget is None else int(budget + attributes["compress_ratio"] - 1)


@rule("SparseAttentionIndexer", domain=DOMAIN)
def sparse_attention_indexer(
    ctx: InferContext, attributes: Attributes, query: Fact, *others: MaybeFact
) -> tuple[Fact, ...]:
    """The readable keys of each query [batch, seq, capacity]; keys so far [batch, length, size]; keys that wait."""
    past, pending = input_at(others, 6), input_at(others, 12)
    batch, seq = query.shape[:2] if query.shape and len(query.shape) == 3 else (ctx.symbol(0, 0), ctx.symbol(0, 1))
    selected = TensorFact(dtypes.INT32, (batch, seq, _capacity(ctx, attributes, 2)))
    size = past.shape[2] if past is not None and past.shape and len(past.shape) == 3 else ctx.symbol(1, 2)
    present = past.bare if past is not None and input_at(others, 11) is not None else None
    if present is None:
        grown = total_length(ctx, past, 1, 3, 1, 1) + seq if attributes["policy_mode"] == "qsa" else ctx.symbol(1, 1)
        present = like(query, (batch, grown, size))
    width = pending.shape[3] if pending is not None and pending.shape and len(pending.shape) == 4 else ctx.symbol(2, 3)
    return selected, present, like(query, (2, batch, ctx.symbol(2, 2), width))


@rule("PackedSparseAttentionIndexer", domain=DOMAIN)
def packed_sparse_attention_indexer(
    ctx: InferContext, attributes: Attributes, query: Fact, *others: MaybeFact
) -> tuple[Fact, ...]:
    """The readable keys of each query, and their number; state whose shape never changes; and its changes."""
    tokens = query.shape[0] if query.shape else ctx.symbol(0, 0)
    keys, buffer, gates, lengths = (input_at(others, slot) for slot in range(11, 15))
    unchanged = [like(query, None) if fact is None else fact.bare for fact in (keys, buffer, gates, lengths)]
    shape = None if keys is None else keys.shape
    batch, _, size = shape if shape is not None and len(shape) == 3 else unknown_shape(ctx, 3, 6)
    selected = TensorFact(dtypes.INT32, (tokens, _capacity(ctx, attributes, 1)))
    update = like(query, (batch, attributes.get("state_update_capacity", 0), size))
    return selected, TensorFact(dtypes.INT32, (tokens,)), *unchanged, update


law("LongformerAttention", "-> 0")
law("QOrderedAttention", "-> 0")
law("QOrderedLongformerAttention", "-> 0")
law("DecoderAttention", "T, B, H -> 0 | 0: B, @num_heads, ?, H//@num_heads | 0: B, @num_heads, ?, H//@num_heads")


rule("DecoderMaskedSelfAttention", domain=DOMAIN)(attention_rule)
rule("DynamicSparseAttention", domain=DOMAIN)(group_query_attention_rule)


# -- traits ------------------------------------------------------------------------------------------------------------


traits(
    "DecoderAttention DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention PackedMultiHeadAttention "
    "PackedSparseAttentionIndexer PagedAttention SparseAttention SparseAttentionIndexer SparsePagedAttention",
    OpTraits(category="matrix", shape="elements", flops=1),
    DOMAIN,
)
traits("PackedAttention", OpTraits(category="matrix", shape="elements", flops=1, layer="attention"), DOMAIN)
traits(
    "DynamicSparseAttention GatedDeltaNet LongformerAttention QOrderedAttention QOrderedLongformerAttention",
    OpTraits(category="matrix", shape="shapes", flops=1),
    DOMAIN,
)
