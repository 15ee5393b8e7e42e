"""Attention as one record: queries by rows, keys and values packed, a mask wherever it lies."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from onnxlab.execution.numba.lowering.matrix_products import bits, emit_pack, matrices, panels, table
from onnxlab.execution.numba.machine.host import host
from onnxlab.execution.numba.plan.builder import PlanBuilder, Word
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.plan import SCRATCH
from onnxlab.execution.numba.plan.views import Array, View

_BLOCK = 160 << 10  # most bytes of a unit's scores and results where several rows fit, so that these stay in the cache
_SPARE = 1 << 10
_RATE = 40.0  # multiplications a nanosecond, about
NAN, ZEROS, ZEROS_FOR_NAN = range(3)
"""Results of a query for which no key has weight: NaN, zeros where all scores are -inf, or zeros for any NaN."""


@dataclass(frozen=True, slots=True)
class Attention:
    """softmax(scale · Q · K + mask) · V; leading axes broadcast.

    Attributes:
        q: [..., S, D], with contiguous elements.
        k: [..., D, T].
        v: [..., T, E].
        target: [..., S, E], with contiguous elements.
        mask: float32, broadcasts to [..., S, T].
        cap: scores become cap · tanh(score / cap), unless it is 0.
        left, right: number of keys before and after its own position that a query attends to, -1 for all.
        place, used: of each head, the position of its first query among the keys, and the number of keys; numbers, or
            arrays that broadcast to the leading axes.
        empty: NAN, ZEROS or ZEROS_FOR_NAN.
        sinks: float32, broadcasts to the leading axes: one more score of each query, which belongs to no key.
    """

    q: View
    k: View
    v: View
    target: View
    scale: float
    mask: View | None = None
    cap: float = 0.0
    left: int = -1
    right: int = -1
    place: Any = 0
    used: Any = None
    empty: int = NAN
    sinks: View | None = None

    @property
    def lead(self) -> tuple[int, ...]:
        """The leading dims: batch and heads."""
        return self.target.shape[:-2]


def _row_bytes(columns: int) -> int:
    """Bytes of a row of whole panels, such that rows do not fall on the same lines of the cache."""
    nbytes = panels(columns) * host().columns * 4
    return nbytes + 64 if nbytes % 2048 == 0 else nbytes


def rows_of_unit(rows: int, keys: int, width: int) -> int:
    """The number of queries of a unit, whole tiles; 0 where not even one tile fits."""
    tile, row_bytes = host().rows, _row_bytes(keys) + _row_bytes(width) + 4
    whole = min(max(tile, _BLOCK // row_bytes // tile * tile), -(-rows // tile) * tile)
    return whole if tile * row_bytes <= SCRATCH - _SPARE else 0


def emit_attention(builder: PlanBuilder, attention: Attention) -> View:
    """Append the records; returns where the result is.

    Raises:
        OverflowError: there are more keys than scratch memory has room for.
    """
    rows, width = attention.target.shape[-2:]
    depth, total = attention.k.shape[-2:]
    wide = total if attention.sinks is None else total + 1
    block = rows_of_unit(rows, wide, width)
    if not block:
        raise OverflowError(f"attention over {total} keys")
    keys, values = emit_pack(builder, attention.k), emit_pack(builder, attention.v)
    mask = None if attention.mask is None else _mask(builder, attention.mask, (*attention.lead, rows, total))
    row_blocks = -(-rows // block)
    heads = max(1, prod(attention.lead))
    score_row, result_row = _row_bytes(wide), _row_bytes(width)
    steps = np.arange(block, dtype=np.int64)
    inner_q, inner_y = (view.at(0, view.shape[-2:], view.strides[-2:]) for view in (attention.q, attention.target))
    words: dict[str, Word] = {
        "q": attention.q.where, "q_offsets": builder.keep(table(inner_q.offsets(1)[None])), "keys": keys.where,
        "values": values.where, "y": attention.target.where, "places": builder.keep(table(inner_y.offsets(1)[None])),
        "mask": 0 if mask is None else mask.where, "mask_row": 0 if mask is None else mask.strides[-2], "rows": rows,
        "total": total, "depth": depth, "width": width, "row_block": block, "row_blocks": row_blocks,
        "batches": builder.keep(_batches(attention, keys, values, mask)), "scale": bits(attention.scale),
        "cap": bits(attention.cap), "left": attention.left, "right": attention.right, "empty": attention.empty,
        "score_row": score_row, "score_places": builder.keep(table(steps[None] * score_row)),
        "result_row": result_row, "result_places": builder.keep(table(steps[None] * result_row)),
        "sinks": 0 if attention.sinks is None else attention.sinks.where,
    }  # fmt: skip
    work = heads * rows * total * ((depth + width) / _RATE + 0.5)
    reads = [attention.q, keys, values, mask, attention.sinks]
    builder.emit("attention", heads * row_blocks, words, reads, [attention.target], work=work)
    return attention.target


def _mask(builder: PlanBuilder, mask: View, shape: tuple[int, ...]) -> View:
    """The mask over all scores, with contiguous elements along the keys."""
    if mask.shape[-1:] != shape[-1:] or (mask.strides[-1] != 4 and shape[-1] > 1):
        mask = contiguous(builder, mask.broadcast((*mask.shape[:-1], shape[-1])))
    return mask.broadcast(shape)


def _batches(attention: Attention, keys: View, values: View, mask: View | None) -> Array:
    """[heads, 8] int64: bytes to add to q, keys, values, y and mask, keys used, place of the first query, sink."""
    lead, axes = attention.lead, len(attention.lead)
    batches = np.zeros((max(1, prod(lead)), 8), np.int64)
    batches[:, 0] = attention.q.broadcast((*lead, *attention.q.shape[-2:])).offsets(axes)
    for column, view, packed in ((1, attention.k, keys), (2, attention.v, values)):
        batches[:, column] = matrices(packed, view.shape[:-2]).broadcast(lead).offsets(axes)
    batches[:, 3] = attention.target.offsets(axes)
    if mask is not None:
        batches[:, 4] = mask.offsets(axes)
    count = attention.k.shape[-1]
    used = np.broadcast_to(count if attention.used is None else attention.used, lead)
    batches[:, 5] = np.clip(used.reshape(-1), 0, count)
    batches[:, 6] = np.broadcast_to(attention.place, lead).reshape(-1)
    if attention.sinks is not None:
        batches[:, 7] = attention.sinks.broadcast(lead).offsets(axes)
    return batches
