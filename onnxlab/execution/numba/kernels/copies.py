"""Copies between any two strided layouts: transposes, slices, concatenations, packing, broadcasting.

A record: source, target, item (bytes of an element), inner (elements of the innermost dim), then five outer dims as
(size, source stride, target stride) from the outermost in, and the strides of the innermost dim. A unit is one index
of the two outermost dims. Strides are in bytes; the planner orders the dims so that the target's innermost stride is
the smallest, and the dim before it is the one in which the source is closest to contiguous.
"""

from __future__ import annotations

from typing import Any

from onnxlab.execution.numba.kernels.simd.lanes import WIDTH as _WIDTH
from onnxlab.execution.numba.kernels.simd.memory import (
    clear_bytes,
    copy_bytes,
    get_i16,
    get_i32,
    get_i64,
    get_u8,
    put_i16,
    put_i32,
    put_i64,
    put_u8,
    transpose_store,
    word,
)
from onnxlab.execution.numba.machine.object_cache import helper, kernel


@helper
def _line(source, target, count, step, stride, item):
    """One run of elements."""
    if step == item and stride == item:
        copy_bytes(target, source, count * item)
    elif item == 4:
        for _ in range(count):
            put_i32(target, get_i32(source))
            source += step
            target += stride
    elif item == 8:
        for _ in range(count):
            put_i64(target, get_i64(source))
            source += step
            target += stride
    elif item == 2:
        for _ in range(count):
            put_i16(target, get_i16(source))
            source += step
            target += stride
    else:
        for _ in range(count):
            put_u8(target, get_u8(source))
            source += step
            target += stride


@helper
def _turn(source, target, rows, count, row_from, row_to, step):
    """A transpose of 4-byte elements: the source is contiguous along rows, the target along the run."""
    row = 0
    while row + _WIDTH <= rows:
        column = 0
        while column + _WIDTH <= count:
            transpose_store(source + row * row_from + column * step, step, target + row * row_to + column * 4, row_to)
            column += _WIDTH
        for r in range(row, row + _WIDTH):
            _line(source + r * row_from + column * step, target + r * row_to + column * 4, count - column, step, 4, 4)
        row += _WIDTH
    for r in range(row, rows):
        _line(source + r * row_from, target + r * row_to, count, step, 4, 4)


@kernel
def copy(record: Any, unit: Any, scratch: Any) -> None:
    """Copy one unit of lines between two layouts."""
    item = word(record, 4)
    size1 = word(record, 8)
    outer = unit // size1
    inner = unit - outer * size1
    source = word(record, 2) + outer * word(record, 6) + inner * word(record, 9)
    target = word(record, 3) + outer * word(record, 7) + inner * word(record, 10)
    rows, row_from, row_to = word(record, 17), word(record, 18), word(record, 19)
    count, step, stride = word(record, 20), word(record, 21), word(record, 22)
    turned = item == 4 and row_from == 4 and stride == 4 and step != 4
    for i in range(word(record, 11)):
        for j in range(word(record, 14)):
            a = source + i * word(record, 12) + j * word(record, 15)
            b = target + i * word(record, 13) + j * word(record, 16)
            if turned:
                _turn(a, b, rows, count, row_from, row_to, step)
            else:
                for row in range(rows):
                    _line(a + row * row_from, b + row * row_to, count, step, stride, item)


@kernel
def clear(record: Any, unit: Any, scratch: Any) -> None:
    """Zero `item` bytes from `target`; a unit is 64 KiB."""
    begin = unit * 65536
    clear_bytes(word(record, 3) + begin, min(word(record, 4) - begin, 65536))
