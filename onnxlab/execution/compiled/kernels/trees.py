"""Ensembles of decision trees, and the choice of labels.

A node is four int32: feature * 16 + whether NaN is true * 8 + mode, the bits of the value, and the nodes that follow
when the comparison holds and when not. A record:

    x, x_row, rows      features, float32
    unit_rows           what one unit takes
    nodes, roots, trees all nodes; int32 [trees]
    votes, voted        float32 and uint8 [nodes][targets]
    targets, y          of the votes; scores [rows][targets], or [rows][2] where they are paired
    choices, names      int64 [rows] and the labels to choose from, 0 where no label is wanted
    threshold           bits of float32: of one score, above which the second label is chosen
    base, always        float32 [targets] to add, 0 where absent; whether also where nothing voted
    divisor, aggregate  bits of float32; 0 sum, 1 smallest, 2 largest
    pair                of one score s: 0 as it is, 1 [0, s], 2 [1 - s, s], 3 [-s, s]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.execution.compiled.cache import helper, kernel
from onnxlab.execution.compiled.kernels.lanes import (
    clear_bytes,
    float_of_bits,
    get_f32,
    get_i32,
    get_u8,
    put_f32,
    put_i64,
    put_u8,
    word,
)

_LEAF = 7
_ONE = np.float32(1.0)


@helper
def _branches(mode, value, split):
    """LEQ, LT, GTE, GT, EQ, NEQ."""
    if mode == 0:
        return value <= split
    if mode == 1:
        return value < split
    if mode == 2:
        return value >= split
    if mode == 3:
        return value > split
    if mode == 4:
        return value == split
    return value != split


@helper
def _leaf(nodes, node, x):
    """The leaf that a tree sends a row to."""
    while True:
        place = nodes + node * 16
        head = get_i32(place)
        mode = head & 7
        if mode == _LEAF:
            return node
        value = get_f32(x + (head >> 4) * 4)
        go = _branches(mode, value, get_f32(place + 4))
        if value != value and (head & 8):
            go = True
        node = get_i32(place + 8) if go else get_i32(place + 12)


@helper
def _vote(scores, seen, votes, voted, targets, aggregate):
    """Add what a leaf gives."""
    for target in range(targets):
        if get_u8(voted + target) == 0:
            continue
        at = scores + target * 4
        value, before = get_f32(votes + target * 4), get_f32(at)
        if aggregate == 0:
            value += before
        elif get_u8(seen + target) and ((aggregate == 1 and before < value) or (aggregate == 2 and before > value)):
            value = before
        put_f32(at, value)
        put_u8(seen + target, 1)


@helper
def _choose(record, row, scores, seen, targets):
    """The label of a row: by a threshold for one score, else the largest that was voted for."""
    if word(record, 13) == 0:
        return
    best = 0
    if targets == 1:
        best = 1 if get_f32(scores) > float_of_bits(word(record, 15)) else 0
    else:
        found = False
        for target in range(targets):
            if seen and get_u8(seen + target) == 0:
                continue
            value, top = get_f32(scores + target * 4), get_f32(scores + best * 4)
            if not found or value > top or (value != value and top == top):
                best, found = target, True
    put_i64(word(record, 13) + row * 8, word(word(record, 14), best))


@helper
def _pair(record, y, score):
    """Two scores from one, or one."""
    kind = word(record, 19)
    if kind == 0:
        put_f32(y, score)
        return
    put_f32(y, np.float32(0.0) if kind == 1 else _ONE - score if kind == 2 else -score)
    put_f32(y + 4, score)


@kernel
def forest(record: Any, unit: Any, scratch: Any) -> None:
    nodes, roots, trees, targets = word(record, 6), word(record, 7), word(record, 8), word(record, 11)
    base, divisor = word(record, 16), float_of_bits(word(record, 17))
    seen = scratch + targets * 4
    first = unit * word(record, 5)
    for row in range(first, min(first + word(record, 5), word(record, 4))):
        x = word(record, 2) + row * word(record, 3)
        clear_bytes(scratch, targets * 5)
        for tree in range(trees):
            at = _leaf(nodes, get_i32(roots + tree * 4), x) * targets
            _vote(scratch, seen, word(record, 9) + at * 4, word(record, 10) + at, targets, word(record, 18))
        for target in range(targets):
            at = scratch + target * 4
            value = get_f32(at) / divisor
            if base and (word(record, 20) or get_u8(seen + target)):
                value += get_f32(base + target * 4)
            put_f32(at, value)
        _choose(record, row, scratch, 0 if word(record, 20) and base else seen, targets)
        if targets == 1:
            _pair(record, word(record, 12) + row * (8 if word(record, 19) else 4), get_f32(scratch))
        else:
            for target in range(targets):
                put_f32(word(record, 12) + (row * targets + target) * 4, get_f32(scratch + target * 4))


@kernel
def choose(record: Any, unit: Any, scratch: Any) -> None:
    """Labels, and pairs, of scores x [rows][targets] that are there already."""
    targets, first = word(record, 11), unit * word(record, 5)
    for row in range(first, min(first + word(record, 5), word(record, 4))):
        x = word(record, 2) + row * word(record, 3)
        _choose(record, row, x, 0, targets)
        if word(record, 19):
            _pair(record, word(record, 12) + row * 8, get_f32(x))
