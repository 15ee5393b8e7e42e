"""Counts, range, sums and a histogram of float32 in one pass.

What the words of a row are, `tally_rows` says. The bin of an element is its sign, exponent and first three bits of the
mantissa: eight bins for each power of two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from onnxlab.execution.numba.kernels.simd.lanes import declared, pointer
from onnxlab.execution.numba.kernels.simd.memory import clear_bytes, get_f32, get_i32, put_i32, put_i64, word
from onnxlab.execution.numba.machine.object_cache import helper, kernel
from onnxlab.execution.numba.machine.tally_rows import BINS, ROW, SCRATCH

SHORT = 4096  # elements below which clearing and adding four histograms takes longer than the pass
_LONG = 1 << 30  # elements that int32 can count
_SHIFT = 20
_MAGNITUDE, _SPECIAL = 0x7FFFFFFF, 0x7F800000
_F64 = ir.DoubleType()
_INFINITE = np.float64(np.inf)


@declared(types.void, types.int64, types.float64)
def put_f64(builder: Any, address: Any, value: Any) -> None:
    """Store a float64."""
    builder.store(value, pointer(builder, address, _F64), align=8)


@helper
def _one(x, shift, bins, low, high, total, squares, zeros, special):
    """One element: its count goes to `bins` of int32."""
    bits = get_i32(x)
    at = bins + ((bits >> _SHIFT) & (BINS - 1)) * 4
    put_i32(at, get_i32(at) + 1)
    magnitude = bits & _MAGNITUDE
    zeros += magnitude == 0
    special += magnitude >= _SPECIAL
    value = np.float64(get_f32(x))
    low = min(low, value)
    high = max(high, value)
    offset = value - shift
    return low, high, total + offset, squares + offset * offset, zeros, special


@helper
def _pass(x, count, bins, shift):
    """(low, high, sum, squares, zeros, special) of a run; special elements make the first four meaningless."""
    inf = _INFINITE
    low0 = low1 = low2 = low3 = inf
    high0 = high1 = high2 = high3 = -inf
    sum0 = sum1 = sum2 = sum3 = 0.0
    sq0 = sq1 = sq2 = sq3 = 0.0
    zeros = special = 0
    step = BINS * 4 if count >= SHORT else 0
    whole = count // 4 * 4
    for i in range(0, whole, 4):
        at = x + i * 4
        low0, high0, sum0, sq0, zeros, special = _one(at, shift, bins, low0, high0, sum0, sq0, zeros, special)
        low1, high1, sum1, sq1, zeros, special = _one(
            at + 4, shift, bins + step, low1, high1, sum1, sq1, zeros, special
        )
        low2, high2, sum2, sq2, zeros, special = _one(
            at + 8, shift, bins + 2 * step, low2, high2, sum2, sq2, zeros, special
        )
        low3, high3, sum3, sq3, zeros, special = _one(
            at + 12, shift, bins + 3 * step, low3, high3, sum3, sq3, zeros, special
        )
    for i in range(whole, count):
        low0, high0, sum0, sq0, zeros, special = _one(x + i * 4, shift, bins, low0, high0, sum0, sq0, zeros, special)
    low, high = min(min(low0, low1), min(low2, low3)), max(max(high0, high1), max(high2, high3))
    return low, high, (sum0 + sum1) + (sum2 + sum3), (sq0 + sq1) + (sq2 + sq3), zeros, special


@helper
def _finite_pass(x, count, shift):
    """(low, high, sum, squares, nan) of a run with special elements: infinities count for the range alone."""
    low, high, total, squares, nan = _INFINITE, -_INFINITE, 0.0, 0.0, 0
    for i in range(count):
        value = np.float64(get_f32(x + i * 4))
        magnitude = get_i32(x + i * 4) & _MAGNITUDE
        if magnitude > _SPECIAL:
            nan += 1
            continue
        low, high = min(low, value), max(high, value)
        if magnitude < _SPECIAL:
            total += value - shift
            squares += (value - shift) * (value - shift)
    return low, high, total, squares, nan


@helper
def _any(scratch, group):
    """Whether a histogram counted something in a group of eight bins."""
    at = group * 4
    return (word(scratch, at) | word(scratch, at + 1) | word(scratch, at + 2) | word(scratch, at + 3)) != 0


@helper
def _add_histograms(bins, scratch, count):
    """Add what a pass counted to the bins of a row, of which most stay untouched, and clear it."""
    for stripe in range(4 if count >= SHORT else 1):
        counted = scratch + stripe * BINS * 4
        for group in range(BINS // 8):
            if _any(counted, group):
                for i in range(group * 8, group * 8 + 8):
                    put_i64(bins + i * 8, word(bins, i) + get_i32(counted + i * 4))
        clear_bytes(counted, BINS * 4)


@helper
def _first_finite(x, count):
    """An element about which sums are taken, so that they do not cancel; 0 where the first ones are special."""
    for i in range(min(count, 64)):
        if (get_i32(x + i * 4) & _MAGNITUDE) < _SPECIAL:
            return np.float64(get_f32(x + i * 4))
    return np.float64(0.0)


@kernel
def tally(record: Any, unit: Any, scratch: Any) -> None:
    """Fill the first `unit` rows of a record; `scratch` is SCRATCH bytes of zeros, and is left so."""
    for number in range(unit):
        row = record + number * ROW * 8
        x, count, bins = word(row, 0), word(row, 1), word(row, 2)
        shift = _first_finite(x, count)
        low, high, total, squares = _INFINITE, -_INFINITE, 0.0, 0.0
        zeros = nan = infinite = 0
        for first in range(0, count, _LONG):
            run, length = x + first * 4, min(_LONG, count - first)
            least, greatest, part, parts, none, special = _pass(run, length, scratch, shift)
            not_numbers = 0
            if special:
                least, greatest, part, parts, not_numbers = _finite_pass(run, length, shift)
            low, high, total, squares = min(low, least), max(high, greatest), total + part, squares + parts
            zeros, nan, infinite = zeros + none, nan + not_numbers, infinite + special - not_numbers
            if bins:
                _add_histograms(bins, scratch, length)
            else:
                clear_bytes(scratch, SCRATCH)
        put_f64(row + 24, low)
        put_f64(row + 32, high)
        put_f64(row + 40, shift)
        put_f64(row + 48, total)
        put_f64(row + 56, squares)
        put_i64(row + 64, zeros)
        put_i64(row + 72, nan)
        put_i64(row + 80, infinite)
