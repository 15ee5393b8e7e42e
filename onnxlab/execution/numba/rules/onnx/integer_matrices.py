"""Products of quantized matrices: MatMulInteger and its kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.integer_products import IntegerProduct
from onnxlab.execution.numba.lowering.matrix_products import Product, emit_pack
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.elementwise_chains import QuantizedView, limits
from onnxlab.execution.numba.plan.views import Array, View, constant_view
from onnxlab.execution.numba.rules.onnx.matmul import stacked
from onnxlab.execution.numba.rules.onnx.quantization import (
    DOMAIN,
    bytes_reason,
    constant_levels,
    dynamic_levels,
    fixed,
    given,
    levels_of,
    number,
    parameters,
    put_levels,
)
from onnxlab.execution.numba.rules.registry import StaticFacts, dtype_reason, rule
from onnxlab.graph.edit.snapshot import NodeView

_FLOAT, _SUM = np.dtype(np.float32), np.dtype(np.int32)


def product(binder: Binder, a: View, b: Array | View, key: tuple[object, ...], dtype: Any = _SUM) -> IntegerProduct:
    """Levels [..., M, K] times levels, constant [K, N] or at run time [..., K, N]."""
    if len(a.shape) < 2 or len(b.shape) < 2 or a.shape[-1] != b.shape[-2]:
        raise UnbindableError(f"{a.shape} and {tuple(b.shape)} do not multiply")
    a = a if a.strides[-1] == 2 or a.shape[-1] == 1 else contiguous(binder.builder, a)
    if isinstance(b, np.ndarray) and b.ndim == 2:
        target = binder.builder.allocate((*a.shape[:-1], b.shape[1]), dtype)
        rows = len(a.shape) - 1
        return IntegerProduct(
            a, a.offsets(rows)[None], a.shape[-1], b.shape[1], target, rows, target.offsets(rows),
            np.zeros((1, 5), np.int64), constant=b[None], key=("matmul", *key),
        )  # fmt: skip
    right = b if isinstance(b, View) else constant_view(b)
    lead = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    target = binder.builder.allocate((*lead, a.shape[-2], right.shape[-1]), dtype)
    packed = emit_pack(binder.builder, right, 2)
    batches, places = stacked(a, right, target, packed)
    inner = a.at(0, a.shape[-2:], a.strides[-2:])
    return IntegerProduct(
        a, inner.offsets(1)[None], a.shape[-1], right.shape[-1], target, len(target.shape) - 1, places, batches,
        weights=packed,
    )  # fmt: skip


def factor_b(binder: Binder, name: str, zero: str) -> tuple[Array | View, tuple[object, ...]]:
    """The second factor: constant levels with a key, or a view of levels."""
    levels = constant_levels(binder, name, zero)
    if levels is not None:
        known = fixed(binder, zero) if zero else None
        return levels, (*binder.key_of(name), "" if known is None else known.tobytes())
    if zero:
        array = fixed(binder, zero)
        if array is None or array.size != 1:
            raise UnbindableError(f"{zero!r} is not one number that is known")
    return levels_of(binder, name, zero), ()


def _matrices(node: NodeView, view: StaticFacts) -> str:
    """Both factors are bytes; the zero point of the second is known."""
    return bytes_reason(node, view, 0, 1) or parameters(node, view, 3)


@rule("MatMulInteger", since=10, accept=_matrices, weight=4)
def matmul_integer(binder: Binder, node: NodeView) -> None:
    """Lower MatMulInteger."""
    b, key = factor_b(binder, node.inputs[1], given(node, 3))
    a = levels_of(binder, node.inputs[0], given(node, 2))
    binder.put(node.outputs[0], product(binder, a, b, key))


def _scaled_accept(node: NodeView, view: StaticFacts) -> str:
    return bytes_reason(node, view, 0, 1) or parameters(node, view, 3, 5, 6)


@rule("MatMulIntegerToFloat", domain=DOMAIN, accept=_scaled_accept, weight=4)
def matmul_integer_to_float(binder: Binder, node: NodeView) -> None:
    """Lower MatMulIntegerToFloat."""
    b, key = factor_b(binder, node.inputs[1], given(node, 5))
    a = levels_of(binder, node.inputs[0], given(node, 4))
    result = product(binder, a, b, key, _FLOAT)
    _scale(binder, result, node.inputs[2], node.inputs[3])
    _bias(binder, result, given(node, 6))
    binder.put(node.outputs[0], result)


def _dynamic_accept(node: NodeView, view: StaticFacts) -> str:
    reason = bytes_reason(node, view, 1) or parameters(node, view, 1, 2, 3, 4)
    return reason or dtype_reason(node.inputs[0], view, lambda dtype: dtype == np.float32)


@rule("DynamicQuantizeMatMul", domain=DOMAIN, accept=_dynamic_accept, weight=4)
def dynamic_quantize_matmul(binder: Binder, node: NodeView) -> None:
    """Lower DynamicQuantizeMatMul."""
    b, key = factor_b(binder, node.inputs[1], given(node, 3))
    a, scale, _ = dynamic_levels(binder, binder.floats(node.inputs[0]))
    result = product(binder, a, b, key, _FLOAT)
    result.factor = scale
    result.scale = columns_of(result, fixed(binder, node.inputs[2]))
    _bias(binder, result, given(node, 4))
    binder.put(node.outputs[0], result)


def columns_of(matrix_product: Product, values: Array | None) -> Array:
    """One number, or one for each column, as [groups, columns].

    Raises:
        UnbindableError: neither of these.
    """
    if values is None or values.size not in (1, matrix_product.groups * matrix_product.columns):
        raise UnbindableError("a scale that is neither one number nor one for each column")
    flat = np.broadcast_to(values.astype(np.float32).reshape(-1), (matrix_product.groups * matrix_product.columns,))
    return flat.reshape(matrix_product.groups, matrix_product.columns)


def _scale(binder: Binder, integer_product: IntegerProduct, a_scale: str, b_scale: str) -> None:
    """Multiply with both scales; that of A may be known at run time only."""
    known = fixed(binder, a_scale)
    right = columns_of(integer_product, fixed(binder, b_scale))
    if known is not None and known.size == 1:
        integer_product.scale = known.astype(np.float32).reshape(()) * right
        return
    view = binder.floats(a_scale)
    if view.size != 1:
        raise UnbindableError(f"{a_scale!r} is for rows")
    integer_product.scale, integer_product.factor = right, view


def _bias(binder: Binder, integer_product: IntegerProduct, name: str) -> None:
    if name:
        integer_product.add_columns(columns_of(integer_product, fixed(binder, name)))


def _qlinear_matmul_accept(node: NodeView, view: StaticFacts) -> str:
    return bytes_reason(node, view, 0, 3) or parameters(node, view, 1, 2, 4, 5, 6, 7)


@rule("QLinearMatMul", since=10, accept=_qlinear_matmul_accept, weight=4)
def qlinear_matmul(binder: Binder, node: NodeView) -> None:
    """Lower QLinearMatMul."""
    b, key = factor_b(binder, node.inputs[3], node.inputs[5])
    a = levels_of(binder, node.inputs[0], node.inputs[2])
    result = product(binder, a, b, key, _FLOAT)
    result.scale = np.float32(number(binder, node.inputs[1])) * columns_of(result, fixed(binder, node.inputs[4]))
    write_levels(binder, node, result, node.inputs[6], node.inputs[7])


def _gemm_accept(node: NodeView, view: StaticFacts) -> str:
    return bytes_reason(node, view, 0, 3) or parameters(node, view, 1, 2, 3, 4, 5, 6, 7, 8)


@rule("QGemm", domain=DOMAIN, accept=_gemm_accept, weight=4)
def q_gemm(binder: Binder, node: NodeView) -> None:
    """Lower QGemm."""
    attributes = node.attributes
    b, key = factor_b(binder, node.inputs[3], node.inputs[5])
    a = levels_of(binder, node.inputs[0], node.inputs[2])
    turned = bool(attributes.get("transB", 0))
    a = a.transposed([1, 0]) if attributes.get("transA", 0) else a
    result = product(binder, a, b.T if turned else b, (*key, turned), _FLOAT)  # type: ignore[union-attr]
    bias = fixed(binder, node.inputs[6]) if given(node, 6) else None
    if bias is not None:
        if bias.shape[-1:] not in ((), (1,), (result.columns,)) or bias.size not in (1, result.columns):
            raise UnbindableError("a C that differs between rows")
        result.whole_bias = np.broadcast_to(bias.reshape(1, -1), (1, result.columns)).astype(np.int32)
    scale = np.float32(attributes.get("alpha", 1.0)) * np.float32(number(binder, node.inputs[1]))
    result.scale = scale * columns_of(result, fixed(binder, node.inputs[4]))
    if given(node, 7):
        write_levels(binder, node, result, node.inputs[7], given(node, 8))
    else:
        binder.put(node.outputs[0], result)


def write_levels(binder: Binder, node: NodeView, integer_product: IntegerProduct, scale: str, zero: str) -> None:
    """Name a product that is quantized at once."""
    known = fixed(binder, zero) if zero else None
    dtype = np.dtype(np.uint8) if known is None else known.dtype
    step, offset = number(binder, scale), number(binder, zero)
    integer_product.quantize(binder.builder, step, *limits(dtype, int(offset)))
    view = binder.emit(integer_product)
    put_levels(binder, node.outputs[0], view, offset, QuantizedView(view, int(offset), step), dtype)
