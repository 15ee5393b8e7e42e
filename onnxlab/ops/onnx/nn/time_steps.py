"""The time steps of recurrent layers: what RNN, GRU and LSTM are called with, and the loop over it.

Shapes are those of `recurrent`, with the time first.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from onnxlab.limits import RunContext
from onnxlab.ops.base.kernel_helpers import Array, widen

Step = Callable[[Array, tuple[Array, ...], Array], tuple[Array, ...]]


class LayerInputs(NamedTuple):
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


def in_order(layer: LayerInputs, part: slice, x: Array) -> Array:
    """[time, directions, batch, …] of some directions in the order in which they run: time backwards for the second.

    It is written to where one of several runs backwards; the same again undoes it.
    """
    if layer.direction == "forward":
        return x
    for place, number in enumerate(range(len(layer.w))[part]):
        if layer.direction == "reverse" or number == 1:
            if x.shape[1] == 1:
                return _reversed(x[:, 0], layer.lengths)[:, None]
            x[:, place] = _reversed(x[:, place], layer.lengths)
    return x


def scan(ctx: RunContext, layer: LayerInputs, part: slice, projected: Array, step: Step) -> tuple[Array, ...]:
    """Run some directions, all at once.

    Args:
        projected: [time, …], X times W with the biases, in the order of `in_order`.
        step: (projected[t], states, out) -> states, the hidden one first, which it writes into `out`; it may write into
            the other states.

    Returns:
        (Y [time, directions, batch, hidden], last states…)
    """
    first, *others = (state[part] for state in layer.states)
    states = (first, *(state.copy() for state in others))
    y = np.empty((len(projected), *first.shape), layer.x.dtype)
    for start in range(0, len(y), _UNCHECKED):
        ctx.check()
        some = slice(start, start + _UNCHECKED)
        if layer.lengths is None:
            for now, out in zip(projected[some], y[some], strict=True):
                states = step(now, states, out)
            continue
        for time, (now, out) in enumerate(zip(projected[some], y[some], strict=True), start):
            following = step(now, (states[0], *(state.copy() for state in states[1:])), out)
            alive = (time < layer.lengths)[:, None]  # a sequence that has ended keeps its state and outputs zeros
            states = tuple(np.where(alive, new, old) for new, old in zip(following, states, strict=True))
            out[...] = np.where(alive, states[0], 0)
    states = tuple(state.copy() for state in states)  # the hidden one is a row of Y
    return in_order(layer, part, y), *states


_UNCHECKED = 64
"""Steps between two looks at whether the run has to stop."""
