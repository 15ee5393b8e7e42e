"""Recurrent layers as records: one product of all inputs, then the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np

from onnxlab.execution.numba.lowering.integer_products import pack_pairs, pack_quads
from onnxlab.execution.numba.lowering.matrix_products import bits, pack, panels, table
from onnxlab.execution.numba.machine.host import host
from onnxlab.execution.numba.machine.records import ACTIVATIONS, GRU, LSTM, RNN
from onnxlab.execution.numba.plan.builder import PlanBuilder, Word
from onnxlab.execution.numba.plan.views import Array, View
from onnxlab.execution.numba.plan.weight_packing import Key, Late, Packed, late

GATES = {LSTM: 4, GRU: 3, RNN: 1}
_RATE = 12.0  # multiplications a nanosecond, about, of a matrix that is read for one row
_STAGE = 10e6  # nanoseconds of one record, after which a run may be stopped
_ROWS = 24  # rows of the batch that a unit takes at most, where rows do not depend on each other
DEFAULTS = {
    "affine": (1.0, 0.0), "leakyrelu": (0.01, 0.0), "thresholdedrelu": (1.0, 0.0), "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5), "elu": (1.0, 0.0),
}  # fmt: skip
"""Alpha and beta where the node gives none; other activations have none."""
_TAKES = {"affine": 2, "leakyrelu": 1, "thresholdedrelu": 1, "scaledtanh": 2, "hardsigmoid": 2, "elu": 1}


@dataclass(slots=True)
class RecurrentLayer:
    """One recurrent layer that is to be emitted.

    Attributes:
        kind, flag: LSTM (flag: input and forget gate are coupled), GRU (flag: reset after the product) or RNN.
        projected: [steps, batch, directions * gates * padded], the inputs times their weights with all biases.
        weights: recurrent ones, packed by `recurrent_weights`.
        scales: [directions, gates * padded] of weights that are levels, or None.
        sums: of the columns of such weights, int32 [directions, gates * padded].
        y: [steps, batch, directions, hidden], the last axis contiguous.
        states: initial ones, contiguous [directions, batch, hidden], None for zeros.
        lasts: where the last ones go, likewise.
        lengths: int32 [batch], or None.
        direction: 0 forward, 1 reverse, 2 both.
        functions: [directions, 3, 3] as of `functions`.
        bias, peepholes: as the kernel wants them, or None.
    """

    kind: int
    flag: int
    projected: View
    weights: View
    y: View
    states: Sequence[View | None]
    lasts: Sequence[View]
    lengths: View | None
    direction: int
    functions: Array
    clip: float = inf
    scales: Array | None = None
    sums: Array | None = None
    bias: Array | None = None
    peepholes: Array | None = None

    def emit(self, builder: PlanBuilder) -> None:
        """Append the records: several, so that a run can be stopped between them."""
        steps, batch, directions, hidden = self.y.shape
        padded = panels(hidden) * host().columns
        rows = batch if self.scales is not None or batch <= _ROWS else -(-batch // -(-batch // _ROWS))
        units = directions * -(-batch // rows)
        nbytes = -(-(8 * rows * padded * 4 + 2 * (rows + host().rows) * 4) // 64) * 64
        work = builder.allocate((units, nbytes), np.uint8)
        if self.projected.nbytes >= 1 << 31:
            raise OverflowError("inputs of a recurrent layer of more than 2 GiB")
        cost = batch * directions * GATES[self.kind] * hidden * (hidden / _RATE + 3.0)
        count = max(1, min(steps, int(_STAGE / cost)))
        values = self._words(builder, rows, padded) | {"work": work.where, "work_bytes": nbytes}
        reads = [self.projected, self.weights, self.lengths, *self.states]
        for first in range(0, steps, count):
            last = min(first + count, steps)
            writes = [self.y, *self.lasts, work]
            builder.emit("recurrent", units, values | {"first": first, "last": last}, reads, writes,
                         work=cost * (last - first))  # fmt: skip

    def _words(self, builder: PlanBuilder, rows: int, padded: int) -> dict[str, Word]:
        steps, batch, _, hidden = self.y.shape
        y_step, y_row, y_direction, _ = self.y.strides
        values: dict[str, Word] = {
            "projected": self.projected.where, "p_step": self.projected.strides[0], "p_row": self.projected.strides[1],
            "weights": self.weights.where, "y": self.y.where, "y_step": y_step, "y_direction": y_direction,
            "y_row": y_row, "steps": steps, "batch": batch, "rows": rows, "hidden": hidden, "kind": self.kind,
            "direction": self.direction, "functions": builder.keep(self.functions),
            "flag": self.flag + self._form(), "lengths": 0 if self.lengths is None else self.lengths.where,
            "clip": bits(self.clip), "table": builder.keep(table(np.arange(rows)[None] * padded * 4)),
        }  # fmt: skip
        views = [*zip(("h0", "c0"), self.states, strict=False), *zip(("h_last", "c_last"), self.lasts, strict=False)]
        values |= {name: 0 if view is None else view.where for name, view in views}
        arrays = {"scales": self._scales(), "bias": self.bias, "peepholes": self.peepholes}
        return values | {name: builder.keep(np.ascontiguousarray(array, np.float32))
                         for name, array in arrays.items() if array is not None}  # fmt: skip

    def _form(self) -> int:
        """Bits of the flag for the form of weights: 2 for pairs of int8, 4 for quads."""
        if self.sums is None or self.weights.dtype != np.int8:
            return 0
        return 4 if self.weights.shape[-1] == 4 else 2

    def _scales(self) -> Array | None:
        """The scales of levels, followed by the bits of `sums`."""
        if self.scales is None or self.sums is None:
            return None
        return np.concatenate([np.ascontiguousarray(self.scales, np.float32), self.sums.view(np.float32)], axis=1)


def spread(parameter: Array, gates: int) -> Array:
    """[..., gates * hidden] with each gate filled up to whole panels by zeros."""
    hidden = parameter.shape[-1] // gates
    padded = np.zeros((*parameter.shape[:-1], gates, panels(hidden) * host().columns), parameter.dtype)
    padded[..., :hidden] = parameter.reshape(*parameter.shape[:-1], gates, hidden)
    return padded.reshape(*parameter.shape[:-1], -1)


def recurrent_weights(packed: Packed, key: Key, matrices: Array, gates: int) -> View:
    """[directions, hidden, gates * hidden] float32, packed for the kernel and remembered."""
    return packed.made(key, late(matrices).then(partial(_by_gates, gates=gates)).then(pack))


def _by_gates(matrices: Array, gates: int) -> Array:
    """[directions, hidden, gates * hidden] as [directions * gates, hidden, hidden]."""
    directions, hidden, _ = matrices.shape
    return matrices.reshape(directions, hidden, gates, hidden).transpose(0, 2, 1, 3).reshape(-1, hidden, hidden)


def recurrent_levels(packed: Packed, key: Key, matrices: Array) -> tuple[View, Array]:
    """The levels [directions, hidden, 4 * hidden] int16 of an LSTM, packed for the kernel and remembered.

    Returns:
        The weights, and the sums of their columns, int32 [directions, 4 * padded].
    """

    def levels() -> Array:
        quads = pack_quads(spread(matrices, 4))
        return pack_pairs(_by_gates(matrices, 4), 1) if quads is None else quads

    weights = packed.made((*key, "packed"), Late(levels))
    return weights, spread(matrices, 4).sum(axis=1, dtype=np.int32)


def functions(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float], directions: int, per_direction: int
) -> Array:
    """The activations of all directions as [directions, 3, 3] of code and bits of alpha and beta.

    Each activation with parameters takes the next ones of the lists. Names for one direction serve both.

    Raises:
        ValueError: an activation that is unknown.
    """
    activations = [name.lower() for name in names]
    if len(activations) < directions * per_direction:
        activations *= directions
    left = list(alphas), list(betas)
    codes = np.zeros((directions, 3, 3), np.int64)
    for number, name in enumerate(activations[: directions * per_direction]):
        if name not in ACTIVATIONS:
            raise ValueError(f"activation {name!r} is unknown")
        parameters = list(DEFAULTS.get(name, (0.0, 0.0)))
        for place in range(_TAKES.get(name, 0)):
            if left[place]:
                parameters[place] = left[place].pop(0)
        codes[number // per_direction, number % per_direction] = (ACTIVATIONS.index(name), *map(bits, parameters))
    return codes
