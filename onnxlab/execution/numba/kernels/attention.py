"""Attention: softmax(scale * (queries times keys) + mask) times values, without the scores ever leaving the cache.

A unit is a block of queries of one head. Its scores fill scratch memory, become weights there, and are multiplied by
the values; sums of weights are divided out at the end. A record:

    q, q_offsets            queries: [rows] bytes from q
    keys, values            packed as for `gemm`: [total / COLUMNS][depth][COLUMNS], [width / COLUMNS][total][COLUMNS]
    y, places               results: [rows] bytes from y, `width` contiguous elements each
    mask, mask_row          float32 to add to the scores, 0 where absent; bytes from one query to the next
    rows, total             queries and keys of a head
    depth, width            elements of a query and of a value
    row_block, row_blocks   queries of a unit, and units of a head
    batches                 table of int64 [head][q, keys, values, y, mask (bytes to add), keys used, place of the first
                            query, sinks (bytes to add)]
    scale, cap              bits of float32; scores become cap * tanh(score / cap) unless cap is 0
    left, right             how far a query sees from its place, -1 without bound
    empty                   what becomes of rows without weight: 0 NaN, 1 zeros where all is -inf, 2 zeros for any NaN
    score_row, score_places, result_row, result_places
                            layout of scratch memory: bytes of a row, and [row_block] bytes where rows begin
    sinks                   float32 of each head: one more score, of no key, so that weights add up to less than 1; 0
                            where absent; a row of scores has room for it
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.gemm import panel_rows
from onnxlab.execution.numba.kernels.rows import exponentials, top_of
from onnxlab.execution.numba.kernels.simd.lanes import WIDTH, float_of_bits, splat
from onnxlab.execution.numba.kernels.simd.memory import get_f32, get_i32, store, word
from onnxlab.execution.numba.kernels.simd.microkernel import COLUMNS
from onnxlab.execution.numba.kernels.simd.tail_vectors import get, put
from onnxlab.execution.numba.kernels.simd.vector_math import tanh
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_PANEL = COLUMNS * 4
_DEPTH = 512
"""Keys of which the values are summed up at once, so that they stay in the first cache."""
_LOWEST, _HIGHEST, _ZERO, _ONE = np.float32(-inf), np.float32(inf), np.float32(0.0), np.float32(1.0)


@helper
def _product(x, offsets, length, weights, depth, y, places, columns, first, last, added):
    """Rows times all panels of weights that are `depth` deep each; added to what is there where `added` is not 0."""
    for panel in range((columns + COLUMNS - 1) // COLUMNS):
        to = y + panel * _PANEL
        panel_rows(x, offsets, 0, 1, length, weights + panel * depth * _PANEL, 0, 0, to, places, to if added else 0,
                   places, _LOWEST, _HIGHEST, columns - panel * COLUMNS, first, last)  # fmt: skip


@helper
def _blank(scores, first, last):
    """Scores first … last - 1 are not to count."""
    for i in range(first, last, WIDTH):
        put(scores + i * 4, splat(_LOWEST), last - i)


@helper
def _mask_scores(scores, total, scale, cap, mask):
    """Scale, cap and mask a row of scores."""
    factor, most = splat(scale), splat(cap)
    for i in range(0, total, WIDTH):
        value = get(scores + i * 4, total - i) * factor
        if cap > _ZERO:
            value = most * tanh(value / most)
        if mask:
            value = value + get(mask + i * 4, total - i)
        store(scores + i * 4, value)


@helper
def _weights(scores, total, empty, sink):
    """Turn a row of scores into weights that are not divided yet; returns what to divide by. Whole vectors are read."""
    if sink:
        put(scores + total * 4, splat(get_f32(sink)), 1)
        total += 1
    whole = (total + WIDTH - 1) // WIDTH * WIDTH
    for i in range(total, whole):
        put(scores + i * 4, splat(_LOWEST), 1)
    top = top_of(scores, whole)
    if empty == 1 and top == _LOWEST:
        top = _ZERO
    divisor = exponentials(scores, scores, whole, top)
    if empty == 1 and divisor == _ZERO:
        divisor = _ONE
    elif empty == 2 and divisor != divisor:
        for i in range(0, whole, WIDTH):
            store(scores + i * 4, splat(_ZERO))
        divisor = _ONE
    return divisor


@helper
def _put_result(y, place, result, divisor, width):
    """Divide a row of results, and write it where it belongs."""
    target, share = y + get_i32(place), splat(get_f32(divisor))
    for i in range(0, width, WIDTH):
        put(target + i * 4, get(result + i * 4, width - i) / share, width - i)


@kernel
def attention(record: Any, unit: Any, scratch: Any) -> None:
    """Compute one block of query rows of one head."""
    rows, total, depth, width = word(record, 10), word(record, 11), word(record, 12), word(record, 13)
    row_block, row_blocks = word(record, 14), word(record, 15)
    scale, cap = float_of_bits(word(record, 17)), float_of_bits(word(record, 18))
    left, right = word(record, 19), word(record, 20)
    score_row, score_places = word(record, 22), word(record, 23)
    result_row, result_places = word(record, 24), word(record, 25)
    head = unit // row_blocks
    first = (unit - head * row_blocks) * row_block
    count = min(row_block, rows - first)
    table = word(record, 16) + head * 64
    q, keys = word(record, 2) + word(table, 0), word(record, 4) + word(table, 1)
    values = word(record, 5) + word(table, 2)
    y, mask, used, place = word(record, 6) + word(table, 3), word(record, 8), word(table, 5), word(table, 6)
    sink = word(record, 26) + word(table, 7) if word(record, 26) else 0
    results = scratch + row_block * score_row
    _product(q, word(record, 3) + first * 4, depth, keys, depth, scratch, score_places, total, 0, count, 0)
    plain = scale == _ONE and cap == _ZERO and mask == 0
    if mask:
        mask += word(table, 4) + first * word(record, 9)
    divisors = results + row_block * result_row
    for row in range(count):
        scores = scratch + row * score_row
        if not plain:
            _mask_scores(scores, total, scale, cap, mask + row * word(record, 9) if mask else 0)
        begin, end = 0, used
        if left >= 0:
            begin = min(max(place + first + row - left, 0), total)
        if right >= 0:
            end = min(end, max(place + first + row + right + 1, 0))
        _blank(scores, 0, begin)
        _blank(scores, end, total)
        put(divisors + row * 4, splat(_weights(scores, total, word(record, 21), sink)), 1)
    for start in range(0, total, _DEPTH):
        some = min(_DEPTH, total - start)
        _product(scratch + start * 4, score_places, some, values + start * _PANEL, total, results, result_places,
                 width, 0, count, start)  # fmt: skip
    for row in range(count):
        _put_result(y, word(record, 7) + (first + row) * 4, results + row * result_row, divisors + row * 4, width)
