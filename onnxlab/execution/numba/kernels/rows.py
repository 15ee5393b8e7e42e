"""Rows of contiguous numbers: softmax, the norms, and reductions along rows or down columns.

A record:

    x, y                addresses
    rows, length        rows and their elements
    x_row, y_row        bytes from one row to the next
    scale, bias         [length] each, of the norms; 0 where absent
    epsilon, divisor    bits of float32
    mode                of a reduction: 0 sum, 1 largest, 2 smallest, 3 sum of squares; of softmax: 1 for its logarithm;
                        of a norm: 1 without the mean (RMS)
    unit_rows           what one unit takes
    residual, residual_row   what a norm adds to x first, 0 where absent
    columns, step       of a reduction down columns: contiguous elements, and bytes from one to the next to be reduced

`arg` finds the place of the largest or smallest element along an axis, `top` the first few: ArgMax, ArgMin, TopK.
Both see float32 as [outer, axis, inner]. A record of theirs:

    x, outer, size, inner         the source
    outer_bytes, step, inner_bytes   bytes from one to the next
    largest, last                 whether large ones come first; of `arg` whether the last of equal ones
    count                         of `top`: how many
    places, y                     int64 and, of `top`, float32 [outer, count, inner]
    unit                          pairs of outer and inner that one unit takes

NaN is larger than all, and of several the first.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.simd.lanes import (
    BYTES,
    WIDTH,
    float_of_bits,
    fma,
    greater,
    largest,
    not_equal,
    part_select,
    select,
    smallest,
    splat,
    sum_of,
    vmax,
    vmin,
)
from onnxlab.execution.numba.kernels.simd.memory import (
    get_f32,
    get_i64,
    load,
    load_part,
    put_f32,
    put_i64,
    store,
    store_part,
    word,
)
from onnxlab.execution.numba.kernels.simd.tail_vectors import get, put
from onnxlab.execution.numba.kernels.simd.vector_math import exp_below, log
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_LOWEST, _HIGHEST, _ZERO, _ONE = np.float32(-inf), np.float32(inf), np.float32(0.0), np.float32(1.0)


@helper
def top_of(x, length):
    """The largest of a row; NaN counts as nothing here, and comes back with the sum."""
    whole = length // (2 * WIDTH) * (2 * WIDTH)
    a, b = splat(_LOWEST), splat(_LOWEST)
    for i in range(0, whole, 2 * WIDTH):
        u, v = load(x + i * 4), load(x + i * 4 + BYTES)
        a, b = select(greater(u, a), u, a), select(greater(v, b), v, b)
    for i in range(whole, length, WIDTH):
        value = part_select(get(x + i * 4, length - i), length - i, _LOWEST)
        a = select(greater(value, a), value, a)
    return largest(select(greater(a, b), a, b))


@helper
def exponentials(x, y, length, top):
    """Write exp(x - top) to y, and return the sum."""
    shift = splat(top)
    whole = length // (2 * WIDTH) * (2 * WIDTH)
    a, b = splat(_ZERO), splat(_ZERO)
    for i in range(0, whole, 2 * WIDTH):
        u, v = exp_below(load(x + i * 4) - shift), exp_below(load(x + i * 4 + BYTES) - shift)
        store(y + i * 4, u)
        store(y + i * 4 + BYTES, v)
        a, b = a + u, b + v
    for i in range(whole, length, WIDTH):
        u = exp_below(get(x + i * 4, length - i) - shift)
        put(y + i * 4, u, length - i)
        a = a + part_select(u, length - i, _ZERO)
    return sum_of(a + b)


@helper
def scale_row(y, length, factor):
    """Multiply a row where it is."""
    share = splat(factor)
    whole = length // WIDTH * WIDTH
    for i in range(0, whole, WIDTH):
        store(y + i * 4, load(y + i * 4) * share)
    if whole < length:
        store_part(y + whole * 4, load_part(y + whole * 4, length - whole) * share, length - whole)


@kernel
def softmax(record: Any, unit: Any, scratch: Any) -> None:
    """Softmax or its logarithm of one unit of rows."""
    length = word(record, 5)
    first = unit * word(record, 13)
    for row in range(first, min(first + word(record, 13), word(record, 4))):
        x, y = word(record, 2) + row * word(record, 6), word(record, 3) + row * word(record, 7)
        top = top_of(x, length)
        if word(record, 12) == 0:
            scale_row(y, length, _ONE / exponentials(x, y, length, top))
            continue
        total = splat(_ZERO)
        for i in range(0, length, WIDTH):
            value = exp_below(get(x + i * 4, length - i) - splat(top))
            total = total + part_select(value, length - i, _ZERO)
        share = log(splat(sum_of(total)))  # apart from the largest, which may be too large to tell it
        for i in range(0, length, WIDTH):
            put(y + i * 4, get(x + i * 4, length - i) - splat(top) - share, length - i)


@helper
def _norm_input(x, residual, y, i, count):
    """Elements of a row, with the residual added; the sum is kept in y."""
    value = get(x + i * 4, count)
    if residual:
        value = value + get(residual + i * 4, count)
        put(y + i * 4, value, count)
    return value


@kernel
def norm(record: Any, unit: Any, scratch: Any) -> None:
    """Normalize one unit of rows by mean and variance, or by the root mean square."""
    length, scale, bias = word(record, 5), word(record, 8), word(record, 9)
    epsilon, mode = float_of_bits(word(record, 10)), word(record, 12)
    share = _ONE / np.float32(length)
    first = unit * word(record, 13)
    for row in range(first, min(first + word(record, 13), word(record, 4))):
        x, y = word(record, 2) + row * word(record, 6), word(record, 3) + row * word(record, 7)
        residual = word(record, 14)
        if residual:
            residual += row * word(record, 15)
        total = splat(_ZERO)
        for i in range(0, length, WIDTH):
            total = total + _norm_input(x, residual, y, i, length - i)
        source = y if residual else x
        mean = splat(sum_of(total) * share) if mode == 0 else splat(_ZERO)
        total = splat(_ZERO)
        for i in range(0, length, WIDTH):
            value = part_select(get(source + i * 4, length - i) - mean, length - i, _ZERO)
            total = fma(value, value, total)
        factor = splat(_ONE / np.float32(np.sqrt(sum_of(total) * share + epsilon)))
        for i in range(0, length, WIDTH):
            count = length - i
            value = (get(source + i * 4, count) - mean) * factor
            if scale:
                value = value * get(scale + i * 4, count)
            if bias:
                value = value + get(bias + i * 4, count)
            put(y + i * 4, value, count)


@helper
def _merge(total, value, mode):
    if mode == 0:
        merged = total + value
    elif mode == 1:
        merged = vmax(total, value)
    elif mode == 2:
        merged = vmin(total, value)
    else:
        merged = fma(value, value, total)
    return merged


@helper
def _start(mode):
    return _LOWEST if mode == 1 else _HIGHEST if mode == 2 else _ZERO


@kernel
def reduce_rows(record: Any, unit: Any, scratch: Any) -> None:
    """Reduce one unit of rows to one element each."""
    length, mode, share = word(record, 5), word(record, 12), float_of_bits(word(record, 11))
    first = unit * word(record, 13)
    start = _start(mode)
    for row in range(first, min(first + word(record, 13), word(record, 4))):
        x = word(record, 2) + row * word(record, 6)
        total = splat(start)
        for i in range(0, length, WIDTH):
            value = part_select(get(x + i * 4, length - i), length - i, start)
            total = _merge(total, value, mode)
        if mode == 1 or mode == 2:
            spoilt = sum_of(select(not_equal(total, total), splat(_ONE), splat(_ZERO)))
            reduced = largest(total) if mode == 1 else smallest(total)
            if spoilt > _ZERO:
                reduced = np.float32(np.nan)
        else:
            reduced = sum_of(total)
        put_f32(word(record, 3) + row * word(record, 7), reduced / share)


@kernel
def reduce_columns(record: Any, unit: Any, scratch: Any) -> None:
    """Reduce `length` lines of `columns` contiguous elements, `step` bytes apart, to one."""
    length, mode, columns, step = word(record, 5), word(record, 12), word(record, 16), word(record, 17)
    share = splat(float_of_bits(word(record, 11)))
    first = unit * word(record, 13)
    for row in range(first, min(first + word(record, 13), word(record, 4))):
        x, y = word(record, 2) + row * word(record, 6), word(record, 3) + row * word(record, 7)
        for i in range(0, columns, WIDTH):
            total = splat(_start(mode))
            for line in range(length):
                total = _merge(total, get(x + line * step + i * 4, columns - i), mode)
            put(y + i * 4, total / share, columns - i)


@helper
def _first(descending, value, other):
    """Whether a value comes before another; of TopK, where NaN is the descending."""
    if descending:
        return value > other or (value != value and other == other)
    return value < other or (other != other and value == value)


@kernel
def arg(record: Any, unit: Any, scratch: Any) -> None:
    """Places of one unit; NumPy's argmin has NaN first too."""
    inner, size, step = word(record, 5), word(record, 4), word(record, 7)
    descending, last = word(record, 9), word(record, 10)
    first = unit * word(record, 14)
    for number in range(first, min(first + word(record, 14), word(record, 3) * inner)):
        outer = number // inner
        at = word(record, 2) + outer * word(record, 6) + (number - outer * inner) * word(record, 8)
        best, place = get_f32(at), 0
        for i in range(1, size):
            value = get_f32(at + i * step)
            if value != value:
                if best == best or last:
                    best, place = value, i
            elif best == best and ((value > best if descending else value < best) or (last != 0 and value == best)):
                best, place = value, i
        put_i64(word(record, 12) + number * 8, place)


@kernel
def top(record: Any, unit: Any, scratch: Any) -> None:
    """The first few elements of one unit, by insertion: [count] places and values in scratch memory."""
    inner, size, step, count = word(record, 5), word(record, 4), word(record, 7), word(record, 11)
    descending, values = word(record, 9), scratch + word(record, 11) * 8
    first = unit * word(record, 14)
    for number in range(first, min(first + word(record, 14), word(record, 3) * inner)):
        outer = number // inner
        rest = number - outer * inner
        at = word(record, 2) + outer * word(record, 6) + rest * word(record, 8)
        held = 0
        for i in range(size):
            value = get_f32(at + i * step)
            if held == count and not _first(descending, value, get_f32(values + (count - 1) * 4)):
                continue
            place = min(held, count - 1)
            while place > 0 and _first(descending, value, get_f32(values + (place - 1) * 4)):
                put_f32(values + place * 4, get_f32(values + (place - 1) * 4))
                put_i64(scratch + place * 8, get_i64(scratch + (place - 1) * 8))
                place -= 1
            put_f32(values + place * 4, value)
            put_i64(scratch + place * 8, i)
            held = min(held + 1, count)
        for i in range(count):
            target = (outer * count + i) * inner + rest
            put_i64(word(record, 12) + target * 8, get_i64(scratch + i * 8))
            put_f32(word(record, 13) + target * 4, get_f32(values + i * 4))
