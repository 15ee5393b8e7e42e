"""com.microsoft operators on floats: what the optimizer of ONNX Runtime fuses, with its names and defaults."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import convolution_flops, gemm_flops, matmul_bytes, product_flops
from onnxlab.ops.base.kernel_helpers import Array, narrow, widen, widened
from onnxlab.ops.base.one_line_rules import law
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import broadcast_shapes, checked_axis, elem_type, like, scalar, unknown_shape
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.onnx.math.matmul import gemm, gemm_rule, mat_mul, product_shape
from onnxlab.ops.onnx.nn.activation import (
    celu,
    elu,
    gelu,
    gelu_tanh,
    hard_sigmoid,
    hard_swish,
    leaky_relu,
    log_softmax,
    selu,
    sigmoid,
    softmax,
    softplus,
    softsign,
    swish,
    thresholded_relu,
)
from onnxlab.ops.onnx.nn.conv import conv, conv_rule
from onnxlab.ops.onnx.nn.norm import layer_norm, rms_normalization
from onnxlab.shapes import Expr, Fact, Shape, TensorFact

DOMAIN = "com.microsoft"

kernel("Gelu", domain=DOMAIN)(gelu)


@kernel("BiasGelu", domain=DOMAIN)
@widened
def bias_gelu(a: Array, b: Array) -> Array:
    """gelu(A + B)."""
    return gelu(a + b)


@kernel("FastGelu", domain=DOMAIN)
@widened
def fast_gelu(x: Array, bias: Array | None = None) -> Array:
    """The approximation of gelu(X + bias) by tanh."""
    return gelu_tanh(x if bias is None else x + bias)


@kernel("QuickGelu", domain=DOMAIN)
@widened
def quick_gelu(x: Array, alpha: float = 1.702) -> Array:
    """x · sigmoid(alpha·x)."""
    return swish(x, alpha=alpha)


@kernel("BiasSplitGelu", domain=DOMAIN)
@widened
def bias_split_gelu(x: Array, bias: Array) -> Array:
    """The first half of X + bias times gelu of the second."""
    first, second = np.split(x + bias, 2, axis=-1)
    return first * gelu(second)


@kernel("BiasAdd", domain=DOMAIN)
def bias_add(x: Array, bias: Array, skip: Array) -> Array:
    """X + bias + skip."""
    return x + bias + skip


@kernel("ExpandDims", domain=DOMAIN)
def expand_dims(x: Array, axis: Array) -> Array:
    """A new axis of size 1."""
    return np.expand_dims(x, int(axis.reshape(())))


@kernel("Inverse", domain=DOMAIN)
@widened
def inverse(x: Array) -> Array:
    """Inverses of the matrices in the last two axes."""
    return np.linalg.inv(x)


@kernel("IsAllFinite", domain=DOMAIN)
def is_all_finite(*inputs: Array, isinf_only: int = 0, isnan_only: int = 0) -> Array:
    """Whether no input holds an infinity or NaN."""
    tests = [np.isinf] * (not isnan_only) + [np.isnan] * (not isinf_only)
    return np.array(not any(test(x).any() for x in inputs for test in tests))


def activated(y: Array, activation: str, parameters: Sequence[float]) -> Array:
    """The activation that a fused operator ends with."""
    values = list(parameters)
    table: dict[str, Callable[[], Array]] = {
        "": lambda: y,
        "Relu": lambda: np.maximum(y, 0),
        "Tanh": lambda: np.tanh(y),
        "Sigmoid": lambda: sigmoid(y),
        "LeakyRelu": lambda: leaky_relu(y, *values[:1]),
        "Clip": lambda: np.clip(y, values[0], values[1]),
        "HardSigmoid": lambda: hard_sigmoid(y, *values[:2]),
        "HardSwish": lambda: hard_swish(y),
        "Elu": lambda: elu(y, *values[:1]),
        "Selu": lambda: selu(y, *values[:1], *values[2:3]),
        "Celu": lambda: celu(y, *values[:1]),
        "Softplus": lambda: softplus(y),
        "Softsign": lambda: softsign(y),
        "ThresholdedRelu": lambda: thresholded_relu(y, *values[:1]),
        "ParametricSoftplus": lambda: y.dtype.type(values[0]) * softplus(y * y.dtype.type(values[1])),
        "ScaledTanh": lambda: y.dtype.type(values[0]) * np.tanh(y * y.dtype.type(values[1])),
        "Softmax": lambda: softmax(y),
        "LogSoftmax": lambda: log_softmax(y),
    }
    if activation not in table:
        raise ValueError(f"activation is {activation!r}: expected one of {', '.join(filter(None, table))}")
    return table[activation]()


@kernel("FusedConv", domain=DOMAIN, context=True)
def fused_conv(
    ctx: RunContext,
    x: Array,
    w: Array,
    b: Array | None = None,
    z: Array | None = None,
    activation: str = "",
    activation_params: Sequence[float] = (),
    **geometry: Any,
) -> Array:
    """activation(Conv(X, W, B) + Z)."""
    y = conv(ctx, x, w, b, **geometry)
    return activated(y if z is None else y + z, activation, activation_params)


@kernel("FusedGemm", domain=DOMAIN)
def fused_gemm(
    a: Array,
    b: Array,
    c: Array | None = None,
    activation: str = "",
    activation_alpha: float = 0.01,
    activation_beta: float = 0.0,
    activation_gamma: float = 0.0,
    **attributes: Any,
) -> Array:
    """activation(Gemm(A, B, C))."""
    parameters = (activation_alpha, activation_beta, activation_gamma)
    return activated(gemm(a, b, c, **attributes), activation, parameters)


def _transposed(x: Array, inner: int, batch: int) -> Array:
    """Swap the last two axes; `batch` first moves the leading axis next to the last."""
    if batch and x.ndim > 2:
        x = np.moveaxis(x, 0, -2)
    return x.swapaxes(-1, -2) if inner and x.ndim > 1 else x


@kernel("TransposeMatMul", domain=DOMAIN)
@kernel("FusedMatMul", domain=DOMAIN)
@widened
def fused_mat_mul(
    a: Array,
    b: Array,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803 - the attributes' names
    transB: int = 0,  # noqa: N803
    transBatchA: int = 0,  # noqa: N803
    transBatchB: int = 0,  # noqa: N803
) -> Array:
    """alpha · A @ B, both transposed where asked."""
    y = mat_mul(_transposed(a, transA, transBatchA), _transposed(b, transB, transBatchB))
    return y if alpha == 1 else y * y.dtype.type(alpha)


@kernel("FusedMatMulActivation", domain=DOMAIN)
def fused_mat_mul_activation(
    a: Array,
    b: Array,
    activation: str = "",
    activation_alpha: float = 0.01,
    activation_axis: int = -1,
    activation_beta: float = 0.0,
    activation_gamma: float = 0.0,
    **attributes: Any,
) -> Array:
    """activation(FusedMatMul(A, B))."""
    parameters = (activation_alpha, activation_beta, activation_gamma)
    return activated(fused_mat_mul(a, b, **attributes), activation, parameters)


def _skip(
    x: Array, skip: Array, gamma: Array, beta: Array | None, bias: Array | None, epsilon: float, center: bool
) -> tuple[Array, Array, Array, Array]:
    """Normalize X + skip + bias: (Y, means, inverse deviations, the sum)."""
    total = widen(x) + widen(skip)
    if bias is not None:
        total = total + widen(bias)
    y, means, inverses = layer_norm(total, widen(gamma), None if beta is None else widen(beta), -1, epsilon, center)
    return narrow(y, x.dtype), means, inverses, narrow(total, x.dtype)


@kernel("SkipLayerNormalization", domain=DOMAIN)
def skip_layer_normalization(
    x: Array,
    skip: Array,
    gamma: Array,
    beta: Array | None = None,
    bias: Array | None = None,
    epsilon: float = 1e-12,
) -> tuple[Array, Array, Array, Array]:
    """LayerNormalization of X + skip + bias over the last axis, and that sum."""
    return _skip(x, skip, gamma, beta, bias, epsilon, True)


@kernel("SkipSimplifiedLayerNormalization", domain=DOMAIN)
def skip_simplified_layer_normalization(
    x: Array, skip: Array, gamma: Array, bias: Array | None = None, epsilon: float = 1e-12
) -> tuple[Array, Array, Array, Array]:
    """RMSNormalization of X + skip + bias over the last axis, and that sum."""
    return _skip(x, skip, gamma, None, bias, epsilon, False)


@kernel("SimplifiedLayerNormalization")
def simplified_layer_normalization(
    x: Array, scale: Array, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> tuple[Array, Array]:
    """RMSNormalization, which ONNX Runtime has in the default domain, and the inverse deviations."""
    _, _, inverses = layer_norm(widen(x), None, None, axis, epsilon, center=False)
    return rms_normalization(x, scale, axis, epsilon), inverses


@kernel("EmbedLayerNormalization", domain=DOMAIN)
def embed_layer_normalization(
    input_ids: Array,
    segment_ids: Array | None,
    word_embedding: Array,
    position_embedding: Array,
    segment_embedding: Array | None,
    gamma: Array,
    beta: Array,
    mask: Array | None = None,
    position_ids: Array | None = None,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
) -> tuple[Array, Array, Array]:
    """LayerNormalization of the sum of word, position and segment embeddings [B, S, D]; mask sums [B]; that sum."""
    places = np.arange(input_ids.shape[1])[None] if position_ids is None else position_ids
    total = widen(word_embedding)[input_ids] + widen(position_embedding)[places]
    if segment_ids is not None and segment_embedding is not None:
        total = total + widen(segment_embedding)[segment_ids]
    y, _, _ = layer_norm(total, widen(gamma), widen(beta), -1, epsilon)
    counts = np.zeros(len(input_ids), np.int32) if mask is None else mask.sum(axis=1).astype(np.int32)
    return narrow(y, gamma.dtype), counts, narrow(total, gamma.dtype)


@kernel("GroupNorm", domain=DOMAIN)
@widened
def group_norm(
    x: Array,
    gamma: Array,
    beta: Array,
    activation: int,
    groups: int,
    channels_last: int = 1,
    epsilon: float = 1e-5,
) -> Array:
    """Group normalization of [N, H, W, C] (or [N, C, H, W]), then x · sigmoid(x) where activation is 1."""
    image = np.moveaxis(x, -1, 1) if channels_last else x
    rows = np.ascontiguousarray(image).reshape(len(x), groups, -1)
    centered = rows - rows.mean(axis=2, keepdims=True)
    deviation = np.sqrt((centered**2).mean(axis=2, keepdims=True) + x.dtype.type(epsilon))
    y = (centered / deviation).reshape(image.shape) * gamma[:, None, None] + beta[:, None, None]
    y = swish(y) if activation else y
    return np.moveaxis(y, 1, -1) if channels_last else y


@kernel("CDist", domain=DOMAIN)
def c_dist(a: Array, b: Array, metric: str = "sqeuclidean") -> Array:
    """[rows of A, rows of B]: their distances."""
    square = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * (a @ b.T)
    square = np.maximum(square, 0)
    return square if metric == "sqeuclidean" else np.sqrt(square)


# -- shape rules -------------------------------------------------------------------------------------------------------


law("BiasAdd", "-> 0")
law("BiasGelu", "-> 0")
law("FastGelu", "-> 0")
law("GroupNorm", "-> 0")
law("Inverse", "-> 0")
law("QuickGelu", "-> 0")
law("SkipLayerNormalization", "..., ? -> 0 | float32: ..., 1 | float32: ..., 1 | 0")
law("SkipSimplifiedLayerNormalization", "..., ? -> 0 | float32: ..., 1 | float32: ..., 1 | 0")
law("EmbedLayerNormalization", "B, S | | ?, H -> 2: B, S, H | int32: B | 2: B, S, H")
law("CDist", "M, ? | N, ? -> 0: M, N")
law("BiasSplitGelu", "..., W -> 0: ..., W//2")
law("IsAllFinite", "-> bool:")


def product_rule(second: int, elem: int = 0) -> Callable[..., Fact]:
    """The rule of a product of the first input and another one; `elem` is its type, 0 for that of the first."""

    def infer(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
        """A matrix product; a bias and an activation after it change no dim."""
        return TensorFact(elem or elem_type(inputs[0]), product_shape(inputs[0].shape, inputs[second].shape))

    return infer


def broadcast_rule(*slots: int, elem: int = 0) -> Callable[..., Fact]:
    """The rule of what broadcasts some of its inputs; `elem` is the result's type, 0 for that of the first of them."""

    def infer(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
        """NumPy broadcasting; scales, zero points and what complex numbers mean change no dim."""
        return TensorFact(elem or elem_type(inputs[slots[0]]), broadcast_shapes([inputs[at].shape for at in slots]))

    return infer


rule("FusedConv", domain=DOMAIN)(conv_rule)
rule("FusedGemm", domain=DOMAIN)(gemm_rule)


@rule("FusedMatMul", domain=DOMAIN)
@rule("FusedMatMulActivation", domain=DOMAIN)
@rule("TransposeMatMul", domain=DOMAIN)
def fused_matmul(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """A matrix product of inputs that may be transposed."""
    left = _transposed_rule(a.shape, attributes.get("transA"), attributes.get("transBatchA"))
    right = _transposed_rule(b.shape, attributes.get("transB"), attributes.get("transBatchB"))
    return like(a, product_shape(left, right))


def _transposed_rule(shape: Shape | None, inner: int | None, batch: int | None) -> Shape | None:
    """The last two dims swapped; `batch` first moves the leading dim next to the last."""
    if shape is None or len(shape) < 2:
        return shape
    if batch:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if inner else shape


@rule("SimplifiedLayerNormalization")
def simplified_layer_normalization_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact
) -> tuple[Fact, Fact]:
    """The input's shape, and the inverse deviation with 1 from `axis` on."""
    if x.shape is None:
        return x.bare, TensorFact(dtypes.FLOAT)
    axis = attributes.get("axis", -1) % max(len(x.shape), 1)
    return x.bare, TensorFact(dtypes.FLOAT, (*x.shape[:axis], *(1,) * (len(x.shape) - axis)))


@rule("ExpandDims", domain=DOMAIN)
def expand_dims_rule(ctx: InferContext, attributes: Attributes, x: Fact, axis: Fact) -> Fact:
    """A dim of 1 inserted."""
    at = scalar(axis)
    if x.shape is None or at is None or isinstance(at, Expr):
        return like(x, None if x.shape is None else unknown_shape(ctx, len(x.shape) + 1))
    place = checked_axis(int(at), len(x.shape) + 1)
    return like(x, (*x.shape[:place], 1, *x.shape[place:]))


law("Gelu", "-> 0")


# -- traits ------------------------------------------------------------------------------------------------------------


def _c_dist_bytes(attributes: Mapping[str, Any], a: Any, b: Any) -> int:
    return int(len(a) * len(b) * a.itemsize)


def _swapped_matmul_bytes(attributes: Mapping[str, Any], a: Any, b: Any) -> int:
    left = a.swapaxes(-1, -2) if attributes.get("transA") else a
    return matmul_bytes(attributes, left, b.swapaxes(-1, -2) if attributes.get("transB") else b)


traits("SimplifiedLayerNormalization", OpTraits(category="normalization", shape="shapes", flops=5))
traits("BiasAdd", OpTraits(category="elementwise", shape="shapes", flops=1, elements="none"), DOMAIN)
traits("BiasGelu", OpTraits(category="activation", shape="shapes", flops=14, elements="none"), DOMAIN)
traits("BiasSplitGelu", OpTraits(category="activation", shape="shapes", flops=1, elements="none"), DOMAIN)
traits("CDist", OpTraits(category="matrix", shape="shapes", flops=1, out_bytes=_c_dist_bytes), DOMAIN)
traits("EmbedLayerNormalization", OpTraits(category="normalization", shape="shapes", flops=8, layer="lookup"), DOMAIN)
traits("GroupNorm", OpTraits(category="normalization", shape="shapes", flops=8), DOMAIN)
traits("ExpandDims", OpTraits(category="shape", shape="sizes", flops=0), DOMAIN)
traits("FastGelu", OpTraits(category="activation", shape="shapes", flops=14), DOMAIN)
traits(
    "FusedConv",
    OpTraits(category="convolution", shape="shapes", flops=convolution_flops, elements="none", layer="convolution"),
    DOMAIN,
)
traits(
    "FusedGemm", OpTraits(category="matrix", shape="shapes", flops=gemm_flops, elements="none", layer="product"), DOMAIN
)
traits(
    "FusedMatMul",
    OpTraits(
        category="matrix",
        shape="shapes",
        flops=product_flops,
        elements="none",
        out_bytes=_swapped_matmul_bytes,
        layer="product",
    ),
    DOMAIN,
)
traits(
    "FusedMatMulActivation", OpTraits(category="matrix", shape="shapes", flops=product_flops, elements="none"), DOMAIN
)
traits("Inverse", OpTraits(category="matrix", shape="shapes", flops=1), DOMAIN)
traits("IsAllFinite", OpTraits(category="reduction", shape="shapes", flops=1), DOMAIN)
traits("QuickGelu", OpTraits(category="activation", shape="shapes", flops=1, blockwise=True), DOMAIN)
traits("SkipLayerNormalization", OpTraits(category="normalization", shape="shapes", flops=8, elements="none"), DOMAIN)
traits(
    "SkipSimplifiedLayerNormalization",
    OpTraits(category="normalization", shape="shapes", flops=5, elements="none"),
    DOMAIN,
)
traits(
    "TransposeMatMul",
    OpTraits(category="matrix", shape="shapes", flops=product_flops, out_bytes=_swapped_matmul_bytes),
    DOMAIN,
)
traits("Gelu", OpTraits(category="activation", shape="shapes", flops=14, blockwise=True), DOMAIN)
