"""LSTM, GRU, RNN and DynamicQuantizeLSTM with constant weights."""

from __future__ import annotations

from math import inf

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.matrix_products import Product
from onnxlab.execution.numba.lowering.recurrent_layers import (
    GATES,
    RecurrentLayer,
    functions,
    recurrent_levels,
    recurrent_weights,
    spread,
)
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.machine.host import host
from onnxlab.execution.numba.machine.records import ACTIVATIONS, GRU, LSTM, RNN
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.views import Array, View
from onnxlab.execution.numba.plan.weight_packing import Key
from onnxlab.execution.numba.rules.onnx.integer_matrices import product
from onnxlab.execution.numba.rules.onnx.matmul import by_constant
from onnxlab.execution.numba.rules.onnx.quantization import DOMAIN, dynamic_levels, fixed, given, parameters
from onnxlab.execution.numba.rules.registry import FLOATS, StaticFacts, dtype_reason, rule
from onnxlab.graph.edit.snapshot import NodeView

_KINDS = {"LSTM": LSTM, "DynamicQuantizeLSTM": LSTM, "GRU": GRU, "RNN": RNN}
_DEFAULTS = {LSTM: ("Sigmoid", "Tanh", "Tanh"), GRU: ("Sigmoid", "Tanh"), RNN: ("Tanh",)}
Shape = tuple[int, ...]
_DIRECTIONS = ("forward", "reverse", "bidirectional")


def _accept(node: NodeView, view: StaticFacts) -> str:
    constants = (1, 2, 3, 7, 8, 9, 10, 11) if node.op_type == "DynamicQuantizeLSTM" else (1, 2, 3, 7)
    for name in (node.inputs[0], given(node, 5), given(node, 6)):
        if name and (reason := dtype_reason(name, view, lambda dtype: dtype in FLOATS)):
            return reason
    if node.attributes.get("direction", "forward") not in _DIRECTIONS:
        return "its direction is none"
    unknown = [name for name in node.attributes.get("activations", ()) if name.lower() not in ACTIVATIONS]
    return f"activation {unknown[0]!r} is unknown" if unknown else parameters(node, view, *constants)


@rule("LSTM", "GRU", "RNN", accept=_accept, since=7, weight=8)
def recurrent(binder: Binder, node: NodeView) -> None:
    """Lower LSTM, GRU and RNN."""
    kind = _KINDS[node.op_type]
    w, r = fixed(binder, node.inputs[1]), fixed(binder, node.inputs[2])
    assert w is not None
    assert r is not None
    gates, (directions, _, hidden) = GATES[kind], r.shape
    flag = node.attributes.get("linear_before_reset" if kind == GRU else "input_forget", 0)
    inner, recurring = _biases(binder, node, directions, gates * hidden)
    bias = None
    if kind == GRU and flag:  # the recurrent bias of h is inside of what the reset gate multiplies
        bias = spread(recurring[:, 2 * hidden :], 1)
        recurring = np.concatenate([recurring[:, : 2 * hidden], np.zeros_like(recurring[:, 2 * hidden :])], axis=1)
    x = _time_first(binder, node)
    _check_weights(node, gates, x.shape[2], w.shape, r.shape)
    keys = binder.key_of(node.inputs[1]), binder.key_of(node.inputs[2])
    matrix = spread(w.astype(np.float32).transpose(0, 2, 1), gates)  # [directions, input, gates * padded]
    flat = matrix.transpose(1, 0, 2).reshape(x.shape[2], -1)
    target = binder.builder.allocate((*x.shape[:2], flat.shape[1]), np.float32)
    projection = by_constant(binder, x, flat, target, ("projection", gates, *keys[0]))
    key: Key = ("recurrent", gates, *keys[1])
    weights = recurrent_weights(binder.packed, key, r.astype(np.float32).transpose(0, 2, 1), gates)
    _emit(binder, node, kind, flag, projection, spread(inner + recurring, gates), weights, hidden, bias=bias)


def _check_weights(node: NodeView, gates: int, depth: int, w: Shape, r: Shape) -> None:
    """Raises UnbindableError where W [D, gates * hidden, depth] and R [D, gates * hidden, hidden] do not fit."""
    directions = 2 if node.attributes.get("direction") == "bidirectional" else 1
    _expect("R", r, (directions, gates * r[2], r[2]))
    _expect("W", w, (directions, gates * r[2], depth))
    if node.attributes.get("hidden_size", r[2]) != r[2]:
        raise UnbindableError(f"hidden_size is {node.attributes['hidden_size']}, R has {r[2]}")


def _expect(name: str, actual: Shape, expected: Shape) -> None:
    if actual != expected:
        raise UnbindableError(f"{name} has shape {actual}, expected {expected}")


def _biases(binder: Binder, node: NodeView, directions: int, width: int) -> tuple[Array, Array]:
    """Input and recurrent biases, [directions, gates * hidden] each."""
    biases = fixed(binder, given(node, 3)) if given(node, 3) else None
    if biases is None:
        return np.zeros((directions, width), np.float32), np.zeros((directions, width), np.float32)
    _expect("B", biases.shape, (directions, 2 * width))
    return biases[:, :width].astype(np.float32), biases[:, width:].astype(np.float32)


def _time_first(binder: Binder, node: NodeView) -> View:
    """X as [steps, batch, input]."""
    x = binder.floats(node.inputs[0])
    if len(x.shape) != 3 or not x.size:
        raise UnbindableError(f"X has shape {x.shape}")
    return x.transposed([1, 0, 2]) if node.attributes.get("layout", 0) else x


def _emit(
    binder: Binder, node: NodeView, kind: int, flag: int, projection: Product, offset: Array, weights: View,
    hidden: int, scales: Array | None = None, bias: Array | None = None, sums: Array | None = None,
) -> None:  # fmt: skip
    """The layer behind the product of its inputs, and its results by name."""
    attributes, (directions, _) = node.attributes, offset.shape
    projection.add_columns(offset.reshape(1, -1))
    projected = binder.emit(projection)
    steps, batch, _ = projected.shape
    swapped = bool(attributes.get("layout", 0))
    builder = binder.builder
    order = [1, 0, 2, 3] if swapped else [0, 2, 1, 3]  # of [steps, batch, directions, hidden] in what is returned
    shape = (batch, steps, directions, hidden) if swapped else (steps, directions, batch, hidden)
    y = binder.allocate(node.outputs[0], shape, np.float32)
    count = 2 if kind == LSTM else 1
    names = (*node.outputs[1:], "", "")[:count]
    lasts = [
        builder.allocate((directions, batch, hidden), np.float32) if swapped
        else binder.allocate(name, (directions, batch, hidden), np.float32) for name in names
    ]  # fmt: skip
    per_direction = len(_DEFAULTS[kind])
    table = functions(
        attributes.get("activations", _DEFAULTS[kind]), attributes.get("activation_alpha", ()),
        attributes.get("activation_beta", ()), directions, per_direction,
    )  # fmt: skip
    lengths = contiguous(builder, binder.view(given(node, 4))) if given(node, 4) else None
    if lengths is not None:
        _expect("sequence_lens", lengths.shape, (batch,))
    states = [_state(binder, given(node, slot), swapped, (directions, batch, hidden)) for slot in (5, 6)[:count]]
    layer = RecurrentLayer(
        kind, flag, projected, weights, y.transposed(order), states, lasts, lengths,
        _DIRECTIONS.index(attributes.get("direction", "forward")), table, attributes.get("clip") or inf, scales,
        sums, peepholes=_peepholes(binder, node, directions, hidden) if kind == LSTM else None, bias=bias,
    )  # fmt: skip
    layer.emit(builder)
    binder.put(node.outputs[0], y)
    for name, last in zip(names, lasts, strict=True):
        binder.put(name, last.transposed([1, 0, 2]) if swapped else last)


def _state(binder: Binder, name: str, swapped: bool, shape: Shape) -> View | None:
    if not name:
        return None
    view = binder.floats(name)
    view = view.transposed([1, 0, 2]) if swapped else view
    _expect("an initial state", view.shape, shape)
    return contiguous(binder.builder, view)


def _peepholes(binder: Binder, node: NodeView, directions: int, hidden: int) -> Array | None:
    weights = fixed(binder, given(node, 7)) if given(node, 7) else None
    if weights is None:
        return None
    lanes = host().lanes
    padded = np.zeros((directions, 3, -(-hidden // lanes) * lanes), np.float32)
    padded[:, :, :hidden] = weights.reshape(directions, 3, hidden)
    return padded


@rule("DynamicQuantizeLSTM", domain=DOMAIN, accept=_accept, weight=8)
def dynamic_quantize_lstm(binder: Binder, node: NodeView) -> None:
    """X and every state are quantized by their range; scales of weights are for directions, or their columns."""
    (w, w_scale), (r, r_scale) = (_levels(binder, node, slot) for slot in (1, 2))
    directions, hidden, width = r.shape
    x = binder.shape(node.inputs[0])
    _check_weights(node, 4, x[-1], _swapped(w.shape), _swapped(r.shape))
    a, scale, _ = dynamic_levels(binder, binder.floats(node.inputs[0]))
    keys = binder.key_of(node.inputs[1]), binder.key_of(node.inputs[2])
    matrix = spread(w, 4).transpose(1, 0, 2).reshape(w.shape[1], -1)
    projection = product(binder, a, matrix, ("projection", *keys[0]), np.dtype(np.float32))
    projection.scale, projection.factor = spread(w_scale, 4).reshape(1, -1), scale
    inner, recurring = _biases(binder, node, directions, width)
    weights, sums = recurrent_levels(binder.packed, ("recurrent levels", *keys[1]), r)
    flag = node.attributes.get("input_forget", 0)
    _emit(
        binder,
        node,
        LSTM,
        flag,
        projection,
        spread(inner + recurring, 4),
        weights,
        hidden,
        spread(r_scale, 4),
        sums=sums,
    )


def _swapped(shape: Shape) -> Shape:
    return shape[0], shape[2], shape[1]


def _levels(binder: Binder, node: NodeView, slot: int) -> tuple[Array, Array]:
    """(levels [directions, …, 4 * hidden], scales [directions, 4 * hidden]) of W or R."""
    values = fixed(binder, node.inputs[slot])
    scale, zero = (fixed(binder, node.inputs[2 * slot + place]) for place in (6, 7))
    assert values is not None
    assert scale is not None
    assert zero is not None
    directions, _, width = values.shape
    levels = values.astype(np.int16) - zero.astype(np.int16).reshape(directions, 1, -1)
    return levels, np.broadcast_to(scale.astype(np.float32).reshape(directions, -1), (directions, width))
