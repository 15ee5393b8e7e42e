"""Products of matrices and convolutions: rows addressed by tables, times packed panels, in batches.

A record (int64 words after the address of the code and the number of units):

    x, offsets, tap_bytes, taps, length    what is multiplied; see `microkernel`
    weights                                 [batch of weights][panel][taps * length][COLUMNS]
    bias, y, places, residual, sources      0 where absent; `bias` is padded to whole panels
    low, high                               bits of float32
    rows, columns                           of the result of one batch
    row_block, panel_block                  what one unit takes
    row_blocks, panel_blocks                how many there are of each
    batches                                 table of int64 [batch][x, weights, bias, y, residual]: bytes to add
    zeros                                   address of as many zeros as `length`
"""

from __future__ import annotations

from typing import Any

from onnxlab.execution.numba.kernels.simd.lanes import WIDTH, float_of_bits
from onnxlab.execution.numba.kernels.simd.memory import word
from onnxlab.execution.numba.kernels.simd.microkernel import (
    COLUMNS,
    HALF_ROWS,
    ROWS,
    STRETCH,
    VECTORS,
    make_tile,
)
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_PANEL = COLUMNS * 4
_FEW_ROWS = HALF_ROWS - 1


@helper
def span(record, unit):
    """(its row of the table of batches, first and last row, first and last panel) of a unit; the last are excluded."""
    row_block, panel_block, row_blocks, panel_blocks = (
        word(record, 17), word(record, 18), word(record, 19), word(record, 20),
    )  # fmt: skip
    batch = unit // (row_blocks * panel_blocks)
    rest = unit - batch * (row_blocks * panel_blocks)
    number = rest // panel_blocks
    first_row, first_panel = number * row_block, (rest - number * panel_blocks) * panel_block
    last_row = min(first_row + row_block, word(record, 15))
    last_panel = min(first_panel + panel_block, (word(record, 16) + COLUMNS - 1) // COLUMNS)
    return word(record, 21) + batch * 40, first_row, last_row, first_panel, last_panel


def _rows_of(vectors: int) -> Any:
    """`panel_rows` for panels of which so many vectors are used."""
    full, half, few, single = (make_tile(rows, vectors) for rows in (ROWS, HALF_ROWS, _FEW_ROWS, 1))

    @helper
    def rows_of(x, offsets, tap_bytes, taps, length, w, zeros, bias, y, places, residual, sources, low, high, columns,
                first, last):  # fmt: skip
        panel = taps * length * _PANEL
        ahead, row, rows = w + panel, first, last - first
        while row < last:
            o, p, s = offsets + row * 4, places + row * 4, sources + row * 4
            left = last - row
            if left > 2 * HALF_ROWS or HALF_ROWS < left <= ROWS:
                pace = STRETCH * ROWS // rows
                full(x, o, tap_bytes, taps, length, w, zeros, bias, y, p, residual, s, low, high, columns, ahead, pace)
                row += ROWS
                ahead += panel * ROWS // rows
            elif left > _FEW_ROWS:
                pace = STRETCH * HALF_ROWS // rows
                half(x, o, tap_bytes, taps, length, w, zeros, bias, y, p, residual, s, low, high, columns, ahead, pace)
                row += HALF_ROWS
                ahead += panel * HALF_ROWS // rows
            elif left > 1:
                pace = STRETCH * _FEW_ROWS // rows
                few(x, o, tap_bytes, taps, length, w, zeros, bias, y, p, residual, s, low, high, columns, ahead, pace)
                row += _FEW_ROWS
            else:
                single(x, o, tap_bytes, taps, length, w, zeros, bias, y, p, residual, s, low, high, columns, ahead,
                       STRETCH // rows)  # fmt: skip
                row += 1

    return rows_of


_one, _two, _all = map(_rows_of, (1, 2, VECTORS))


@helper
def panel_rows(x, offsets, tap_bytes, taps, length, w, zeros, bias, y, places, residual, sources, low, high, columns,
               first, last):  # fmt: skip
    """Rows first … last - 1 times one panel of weights; `columns` is how many are left from this panel on.

    Of few columns no more vectors are computed than there are, in powers of two.
    """
    if columns <= WIDTH:
        _one(x, offsets, tap_bytes, taps, length, w, zeros, bias, y, places, residual, sources, low, high, columns,
             first, last)  # fmt: skip
    elif VECTORS > 2 and columns <= 2 * WIDTH:
        _two(x, offsets, tap_bytes, taps, length, w, zeros, bias, y, places, residual, sources, low, high, columns,
             first, last)  # fmt: skip
    else:
        _all(x, offsets, tap_bytes, taps, length, w, zeros, bias, y, places, residual, sources, low, high, columns,
             first, last)  # fmt: skip


@kernel
def gemm(record: Any, unit: Any, scratch: Any) -> None:
    """Multiply one tile of rows by packed panels, then add bias and residual and clamp."""
    x, offsets, tap_bytes, taps = word(record, 2), word(record, 3), word(record, 4), word(record, 5)
    length, weights, bias, y = word(record, 6), word(record, 7), word(record, 8), word(record, 9)
    places, residual, sources = word(record, 10), word(record, 11), word(record, 12)
    low, high = float_of_bits(word(record, 13)), float_of_bits(word(record, 14))
    columns, zeros = word(record, 16), word(record, 22)
    table, first_row, last_row, first_panel, last_panel = span(record, unit)
    x += word(table, 0)
    weights += word(table, 1)
    y += word(table, 3)
    if bias:
        bias += word(table, 2)
    if residual:
        residual += word(table, 4)
    for panel in range(first_panel, last_panel):
        panel_rows(
            x, offsets, tap_bytes, taps, length, weights + panel * (taps * length * _PANEL), zeros,
            bias + panel * _PANEL if bias else 0, y + panel * _PANEL, places,
            residual + panel * _PANEL if residual else 0, sources, low, high, columns - panel * COLUMNS,
            first_row, last_row,
        )  # fmt: skip
