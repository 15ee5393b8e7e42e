"""Conv and BatchNormalization: tables of offsets over images whose channels are contiguous."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import product as positions
from math import prod
from typing import Any

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.matrix_products import Product, bits, table
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.lowering.winograd import suits
from onnxlab.execution.numba.plan.builder import Word
from onnxlab.execution.numba.plan.copies import contiguous, emit_clear, emit_copy
from onnxlab.execution.numba.plan.views import Array, View, channels_last, constant_view
from onnxlab.execution.numba.plan.weight_packing import Key, Late
from onnxlab.execution.numba.rules.registry import StaticFacts, floats, rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.base.window_geometry import Window, window

_FEW = 8
"""Channels below which windows are read as runs over several pixels of a padded copy."""


def convolution_reason(node: NodeView, view: StaticFacts) -> str:
    """The reason why a convolution is not taken, "" where it is."""
    if not view.known(node.inputs[1]):
        return "weights that are no constant"
    if len(node.inputs) > 2 and node.inputs[2] and not view.known(node.inputs[2]):
        return "a bias that is no constant"
    return floats(node, view)


class KnownShape:
    """A shape for `window`, which looks at nothing else."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.ndim = len(shape)


def check_kernel(node: NodeView, kernel: tuple[int, ...]) -> None:
    """Raises UnbindableError where the attribute says otherwise than the weights, which NumPy's kernel explains."""
    kernel_shape = node.attributes.get("kernel_shape")
    if kernel_shape and tuple(kernel_shape) != kernel:
        raise UnbindableError(f"kernel_shape is {kernel_shape}, the weights have {kernel}")


def window_of(node: NodeView, shape: tuple[int, ...], kernel: tuple[int, ...]) -> Window:
    """The window of a Conv or pool.

    Raises:
        UnbindableError: it does not fit, which NumPy's kernel explains better.
    """
    attributes = node.attributes
    check_kernel(node, kernel)
    try:
        return window(
            KnownShape(shape), kernel, attributes.get("strides"), attributes.get("pads"),  # type: ignore[arg-type]
            attributes.get("dilations"), attributes.get("auto_pad", "NOTSET"), attributes.get("ceil_mode", 0),
        )  # fmt: skip
    except ValueError as error:
        raise UnbindableError(str(error)) from error


def offsets_of(x: View, shape: Window) -> Array:
    """[taps, N * outputs] bytes into an image [N, C, D1, …], -1 where a tap reads the padding; read-only."""
    small = prod((x.shape[0], *shape.kernel, *shape.output)) <= _SMALL
    return (_kept_offsets if small else _offsets)(x.shape[0], x.strides, shape)


_SMALL = 1 << 15


def _offsets(images: int, strides: tuple[int, ...], shape: Window) -> Array:
    batch = np.arange(images, dtype=np.int64) * strides[0]
    axes: list[list[Array]] = []
    for axis, count in enumerate(shape.kernel):
        begins = np.arange(shape.output[axis]) * shape.strides[axis] - shape.begin[axis]
        lines = [begins + tap * shape.dilations[axis] for tap in range(count)]
        axes.append([np.where((p >= 0) & (p < shape.size[axis]), p * strides[2 + axis], -(1 << 40)) for p in lines])
    rows = []
    for position in positions(*map(range, shape.kernel)):
        total = batch.reshape(-1, *[1] * len(axes))
        for axis, tap in enumerate(position):
            total = total + axes[axis][tap].reshape(-1, *[1] * (len(axes) - 1 - axis))
        rows.append(np.where(total < 0, -1, total).reshape(-1))
    offsets = np.array(rows)
    offsets.flags.writeable = False
    return offsets


_kept_offsets = lru_cache(maxsize=64)(_offsets)


def image(binder: Binder, shape: tuple[int, ...], dtype: Any = np.float32) -> View:
    """A place for [N, C, D1, …] with contiguous channels."""
    return binder.builder.allocate(shape, dtype, channels_last(shape, np.dtype(dtype).itemsize))


def pixels(view: View) -> View:
    """[N, D1, …, C] of [N, C, D1, …]."""
    return view.transposed((0, *range(2, len(view.shape)), 1))


@rule("Conv", accept=convolution_reason, weight=4)
def conv(binder: Binder, node: NodeView) -> None:
    """Lower Conv: as a product over taps, depthwise, or by Winograd's algorithm."""
    weights, key = binder.weights(node.inputs[1])
    assert weights is not None
    bias = binder.known(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    shape, group = binder.shape(node.inputs[0]), node.attributes.get("group", 1)
    if len(shape) != len(weights.shape) or weights.shape[1] * group != shape[1] or weights.shape[0] % group:
        raise UnbindableError("X and W do not fit")
    geometry = window_of(node, shape, weights.shape[2:])
    out_channels = weights.shape[0]
    if bias is not None and bias.shape != (out_channels,):
        raise UnbindableError(f"B has shape {bias.shape}, W {weights.shape}")
    target = image(binder, (shape[0], out_channels, *geometry.output))
    if weights.shape[1] == 1 and out_channels == shape[1] and group > 1:
        array = binder.known(node.inputs[1])
        assert array is not None
        alone = Depthwise(binder.rows_of_channels(node.inputs[0]), geometry, array, bias, target)
        binder.put(node.outputs[0], alone.emit(binder))
        return
    binder.put(node.outputs[0], _product(binder, node, geometry, weights, key, bias, group, target))


def _product(
    binder: Binder,
    node: NodeView,
    geometry: Window,
    weights: Late,
    key: Key,
    bias: Array | None,
    group: int,
    target: View,
) -> Product:
    """A convolution as a product; of few channels, over runs of several pixels."""
    out_channels, channels = weights.shape[:2]
    x, offsets, length = rows_of(binder, binder.floats(node.inputs[0]), geometry, channels, group)
    columns = out_channels // group
    batches = np.zeros((group, 5), np.int64)
    numbers = np.arange(group, dtype=np.int64)
    matrix = weights.then(partial(_by_taps, group), (group, prod(weights.shape[1:]), columns))
    batches[:, 0] = numbers * channels * 4
    batches[:, 3] = batches[:, 4] = numbers * columns * 4
    return Product(
        x, offsets, length, columns, target, 1, pixels(target).offsets(len(target.shape) - 1), batches,
        constant=matrix, key=("conv", *key, group), groups=group,
        bias=None if bias is None else bias.reshape(group, columns).astype(np.float32),
        window=geometry if suits(geometry, target.shape[0], channels, out_channels, group) else None,
    )  # fmt: skip


def _by_taps(group: int, weights: Array) -> Array:
    """[out_channels, channels, kernel …] as [group, taps * channels, out_channels / group]."""
    out_channels, channels = weights.shape[:2]
    taps = weights.reshape(group, out_channels // group, channels, -1).transpose(0, 3, 2, 1)
    return taps.reshape(group, -1, out_channels // group)


def rows_of(binder: Binder, x: View, geometry: Window, channels: int, group: int) -> tuple[View, Array, int]:
    """(image, offsets as of `offsets_of`, elements of a row under one tap); of few channels, runs of several pixels."""
    item = x.dtype.itemsize
    if group == 1 and channels < _FEW and geometry.kernel[-1] > 1 and geometry.dilations[-1] == 1:
        x, geometry = _padded(binder, x, geometry)
        return x, offsets_of(x, geometry)[:: geometry.kernel[-1]], channels * geometry.kernel[-1]
    if x.strides[1] != item and x.shape[1] != 1:
        x = contiguous(binder.builder, x, channels_last(x.shape, item))
    return x, offsets_of(x, geometry), channels


def _padded(binder: Binder, x: View, geometry: Window) -> tuple[View, Window]:
    """A copy of the image with its padding around it, and the window over that copy."""
    axes = zip(geometry.output, geometry.strides, geometry.kernel, geometry.dilations, strict=True)
    spans = [(out - 1) * stride + (k - 1) * dilation + 1 for out, stride, k, dilation in axes]
    sizes = [max(span, begin + size) for span, begin, size in zip(spans, geometry.begin, geometry.size, strict=True)]
    copy = image(binder, (*x.shape[:2], *sizes), x.dtype)
    if sizes != list(x.shape[2:]):
        emit_clear(binder.builder, copy, copy.nbytes)
    offset = sum(begin * step for begin, step in zip(geometry.begin, copy.strides[2:], strict=True))
    emit_copy(binder.builder, x, copy.at(offset, x.shape, copy.strides))
    zero = (0,) * len(sizes)
    return copy, Window(
        tuple(sizes), geometry.kernel, geometry.strides, geometry.dilations, zero, zero, geometry.output
    )


class Depthwise:
    """A convolution of each channel by itself."""

    def __init__(self, x: View, geometry: Window, weights: Array, bias: Array | None, target: View) -> None:
        self.x, self.geometry, self.target = x, geometry, target
        self.weights = np.ascontiguousarray(weights.reshape(len(weights), -1).T, np.float32)
        self.bias = bias

    def emit(self, binder: Binder) -> View:
        """Append the record."""
        builder, target = binder.builder, self.target
        offsets = table(offsets_of(self.x, self.geometry))
        count = prod((target.shape[0], *target.shape[2:]))
        unit = max(4, -(-count // 16) // 4 * 4)
        places = table(pixels(target).offsets(len(target.shape) - 1)[None])
        values: dict[str, Word] = {
            "x": self.x.where, "offsets": builder.keep(offsets), "tap_bytes": offsets.shape[1] * 4,
            "taps": len(offsets), "pixels": count, "channels": target.shape[1], "y": target.where,
            "places": builder.keep(places), "weights": builder.keep(self.weights),
            "bias": builder.keep(np.ascontiguousarray(self.bias, np.float32)) if self.bias is not None else 0,
            "low": bits(-np.inf), "high": bits(np.inf), "unit_pixels": unit,
            "zeros": builder.keep(np.zeros(target.shape[1], np.float32)),
        }  # fmt: skip
        work = target.size * len(offsets) * 0.1
        builder.emit("depthwise", -(-count // unit), values, [self.x], [target], work=work)
        return target


def _norm_accept(node: NodeView, view: StaticFacts) -> str:
    if node.attributes.get("training_mode", 0) or any(name and view.read(name) for name in node.outputs[1:]):
        return "training"
    if not all(view.known(name) for name in node.inputs[1:]):
        return "parameters that are no constants"
    return floats(node, view)


@rule("BatchNormalization", since=7, accept=_norm_accept)
def batch_normalization(binder: Binder, node: NodeView) -> None:
    """Folded into the product that waits, else one multiplication and addition."""
    known = [binder.known(name) for name in node.inputs[1:5]]
    scale, shift, mean, variance = (np.asarray(array, np.float64) for array in known)
    factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    factors, shifts = factor.astype(np.float32), (shift - mean * factor).astype(np.float32)
    value = binder.value(node.inputs[0])
    per_channel = (-1, *[1] * (len(value.shape) - 2))
    if isinstance(value, Product) and value.open and value.residual is None and value.constant is not None:
        columns = value.column_values(factors.reshape(per_channel)), value.column_values(shifts.reshape(per_channel))
        if columns[0] is not None and columns[1] is not None:
            value.scale_columns(columns[0])
            value.add_columns(columns[1])
            binder.put(node.outputs[0], value)
            return
    views = [constant_view(array.reshape(per_channel)) for array in (factors, shifts)]
    binder.combine(node.outputs[0], "fma", [binder.operand(node.inputs[0]), *views])
