"""Estimates of bytes and operations that operators of several families share: broadcasting, products, convolutions.

An estimate of bytes may raise for malformed inputs: the kernel refuses these itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from onnxlab.ops.base.registry import Attributes

SMALL: Final = 1 << 20
"""Bytes up to which outputs are not held against a budget."""

PAIRS: Final = SMALL // 16
"""Products of the element counts of two operands up to which no result is above SMALL."""


Arrays = Sequence[Any]

# -- bytes of outputs, before the kernel is called -------------------------------------------------------------------


def broadcast(*inputs: Any) -> int:
    """Elementwise operators: the common shape, in the widest type that goes in; 0 where two are too small to matter.

    Attributes do not matter to the estimate and are not passed.
    """
    if len(inputs) == 2:
        a, b = inputs
        if a.size * b.size <= PAIRS:
            return 0
        if b.ndim <= a.ndim and a.shape[a.ndim - b.ndim :] == b.shape:
            return int(a.size) * max(int(a.itemsize), int(b.itemsize))
    return int(np.broadcast(*inputs).size) * max([int(array.itemsize) for array in inputs])


def matmul_bytes(attributes: Attributes, a: Any, b: Any, *rest: Any) -> int:
    """A product of matrices, of stacks of them or with vectors."""
    if a.size * b.size <= PAIRS:
        return 0
    columns = b.shape[-1] if b.ndim > 1 else 1
    if b.ndim < 3 or a.shape[:-2] == b.shape[:-2]:
        return int(a.size // a.shape[-1] * columns * max(a.itemsize, 4))
    rows = a.shape[-2] if a.ndim > 1 else 1
    return int(prod(np.broadcast_shapes(a.shape[:-2], b.shape[:-2])) * rows * columns * max(a.itemsize, 4))


def conv_bytes(attributes: Attributes, array: Any, weight: Any, *rest: Any) -> int:
    """An upper bound for convolutions: the bytes with a kernel of one element."""
    pads, strides = attributes.get("pads") or (), attributes.get("strides") or ()
    rank = array.ndim - 2
    spatial = [
        (size + (pads[axis] + pads[rank + axis] if pads else 0)) // (strides[axis] if strides else 1) + 1
        for axis, size in enumerate(array.shape[2:])
    ]
    return int(array.shape[0] * weight.shape[0] * prod(spatial) * array.itemsize)


# -- floating-point operations of a call -----------------------------------------------------------------------------


def product_flops(inputs: Arrays, outputs: Arrays) -> Any:
    """A·B: the inner axis for every element."""
    return 2 * outputs[0].size * (inputs[0].shape[-1] if inputs[0].ndim else 1)


def gemm_flops(inputs: Arrays, outputs: Arrays) -> Any:
    """A·B of matrices, A transposed or not."""
    return 2 * outputs[0].size * (inputs[0].size // max(1, outputs[0].shape[0]))


def convolution_flops(inputs: Arrays, outputs: Arrays) -> Any:
    """Every output element is a product with one kernel [C/group, k1, …]."""
    return 2 * outputs[0].size * prod(inputs[1].shape[1:])


def transposed_flops(inputs: Arrays, outputs: Arrays) -> Any:
    """Every input element is multiplied with one kernel [M/group, k1, …]."""
    return 2 * inputs[0].size * prod(inputs[1].shape[1:])


def quantized_flops(inputs: Arrays, outputs: Arrays) -> Any:
    """QLinear*: weights are the fourth input."""
    weights = inputs[3]
    return 2 * outputs[0].size * (prod(weights.shape[1:]) if weights.ndim > 2 else inputs[0].shape[-1])


def recurrent_flops(inputs: Arrays, outputs: Arrays) -> Any:
    """Every step multiplies with W and R."""
    x, w, r = inputs[:3]
    return 2 * prod(x.shape[:2]) * (w.size + r.size)


def attention_flops(inputs: Arrays, outputs: Arrays) -> Any:
    """Queries with keys, weights with values; a cache of keys in the second output counts as keys."""
    keys = outputs[1] if len(outputs) > 1 and outputs[1].ndim == 4 else inputs[1]
    return 2 * keys.shape[-2] * (inputs[0].size + outputs[0].size)
