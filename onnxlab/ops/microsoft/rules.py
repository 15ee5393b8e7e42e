"""Shape rules of com.microsoft operators that exporters and ONNX Runtime's optimizer emit: what no line of laws says.

Source: docs/ContribOperators.md of ONNX Runtime, and its schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import (
    MaybeFact,
    as_dim,
    broadcast_shapes,
    elem_type,
    integers,
    items,
    like,
    must_equal,
    normal_axis,
    scalar,
    unknown_shape,
)
from onnxlab.ops.microsoft.layout_rules import on_channels_last
from onnxlab.ops.onnx.math.matmul_rules import gemm, product_shape
from onnxlab.ops.onnx.math.reduce_rules import by_attribute
from onnxlab.ops.onnx.nn.conv_rules import average_pool, conv, conv_transpose, max_pool
from onnxlab.ops.onnx.nn.norm_rules import dequantize_linear, quantize_linear
from onnxlab.ops.onnx.nn.recurrent_rules import recurrent
from onnxlab.ops.onnx.tensor.generator_rules import range_
from onnxlab.ops.onnx.tensor.indexing_rules import gather_nd
from onnxlab.ops.onnx.tensor.resize_rules import grid_sample
from onnxlab.ops.onnx.tensor.shape_rules import concat, pad, shape
from onnxlab.shapes import Expr, Fact, FactError, Shape, TensorFact, ceil_div, floor_div, known, product

Attributes = Mapping[str, Any]

DOMAIN = "com.microsoft"

_LIKE: Mapping[str, Callable[..., Any]] = {
    "FusedConv": conv, "FusedGemm": gemm, "QuantizeLinear": quantize_linear, "DequantizeLinear": dequantize_linear,
    "GatherND": gather_nd, "GridSample": grid_sample, "Pad": pad, "AttnLSTM": recurrent,
}  # fmt: skip
"""Operators that have the rule of one of ai.onnx."""

_PRODUCTS = {
    "GemmFastGelu": (1, 0), "QOrderedMatMul": (2, 0),
    "MatMulIntegerToFloat": (1, dtypes.FLOAT), "DynamicQuantizeMatMul": (1, dtypes.FLOAT),
}  # fmt: skip
"""Matrix products: which input the first one is multiplied with, and the element type (0: the first one's)."""

_BROADCASTS = {
    "QLinearAdd": ((0, 3), 0), "QLinearMul": ((0, 3), 0), "ComplexMul": ((0, 1), 0), "ComplexMulConj": ((0, 1), 0),
    "MulInteger": ((0, 2), dtypes.INT32), "QLinearWhere": ((1, 0, 4), 0),
}  # fmt: skip
"""What broadcasts: the inputs that do, and the element type (0: that of the first one named)."""


def _product(second: int, elem: int) -> Callable[..., Fact]:
    def infer(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
        """A matrix product; a bias and an activation after it change no dim."""
        return TensorFact(elem or elem_type(inputs[0]), product_shape(inputs[0].shape, inputs[second].shape))

    return infer


def _broadcast(slots: Sequence[int], elem: int) -> Callable[..., Fact]:
    def infer(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
        """NumPy broadcasting; scales, zero points and what complex numbers mean change no dim."""
        return TensorFact(elem or elem_type(inputs[slots[0]]), broadcast_shapes([inputs[at].shape for at in slots]))

    return infer


for _name, _infer in _LIKE.items():
    rule(_name, domain=DOMAIN)(_infer)
for _name, _given in _PRODUCTS.items():
    rule(_name, domain=DOMAIN)(_product(*_given))
for _name, _parts in _BROADCASTS.items():
    rule(_name, domain=DOMAIN)(_broadcast(*_parts))


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


@rule("MatMulNBits", domain=DOMAIN)
@rule("MatMulFpQ4", domain=DOMAIN)
@rule("MatMulBnb4", domain=DOMAIN)
def matmul_n_bits(ctx: InferContext, attributes: Attributes, a: Fact, *_weights: MaybeFact) -> Fact:
    """The last dim, K, becomes N; the weight is packed."""
    if a.shape is None:
        return like(a, None)
    must_equal(attributes["K"], a.shape[-1], "the last dim of {} is not the attribute K", a.shape)
    return like(a, (*a.shape[:-1], attributes["N"]))


@rule("SimplifiedLayerNormalization")
def simplified_layer_normalization(
    ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact
) -> tuple[Fact, Fact]:
    """The input's shape, and the inverse deviation with 1 from `axis` on."""
    if x.shape is None:
        return x.bare, TensorFact(dtypes.FLOAT)
    axis = attributes.get("axis", -1) % max(len(x.shape), 1)
    return x.bare, TensorFact(dtypes.FLOAT, (*x.shape[:axis], *(1,) * (len(x.shape) - axis)))


@rule("QLinearConcat", domain=DOMAIN)
def qlinear_concat(
    ctx: InferContext, attributes: Attributes, y_scale: Fact, y_zero: MaybeFact, *inputs: MaybeFact
) -> Fact:
    """Concat of every third input from the third on."""
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
    if not attributes.get("hidden_size"):
        raise FactError("attribute hidden_size is missing", code="bad-attribute", expected="the hidden size")
    return recurrent(ctx, attributes, x, w, r)


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


@rule("MurmurHash3", domain=DOMAIN)
def murmur_hash(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A hash of 32 bits for each element."""
    return TensorFact(dtypes.UINT32 if attributes.get("positive", 1) else dtypes.INT32, x.shape)


@rule("UnfoldTensor", domain=DOMAIN)
def unfold_tensor(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Slices of `size` each `step` along `dim`, in a new last axis."""
    if x.shape is None:
        return like(x, None)
    axis, size = normal_axis(attributes.get("dim", -1), len(x.shape), "dim"), attributes["size"]
    count = floor_div(x.shape[axis] - size, attributes.get("step", 1)) + 1
    return like(x, (*x.shape[:axis], count, *x.shape[axis + 1 :], size))


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


@rule("GemmFloat8", domain=DOMAIN)
def gemm_float8(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact, *_others: MaybeFact) -> Fact:
    """Gemm in the type `dtype`, float32 by default."""
    return TensorFact(attributes.get("dtype") or dtypes.FLOAT, gemm(ctx, attributes, a, b).shape)


@rule("HyperConnectionPreMix", domain=DOMAIN)
def hyper_connection_pre_mix(ctx: InferContext, attributes: Attributes, streams: Fact, gates: Fact) -> Fact:
    """[..., C, H] without C; with `num_branches` the streams may also be flat, [..., C * H], which nothing tells."""
    if streams.shape is None or len(streams.shape) < 2 or attributes.get("num_branches"):
        return like(streams, None)
    return like(streams, (*streams.shape[:-2], streams.shape[-1]))


@rule("QuantizeBFP", domain=DOMAIN)
def quantize_bfp(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact, Fact]:
    """Bytes, whose number is the hardware's affair; the input's shape, and its strides."""
    strides = TensorFact(dtypes.INT64, None if x.shape is None else (len(x.shape),))
    return TensorFact(dtypes.UINT8, (ctx.symbol(0, 0),)), shape(ctx, {}, x), strides


@rule("DequantizeBFP", domain=DOMAIN)
def dequantize_bfp(ctx: InferContext, attributes: Attributes, x: Fact, wanted: Fact, strides: Fact) -> Fact:
    """The shape that the second input says, in the type `dtype`, float32 by default."""
    dims = items(wanted)
    shown = None if dims is None else tuple(as_dim(ctx, dim, 0, axis) for axis, dim in enumerate(dims))
    return TensorFact(attributes.get("dtype") or dtypes.FLOAT, shown)


@rule("BitmaskDropout", domain=DOMAIN)
@rule("BitmaskBiasDropout", domain=DOMAIN)
def bitmask_dropout(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> tuple[Fact, Fact]:
    """The input's shape; the mask has a bit for each element, 32 in a number."""
    words = ctx.symbol(1, 0) if x.shape is None else ceil_div(product(x.shape), 32)
    return x.bare, TensorFact(dtypes.UINT32, (words,))
