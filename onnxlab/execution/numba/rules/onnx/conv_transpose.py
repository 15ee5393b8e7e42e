"""ConvTranspose: for each phase of the strides a product of its own, over the taps that reach it, written in place."""

from __future__ import annotations

from itertools import product as positions
from math import prod

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.matrix_products import Product
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.views import Array, View
from onnxlab.execution.numba.rules.onnx.conv import check_kernel, convolution_reason, image, pixels
from onnxlab.execution.numba.rules.registry import rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.onnx.nn.conv import transposed_output

_ABSENT = -(1 << 40)


@rule("ConvTranspose", accept=convolution_reason, weight=4)
def conv_transpose(binder: Binder, node: NodeView) -> None:
    """Lower ConvTranspose to products and a scattered sum."""
    weights = binder.known(node.inputs[1])
    assert weights is not None
    bias = binder.known(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    shape, attributes, group = binder.shape(node.inputs[0]), node.attributes, node.attributes.get("group", 1)
    rank = len(shape) - 2
    if len(shape) != weights.ndim or weights.shape[0] != shape[1] or shape[1] % group:
        raise UnbindableError("X and W do not fit")
    check_kernel(node, weights.shape[2:])
    if bias is not None and bias.shape != (weights.shape[1] * group,):
        raise UnbindableError(f"B has shape {bias.shape}, W {weights.shape}")
    strides, dilations = (tuple(attributes.get(name) or (1,) * rank) for name in ("strides", "dilations"))
    extra = attributes.get("output_padding") or (0,) * rank
    geometry = zip(shape[2:], strides, weights.shape[2:], dilations, extra, strict=True)
    full = [(size - 1) * step + (k - 1) * dilation + 1 + more for size, step, k, dilation, more in geometry]
    begin, output = transposed_output(
        shape[2:],
        full,
        strides,
        attributes.get("pads"),
        attributes.get("auto_pad", "NOTSET"),
        attributes.get("output_shape"),
    )
    if min(output) < 1:
        raise UnbindableError(f"an output of {output}")
    x = binder.rows_of_channels(node.inputs[0])
    target = image(binder, (shape[0], weights.shape[1] * group, *output))
    key = ("transposed", *binder.key_of(node.inputs[1]), group, strides, dilations, begin)
    for phase in positions(*map(range, (min(step, size) for step, size in zip(strides, output, strict=True)))):
        axes = [
            _Axis(*values)
            for values in zip(shape[2:], output, weights.shape[2:], strides, dilations, begin, phase, strict=True)
        ]
        phase_product = _phase(x, target, weights, bias, group, axes, (*key, phase))
        binder.emit(phase_product)
    binder.put(node.outputs[0], target)


class _Axis:
    """One axis of one phase: outputs phase, phase + stride, …, and the taps that reach them."""

    def __init__(self, size: int, output: int, kernel: int, stride: int, dilation: int, begin: int, phase: int) -> None:
        self.phase, self.stride = phase, stride
        self.count = len(range(phase, output, stride))
        self.taps = [tap for tap in range(kernel) if (phase + begin - tap * dilation) % stride == 0]
        if not self.taps:
            raise UnbindableError("outputs that no element of the kernel reaches")
        firsts = [(phase + begin - tap * dilation) // stride for tap in self.taps]
        self.places = [np.arange(self.count) + first for first in firsts]
        self.size = size

    def offsets(self, tap: int, step: int) -> Array:
        """Bytes of the elements that one of the taps reads, far below zero where it reads none."""
        places = self.places[tap]
        return np.where((places >= 0) & (places < self.size), places * step, _ABSENT)


def _phase(
    x: View, target: View, weights: Array, bias: Array | None, group: int, axes: list[_Axis], key: tuple[object, ...]
) -> Product:
    """The product of one phase."""
    depth, columns = x.shape[1] // group, weights.shape[1]
    rows = []
    for chosen in positions(*(range(len(axis.taps)) for axis in axes)):
        total = (np.arange(x.shape[0], dtype=np.int64) * x.strides[0]).reshape(-1, *[1] * len(axes))
        for number, (axis, tap) in enumerate(zip(axes, chosen, strict=True)):
            line = axis.offsets(tap, x.strides[2 + number])
            total = total + line.reshape(-1, *[1] * (len(axes) - 1 - number))
        rows.append(np.where(total < 0, -1, total).reshape(-1))
    taps = weights[np.ix_(range(len(weights)), range(columns), *(axis.taps for axis in axes))]
    matrix = taps.reshape(group, depth, columns, -1).transpose(0, 3, 1, 2).reshape(group, -1, columns)
    offset = sum(axis.phase * step for axis, step in zip(axes, target.strides[2:], strict=True))
    steps = [axis.stride * step for axis, step in zip(axes, target.strides[2:], strict=True)]
    part = target.at(offset, (*target.shape[:2], *(axis.count for axis in axes)), (*target.strides[:2], *steps))
    batches = np.zeros((group, 5), np.int64)
    numbers = np.arange(group, dtype=np.int64)
    batches[:, 0], batches[:, 3] = numbers * depth * 4, numbers * columns * 4
    batches[:, 4] = batches[:, 3]
    assert prod(part.shape) > 0
    return Product(
        x, np.array(rows), depth, columns, part, 1, pixels(part).offsets(len(part.shape) - 1), batches,
        constant=matrix, key=key, groups=group, bias=None if bias is None else bias.reshape(group, columns),
    )  # fmt: skip
