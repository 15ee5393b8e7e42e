"""One row times several panels of packed weights at once: what a tile of one row cannot do at full speed.

A multiply-add waits for the one before it; with two vectors to a panel, four panels keep the units busy.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from onnxlab.execution.numba.kernels.simd.lanes import BYTES, VECTOR, WIDTH, multiply_add, pointer, splat_value
from onnxlab.execution.numba.kernels.simd.microkernel import COLUMNS, VECTORS, loop
from onnxlab.execution.numba.machine.object_cache import helper

_I64, _F32 = ir.IntType(64), ir.FloatType()
STREAMS = 8 // VECTORS
"""Panels at once."""


@intrinsic
def _several(context, x, length, weights, step, y, residual):
    def generate(context, builder, signature, values):
        _build(builder, *values)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), generate


def _build(builder: Any, x: Any, length: Any, weights: Any, step: Any, y: Any, residual: Any) -> None:
    with builder.goto_entry_block():
        sums = [[builder.alloca(VECTOR) for _ in range(VECTORS)] for _ in range(STREAMS)]
    panels = [pointer(builder, builder.add(weights, builder.mul(step, _I64(s))), _F32) for s in range(STREAMS)]
    for place in (place for stream in sums for place in stream):
        builder.store(ir.Constant(VECTOR, None), place)
    row = pointer(builder, x, _F32)
    with loop(builder, length) as k:
        value = splat_value(builder, builder.load(builder.gep(row, [k]), align=4))
        at = builder.mul(k, _I64(COLUMNS))
        for panel, stream in zip(panels, sums, strict=True):
            line = builder.gep(panel, [at])
            for v, place in enumerate(stream):
                where = builder.bitcast(builder.gep(line, [_I64(v * WIDTH)]), VECTOR.as_pointer())
                builder.store(multiply_add(builder, value, builder.load(where, align=4), builder.load(place)), place)
    with builder.if_then(builder.icmp_signed("!=", residual, _I64(0))):
        for number, place in enumerate(place for stream in sums for place in stream):
            where = pointer(builder, builder.add(residual, _I64(number * BYTES)), VECTOR)
            builder.store(builder.fadd(builder.load(place), builder.load(where, align=4)), place)
    for number, place in enumerate(place for stream in sums for place in stream):
        where = pointer(builder, builder.add(y, _I64(number * BYTES)), VECTOR)
        builder.store(builder.load(place), where, align=4)


@helper
def wide_row(x, length, weights, step, y, residual):
    """y = x times STREAMS panels, `step` bytes apart, plus a residual unless that is 0."""
    _several(x, length, weights, step, y, residual)
