"""Pools over images whose channels are contiguous."""

from __future__ import annotations

from math import prod

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.matrix_products import table
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.builder import Word
from onnxlab.execution.numba.plan.views import Array, View
from onnxlab.execution.numba.rules.onnx.conv import image, offsets_of, pixels, window_of
from onnxlab.execution.numba.rules.registry import StaticFacts, floats, rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.base.window_geometry import Window


def _one_output(node: NodeView, view: StaticFacts) -> str:
    return "its indices are read" if any(name and view.read(name) for name in node.outputs[1:]) else floats(node, view)


@rule("MaxPool", accept=_one_output)
def max_pooling(binder: Binder, node: NodeView) -> None:
    """Lower MaxPool without indices."""
    x = binder.rows_of_channels(node.inputs[0])
    window = window_of(node, x.shape, tuple(node.attributes["kernel_shape"]))
    binder.put(node.outputs[0], _pooled(binder, x, window, "max_pool", None))


@rule("AveragePool")
def average_pooling(binder: Binder, node: NodeView) -> None:
    """Lower AveragePool."""
    binder.put(node.outputs[0], averaged(binder, node, binder.rows_of_channels(node.inputs[0])))


def averaged(binder: Binder, node: NodeView, x: View) -> View:
    """AveragePool of [N, C, D1, …] with contiguous channels, as a node's attributes have it."""
    window = window_of(node, x.shape, tuple(node.attributes["kernel_shape"]))
    include = node.attributes.get("count_include_pad", 0)
    counts = np.ones(1)
    for axis in range(len(window.kernel)):
        counts = np.multiply.outer(counts, _counts(window, axis, include))
    if not counts.all():
        raise UnbindableError("a window of padding alone")
    return _pooled(binder, x, window, "average_pool", np.tile(counts.reshape(-1), x.shape[0]))


def _counts(window: Window, axis: int, include_padding: int) -> Array:
    """The number of elements that each window covers along an axis, without those that rounding up adds at the end."""
    begins = np.arange(window.output[axis]) * window.strides[axis] - window.begin[axis]
    places = begins[:, None] + np.arange(window.kernel[axis]) * window.dilations[axis]
    size = window.size[axis]
    covered: Array = places < size + window.end[axis] if include_padding else (places >= 0) & (places < size)
    return np.asarray(covered.sum(axis=1))


@rule("GlobalMaxPool")
def global_max_pooling(binder: Binder, node: NodeView) -> None:
    """Lower GlobalMaxPool."""
    binder.put(node.outputs[0], over_all(binder, binder.rows_of_channels(node.inputs[0]), "max_pool"))


@rule("GlobalAveragePool")
def global_average_pooling(binder: Binder, node: NodeView) -> None:
    """Lower GlobalAveragePool."""
    binder.put(node.outputs[0], over_all(binder, binder.rows_of_channels(node.inputs[0]), "average_pool"))


def over_all(binder: Binder, x: View, kernel: str) -> View:
    """One number for each channel of [N, C, D1, …] with contiguous channels."""
    shape = x.shape
    ones, zeros = (1,) * (len(shape) - 2), (0,) * (len(shape) - 2)
    window = Window(shape[2:], shape[2:], ones, ones, zeros, zeros, ones)
    return _pooled(binder, x, window, kernel, np.full(shape[0], prod(shape[2:])))


def _pooled(binder: Binder, x: View, window: Window, kernel: str, counts: Array | None) -> View:
    builder = binder.builder
    target = image(binder, (*x.shape[:2], *window.output))
    offsets = table(offsets_of(x, window))
    count = prod((x.shape[0], *window.output))
    unit = max(1, -(-count // 16))
    values: dict[str, Word] = {
        "x": x.where, "offsets": builder.keep(offsets), "tap_bytes": offsets.shape[1] * 4, "taps": len(offsets),
        "pixels": count, "channels": x.shape[1], "y": target.where, "unit_pixels": unit,
        "places": builder.keep(table(pixels(target).offsets(len(target.shape) - 1)[None])),
        "counts": 0 if counts is None else builder.keep(counts.astype(np.float32)),
    }  # fmt: skip
    work = target.size * len(offsets) * 0.1
    builder.emit(kernel, -(-count // unit), values, [x], [target], work=work)
    return target
