"""com.microsoft operators that exist in ai.onnx too or nearly, Tokenizer, and gathering from quantized tables."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import product_flops
from onnxlab.ops.base.kernel_helpers import Array, narrow, normal_axis, widen, widened
from onnxlab.ops.base.one_line_rules import law
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, checked_axis, elem_type, like
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.fused import DOMAIN
from onnxlab.ops.microsoft.quantized import unpacked
from onnxlab.ops.onnx.math.matmul import product_shape
from onnxlab.ops.onnx.nn.activation import softmax
from onnxlab.ops.onnx.nn.pool import max_pool_rule
from onnxlab.ops.onnx.nn.quantization import along, integer_values
from onnxlab.ops.onnx.nn.recurrent import recurrent
from onnxlab.ops.onnx.tensor.generator import range_, range__rule
from onnxlab.ops.onnx.tensor.indexing import gather_nd, gather_nd_rule, unique
from onnxlab.ops.onnx.tensor.pad import pad, pad_rule
from onnxlab.ops.onnx.tensor.shape import trilu
from onnxlab.ops.onnx.tensor.string import filled, strings, texts
from onnxlab.ops.onnx.tensor.vision import grid_sample, grid_sample_bytes, grid_sample_rule
from onnxlab.shapes import Fact, Shape, TensorFact, ceil_div, known, product

kernel("GatherND", domain=DOMAIN)(gather_nd)
kernel("Trilu", domain=DOMAIN)(trilu)


@kernel("GridSample", domain=DOMAIN)
def grid_sample_1(
    x: Array, grid: Array, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros"
) -> Array:
    """GridSample-16 of ai.onnx."""
    return grid_sample(x, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode)


@kernel("Range", domain=DOMAIN, context=True)
def range_1(ctx: RunContext, start: Array, limit: Array, delta: Array | None = None) -> Array:
    """Range of ai.onnx; the step is 1 where it is left out."""
    step = np.ones((), start.dtype) if delta is None else delta.reshape(())
    return range_(ctx, start.reshape(()), limit.reshape(()), step)


@kernel("Pad", domain=DOMAIN, context=True)
def pad_1(ctx: RunContext, data: Array, pads: Array, value: Array | None = None, mode: str = "constant") -> Array:
    """Pad-11 of ai.onnx; pads may be [1, 2·rank]."""
    return pad(ctx, data, pads.reshape(-1), value, mode=mode)


@kernel("Unique", domain=DOMAIN)
def unique_1(x: Array) -> tuple[Array, Array, Array]:
    """Distinct elements in the order of their first appearance, the inverse indices, and counts."""
    values, _, inverse, counts = unique(x, sorted=0)
    return values, inverse, counts


@kernel("BiasSoftmax", domain=DOMAIN)
@widened
def bias_softmax(data: Array, bias: Array, axis: int = 1, is_inner_broadcast: int = 1) -> Array:
    """Softmax of data + bias over the axes from `axis` on, as one."""
    total = data + bias
    axis = normal_axis(axis, total.ndim)
    rows = total.reshape(int(np.prod(total.shape[:axis])), -1)
    return softmax(rows, axis=1).reshape(total.shape)


@kernel("BiasDropout", domain=DOMAIN, context=True)
def bias_dropout(
    ctx: RunContext,
    data: Array,
    bias: Array,
    residual: Array | None = None,
    ratio: Array | None = None,
    training_mode: Array | None = None,
    seed: int | None = None,
) -> tuple[Array, Array]:
    """dropout(data + bias) + residual, and the mask."""
    total = widen(data) + widen(bias)
    mask = np.ones(total.shape, bool)
    share = 0.5 if ratio is None else float(ratio.reshape(()))
    if training_mode is not None and bool(training_mode.reshape(())) and share:
        rng = ctx.rng if seed is None else np.random.RandomState(seed)
        mask = rng.uniform(size=total.shape) >= share
        total = total * mask * np.float32(0 if share == 1 else 1 / (1 - share))
    if residual is not None:
        total = total + widen(residual)
    return narrow(total, data.dtype), mask


@kernel("GatherBlockQuantized", domain=DOMAIN)
def gather_block_quantized(
    data: Array,
    indices: Array,
    scales: Array,
    zero_points: Array | None = None,
    gather_axis: int = 0,
    quantize_axis: int = 1,
    block_size: int = 128,
    bits: int = 4,
) -> Array:
    """The gathered slices of a table of integers, dequantized: a scale for each block along `quantize_axis`.

    Bytes hold 8 // bits values each, low bits first, with a zero point in their middle unless one is given.
    """
    quantized, gathered = normal_axis(quantize_axis, data.ndim), normal_axis(gather_axis, data.ndim)
    packed = data.dtype == np.uint8
    levels = unpacked(data, bits) if packed and bits < 8 else integer_values(data)
    values = np.take(levels, indices, gathered).astype(np.float32)
    axis = quantized + (indices.ndim - 1 if quantized > gathered else 0)
    if zero_points is None:
        zero: Array | None = np.asarray(np.float32(1 << (bits - 1))) if packed else None
    else:
        points = unpacked(zero_points, bits) if packed and bits < 8 else integer_values(zero_points)
        points = points[(*(slice(None),) * quantized, slice(scales.shape[quantized]))]
        zero = along(np.take(points, indices, gathered).astype(np.float32), values, axis, block_size, "zero_points")
    factors = along(np.take(widen(scales), indices, gathered), values, axis, block_size, "scales")
    return narrow((values if zero is None else values - zero) * factors, scales.dtype)


@kernel("Tokenizer", domain=DOMAIN, bound=True)
def tokenizer(
    mark: int, mincharnum: int, pad_value: str, separators: Sequence[str] | None = None, tokenexp: str = ""
) -> Callable[[Array], Array]:
    """The tokens of every string of X [C] or [N, C]: [.., most tokens of any], the rest filled with `pad_value`.

    A token is what lies between matches of the separators (regular expressions; "" alone means every character), or a
    match of `tokenexp`. With `mark` each list begins with U+0002 and ends with U+0003.
    """
    lists_of = token_lists(mark, mincharnum, separators, tokenexp)

    def tokenize(x: Array) -> Array:
        lists = lists_of(texts(x))
        longest, _ = filled(lists, pad_value)
        return strings(lists[0] if len(lists) == 1 else [*chain.from_iterable(lists)], (*x.shape, longest))

    return tokenize


def token_lists(
    mark: int, mincharnum: int, separators: Sequence[str] | None = None, tokenexp: str = ""
) -> Callable[[list[str]], list[list[str]]]:
    """A function that gives the tokens of each text; see `tokenizer`."""
    parts, least = _matches(tokenexp) if tokenexp else _between(separators), max(1, mincharnum)

    def lists_of(items: list[str]) -> list[list[str]]:
        lists = [[part for part in parts(text) if len(part) >= least] for text in items]
        return [["\x02", *tokens, "\x03"] for tokens in lists] if mark and any(lists) else lists

    return lists_of


def _matches(tokenexp: str) -> Callable[[str], Iterable[str]]:
    """A function that gives the matches of a regular expression in a text."""
    pattern = re.compile(tokenexp)
    return (lambda text: [match[0] for match in pattern.finditer(text)]) if pattern.groups else pattern.findall


SPECIAL = frozenset("\\^$.|?*+()[]{}")
"""Characters that mean something else in a regular expression."""


def _between(separators: Sequence[str] | None) -> Callable[[str], Iterable[str]]:
    """A function that gives what lies between the matches of regular expressions in a text, "" included."""
    if separators is not None and list(separators) == [""]:
        return list
    patterns = [re.compile(separator) for separator in separators or ()]
    if len(patterns) == 1:
        (only,) = separators or ()
        return patterns[0].split if SPECIAL.intersection(only) else lambda text: text.split(only)

    def between(text: str) -> list[str]:
        parts = [text]
        for pattern in patterns:
            parts = [piece for part in parts for piece in pattern.split(part)]
        return parts

    return between


@kernel("WordConvEmbedding", domain=DOMAIN)
def word_conv_embedding(
    sequence: Array,
    w: Array,
    b: Array,
    c: Array,
    char_embedding_size: int = -1,
    conv_window_size: int = -1,
    embedding_size: int = -1,
) -> Array:
    """Words [.., characters], ended by zeros, as vectors: the largest tanh(convolution + B) over each word's windows.

    W is [embedding, 1, window, character's size], C [characters, size]; a word of no characters becomes zeros.
    """
    window, words = w.shape[-2], sequence.reshape(-1, sequence.shape[-1])
    lengths = np.argmin(np.pad(words > 0, ((0, 0), (0, 1))), axis=1)
    if window > words.shape[1]:
        raise ValueError(f"W has a window of {window} characters: the words have {words.shape[1]}")
    letters = c[words]  # with those of 0 behind a word shorter than the window
    windows = np.lib.stride_tricks.sliding_window_view(letters, window, axis=1)  # [words, windows, size, window]
    activated = np.tanh(np.einsum("pnsk,eks->pne", windows, w.reshape(len(w), window, -1), optimize=True) + b)
    seen = np.arange(activated.shape[1]) < np.maximum(lengths - window + 1, 1)[:, None]
    y = np.where(seen[..., None], activated, -np.inf).max(axis=1)
    return np.where(lengths[:, None] > 0, y, 0).astype(w.dtype).reshape(*sequence.shape[:-1], len(w))


# -- shape rules -------------------------------------------------------------------------------------------------------


law("BiasDropout", "-> 0")
law("BiasSoftmax", "-> 0")
law("SampleOp", "-> 0")
law("WordConvEmbedding", "..., ? | F, ... -> 1: ..., F")
law("Tokenizer", "... -> 0: ..., ?")
law("DynamicTimeWarping", "-> int32: 2, ?")
law("Unique", "N -> 0: U | int64: N | int64: U")


rule("GridSample", domain=DOMAIN)(grid_sample_rule)
rule("Pad", domain=DOMAIN)(pad_rule)
rule("AttnLSTM", domain=DOMAIN)(recurrent)


@rule("SparseToDenseMatMul", domain=DOMAIN)
def sparse_to_dense_matmul(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """A product of matrices, either of which may be transposed."""
    left = a.shape[::-1] if a.shape and attributes.get("transA") else a.shape
    right = b.shape[::-1] if b.shape and attributes.get("transB") else b.shape
    return like(b, product_shape(left, right))


@rule("MaxpoolWithMask", domain=DOMAIN)
def maxpool_with_mask(ctx: InferContext, attributes: Attributes, x: Fact, mask: Fact) -> Fact:
    """The windows that fit each spatial dim."""
    return max_pool_rule(ctx, attributes, x)[0]


@rule("Range", domain=DOMAIN)
def range_with_default(
    ctx: InferContext, attributes: Attributes, start: Fact, limit: Fact, delta: MaybeFact = None
) -> Fact:
    """Range whose step is 1 unless given."""
    unit_step = TensorFact(elem_type(start), (), known(1))
    return range__rule(ctx, attributes, start, limit, unit_step if delta is None else delta)


@rule("GatherBlockQuantized", domain=DOMAIN)
def gather_block_quantized_rule(
    ctx: InferContext, attributes: Attributes, data: Fact, indices: Fact, scales: Fact, zero: MaybeFact = None
) -> Fact:
    """Gather, in the type of the scales; bytes hold several numbers along the last axis."""
    if data.shape is None or indices.shape is None:
        return like(scales, None)
    packed = 8 // attributes.get("bits", 4) if elem_type(data) == dtypes.UINT8 else 1
    shape: Shape = (*data.shape[:-1], data.shape[-1] * packed)
    axis = checked_axis(attributes.get("gather_axis", 0), len(shape), "gather_axis")
    return like(scales, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))


@rule("BitmaskDropout", domain=DOMAIN)
@rule("BitmaskBiasDropout", domain=DOMAIN)
def bitmask_dropout(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> tuple[Fact, Fact]:
    """The input's shape; the mask has a bit for each element, 32 in a number."""
    words = ctx.symbol(1, 0) if x.shape is None else ceil_div(product(x.shape), 32)
    return x.bare, TensorFact(dtypes.UINT32, (words,))


rule("GatherND", domain=DOMAIN)(gather_nd_rule)


law("Trilu", "-> 0")


# -- traits ------------------------------------------------------------------------------------------------------------


traits("AttnLSTM", OpTraits(category="recurrent", shape="shapes", flops=1), DOMAIN)
traits("BiasDropout BiasSoftmax", OpTraits(category="activation", shape="shapes", flops=1, elements="none"), DOMAIN)
traits("BitmaskBiasDropout BitmaskDropout", OpTraits(category="activation", shape="shapes", flops=1), DOMAIN)
traits("DynamicTimeWarping", OpTraits(category="signal", shape="data", flops=1), DOMAIN)
traits("GatherBlockQuantized", OpTraits(category="shape", shape="shapes", flops=1), DOMAIN)
traits("GridSample", OpTraits(category="pooling", shape="shapes", flops=1, out_bytes=grid_sample_bytes), DOMAIN)
traits("MaxpoolWithMask", OpTraits(category="pooling", shape="shapes", flops=1), DOMAIN)
traits("Pad", OpTraits(category="shape", shape="sizes", flops=0), DOMAIN)
traits("Range", OpTraits(category="constant", shape="elements", flops=0), DOMAIN)
traits("SampleOp", OpTraits(category="elementwise", shape="shapes", flops=1), DOMAIN)
traits("SparseToDenseMatMul", OpTraits(category="matrix", shape="other", flops=product_flops), DOMAIN)
traits("Tokenizer", OpTraits(category="text", shape="data", flops=1, quiet=True), DOMAIN)
traits("Unique", OpTraits(category="shape", shape="data", flops=1), DOMAIN)
traits("WordConvEmbedding", OpTraits(category="convolution", shape="shapes", flops=1), DOMAIN)
traits("GatherND", OpTraits(category="shape", shape="shapes", flops=0, layer="lookup"), DOMAIN)
traits("Trilu", OpTraits(category="shape", shape="shapes", flops=1, layer="comparison"), DOMAIN)
traits("EPContext Snpe", OpTraits(category="custom", shape="other", flops=1), DOMAIN)
