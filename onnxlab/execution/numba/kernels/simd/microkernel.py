"""The tile at the heart of products and convolutions: a few rows times a panel of packed weights, in registers.

    y[m, :] = clamp(bias + residual[m, :] + sum over taps t and k of x[m, t, k] * w[t, k, :], low, high)

Row m of x under tap t begins at `x + offsets[t, m]`; a negative offset stands for a row of zeros. So one tile serves
products (one tap), convolutions of any stride, dilation and padding (a tap for each place of the window), and parts of
them: what differs is the table of offsets. Results go to `y + places[m]`, so that they may land in any layout whose
columns are contiguous.

While a tile multiplies, it asks for a share of the memory that comes next, mostly the next panel: weights come from far
away, and all rows but the first find them near.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from onnxlab.execution.numba.kernels.simd.lanes import (
    BYTES,
    VECTOR,
    WIDTH,
    external,
    multiply_add,
    part_mask,
    pointer,
    splat_value,
)
from onnxlab.execution.numba.kernels.simd.memory import masked_load, masked_store
from onnxlab.execution.numba.machine.host import host

_I64, _I32, _I8, _F32 = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.FloatType()
VECTORS = host().vectors
COLUMNS = host().columns
STRETCH = 256
"""Bytes of weights for which a tile asks once for what comes next."""
_STEPS = max(1, STRETCH // (COLUMNS * 4))


@contextmanager
def loop(builder: Any, count: Any) -> Iterator[Any]:
    """`for index in range(count)`; the body is what is built inside."""
    before = builder.block
    head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(_I64)
    index.add_incoming(_I64(0), before)
    builder.cbranch(builder.icmp_signed("<", index, count), body, after)
    builder.position_at_end(body)
    yield index
    index.add_incoming(builder.add(index, _I64(1)), builder.block)
    builder.branch(head)
    builder.position_at_end(after)


def entry(builder: Any, table: Any, index: int) -> Any:
    """Entry of a table of int32."""
    where = pointer(builder, builder.add(table, _I64(4 * index)), _I32)
    return builder.sext(builder.load(where, align=4), _I64)


class _Tile:
    """Builds one tile: the accumulators and what is done to them."""

    def __init__(self, builder: Any, rows: int, vectors: int) -> None:
        self.builder = builder
        self.rows = rows
        self.vectors = vectors
        with builder.goto_entry_block():
            self.sums = [[builder.alloca(VECTOR) for _ in range(vectors)] for _ in range(rows)]
            self.weights = builder.alloca(_I64)
            self.ahead = builder.alloca(_I64)

    def start(self, bias: Any) -> None:
        """Accumulators begin as the bias, or as zero where there is none."""
        builder = self.builder
        with builder.if_else(builder.icmp_signed("!=", bias, _I64(0))) as (given, absent):
            with given:
                for v in range(self.vectors):
                    value = builder.load(pointer(builder, builder.add(bias, _I64(v * BYTES)), VECTOR), align=4)
                    for row in self.sums:
                        builder.store(value, row[v])
            with absent:
                for row in self.sums:
                    for place in row:
                        builder.store(ir.Constant(VECTOR, None), place)

    def multiply(
        self, x: Any, offsets: Any, tap_bytes: Any, taps: Any, length: Any, weights: Any, zeros: Any, ahead: Any,
        pace: Any,
    ) -> None:  # fmt: skip
        builder = self.builder
        builder.store(weights, self.weights)
        builder.store(ahead, self.ahead)
        stretches = builder.udiv(length, _I64(_STEPS))
        rest = builder.mul(stretches, _I64(_STEPS))
        with loop(builder, taps) as tap:
            table = builder.add(offsets, builder.mul(tap, tap_bytes))
            rows = []
            for m in range(self.rows):
                offset = entry(builder, table, m)
                absent = builder.icmp_signed("<", offset, _I64(0))
                rows.append(pointer(builder, builder.select(absent, zeros, builder.add(x, offset)), _F32))
            first = pointer(builder, builder.load(self.weights), _F32)
            with loop(builder, stretches) as stretch:
                self._ask(pace)
                k = builder.mul(stretch, _I64(_STEPS))
                for step in range(_STEPS):
                    self._step(rows, first, builder.add(k, _I64(step)))
            with loop(builder, builder.sub(length, rest)) as k:
                self._step(rows, first, builder.add(rest, k))
            panel = builder.mul(length, _I64(COLUMNS * 4))
            builder.store(builder.add(builder.load(self.weights), panel), self.weights)

    def _ask(self, pace: Any) -> None:
        """Have two lines of memory fetched into the second cache, half of `pace` apart; the next `pace` bytes on."""
        builder = self.builder
        fetch = external(builder, "llvm.prefetch.p0", ir.VoidType(), _I8.as_pointer(), _I32, _I32, _I32)
        ahead = builder.load(self.ahead)
        for line in (ahead, builder.add(ahead, builder.lshr(pace, _I64(1)))):
            builder.call(fetch, [pointer(builder, line, _I8), _I32(0), _I32(2), _I32(1)])
        builder.store(builder.add(ahead, pace), self.ahead)

    def _step(self, rows: list[Any], first: Any, k: Any) -> None:
        """Add the products of the k-th elements of the rows."""
        builder = self.builder
        panel = builder.gep(first, [builder.mul(k, _I64(COLUMNS))])
        vectors = [
            builder.load(builder.bitcast(builder.gep(panel, [_I64(v * WIDTH)]), VECTOR.as_pointer()), align=4)
            for v in range(self.vectors)
        ]
        for row, places in zip(rows, self.sums, strict=True):
            value = splat_value(builder, builder.load(builder.gep(row, [k]), align=4))
            for vector, place in zip(vectors, places, strict=True):
                builder.store(multiply_add(builder, value, vector, builder.load(place)), place)

    def finish(self, y: Any, places: Any, residual: Any, sources: Any, low: Any, high: Any, columns: Any) -> None:
        """Add the residual, clamp, and write; a panel that is not full writes only its columns."""
        builder = self.builder
        full = builder.icmp_signed(">=", columns, _I64(self.vectors * WIDTH))
        with builder.if_else(full) as (whole, part):
            with whole:
                self._write(y, places, residual, sources, low, high, None)
            with part:
                masks = [part_mask(builder, builder.sub(columns, _I64(v * WIDTH))) for v in range(self.vectors)]
                self._write(y, places, residual, sources, low, high, masks)

    def _write(self, y: Any, places: Any, residual: Any, sources: Any, low: Any, high: Any, masks: Any) -> None:
        builder = self.builder
        with builder.if_then(builder.icmp_signed("!=", residual, _I64(0))):
            for m, row in enumerate(self.sums):
                base = builder.add(residual, entry(builder, sources, m))
                for v, place in enumerate(row):
                    where = builder.add(base, _I64(v * BYTES))
                    if masks:
                        value = masked_load(builder, where, masks[v])
                    else:
                        value = builder.load(pointer(builder, where, VECTOR), align=4)
                    builder.store(builder.fadd(builder.load(place), value), place)
        low, high = splat_value(builder, low), splat_value(builder, high)
        for m, row in enumerate(self.sums):
            base = builder.add(y, entry(builder, places, m))
            for v, place in enumerate(row):
                value = builder.load(place)
                # NaN is neither below nor above, and so stays
                value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
                value = builder.select(builder.fcmp_ordered(">", value, high), high, value)
                where = builder.add(base, _I64(v * BYTES))
                if masks:
                    masked_store(builder, where, value, masks[v])
                else:
                    builder.store(value, pointer(builder, where, VECTOR), align=4)


def make_tile(rows: int, vectors: int) -> Any:
    """The tile of this many rows and vectors of columns, as a function of compiled code.

    tile(x, offsets, tap_bytes, taps, length, weights, zeros, bias, y, places, residual, sources, low, high, columns,
    ahead, pace): addresses and counts; `tap_bytes` is the size of one tap's row of the table of offsets, `weights` are
    [taps, length, COLUMNS], `bias` and `residual` may be 0, `columns` is how many columns there are from here on.
    `ahead` is what comes next in memory, of which `pace` bytes are fetched with each STRETCH of weights.
    """

    @intrinsic
    def tile(
        context, x, offsets, tap_bytes, taps, length, weights, zeros, bias, y, places, residual, sources, low, high,
        columns, ahead, pace,
    ):  # fmt: skip
        whole = types.int64
        kinds = types.void(*[whole] * 12, types.float32, types.float32, *[whole] * 3)

        def generate(context, builder, signature, values):
            x, offsets, tap_bytes, taps, length, weights, zeros, bias, *ending, ahead, pace = values
            made = _Tile(builder, rows, vectors)
            made.start(bias)
            made.multiply(x, offsets, tap_bytes, taps, length, weights, zeros, ahead, pace)
            made.finish(*ending)
            return context.get_dummy_value()

        return kinds, generate

    return tile


ROWS = host().rows
HALF_ROWS = max(2 * ROWS // 3, -(-8 // VECTORS))  # images of 28, 14 and 4 times 4 pixels leave 4 rows of tiles of 6
"""With fewer than eight accumulators a tile takes as long: a multiply-add waits four cycles for the one before."""
