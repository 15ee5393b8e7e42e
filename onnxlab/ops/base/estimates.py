"""Estimates of bytes and operations that operators of several families share: broadcasting, products, convolutions.

An estimate of bytes may raise for malformed inputs: the kernel refuses these itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod
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


def product_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """A·B: the inner axis for every element."""
    return 2 * outputs[0].size * (inputs[0].shape[-1] if inputs[0].ndim else 1)


def gemm_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """A·B of matrices, A transposed or not."""
    return 2 * outputs[0].size * (inputs[0].size // max(1, outputs[0].shape[0]))


def convolution_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """Every output element is a product with one kernel [C/group, k1, …]."""
    return 2 * outputs[0].size * prod(inputs[1].shape[1:])


def transposed_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """Every input element is multiplied with one kernel [M/group, k1, …]."""
    return 2 * inputs[0].size * prod(inputs[1].shape[1:])


def quantized_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """QLinear*: weights are the fourth input."""
    weights = inputs[3]
    return 2 * outputs[0].size * (prod(weights.shape[1:]) if weights.ndim > 2 else inputs[0].shape[-1])


def recurrent_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """Every step multiplies with W and R."""
    x, w, r = inputs[:3]
    return 2 * prod(x.shape[:2]) * (w.size + r.size)


def attention_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """Queries with keys, weights with values; a cache of keys in the second output counts as keys."""
    keys = outputs[1] if len(outputs) > 1 and outputs[1].ndim == 4 else inputs[1]
    return 2 * keys.shape[-2] * (inputs[0].size + outputs[0].size)


def pooling_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """Every output element is made of a window."""
    return outputs[0].size * prod(attributes["kernel_shape"])


def packed_attention_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """Input times weights of queries, keys and values, queries with keys, weights with values."""
    x, weights = inputs[:2]
    return 2 * x.shape[0] * x.shape[1] * weights.size + 4 * x.shape[1] * outputs[0].size


def transform_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """5 n log2 n for each transform of n; `n` is taken for the longest axis."""
    length = max(outputs[0].shape[-2:])
    return 5 * outputs[0].size // 2 * log2(max(2, length))


def experts_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """Each row times the weights of its k experts, a share of all."""
    x, layers = inputs[0], [array for array in inputs[2:] if array is not None and array.ndim == 3]
    return 2 * x.size // x.shape[-1] * attributes.get("k", 1) * sum(array.size // array.shape[0] for array in layers)


def linear_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """Each row times all coefficients."""
    return 2 * _rows(inputs) * len(attributes["coefficients"])


def svm_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """Each row times all support vectors, and these products times the coefficients."""
    vectors, coefficients = (len(attributes.get(name) or ()) for name in ("support_vectors", "coefficients"))
    return 2 * _rows(inputs) * (vectors + coefficients)


def trees_flops(attributes: Attributes, inputs: Arrays, outputs: Arrays) -> Any:
    """For each row and tree the comparisons down to a leaf of a balanced tree of its size, and one sum."""
    nodes = len(attributes["nodes_featureids"])
    if "tree_roots" in attributes:
        trees, leaves = len(attributes["tree_roots"]), len(attributes["leaf_weights"])
    else:
        trees = len(np.unique(np.asarray(attributes["nodes_treeids"])))
        leaves = (nodes + trees) // 2
    return _rows(inputs) * trees * (log2(max(1, leaves / max(1, trees))) + 1)


def _rows(inputs: Arrays) -> int:
    """Number of rows of the first input; a vector is one."""
    return int(inputs[0].shape[0]) if inputs[0].ndim > 1 else 1
