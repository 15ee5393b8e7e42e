"""Elements by index: Gather along an axis, weighted sums of a few elements as Resize has them, Scatter and its kin.

The first two see the source as [outer, axis, inner] with contiguous inner elements, and write [outer, count, inner].
A record of `gather`:

    source, target          addresses
    outer, count            how many
    source_outer, target_outer, source_step, target_step   bytes from one to the next
    size                    elements of the source's axis; indices below 0 count from its end
    indices, wide           addresses of int32, or of int64 where `wide` is 1
    inner                   bytes of the elements that one index takes
    fault                   address of an int64 that becomes 1 where an index is beyond the axis
    unit                    pairs of outer and index that one unit takes

and of `resample`, of float32:

    source, target, outer, count, source_outer, target_outer, target_step, unit   as above
    taps, offsets, weights  how many elements are summed up; [count, taps] int32 bytes, and float32
    columns                 inner elements

and of `scatter`, elements at tuples of indices, done by one unit, since places may come again:

    target, rows     what is written to (what is read, of a gather), and how many tuples there are
    parts            indices of a tuple
    sizes, steps     int64 [parts]: elements of an axis, and bytes from one to the next
    indices, wide    int32, or int64 where `wide` is 1: [rows][parts]; negative ones count from the end
    places           int64 [rows]: bytes to begin from, 0 where absent
    updates          [rows][inner], contiguous: what is written, or gathered
    inner, item      elements of a tuple, and bytes of one
    reduction        of REDUCTIONS; all but "none" and "take" are of float32
    fault            address of an int64 that becomes 1 where an index is beyond its axis
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.simd.lanes import WIDTH, fma, splat
from onnxlab.execution.numba.kernels.simd.memory import (
    copy_bytes,
    get_f32,
    get_i16,
    get_i32,
    get_i64,
    get_u8,
    put_f32,
    put_i16,
    put_i32,
    put_i64,
    put_u8,
    word,
)
from onnxlab.execution.numba.kernels.simd.tail_vectors import get, put
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_ZERO = np.float32(0.0)
_ADD, _MULTIPLY, _LARGEST, _TAKE = 1, 2, 3, 5


@helper
def move(target, source, count):
    """Copy a few bytes."""
    if count == 4:
        put_i32(target, get_i32(source))
    elif count == 8:
        put_i64(target, get_i64(source))
    elif count == 2:
        put_i16(target, get_i16(source))
    elif count == 1:
        put_u8(target, get_u8(source))
    else:
        copy_bytes(target, source, count)


@kernel
def gather(record: Any, unit: Any, scratch: Any) -> None:
    """Copy one unit of slices whose positions stand in an index array."""
    source, target, count = word(record, 2), word(record, 3), word(record, 5)
    source_outer, target_outer, step, to = word(record, 6), word(record, 7), word(record, 8), word(record, 9)
    size, indices, wide, inner = word(record, 10), word(record, 11), word(record, 12), word(record, 13)
    first = unit * word(record, 15)
    for number in range(first, min(first + word(record, 15), word(record, 4) * count)):
        outer = number // count
        place = number - outer * count
        index = get_i64(indices + place * 8) if wide else get_i32(indices + place * 4)
        if index < 0:
            index += size
        if index < 0 or index >= size:
            put_i64(word(record, 14), 1)
            index = 0
        move(target + outer * target_outer + place * to, source + outer * source_outer + index * step, inner)


@helper
def _sum_one(source, offsets, weights, taps):
    total = _ZERO
    for tap in range(taps):
        total += get_f32(weights + tap * 4) * get_f32(source + get_i32(offsets + tap * 4))
    return total


@kernel
def resample(record: Any, unit: Any, scratch: Any) -> None:
    """Weigh neighboring slices, as linear and cubic Resize do."""
    count, taps, columns = word(record, 5), word(record, 9), word(record, 12)
    first = unit * word(record, 13)
    for number in range(first, min(first + word(record, 13), word(record, 4) * count)):
        outer = number // count
        place = number - outer * count
        source = word(record, 2) + outer * word(record, 6)
        target = word(record, 3) + outer * word(record, 7) + place * word(record, 8)
        offsets, weights = word(record, 10) + place * taps * 4, word(record, 11) + place * taps * 4
        if columns == 1:
            put_f32(target, _sum_one(source, offsets, weights, taps))
            continue
        for i in range(0, columns, WIDTH):
            left = columns - i
            total = splat(get_f32(weights)) * get(source + get_i32(offsets) + i * 4, left)
            for tap in range(1, taps):
                value = get(source + get_i32(offsets + tap * 4) + i * 4, left)
                total = fma(splat(get_f32(weights + tap * 4)), value, total)
            put(target + i * 4, total, left)


@helper
def _combined(reduction, before, value):
    if reduction == _ADD:
        return before + value
    if reduction == _MULTIPLY:
        return before * value
    if before != before:
        return before
    if reduction == _LARGEST:
        return value if value > before or value != value else before
    return value if value < before or value != value else before


@helper
def _place(record, row):
    """Bytes to the element of a tuple; -1 beyond an axis."""
    parts, wide = word(record, 4), word(record, 8)
    at = word(word(record, 9), row) if word(record, 9) else 0
    for part in range(parts):
        number = row * parts + part
        index = get_i64(word(record, 7) + number * 8) if wide else get_i32(word(record, 7) + number * 4)
        size = word(word(record, 5), part)
        if index < 0:
            index += size
        if index < 0 or index >= size:
            return -1
        at += index * word(word(record, 6), part)
    return at


@kernel
def scatter(record: Any, unit: Any, scratch: Any) -> None:
    """Write, combine or read the elements at all tuples."""
    inner, item, reduction = word(record, 11), word(record, 12), word(record, 13)
    for row in range(word(record, 3)):
        place = _place(record, row)
        if place < 0:
            put_i64(word(record, 14), 1)
            return
        at, update = word(record, 2) + place, word(record, 10) + row * inner * item
        if reduction == 0:
            move(at, update, inner * item)
        elif reduction == _TAKE:
            move(update, at, inner * item)
        else:
            for i in range(0, inner * 4, 4):
                put_f32(at + i, _combined(reduction, get_f32(at + i), get_f32(update + i)))
