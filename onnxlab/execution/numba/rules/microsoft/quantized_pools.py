"""com.microsoft's pools and Concat of quantized values: floats inside, quantized where they are written."""

from __future__ import annotations

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.plan.elementwise_chains import QuantizedView, emit_chain, limits, rounded
from onnxlab.execution.numba.plan.views import View
from onnxlab.execution.numba.rules.onnx.pool import averaged, over_all
from onnxlab.execution.numba.rules.onnx.quantization import (
    DOMAIN,
    bytes_reason,
    fixed,
    floats_of,
    given,
    number,
    parameters,
    put_levels,
    requantized,
)
from onnxlab.execution.numba.rules.registry import StaticFacts, rule
from onnxlab.graph.edit.snapshot import NodeView


def _pool_accept(node: NodeView, view: StaticFacts) -> str:
    return parameters(node, view, 1, 2, 3, 4) or bytes_reason(node, view, 0)


def _image(binder: Binder, node: NodeView) -> View:
    """The floats that X stands for, [N, C, D1, …] with contiguous channels."""
    x = binder.emit(floats_of(binder, node.inputs[0], node.inputs[1], given(node, 2)))
    if node.attributes.get("channels_last", 0):
        x = x.transposed([0, len(x.shape) - 1, *range(1, len(x.shape) - 1)])
    return binder.with_channels_last(x)


def _put(binder: Binder, node: NodeView, y: View) -> None:
    if node.attributes.get("channels_last", 0):
        y = y.transposed([0, *range(2, len(y.shape)), 1])
    requantized(binder, node, y, given(node, 3), given(node, 4))


@rule("QLinearAveragePool", domain=DOMAIN, accept=_pool_accept)
def average_pool(binder: Binder, node: NodeView) -> None:
    """Lower QLinearAveragePool."""
    _put(binder, node, averaged(binder, node, _image(binder, node)))


@rule("QLinearGlobalAveragePool", domain=DOMAIN, accept=_pool_accept)
def global_average_pool(binder: Binder, node: NodeView) -> None:
    """Lower QLinearGlobalAveragePool."""
    _put(binder, node, over_all(binder, _image(binder, node), "average_pool"))


def _concat_accept(node: NodeView, view: StaticFacts) -> str:
    values = range(2, len(node.inputs), 3)
    scales = [slot for slot in range(len(node.inputs)) if slot not in values]
    return parameters(node, view, *scales) or bytes_reason(node, view, *values)


@rule("QLinearConcat", domain=DOMAIN, accept=_concat_accept)
def concat(binder: Binder, node: NodeView) -> None:
    """Each input is written to its place in the result, with the result's scale."""
    zeros = fixed(binder, node.inputs[1])
    assert zeros is not None
    step, offset = number(binder, node.inputs[0]), number(binder, node.inputs[1])
    parts = [floats_of(binder, *node.inputs[slot : slot + 3]) for slot in range(2, len(node.inputs), 3)]
    shape = list(parts[0].shape)
    axis = node.attributes["axis"]
    axis += len(shape) if axis < 0 else 0
    shape[axis] = sum(part.shape[axis] for part in parts)
    target = binder.builder.allocate(shape, np.int16)
    at = 0
    for part in parts:
        place = target.at(at * target.strides[axis], part.shape, target.strides)
        emit_chain(binder.builder, rounded(part, step, *limits(zeros.dtype, int(offset))), place)
        at += part.shape[axis]
    put_levels(binder, node.outputs[0], target, offset, QuantizedView(target, int(offset), step), zeros.dtype)
