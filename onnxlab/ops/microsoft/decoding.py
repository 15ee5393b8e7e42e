"""com.microsoft attention of decoders: DecoderMaskedMultiHeadAttention, SparseAttention.

Sources: docs/ContribOperators.md and the schemas of ONNX Runtime.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from math import sqrt

import numpy as np

from onnxlab.limits import RunContext
from onnxlab.ops.base.kernel_helpers import Array, narrow, widen
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.microsoft.attention import cache, mask_bias, unpacked
from onnxlab.ops.microsoft.fused import DOMAIN
from onnxlab.ops.onnx.math.matmul import for_blas
from onnxlab.ops.onnx.nn.attention import grouped, heads, masked_softmax, merged, rotate, scaled_scores

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

    Keys and values are projected ones of the token, or packed into the query, or of another attention [B, H, T, d].
    With a shared buffer past ones stand at the front of [B, H, most, d]. cache_indirection [b, beams, most] says from
    which beam each past token of a beam comes.
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

    The blocks that each block of queries sees are rows of a CSR matrix [layouts, …]; layouts go round among the heads.
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
    for layout, (ends, found) in enumerate(zip(rows.tolist(), columns, strict=True)):
        for row in range(count):
            seen[layout, row, found[ends[row] : ends[row + 1]]] = True
    return seen[np.arange(num_heads) % len(rows)]


traits(
    "DecoderAttention DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention PackedAttention "
    "PackedMultiHeadAttention PackedSparseAttentionIndexer PagedAttention SparseAttention SparseAttentionIndexer "
    "SparsePagedAttention",
    OpTraits(category="matrix", shape="elements", flops=1),
    DOMAIN,
)
traits(
    "DynamicSparseAttention GatedDeltaNet LongformerAttention QOrderedAttention QOrderedLongformerAttention",
    OpTraits(category="matrix", shape="shapes", flops=1),
    DOMAIN,
)
