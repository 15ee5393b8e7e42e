"""MatMul and Gemm as products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.matrix_products import Product, emit_pack, matrices
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.views import Array, View, dense
from onnxlab.execution.numba.plan.weight_packing import Key, Late, late
from onnxlab.execution.numba.rules.registry import rule
from onnxlab.graph.edit.snapshot import NodeView


@rule("MatMul", weight=4)
def matmul(binder: Binder, node: NodeView) -> None:
    """Lower MatMul of matrices, vectors and batches."""
    a = binder.floats(node.inputs[0])
    weights, key = binder.weights(node.inputs[1])
    b = binder.value(node.inputs[1]) if weights is None else weights
    output = node.outputs[0]
    check_depths(a.shape, b.shape)
    if weights is not None and len(b.shape) == 2 and len(a.shape) > 1:
        shape = (*a.shape[:-1], b.shape[1])
        target = binder.builder.allocate(shape, np.float32)
        binder.put(output, by_constant(binder, a, weights, target, ("matmul", *key)))
        return
    right = binder.floats(node.inputs[1])
    left = a if len(a.shape) > 1 else a.at(0, (1, *a.shape), (0, *a.strides))
    if len(right.shape) == 1:
        right = right.at(0, (right.shape[0], 1), (right.strides[0], 4))
    lead = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape = (*lead, left.shape[-2], right.shape[-1])
    result = batched(binder, left, right, binder.builder.allocate(shape, np.float32))
    if len(a.shape) == 1 or len(b.shape) == 1:
        view = binder.emit(result)
        sizes = [size for size, axis in zip(shape, range(-len(shape), 0), strict=True)
                if not (axis == -2 and len(a.shape) == 1) and not (axis == -1 and len(b.shape) == 1)]  # fmt: skip
        binder.put(output, view.at(0, sizes, dense(sizes, 4)))
    else:
        binder.put(output, result)


def check_depths(left: Sequence[int], right: Sequence[int]) -> None:
    """Raise UnbindableError where matrices, stacks of them or vectors do not multiply."""
    if not left or not right or left[-1] != right[-2 if len(right) > 1 else 0]:
        raise UnbindableError(f"{tuple(left)} and {tuple(right)} do not multiply")


def by_constant(binder: Binder, a: View, b: Array | Late, target: View, key: Key) -> Product:
    """Rows of `a` times a constant matrix."""
    a = with_inner_runs(binder, a)
    rows = len(a.shape) - 1
    return Product(
        a, a.offsets(rows)[None], a.shape[-1], b.shape[1], target, rows, target.offsets(rows),
        np.zeros((1, 5), np.int64), constant=late(b).then(lambda matrix: matrix[None]), key=key,
    )  # fmt: skip


def with_inner_runs(binder: Binder, a: View) -> View:
    """The view, copied unless its last axis is contiguous."""
    return a if a.strides[-1] == 4 or a.shape[-1] == 1 else contiguous(binder.builder, a)


def batched(binder: Binder, left: View, right: View, target: View) -> Product:
    """[…, M, K] times […, K, N], both known at run time only."""
    left = with_inner_runs(binder, left)
    packed = emit_pack(binder.builder, right)
    batches, places = stacked(left, right, target, packed)
    inner = left.at(0, left.shape[-2:], left.strides[-2:])
    return Product(
        left, inner.offsets(1)[None], left.shape[-1], right.shape[-1], target, len(target.shape) - 1, places, batches,
        weights=packed,
    )  # fmt: skip


def stacked(left: View, right: View, target: View, packed: View) -> tuple[Array, Array]:
    """(batches, places) of a product whose matrices broadcast along the leading axes of its target."""
    lead = target.shape[:-2]
    axes = len(lead)
    steps = matrices(packed, right.shape[:-2])
    batches = np.zeros((max(1, prod(lead)), 5), np.int64)
    batches[:, 0] = left.broadcast((*lead, *left.shape[-2:])).offsets(axes)
    batches[:, 1] = steps.broadcast(lead).offsets(axes)
    batches[:, 3] = batches[:, 4] = target.offsets(axes)
    return batches, target.at(0, target.shape[-2:], target.strides[-2:]).offsets(1)


@rule("Gemm", since=7, weight=4)
def gemm(binder: Binder, node: NodeView) -> None:
    """Lower Gemm, its transposes, alpha and beta included."""
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    a = binder.floats(node.inputs[0])
    if len(a.shape) != 2:
        raise UnbindableError(f"A has shape {a.shape}")
    if node.attributes.get("transA", 0):
        a = a.transposed([1, 0])
    weights, key = binder.weights(node.inputs[1])
    b = binder.value(node.inputs[1]) if weights is None else weights
    turned = bool(node.attributes.get("transB", 0))
    depth, columns = tuple(b.shape)[::-1] if turned else b.shape
    check_depths(a.shape, (depth, columns))
    target = binder.builder.allocate((a.shape[0], columns), np.float32)
    if weights is not None:
        stored = weights if turned else None
        if turned:
            weights = weights.then(np.transpose, (weights.shape[1], columns))
        product = by_constant(binder, a, weights, target, ("gemm", *key, turned))
        product.stored = stored
        if alpha != 1.0:
            product.scale_columns(np.full((1, columns), alpha, np.float32))
    elif alpha == 1.0:
        right = binder.floats(node.inputs[1])
        product = batched(binder, a, right.transposed([1, 0]) if turned else right, target)
    else:
        raise UnbindableError("alpha with a matrix that is known at run time only")
    if len(node.inputs) > 2 and node.inputs[2] and beta != 0.0:
        c = binder.value(node.inputs[2])
        values = product.column_values(c) if isinstance(c, np.ndarray) else None
        if values is not None:
            product.add_columns(values * np.float32(beta))
        elif beta == 1.0:
            product.residual = contiguous(binder.builder, binder.floats(node.inputs[2]).broadcast(target.shape))
        else:
            raise UnbindableError("beta with a C that is known at run time only")
    binder.put(node.outputs[0], product)
