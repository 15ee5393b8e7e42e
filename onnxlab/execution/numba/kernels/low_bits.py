"""Products with weights of a few bits, which get their scale and zero point by blocks of the depth.

Some depth of a panel at a time is made float32 in memory of the thread, small enough for the first cache, and
multiplied by the tiles of float products. A record:

    x, offsets          rows of float32, contiguous, at int32 offsets
    y, places           results, likewise; columns contiguous
    rows, columns, depth
    weights             [panels][depth][COLUMNS] uint8; or with `nibbles` [panels][ceil(depth / 2)][COLUMNS], of which
                        the lower four bits are for even depths
    scales, zeros       [panels][blocks][COLUMNS] float32; a weight is (level - zero) * scale
    block, blocks       depth of a block, and how many there are
    unit_panels         what one unit takes
    bias                float32 padded to whole panels, 0 where absent
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.gemm import panel_rows
from onnxlab.execution.numba.kernels.simd.lanes import WIDTH
from onnxlab.execution.numba.kernels.simd.memory import get_i32, load, store, word
from onnxlab.execution.numba.kernels.simd.microkernel import COLUMNS
from onnxlab.execution.numba.kernels.simd.narrow_integers import load_high, load_low, load_u8
from onnxlab.execution.numba.kernels.simd.single_row import STREAMS, wide_row
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_PANEL = COLUMNS * 4
_LOWEST, _HIGHEST = np.float32(-inf), np.float32(inf)
_SHALLOW, _DEEP = 64, 256
"""Depth that is made float32 at once: of STREAMS panels for one row, of one panel for many."""


@helper
def _widen(record, panel, first, count, target):
    """`count` depths of a panel, from an even one on, as [count][COLUMNS] float32."""
    block, nibbles = word(record, 12), word(record, 14)
    lines = (word(record, 8) + 1) // 2 if nibbles else word(record, 8)
    weights, side = word(record, 9) + panel * lines * COLUMNS, panel * word(record, 13) * _PANEL
    done = 0
    while done < count:
        number = (first + done) // block
        last = min(count, (number + 1) * block - first)
        at = side + number * _PANEL
        for v in range(0, COLUMNS, WIDTH):
            scale, zero = load(word(record, 10) + at + v * 4), load(word(record, 11) + at + v * 4)
            for k in range(done, last):
                depth, to = first + k, target + (k * COLUMNS + v) * 4
                if nibbles == 0:
                    store(to, (load_u8(weights + depth * COLUMNS + v) - zero) * scale)
                elif depth & 1:
                    store(to, (load_high(weights + (depth >> 1) * COLUMNS + v) - zero) * scale)
                else:
                    store(to, (load_low(weights + (depth >> 1) * COLUMNS + v) - zero) * scale)
        done = last


@helper
def _one_row(record, panel, scratch):
    """One row times STREAMS panels."""
    depth, bias = word(record, 8), word(record, 16)
    x, y = word(record, 2) + get_i32(word(record, 3)), word(record, 5) + get_i32(word(record, 4)) + panel * _PANEL
    for first in range(0, depth, _SHALLOW):
        count = min(_SHALLOW, depth - first)
        for stream in range(STREAMS):
            _widen(record, panel + stream, first, count, scratch + stream * count * _PANEL)
        before = y if first else bias + panel * _PANEL if bias else 0
        wide_row(x + first * 4, count, scratch, count * _PANEL, y, before)


@helper
def _rows(record, panel, scratch):
    """All rows times one panel."""
    rows, depth, bias = word(record, 6), word(record, 8), word(record, 16)
    columns, y = word(record, 7) - panel * COLUMNS, word(record, 5) + panel * _PANEL
    for first in range(0, depth, _DEEP):
        count, x = min(_DEEP, depth - first), word(record, 2) + first * 4
        _widen(record, panel, first, count, scratch)
        more, before = bias + panel * _PANEL if bias and first == 0 else 0, y if first else 0
        panel_rows(x, word(record, 3), 0, 1, count, scratch, 0, more, y, word(record, 4), before, word(record, 4),
                   _LOWEST, _HIGHEST, columns, 0, rows)  # fmt: skip


@kernel
def low_bits(record: Any, unit: Any, scratch: Any) -> None:
    """Multiply rows by one unit of panels of 4-bit or 2-bit weights."""
    columns, panel = word(record, 7), unit * word(record, 15)
    last = min(panel + word(record, 15), (columns + COLUMNS - 1) // COLUMNS)
    while panel < last:
        if word(record, 6) == 1 and panel + STREAMS <= last and (panel + STREAMS) * COLUMNS <= columns:
            _one_row(record, panel, scratch)
            panel += STREAMS
        else:
            _rows(record, panel, scratch)
            panel += 1
