"""Chains of elementwise operators: a small vector machine whose registers are tiles that stay in the first cache.

A program is a table of int64 (operation, target, a, b, c) over registers. The operands fill the first registers, and
what the last instruction makes is written. An operand that is contiguous is read where it is; others are gathered,
and those that are one number fill their register once for each unit of work.

A record is FIELDS. Of each operand there are OPERAND_WORDS words at `operands`: address, kind, stride of rows, stride
of columns, strides of the three outer dims, in bytes. An item is a tile of `tile_rows` times `tile_columns` elements
of the two innermost dims; more than one row only if it takes whole rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.simd.lanes import BYTES, WIDTH, splat
from onnxlab.execution.numba.kernels.simd.memory import (
    copy_bytes,
    get_f32,
    get_i16,
    get_i32,
    get_u8,
    load,
    load_half,
    put_f32,
    put_i16,
    put_i32,
    put_i64,
    put_u8,
    store,
    store_half,
    word,
)
from onnxlab.execution.numba.kernels.simd.narrow_integers import (
    load_i8,
    load_i16,
    load_i32,
    load_u8,
    store_i8,
    store_i16,
)
from onnxlab.execution.numba.kernels.simd.operations import apply
from onnxlab.execution.numba.machine.object_cache import helper, kernel
from onnxlab.execution.numba.machine.records import (
    BOOL,
    BRAIN,
    BYTE,
    FLOAT,
    HALF,
    INT,
    OPERAND_WORDS,
    REGISTERS,
    SHORT,
    TILE,
)

_REGISTER = TILE * 4 + 64
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@helper
def _gather_line(register, source, count, step, kind):
    """Bring `count` elements into a register as float32."""
    if kind == FLOAT:
        if step == 4:
            copy_bytes(register, source, count * 4)
        elif step == 0:
            value, whole = get_f32(source), count // WIDTH * WIDTH
            for i in range(0, whole, WIDTH):
                store(register + i * 4, splat(value))
            for i in range(whole, count):
                put_f32(register + i * 4, value)
        else:
            for i in range(count):
                put_f32(register + i * 4, get_f32(source + i * step))
    elif kind == BRAIN:
        for i in range(count):
            put_i32(register + i * 4, get_i16(source + i * step) << 16)
    elif kind != HALF:
        _gather_integers(register, source, count, step, kind)
    else:
        whole = count // WIDTH * WIDTH if step == 2 else 0
        for i in range(0, whole, WIDTH):
            store(register + i * 4, load_half(source + i * 2))
        for i in range(whole, count):
            put_f32(register + i * 4, half_of(source + i * step))


@helper
def _gather_integers(register, source, count, step, kind):
    """Integers as `_gather_line` does; the last vector of a contiguous line is read in the registers' own memory."""
    item = 4 if kind == INT else 2 if kind == SHORT else 1
    if step != item:
        for i in range(count):
            put_f32(register + i * 4, np.float32(_integer(source + i * step, kind)))
        return
    for i in range(0, count, WIDTH):
        place, where = register + i * 4, source + i * item
        if count - i < WIDTH:
            copy_bytes(place, where, (count - i) * item)
            where = place
        if kind == SHORT:
            store(place, load_i16(where))
        elif kind == BYTE:
            store(place, load_i8(where))
        elif kind == INT:
            store(place, load_i32(where))
        else:
            store(place, load_u8(where))


@helper
def _integer(address, kind):
    if kind == SHORT:
        value = get_i16(address)
    elif kind == INT:
        value = get_i32(address)
    else:
        value = get_u8(address)
        if kind == BYTE and value > 127:
            value -= 256
    return value


@helper
def half_of(address):
    """One float16 as float32, by its bits."""
    bits = get_u8(address) | (get_u8(address + 1) << 8)
    size = (bits >> 10) & 31
    low = np.float32(bits & 1023)
    if size == 0:
        value = low * np.float32(5.9604644775390625e-08)
    elif size == 31:
        value = np.float32(np.inf) if (bits & 1023) == 0 else np.float32(np.nan)
    else:
        value = (np.float32(1.0) + low * np.float32(0.0009765625)) * np.float32(2.0) ** np.float32(size - 15)
    return -value if bits >> 15 else value


@helper
def brain_of(bits):
    """The bits of a float32 rounded to bfloat16, to even; NaN stays one."""
    if (bits & 0x7FFFFFFF) > 0x7F800000:
        return (bits >> 16) | 0x40
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


@helper
def _fill(record, scratch):
    """Fill the registers of operands that are one number."""
    table = word(record, 6)
    for number in range(word(record, 7)):
        operand = table + number * OPERAND_WORDS * 8
        still = word(operand, 2) == 0 and word(operand, 3) == 0
        if still and word(operand, 4) == 0 and word(operand, 5) == 0 and word(operand, 6) == 0:
            register = scratch + REGISTERS * 8 + number * _REGISTER
            _gather_line(register, word(operand, 0), 1, 0, word(operand, 1))
            value = splat(get_f32(register))
            for i in range(0, TILE, WIDTH):
                store(register + i * 4, value)
            put_i64(scratch + number * 8, register)


@helper
def _operands(record, scratch, i, j, k, row, column, rows, columns):
    """Point the first registers to the operands of a tile, gathering those that are not contiguous."""
    table = word(record, 6)
    count = rows * columns
    for number in range(word(record, 7)):
        operand = table + number * OPERAND_WORDS * 8
        kind, down, step = word(operand, 1), word(operand, 2), word(operand, 3)
        outer = i * word(operand, 4) + j * word(operand, 5) + k * word(operand, 6)
        if down == 0 and step == 0 and word(operand, 4) == 0 and word(operand, 5) == 0 and word(operand, 6) == 0:
            continue
        source = word(operand, 0) + outer + row * down + column * step
        dense = kind == FLOAT and step == 4 and (rows == 1 or down == columns * 4)
        if dense and count % WIDTH == 0:
            put_i64(scratch + number * 8, source)
            continue
        register = scratch + REGISTERS * 8 + number * _REGISTER
        put_i64(scratch + number * 8, register)
        if count % WIDTH:  # what is computed behind the last element must not be subnormal, which takes long
            store(register + count // WIDTH * BYTES, splat(_ZERO))
        if dense:
            copy_bytes(register, source, count * 4)
        else:
            for r in range(rows):
                _gather_line(register + r * columns * 4, source + r * down, columns, step, kind)


@helper
def _write(target, source, rows, columns, down, kind, spare):
    for r in range(rows):
        line, to = source + r * columns * 4, target + r * down
        if kind == BOOL:
            for i in range(columns):
                put_u8(to + i, 1 if get_f32(line + i * 4) != 0 else 0)
        elif kind == FLOAT:
            copy_bytes(to, line, columns * 4)
        else:
            item = 2 if kind in (HALF, SHORT, BRAIN) else 1
            whole = columns // WIDTH * WIDTH
            for i in range(0, whole, WIDTH):
                _narrowed(to + i * item, line + i * 4, kind)
            if whole < columns:  # registers have room behind their elements
                _narrowed(spare, line + whole * 4, kind)
                copy_bytes(to + whole * item, spare, (columns - whole) * item)


@helper
def _narrowed(target, source, kind):
    """Write a vector of numbers that fit as float16, bfloat16, int16, int8 or uint8."""
    if kind == HALF:
        store_half(target, load(source))
    elif kind == BRAIN:
        for i in range(WIDTH):
            put_i16(target + i * 2, brain_of(get_i32(source + i * 4)))
    elif kind == SHORT:
        store_i16(target, load(source))
    else:
        store_i8(target, load(source))


@kernel
def elementwise(record: Any, unit: Any, scratch: Any) -> None:
    """Run the program of an elementwise chain on one tile."""
    down, program, length = word(record, 3), word(record, 4), word(record, 5)
    rows, columns, size1, size2 = word(record, 8), word(record, 9), word(record, 10), word(record, 11)
    tile_rows, tile_columns = word(record, 15), word(record, 16)
    row_items, column_items, kind = word(record, 17), word(record, 18), word(record, 21)
    first = unit * word(record, 19)
    item = 4 if kind == FLOAT else 2 if kind in (HALF, SHORT, BRAIN) else 1
    for register in range(word(record, 7), REGISTERS):
        put_i64(scratch + register * 8, scratch + REGISTERS * 8 + register * _REGISTER)
    _fill(record, scratch)
    for number in range(first, min(first + word(record, 19), word(record, 20))):
        rest = number // column_items
        column = (number - rest * column_items) * tile_columns
        outer = rest // row_items
        row = (rest - outer * row_items) * tile_rows
        i = outer // (size1 * size2)
        j = outer // size2 - i * size1
        k = outer % size2
        n, m = min(tile_rows, rows - row), min(tile_columns, columns - column)
        _operands(record, scratch, i, j, k, row, column, n, m)
        target = word(record, 2) + i * word(record, 12) + j * word(record, 13) + k * word(record, 14)
        target += row * down + column * item
        vectors = (n * m + WIDTH - 1) // WIDTH
        direct = kind == FLOAT and (n * m) % WIDTH == 0 and (n == 1 or down == m * 4)
        for step in range(length):
            instruction = program + step * 40
            to = word(scratch, word(instruction, 1))
            if step == length - 1 and direct:
                to = target
            a, b = word(scratch, word(instruction, 2)), word(scratch, word(instruction, 3))
            apply(word(instruction, 0), to, a, b, word(scratch, word(instruction, 4)), vectors)
        if not direct:
            last = word(scratch, word(program + (length - 1) * 40, 1))
            _write(target, last, n, m, down, kind, scratch + REGISTERS * (_REGISTER + 8))
