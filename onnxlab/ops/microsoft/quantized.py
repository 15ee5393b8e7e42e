"""com.microsoft operators on quantized tensors: QLinear*, dynamic quantization, MatMulNBits."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import product_flops, quantized_flops, recurrent_flops
from onnxlab.ops.base.image_layouts import rule_on_channels_last
from onnxlab.ops.base.kernel_helpers import Array, narrow, widen
from onnxlab.ops.base.one_line_rules import law
from onnxlab.ops.base.prepared_constants import prepared
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, as_dim, elem_type, items, like, must_equal
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN, broadcast_rule, product_rule
from onnxlab.ops.onnx.math.matmul import gemm_rule, product
from onnxlab.ops.onnx.math.reduce import by_attribute
from onnxlab.ops.onnx.nn.activation import leaky_relu, sigmoid, softmax
from onnxlab.ops.onnx.nn.pool import average_pool, average_pool_rule, global_average_pool
from onnxlab.ops.onnx.nn.quantization import (
    centered,
    dequantize_linear,
    dequantize_linear_rule,
    dynamic_product,
    mat_mul_integer,
    q_linear_conv,
    qlinear_conv,
    quantize_linear,
    quantize_linear_rule,
)
from onnxlab.ops.onnx.nn.recurrent import (
    LSTM_GATES,
    activations_of,
    biases,
    gates_first,
    is_usual_lstm,
    lstm_step,
    lstm_step_of_sigmoids,
    peepholes_of,
    recurrent,
    results,
)
from onnxlab.ops.onnx.nn.time_steps import LayerInputs, in_order, prepare, scan
from onnxlab.ops.onnx.tensor.shape import concat_rule, shape_rule
from onnxlab.shapes import Fact, FactError, TensorFact

kernel("QuantizeLinear", domain=DOMAIN)(quantize_linear)
kernel("DequantizeLinear", domain=DOMAIN)(dequantize_linear)


def _float(x: Array, scale: Array, zero_point: Array | None) -> Array:
    return dequantize_linear(x, scale, zero_point)


def _quantized(y: Array, scale: Array, zero_point: Array | None, like: Array) -> Array:
    zero = np.zeros((), like.dtype) if zero_point is None else zero_point
    return quantize_linear(y.astype(np.float32, copy=False), scale, zero)


def _binary(ufunc: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """A quantized kernel from a function of two float arrays."""

    def run(
        a: Array,
        a_scale: Array,
        a_zero_point: Array | None,
        b: Array,
        b_scale: Array,
        b_zero_point: Array | None,
        c_scale: Array,
        c_zero_point: Array | None = None,
    ) -> Array:
        y = ufunc(_float(a, a_scale, a_zero_point), _float(b, b_scale, b_zero_point))
        return _quantized(y, c_scale, c_zero_point, a)

    return run


kernel("QLinearAdd", domain=DOMAIN)(_binary(np.add))
kernel("QLinearMul", domain=DOMAIN)(_binary(np.multiply))


@kernel("QLinearSigmoid", domain=DOMAIN)
def q_linear_sigmoid(
    x: Array, x_scale: Array, x_zero_point: Array | None, y_scale: Array, y_zero_point: Array | None = None
) -> Array:
    """Sigmoid, quantized."""
    return _quantized(sigmoid(_float(x, x_scale, x_zero_point)), y_scale, y_zero_point, x)


@kernel("QLinearLeakyRelu", domain=DOMAIN)
def q_linear_leaky_relu(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array | None = None,
    alpha: float = 0.01,
) -> Array:
    """LeakyRelu, quantized."""
    return _quantized(leaky_relu(_float(x, x_scale, x_zero_point), alpha=alpha), y_scale, y_zero_point, x)


@kernel("QLinearSoftmax", domain=DOMAIN)
def q_linear_softmax(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array,
    axis: int = -1,
    opset: int = 13,
) -> Array:
    """Softmax, quantized; below opset 13 over all axes from `axis` on."""
    values = _float(x, x_scale, x_zero_point)
    if opset < 13:
        rows = values.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1)
        return _quantized(softmax(rows).reshape(x.shape), y_scale, y_zero_point, x)
    return _quantized(softmax(values, axis=axis), y_scale, y_zero_point, x)


@kernel("QLinearConcat", domain=DOMAIN)
def q_linear_concat(y_scale: Array, y_zero_point: Array, *inputs: Array, axis: int) -> Array:
    """Concat of (tensor, scale, zero point) triples, quantized anew."""
    parts = [_float(*inputs[start : start + 3]) for start in range(0, len(inputs), 3)]
    return _quantized(np.concatenate(parts, axis), y_scale, y_zero_point, y_zero_point)


@kernel("QLinearWhere", domain=DOMAIN)
def q_linear_where(
    condition: Array,
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    y: Array,
    y_scale: Array,
    y_zero_point: Array,
    z_scale: Array,
    z_zero_point: Array,
) -> Array:
    """Select from quantized x and y by the condition."""
    chosen = np.where(condition, _float(x, x_scale, x_zero_point), _float(y, y_scale, y_zero_point))
    return _quantized(chosen, z_scale, z_zero_point, x)


@kernel("QLinearReduceMean", domain=DOMAIN)
def q_linear_reduce_mean(
    data: Array,
    data_scale: Array,
    data_zero_point: Array | None,
    reduced_scale: Array,
    reduced_zero_point: Array | None = None,
    axes: Sequence[int] | None = None,
    keepdims: int = 1,
) -> Array:
    """ReduceMean, quantized."""
    values = _float(data, data_scale, data_zero_point)
    mean = values.mean(axis=tuple(axes) if axes else None, keepdims=keepdims == 1)
    return _quantized(np.asarray(mean), reduced_scale, reduced_zero_point, data)


@kernel("QLinearAveragePool", domain=DOMAIN)
def q_linear_average_pool(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None,
    y_scale: Array,
    y_zero_point: Array | None = None,
    channels_last: int = 0,
    **geometry: Any,
) -> Array:
    """AveragePool, quantized."""
    values = _float(x, x_scale, x_zero_point)
    y = average_pool(np.moveaxis(values, -1, 1) if channels_last else values, **geometry)
    return _quantized(np.moveaxis(y, 1, -1) if channels_last else y, y_scale, y_zero_point, x)


@kernel("QLinearGlobalAveragePool", domain=DOMAIN)
def q_linear_global_average_pool(
    x: Array, x_scale: Array, x_zero_point: Array, y_scale: Array, y_zero_point: Array, channels_last: int = 0
) -> Array:
    """GlobalAveragePool, quantized."""
    values = _float(x, x_scale, x_zero_point)
    y = global_average_pool(np.moveaxis(values, -1, 1) if channels_last else values)
    return _quantized(np.moveaxis(y, 1, -1) if channels_last else y, y_scale, y_zero_point, x)


@kernel("QLinearConv", domain=DOMAIN, context=True)
def q_linear_conv_ms(
    ctx: RunContext, x: Array, *rest: Array | None, channels_last: int = 0, **attributes: Any
) -> Array:
    """QLinearConv, of [N, D1, …, C] with channels_last."""
    if not channels_last:
        return q_linear_conv(ctx, x, *rest, **attributes)  # type: ignore[arg-type]
    y = q_linear_conv(ctx, np.moveaxis(x, -1, 1), *rest, **attributes)  # type: ignore[arg-type]
    return np.moveaxis(y, 1, -1)


@kernel("QGemm", domain=DOMAIN)
def q_gemm(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    c: Array | None = None,
    y_scale: Array | None = None,
    y_zero_point: Array | None = None,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803 - the attributes' names
    transB: int = 0,  # noqa: N803
) -> Array:
    """alpha · A · B + C of quantized matrices, C int32 in units of the product; float32 without y_scale."""
    sums = mat_mul_integer(a.T if transA else a, b.T if transB else b, a_zero_point, b_zero_point)
    if c is not None:
        sums = sums + c
    y = sums.astype(np.float32) * (np.float32(alpha) * a_scale * b_scale)
    return y if y_scale is None else _quantized(y, y_scale, y_zero_point, a)


@kernel("MatMulIntegerToFloat", domain=DOMAIN)
def mat_mul_integer_to_float(
    a: Array,
    b: Array,
    a_scale: Array,
    b_scale: Array,
    a_zero_point: Array | None = None,
    b_zero_point: Array | None = None,
    bias: Array | None = None,
) -> Array:
    """The integer product times both scales, plus a bias."""
    y = mat_mul_integer(a, b, a_zero_point, b_zero_point).astype(np.float32) * (widen(a_scale) * widen(b_scale))
    return narrow(y if bias is None else y + widen(bias), a_scale.dtype)


@kernel("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_mat_mul(
    a: Array, b: Array, b_scale: Array, b_zero_point: Array | None = None, bias: Array | None = None
) -> Array:
    """A quantized by its range, times quantized B, as float32."""
    right, largest = centered(b, b_zero_point)
    y = dynamic_product(a, right, largest, widen(b_scale))
    return y if bias is None else y + widen(bias)


@kernel("DynamicQuantizeLSTM", domain=DOMAIN, context=True)
def dynamic_quantize_lstm(
    ctx: RunContext,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    sequence_lens: Array | None,
    initial_h: Array | None,
    initial_c: Array | None,
    p: Array | None,
    w_scale: Array,
    w_zero_point: Array,
    r_scale: Array,
    r_zero_point: Array,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] = ("Sigmoid", "Tanh", "Tanh"),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> tuple[Array, ...]:
    """LSTM with int8 weights W [D, input, 4·hidden], R [D, hidden, 4·hidden].

    X and every state are quantized by their range. Scales and zero points are [D], or [D, 4·hidden] per column.
    """
    layer = prepare(x, w, r.swapaxes(1, 2), b, sequence_lens, (initial_h, initial_c), direction, 0)
    functions = activations_of(activations, activation_alpha, activation_beta, len(w), 3)
    steps, batch, width = layer.x.shape
    runs = []
    for number in range(len(w)):
        part = slice(number, number + 1)
        w_bias, r_bias = biases(layer, part, 4)
        flat = np.ascontiguousarray(layer.x).reshape(steps * batch, width)
        wide, largest = prepared(("direction", number), partial(_one_direction, number), w, w_zero_point)
        projected = dynamic_product(flat, wide, largest, w_scale[number]) + (w_bias + r_bias)
        projected = in_order(layer, part, projected.reshape(steps, 1, batch, -1))
        if is_usual_lstm(functions[number], p, clip, input_forget):
            projected = gates_first(projected, LSTM_GATES)
            step = lstm_step_of_sigmoids(*_quantized_gates(layer, number, r, r_scale, r_zero_point), functions[number])
        else:
            recur = _recurrent(*prepared(("direction", number), partial(_one_direction, number), r, r_zero_point),
                               r_scale[number])  # fmt: skip
            step = lstm_step(recur, layer.hidden, peepholes_of(p, part), functions[number], clip, input_forget)
        runs.append(scan(ctx, layer, part, projected, step))
    return results(runs, 0, x.dtype)


def _quantized_gates(
    layer: LayerInputs, number: int, r: Array, scale: Array, zero_point: Array
) -> tuple[Callable[[Array], Array], Array]:
    """`_recurrent` of one direction as `lstm_step_of_sigmoids` takes it: (state -> sums, the rows that have them)."""
    h, batch, order = layer.hidden, layer.x.shape[1], [*LSTM_GATES]

    def arranged(weights: Array, zero_point: Array) -> tuple[Array, float]:
        wide, largest = _one_direction(number, weights, zero_point)
        return np.ascontiguousarray(wide.reshape(h, 4, h).swapaxes(0, 1)[order]), largest

    matrices, largest = prepared(("gates first", number), arranged, r, zero_point)
    is_shared = scale[number].size == 1
    scales = scale[number].reshape(-1, 1, 1) if is_shared else scale[number].reshape(4, 1, h)[order]
    signed = scales * np.array([-1, -1, -1, 1], np.float32).reshape(4, 1, 1)
    rows = np.empty((5, 1, batch, h), np.float32)
    sums = rows[:4, 0]
    return lambda state: dynamic_product(state[0], matrices, largest, signed, sums), rows


def _one_direction(number: int, weights: Array, zero_point: Array) -> tuple[Array, float]:
    return centered(weights[number], zero_point[number])


def _recurrent(weights: Array, largest: float, scale: Array) -> Callable[[Array], Array]:
    """[1, batch, hidden] -> [1, batch, gates·hidden]: state @ weights, the state quantized by its range."""
    return lambda state: dynamic_product(state[0], weights, largest, scale)[None]


@kernel("MatMulNBits", domain=DOMAIN)
def mat_mul_n_bits(
    a: Array,
    b: Array,
    scales: Array,
    zero_points: Array | None = None,
    g_idx: Array | None = None,
    bias: Array | None = None,
    K: int = 0,  # noqa: N803 - the attributes' names
    N: int = 0,  # noqa: N803
    bits: int = 4,
    block_size: int = 32,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Array:
    """A @ Bᵀ of B [N, blocks, bytes]: unsigned integers of 2, 4 or 8 bits, low bits first, a scale for each block."""
    blocks = -(-K // block_size)
    levels = unpacked(b.reshape(N, blocks, -1), bits)[:, :, :block_size].astype(np.float32)
    if zero_points is None:
        zero: Array = np.asarray(np.float32(1 << (bits - 1)))
    elif zero_points.dtype.kind == "u":
        zero = unpacked(zero_points.reshape(N, -1), bits)[:, :blocks, None].astype(np.float32)
    else:
        zero = widen(zero_points).reshape(N, -1)[:, :blocks, None]
    factors = widen(scales).reshape(N, blocks, 1)
    if g_idx is not None:  # every row of the inner axis names its block
        group = g_idx[:K].astype(np.intp)
        flat = levels.reshape(N, -1)[:, :K]
        offset = np.broadcast_to(zero, (N, blocks, 1))[:, group, 0]
        weights = (flat - offset) * factors[:, group, 0]
    else:
        weights = ((levels - zero) * factors).reshape(N, -1)[:, :K]
    y = product(widen(a), weights.T)
    return narrow(y if bias is None else y + widen(bias), a.dtype)


def unpacked(x: Array, bits: int) -> Array:
    """Unsigned integers of 2, 4 or 8 bits, packed into the bytes of the last axis low bits first."""
    if bits == 8:
        return x
    if bits not in (2, 4):
        raise ValueError(f"bits is {bits}: expected 2, 4 or 8")
    per_byte = 8 // bits
    shifts = (np.arange(per_byte) * bits).astype(np.uint8)
    return ((x[..., None] >> shifts) & ((1 << bits) - 1)).reshape(*x.shape[:-1], x.shape[-1] * per_byte)


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("QLinearConv", domain="com.microsoft")
def qlinear_conv_of_last(ctx: InferContext, attributes: Attributes, x: Fact, *others: Any) -> Fact:
    """A quantized convolution; the image has its channels last by the attribute, the filters never."""
    infer = rule_on_channels_last(qlinear_conv) if attributes.get("channels_last") else qlinear_conv
    inferred: Fact = infer(ctx, attributes, x, *others)
    return inferred


law("QLinearLeakyRelu", "-> 0")
law("QLinearSigmoid", "-> 0")
law("QLinearSoftmax", "-> 0")
law("QOrderedGelu", "-> 0")
law("QOrderedLayerNormalization", "-> 0")
law("QuantizeWithOrder", "... -> int8: ...")
law("DequantizeWithOrder", "... -> @to/float32: ...")
law("MatMulNBitsMlp", "..., ? -> 0: ..., @N | 0")
law("MatMulNBitsQkv", "..., ? -> 0: ..., @Nq | 0: ..., @Nkv | 0: ..., @Nkv | 0")
law("MatMulBlockQuantizedFp4Weight", "..., ? | N, ... -> 0: ..., N")
law("MatMulBlockQuantizedFp8Weight", "..., ? | N, ... -> 0: ..., N")


rule("QOrderedMatMul", domain=DOMAIN)(product_rule(2))
rule("MatMulIntegerToFloat DynamicQuantizeMatMul", domain=DOMAIN)(product_rule(1, dtypes.FLOAT))
rule("QLinearAdd QLinearMul", domain=DOMAIN)(broadcast_rule(0, 3))
rule("QLinearWhere", domain=DOMAIN)(broadcast_rule(1, 0, 4))


@rule("MatMulNBits", domain=DOMAIN)
@rule("MatMulFpQ4", domain=DOMAIN)
def matmul_n_bits(ctx: InferContext, attributes: Attributes, a: Fact, *_weights: MaybeFact) -> Fact:
    """The last dim, K, becomes N; the weight is packed."""
    if a.shape is None:
        return like(a, None)
    must_equal(attributes["K"], a.shape[-1], "the last dim of {} is not the attribute K", a.shape)
    return like(a, (*a.shape[:-1], attributes["N"]))


@rule("QLinearConcat", domain=DOMAIN)
def qlinear_concat(
    ctx: InferContext, attributes: Attributes, y_scale: Fact, y_zero: MaybeFact, *inputs: MaybeFact
) -> Fact:
    """Concat of every third input from the third on."""
    tensors = [fact for fact in inputs[::3] if fact is not None]
    return concat_rule(ctx, attributes, *(fact.bare for fact in tensors))


@rule("QLinearGlobalAveragePool", domain=DOMAIN)
def qlinear_global_average_pool(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> Fact:
    """Every spatial dim becomes 1."""
    if x.shape is None:
        return like(x, None)
    if attributes.get("channels_last"):
        return like(x, (x.shape[0], *(1,) * (len(x.shape) - 2), x.shape[-1]))
    return like(x, (*x.shape[:2], *(1,) * (len(x.shape) - 2)))


@rule("QGemm", domain=DOMAIN)
def q_gemm_rule(
    ctx: InferContext, attributes: Attributes, a: Fact, a_scale: Fact, a_zero: MaybeFact, b: Fact, *others: MaybeFact
) -> Fact:
    """Gemm of quantized inputs: floats, or the type of the output's zero point where there is one."""
    zero = others[4] if len(others) > 4 else None
    shape = gemm_rule(ctx, attributes, a.bare, b.bare).shape
    return TensorFact(elem_type(zero) or dtypes.FLOAT, shape)


@rule("DynamicQuantizeLSTM", domain=DOMAIN)
def dynamic_quantize_lstm_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, r: Fact, *_others: MaybeFact
) -> Any:
    """An LSTM whose recurrent weight is transposed: hidden_size must be given."""
    if not attributes.get("hidden_size"):
        raise FactError("attribute hidden_size is missing", code="bad-attribute", expected="the hidden size")
    return recurrent(ctx, attributes, x, w, r)


@rule("QLinearAveragePool", domain=DOMAIN)
def qlinear_average_pool(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> Fact:
    """The windows that fit each spatial dim; channels last by the attribute."""
    inferred: Fact = (
        rule_on_channels_last(average_pool_rule) if attributes.get("channels_last") else average_pool_rule
    )(ctx, attributes, x.bare)
    return inferred


@rule("QLinearReduceMean", domain=DOMAIN)
def qlinear_reduce_mean(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> Fact:
    """The axes of the attribute become 1, or are dropped without keepdims."""
    return by_attribute("ReduceMean")(ctx, attributes, x.bare)


@rule("GemmFloat8", domain=DOMAIN)
def gemm_float8(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact, *_others: MaybeFact) -> Fact:
    """Gemm in the type `dtype`, float32 by default."""
    return TensorFact(attributes.get("dtype") or dtypes.FLOAT, gemm_rule(ctx, attributes, a, b).shape)


@rule("QuantizeBFP", domain=DOMAIN)
def quantize_bfp(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact, Fact]:
    """Bytes, whose number depends on the hardware; the input's shape, and its strides."""
    strides = TensorFact(dtypes.INT64, None if x.shape is None else (len(x.shape),))
    return TensorFact(dtypes.UINT8, (ctx.symbol(0, 0),)), shape_rule(ctx, {}, x), strides


@rule("DequantizeBFP", domain=DOMAIN)
def dequantize_bfp(ctx: InferContext, attributes: Attributes, x: Fact, shape: Fact, strides: Fact) -> Fact:
    """The shape that the second input says, in the type `dtype`, float32 by default."""
    dims = items(shape)
    shown = None if dims is None else tuple(as_dim(ctx, dim, 0, axis) for axis, dim in enumerate(dims))
    return TensorFact(attributes.get("dtype") or dtypes.FLOAT, shown)


rule("QuantizeLinear", domain=DOMAIN)(quantize_linear_rule)
rule("DequantizeLinear", domain=DOMAIN)(dequantize_linear_rule)


# -- traits ------------------------------------------------------------------------------------------------------------


traits("DequantizeBFP QuantizeBFP", OpTraits(category="quantization", shape="other", flops=1), DOMAIN)
traits("DequantizeWithOrder QuantizeWithOrder", OpTraits(category="quantization", shape="shapes", flops=1), DOMAIN)
traits(
    "DynamicQuantizeLSTM",
    OpTraits(category="recurrent", shape="shapes", flops=recurrent_flops, layer="recurrent"),
    DOMAIN,
)
traits("DynamicQuantizeMatMul QGemm", OpTraits(category="matrix", shape="shapes", flops=product_flops), DOMAIN)
traits("GemmFloat8 QOrderedMatMul", OpTraits(category="matrix", shape="shapes", flops=product_flops), DOMAIN)
traits(
    "MatMulBlockQuantizedFp4Weight MatMulBlockQuantizedFp8Weight MatMulFpQ4 MatMulNBitsMlp MatMulNBitsQkv",
    OpTraits(category="matrix", shape="shapes", flops=1, elements="none"),
    DOMAIN,
)
traits(
    "MatMulIntegerToFloat", OpTraits(category="matrix", shape="shapes", flops=product_flops, elements="none"), DOMAIN
)
traits(
    "MatMulNBits",
    OpTraits(category="matrix", shape="shapes", flops=product_flops, elements="none", layer="product"),
    DOMAIN,
)
traits(
    "QLinearAdd QLinearMul QLinearWhere",
    OpTraits(category="elementwise", shape="shapes", flops=1, elements="none"),
    DOMAIN,
)
traits(
    "QLinearAveragePool QLinearGlobalAveragePool",
    OpTraits(category="pooling", shape="shapes", flops=1, elements="none"),
    DOMAIN,
)
traits("QLinearConcat", OpTraits(category="shape", shape="shapes", flops=1, elements="none"), DOMAIN)
traits(
    "QLinearConv",
    OpTraits(category="convolution", shape="shapes", flops=quantized_flops, elements="none", layer="convolution"),
    DOMAIN,
)
traits(
    "QLinearLeakyRelu QLinearSigmoid QLinearSoftmax",
    OpTraits(category="activation", shape="shapes", flops=1, elements="none"),
    DOMAIN,
)
traits("QLinearReduceMean", OpTraits(category="reduction", shape="sizes", flops=1, elements="none"), DOMAIN)
traits("QOrderedGelu", OpTraits(category="activation", shape="shapes", flops=1), DOMAIN)
traits("QOrderedLayerNormalization", OpTraits(category="normalization", shape="shapes", flops=1), DOMAIN)
traits("DequantizeLinear QuantizeLinear", OpTraits(category="quantization", shape="shapes", flops=1), DOMAIN)
