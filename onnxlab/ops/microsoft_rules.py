"""Shape rules of the com.microsoft operators that exporters and ONNX Runtime's optimiser emit.

Source: docs/ContribOperators.md of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.conv_rules import conv
from onnxlab.ops.elementwise_rules import same_as_first
from onnxlab.ops.facts import MaybeFact, broadcast_shapes, elem_type, like, must_equal, unknown_shape
from onnxlab.ops.matmul_rules import gemm, product_shape
from onnxlab.ops.norm_rules import dequantize_linear, quantize_linear
from onnxlab.ops.registry import rule
from onnxlab.shapes import Dim, Fact, FactError, Shape, TensorFact, floor_div

Attributes = Mapping[str, Any]

DOMAIN = "com.microsoft"

for _name in (
    "Gelu", "BiasGelu", "FastGelu", "QuickGelu", "BiasAdd", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax",
    "BiasSoftmax", "Inverse", "GroupNorm", "RotaryEmbedding", "BiasDropout",
):  # fmt: skip
    rule(_name, domain=DOMAIN)(same_as_first)

rule("FusedConv", domain=DOMAIN)(conv)
rule("FusedGemm", domain=DOMAIN)(gemm)
rule("QuantizeLinear", domain=DOMAIN)(quantize_linear)
rule("DequantizeLinear", domain=DOMAIN)(dequantize_linear)


@rule("FusedMatMul", domain=DOMAIN)
@rule("FusedMatMulActivation", domain=DOMAIN)
@rule("TransposeMatMul", domain=DOMAIN)
def fused_matmul(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """A matrix product of inputs that may be transposed."""
    left = _transposed(a.shape, attributes.get("transA"), attributes.get("transBatchA"))
    right = _transposed(b.shape, attributes.get("transB"), attributes.get("transBatchB"))
    return like(a, product_shape(left, right))


def _transposed(shape: Shape | None, inner: int | None, batch: int | None) -> Shape | None:
    """The last two dims swapped; `batch` first moves the leading dim next to the last."""
    if shape is None or len(shape) < 2:
        return shape
    if batch:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if inner else shape


@rule("MatMulIntegerToFloat", domain=DOMAIN)
@rule("DynamicQuantizeMatMul", domain=DOMAIN)
def matmul_integer_to_float(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact, *_others: MaybeFact) -> Fact:
    """A matrix product of quantized inputs as floats."""
    return TensorFact(dtypes.FLOAT, product_shape(a.shape, b.shape))


@rule("MatMulNBits", domain=DOMAIN)
@rule("MatMulFpQ4", domain=DOMAIN)
@rule("MatMulBnb4", domain=DOMAIN)
def matmul_n_bits(ctx: InferContext, attributes: Attributes, a: Fact, *_weights: MaybeFact) -> Fact:
    """The last dim, K, becomes N; the weight is packed."""
    if a.shape is None:
        return like(a, None)
    must_equal(attributes["K"], a.shape[-1], "the last dim of {} is not the attribute K", a.shape)
    return like(a, (*a.shape[:-1], attributes["N"]))


@rule("SkipLayerNormalization", domain=DOMAIN)
@rule("SkipSimplifiedLayerNormalization", domain=DOMAIN)
def skip_layer_normalization(
    ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact
) -> tuple[Fact, ...]:
    """The input's shape; mean and inverse deviation have 1 at the end; the sum of input and skip."""
    reduced = None if x.shape is None else (*x.shape[:-1], 1)
    statistic = TensorFact(dtypes.FLOAT, reduced)
    return x.bare, statistic, statistic, x.bare


@rule("SimplifiedLayerNormalization")
def simplified_layer_normalization(
    ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact
) -> tuple[Fact, Fact]:
    """The input's shape, and the inverse deviation with 1 from `axis` on."""
    if x.shape is None:
        return x.bare, TensorFact(dtypes.FLOAT)
    axis = attributes.get("axis", -1) % max(len(x.shape), 1)
    return x.bare, TensorFact(dtypes.FLOAT, (*x.shape[:axis], *(1,) * (len(x.shape) - axis)))


@rule("EmbedLayerNormalization", domain=DOMAIN)
def embed_layer_normalization(
    ctx: InferContext, attributes: Attributes, ids: Fact, segments: MaybeFact, words: Fact, *_others: MaybeFact
) -> tuple[Fact, ...]:
    """[batch, seq, hidden], a mask index [batch], and the sum of the embeddings."""
    batch, seq = ids.shape if ids.shape is not None and len(ids.shape) == 2 else (ctx.symbol(0, 0), ctx.symbol(0, 1))
    hidden: Dim = words.shape[-1] if words.shape else ctx.symbol(0, 2)
    embedded = like(words, (batch, seq, hidden))
    return embedded, TensorFact(dtypes.INT32, (batch,)), embedded


@rule("Attention", domain=DOMAIN)
def attention(
    ctx: InferContext, attributes: Attributes, x: Fact, weights: Fact, bias: MaybeFact = None, *others: MaybeFact
) -> tuple[Fact, ...]:
    """[batch, seq, hidden of V]; the present keys and values [2, batch, heads, total, head size]."""
    if x.shape is None or len(x.shape) != 3:
        return like(x, unknown_shape(ctx, 3)), like(x, None)
    sizes = attributes.get("qkv_hidden_sizes")
    hidden: Dim = ctx.symbol(0, 2)
    if sizes:
        hidden = sizes[2]
    elif weights.shape is not None:
        hidden = floor_div(weights.shape[-1], 3)
    heads = attributes["num_heads"]
    past = others[1] if len(others) > 1 else None
    total: Dim = x.shape[1]
    if past is not None:
        total = total + past.shape[3] if past.shape is not None and len(past.shape) == 5 else ctx.symbol(1, 3)
    present = like(x, (2, x.shape[0], heads, total, floor_div(hidden, heads)))
    return like(x, (*x.shape[:2], hidden)), present


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
    heads = attributes["num_heads"]
    unknown = like(query, unknown_shape(ctx, 4, 1))
    if query.shape is None:
        return like(query, unknown_shape(ctx, 3)), unknown, unknown
    batch, seq = query.shape[:2]
    if len(query.shape) == 5:  # packed: [batch, seq, heads, 3, head size]
        hidden = query.shape[2] * query.shape[4]
        return like(query, (batch, seq, hidden)), unknown, unknown
    hidden = query.shape[2]
    if value is not None and value.shape is not None:
        hidden = value.shape[2] if len(value.shape) == 3 else value.shape[1] * value.shape[3]
    present = _present(ctx, query, key, others[3] if len(others) > 3 else None, heads)
    return like(query, (batch, seq, hidden)), present, present


def _present(ctx: InferContext, query: Fact, key: MaybeFact, past: MaybeFact, heads: int) -> Fact:
    """Keys so far: the past ones and those of this call."""
    assert query.shape is not None
    new: Dim = ctx.symbol(1, 2)
    if key is not None and key.shape is not None:
        new = key.shape[1] if len(key.shape) == 3 else key.shape[2]
    before: Dim = 0
    if past is not None:
        before = past.shape[2] if past.shape is not None and len(past.shape) == 4 else ctx.symbol(1, 2)
    return like(query, (query.shape[0], heads, before + new, floor_div(query.shape[-1], heads)))


@rule("GroupQueryAttention", domain=DOMAIN)
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
        return (
            like(query, unknown_shape(ctx, 3)),
            like(query, unknown_shape(ctx, 4, 1)),
            like(query, unknown_shape(ctx, 4, 1)),
        )
    batch, seq, width = query.shape
    head = floor_div(width, heads) if key is not None else floor_div(width, heads + 2 * groups)
    present = like(query, (batch, groups, ctx.symbol(1, 2), head))
    return like(query, (batch, seq, head * heads)), present, present


@rule("QLinearAdd", domain=DOMAIN)
@rule("QLinearMul", domain=DOMAIN)
def qlinear_binary(
    ctx: InferContext, attributes: Attributes, a: Fact, a_scale: Fact, a_zero: MaybeFact, b: Fact, *_others: MaybeFact
) -> Fact:
    """Broadcast of the two quantized tensors."""
    return like(a, broadcast_shapes([a.shape, b.shape]))


@rule("QLinearConcat", domain=DOMAIN)
def qlinear_concat(
    ctx: InferContext, attributes: Attributes, y_scale: Fact, y_zero: MaybeFact, *inputs: MaybeFact
) -> Fact:
    """Concat of every third input from the third on."""
    from onnxlab.ops.shape_rules import concat

    tensors = [fact for fact in inputs[::3] if fact is not None]
    return concat(ctx, attributes, *(fact.bare for fact in tensors))


@rule("QLinearGlobalAveragePool", domain=DOMAIN)
def qlinear_global_average_pool(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> Fact:
    """Every spatial dim becomes 1."""
    if x.shape is None:
        return like(x, None)
    if attributes.get("channels_last"):
        return like(x, (x.shape[0], *(1,) * (len(x.shape) - 2), x.shape[-1]))
    return like(x, (*x.shape[:2], *(1,) * (len(x.shape) - 2)))


@rule("QAttention", domain=DOMAIN)
def q_attention(
    ctx: InferContext, attributes: Attributes, x: Fact, weights: Fact, *others: MaybeFact
) -> tuple[Fact, ...]:
    """[batch, seq, hidden] as floats; the present keys and values."""
    if x.shape is None or len(x.shape) != 3:
        return TensorFact(dtypes.FLOAT, unknown_shape(ctx, 3)), TensorFact(dtypes.FLOAT)
    hidden = floor_div(weights.shape[-1], 3) if weights.shape else ctx.symbol(0, 2)
    heads = attributes["num_heads"]
    past = others[6] if len(others) > 6 else None
    total: Dim = x.shape[1]
    if past is not None:
        total = total + past.shape[3] if past.shape is not None and len(past.shape) == 5 else ctx.symbol(1, 3)
    present = (2, x.shape[0], heads, total, floor_div(hidden, heads))
    return TensorFact(dtypes.FLOAT, (*x.shape[:2], hidden)), TensorFact(dtypes.FLOAT, present)


@rule("QGemm", domain=DOMAIN)
def q_gemm(
    ctx: InferContext, attributes: Attributes, a: Fact, a_scale: Fact, a_zero: MaybeFact, b: Fact, *others: MaybeFact
) -> Fact:
    """Gemm of quantized inputs: floats, or the type of the output's zero point where there is one."""
    zero = others[4] if len(others) > 4 else None
    shape = gemm(ctx, attributes, a.bare, b.bare).shape
    return TensorFact(elem_type(zero) or dtypes.FLOAT, shape)


@rule("DynamicQuantizeLSTM", domain=DOMAIN)
def dynamic_quantize_lstm(
    ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, r: Fact, *_others: MaybeFact
) -> Any:
    """An LSTM whose recurrent weight is transposed: hidden_size must be given."""
    from onnxlab.ops.recurrent_rules import recurrent

    if not attributes.get("hidden_size"):
        raise FactError("attribute hidden_size is missing", code="bad-attribute", expected="the hidden size")
    return recurrent(ctx, attributes, x, w, r)
