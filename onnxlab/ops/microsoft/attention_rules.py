"""Shape rules of the attention operators of com.microsoft: what comes out, and the keys and values kept for later.

Source: docs/ContribOperators.md of ONNX Runtime, and the schemas that onnxruntime 1.31 registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, elem_type, like, unknown_shape
from onnxlab.shapes import Dim, Fact, TensorFact, floor_div, product

Attributes = Mapping[str, Any]

DOMAIN = "com.microsoft"


def _at(inputs: tuple[MaybeFact, ...], slot: int) -> MaybeFact:
    return inputs[slot] if slot < len(inputs) else None


def _length(ctx: InferContext, past: MaybeFact, axis: int, rank: int, slot: int, out: int) -> Dim:
    """How long the past keys are: 0 without any."""
    if past is None:
        return 0
    return past.shape[axis] if past.shape is not None and len(past.shape) == rank else ctx.symbol(slot, out)


@rule("Attention", domain=DOMAIN)
@rule("DecoderMaskedSelfAttention", domain=DOMAIN)
def attention(
    ctx: InferContext, attributes: Attributes, x: Fact, weights: Fact, bias: MaybeFact = None, *others: MaybeFact
) -> tuple[Fact, ...]:
    """[batch, seq, hidden of V]; the present keys and values [2, batch, heads, total, head size]."""
    return _merged(ctx, attributes, x, weights, _at(others, 1), elem_type(x))


@rule("QAttention", domain=DOMAIN)
def q_attention(
    ctx: InferContext, attributes: Attributes, x: Fact, weights: Fact, *others: MaybeFact
) -> tuple[Fact, ...]:
    """The same as floats."""
    return _merged(ctx, attributes, x, weights, _at(others, 6), dtypes.FLOAT)


def _merged(
    ctx: InferContext, attributes: Attributes, x: Fact, weights: Fact, past: MaybeFact, elem: int
) -> tuple[Fact, Fact]:
    """Attention whose weights make queries, keys and values at once; a shared buffer keeps its shape."""
    if x.shape is None or len(x.shape) != 3:
        return TensorFact(elem, unknown_shape(ctx, 3)), TensorFact(elem)
    heads = attributes["num_heads"]
    hidden = _hidden(ctx, attributes, weights, 2)
    if past is not None and attributes.get("past_present_share_buffer"):
        return TensorFact(elem, (*x.shape[:2], hidden)), TensorFact(elem, past.shape)
    total = x.shape[1] + _length(ctx, past, 3, 5, 1, 3)
    present = (2, x.shape[0], heads, total, floor_div(hidden, heads))
    return TensorFact(elem, (*x.shape[:2], hidden)), TensorFact(elem, present)


def _hidden(ctx: InferContext, attributes: Attributes, weights: Fact, axis: int) -> Dim:
    """Width of the values that merged weights make."""
    if sizes := attributes.get("qkv_hidden_sizes"):
        return int(sizes[2])
    return floor_div(weights.shape[-1], 3) if weights.shape else ctx.symbol(0, axis)


@rule("PackedAttention", domain=DOMAIN)
def packed_attention(ctx: InferContext, attributes: Attributes, x: Fact, weights: Fact, *_others: MaybeFact) -> Fact:
    """[tokens, hidden of V]."""
    return like(x, (x.shape[0] if x.shape else ctx.symbol(0, 0), _hidden(ctx, attributes, weights, 1)))


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
        return like(query, (query.shape[0], product((query.shape[1], query.shape[3]))))
    hidden = value.shape[-1] if value is not None and value.shape else ctx.symbol(0, 1)
    return like(query, (query.shape[0] if query.shape else ctx.symbol(0, 0), hidden))


@rule("MultiHeadAttention", domain=DOMAIN)
def multi_head_attention(
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
    hidden = _width(value, query.shape[2])
    present = _present(ctx, query, key, _at(others, 3), attributes["num_heads"])
    return like(query, (batch, seq, hidden)), present, present


def _width(value: MaybeFact, otherwise: Dim) -> Dim:
    """Width of the values: [batch, seq, hidden], or [batch, heads, seq, head size]."""
    if value is None or value.shape is None:
        return otherwise
    return value.shape[2] if len(value.shape) == 3 else product((value.shape[1], value.shape[3]))


def _present(ctx: InferContext, query: Fact, key: MaybeFact, past: MaybeFact, heads: int) -> Fact:
    """Keys so far: the past ones and those of this call."""
    assert query.shape is not None
    new: Dim = ctx.symbol(1, 2)
    if key is not None and key.shape is not None:
        new = key.shape[1] if len(key.shape) == 3 else key.shape[2]
    total = _length(ctx, past, 2, 4, 1, 2) + new
    return like(query, (query.shape[0], heads, total, floor_div(query.shape[-1], heads)))


@rule("DecoderMaskedMultiHeadAttention", domain=DOMAIN)
def decoder_masked_multi_head_attention(
    ctx: InferContext,
    attributes: Attributes,
    query: Fact,
    key: MaybeFact = None,
    value: MaybeFact = None,
    *others: MaybeFact,
) -> tuple[Fact, ...]:
    """[batch, 1, hidden of V] (packed: a third of the query); present keys and values, or the buffer they share."""
    past, unknown = _at(others, 2), like(query, unknown_shape(ctx, 4, 1))
    if query.shape is None or len(query.shape) != 3:
        made = like(query, unknown_shape(ctx, 3))
    else:
        width = floor_div(query.shape[2], 3) if key is None else _width(value, query.shape[2])
        made = like(query, (*query.shape[:2], width))
    if attributes.get("past_present_share_buffer") and past is not None:
        return made, past.bare, past.bare
    if past is None or past.shape is None or len(past.shape) != 4 or made.shape is None:
        return made, unknown, unknown
    present = like(query, (*past.shape[:2], past.shape[2] + made.shape[1], past.shape[3]))
    return made, present, present


@rule("GroupQueryAttention", domain=DOMAIN)
@rule("DynamicSparseAttention", domain=DOMAIN)
def group_query_attention(
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
    head = _head(attributes, width, key)
    present = like(query, (batch, groups, ctx.symbol(1, 2), head))
    return like(query, (batch, seq, head * heads)), present, present


def _head(attributes: Attributes, width: Dim, key: MaybeFact) -> Dim:
    """Size of a head; where there are no keys, the queries hold keys and values too."""
    heads = attributes["num_heads"]
    return floor_div(width, heads if key is not None else heads + 2 * attributes["kv_num_heads"])


@rule("SparseAttention", domain=DOMAIN)
def sparse_attention(
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
    hidden = _head(attributes, query.shape[2], key) * attributes["num_heads"]
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
        hidden = ctx.symbol(0, 1) if width is None else _head(attributes, width, key) * heads
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
    kept = state.shape if state is not None and state.shape is not None and len(state.shape) == 4 else None
    batch, heads, v_size, k_size = kept or [ctx.symbol(1, axis) for axis in range(4)]
    if lengths is not None and lengths.shape:
        batch = lengths.shape[0] - 1
    if value is not None and value.shape and len(value.shape) > 2:
        heads, v_size = value.shape[-2:]
    if key is not None and key.shape and len(key.shape) > 2:
        k_heads, k_size = key.shape[-2:]
    elif key is None and query.shape and kept is not None:
        k_heads = floor_div(query.shape[-1] - heads * v_size, 2 * k_size)
    else:
        k_heads = ctx.symbol(2, 1)
    tokens = None if query.shape is None else query.shape[: -1 if value is None else -2]
    capacity = attributes.get("state_update_capacity", 0)
    factors = capacity * (heads + k_heads * k_size + heads * v_size)
    held = elem_type(state) or elem_type(decay) or elem_type(beta)
    made = like(query, None if tokens is None else (*tokens, heads, v_size))
    return made, TensorFact(held, (batch, heads, v_size, k_size)), TensorFact(held, (batch, factors))


def _capacity(ctx: InferContext, attributes: Attributes, axis: int) -> Dim:
    """How many entries an indexer selects for a query at most."""
    if attributes["policy_mode"] == "csa":
        return int(attributes["index_topk"]) if "index_topk" in attributes else ctx.symbol(0, axis)
    budget = attributes.get("token_budget")
    return ctx.symbol(0, axis) if budget is None else int(budget + attributes["compress_ratio"] - 1)


@rule("SparseAttentionIndexer", domain=DOMAIN)
def sparse_attention_indexer(
    ctx: InferContext, attributes: Attributes, query: Fact, *others: MaybeFact
) -> tuple[Fact, ...]:
    """What each query may read [batch, seq, capacity]; keys so far [batch, length, size]; what waits for a block."""
    past, pending = _at(others, 6), _at(others, 12)
    batch, seq = query.shape[:2] if query.shape and len(query.shape) == 3 else (ctx.symbol(0, 0), ctx.symbol(0, 1))
    selected = TensorFact(dtypes.INT32, (batch, seq, _capacity(ctx, attributes, 2)))
    size = past.shape[2] if past is not None and past.shape and len(past.shape) == 3 else ctx.symbol(1, 2)
    present = past.bare if past is not None and _at(others, 11) is not None else None
    if present is None:
        grown = _length(ctx, past, 1, 3, 1, 1) + seq if attributes["policy_mode"] == "qsa" else ctx.symbol(1, 1)
        present = like(query, (batch, grown, size))
    width = pending.shape[3] if pending is not None and pending.shape and len(pending.shape) == 4 else ctx.symbol(2, 3)
    return selected, present, like(query, (2, batch, ctx.symbol(2, 2), width))


@rule("PackedSparseAttentionIndexer", domain=DOMAIN)
def packed_sparse_attention_indexer(
    ctx: InferContext, attributes: Attributes, query: Fact, *others: MaybeFact
) -> tuple[Fact, ...]:
    """What each query may read, and how much of it; state whose shape never changes; what changes it."""
    tokens = query.shape[0] if query.shape else ctx.symbol(0, 0)
    keys, buffer, gates, lengths = (_at(others, slot) for slot in range(11, 15))
    kept = [like(query, None) if fact is None else fact.bare for fact in (keys, buffer, gates, lengths)]
    shape = None if keys is None else keys.shape
    batch, _, size = shape if shape is not None and len(shape) == 3 else unknown_shape(ctx, 3, 6)
    selected = TensorFact(dtypes.INT32, (tokens, _capacity(ctx, attributes, 1)))
    update = like(query, (batch, attributes.get("state_update_capacity", 0), size))
    return selected, TensorFact(dtypes.INT32, (tokens,)), *kept, update
