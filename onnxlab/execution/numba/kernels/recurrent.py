"""Recurrent layers: LSTM, GRU and RNN over time, one unit for each direction and block of the batch.

The inputs times their weights are there already (one product for all steps). A unit keeps its states, gates and
tables in `work` from one record to the next, so that a long sequence is several records. A record:

    projected, p_step, p_row   [steps][batch][directions][gates][padded] float32, and bytes of a step and a row
    weights             recurrent ones, [directions][gates][panels][hidden][COLUMNS]; or pairs or quads of levels
    scales              of these levels, for each direction: scales, int32 sums of columns, both [gates][padded]; 0 for
                        float32
    h0, c0              [directions][batch][hidden], 0 where they are zeros
    y, y_step, y_direction, y_row   results and their strides
    h_last, c_last      [directions][batch][hidden]
    lengths             int32 [batch], 0 where all sequences have all steps
    first, last, steps  those of this record, and all
    batch, rows, hidden batch, its rows of a unit, and hidden units
    direction           0 forward, 1 reverse, 2 both
    bias                of a GRU whose reset gate comes after the product: [directions][padded]
    peepholes           [directions][3][padded to vectors], 0 where absent
    functions           int64 [directions][3][code, alpha, beta]
    kind, flag          0 LSTM (flag 1: input and forget gate are coupled), 1 GRU (flag 1: reset after the
                        product), 2 RNN; flag 2: pairs are of int8; 4: quads
    clip                bits of float32
    table               int32: bytes of rows of states, with the last repeated
    work, work_bytes    memory of each unit
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels import dot, dot_u8s8
from onnxlab.execution.numba.kernels.gates import gru_row, lstm_row, plane_of, reset_row, rnn_row
from onnxlab.execution.numba.kernels.gemm import panel_rows
from onnxlab.execution.numba.kernels.ranges import quantize_bytes, quantize_rows
from onnxlab.execution.numba.kernels.simd.lanes import BYTES, float_of_bits, splat
from onnxlab.execution.numba.kernels.simd.memory import clear_bytes, copy_bytes, get_i32, load, put_i32, store, word
from onnxlab.execution.numba.kernels.simd.microkernel import COLUMNS, ROWS
from onnxlab.execution.numba.kernels.simd.narrow_integers import load_i32
from onnxlab.execution.numba.kernels.simd.single_row import STREAMS, wide_row
from onnxlab.execution.numba.machine.object_cache import helper, kernel
from onnxlab.execution.numba.machine.records import GRU, LSTM

(
    PROJECTED, P_STEP, P_ROW, WEIGHTS, SCALES, H0, C0, Y, Y_STEP, Y_DIRECTION, Y_ROW, H_LAST, C_LAST, LENGTHS, FIRST,
    LAST, STEPS, BATCH, ROWS_OF_UNIT, HIDDEN, DIRECTION, BIAS, PEEPHOLES, FUNCTIONS, KIND, FLAG, CLIP, TABLE, WORK,
    WORK_BYTES,
) = range(2, 32)  # fmt: skip
_PANEL = COLUMNS * 4
_LOWEST, _HIGHEST = np.float32(-inf), np.float32(inf)
_tile_sums, _quad_sums = dot.tile_sums, dot_u8s8.quad_sums


@helper
def _times(x, places, rows, hidden, weights, y, residual, sources, bias):
    """y = x times the weights of one gate plus rows of the residual or a bias, 0 where absent; x, y [rows][padded]."""
    panels, step = (hidden + COLUMNS - 1) // COLUMNS, hidden * _PANEL
    done = 0
    if rows == 1:
        extra = residual + get_i32(sources) if residual else bias
        while done + STREAMS <= panels:
            at = done * _PANEL
            wide_row(x, hidden, weights + done * step, step, y + at, extra + at if extra else 0)
            done += STREAMS
    for panel in range(done, panels):
        w, at = weights + panel * step, panel * _PANEL
        behind, more = residual + at if residual else 0, bias + at if bias else 0
        left = plane_of(hidden) // 4 - panel * COLUMNS
        panel_rows(x, places, 0, 1, hidden, w, 0, more, y + at, places, behind, sources, _LOWEST, _HIGHEST, left, 0,
                   rows)  # fmt: skip


@helper
def _quantized(record, h, rows, hidden, padded, levels):
    """States to levels in the form of the weights: (scale, zero point as a whole number, 0 where it is off them)."""
    if word(record, FLAG) & 4:
        scale, zero = quantize_bytes(h, rows, hidden, padded, levels)
        return scale, np.int64(zero)
    return quantize_rows(h, rows, hidden, padded, levels), 0


@helper
def _times_levels(record, number, levels, table, places, rows, h, padded, y, residual, sources, scratch):
    """`_times` of levels with their scale and weights that are levels with theirs, all gates in a row."""
    hidden, flag, line = word(record, HIDDEN), word(record, FLAG), padded * 4
    scale, zero = _quantized(record, h, rows, hidden, padded, levels)
    depth = (hidden + 3) // 4 if flag & 4 else (hidden + 1) // 2
    panels, step, factor = padded // COLUMNS, depth * _PANEL // (2 if flag & 2 else 1), splat(scale)
    weights, scales = word(record, WEIGHTS) + number * 4 * panels * step, word(record, SCALES) + number * 8 * line
    if flag & 4:  # the table is of what is added to levels
        for row in range(rows):
            put_i32(table + row * 4, -zero)
    for panel in range(4 * panels):
        w, at = weights + panel * step, panel * _PANEL
        gate = panel // panels
        to = y + gate * rows * line + at - gate * line
        columns, row = hidden - (panel - gate * panels) * COLUMNS, 0
        while row < rows:
            left, o = rows - row, table + row * 4
            if flag & 4:
                x = levels + row * (line // 2)
                count = _quad_sums(left, columns, x, line // 2, depth, w, scales + 4 * line + at, o, scratch)
            else:
                count = _tile_sums(flag & 2, left, levels, o, 0, 1, depth, w, 0, scratch)
            for v in range(0, min(_PANEL, columns * 4), BYTES):
                gain = load(scales + at + v) * factor
                for m in range(row, min(row + count, rows)):
                    value = load_i32(scratch + (m - row) * _PANEL + v) * gain
                    behind = residual + at + v + get_i32(sources + m * 4)
                    store(to + get_i32(places + m * 4) + v, value + load(behind))
            row += count


@helper
def _begin(state, start, rows, hidden, padded, tables):
    """Set the states of a unit: to zeros, or to rows of the initial ones."""
    clear_bytes(state, rows * padded * 4)
    if start:
        for row in range(rows):
            copy_bytes(state + row * padded * 4, start + row * hidden * 4, hidden * 4)
    if tables:
        for row in range(rows + ROWS):
            put_i32(tables + row * 4, min(row, rows - 1) * padded * 2)


@helper
def _time(t, steps, lengths, row, backwards):
    """The step of the inputs that a sequence is at, -1 where it has ended."""
    length = min(get_i32(lengths + row * 4), steps) if lengths else steps
    now = t
    if t >= length:
        now = -1
    elif backwards:
        now = length - 1 - t
    return now


@helper
def _products(record, number, rows, padded, h, gates, spare, levels, table, sources, scratch):
    """The recurrent products of one step, for all rows."""
    kind, hidden, places = word(record, KIND), word(record, HIDDEN), word(record, TABLE)
    count = 4 if kind == LSTM else 3 if kind == GRU else 1
    line = padded * 4
    plane, residual = rows * line, word(record, PROJECTED) + number * count * line
    if word(record, SCALES):
        _times_levels(record, number, levels, table, places, rows, h, padded, gates, residual, sources, scratch)
        return
    weights = word(record, WEIGHTS) + number * count * hidden * line
    for gate in range(2 if kind == GRU else count):
        w = weights + gate * hidden * line
        _times(h, places, rows, hidden, w, gates + gate * plane, residual + gate * line, sources, 0)
    if kind != GRU:
        return
    w, residual = weights + 2 * hidden * line, residual + 2 * line
    if word(record, FLAG):
        bias = word(record, BIAS) + number * line if word(record, BIAS) else 0
        _times(h, places, rows, hidden, w, spare, 0, sources, bias)
        for row in range(rows):
            copy_bytes(gates + 2 * plane + row * line, residual + get_i32(sources + row * 4), line)
        return
    functions, clip = word(record, FUNCTIONS) + number * 72, float_of_bits(word(record, CLIP))
    for row in range(rows):
        reset_row(gates + row * line, plane, hidden, h + row * line, spare + row * line, functions, clip)
    _times(spare, places, rows, hidden, w, gates + 2 * plane, residual, sources, 0)


@helper
def _advance(record, number, row, rows, padded, h, c, gates, spare):
    """The gates of one row to its new state."""
    kind, hidden, flag, at = word(record, KIND), word(record, HIDDEN), word(record, FLAG), row * padded * 4
    plane, functions, clip = rows * padded * 4, word(record, FUNCTIONS) + number * 72, float_of_bits(word(record, CLIP))
    if kind == LSTM:
        peepholes = word(record, PEEPHOLES)
        if peepholes:
            peepholes += number * 3 * plane_of(hidden)
        lstm_row(gates + at, plane, hidden, h + at, c + at, peepholes, functions, clip, flag & 1)
    elif kind == GRU:
        gru_row(gates + at, plane, hidden, h + at, spare + at if flag else 0, functions, clip)
    else:
        rnn_row(gates + at, hidden, h + at, functions, clip)


@kernel
def recurrent(record: Any, unit: Any, scratch: Any) -> None:
    """Run all time steps of an RNN, GRU or LSTM for one unit of the batch."""
    batch, hidden, steps, lengths = (
        word(record, BATCH),
        word(record, HIDDEN),
        word(record, STEPS),
        word(record, LENGTHS),
    )
    blocks = (batch + word(record, ROWS_OF_UNIT) - 1) // word(record, ROWS_OF_UNIT)
    number = unit // blocks
    first_row = (unit - number * blocks) * word(record, ROWS_OF_UNIT)
    rows = min(word(record, ROWS_OF_UNIT), batch - first_row)
    padded = (hidden + COLUMNS - 1) // COLUMNS * COLUMNS
    line, state = padded * 4, (number * batch + first_row) * hidden * 4
    h = word(record, WORK) + unit * word(record, WORK_BYTES)
    c, gates, spare = h + rows * line, h + 2 * rows * line, h + 6 * rows * line
    levels = h + 7 * rows * line
    sources, table = levels + rows * line, levels + rows * line + (rows + ROWS) * 4
    if word(record, FIRST) == 0:
        _begin(h, word(record, H0) + state if word(record, H0) else 0, rows, hidden, padded, table)
        _begin(c, word(record, C0) + state if word(record, C0) else 0, rows, hidden, padded, 0)
    backwards = word(record, DIRECTION) == 1 or number == 1
    if lengths:
        lengths += first_row * 4
    for t in range(word(record, FIRST), word(record, LAST)):
        for row in range(rows + ROWS):
            at = min(row, rows - 1)
            now = max(0, _time(t, steps, lengths, at, backwards))
            put_i32(sources + row * 4, now * word(record, P_STEP) + (first_row + at) * word(record, P_ROW))
        _products(record, number, rows, padded, h, gates, spare, levels, table, sources, scratch)
        for row in range(rows):
            now = _time(t, steps, lengths, row, backwards)
            y = word(record, Y) + number * word(record, Y_DIRECTION) + (first_row + row) * word(record, Y_ROW)
            if now < 0:
                clear_bytes(y + t * word(record, Y_STEP), hidden * 4)
            else:
                _advance(record, number, row, rows, padded, h, c, gates, spare)
                copy_bytes(y + now * word(record, Y_STEP), h + row * line, hidden * 4)
    if word(record, LAST) == steps:
        for row in range(rows):
            copy_bytes(word(record, H_LAST) + state + row * hidden * 4, h + row * line, hidden * 4)
            if word(record, C_LAST):
                copy_bytes(word(record, C_LAST) + state + row * hidden * 4, c + row * line, hidden * 4)
