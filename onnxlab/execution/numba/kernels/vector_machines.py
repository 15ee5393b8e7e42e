"""Support vector machines: the kernel function of a row and all support vectors, decisions, votes and probabilities.

Kernel functions are computed in float32, sums of them in float64. A record:

    x, x_row, rows, unit_rows   features, and what one unit takes
    features, vectors, padded   float32 [features][padded]: support vectors as columns, whole vectors of them
    function, parameters        LINEAR, POLY, RBF, SIGMOID; float32 gamma and coef0, int32 degree
    weights, starts             float32 [classes - 1][padded], or [1][padded]; int32 [classes + 1]: vectors of a class
    classes                     0 for a regression
    rho, sigmoids               float32 [pairs]; float32 [2][pairs] of the sigmoids that make probabilities, 0 if none
    choices, names              int64 [rows], and the labels to choose from
    y, y_row, kind              float32 scores, bytes of a row: what they are, of KINDS
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.simd.lanes import BYTES, fma, splat
from onnxlab.execution.numba.kernels.simd.memory import (
    get_f32,
    get_i32,
    get_i64,
    load,
    put_f32,
    put_i64,
    store,
    word,
)
from onnxlab.execution.numba.kernels.simd.vector_math import exp, tanh
from onnxlab.execution.numba.kernels.trees import get_f64, put_f64
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_ZERO = np.float32(0.0)
_RBF, _POLY, _SIGMOID = 2, 1, 3
_SIGN, _PROBABILITIES, _PAIR = 1, 2, 4
_ROUNDS = 100
_LEAST, _HIGHEST = np.float64(1e-7), np.float64(1.0 - 1e-7)


@helper
def _function(function, parameters, value):
    """The kernel function of dot products, or of squared distances."""
    gamma, offset = splat(get_f32(parameters)), splat(get_f32(parameters + 4))
    if function == _RBF:
        return exp(splat(_ZERO) - gamma * value)
    if function == 0:
        return value
    inner = fma(gamma, value, offset)
    if function == _SIGMOID:
        return tanh(inner)
    power = inner
    for _ in range(1, get_i32(parameters + 8)):
        power = power * inner
    return power


@helper
def _products(record, x, products):
    """The kernel function of a row and every support vector, as many at once as a vector holds."""
    features, vectors, padded = word(record, 6), word(record, 7), word(record, 8)
    function, parameters = word(record, 9), word(record, 10)
    for first in range(0, padded * 4, BYTES):
        total = splat(_ZERO)
        if function == _RBF:
            for feature in range(features):
                away = splat(get_f32(x + feature * 4)) - load(vectors + feature * padded * 4 + first)
                total = fma(away, away, total)
        else:
            for feature in range(features):
                total = fma(splat(get_f32(x + feature * 4)), load(vectors + feature * padded * 4 + first), total)
        store(products + first, _function(function, parameters, total))


@helper
def _weighted(products, weights, first, last):
    total = 0.0
    for vector in range(first, last):
        total += np.float64(get_f32(products + vector * 4)) * np.float64(get_f32(weights + vector * 4))
    return total


@helper
def _decide(record, products, decisions):
    """The decision of the machine for each pair of classes, positive for the first."""
    weights, starts, classes = word(record, 11), word(record, 12), word(record, 13)
    row, number = word(record, 8) * 4, 0
    for i in range(classes):
        for j in range(i + 1, classes):
            total = _weighted(products, weights + (j - 1) * row, get_i32(starts + i * 4), get_i32(starts + i * 4 + 4))
            total += _weighted(products, weights + i * row, get_i32(starts + j * 4), get_i32(starts + j * 4 + 4))
            put_f64(decisions + number * 8, total + np.float64(get_f32(word(record, 14) + number * 4)))
            number += 1
    return number


@helper
def _vote(decisions, votes, classes):
    """The class for which most machines decided; without a decision (NaN) it is the second of a pair."""
    for i in range(classes):
        put_i64(votes + i * 8, 0)
    number = 0
    for i in range(classes):
        for j in range(i + 1, classes):
            chosen = i if get_f64(decisions + number * 8) > 0.0 else j
            put_i64(votes + chosen * 8, get_i64(votes + chosen * 8) + 1)
            number += 1
    best = 0
    for i in range(1, classes):
        if get_i64(votes + i * 8) > get_i64(votes + best * 8):
            best = i
    return best


@helper
def _odds(decisions, sigmoids, pairs, classes, q, work):
    """q of the coupling, from the pairwise probabilities."""
    for i in range(classes):
        put_f64(q + (i * classes + i) * 8, 0.0)
    number = 0
    for i in range(classes):
        for j in range(i + 1, classes):
            slope, shift = get_f32(sigmoids + number * 4), get_f32(sigmoids + (pairs + number) * 4)
            power = get_f64(decisions + number * 8) * np.float64(slope) + np.float64(shift)
            store(work, exp(splat(np.float32(power))))
            p = 1.0 / (1.0 + np.float64(get_f32(work)))
            p = _LEAST if p < _LEAST else _HIGHEST if p > _HIGHEST else p
            put_f64(q + (i * classes + j) * 8, -p * (1.0 - p))
            put_f64(q + (j * classes + i) * 8, -p * (1.0 - p))
            at = q + (j * classes + j) * 8
            put_f64(at, get_f64(at) + p * p)
            at = q + (i * classes + i) * 8
            put_f64(at, get_f64(at) + (1.0 - p) * (1.0 - p))
            number += 1


@helper
def _times(q, p, qp, classes):
    """qp = q · p; returns (p · q · p, whether every element is near it; NaN is taken to be)."""
    expected = np.float64(0.0)
    for i in range(classes):
        total = np.float64(0.0)
        for j in range(classes):
            total += get_f64(q + (i * classes + j) * 8) * get_f64(p + j * 8)
        put_f64(qp + i * 8, total)
        expected += get_f64(p + i * 8) * total
    worst = 0.0
    for i in range(classes):
        away = abs(get_f64(qp + i * 8) - expected)
        if away > worst or away != away:
            worst = away
    return expected, not worst >= 0.005 / classes


@helper
def _couple(q, p, qp, classes):
    """The distribution whose pairwise odds fit best: libsvm's fixed-point iteration."""
    for i in range(classes):
        put_f64(p + i * 8, 1.0 / classes)
    for _ in range(_ROUNDS):
        expected, done = _times(q, p, qp, classes)
        if done:
            break
        for t in range(classes):
            diagonal, product = get_f64(q + (t * classes + t) * 8), get_f64(qp + t * 8)
            step = (expected - product) / diagonal
            put_f64(p + t * 8, get_f64(p + t * 8) + step)
            whole = 1.0 + step
            expected = (expected + step * (step * diagonal + 2.0 * product)) / (whole * whole)
            for i in range(classes):
                put_f64(qp + i * 8, (get_f64(qp + i * 8) + step * get_f64(q + (t * classes + i) * 8)) / whole)
                put_f64(p + i * 8, get_f64(p + i * 8) / whole)


@helper
def _classify(record, row, products, y):
    """Label and scores of one row."""
    classes, kind = word(record, 13), word(record, 20)
    decisions = products + word(record, 8) * 4
    pairs = _decide(record, products, decisions)
    votes = decisions + pairs * 8
    best = _vote(decisions, votes, classes)
    put_i64(word(record, 16) + row * 8, get_i64(word(record, 17) + best * 8))
    if kind == _PROBABILITIES:
        q = votes + classes * 8
        p = q + classes * classes * 8
        _odds(decisions, word(record, 15), pairs, classes, q, products)
        _couple(q, p, p + classes * 8, classes)
        for i in range(classes):
            put_f32(y + i * 4, np.float32(get_f64(p + i * 8)))
    elif kind == _PAIR:
        put_f32(y, np.float32(-get_f64(decisions)))
        put_f32(y + 4, np.float32(get_f64(decisions)))
    else:
        for number in range(pairs):
            put_f32(y + number * 4, np.float32(get_f64(decisions + number * 8)))


@kernel
def vector_machine(record: Any, unit: Any, scratch: Any) -> None:
    """Run one unit of rows."""
    first = unit * word(record, 5)
    for row in range(first, min(first + word(record, 5), word(record, 4))):
        _products(record, word(record, 2) + row * word(record, 3), scratch)
        y = word(record, 18) + row * word(record, 19)
        if word(record, 13):
            _classify(record, row, scratch, y)
            continue
        total = _weighted(scratch, word(record, 11), 0, word(record, 8)) + np.float64(get_f32(word(record, 14)))
        if word(record, 20) == _SIGN:
            put_f32(y, np.float32(1.0) if total > 0.0 else np.float32(-1.0))
        else:
            put_f32(y, np.float32(total))
