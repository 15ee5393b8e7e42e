"""Counts, range, sums and a histogram of float32 in one pass.

What the words of a row are, `tally_rows` says. The bin of an element is its sign, exponent and first three bits of the
mantissa: eight bins for each power of two.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from onnxlab.execution.numba.kernels.simd.lanes import declared, pointer, splat_value
from onnxlab.execution.numba.kernels.simd.memory import clear_bytes, get_f32, get_i32, put_f32, put_i32, put_i64, word
from onnxlab.execution.numba.machine.object_cache import helper, kernel
from onnxlab.execution.numba.machine.tally_rows import BINS, DATA, ROW

SHORT = 4096  # elements below which one histogram is in the nearest cache, where four would not be
_LONG = 1 << 30  # elements that int32 can count
_SHIFT = 20
_MAGNITUDE, _SPECIAL = 0x7FFFFFFF, 0x7F800000
_F64 = ir.DoubleType()
_INFINITE = np.float64(np.inf)


@declared(types.void, types.int64, types.float64)
def put_f64(builder: Any, address: Any, value: Any) -> None:
    """Store a float64."""
    builder.store(value, pointer(builder, address, _F64), align=8)


_LANES = 8
_STRIPES = 4
_F32, _I32, _I64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_FLOATS, _INTEGERS, _DOUBLES = (ir.VectorType(kind, _LANES) for kind in (_F32, _I32, _F64))
_SUM, _SQUARES, _LOW, _HIGH, _ZEROS, _LARGEST = 0, 64, 128, 160, 192, 224
_STATE = 256
"""Bytes of running sums, squares (float64), ends (float32), zeros and largest magnitudes as bits (int32), 8 of each."""
_RUNNING = ((_SUM, _DOUBLES), (_SQUARES, _DOUBLES), (_LOW, _FLOATS), (_HIGH, _FLOATS), (_ZEROS, _INTEGERS),
            (_LARGEST, _INTEGERS))  # fmt: skip


def _filled(kind: Any, value: Any) -> Any:
    return ir.Constant(kind, [value] * _LANES)


@declared(types.void, types.int64, types.int64, types.int64, types.int64, types.int64, types.float64)
def accumulate(builder: Any, x: Any, count: Any, bins: Any, step: Any, state: Any, shift: Any) -> None:
    """Add elements, a multiple of 8, to histograms and running numbers; special ones make four of these meaningless.

    Both in one loop: sums keep the units for vectors busy, histograms those for integers.
    """
    before = builder.block
    places = [pointer(builder, builder.add(state, _I64(offset)), kind) for offset, kind in _RUNNING]
    known = [builder.load(place, align=8) for place in places]
    stripes = [builder.add(bins, builder.mul(step, _I64(stripe))) for stripe in range(_STRIPES)]
    shifts = splat_value(builder, shift, _DOUBLES)
    body, after = (builder.append_basic_block(name) for name in ("body", "after"))
    builder.cbranch(builder.icmp_signed(">", count, _I64(0)), body, after)
    builder.position_at_end(body)
    index = builder.phi(_I64)
    running = [builder.phi(kind) for _, kind in _RUNNING]
    elements = builder.add(x, builder.shl(index, _I64(2)))
    values = builder.load(pointer(builder, elements, _FLOATS), align=4)
    updated = _with_elements(builder, running, values, shifts)
    _count_bins(builder, elements, stripes)
    following = builder.add(index, _I64(_LANES))
    builder.cbranch(builder.icmp_signed("<", following, count), body, after)
    for phi, first, later in zip((index, *running), (_I64(0), *known), (following, *updated), strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, body)
    builder.position_at_end(after)
    ends = [builder.phi(kind) for _, kind in _RUNNING]
    for end, first, later in zip(ends, known, updated, strict=True):
        end.add_incoming(first, before)
        end.add_incoming(later, body)
    for place, end in zip(places, ends, strict=True):
        builder.store(end, place, align=8)


_FUSED = ("contract",)
"""A product and a sum may be one instruction, with one rounding."""


def _with_elements(builder: Any, running: list[Any], values: Any, shifts: Any) -> list[Any]:
    """The running numbers with a vector of elements more."""
    total, squares, low, high, zeros, largest = running
    offsets = builder.fsub(builder.fpext(values, _DOUBLES), shifts)
    bits = builder.and_(builder.bitcast(values, _INTEGERS), _filled(_INTEGERS, _MAGNITUDE))
    zero = builder.sext(builder.icmp_signed("==", bits, _filled(_INTEGERS, 0)), _INTEGERS)
    return [
        builder.fadd(total, offsets),
        builder.fadd(squares, builder.fmul(offsets, offsets, flags=_FUSED), flags=_FUSED),
        builder.select(builder.fcmp_ordered("<", values, low), values, low),
        builder.select(builder.fcmp_ordered(">", values, high), values, high),
        builder.sub(zeros, zero),
        builder.select(builder.icmp_signed(">", bits, largest), bits, largest),
    ]


def _count_bins(builder: Any, elements: Any, stripes: list[Any]) -> None:
    """Count 8 elements in histograms of int32, one after the other; two elements are read together."""
    for place in range(_LANES // 2):
        both = builder.load(pointer(builder, builder.add(elements, _I64(8 * place)), _I64), align=4)
        first = builder.and_(builder.lshr(both, _I64(_SHIFT)), _I64(BINS - 1))
        for half, number in enumerate((first, builder.lshr(both, _I64(32 + _SHIFT)))):
            stripe = stripes[(2 * place + half) % _STRIPES]
            at = pointer(builder, builder.add(stripe, builder.shl(number, _I64(2))), _I32)
            builder.store(builder.add(builder.load(at, align=4), _I32(1)), at, align=4)


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
    """(low, high, sum, squares, zeros, largest bits) of a run; special elements make the first four meaningless."""
    state, step = bins + 4 * BINS * 4, BINS * 4 if count >= SHORT else 0
    clear_bytes(state, _STATE)
    for lane in range(_LANES):
        put_f32(state + _LOW + lane * 4, np.float32(np.inf))
        put_f32(state + _HIGH + lane * 4, np.float32(-np.inf))
    whole = count // _LANES * _LANES
    accumulate(x, whole, bins, step, state, shift)
    low, high, total, squares, zeros, largest = _INFINITE, -_INFINITE, 0.0, 0.0, 0, 0
    for lane in range(_LANES):
        low = min(low, np.float64(get_f32(state + _LOW + lane * 4)))
        high = max(high, np.float64(get_f32(state + _HIGH + lane * 4)))
        total += get_f64(state + _SUM + lane * 8)
        squares += get_f64(state + _SQUARES + lane * 8)
        zeros += get_i32(state + _ZEROS + lane * 4)
        largest = max(largest, get_i32(state + _LARGEST + lane * 4))
    for i in range(whole, count):
        _count_bin(x + i * 4, bins)
        magnitude, value = get_i32(x + i * 4) & _MAGNITUDE, np.float64(get_f32(x + i * 4))
        zeros, largest = zeros + (magnitude == 0), max(largest, magnitude)
        low, high = min(low, value), max(high, value)
        total += value - shift
        squares += (value - shift) * (value - shift)
    return low, high, total, squares, zeros, largest


@helper
def _finite_pass(x, count, shift):
    """(low, high, sum, squares, nan, infinite) of a run with special ones: infinities count for the range alone."""
    low, high, total, squares, nan, infinite = _INFINITE, -_INFINITE, 0.0, 0.0, 0, 0
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
        else:
            infinite += 1
    return low, high, total, squares, nan, infinite


_WIDE = 16
"""Bins that are looked at, and added, together."""
_COUNTS, _TOTALS = ir.VectorType(_I32, _WIDE), ir.VectorType(_I64, _WIDE)


def _counted(builder: Any, counts: Any) -> list[Any]:
    """The bins of each histogram that has some."""
    return [pointer(builder, builder.add(counts, _I64(stripe * BINS * 4)), _COUNTS) for stripe in range(_STRIPES)]


@declared(types.boolean, types.int64)
def any_counted(builder: Any, counts: Any) -> Any:
    """Whether a histogram counted something in 16 bins."""
    either = reduce(builder.or_, [builder.load(place, align=4) for place in _counted(builder, counts)])
    whole = ir.IntType(32 * _WIDE)
    return builder.icmp_signed("!=", builder.bitcast(either, whole), whole(0))


@declared(types.void, types.int64, types.int64)
def add_counted(builder: Any, bins: Any, counts: Any) -> None:
    """Add what all histograms counted in 16 bins to those of a row, and clear it."""
    places = _counted(builder, counts)
    total = reduce(builder.add, [builder.load(place, align=4) for place in places])
    row = pointer(builder, bins, _TOTALS)
    builder.store(builder.add(builder.load(row, align=8), builder.sext(total, _TOTALS)), row, align=8)
    for place in places:
        builder.store(ir.Constant(_COUNTS, None), place, align=4)


@helper
def _add_histograms(bins, scratch, largest):
    """Add what a pass counted to the bins of a row, and clear it; none is beyond that of the largest magnitude."""
    for sign in range(0, BINS, BINS // 2):
        for group in range(sign, sign + (largest >> _SHIFT) + 1, _WIDE):
            if any_counted(scratch + group * 4):
                add_counted(bins + group * 8, scratch + group * 4)


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
        x, count, bins = word(word(row, 0), DATA), word(row, 1), word(row, 2)
        shift = _first_finite(x, count)
        low, high, total, squares = _INFINITE, -_INFINITE, 0.0, 0.0
        zeros = nan = infinite = 0
        for first in range(0, count, _LONG):
            run, length = x + first * 4, min(_LONG, count - first)
            least, greatest, part, parts, none, largest = _pass(run, length, scratch, shift)
            if largest >= _SPECIAL:
                least, greatest, part, parts, not_numbers, beyond = _finite_pass(run, length, shift)
                nan, infinite = nan + not_numbers, infinite + beyond
            low, high, total, squares = min(low, least), max(high, greatest), total + part, squares + parts
            zeros += none
            if bins:
                _add_histograms(bins, scratch, largest)
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
