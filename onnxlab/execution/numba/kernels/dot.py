"""Products and convolutions of integers: rows of int16 addressed by tables, times packed pairs of int16, in batches.

Both factors are quantized values with their zero points taken off, which fit 9 bits: so padding is zero, any mix of
int8, uint8 and zero points is one kernel, and sums are exact in int32. What becomes of a sum s of column c:

    v = float32(s + bias[c]) * (scale[c] * factor) + shift[c] + residual

is clamped to low and high; `kind` says how it is written: int32 (s alone), float32, or int16 rounded to even.

A record has the words of `gemm` (`length` counts pairs, `weights` are [panel][taps * length][COLUMNS][2] int16, `bias`
int32 and padded to whole panels), and

    kind                what is written
    scale, shift        float32 per column, padded to whole panels; 0 where absent
    narrow              whether weights are int8
    factor              address of a float32, which may be known at run time only
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from onnxlab.execution.numba.kernels.gemm import span
from onnxlab.execution.numba.kernels.simd.lanes import (
    BYTES,
    INTEGERS,
    WIDTH,
    float_of_bits,
    greater,
    less,
    pointer,
    select,
    splat,
    splat_value,
    vround,
)
from onnxlab.execution.numba.kernels.simd.memory import (
    clear_bytes,
    copy_bytes,
    get_f32,
    get_i32,
    load,
    load_part,
    store,
    store_part,
    word,
)
from onnxlab.execution.numba.kernels.simd.microkernel import COLUMNS, HALF_ROWS, ROWS, VECTORS, entry, loop
from onnxlab.execution.numba.kernels.simd.narrow_integers import (
    SHORTS,
    add_i32,
    add_products,
    load_i32,
    pairs,
    store_i16,
)
from onnxlab.execution.numba.machine.object_cache import helper, kernel
from onnxlab.execution.numba.machine.records import FLOAT, SHORT

_I64, _I32, _I16, _I8 = (ir.IntType(bits) for bits in (64, 32, 16, 8))
_PANEL = COLUMNS * 4
_ZERO = np.float32(0.0)


def make_tile(rows: int, narrow: bool) -> Any:
    """The tile of this many rows, of weights that are int16 or int8, as a function of compiled code.

    tile(x, offsets, tap_bytes, taps, length, weights, zeros, sums): as the microkernel's, of pairs; the sums go to
    `sums` as [rows, COLUMNS] int32.
    """

    @intrinsic
    def tile(context, x, offsets, tap_bytes, taps, length, weights, zeros, sums):
        def generate(context, builder, signature, values):
            _build(builder, rows, narrow, *values)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 8), generate

    return tile


def _build(
    builder: Any, count: int, narrow: bool, x: Any, offsets: Any, tap_bytes: Any, taps: Any, length: Any, weights: Any,
    zeros: Any, sums: Any,
) -> None:  # fmt: skip
    with builder.goto_entry_block():
        places = [[builder.alloca(INTEGERS) for _ in range(VECTORS)] for _ in range(count)]
        panels = builder.alloca(_I64)
    kind = _I8 if narrow else _I16
    line = ir.VectorType(kind, 2 * WIDTH)
    for row in places:
        for place in row:
            builder.store(ir.Constant(INTEGERS, None), place)
    builder.store(weights, panels)
    with loop(builder, taps) as tap:
        table = builder.add(offsets, builder.mul(tap, tap_bytes))
        rows = []
        for m in range(count):
            offset = entry(builder, table, m)
            absent = builder.icmp_signed("<", offset, _I64(0))
            rows.append(pointer(builder, builder.select(absent, zeros, builder.add(x, offset)), _I32))
        first = pointer(builder, builder.load(panels), kind)

        def step(k: Any) -> None:
            panel = builder.gep(first, [builder.mul(k, _I64(2 * COLUMNS))])
            starts = [builder.gep(panel, [_I64(2 * v * WIDTH)]) for v in range(VECTORS)]
            vectors = [builder.load(builder.bitcast(start, line.as_pointer()), align=2) for start in starts]
            if narrow:
                vectors = [builder.sext(vector, SHORTS) for vector in vectors]
            for m, row in enumerate(rows):
                value = splat_value(builder, builder.load(builder.gep(row, [k]), align=2), INTEGERS)
                value = builder.bitcast(value, SHORTS)
                for v, place in enumerate(places[m]):
                    builder.store(builder.add(builder.load(place), pairs(builder, value, vectors[v])), place)

        # Two pairs at a time, as a tile of few rows is short for a loop. One of many rows is not; and where a sum takes
        # two pairs in a row, LLVM makes vpmaddwd and vpaddd of every second vpdpwssd.
        pairs_per_round = 2 if count <= 2 else 1
        rounds = builder.udiv(length, _I64(pairs_per_round))
        with loop(builder, rounds) as k:
            for place in range(pairs_per_round):
                step(builder.add(builder.mul(k, _I64(pairs_per_round)), _I64(place)))
        if pairs_per_round > 1:
            even = builder.mul(rounds, _I64(pairs_per_round))
            with loop(builder, builder.sub(length, even)) as k:
                step(builder.add(even, k))
        further = builder.mul(length, _I64(_PANEL // (2 if narrow else 1)))
        builder.store(builder.add(builder.load(panels), further), panels)
    for m, row in enumerate(places):
        for v, place in enumerate(row):
            where = builder.add(sums, _I64(m * _PANEL + v * BYTES))
            builder.store(builder.load(place), pointer(builder, where, INTEGERS), align=4)


def by_rows(make: Callable[[int], Any], most: int) -> Any:
    """`sums(left, …)`: the tile for the rows that are left, of those that `make(rows)` makes; returns how many it took.

    Tiles take what follows `left`; the largest is of `most` rows.
    """
    full, half, pair, single = map(make, (most, HALF_ROWS, 2, 1))

    def sums(left, *arguments):
        if left > HALF_ROWS:
            full(*arguments)
            return most
        if left > 2:
            half(*arguments)
            return HALF_ROWS
        if left == 2:
            pair(*arguments)
            return 2
        single(*arguments)
        return 1

    return helper(sums)


_wide_sums, _narrow_sums = (by_rows(partial(make_tile, narrow=narrow), ROWS) for narrow in (False, True))


@helper
def tile_sums(narrow, left, x, o, tap_bytes, taps, length, w, zeros, sums):
    """The sums of as many rows as a tile takes of those that are left; how many these are."""
    if narrow:
        return _narrow_sums(left, x, o, tap_bytes, taps, length, w, zeros, sums)
    return _wide_sums(left, x, o, tap_bytes, taps, length, w, zeros, sums)


@helper
def finish(sums, rows, y, places, residual, sources, columns, bias, scale, shift, factor, low, high, kind):
    """Write the sums of the rows of a tile, under one panel; `bias` is int32, `residual` 0 where absent."""
    for v in range(0, min(columns, COLUMNS), WIDTH):
        at, count = v * 4, min(columns - v, WIDTH)
        gain = load(scale + at) * factor if scale else factor
        offset = load(shift + at) if shift else splat(_ZERO)
        for m in range(rows):
            spot, to = sums + m * _PANEL + at, y + get_i32(places + m * 4)
            if bias:
                add_i32(spot, bias + at)
            if kind not in (FLOAT, SHORT):
                copy_bytes(to + at, spot, count * 4)
                continue
            value = load_i32(spot) * gain + offset
            if residual:
                behind = residual + get_i32(sources + m * 4) + at
                value = value + (load(behind) if count == WIDTH else load_part(behind, count))
            if kind == SHORT:
                value = vround(value)
            value = select(less(value, low), low, value)
            value = select(greater(value, high), high, value)
            if kind == SHORT:
                _put_short(to + v * 2, value, count, spot)
            elif count == WIDTH:
                store(to + at, value)
            else:
                store_part(to + at, value, count)


@helper
def _put_short(address, value, count, spare):
    if count == WIDTH:
        store_i16(address, value)
    else:
        store_i16(spare, value)
        copy_bytes(address, spare, count * 2)


@helper
def finish_panel(record, table, panel, row, rows, sums):
    """`finish` these rows of the result of a batch, whose row of the table of batches this is, under one panel."""
    side, kind = panel * _PANEL + word(table, 2), word(record, 23)
    bias = word(record, 8) + side if word(record, 8) else 0
    scale = word(record, 24) + side if word(record, 24) else 0
    shift = word(record, 25) + side if word(record, 25) else 0
    y = word(record, 9) + word(table, 3) + panel * COLUMNS * (2 if kind == SHORT else 4)
    residual = word(record, 11) + word(table, 4) + panel * _PANEL if word(record, 11) else 0
    low, high = splat(float_of_bits(word(record, 13))), splat(float_of_bits(word(record, 14)))
    factor = splat(get_f32(word(record, 26)))
    finish(sums, rows, y, word(record, 10) + row * 4, residual, word(record, 12) + row * 4,
           word(record, 16) - panel * COLUMNS, bias, scale, shift, factor, low, high, kind)  # fmt: skip


@kernel
def dot(record: Any, unit: Any, scratch: Any) -> None:
    """Multiply one tile of 16-bit rows by packed panels of columns."""
    table, first_row, last_row, first_panel, last_panel = span(record, unit)
    x, offsets, tap_bytes, taps = word(record, 2) + word(table, 0), word(record, 3), word(record, 4), word(record, 5)
    length, zeros, narrow = word(record, 6), word(record, 22), word(record, 27)
    depth = _PANEL // 2 if narrow else _PANEL
    for panel in range(first_panel, last_panel):
        weights = word(record, 7) + word(table, 1) + panel * (taps * length * depth)
        row = first_row
        while row < last_row:
            count = tile_sums(
                narrow, last_row - row, x, offsets + row * 4, tap_bytes, taps, length, weights, zeros, scratch
            )
            finish_panel(record, table, panel, row, min(count, last_row - row), scratch)
            row += count


@kernel
def depthwise_dot(record: Any, unit: Any, scratch: Any) -> None:
    """Each channel by itself: `weights` are [taps][panels * COLUMNS] int32 of 16 bits, `length` counts panels."""
    x, offsets, tap_bytes, taps = word(record, 2), word(record, 3), word(record, 4), word(record, 5)
    panels, weights, places, sources = word(record, 6), word(record, 7), word(record, 10), word(record, 12)
    low, high = splat(float_of_bits(word(record, 13))), splat(float_of_bits(word(record, 14)))
    columns, zeros, kind = word(record, 16), word(record, 22), word(record, 23)
    factor = splat(get_f32(word(record, 26)))
    item = 2 if kind == SHORT else 4
    first = unit * word(record, 17)
    for row in range(first, min(first + word(record, 17), word(record, 15))):
        clear_bytes(scratch, panels * _PANEL)
        for tap in range(taps):
            offset = get_i32(offsets + tap * tap_bytes + row * 4)
            source = zeros if offset < 0 else x + offset
            line = weights + tap * panels * _PANEL
            for v in range(0, columns, WIDTH):
                add_products(scratch + v * 4, source + v * 2, line + v * 4)
        for panel in range(panels):
            side = panel * _PANEL
            finish(
                scratch + side,
                1,
                word(record, 9) + panel * COLUMNS * item,
                places + row * 4,
                word(record, 11) + side if word(record, 11) else 0,
                sources + row * 4,
                columns - panel * COLUMNS,
                word(record, 8) + side if word(record, 8) else 0,
                word(record, 24) + side if word(record, 24) else 0,
                word(record, 25) + side if word(record, 25) else 0,
                factor,
                low,
                high,
                kind,
            )
