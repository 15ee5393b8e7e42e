"""com.microsoft operators on integers, hashes and tables: products, sums, MurmurHash3, lookups, blocks of n-grams.

Sources: docs/ContribOperators.md of ONNX Runtime; Austin Appleby's MurmurHash3_x86_32.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.estimates import product_flops
from onnxlab.ops.base.kernel_helpers import Array, narrow, normal_axis, widen
from onnxlab.ops.base.one_line_rules import law
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import checked_axis, elem_type, like
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN, broadcast_rule, embed_layer_normalization
from onnxlab.ops.microsoft.quantized import matmul_n_bits
from onnxlab.ops.onnx.math.matmul import product, product_shape
from onnxlab.ops.onnx.math.reduce import by_attribute
from onnxlab.ops.onnx.nn.quantization import dequantize_linear
from onnxlab.shapes import Fact, TensorFact, floor_div


@kernel("MatMulInteger16", domain=DOMAIN)
def mat_mul_integer_16(a: Array, b: Array) -> Array:
    """A @ B in 32 bits, signed if an operand is; sums wrap around."""
    dtype = np.int32 if np.int16 in (a.dtype, b.dtype) else np.uint32
    return np.matmul(a.astype(np.int64), b.astype(np.int64)).astype(dtype)


@kernel("MulInteger", domain=DOMAIN)
def mul_integer(a: Array, a_zero_point: Array | None, b: Array, b_zero_point: Array | None = None) -> Array:
    """(A − its zero point) · (B − its zero point) as int32."""
    left, right = a.astype(np.int32), b.astype(np.int32)
    left = left if a_zero_point is None else left - a_zero_point.astype(np.int32)
    return left * (right if b_zero_point is None else right - b_zero_point.astype(np.int32))


@kernel("ReduceSumInteger", domain=DOMAIN)
def reduce_sum_integer(data: Array, axes: Sequence[int], keepdims: int) -> Array:
    """Sums of 8-bit integers in 32 bits, signed like the input."""
    dtype = np.int32 if data.dtype == np.int8 else np.uint32
    return np.asarray(data.sum(axis=tuple(axes), keepdims=keepdims == 1, dtype=dtype))


@kernel("TorchEmbedding", domain=DOMAIN)
def torch_embedding(
    weight: Array, indices: Array, padding_idx: Array | None = None, scale_grad_by_freq: Array | None = None
) -> Array:
    """Rows of a table; the other inputs matter to training only."""
    if indices.size and not -len(weight) <= indices.min() <= indices.max() < len(weight):
        raise IndexError(f"indices run from {indices.min()} to {indices.max()}: the table has {len(weight)} rows")
    return weight[indices]


@kernel("UnfoldTensor", domain=DOMAIN)
def unfold_tensor(x: Array, size: int, dim: int = -1, step: int = 1) -> Array:
    """All slices of `size` along `dim`, `step` apart, as a last axis."""
    axis = normal_axis(dim, x.ndim, "dim")
    if not 0 < size <= x.shape[axis] or step < 1:
        raise ValueError(f"size {size} and step {step}: axis {axis} has {x.shape[axis]} elements")
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return np.ascontiguousarray(windows[(slice(None),) * axis + (slice(None, None, step),)])


@kernel("NGramRepeatBlock", domain=DOMAIN)
def n_gram_repeat_block(input_ids: Array, scores: Array, ngram_size: int) -> Array:
    """Scores [B, vocabulary], −inf for tokens that would complete an n-gram that input_ids [B, S] hold already."""
    y = scores.copy()
    if input_ids.shape[1] < ngram_size:
        return y
    grams = np.lib.stride_tricks.sliding_window_view(input_ids, ngram_size, 1)
    tail = input_ids[:, input_ids.shape[1] - ngram_size + 1 :]
    batch, place = np.nonzero((grams[..., :-1] == tail[:, None]).all(axis=-1))
    y[batch, grams[batch, place, -1]] = -np.inf
    return y


def _turned(x: Array, bits: int) -> Array:
    return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))


def _mixed(h: Array, k: Array) -> Array:
    return h ^ (_turned(k * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593))


def _hash(words: Array, tail: Array | None, seed: int, nbytes: int) -> Array:
    """MurmurHash3_x86_32 of every row of 32-bit words, and of an incomplete word behind them."""
    h = np.full(len(words), seed, np.uint32)
    for k in words.T:
        h = _turned(_mixed(h, k), 13) * np.uint32(5) + np.uint32(0xE6546B64)
    h = (h if tail is None else _mixed(h, tail)) ^ np.uint32(nbytes)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return h ^ (h >> np.uint32(16))


def _hash_of_text(text: bytes, seed: int) -> Array:
    words = np.frombuffer(text.ljust(-(-len(text) // 4) * 4, b"\0"), "<u4").astype(np.uint32)
    whole = len(text) // 4
    return _hash(words[None, :whole], words[whole:] if len(text) % 4 else None, seed, len(text))


@kernel("MurmurHash3", domain=DOMAIN)
def murmur_hash_3(x: Array, positive: int = 1, seed: int = 0) -> Array:
    """The hash of every number's bytes, or every string's: uint32, or int32 unless positive."""
    if x.dtype == object:
        hashes = np.array([_hash_of_text(str(item).encode(), seed)[0] for item in x.reshape(-1)], np.uint32)
    else:
        hashes = _hash(np.ascontiguousarray(x).reshape(-1, 1).view(np.uint32), None, seed, x.itemsize)
    return hashes.view(np.uint32 if positive else np.int32).reshape(x.shape)


@kernel("QEmbedLayerNormalization", domain=DOMAIN)
def q_embed_layer_normalization(
    input_ids: Array,
    segment_ids: Array | None,
    words: Array,
    places: Array,
    segments: Array | None,
    gamma: Array,
    beta: Array,
    mask: Array | None,
    *numbers: Array | None,
    epsilon: float = 1e-12,
) -> tuple[Array, Array]:
    """EmbedLayerNormalization of five quantized inputs; their scales, then their zero points follow in order."""

    def wide(table: Array, place: int) -> Array:
        return dequantize_linear(table, numbers[place], numbers[5 + place])  # type: ignore[arg-type]

    y, counts, _ = embed_layer_normalization(
        input_ids,
        segment_ids,
        wide(words, 0),
        wide(places, 1),
        None if segments is None else wide(segments, 2),
        wide(gamma, 3),
        wide(beta, 4),
        mask,
        epsilon=epsilon,
    )
    return y, counts


_FP4 = np.array([0, 0.005208333333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25], np.float32)
_NF4 = np.array(
    [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
     -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
     0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0], np.float32)  # fmt: skip
_CODES = {0: np.concatenate([_FP4, -_FP4]), 1: _NF4}
"""The values of four-bit codes, by quant_type: FP4 with a sign in front, and NF4 (arXiv 2305.14314)."""


@kernel("MatMulBnb4", domain=DOMAIN)
def mat_mul_bnb_4(
    a: Array,
    b: Array,
    absmax: Array,
    block_size: int,
    quant_type: int,
    N: int,  # noqa: N803 - the attributes' names
    K: int,  # noqa: N803
    transB: int = 1,  # noqa: N803
    training_mode: int = 0,
) -> Array:
    """A @ Wᵀ (A @ W without transB) of W [N, K], flat in blocks of four-bit codes, high bits first."""
    if quant_type not in _CODES:
        raise ValueError(f"quant_type is {quant_type}: expected 0 (FP4) or 1 (NF4)")
    codes = np.stack([b.reshape(-1) >> 4, b.reshape(-1) & 15], axis=1).reshape(-1)[: N * K]
    values = _CODES[quant_type][codes] * np.repeat(widen(absmax), block_size)[: N * K]
    weights = values.reshape(N, K)
    return narrow(product(widen(a), weights.T if transB else weights), a.dtype)


# -- shape rules -------------------------------------------------------------------------------------------------------


law("NGramRepeatBlock", "-> 1")
law("QEmbedLayerNormalization", "B, S | | ?, H -> float32: B, S, H | int32: B | float32: B, S, H")
law("TorchEmbedding", "?, W | ... -> 0: ..., W")


rule("MulInteger", domain=DOMAIN)(broadcast_rule(0, 2, elem=dtypes.INT32))


@rule("MatMulInteger16", domain=DOMAIN)
def matmul_integer_16(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """A matrix product in 32 bits, signed if an operand is."""
    signed = dtypes.INT16 in (elem_type(a), elem_type(b))
    return TensorFact(dtypes.INT32 if signed else dtypes.UINT32, product_shape(a.shape, b.shape))


@rule("ReduceSumInteger", domain=DOMAIN)
def reduce_sum_integer_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """ReduceSum in 32 bits, signed like the input."""
    elem = {dtypes.INT8: dtypes.INT32, dtypes.UINT8: dtypes.UINT32}.get(elem_type(x), 0)
    return TensorFact(elem, by_attribute("ReduceSum")(ctx, attributes, x.bare).shape)


@rule("MurmurHash3", domain=DOMAIN)
def murmur_hash(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A hash of 32 bits for each element."""
    return TensorFact(dtypes.UINT32 if attributes.get("positive", 1) else dtypes.INT32, x.shape)


@rule("UnfoldTensor", domain=DOMAIN)
def unfold_tensor_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Slices of `size` each `step` along `dim`, in a new last axis."""
    if x.shape is None:
        return like(x, None)
    axis, size = checked_axis(attributes.get("dim", -1), len(x.shape), "dim"), attributes["size"]
    count = floor_div(x.shape[axis] - size, attributes.get("step", 1)) + 1
    return like(x, (*x.shape[:axis], count, *x.shape[axis + 1 :], size))


rule("MatMulBnb4", domain=DOMAIN)(matmul_n_bits)


# -- traits ------------------------------------------------------------------------------------------------------------


def _unfold_bytes(attributes: Mapping[str, Any], x: Any) -> int:
    axis, size = attributes.get("dim", -1), attributes["size"]
    count = (x.shape[axis] - size) // attributes.get("step", 1) + 1
    return int(x.nbytes // max(1, x.shape[axis]) * max(0, count) * size)


traits(
    "MatMulBnb4 MatMulInteger16",
    OpTraits(category="matrix", shape="shapes", flops=product_flops, elements="none"),
    DOMAIN,
)
traits("MulInteger", OpTraits(category="elementwise", shape="shapes", flops=1), DOMAIN)
traits("MurmurHash3 NGramRepeatBlock", OpTraits(category="text", shape="shapes", flops=1), DOMAIN)
traits("QEmbedLayerNormalization", OpTraits(category="normalization", shape="shapes", flops=1), DOMAIN)
traits("ReduceSumInteger", OpTraits(category="reduction", shape="shapes", flops=1), DOMAIN)
traits("TorchEmbedding", OpTraits(category="shape", shape="shapes", flops=0), DOMAIN)
traits("UnfoldTensor", OpTraits(category="shape", shape="shapes", flops=0, out_bytes=_unfold_bytes), DOMAIN)
