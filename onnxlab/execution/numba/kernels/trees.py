"""Ensembles of decision trees, and the choice of labels.

A node is three int32 and a number: feature * 32 + 16 where it branches + 4 bits, the offsets of the nodes that follow
where the bit is not set and where it is, and what is compared with; 16 bytes, or 24 where numbers are float64. The bits
say where a feature goes that is less, equal, greater, or NaN; a leaf leads to itself, and nothing is compared with NaN.
Eight trees go down together, since each step waits for the one before, and no step is a jump that may be guessed wrong.
Numbers are added as float64, which for those of float32 gives what float32 would, as long as each sum is rounded.
A record:

    x, x_row, rows      features
    unit_rows           what one unit takes
    nodes, roots, trees all nodes; offsets [trees], whose number is a multiple of eight
    votes, voted        numbers and uint8 [nodes][targets]
    targets, y          of the votes; scores [rows][targets], or [rows][2] where they are paired
    choices, names      int64 [rows] and the labels to choose from, 0 where no label is wanted
    threshold           bits of float32: of one score, above which the second label is chosen
    base, always        numbers [targets] to add, 0 where absent; whether also where nothing voted
    divisor, aggregate  bits of float32; 0 sum, 1 smallest, 2 largest
    pair                of one score s: 0 as it is, 1 [0, s], 2 [1 - s, s], 3 [-s, s]
    number              bytes of a feature, split, vote and score: 4 of float32, or 8 of float64
    plain, full         whether each branch is "less or equal"; whether each leaf adds to each target
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from onnxlab.execution.numba.kernels.simd.lanes import declared, float_of_bits, pointer
from onnxlab.execution.numba.kernels.simd.memory import (
    clear_bytes,
    get_f32,
    get_i32,
    get_i64,
    get_u8,
    put_f32,
    put_i64,
    put_u8,
    word,
)
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_BRANCH = 16


@declared(types.float64, types.int64)
def get_f64(builder: Any, address: Any) -> Any:
    """Load a float64."""
    return builder.load(pointer(builder, address, ir.DoubleType()), align=8)


@declared(types.void, types.int64, types.float64)
def put_f64(builder: Any, address: Any, value: Any) -> None:
    """Store a float64."""
    builder.store(value, pointer(builder, address, ir.DoubleType()), align=8)


@helper
def _get(address, number):
    """A number of float32 or float64."""
    return np.float64(get_f32(address)) if number == 4 else get_f64(address)


@helper
def _put(address, value, number):
    if number == 4:
        put_f32(address, np.float32(value))
    else:
        put_f64(address, value)


@helper
def _bit(head, value, split, plain):
    """1 where a node sends this value to its second follower, else 0."""
    if plain:
        return np.int64(value <= split)
    outcome = np.int64(value == split) + 2 * np.int64(value > split) + 3 * np.int64(value != value)
    return (head >> outcome) & 1


@helper
def _next(place, x, number, plain):
    """The offset of the node that follows."""
    head = np.int64(get_i32(place))
    feature = x + (head >> 5) * number
    if number == 4:
        bit = _bit(head, get_f32(feature), get_f32(place + 12), plain)
    else:
        bit = _bit(head, get_f64(feature), get_f64(place + 16), plain)
    return np.int64(get_i32(place + 4 + 4 * bit))


@helper
def _leaves(nodes, roots, x, number, plain):
    """The offsets of the leaves that eight trees send a row to."""
    a, b, c, d = get_i64(roots), get_i64(roots + 8), get_i64(roots + 16), get_i64(roots + 24)
    e, f, g, h = get_i64(roots + 32), get_i64(roots + 40), get_i64(roots + 48), get_i64(roots + 56)
    heads = _BRANCH
    while heads & _BRANCH:
        a, b = _next(nodes + a, x, number, plain), _next(nodes + b, x, number, plain)
        c, d = _next(nodes + c, x, number, plain), _next(nodes + d, x, number, plain)
        e, f = _next(nodes + e, x, number, plain), _next(nodes + f, x, number, plain)
        g, h = _next(nodes + g, x, number, plain), _next(nodes + h, x, number, plain)
        heads = get_i32(nodes + a) | get_i32(nodes + b) | get_i32(nodes + c) | get_i32(nodes + d)
        heads |= get_i32(nodes + e) | get_i32(nodes + f) | get_i32(nodes + g) | get_i32(nodes + h)
    return a, b, c, d, e, f, g, h


@helper
def _vote(scores, seen, votes, voted, targets, aggregate, number):
    """Add what a leaf gives."""
    for target in range(targets):
        if get_u8(voted + target) == 0:
            continue
        at = scores + target * number
        value, before = _get(votes + target * number, number), _get(at, number)
        if aggregate == 0:
            value += before
        elif get_u8(seen + target) and ((aggregate == 1 and before < value) or (aggregate == 2 and before > value)):
            value = before
        _put(at, value, number)
        put_u8(seen + target, 1)


@helper
def _sum(record, scores, seen, offset):
    """Add what the leaf at this offset gives."""
    targets, number = word(record, 11), word(record, 21)
    first = (offset >> 4 if number == 4 else offset // 24) * targets
    votes = word(record, 9) + first * number
    if not word(record, 23):
        _vote(scores, seen, votes, word(record, 10) + first, targets, word(record, 18), number)
    elif number == 4:
        for target in range(0, targets * 4, 4):
            put_f32(scores + target, get_f32(scores + target) + get_f32(votes + target))
    else:
        for target in range(0, targets * 8, 8):
            put_f64(scores + target, get_f64(scores + target) + get_f64(votes + target))


@helper
def _choose(record, row, scores, seen, targets, number):
    """The label of a row: by a threshold for one score, else the largest that was voted for."""
    if word(record, 13) == 0:
        return
    best = 0
    if targets == 1:
        best = 1 if _get(scores, number) > float_of_bits(word(record, 15)) else 0
    else:
        has_best = False
        for target in range(targets):
            if seen and get_u8(seen + target) == 0:
                continue
            value, top = _get(scores + target * number, number), _get(scores + best * number, number)
            if not has_best or value > top or (value != value and top == top):
                best, has_best = target, True
    put_i64(word(record, 13) + row * 8, word(word(record, 14), best))


@helper
def _pair(record, y, score, number):
    """Two scores from one, or one."""
    kind = word(record, 19)
    if kind == 0:
        _put(y, score, number)
        return
    _put(y, 0.0 if kind == 1 else 1.0 - score if kind == 2 else -score, number)
    _put(y + number, score, number)


@kernel
def forest(record: Any, unit: Any, scratch: Any) -> None:
    """Sum the trees' weights of one unit of rows."""
    nodes, roots, trees, targets = word(record, 6), word(record, 7), word(record, 8), word(record, 11)
    base, divisor, number = word(record, 16), float_of_bits(word(record, 17)), word(record, 21)
    full = word(record, 23)
    seen = scratch + targets * number
    first = unit * word(record, 5)
    for row in range(first, min(first + word(record, 5), word(record, 4))):
        x = word(record, 2) + row * word(record, 3)
        clear_bytes(scratch, targets * (number + 1))
        for target in range(targets if full else 0):
            put_u8(seen + target, 1)
        for tree in range(0, trees, 8):
            for leaf in _leaves(nodes, roots + tree * 8, x, number, word(record, 22)):
                _sum(record, scratch, seen, leaf)
        for target in range(targets):
            at = scratch + target * number
            _put(at, _get(at, number) / divisor, number)
            if base and (word(record, 20) or get_u8(seen + target)):
                _put(at, _get(at, number) + _get(base + target * number, number), number)
        _choose(record, row, scratch, 0 if word(record, 20) and base else seen, targets, number)
        if targets == 1:
            y = word(record, 12) + row * (2 * number if word(record, 19) else number)
            _pair(record, y, _get(scratch, number), number)
        else:
            y = word(record, 12) + row * targets * number
            for target in range(targets):
                _put(y + target * number, _get(scratch + target * number, number), number)


@kernel
def choose(record: Any, unit: Any, scratch: Any) -> None:
    """Labels, and pairs, of scores x [rows][targets] that are there already."""
    targets, first = word(record, 11), unit * word(record, 5)
    for row in range(first, min(first + word(record, 5), word(record, 4))):
        x = word(record, 2) + row * word(record, 3)
        _choose(record, row, x, 0, targets, 4)
        if word(record, 19):
            _pair(record, word(record, 12) + row * 8, _get(x, 4), 4)
