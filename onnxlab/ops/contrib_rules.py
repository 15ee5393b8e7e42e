"""Shape rules of com.microsoft operators that are like others but for a detail, and of those that pack or count.

Source: docs/ContribOperators.md of ONNX Runtime, and its schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.conv_rules import average_pool, conv_transpose, max_pool
from onnxlab.ops.elementwise_rules import same_as_first
from onnxlab.ops.facts import (
    MaybeFact,
    as_dim,
    broadcast_shapes,
    elem_type,
    integers,
    items,
    like,
    normal_axis,
    scalar,
    unknown_shape,
)
from onnxlab.ops.generator_rules import range_
from onnxlab.ops.indexing_rules import gather_nd
from onnxlab.ops.matmul_rules import product_shape
from onnxlab.ops.nchwc_rules import on_channels_last
from onnxlab.ops.recurrent_rules import recurrent
from onnxlab.ops.reduce_rules import by_attribute
from onnxlab.ops.registry import rule
from onnxlab.ops.resize_rules import grid_sample
from onnxlab.ops.shape_rules import pad
from onnxlab.shapes import Dim, Expr, Fact, Shape, TensorFact, floor_div, known, product

Attributes = Mapping[str, Any]

DOMAIN = "com.microsoft"

for _name in (
    "ScaledSiLU", "GatedAdd", "GatedRMSNorm", "BranchwiseRMSNorm", "MRotaryEmbedding", "SampleOp", "MoE", "QMoE",
    "LongformerAttention", "QOrderedGelu", "QOrderedLayerNormalization", "QOrderedLongformerAttention", "Trilu",
    "QOrderedAttention",
):  # fmt: skip
    rule(_name, domain=DOMAIN)(same_as_first)

rule("GatherND", domain=DOMAIN)(gather_nd)
rule("GridSample", domain=DOMAIN)(grid_sample)
rule("Pad", domain=DOMAIN)(pad)
rule("AttnLSTM", domain=DOMAIN)(recurrent)


@rule("GemmFastGelu", domain=DOMAIN)
def product_of(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact, *others: MaybeFact) -> Fact:
    """A matrix product; a bias and an activation after it change no dim."""
    return like(a, product_shape(a.shape, b.shape))


@rule("QOrderedMatMul", domain=DOMAIN)
def ordered_product(
    ctx: InferContext, attributes: Attributes, a: Fact, scale: Fact, b: Fact, *others: MaybeFact
) -> Fact:
    """A matrix product with a scale between its operands."""
    return like(a, product_shape(a.shape, b.shape))


@rule("MatMulInteger16", domain=DOMAIN)
def matmul_integer_16(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """A matrix product in 32 bits, signed if an operand is."""
    signed = dtypes.INT16 in (elem_type(a), elem_type(b))
    return TensorFact(dtypes.INT32 if signed else dtypes.UINT32, product_shape(a.shape, b.shape))


@rule("SparseToDenseMatMul", domain=DOMAIN)
def sparse_to_dense_matmul(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """A product of matrices, either of which may be transposed."""
    left = a.shape[::-1] if a.shape and attributes.get("transA") else a.shape
    right = b.shape[::-1] if b.shape and attributes.get("transB") else b.shape
    return like(b, product_shape(left, right))


@rule("MulInteger", domain=DOMAIN)
def mul_integer(
    ctx: InferContext, attributes: Attributes, a: Fact, a_zero: MaybeFact, b: Fact, b_zero: MaybeFact = None
) -> Fact:
    """Broadcast, in int32."""
    return TensorFact(dtypes.INT32, broadcast_shapes([a.shape, b.shape]))


@rule("ComplexMul", domain=DOMAIN)
@rule("ComplexMulConj", domain=DOMAIN)
def complex_mul(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """Broadcast; the last dim holds real and imaginary part."""
    return like(a, broadcast_shapes([a.shape, b.shape]))


@rule("QLinearWhere", domain=DOMAIN)
def qlinear_where(
    ctx: InferContext, attributes: Attributes, condition: Fact, x: Fact, scale: Fact, zero: Fact, y: Fact, *_: MaybeFact
) -> Fact:
    """Broadcast of condition, X and Y."""
    return like(x, broadcast_shapes([condition.shape, x.shape, y.shape]))


@rule("QLinearAveragePool", domain=DOMAIN)
def qlinear_average_pool(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> Fact:
    """The windows that fit each spatial dim; channels last by the attribute."""
    found: Fact = (on_channels_last(average_pool) if attributes.get("channels_last") else average_pool)(
        ctx, attributes, x.bare
    )
    return found


@rule("MaxpoolWithMask", domain=DOMAIN)
def maxpool_with_mask(ctx: InferContext, attributes: Attributes, x: Fact, mask: Fact) -> Fact:
    """The windows that fit each spatial dim."""
    return max_pool(ctx, attributes, x)[0]


@rule("ConvTransposeWithDynamicPads", domain=DOMAIN)
def conv_transpose_with_dynamic_pads(
    ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, pads: MaybeFact = None, bias: MaybeFact = None
) -> Fact:
    """ConvTranspose whose pads are an input."""
    given = None if pads is None else integers(pads)
    if pads is None or given is not None:
        return conv_transpose(ctx, {**attributes, **({"pads": given} if given is not None else {})}, x, w)
    if x.shape is None or w.shape is None:
        return like(x, None if x.shape is None else unknown_shape(ctx, len(x.shape)))
    spatial = unknown_shape(ctx, len(x.shape))[2:]
    return like(x, (x.shape[0], w.shape[1] * attributes.get("group", 1), *spatial))


@rule("QLinearReduceMean", domain=DOMAIN)
def qlinear_reduce_mean(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> Fact:
    """The axes of the attribute become 1, or go."""
    return by_attribute("ReduceMean")(ctx, attributes, x.bare)


@rule("ReduceSumInteger", domain=DOMAIN)
def reduce_sum_integer(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The same, in 32 bits."""
    elem = {dtypes.INT8: dtypes.INT32, dtypes.UINT8: dtypes.UINT32}.get(elem_type(x), 0)
    return TensorFact(elem, by_attribute("ReduceSum")(ctx, attributes, x.bare).shape)


@rule("Range", domain=DOMAIN)
def range_with_default(
    ctx: InferContext, attributes: Attributes, start: Fact, limit: Fact, delta: MaybeFact = None
) -> Fact:
    """Range whose step is 1 unless given."""
    one = TensorFact(elem_type(start), (), known(1))
    return range_(ctx, attributes, start, limit, one if delta is None else delta)


@rule("ExpandDims", domain=DOMAIN)
def expand_dims(ctx: InferContext, attributes: Attributes, x: Fact, axis: Fact) -> Fact:
    """A dim of 1 inserted."""
    at = scalar(axis)
    if x.shape is None or at is None or isinstance(at, Expr):
        return like(x, None if x.shape is None else unknown_shape(ctx, len(x.shape) + 1))
    place = normal_axis(int(at), len(x.shape) + 1)
    return like(x, (*x.shape[:place], 1, *x.shape[place:]))


@rule("CDist", domain=DOMAIN)
def c_dist(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """[rows of A, rows of B]."""
    rows = [fact.shape[0] if fact.shape else ctx.symbol(0, axis) for axis, fact in enumerate((a, b))]
    return like(a, tuple(rows))


@rule("CropAndResize", domain=DOMAIN)
def crop_and_resize(ctx: InferContext, attributes: Attributes, x: Fact, rois: Fact, batch: Fact, size: Fact) -> Fact:
    """[rois, channels, height, width] with the size that is asked for."""
    wanted = items(size) or [None, None]
    count = rois.shape[0] if rois.shape else ctx.symbol(0, 0)
    channels = x.shape[1] if x.shape is not None and len(x.shape) == 4 else ctx.symbol(0, 1)
    return like(x, (count, channels, *(as_dim(ctx, item, 0, 2 + at) for at, item in enumerate(wanted[:2]))))


@rule("Unique", domain=DOMAIN)
def unique(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact, Fact]:
    """The different elements of a vector, for each element which of them it is, and how often each comes."""
    count = ctx.symbol(0, 0)
    length = x.shape[0] if x.shape else ctx.symbol(1, 0)
    return like(x, (count,)), TensorFact(dtypes.INT64, (length,)), TensorFact(dtypes.INT64, (count,))


@rule("Tokenizer", domain=DOMAIN)
def tokenizer(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The strings' dims, then as many as the longest has tokens."""
    return like(x, None if x.shape is None else (*x.shape, ctx.symbol(0, len(x.shape))))


@rule("MurmurHash3", domain=DOMAIN)
def murmur_hash(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A hash of 32 bits for each element."""
    return TensorFact(dtypes.UINT32 if attributes.get("positive", 1) else dtypes.INT32, x.shape)


@rule("NGramRepeatBlock", domain=DOMAIN)
def n_gram_repeat_block(ctx: InferContext, attributes: Attributes, ids: Fact, scores: Fact) -> Fact:
    """The scores, some of them lowered."""
    return scores.bare


@rule("IsAllFinite", domain=DOMAIN)
def is_all_finite(ctx: InferContext, attributes: Attributes, *inputs: MaybeFact) -> Fact:
    """One boolean."""
    return TensorFact(dtypes.BOOL, ())


@rule("BiasSplitGelu", domain=DOMAIN)
def bias_split_gelu(ctx: InferContext, attributes: Attributes, x: Fact, bias: Fact) -> Fact:
    """Half of the last dim."""
    return like(x, (*x.shape[:-1], floor_div(x.shape[-1], 2)) if x.shape else None)


@rule("SkipGroupNorm", domain=DOMAIN)
def skip_group_norm(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> tuple[Fact, Fact]:
    """The input's shape, and that of the sum with what is skipped."""
    return x.bare, x.bare


@rule("UnfoldTensor", domain=DOMAIN)
def unfold_tensor(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Slices of `size` each `step` along `dim`, in a new last axis."""
    if x.shape is None:
        return like(x, None)
    axis, size = normal_axis(attributes.get("dim", -1), len(x.shape), "dim"), attributes["size"]
    count = floor_div(x.shape[axis] - size, attributes.get("step", 1)) + 1
    return like(x, (*x.shape[:axis], count, *x.shape[axis + 1 :], size))


@rule("TorchEmbedding", domain=DOMAIN)
def torch_embedding(ctx: InferContext, attributes: Attributes, weight: Fact, indices: Fact, *_: MaybeFact) -> Fact:
    """The dims of the indices, then the width of the table."""
    if indices.shape is None or not weight.shape:
        return like(weight, None)
    return like(weight, (*indices.shape, weight.shape[-1]))


@rule("WordConvEmbedding", domain=DOMAIN)
def word_conv_embedding(ctx: InferContext, attributes: Attributes, words: Fact, w: Fact, *_others: MaybeFact) -> Fact:
    """[words, filters]."""
    if words.shape is None or not w.shape:
        return like(w, None)
    return like(w, (*words.shape[:-1], w.shape[0]))


@rule("GatherBlockQuantized", domain=DOMAIN)
def gather_block_quantized(
    ctx: InferContext, attributes: Attributes, data: Fact, indices: Fact, scales: Fact, zero: MaybeFact = None
) -> Fact:
    """Gather, in the type of the scales; bytes hold several numbers along the last axis."""
    if data.shape is None or indices.shape is None:
        return like(scales, None)
    packed = 8 // attributes.get("bits", 4) if elem_type(data) == dtypes.UINT8 else 1
    shape: Shape = (*data.shape[:-1], data.shape[-1] * packed)
    axis = normal_axis(attributes.get("gather_axis", 0), len(shape), "gather_axis")
    return like(scales, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))


@rule("QEmbedLayerNormalization", domain=DOMAIN)
def q_embed_layer_normalization(
    ctx: InferContext, attributes: Attributes, ids: Fact, segments: MaybeFact, words: Fact, *_others: MaybeFact
) -> tuple[Fact, Fact]:
    """[batch, seq, hidden] as floats, and a mask index [batch]."""
    batch, seq = ids.shape if ids.shape is not None and len(ids.shape) == 2 else (ctx.symbol(0, 0), ctx.symbol(0, 1))
    hidden: Dim = words.shape[-1] if words.shape else ctx.symbol(0, 2)
    return TensorFact(dtypes.FLOAT, (batch, seq, hidden)), TensorFact(dtypes.INT32, (batch,))


@rule("Rfft", domain=DOMAIN)
def rfft(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The last dim as frequencies, half of them if onesided, then real and imaginary part."""
    if not x.shape:
        return like(x, None)
    last = floor_div(x.shape[-1], 2) + 1 if attributes.get("onesided", 1) else x.shape[-1]
    return like(x, (*x.shape[:-1], last, 2))


@rule("Irfft", domain=DOMAIN)
def irfft(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Back from that."""
    if x.shape is None or len(x.shape) < 2:
        return like(x, None)
    last = (x.shape[-2] - 1) * 2 if attributes.get("onesided", 1) else x.shape[-2]
    return like(x, (*x.shape[:-2], last))


@rule("RelativePositionBias", domain=DOMAIN)
def relative_position_bias(
    ctx: InferContext, attributes: Attributes, table: Fact, query_length: Fact, key_length: Fact
) -> Fact:
    """[1, heads, length of the queries, length of the keys]."""
    heads = table.shape[1] if table.shape is not None and len(table.shape) == 2 else ctx.symbol(0, 1)
    lengths = [as_dim(ctx, _size(fact), 0, 2 + at) for at, fact in enumerate((query_length, key_length))]
    return like(table, (1, heads, *lengths))


def _size(fact: MaybeFact) -> Dim | None:
    found = scalar(fact)
    return found if isinstance(found, (int, Expr)) else None


@rule("GatedRelativePositionBias", domain=DOMAIN)
def gated_relative_position_bias(
    ctx: InferContext, attributes: Attributes, query: Fact, bias: Fact, positions: Fact, *_others: MaybeFact
) -> Fact:
    """[batch, heads, seq, seq]."""
    heads = attributes["num_heads"]
    if query.shape is None or len(query.shape) != 3:
        return like(query, (ctx.symbol(0, 0), heads, ctx.symbol(0, 2), ctx.symbol(0, 3)))
    return like(query, (query.shape[0], heads, query.shape[1], query.shape[1]))


@rule("PackedAttention", domain=DOMAIN)
def packed_attention(ctx: InferContext, attributes: Attributes, x: Fact, weights: Fact, *_others: MaybeFact) -> Fact:
    """[tokens, hidden of V]."""
    sizes = attributes.get("qkv_hidden_sizes")
    tokens = x.shape[0] if x.shape else ctx.symbol(0, 0)
    hidden: Dim = ctx.symbol(0, 1)
    if sizes:
        hidden = sizes[2]
    elif weights.shape:
        hidden = floor_div(weights.shape[-1], 3)
    return like(x, (tokens, hidden))


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


@rule("DecoderMaskedMultiHeadAttention", domain=DOMAIN)
def decoder_masked_multi_head_attention(
    ctx: InferContext, attributes: Attributes, query: Fact, *others: MaybeFact
) -> tuple[Fact, ...]:
    """The query's shape; the present keys and values, which share the buffer of the past ones where asked to."""
    past = others[4] if len(others) > 4 else None
    shared = bool(attributes.get("past_present_share_buffer"))
    present = like(query, past.shape if shared and past is not None else unknown_shape(ctx, 4, 1))
    return query.bare, present, present


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
    heads, groups = attributes["num_heads"], attributes["kv_num_heads"]
    if query.shape is None or len(query.shape) != 3:
        return like(query, unknown_shape(ctx, 3)), past_key.bare, past_value.bare
    width = query.shape[2]
    hidden = width if key is not None else floor_div(width, heads + 2 * groups) * heads
    return like(query, (*query.shape[:2], hidden)), past_key.bare, past_value.bare


@rule("MatMulNBitsQkv", domain=DOMAIN)
def matmul_n_bits_qkv(
    ctx: InferContext, attributes: Attributes, a: Fact, *_others: MaybeFact
) -> tuple[Fact, Fact, Fact, Fact]:
    """Queries of width Nq, keys and values of width Nkv, and the sum of input, skip and bias."""
    shapes = [None if a.shape is None else (*a.shape[:-1], attributes[name]) for name in ("Nq", "Nkv", "Nkv")]
    return (*(like(a, shape) for shape in shapes), a.bare)  # type: ignore[return-value]


@rule("MatMulNBitsMlp", domain=DOMAIN)
def matmul_n_bits_mlp(ctx: InferContext, attributes: Attributes, a: Fact, *_others: MaybeFact) -> tuple[Fact, Fact]:
    """The last dim becomes N; and the sum of input and skip."""
    return like(a, None if a.shape is None else (*a.shape[:-1], attributes["N"])), a.bare


@rule("GreedySearch", domain=DOMAIN)
@rule("Sampling", domain=DOMAIN)
def greedy_search(
    ctx: InferContext, attributes: Attributes, ids: Fact, length: Fact, *_others: MaybeFact
) -> tuple[Fact, Fact]:
    """[batch, longest length], and of Sampling the logits [batch, vocabulary]."""
    batch = ids.shape[0] if ids.shape else ctx.symbol(0, 0)
    size = attributes.get("vocab_size")
    vocabulary = size if isinstance(size, int) and size > 0 else ctx.symbol(1, 1)
    return like(ids, (batch, as_dim(ctx, _size(length), 0, 1))), TensorFact(dtypes.FLOAT, (batch, vocabulary))


@rule("WhisperBeamSearch", domain=DOMAIN)
@rule("BeamSearch", domain=DOMAIN)
def beam_search(
    ctx: InferContext,
    attributes: Attributes,
    ids: Fact,
    length: Fact,
    shortest: MaybeFact,
    beams: Fact,
    returned: Fact,
    *_others: MaybeFact,
) -> tuple[Fact, Fact, Fact]:
    """[batch, sequences, longest length]; their scores; the scores of every step, beam and word."""
    batch = ids.shape[0] if ids.shape else ctx.symbol(0, 0)
    count = as_dim(ctx, _size(returned), 0, 1)
    sequences = TensorFact(dtypes.INT32, (batch, count, as_dim(ctx, _size(length), 0, 2)))
    scores = (ctx.symbol(2, 0), batch, as_dim(ctx, _size(beams), 2, 2), ctx.symbol(2, 3))
    return sequences, TensorFact(dtypes.FLOAT, (batch, count)), TensorFact(dtypes.FLOAT, scores)


@rule("RestorePadding", domain=DOMAIN)
def restore_padding(ctx: InferContext, attributes: Attributes, x: Fact, offsets: Fact) -> Fact:
    """[batch, seq, hidden] again."""
    if x.shape is None or offsets.shape is None:
        return like(x, unknown_shape(ctx, 3))
    return like(x, (*offsets.shape, x.shape[-1]))


@rule("GemmaRotaryEmbedding", domain=DOMAIN)
def gemma_rotary_embedding(
    ctx: InferContext, attributes: Attributes, table: Fact, q: Fact, q_rotated: Fact, k: Fact, k_rotated: Fact
) -> tuple[Fact, Fact]:
    """The shapes of queries and keys."""
    return q.bare, k.bare


@rule("RemovePadding", domain=DOMAIN)
def remove_padding(ctx: InferContext, attributes: Attributes, x: Fact, counts: Fact) -> tuple[Fact, ...]:
    """[tokens, hidden]; where each was, [batch, seq]; where each sequence begins, [batch + 1]; the longest one."""
    if x.shape is None or len(x.shape) != 3:
        batch, seq, hidden = ctx.symbol(1, 0), ctx.symbol(1, 1), ctx.symbol(0, 1)
    else:
        batch, seq, hidden = x.shape
    kinds = [(batch, seq), (batch + 1,), (1,)]
    return (like(x, (ctx.symbol(0, 0), hidden)), *(TensorFact(dtypes.INT32, shape) for shape in kinds))


@rule("QuantizeWithOrder", domain=DOMAIN)
def quantize_with_order(ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact) -> Fact:
    """The input's shape in int8."""
    return TensorFact(dtypes.INT8, x.shape)


@rule("DequantizeWithOrder", domain=DOMAIN)
def dequantize_with_order(ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact) -> Fact:
    """The input's shape in float32, or the type `to`."""
    return TensorFact(attributes.get("to") or dtypes.FLOAT, x.shape)
