"""Recurrent layers: RNN, GRU, LSTM.

Shapes: X [time, batch, input], W [directions, gates·hidden, input], R [directions, gates·hidden, hidden],
B [directions, 2·gates·hidden], states [directions, batch, hidden]; with layout=1 the batch comes first.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import recurrent_flops
from onnxlab.ops.base.kernel_helpers import Array, narrow, widen
from onnxlab.ops.base.prepared_constants import prepared
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, dims_text, like
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.onnx.nn.activation import softplus, softsign
from onnxlab.ops.onnx.nn.time_steps import LayerInputs, Step, in_order, prepare, scan
from onnxlab.shapes import Dim, Fact, FactError

Activation = Callable[[Array, Array], Array]
"""`f(x, y)` writes f(x) into y, which may be x, and returns y."""
_ZERO, _ONE, _MINUS_ONE = (np.array(value, np.float32) for value in (0, 1, -1))


def _sigmoid(x: Array, y: Array) -> Array:
    np.multiply(x, _MINUS_ONE, y)  # NumPy 2.4 negates every fourth element in place wrongly
    np.exp(y, y)
    np.add(y, _ONE, y)
    return np.reciprocal(y, y)


_WRITING: dict[str, Activation] = {
    "relu": lambda x, y: np.maximum(x, _ZERO, out=y),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
}
# name: (defaults of the parameters, function)
_ACTIVATIONS: dict[str, tuple[tuple[float, ...], Callable[..., Array]]] = {
    "softsign": ((), softsign),
    "softplus": ((), softplus),
    "affine": ((1.0, 0.0), lambda x, a, b: a * x + b),
    "leakyrelu": ((0.01,), lambda x, a: np.where(x < 0, a * x, x)),
    "thresholdedrelu": ((1.0,), lambda x, a: np.where(x > a, x, 0)),
    "scaledtanh": ((1.0, 1.0), lambda x, a, b: a * np.tanh(b * x)),
    "hardsigmoid": ((0.2, 0.5), lambda x, a, b: np.clip(a * x + b, 0, 1)),
    "elu": ((1.0,), lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0)))),
}


def _activation(name: str, alpha: list[float], beta: list[float]) -> Activation:
    """The function that a name means; it takes its parameters, as far as given, off the two lists."""
    lower = name.lower()
    if lower in _WRITING:
        return _WRITING[lower]
    if lower not in _ACTIVATIONS:
        known = ", ".join((*_WRITING, *_ACTIVATIONS))
        raise ValueError(f"activation {name!r} is unknown: expected one of {known}")
    defaults, function = _ACTIVATIONS[lower]
    values = [(alpha, beta)[place].pop(0) if (alpha, beta)[place] else value for place, value in enumerate(defaults)]
    parameters = [np.float32(value) for value in values]

    def write(x: Array, y: Array) -> Array:
        y[...] = function(x, *parameters)
        return y

    return write


def parts(functions: Sequence[Sequence[Activation]]) -> list[slice]:
    """The directions that run together: all, where their activations are the same."""
    if all(of_one == functions[0] for of_one in functions):
        return [slice(0, len(functions))]
    return [slice(number, number + 1) for number in range(len(functions))]


def results(runs: Sequence[tuple[Array, ...]], layout: int, dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """(Y, last states…) of all directions, in the layout asked for."""
    y, *states = runs[0]
    if len(runs) > 1:
        y = np.concatenate([run[0] for run in runs], axis=1)  # [time, directions, batch, hidden]
        states = [np.concatenate(of_state) for of_state in zip(*(run[1:] for run in runs), strict=True)]
    y = np.ascontiguousarray(y)
    if layout:
        y, states = y.transpose(2, 0, 1, 3), [state.swapaxes(0, 1) for state in states]
    return tuple(narrow(array, dtype) for array in (y, *states))


def _projected(layer: LayerInputs, part: slice, bias: Array) -> Array:
    """X times W of some directions plus biases: [time, directions, batch, gates·hidden], in the order they run."""
    steps, batch, width = layer.x.shape
    flat = np.ascontiguousarray(layer.x).reshape(steps * batch, width)
    y = flat @ layer.w[part].reshape(-1, width).T
    y += bias.reshape(-1)
    return in_order(layer, part, y.reshape(steps, batch, *bias.shape).swapaxes(1, 2))


def _weights(r: Array, part: slice, first: int = 0, last: int | None = None) -> Array:
    """Columns of the recurrent weights of some directions, transposed for BLAS; computed once of constants."""

    def transposed(weights: Array) -> Array:
        return np.ascontiguousarray(widen(weights)[part, first:last].swapaxes(1, 2))

    return prepared(("transposed", part.start, part.stop, first, last), transposed, r)


def _product(layer: LayerInputs, matrices: Array) -> Callable[[Array], Array]:
    """state -> state @ matrices; each call writes into the same array."""
    out = np.empty((len(matrices), layer.x.shape[1], matrices.shape[2]), np.result_type(layer.x, matrices))
    if len(matrices) > 1:
        return lambda state: np.matmul(state, matrices, out=out)
    matrix, rows = matrices[0], out[0]

    def multiply(state: Array) -> Array:
        np.dot(state[0], matrix, rows)  # takes two thirds of matmul's time where a state is small
        return out

    return multiply


_FEW_ROWS = 4
"""Rows of a state from which on one product of matrices is quicker than one for each row."""


LSTM_GATES = (1, 0, 2, 3)
"""Places of the gates o, i, f and c among those of an LSTM: in this order `lstm_step_of_sigmoids` has them."""
_GRU_GATES = (0, 1, 2)


def gates_first(sums: Array, order: Sequence[int]) -> Array:
    """Sums [time, directions, batch, gates·hidden] as [time, gates, directions, batch, hidden], in one piece.

    The gates come in this order. All but the last are sigmoids. They are negated: the exponential of a negated sum is
    what a sigmoid takes. Each gate in one piece of memory takes a third of the time of one that is spread over rows.
    """
    y = sums.reshape(*sums.shape[:3], len(order), sums.shape[3] // len(order)).transpose(3, 0, 1, 2, 4)[[*order]]
    y[:-1] *= _MINUS_ONE
    return np.ascontiguousarray(y.swapaxes(0, 1))


def _arranged(weights: Array, part: slice, order: Sequence[int]) -> Array:
    """Weights or biases [directions, gates·hidden, …] as [directions, gates, hidden, …], as `gates_first` has gates."""
    wide = weights[part]
    y = wide.reshape(len(wide), len(order), wide.shape[1] // len(order), *wide.shape[2:])[:, [*order]]
    y[:, :-1] *= _MINUS_ONE
    return y


def _of_inputs(part: slice, order: Sequence[int], w: Array, b: Array | None) -> tuple[Array, Array | None]:
    """The factor of X for the sums of all gates, and their biases."""
    matrix, rows = _arranged(widen(w), part, order), None
    if b is not None:
        of_x, of_state = (widen(b)[:, half] for half in (slice(w.shape[1]), slice(w.shape[1], None)))
        rows = _arranged(of_x + of_state, part, order)
        if order is _GRU_GATES:  # the recurrent bias of h is inside of what the reset gate multiplies
            rows[:, -1] = of_x.reshape(len(b), 3, -1)[part, -1]
    return matrix.reshape(-1, w.shape[2]).T, None if rows is None else rows.reshape(-1)


def _projected_gates(layer: LayerInputs, w: Array, b: Array | None, part: slice, order: Sequence[int]) -> Array:
    """`gates_first` of X times W plus biases, in the order in which directions run; W and B as the node has them."""
    matrix, bias = prepared(("of inputs", part.start, part.stop, order), partial(_of_inputs, part, order), w, b)
    steps, batch, width = layer.x.shape
    sums = np.ascontiguousarray(layer.x).reshape(steps * batch, width) @ matrix
    if bias is not None:
        np.add(sums, bias, sums)
    y = sums.reshape(steps, batch, part.stop - part.start, len(order), layer.hidden)
    return np.ascontiguousarray(in_order(layer, part, y.swapaxes(1, 2)).transpose(0, 3, 1, 2, 4))


def _product_of_gates(
    layer: LayerInputs, r: Array, part: slice, order: Sequence[int], rows: int
) -> tuple[Callable[[Array], Array], Array]:  # fmt: skip
    """(state -> sums, an array of some rows, into the first of which each call writes the sums of the gates)."""
    h, gates, (directions, batch) = layer.hidden, len(order), layer.states[0][part].shape[:2]
    is_single = directions == batch == 1

    def arranged(weights: Array) -> Array:
        matrices = _arranged(widen(weights), part, order)
        if is_single:
            return np.ascontiguousarray(matrices.reshape(gates * h, h).T)
        return np.ascontiguousarray(matrices.transpose(1, 0, 3, 2))

    matrices = prepared(("gates first", part.start, part.stop, order, is_single), arranged, r)
    whole = np.empty((rows, directions, batch, h), np.result_type(layer.x, matrices))
    sums = whole[:gates]
    if is_single:
        row = sums.reshape(gates * h)
        return lambda state: np.dot(state.reshape(h), matrices, row), whole
    if batch < _FEW_ROWS:
        sums_by_row, of_row = sums[:, :, :, None], matrices[:, :, None]
        return lambda state: np.matmul(state[:, :, None], of_row, sums_by_row), whole
    return lambda state: np.matmul(state, matrices, sums), whole


def _clip(x: Array, clip: float | None) -> None:
    if clip:
        np.clip(x, -clip, clip, x)


@kernel("RNN", context=True)
def rnn(
    ctx: RunContext,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] = ("Tanh", "Tanh"),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Array, ...]:
    """Ht = f(Xt·Wᵀ + Ht−1·Rᵀ + Wb + Rb): (Y, Y_h)."""
    layer = prepare(x, w, r, b, sequence_lens, (initial_h,), direction, layout)
    functions = activations_of(activations, activation_alpha, activation_beta, len(layer.w), 1)
    runs = []
    for part in parts(functions):
        recur = _product(layer, _weights(r, part))
        (f,) = functions[part.start]

        def step(
            now: Array, states: tuple[Array, ...], out: Array, recur: Callable[[Array], Array] = recur,
            f: Activation = f,
        ) -> tuple[Array, ...]:  # fmt: skip
            sums = recur(states[0])
            np.add(now, sums, sums)
            _clip(sums, clip)
            return (f(sums, out),)

        w_bias, r_bias = biases(layer, part, 1)
        runs.append(scan(ctx, layer, part, _projected(layer, part, w_bias + r_bias), step))
    return results(runs, layout, x.dtype)


def activations_of(
    names: Sequence[str],
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    directions: int,
    per_direction: int,
) -> Sequence[Sequence[Activation]]:
    """The activations of every direction; names for one direction serve both.

    Raises:
        ValueError: an activation is unknown.
    """
    return _activations_of((*names,), (*(alphas or ()),), (*(betas or ()),), directions, per_direction)


@lru_cache
def _activations_of(
    names: tuple[str, ...], alphas: tuple[float, ...], betas: tuple[float, ...], directions: int, per_direction: int
) -> Sequence[Sequence[Activation]]:
    if len(names) < directions * per_direction:
        names = names * directions
    alpha, beta = list(alphas), list(betas)
    flat = [_activation(name, alpha, beta) for name in names[: directions * per_direction]]
    return [flat[number * per_direction : (number + 1) * per_direction] for number in range(directions)]


@kernel("GRU", context=True)
def gru(
    ctx: RunContext,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] = ("Sigmoid", "Tanh"),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
    output_sequence: int = 0,
) -> tuple[Array, ...]:
    """Gated recurrent unit with gates in the order z, r, h: (Y, Y_h)."""
    layer = prepare(x, w, r, b, sequence_lens, (initial_h,), direction, layout)
    functions = activations_of(activations, activation_alpha, activation_beta, len(layer.w), 2)
    h, runs = layer.hidden, []
    for part in parts(functions):
        w_bias, r_bias = biases(layer, part, 3)
        if linear_before_reset and functions[part.start][0] is _sigmoid and not clip:
            projected = _projected_gates(layer, w, b, part, _GRU_GATES)
            recur, sums = _product_of_gates(layer, r, part, _GRU_GATES, 3)
            step = _gru_step_of_sigmoids(recur, sums, r_bias, functions[part.start][1])
            runs.append(scan(ctx, layer, part, projected, step))
            continue
        bias = w_bias + r_bias
        if linear_before_reset:  # the recurrent bias of h is inside of what the reset gate multiplies
            bias[:, 2 * h :] = w_bias[:, 2 * h :]
            step = _gru_step_before_reset(layer, _weights(r, part), r_bias, functions[part.start], clip)
        else:
            step = _gru_step(layer, _weights(r, part, 0, 2 * h), _weights(r, part, 2 * h), functions[part.start], clip)
        runs.append(scan(ctx, layer, part, _projected(layer, part, bias), step))
    return results(runs, layout, x.dtype)


def biases(layer: LayerInputs, part: slice, gates: int) -> tuple[Array, Array]:
    """The input and recurrent biases of some directions, each [directions, gates·hidden]."""
    width = gates * layer.hidden
    if layer.b is None:
        zeros = np.zeros((len(layer.w[part]), width), layer.x.dtype)
        return zeros, zeros
    return layer.b[part, :width], layer.b[part, width:]


def _gru_step(
    layer: LayerInputs, gate_weights: Array, weights: Array, functions: Sequence[Activation], clip: float | None
) -> Step:  # fmt: skip
    (f, g), h = functions, layer.hidden
    open_gates, candidate_of = _product(layer, gate_weights), _product(layer, weights)

    def step(now: Array, states: tuple[Array, ...], out: Array) -> tuple[Array, ...]:
        (before,) = states
        gates = open_gates(before)
        np.add(now[..., : 2 * h], gates, gates)
        _clip(gates, clip)
        f(gates, gates)
        np.multiply(gates[..., h:], before, out)
        candidate = candidate_of(out)
        np.add(now[..., 2 * h :], candidate, candidate)
        return (_mixed(gates[..., :h], candidate, before, g, clip, out),)

    return step


def _gru_step_of_sigmoids(recur: Callable[[Array], Array], sums: Array, bias: Array, g: Activation) -> Step:
    """`_gru_step_before_reset` with sigmoids and no clip, on sums as `gates_first` has them.

    A sigmoid is divided by: 1 / (1 + exp(−x)) takes a division anyway.
    """
    gates, (z, reset, candidate) = sums[:2], sums
    inner = bias.reshape(len(bias), 1, 3, sums.shape[-1])[:, :, 2] if np.count_nonzero(bias) else None

    def step(now: Array, states: tuple[Array, ...], out: Array) -> tuple[Array, ...]:
        (before,) = states
        recur(before)
        np.add(now[:2], gates, gates)
        np.exp(gates, gates)
        np.add(gates, _ONE, gates)
        if inner is not None:
            np.add(candidate, inner, candidate)
        np.divide(candidate, reset, candidate)
        np.add(now[2], candidate, candidate)
        g(candidate, candidate)
        np.subtract(before, candidate, out)
        np.divide(out, z, out)
        return (np.add(out, candidate, out),)

    return step


def _gru_step_before_reset(
    layer: LayerInputs, weights: Array, bias: Array, functions: Sequence[Activation], clip: float | None
) -> Step:  # fmt: skip
    (f, g), h = functions, layer.hidden
    recur, inner = _product(layer, weights), bias[:, None, 2 * h :] if np.count_nonzero(bias) else None

    def step(now: Array, states: tuple[Array, ...], out: Array) -> tuple[Array, ...]:
        (before,) = states
        sums = recur(before)
        gates, candidate = sums[..., : 2 * h], sums[..., 2 * h :]
        np.add(now[..., : 2 * h], gates, gates)
        _clip(gates, clip)
        f(gates, gates)
        if inner is not None:
            np.add(candidate, inner, candidate)
        np.multiply(gates[..., h:], candidate, candidate)
        np.add(now[..., 2 * h :], candidate, candidate)
        return (_mixed(gates[..., :h], candidate, before, g, clip, out),)

    return step


def _mixed(z: Array, candidate: Array, before: Array, g: Activation, clip: float | None, out: Array) -> Array:
    """(1 − z) · g(candidate) + z · before, written into `out`; `candidate` is used up."""
    _clip(candidate, clip)
    g(candidate, candidate)
    np.subtract(_ONE, z, out)
    np.multiply(out, candidate, out)
    np.multiply(z, before, candidate)
    return np.add(out, candidate, out)


@kernel("LSTM", context=True)
def lstm(
    ctx: RunContext,
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    p: Array | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] = ("Sigmoid", "Tanh", "Tanh"),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Array, ...]:
    """Long short-term memory with gates in the order i, o, f, c and peepholes P (i, o, f): (Y, Y_h, Y_c)."""
    layer = prepare(x, w, r, b, sequence_lens, (initial_h, initial_c), direction, layout)
    functions = activations_of(activations, activation_alpha, activation_beta, len(layer.w), 3)
    runs = []
    for part in parts(functions):
        if is_usual_lstm(functions[part.start], p, clip, input_forget):
            projected = _projected_gates(layer, w, b, part, LSTM_GATES)
            step = lstm_step_of_sigmoids(*_product_of_gates(layer, r, part, LSTM_GATES, 5), functions[part.start])
            runs.append(scan(ctx, layer, part, projected, step))
            continue
        w_bias, r_bias = biases(layer, part, 4)
        recur = _product(layer, _weights(r, part))
        step = lstm_step(recur, layer.hidden, peepholes_of(p, part), functions[part.start], clip, input_forget)
        runs.append(scan(ctx, layer, part, _projected(layer, part, w_bias + r_bias), step))
    return results(runs, layout, x.dtype)


def is_usual_lstm(
    functions: Sequence[Activation], p: Array | None, clip: float | None, input_forget: int
) -> bool:  # fmt: skip
    """Whether `lstm_step_of_sigmoids` does what these attributes and peepholes ask for."""
    return functions[0] is _sigmoid and p is None and not clip and not input_forget


def lstm_step_of_sigmoids(recur: Callable[[Array], Array], rows: Array, functions: Sequence[Activation]) -> Step:
    """`lstm_step` where `is_usual_lstm`, on sums as `gates_first` has them, with a row behind them for the cell state.

    A sigmoid is divided by: 1 / (1 + exp(−x)) takes a division anyway.
    """
    (_, g, last), sums, gates, (o, _i, _f, new, state_row) = functions, rows[:4], rows[:3], rows
    divided, by = rows[3:], rows[1:3]

    def step(now: Array, states: tuple[Array, ...], out: Array) -> tuple[Array, ...]:
        before, cell = states
        if cell is not state_row:
            state_row[...] = cell
        recur(before)
        np.add(now, sums, sums)
        np.exp(gates, gates)
        np.add(gates, _ONE, gates)
        g(new, new)
        np.divide(divided, by, divided)
        np.add(state_row, new, state_row)
        last(state_row, out)
        return np.divide(out, o, out), state_row

    return step


def peepholes_of(p: Array | None, part: slice) -> Array | None:
    """[3, directions, 1, hidden] of some directions."""
    return None if p is None else widen(p)[part].reshape(part.stop - part.start, 3, 1, -1).swapaxes(0, 1)


def lstm_step(
    recur: Callable[[Array], Array],
    h: int,
    peepholes: Array | None,
    functions: Sequence[Activation],
    clip: float | None,
    input_forget: int,
) -> Step:
    """One step of an LSTM of `h` hidden units; `recur` multiplies the hidden state with the recurrent weights.

    What `recur` returns is written to.
    """
    f, g, last = functions

    def step(now: Array, states: tuple[Array, ...], out: Array) -> tuple[Array, ...]:
        before, cell = states
        gates = recur(before)
        np.add(now, gates, gates)
        i, o, forget, new = (gates[..., place * h : place * h + h] for place in range(4))
        if peepholes is None:
            _clip(gates, clip)
            opened = gates[..., : 3 * h]
            f(opened, opened)
        else:  # the output gate peeps at the new cell, so it comes later
            for gate, peephole in ((i, peepholes[0]), (forget, peepholes[2])):
                gate += peephole * cell
                _clip(gate, clip)
                f(gate, gate)
            _clip(new, clip)
        if input_forget:
            np.subtract(_ONE, i, forget)
        g(new, new)
        np.multiply(i, new, new)
        np.multiply(forget, cell, cell)
        np.add(cell, new, cell)
        if peepholes is not None:
            o += peepholes[1] * cell
            _clip(o, clip)
            f(o, o)
        last(cell, out)
        return np.multiply(o, out, out), cell

    return step


# -- shape rules -------------------------------------------------------------------------------------------------------


def recurrent(
    ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, r: Fact, *_others: MaybeFact
) -> tuple[Fact, ...]:
    """Y [seq, directions, batch, hidden] (batch first by `layout`), then the last hidden state, then the cell state."""
    if x.shape is not None and len(x.shape) != 3:
        raise FactError(
            f"the input has shape {dims_text(x.shape)}",
            code="rank-mismatch",
            expected="[seq, batch, input size]",
            found=f"rank {len(x.shape)}",
        )
    directions = 2 if attributes.get("direction", "forward") == "bidirectional" else 1
    hidden: Dim = attributes.get("hidden_size") or (r.shape[-1] if r.shape else ctx.symbol(1, 2))
    if attributes.get("layout"):
        batch, seq = x.shape[:2] if x.shape is not None else (ctx.symbol(0, 0), ctx.symbol(0, 1))
        last = like(x, (batch, directions, hidden))
        return like(x, (batch, seq, directions, hidden)), last, last
    seq, batch = x.shape[:2] if x.shape is not None else (ctx.symbol(0, 0), ctx.symbol(0, 2))
    last = like(x, (directions, batch, hidden))
    return like(x, (seq, directions, batch, hidden)), last, last


for _name in ("LSTM", "GRU", "RNN"):
    rule(_name, since=7)(recurrent)


# -- traits ------------------------------------------------------------------------------------------------------------


def _recurrent_bytes(attributes: Mapping[str, Any], x: Any, w: Any, r: Any, *rest: Any) -> int:
    """All hidden states; r is [directions, gates · hidden, hidden]."""
    return int(x.shape[0] * x.shape[1] * r.shape[0] * r.shape[2] * max(4, x.itemsize))


traits(
    "GRU",
    OpTraits(
        category="recurrent",
        shape="shapes",
        flops=recurrent_flops,
        elements="none",
        out_bytes=_recurrent_bytes,
        signature="T B I|D 3H I|D 3H H|D 6H|B|D B H",
        layer="recurrent",
    ),
)
traits(
    "LSTM",
    OpTraits(
        category="recurrent",
        shape="shapes",
        flops=recurrent_flops,
        elements="none",
        out_bytes=_recurrent_bytes,
        signature="T B I|D 4H I|D 4H H|D 8H|B|D B H|D B H|D 3H",
        layer="recurrent",
    ),
)
traits(
    "RNN",
    OpTraits(
        category="recurrent",
        shape="shapes",
        flops=recurrent_flops,
        elements="none",
        out_bytes=_recurrent_bytes,
        signature="T B I|D H I|D H H|D 2H|B|D B H",
        layer="recurrent",
    ),
)
