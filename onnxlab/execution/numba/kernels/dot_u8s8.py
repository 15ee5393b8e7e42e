"""Products of integers by quads: four uint8 of a row times four int8 of a column at a time, added to 32 bits.

Where the processor has VNNI, products and convolutions of quantized values go this way. Levels are int16 without their
zero point; those of one row span 256 numbers, and padding is zero. So a unit makes bytes of its rows first: what each
level is beyond the least of its row, which is zero at most. The least times the sums of the columns of the weights is
what sums begin with. A record has the words of `dot`, but

    length              elements of a row under one tap
    weights             [panel][quads][COLUMNS][4] int8, zero behind the depth, which is taps * length
    sums                of columns of weights, int32, padded to whole panels
    room                rows that are made bytes at once, for which `scratch` is large enough
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from onnxlab.execution.numba.kernels.dot import by_rows, finish_panel
from onnxlab.execution.numba.kernels.gemm import span
from onnxlab.execution.numba.kernels.simd.lanes import BYTES, INTEGERS, WIDTH, declared, external, pointer, splat_value
from onnxlab.execution.numba.kernels.simd.memory import get_i32, put_i32, word
from onnxlab.execution.numba.kernels.simd.microkernel import COLUMNS, ROWS, VECTORS, loop
from onnxlab.execution.numba.kernels.simd.narrow_integers import add_quads
from onnxlab.execution.numba.machine.object_cache import helper, kernel
from onnxlab.execution.numba.machine.records import QUAD_ROWS

_I64, _I32, _I16, _I8 = (ir.IntType(bits) for bits in (64, 32, 16, 8))
_i64 = types.int64
_PANEL = COLUMNS * 4
_LATENCY = 10
"""Accumulators that keep two units busy: an instruction waits five cycles for the one before."""


def make_tile(rows: int, vectors: int) -> Any:
    """The tile of this many rows and vectors, as a function of compiled code.

    tile(x, step, left, quads, weights, columns, leasts, sums): rows of bytes begin `step` apart, of which there are
    `left`; `columns` are sums of columns of the weights, `leasts` int32 by which they are multiplied for each row. The
    sums go to `sums` as [rows, COLUMNS] int32.
    """

    @intrinsic
    def tile(context, x, step, left, quads, weights, columns, leasts, sums):
        def generate(context, builder, signature, values):
            _build(builder, rows, vectors, *values)
            return context.get_dummy_value()

        return types.void(*[_i64] * 8), generate

    return tile


def _build(
    builder: Any, count: int, vectors: int, x: Any, step: Any, left: Any, quads: Any, weights: Any, columns: Any,
    leasts: Any, sums: Any,
) -> None:  # fmt: skip
    chains = 1 if count * vectors >= _LATENCY else 2
    with builder.goto_entry_block():
        places = [[[builder.alloca(INTEGERS) for _ in range(chains)] for _ in range(vectors)] for _ in range(count)]
    line, last = ir.VectorType(_I8, 4 * WIDTH), builder.sub(left, _I64(1))
    rows = []
    for m in range(count):
        number = builder.select(builder.icmp_signed("<", _I64(m), last), _I64(m), last)
        rows.append(pointer(builder, builder.add(x, builder.mul(number, step)), _I32))
        least = builder.load(pointer(builder, builder.add(leasts, builder.mul(number, _I64(4))), _I32), align=4)
        factor = splat_value(builder, least, INTEGERS)
        for v in range(vectors):
            column = builder.load(pointer(builder, builder.add(columns, _I64(v * BYTES)), INTEGERS), align=4)
            builder.store(builder.mul(column, factor), places[m][v][0])
            for place in places[m][v][1:]:
                builder.store(ir.Constant(INTEGERS, None), place)
    first = pointer(builder, weights, _I8)

    def add(k: Any, chain: int) -> None:
        panel = builder.gep(first, [builder.mul(k, _I64(_PANEL))])
        starts = [builder.gep(panel, [_I64(v * BYTES)]) for v in range(vectors)]
        factors = [builder.load(builder.bitcast(start, line.as_pointer()), align=1) for start in starts]
        for m, row in enumerate(rows):
            quad = splat_value(builder, builder.load(builder.gep(row, [k]), align=1), INTEGERS)
            for v, factor in enumerate(factors):
                place = places[m][v][chain]
                builder.store(add_quads(builder, builder.load(place), builder.bitcast(quad, line), factor), place)

    rounds = builder.udiv(quads, _I64(chains))
    with loop(builder, rounds) as k:
        for chain in range(chains):
            add(builder.add(builder.mul(k, _I64(chains)), _I64(chain)), chain)
    done = builder.mul(rounds, _I64(chains))
    if chains > 1:
        with loop(builder, builder.sub(quads, done)) as k:
            add(builder.add(done, k), 0)
    for m in range(count):
        for v, chained in enumerate(places[m]):
            total = builder.load(chained[0])
            for place in chained[1:]:
                total = builder.add(total, builder.load(place))
            where = builder.add(sums, _I64(m * _PANEL + v * BYTES))
            builder.store(total, pointer(builder, where, INTEGERS), align=4)


def _sums_of(vectors: int) -> Any:
    """`quad_sums` for panels of which so many vectors are used."""
    return by_rows(partial(make_tile, vectors=vectors), QUAD_ROWS if vectors == 1 else ROWS)


_one, _two, _all = map(_sums_of, (1, 2, VECTORS))


@helper
def quad_sums(left, columns, x, step, quads, w, totals, leasts, sums):
    """The sums of as many rows as a tile takes of those that are left, of so many columns; how many rows these are."""
    if columns <= WIDTH:
        return _one(left, x, step, left, quads, w, totals, leasts, sums)
    if VECTORS > 2 and columns <= 2 * WIDTH:
        return _two(left, x, step, left, quads, w, totals, leasts, sums)
    return _all(left, x, step, left, quads, w, totals, leasts, sums)


_WIDTHS = sorted({2 * WIDTH, 8, 1}, reverse=True)
"""Lanes of int16 that are taken at once: as many as there are."""


def _in_steps(builder: Any, count: Any, act: Callable[[Any, int], None]) -> None:
    """`act(index, lanes)` for all of `count` elements; the last vector reaches back over what was done before it."""
    left = count
    for width in _WIDTHS:
        fits = builder.icmp_signed(">=", left, _I64(width))
        number = builder.udiv(builder.add(left, _I64(width - 1)), _I64(width))
        end = builder.sub(count, _I64(width))
        with loop(builder, builder.select(fits, number, _I64(0))) as k:
            at = builder.mul(k, _I64(width))
            act(builder.select(builder.icmp_signed("<", at, end), at, end), width)
        left = builder.select(fits, _I64(0), left)


@declared(_i64, _i64, _i64)
def _least(builder: Any, x: Any, count: Any) -> Any:
    """The least of int16 in a row, and zero."""
    places = {}
    for width in _WIDTHS:
        kind = ir.VectorType(_I16, width)
        with builder.goto_entry_block():
            places[width] = builder.alloca(kind)
        builder.store(ir.Constant(kind, None), places[width])

    def act(index: Any, width: int) -> None:
        value = builder.load(_shorts(builder, x, index, width), align=2)
        before = builder.load(places[width])
        builder.store(builder.select(builder.icmp_signed("<", value, before), value, before), places[width])

    _in_steps(builder, count, act)
    least: Any = _I16(0)
    for width, place in places.items():
        name = f"llvm.vector.reduce.smin.v{width}i16"
        lowest = builder.call(external(builder, name, _I16, ir.VectorType(_I16, width)), [builder.load(place)])
        least = builder.select(builder.icmp_signed("<", lowest, least), lowest, least)
    return builder.sext(least, _I64)


@declared(types.void, _i64, _i64, _i64, _i64)
def _put_bytes(builder: Any, x: Any, count: Any, least: Any, to: Any) -> None:
    """Write the differences of a row's int16 from the least as uint8."""
    short = builder.trunc(least, _I16)

    def act(index: Any, width: int) -> None:
        value = builder.load(_shorts(builder, x, index, width), align=2)
        difference = builder.sub(value, splat_value(builder, short, value.type))
        kind = ir.VectorType(_I8, width)
        builder.store(builder.trunc(difference, kind), pointer(builder, builder.add(to, index), kind), align=1)

    _in_steps(builder, count, act)


def _shorts(builder: Any, x: Any, index: Any, width: int) -> Any:
    return pointer(builder, builder.add(x, builder.mul(index, _I64(2))), ir.VectorType(_I16, width))


@helper
def _bytes_of(x, offsets, tap_bytes, taps, length, zeros, to):
    """Make bytes of a row under all taps; returns the least of its levels."""
    least = 0
    for tap in range(taps):
        offset = get_i32(offsets + tap * tap_bytes)
        if offset >= 0:
            least = min(least, _least(x + offset, length))
    for tap in range(taps):
        offset = get_i32(offsets + tap * tap_bytes)
        _put_bytes(zeros if offset < 0 else x + offset, length, least, to + tap * length)
    return least


@kernel
def quad_dot(record: Any, unit: Any, scratch: Any) -> None:
    """Multiply one tile of 8-bit rows by panels packed four deep."""
    table, first_row, last_row, first_panel, last_panel = span(record, unit)
    x, offsets, tap_bytes, taps = word(record, 2) + word(table, 0), word(record, 3), word(record, 4), word(record, 5)
    length, columns, zeros, room = word(record, 6), word(record, 16), word(record, 22), word(record, 28)
    quads = (taps * length + 3) // 4
    leasts, step = scratch + QUAD_ROWS * _PANEL, quads * 4
    rows = leasts + room * 4
    for first in range(first_row, last_row, room):
        last = min(first + room, last_row)
        for row in range(first, last):
            at = row - first
            least = _bytes_of(x, offsets + row * 4, tap_bytes, taps, length, zeros, rows + at * step)
            put_i32(leasts + at * 4, least)
        for panel in range(first_panel, last_panel):
            weights = word(record, 7) + word(table, 1) + panel * quads * _PANEL
            totals = word(record, 27) + word(table, 2) + panel * _PANEL
            row = first
            while row < last:
                at = row - first
                count = quad_sums(last - row, columns - panel * COLUMNS, rows + at * step, step, quads, weights,
                                  totals, leasts + at * 4, scratch)  # fmt: skip
                finish_panel(record, table, panel, row, min(count, last - row), scratch)
                row += count
