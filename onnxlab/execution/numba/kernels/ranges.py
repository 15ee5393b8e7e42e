"""The range of a tensor, and the scale and zero point by which DynamicQuantizeLinear makes uint8 of it.

A record: x, count (elements), chunk (elements of a unit), extents (for each chunk its least and greatest element),
found (scale, zero point, and the least and greatest level without it, float32), chunks, y (int16).
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.simd.lanes import (
    WIDTH,
    greater,
    largest,
    less,
    part_select,
    select,
    smallest,
    splat,
    vround,
)
from onnxlab.execution.numba.kernels.simd.memory import copy_bytes, get_f32, load, load_part, put_f32, word
from onnxlab.execution.numba.kernels.simd.narrow_integers import store_i8, store_i16
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_LOWEST, _HIGHEST, _ZERO, _ONE, _LAST = (np.float32(value) for value in (-inf, inf, 0.0, 1.0, 255.0))


@helper
def least_and_greatest(x, count):
    """Of float32 in a row; NaN counts as nothing."""
    low, high = splat(_HIGHEST), splat(_LOWEST)
    for i in range(0, count, WIDTH):
        if count - i >= WIDTH:
            a = load(x + i * 4)
            b = a
        else:
            value = load_part(x + i * 4, count - i)
            a, b = part_select(value, count - i, _HIGHEST), part_select(value, count - i, _LOWEST)
        low = select(less(a, low), a, low)
        high = select(greater(b, high), b, high)
    return smallest(low), largest(high)


@helper
def quantization(low, high):
    """(scale, zero point) that spread 256 levels over a range which is widened to hold 0."""
    low, high = min(low, _ZERO), max(high, _ZERO)
    scale = (high - low) / _LAST
    if high == low:
        scale = _ONE
    zero = np.float32(np.rint(-low / scale))
    if not zero < _LAST:
        zero = _LAST
    return scale, max(zero, _ZERO)


@kernel
def extent(record: Any, unit: Any, scratch: Any) -> None:
    """Find the least and the greatest element of one chunk."""
    first = unit * word(record, 4)
    low, high = least_and_greatest(word(record, 2) + first * 4, min(word(record, 4), word(record, 3) - first))
    put_f32(word(record, 5) + unit * 8, low)
    put_f32(word(record, 5) + unit * 8 + 4, high)


@kernel
def byte_range(record: Any, unit: Any, scratch: Any) -> None:
    """Derive scale and zero point from the chunks' extents, as DynamicQuantizeLinear does."""
    low, high = _ZERO, _ZERO
    for chunk in range(word(record, 7)):
        low = min(low, get_f32(word(record, 5) + chunk * 8))
        high = max(high, get_f32(word(record, 5) + chunk * 8 + 4))
    scale, zero = quantization(low, high)
    qparams = word(record, 6)
    put_f32(qparams, scale)
    put_f32(qparams + 4, zero)
    put_f32(qparams + 8, -zero)
    put_f32(qparams + 12, _LAST - zero)


@helper
def levels_of(value, scale, low, high):
    """Rounded to even and clamped; NaN is the lowest."""
    level = vround(value / scale)
    level = select(greater(level, low), level, low)
    return select(less(level, high), level, high)


@kernel
def to_levels(record: Any, unit: Any, scratch: Any) -> None:
    """Quantize floats that are one run of memory."""
    qparams, first = word(record, 6), unit * word(record, 4)
    scale, low, high = splat(get_f32(qparams)), splat(get_f32(qparams + 8)), splat(get_f32(qparams + 12))
    x, y, count = (
        word(record, 2) + first * 4,
        word(record, 8) + first * 2,
        min(word(record, 4), word(record, 3) - first),
    )
    whole = count // WIDTH * WIDTH
    for i in range(0, whole, WIDTH):
        store_i16(y + i * 2, levels_of(load(x + i * 4), scale, low, high))
    if whole < count:
        store_i16(scratch, levels_of(load_part(x + whole * 4, count - whole), scale, low, high))
        copy_bytes(y + whole * 2, scratch, (count - whole) * 2)


@helper
def _quantization_of(x, rows, length, step):
    """(scale, zero point) of the range of rows of `length` float32, `step` elements apart."""
    low, high = _ZERO, _ZERO
    for row in range(rows):
        least, greatest = least_and_greatest(x + row * step * 4, length)
        low, high = min(low, least), max(high, greatest)
    return quantization(low, high)


@helper
def quantize_rows(x, rows, length, step, levels):
    """Quantize rows of `length` float32 by the range of all of them; returns the scale.

    Rows are `step` elements apart, here and in `levels`, which gets whole vectors of int16.
    """
    scale, zero = _quantization_of(x, rows, length, step)
    bottom, top, divisor = splat(-zero), splat(_LAST - zero), splat(scale)
    for row in range(rows):
        for i in range(0, length, WIDTH):
            value = load(x + (row * step + i) * 4)
            store_i16(levels + (row * step + i) * 2, levels_of(value, divisor, bottom, top))
    return scale


@helper
def quantize_bytes(x, rows, length, step, levels):
    """Quantize rows to uint8 with a zero point, rows 2 * `step` bytes apart; returns (scale, zero point)."""
    scale, zero = _quantization_of(x, rows, length, step)
    bottom, top, divisor, shift = splat(-zero), splat(_LAST - zero), splat(scale), splat(zero)
    for row in range(rows):
        line = levels + row * step * 2
        for i in range(0, length, WIDTH):
            store_i8(line + i, levels_of(load(x + (row * step + i) * 4), divisor, bottom, top) + shift)
    return scale, zero
