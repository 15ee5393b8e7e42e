"""Elementwise operators on integers, and casts between them, bool and float32.

A record of `integers`:

    a, b, y          contiguous; `b` is 0 where there is one operand
    c, c_step        what is chosen where `a` is 0, of the kind of `b`
    a_step, b_step   elements from one to the next: 1, or 0 of a single one
    a_kind, b_kind, y_kind   of KINDS
    operation        of OPERATIONS
    count, unit      elements, and those that one unit takes
    fault            address of a word that a division by 0 sets
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.simd.memory import (
    get_f32,
    get_i32,
    get_i64,
    get_u8,
    put_f32,
    put_i32,
    put_i64,
    put_u8,
    word,
)
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_INT64, _INT32, _BOOL, _FLOAT = range(4)
_DIVIDE, _CHOOSE = 9, 10


@helper
def _get(address, kind, place):
    if kind == _INT64:
        return get_i64(address + place * 8)
    if kind == _INT32:
        return get_i32(address + place * 4)
    if kind == _BOOL:
        return get_u8(address + place)
    return np.int64(get_f32(address + place * 4))


@helper
def _put(address, kind, place, value):
    if kind == _INT64:
        put_i64(address + place * 8, value)
    elif kind == _INT32:
        put_i32(address + place * 4, value)
    elif kind == _BOOL:
        put_u8(address + place, 1 if value != 0 else 0)
    else:
        put_f32(address + place * 4, np.float32(value))


@helper
def _compared(operation, a, b):
    """Equal, less, less or equal, greater, greater or equal."""
    if operation == 4:
        return a == b
    if operation == 5:
        return a < b
    if operation == 6:
        return a <= b
    return a > b if operation == 7 else a >= b


@helper
def _quotient(a, b):
    """Rounded towards 0; of the least number by -1, which processors refuse to divide, itself."""
    if b == -1:
        return 0 - a
    quotient = a // b
    return quotient + 1 if quotient * b != a and (a < 0) != (b < 0) else quotient


@helper
def _result(operation, a, b):
    if operation == 0:
        return a
    if operation == 1:
        return a + b
    if operation == 2:
        return a - b
    if operation == 3:
        return a * b
    if operation == _DIVIDE:
        return _quotient(a, b)
    return np.int64(1) if _compared(operation, a, b) else np.int64(0)


@kernel
def integers(record: Any, unit: Any, scratch: Any) -> None:
    """Compute one unit of elements."""
    a, b, y, operation = word(record, 2), word(record, 3), word(record, 4), word(record, 10)
    a_kind, b_kind, y_kind = word(record, 7), word(record, 8), word(record, 9)
    first = unit * word(record, 12)
    for i in range(first, min(first + word(record, 12), word(record, 11))):
        right = _get(b, b_kind, i * word(record, 6)) if b else 0
        if operation == 0 and a_kind == _FLOAT and y_kind == _BOOL:
            put_u8(y + i, 1 if get_f32(a + i * 4) != np.float32(0.0) else 0)
            continue
        left = _get(a, a_kind, i * word(record, 5))
        if operation == _CHOOSE:
            _put(y, y_kind, i, right if left else _get(word(record, 13), b_kind, i * word(record, 14)))
        elif operation == _DIVIDE and right == 0:
            put_i64(word(record, 15), 1)
        else:
            _put(y, y_kind, i, _result(operation, left, right))
