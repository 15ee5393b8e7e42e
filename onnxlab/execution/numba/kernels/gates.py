"""Gates of recurrent layers: their activations, and the steps of LSTM, GRU and RNN over rows of hidden units.

The gates of a step are [gate][row][padded] float32; states are [row][padded]. What lies behind the last hidden unit
is computed too, and never read.
"""

from __future__ import annotations

from math import inf

import numpy as np

from onnxlab.execution.numba.kernels.simd.lanes import (
    BYTES,
    WIDTH,
    float_of_bits,
    fma,
    greater,
    less,
    select,
    splat,
    vabs,
    vmax,
    vmin,
)
from onnxlab.execution.numba.kernels.simd.memory import load, store, word
from onnxlab.execution.numba.kernels.simd.vector_math import expm1, sigmoid, softplus, tanh
from onnxlab.execution.numba.machine.object_cache import helper
from onnxlab.execution.numba.machine.records import ACTIVATIONS

_ZERO, _ONE, _HIGHEST = np.float32(0.0), np.float32(1.0), np.float32(inf)
_SIGMOID, _TANH, _RELU = (ACTIVATIONS.index(name) for name in ("sigmoid", "tanh", "relu"))
_SOFTSIGN, _SOFTPLUS, _AFFINE = (ACTIVATIONS.index(name) for name in ("softsign", "softplus", "affine"))
_LEAKY, _THRESHOLDED = (ACTIVATIONS.index(name) for name in ("leakyrelu", "thresholdedrelu"))
_SCALED_TANH, _HARD, _ELU = (ACTIVATIONS.index(name) for name in ("scaledtanh", "hardsigmoid", "elu"))


@helper
def activate(function, x, clip):
    """One of the activations, by its row of the table: code, and bits of alpha and beta."""
    if clip < _HIGHEST:
        x = vmin(vmax(x, splat(-clip)), splat(clip))
    code = word(function, 0)
    if code == _SIGMOID:
        return sigmoid(x)
    if code == _TANH:
        return tanh(x)
    return _unusual(code, splat(float_of_bits(word(function, 1))), splat(float_of_bits(word(function, 2))), x)


@helper
def _unusual(code, alpha, beta, x):
    zero, ones = splat(_ZERO), splat(_ONE)
    activated = x
    if code == _RELU:
        activated = vmax(x, zero)
    elif code == _SOFTSIGN:
        activated = x / (ones + vabs(x))
    elif code == _SOFTPLUS:
        activated = softplus(x)
    elif code == _AFFINE:
        activated = alpha * x + beta
    elif code == _LEAKY:
        activated = select(less(x, zero), alpha * x, x)
    elif code == _THRESHOLDED:
        activated = select(greater(x, alpha), x, zero)
    elif code == _SCALED_TANH:
        activated = alpha * tanh(beta * x)
    elif code == _HARD:
        activated = vmin(vmax(alpha * x + beta, zero), ones)
    elif code == _ELU:
        activated = select(greater(x, zero), x, alpha * expm1(vmin(x, zero)))
    return activated


@helper
def lstm_row(gates, plane, hidden, h, c, peepholes, functions, clip, coupled):
    """Gates i, o, f, c of one row, `plane` bytes apart, to its new states in place; `coupled`: f is 1 - i."""
    ones, no_clip = splat(_ONE), _HIGHEST
    for at in range(0, hidden * 4, BYTES):
        i, o = load(gates + at), load(gates + plane + at)
        forget, candidate = load(gates + 2 * plane + at), load(gates + 3 * plane + at)
        cell = load(c + at)
        if peepholes:
            i = i + load(peepholes + at) * cell
            forget = forget + load(peepholes + 2 * plane_of(hidden) + at) * cell
        i, forget = activate(functions, i, clip), activate(functions, forget, clip)
        if coupled:
            forget = ones - i
        cell = forget * cell + i * activate(functions + 24, candidate, clip)
        if peepholes:
            o = o + load(peepholes + plane_of(hidden) + at) * cell
        store(c + at, cell)
        store(h + at, activate(functions, o, clip) * activate(functions + 48, cell, no_clip))


@helper
def plane_of(hidden):
    """Bytes of one padded row of hidden units of a table of parameters."""
    return (hidden + WIDTH - 1) // WIDTH * BYTES


@helper
def reset_row(gates, plane, hidden, h, target, functions, clip):
    """The reset gate of a GRU times the state of one row, to `target`; gates are z, r, h."""
    for at in range(0, hidden * 4, BYTES):
        store(target + at, activate(functions, load(gates + plane + at), clip) * load(h + at))


@helper
def gru_row(gates, plane, hidden, h, recurrent, functions, clip):
    """Gates z, r, h of one row to its new state in place.

    `recurrent` is the state times its weights, which the reset gate multiplies now; 0 where it did before.
    """
    ones = splat(_ONE)
    for at in range(0, hidden * 4, BYTES):
        z, candidate = activate(functions, load(gates + at), clip), load(gates + 2 * plane + at)
        if recurrent:
            reset = activate(functions, load(gates + plane + at), clip)
            candidate = fma(reset, load(recurrent + at), candidate)
        before = load(h + at)
        store(h + at, (ones - z) * activate(functions + 24, candidate, clip) + z * before)


@helper
def rnn_row(gates, hidden, h, functions, clip):
    """H = f(gates) of one row of an RNN."""
    for at in range(0, hidden * 4, BYTES):
        store(h + at, activate(functions, load(gates + at), clip))
