"""One row times a matrix that is stored turned, as fully connected layers of one sample have it: nothing is packed.

A record:

    x                       the row: `length` float32
    weights                 [columns][length]: each column of the matrix is a row in memory
    bias, residual          float32 of each column; 0 where absent
    y                       results, contiguous
    low, high               bits of float32 to which results are clamped
    length, columns
    block                   columns that one unit takes
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from onnxlab.execution.numba.kernels.simd.lanes import (
    BYTES,
    VECTOR,
    WIDTH,
    external,
    float_of_bits,
    fma,
    multiply_add,
    pointer,
    splat,
    sum_of,
)
from onnxlab.execution.numba.kernels.simd.memory import get_f32, load, put_f32, word
from onnxlab.execution.numba.kernels.simd.microkernel import loop
from onnxlab.execution.numba.kernels.simd.tail_vectors import get
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_I64, _I32, _I8 = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_ZERO = np.float32(0.0)
_STREAMS, _VECTORS = 4, 2
_STEP = _VECTORS * BYTES
"""Bytes of a column that are multiplied at once: two vectors of each of four columns keep the units busy."""


@intrinsic
def _several(context, x, weights, column, whole, sums):
    def generate(context, builder, signature, values):
        _build(builder, *values)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5), generate


def _build(builder: Any, x: Any, weights: Any, column: Any, whole: Any, sums: Any) -> None:
    """The loop of `_columns`: sums of the first `whole` bytes of each column, a vector for each place of a step."""
    with builder.goto_entry_block():
        places = [builder.alloca(VECTOR) for _ in range(_STREAMS * _VECTORS)]
    for place in places:
        builder.store(ir.Constant(VECTOR, None), place)
    fetch = external(builder, "llvm.prefetch.p0", ir.VoidType(), _I8.as_pointer(), _I32, _I32, _I32)
    starts = [builder.add(weights, builder.mul(column, _I64(stream))) for stream in range(_STREAMS)]
    ahead = builder.add(weights, builder.mul(column, _I64(_STREAMS)))
    with loop(builder, builder.udiv(whole, _I64(_STEP))) as k:
        at = builder.mul(k, _I64(_STEP))
        for v in range(_VECTORS):
            offset = builder.add(at, _I64(v * BYTES))
            value = builder.load(pointer(builder, builder.add(x, offset), VECTOR), align=4)
            for start, place in zip(starts, places[v::_VECTORS], strict=True):
                weight = builder.load(pointer(builder, builder.add(start, offset), VECTOR), align=4)
                builder.store(multiply_add(builder, value, weight, builder.load(place)), place)
        for line in range(0, _STREAMS * _STEP, 64):  # of the next columns, which follow these
            address = builder.add(ahead, builder.add(builder.mul(at, _I64(_STREAMS)), _I64(line)))
            builder.call(fetch, [pointer(builder, address, _I8), _I32(0), _I32(2), _I32(1)])
    for number in range(_STREAMS):
        total = builder.fadd(*map(builder.load, places[number * _VECTORS : (number + 1) * _VECTORS]))
        builder.store(total, pointer(builder, builder.add(sums, _I64(number * BYTES)), VECTOR), align=4)


@helper
def _tail(total, x, w, first, length):
    """The sum of a column from an element on, added to the vector `total`."""
    for k in range(first, length, WIDTH):
        total = fma(get(x + k * 4, length - k), get(w + k * 4, length - k), total)
    return sum_of(total)


@helper
def _finish(record, column, value):
    """Add bias and residual, clamp and write the result of a column."""
    low, high, at = float_of_bits(word(record, 7)), float_of_bits(word(record, 8)), column * 4
    if word(record, 4):
        value += get_f32(word(record, 4) + at)
    if word(record, 6):
        value += get_f32(word(record, 6) + at)
    if value < low:
        value = low
    if value > high:
        value = high
    put_f32(word(record, 5) + at, value)


@kernel
def gemv(record: Any, unit: Any, scratch: Any) -> None:
    """Multiply the row by one block of columns."""
    x, weights, length = word(record, 2), word(record, 3), word(record, 9)
    column = unit * word(record, 11)
    last = min(column + word(record, 11), word(record, 10))
    whole = length * 4 // _STEP * _STEP
    while column + _STREAMS <= last:
        w = weights + column * length * 4
        _several(x, w, length * 4, whole, scratch)
        for stream in range(_STREAMS):
            total = load(scratch + stream * BYTES)
            _finish(record, column + stream, _tail(total, x, w + stream * length * 4, whole // 4, length))
        column += _STREAMS
    while column < last:
        _finish(record, column, _tail(splat(_ZERO), x, weights + column * length * 4, 0, length))
        column += 1
