"""Recurrent layers: RNN, GRU, LSTM.

Shapes: X [time, batch, input], W [directions, gates·hidden, input], R [directions, gates·hidden, hidden],
B [directions, 2·gates·hidden], states [directions, batch, hidden]; with layout=1 the batch comes first.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import recurrent_flops
from onnxlab.ops.base.kernel_helpers import Array, narrow, widen
from onnxlab.ops.base.prepared_constants import prepared
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, dims_text, like
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.onnx.nn.activation import sigmoid, softplus, softsign
from onnxlab.shapes import Dim, Fact, FactError

Activation = Callable[[Array], Array]
Step = Callable[[Array, tuple[Array, ...]], tuple[Array, ...]]

# name: (defaults of the parameters, function)
_ACTIVATIONS: dict[str, tuple[tuple[float, ...], Callable[..., Array]]] = {
    "relu": ((), lambda x: np.maximum(x, 0)),
    "tanh": ((), np.tanh),
    "sigmoid": ((), sigmoid),
    "softsign": ((), softsign),
    "softplus": ((), softplus),
    "affine": ((1.0, 0.0), lambda x, a, b: a * x + b),
    "leakyrelu": ((0.01,), lambda x, a: np.where(x < 0, a * x, x)),
    "thresholdedrelu": ((1.0,), lambda x, a: np.where(x > a, x, 0)),
    "scaledtanh": ((1.0, 1.0), lambda x, a, b: a * np.tanh(b * x)),
    "hardsigmoid": ((0.2, 0.5), lambda x, a, b: np.clip(a * x + b, 0, 1)),
    "elu": ((1.0,), lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0)))),
}


def activations(
    names: Sequence[str], alphas: Sequence[float] | None, betas: Sequence[float] | None
) -> list[Activation]:
    """The functions that these names mean; each takes its parameters, as far as given, off the two lists.

    Raises:
        ValueError: an activation is unknown.
    """
    alpha, beta = list(alphas or ()), list(betas or ())
    return [_activation(name, alpha, beta) for name in names]


def _activation(name: str, alpha: list[float], beta: list[float]) -> Activation:
    if name.lower() not in _ACTIVATIONS:
        raise ValueError(f"activation {name!r} is unknown: expected one of {', '.join(_ACTIVATIONS)}")
    defaults, function = _ACTIVATIONS[name.lower()]
    values = [(alpha, beta)[place].pop(0) if (alpha, beta)[place] else value for place, value in enumerate(defaults)]
    parameters = [np.float32(value) for value in values]
    return (lambda x: function(x, *parameters)) if parameters else function


@dataclass(frozen=True, slots=True)
class LayerInputs:
    """Inputs of one call, widened, time first.

    Attributes:
        x: [time, batch, input].
        lengths: [batch] steps of every sequence, or None where all have the full length.
        states: the initial states, each [directions, batch, hidden].
    """

    x: Array
    w: Array
    r: Array
    b: Array | None
    lengths: Array | None
    states: tuple[Array, ...]
    hidden: int
    direction: str


def prepare(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    lengths: Array | None,
    states: Sequence[Array | None],
    direction: str,
    layout: int,
) -> LayerInputs:
    """Check what the three layers share, and bring it into time-first order.

    Raises:
        ValueError: the direction is unknown or does not fit W, a sequence is longer than X, or a state's shape differs.
    """
    directions = 2 if direction == "bidirectional" else 1
    if direction not in ("forward", "reverse", "bidirectional"):
        raise ValueError(f"direction is {direction!r}: expected forward, reverse or bidirectional")
    if w.shape[0] != directions or r.shape[0] != directions:
        raise ValueError(f"W has shape {w.shape}, R {r.shape}: direction {direction} needs {directions} in front")
    data = widen(x).swapaxes(0, 1) if layout else widen(x)
    steps, batch, hidden = data.shape[0], data.shape[1], r.shape[2]
    if lengths is not None:
        if lengths.size and int(lengths.max()) > steps:
            raise ValueError(f"sequence_lens holds {int(lengths.max())}: X has {steps} steps")
        lengths = None if bool(np.all(lengths == steps)) else lengths
    start = []
    for state in states:
        if state is None:
            start.append(np.zeros((directions, batch, hidden), data.dtype))
        else:
            first = widen(state).swapaxes(0, 1) if layout else widen(state)
            if first.shape != (directions, batch, hidden):
                raise ValueError(
                    f"an initial state has shape {state.shape}: expected {directions} directions, {batch} sequences, "
                    f"{hidden} hidden units"
                )
            start.append(first)
    return LayerInputs(
        data, widen(w), widen(r), None if b is None else widen(b), lengths, tuple(start), hidden, direction
    )


def _reversed(x: Array, lengths: Array | None) -> Array:
    """Every sequence backwards, what lies behind its length left in place."""
    if lengths is None:
        return x[::-1]
    y = x.copy()
    for entry, length in enumerate(lengths.tolist()):
        y[:length, entry] = x[:length, entry][::-1]
    return y


def scan_direction(
    ctx: RunContext, layer: LayerInputs, number: int, projected: Array, step: Step
) -> tuple[Array, tuple[Array, ...]]:
    """Run one direction.

    Args:
        projected: [time, batch, gates·hidden], X times W with the biases.
        step: (projected[t], states) -> states, the hidden one first.

    Returns:
        (Y [time, batch, hidden], last states)
    """
    backwards = layer.direction == "reverse" or number == 1
    if backwards:
        projected = _reversed(projected, layer.lengths)
    states = tuple(state[number] for state in layer.states)
    y = np.zeros((*layer.x.shape[:2], layer.hidden), layer.x.dtype)
    for time in range(len(projected)):
        if not time % 64:
            ctx.check()
        following = step(projected[time], states)
        if layer.lengths is None:
            states = following
            y[time] = states[0]
        else:  # a sequence that has ended keeps its state and outputs zeros
            alive = (time < layer.lengths)[:, None]
            states = tuple(np.where(alive, new, old) for new, old in zip(following, states, strict=True))
            y[time] = np.where(alive, states[0], 0)
    return (_reversed(y, layer.lengths) if backwards else y), states


def results(runs: Sequence[tuple[Array, tuple[Array, ...]]], layout: int, dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """(Y, last states…) of all directions, in the layout asked for."""
    y = np.stack([run[0] for run in runs], axis=1)  # [time, directions, batch, hidden]
    states = [np.stack(parts) for parts in zip(*(run[1] for run in runs), strict=True)]
    if layout:
        y, states = y.transpose(2, 0, 1, 3), [state.swapaxes(0, 1) for state in states]
    return tuple(narrow(array, dtype) for array in (y, *states))


def _project(layer: LayerInputs, number: int, bias: Array | float) -> Array:
    """X times W of one direction plus a bias: [time, batch, gates·hidden]."""
    steps, batch, width = layer.x.shape
    flat = np.ascontiguousarray(layer.x).reshape(steps * batch, width)
    return (flat @ layer.w[number].T + bias).reshape(steps, batch, -1)


def transposed(r: Array, number: int) -> Array:
    """The recurrent weights of one direction, transposed for BLAS; computed once of constants."""
    return prepared(("transposed", number), lambda weights: np.ascontiguousarray(widen(weights)[number].T), r)


def _clipped(x: Array, clip: float | None) -> Array:
    return x if not clip else np.clip(x, -clip, clip)


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
    for number in range(len(layer.w)):
        recurrent = transposed(r, number)
        bias = 0.0 if layer.b is None else layer.b[number, : layer.hidden] + layer.b[number, layer.hidden :]
        (f,) = functions[number]

        def step(now: Array, states: tuple[Array, ...], r: Array = recurrent, f: Activation = f) -> tuple[Array, ...]:
            return (f(_clipped(now + states[0] @ r, clip)),)

        runs.append(scan_direction(ctx, layer, number, _project(layer, number, bias), step))
    return results(runs, layout, x.dtype)


def activations_of(
    names: Sequence[str],
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    directions: int,
    per_direction: int,
) -> list[list[Activation]]:
    """The activations of every direction; names for one direction serve both."""
    repeated = list(names)
    if len(repeated) < directions * per_direction:
        repeated = repeated * directions
    flat = activations(repeated[: directions * per_direction], alphas, betas)
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
    for number in range(len(layer.w)):
        w_bias, r_bias = biases(layer, number, 3)
        if not linear_before_reset:
            w_bias, r_bias = w_bias + r_bias, np.zeros_like(r_bias)
        else:  # the recurrent bias of h is inside of what the reset gate multiplies
            w_bias = w_bias + np.concatenate([r_bias[: 2 * h], np.zeros_like(r_bias[2 * h :])])
        step = _gru_step(transposed(r, number), r_bias[2 * h :], functions[number], clip, linear_before_reset)
        runs.append(scan_direction(ctx, layer, number, _project(layer, number, w_bias), step))
    return results(runs, layout, x.dtype)


def biases(layer: LayerInputs, number: int, gates: int) -> tuple[Array, Array]:
    """The input and recurrent biases of one direction, each [gates·hidden]."""
    width = gates * layer.hidden
    if layer.b is None:
        return np.zeros(width, layer.x.dtype), np.zeros(width, layer.x.dtype)
    return layer.b[number, :width], layer.b[number, width:]


def _gru_step(
    recurrent: Array, h_bias: Array, functions: Sequence[Activation], clip: float | None, linear_before_reset: int
) -> Step:
    f, g = functions
    h = recurrent.shape[0]
    gates_part, h_part = np.ascontiguousarray(recurrent[:, : 2 * h]), np.ascontiguousarray(recurrent[:, 2 * h :])

    def step(now: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        (before,) = states
        gates = f(_clipped(now[:, : 2 * h] + before @ gates_part, clip))
        z, reset = gates[:, :h], gates[:, h:]
        if linear_before_reset:
            candidate = now[:, 2 * h :] + reset * (before @ h_part + h_bias)
        else:
            candidate = now[:, 2 * h :] + (reset * before) @ h_part
        return ((1 - z) * g(_clipped(candidate, clip)) + z * before,)

    return step


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
    for number in range(len(layer.w)):
        w_bias, r_bias = biases(layer, number, 4)
        peepholes = None if p is None else widen(p)[number].reshape(3, -1)
        recurrent = transposed(r, number)
        step = lstm_step(_times(recurrent), layer.hidden, peepholes, functions[number], clip, input_forget)
        runs.append(scan_direction(ctx, layer, number, _project(layer, number, w_bias + r_bias), step))
    return results(runs, layout, x.dtype)


def _times(matrix: Array) -> Activation:
    """x -> x @ matrix."""
    return lambda x: x @ matrix


def lstm_step(
    recur: Activation,
    h: int,
    peepholes: Array | None,
    functions: Sequence[Activation],
    clip: float | None,
    input_forget: int,
) -> Step:
    """One step of an LSTM of `h` hidden units; `recur` multiplies the hidden state with the recurrent weights."""
    f, g, out = functions

    def step(now: Array, states: tuple[Array, ...]) -> tuple[Array, ...]:
        before, cell = states
        gates = now + recur(before)
        if peepholes is None:
            opened = f(_clipped(gates[:, : 3 * h], clip))
            i, o, forget = opened[:, :h], opened[:, h : 2 * h], opened[:, 2 * h :]
        else:  # the output gate peeps at the new cell, so it comes later
            i = f(_clipped(gates[:, :h] + peepholes[0] * cell, clip))
            forget = f(_clipped(gates[:, 2 * h : 3 * h] + peepholes[2] * cell, clip))
        if input_forget:
            forget = 1 - i
        cell = forget * cell + i * g(_clipped(gates[:, 3 * h :], clip))
        if peepholes is not None:
            o = f(_clipped(gates[:, h : 2 * h] + peepholes[1] * cell, clip))
        return o * out(cell), cell

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
