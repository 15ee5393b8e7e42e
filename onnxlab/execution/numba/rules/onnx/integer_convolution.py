"""Convolutions of quantized images: ConvInteger and QLinearConv."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.integer_products import IntegerProduct
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.views import Array, View
from onnxlab.execution.numba.rules.onnx.conv import image, pixels, rows_of, window_of
from onnxlab.execution.numba.rules.onnx.integer_matrices import columns_of, write_levels
from onnxlab.execution.numba.rules.onnx.quantization import (
    DOMAIN,
    bytes_reason,
    constant_levels,
    fixed,
    given,
    levels_of,
    number,
    parameters,
)
from onnxlab.execution.numba.rules.registry import StaticFacts, rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.base.window_geometry import Window

_FLOAT, _SUM = np.dtype(np.float32), np.dtype(np.int32)


def convolved(
    binder: Binder, node: NodeView, x: View, weights: Array, key: tuple[object, ...], dtype: Any, last: bool = False
) -> IntegerProduct:
    """Levels [N, C, D1, …] convolved with constant levels [M, C / group, …] by the attributes of a node.

    The result is [N, M, D1, …], or [N, D1, …, M] with `last`.
    """
    group = node.attributes.get("group", 1)
    if len(x.shape) != weights.ndim or weights.shape[1] * group != x.shape[1] or weights.shape[0] % group:
        raise UnbindableError("X and W do not fit")
    window = window_of(node, x.shape, weights.shape[2:])
    target, axis = image(binder, (x.shape[0], len(weights), *window.output), dtype), 1
    places = pixels(target).offsets(len(target.shape) - 1)
    if last:
        target, axis = pixels(target), len(target.shape) - 1
    channels, columns = weights.shape[1], len(weights) // group
    if group > 1 and channels == 1 and columns == 1:
        return _depthwise(binder, x, window, weights, key, target, axis, places)
    x, offsets, length = rows_of(binder, x, window, channels, group)
    batches = np.zeros((group, 5), np.int64)
    numbers = np.arange(group, dtype=np.int64)
    matrix = weights.reshape(group, columns, channels, -1).transpose(0, 3, 2, 1).reshape(group, -1, columns)
    batches[:, 0] = numbers * channels * 2
    batches[:, 3] = batches[:, 4] = numbers * columns * 4
    return IntegerProduct(
        x, offsets, length, columns, target, axis, places, batches,
        constant=matrix, key=("convolution", *key, group), groups=group,
    )  # fmt: skip


def kernels(binder: Binder, name: str, zero: str) -> tuple[Array, tuple[object, ...]]:
    """Constant weights of a convolution without their zero points, with a key."""
    levels = constant_levels(binder, name, zero, axis=0)
    if levels is None:
        raise UnbindableError(f"{name!r} is no constant of int8 or uint8")
    known = fixed(binder, zero) if zero else None
    return levels, (*binder.key_of(name), "" if known is None else known.tobytes())


def _conv_integer_accept(node: NodeView, view: StaticFacts) -> str:
    return bytes_reason(node, view, 0, 1) or parameters(node, view, 1, 3)


@rule("ConvInteger", since=10, accept=_conv_integer_accept, weight=4)
def conv_integer(binder: Binder, node: NodeView) -> None:
    """Lower ConvInteger."""
    weights, key = kernels(binder, node.inputs[1], given(node, 3))
    x = levels_of(binder, node.inputs[0], given(node, 2))
    binder.put(node.outputs[0], convolved(binder, node, x, weights, key, _SUM))


def _qlinear_conv_accept(node: NodeView, view: StaticFacts) -> str:
    return bytes_reason(node, view, 0, 3) or parameters(node, view, 1, 2, 3, 4, 5, 6, 7, 8)


@rule("QLinearConv", since=10, accept=_qlinear_conv_accept, weight=4)
def qlinear_conv(binder: Binder, node: NodeView) -> None:
    """Lower QLinearConv, channels last included."""
    weights, key = kernels(binder, node.inputs[3], node.inputs[5])
    x = levels_of(binder, node.inputs[0], node.inputs[2])
    last = bool(node.domain and node.attributes.get("channels_last", 0))
    if last:
        x = x.transposed([0, len(x.shape) - 1, *range(1, len(x.shape) - 1)])
    result = convolved(binder, node, x, weights, key, _FLOAT, last)
    result.scale = np.float32(number(binder, node.inputs[1])) * columns_of(result, fixed(binder, node.inputs[4]))
    if given(node, 8):
        bias = fixed(binder, node.inputs[8])
        assert bias is not None
        result.whole_bias = bias.astype(np.int32).reshape(result.groups, result.columns)
    write_levels(binder, node, result, node.inputs[6], node.inputs[7])


rule("QLinearConv", domain=DOMAIN, accept=_qlinear_conv_accept, weight=4)(qlinear_conv)


def _depthwise(
    binder: Binder, x: View, window: Window, weights: Array, key: tuple[object, ...], target: View, axis: int,
    places: Array,
) -> IntegerProduct:  # fmt: skip
    """Each channel by itself; what lies behind the last channel is read, but not written."""
    x, offsets, _ = rows_of(binder, x, window, len(weights), len(weights))
    return IntegerProduct(
        x, offsets, 1, len(weights), target, axis, places, np.zeros((1, 5), np.int64),
        constant=weights.reshape(len(weights), -1).T, key=("channels", *key), depthwise=True,
    )  # fmt: skip
