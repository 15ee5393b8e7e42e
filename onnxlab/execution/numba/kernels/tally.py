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
from onnxlab.execution.numba.kernels.simd.memory import clear_bytes, get_f32, get_i32, put_f32, put_i32, put_i64, word
from onnxlab.execution.numba.machine.object_cache import helper, kernel
from onnxlab.execution.numba.machine.tally_rows import BINS, ROW

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


_LANES = 16
_BLOCK = 2048  # elements that both passes take in turn, while they are in the nearest cache
_F32, _I32 = ir.FloatType(), ir.IntType(32)
_FLOATS, _INTEGERS, _DOUBLES = (ir.VectorType(kind, _LANES) for kind in (_F32, _I32, _F64))
_SUM, _SQUARES, _LOW, _HIGH, _ZEROS, _SPECIALS = 0, 128, 256, 320, 384, 448
_STATE = 512
"""Bytes of running sums, squares (float64), ends (float32) and counts (int32), 16 of each, behind the histograms."""


def _filled(kind: Any, value: Any) -> Any:
    return ir.Constant(kind, [value] * _LANES)


@declared(types.void, types.int64, types.int64, types.float64)
def accumulate(builder: Any, x: Any, state: Any, shift: Any) -> None:
    """Add 16 elements to the running numbers; what special elements make of sums and ends is not used."""

    def place(offset: int, kind: Any) -> Any:
        return pointer(builder, builder.add(state, ir.Constant(ir.IntType(64), offset)), kind)

    def update(offset: int, kind: Any, change: Any) -> None:
        at = place(offset, kind)
        builder.store(change(builder.load(at, align=8)), at, align=8)

    values = builder.load(pointer(builder, x, _FLOATS), align=4)
    single = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), shift, _I32(0))
    shifts = builder.shuffle_vector(single, ir.Constant(_DOUBLES, ir.Undefined), _filled(_INTEGERS, 0))
    offsets = builder.fsub(builder.fpext(values, _DOUBLES), shifts)
    update(_SUM, _DOUBLES, lambda total: builder.fadd(total, offsets))
    update(_SQUARES, _DOUBLES, lambda total: builder.fadd(total, builder.fmul(offsets, offsets)))
    update(_LOW, _FLOATS, lambda low: builder.select(builder.fcmp_ordered("<", values, low), values, low))
    update(_HIGH, _FLOATS, lambda high: builder.select(builder.fcmp_ordered(">", values, high), values, high))
    bits = builder.and_(builder.bitcast(values, _INTEGERS), _filled(_INTEGERS, _MAGNITUDE))
    zero = builder.zext(builder.icmp_signed("==", bits, _filled(_INTEGERS, 0)), _INTEGERS)
    special = builder.zext(builder.icmp_signed(">=", bits, _filled(_INTEGERS, _SPECIAL)), _INTEGERS)
    update(_ZEROS, _INTEGERS, lambda count: builder.add(count, zero))
    update(_SPECIALS, _INTEGERS, lambda count: builder.add(count, special))


@declared(types.float64, types.int64)
def get_f64(builder: Any, address: Any) -> Any:
    """Load a float64."""
    return builder.load(pointer(builder, address, _F64), align=8)


@helper
def _count_bin(x, bins):
    """Count one element in a histogram of int32."""
    at = bins + ((get_i32(x) >> _SHIFT) & (BINS - 1)) * 4
    put_i32(at, get_i32(at) + 1)


@helper
def _pass(x, count, bins, shift):
    """(low, high, sum, squares, zeros, special) of a run; special elements make the first four meaningless."""
    state, step = bins + 4 * BINS * 4, BINS * 4 if count >= SHORT else 0
    clear_bytes(state, _STATE)
    for lane in range(_LANES):
        put_f32(state + _LOW + lane * 4, np.float32(np.inf))
        put_f32(state + _HIGH + lane * 4, np.float32(-np.inf))
    whole = count // _LANES * _LANES
    for first in range(0, whole, _BLOCK):
        last = min(whole, first + _BLOCK)
        for i in range(first, last, _LANES):
            accumulate(x + i * 4, state, shift)
        for i in range(first, last, 4):
            _count_bin(x + i * 4, bins)
            _count_bin(x + i * 4 + 4, bins + step)
            _count_bin(x + i * 4 + 8, bins + 2 * step)
            _count_bin(x + i * 4 + 12, bins + 3 * step)
    low, high, total, squares, zeros, special = _INFINITE, -_INFINITE, 0.0, 0.0, 0, 0
    for lane in range(_LANES):
        low = min(low, np.float64(get_f32(state + _LOW + lane * 4)))
        high = max(high, np.float64(get_f32(state + _HIGH + lane * 4)))
        total += get_f64(state + _SUM + lane * 8)
        squares += get_f64(state + _SQUARES + lane * 8)
        zeros += get_i32(state + _ZEROS + lane * 4)
        special += get_i32(state + _SPECIALS + lane * 4)
    for i in range(whole, count):
        _count_bin(x + i * 4, bins)
        magnitude, value = get_i32(x + i * 4) & _MAGNITUDE, np.float64(get_f32(x + i * 4))
        zeros, special = zeros + (magnitude == 0), special + (magnitude >= _SPECIAL)
        low, high = min(low, value), max(high, value)
        total += value - shift
        squares += (value - shift) * (value - shift)
    return low, high, total, squares, zeros, special


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
                clear_bytes(counted + group * 32, 32)


@helper
def _first_finite(x, count):
    """An element about which sums are taken, so that they do not cancel; 0 where the first ones are special."""
    for i in range(min(count, 64)):
        if (get_i32(x + i * 4) & _MAGNITUDE) < _SPECIAL:
            return np.float64(get_f32(x + i * 4))
    return np.float64(0.0)


@kernel
def tally(record: Any, unit: Any, scratch: Any) -> None:
    """Fill the first `unit` rows of a record; `scratch` is SCRATCH bytes, its histograms zero, and left so."""
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
                clear_bytes(scratch, 4 * BINS * 4)
        put_f64(row + 24, low)
        put_f64(row + 32, high)
        put_f64(row + 40, shift)
        put_f64(row + 48, total)
        put_f64(row + 56, squares)
        put_i64(row + 64, zeros)
        put_i64(row + 72, nan)
        put_i64(row + 80, infinite)
