"""Operators on floats that stand for integers.

MatMul, Gemm and Conv whose factors come from DequantizeLinear are products of the integers times both scales. Like
products of floats, they are not emitted at once, so that a following bias, activation and QuantizeLinear join them.
Where the integers cannot be used, the rules of these operators on floats lower the node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from onnxlab import dtypes
from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.integer_products import IntegerProduct
from onnxlab.execution.numba.plan.elementwise_chains import QuantizedView
from onnxlab.execution.numba.plan.views import Array
from onnxlab.execution.numba.rules.onnx import conv, elementwise, matmul, shape
from onnxlab.execution.numba.rules.onnx.integer_convolution import convolved
from onnxlab.execution.numba.rules.onnx.integer_matrices import columns_of, product
from onnxlab.execution.numba.rules.onnx.quantization import constant_levels, fixed, given, levels_view
from onnxlab.execution.numba.rules.registry import RULES, Lower, StaticFacts
from onnxlab.graph.edit.snapshot import NodeView

_FLOAT = np.dtype(np.float32)
_BEFORE = (conv, elementwise, matmul, shape)
"""Families whose rules are asked after ours."""


def integers_first(lower: Lower, attempt: Callable[[Binder, NodeView], IntegerProduct | None]) -> Lower:
    """The rule of an operator on floats that tries integers first."""

    def either(binder: Binder, node: NodeView) -> None:
        result = attempt(binder, node)
        if result is None:
            lower(binder, node)
        else:
            binder.put(node.outputs[0], result)

    return either


@dataclass(frozen=True, slots=True)
class _Constant:
    """A constant factor that comes from DequantizeLinear: its levels, its scales, and its key."""

    levels: Array
    scales: Array
    key: tuple[object, ...]


def _dequantized(binder: Binder, name: str, axis: int) -> _Constant | None:
    """The source of a constant that DequantizeLinear computes, with scales along this axis at most."""
    maker = binder.maker(name)
    if maker is None or maker.op_type != "DequantizeLinear" or maker.attributes.get("block_size", 0):
        return None
    zero = given(maker, 2)
    scales, levels = fixed(binder, maker.inputs[1]), constant_levels(binder, maker.inputs[0], zero, axis)
    if scales is None or levels is None or levels.ndim < 2:
        return None
    if scales.size > 1 and (scales.ndim > 1 or (maker.attributes.get("axis", 1) - axis) % levels.ndim):
        return None
    known = fixed(binder, zero) if zero else None
    return _Constant(levels, scales, (*binder.key_of(maker.inputs[0]), "" if known is None else known.tobytes()))


def _activation(binder: Binder, name: str) -> QuantizedView | None:
    """Levels of one scale and zero point behind floats, if there are such: with several, rows span more than bytes."""
    note = binder.levels.get(name)
    return note if note is not None and note.scale is not None and note.zero is not None else None


def _quantized_conv(binder: Binder, node: NodeView) -> IntegerProduct | None:
    note, weights = _activation(binder, node.inputs[0]), _dequantized(binder, node.inputs[1], 0)
    if note is None or weights is None:
        return None
    result = convolved(binder, node, levels_view(binder, note), weights.levels, weights.key, _FLOAT)
    result.scale = np.float32(note.scale) * columns_of(result, weights.scales)
    _float_bias(binder, result, given(node, 2))
    return result


def _float_bias(binder: Binder, integer_product: IntegerProduct, name: str) -> None:
    """A bias as integers where it comes from int32 in units of the product, else as floats."""
    if not name:
        return
    maker = binder.maker(name)
    if maker is not None and maker.op_type == "DequantizeLinear":
        whole, scale = fixed(binder, maker.inputs[0]), fixed(binder, maker.inputs[1])
        zero = fixed(binder, maker.inputs[2]) if given(maker, 2) else None
        plain = zero is None or not zero.any()
        if (
            whole is not None
            and whole.dtype == np.int32
            and scale is not None
            and plain
            and integer_product.scale is not None
        ):
            total = integer_product.groups * integer_product.columns
            if scale.size in (1, total) and np.allclose(
                integer_product.scale.reshape(-1), scale.reshape(-1), rtol=1e-5, atol=0
            ):
                integer_product.whole_bias = np.broadcast_to(whole.reshape(-1), (total,)).reshape(
                    integer_product.groups, integer_product.columns
                )
                return
    integer_product.add_columns(columns_of(integer_product, fixed(binder, name)))


def _quantized_matmul(binder: Binder, node: NodeView) -> IntegerProduct | None:
    note = _activation(binder, node.inputs[0])
    if note is None:
        return None
    constant = _dequantized(binder, node.inputs[1], -1)
    other = _activation(binder, node.inputs[1])
    if constant is not None and constant.levels.ndim == 2:
        result = product(binder, levels_view(binder, note), constant.levels, constant.key, _FLOAT)
        result.scale = np.float32(note.scale) * columns_of(result, constant.scales)
    elif other is not None and min(len(binder.shape(name)) for name in node.inputs) > 1:
        result = product(binder, levels_view(binder, note), levels_view(binder, other), (), _FLOAT)
        result.scale = np.full((1, result.columns), np.float32(note.scale) * np.float32(other.scale), np.float32)
    else:
        return None
    return result


def _quantized_gemm(binder: Binder, node: NodeView) -> IntegerProduct | None:
    attributes = node.attributes
    turned = bool(attributes.get("transB", 0))
    note, weights = _activation(binder, node.inputs[0]), _dequantized(binder, node.inputs[1], 0 if turned else 1)
    bias = given(node, 2)
    plain = attributes.get("alpha", 1.0) == 1.0 and (not bias or attributes.get("beta", 1.0) == 1.0)
    if note is None or weights is None or not plain:
        return None
    known = fixed(binder, bias) if bias else None
    columns = weights.levels.shape[0 if turned else 1]
    if bias and (known is None or known.size not in (1, columns) or (known.ndim == 2 and known.shape[0] != 1)):
        return None
    a = levels_view(binder, note)
    a = a.transposed([1, 0]) if attributes.get("transA", 0) else a
    result = product(binder, a, weights.levels.T if turned else weights.levels, (*weights.key, turned), _FLOAT)
    result.scale = np.float32(note.scale) * columns_of(result, weights.scales)
    _float_bias(binder, result, bias)
    return result


def _scaled(binder: Binder, node: NodeView) -> IntegerProduct | None:
    """A product times one number that is known at run time only, as after DynamicQuantizeLinear."""
    for name, other in (node.inputs, node.inputs[::-1]):
        integer_product, factor = binder.value(name), binder.value(other)
        if (
            isinstance(integer_product, IntegerProduct)
            and integer_product.factor is None
            and integer_product.bias is None
            and integer_product.residual is None
        ):
            single = not isinstance(factor, np.ndarray) and prod(factor.shape) == 1
            if (
                single
                and integer_product.open
                and not integer_product.sums
                and len(factor.shape) <= len(integer_product.shape)
            ):
                integer_product.factor = binder.floats(other)
                return integer_product
    return None


def _cast_sums(binder: Binder, node: NodeView) -> IntegerProduct | None:
    """The sums of a product as floats, which it makes itself."""
    value = binder.value(node.inputs[0])
    if not isinstance(value, IntegerProduct) or node.attributes.get("to") != dtypes.FLOAT:
        return None
    value.to_floats()
    return value


def _cast_accept(node: NodeView, view: StaticFacts) -> str:
    whole = getattr(view.fact(node.inputs[0]), "dtype", None) == np.int32
    return "" if whole and node.attributes.get("to") == dtypes.FLOAT else _CAST.accept(node, view)


def _cast(binder: Binder, node: NodeView) -> None:
    to_floats = node.attributes.get("to") == dtypes.FLOAT
    if to_floats and getattr(binder.value(node.inputs[0]), "dtype", None) == np.int32:
        binder.combine(node.outputs[0], "copy", [binder.operand(node.inputs[0])])
    else:
        _CAST.lower(binder, node)


_CAST = RULES["", "Cast"]
_ATTEMPTS: dict[str, Callable[[Binder, NodeView], IntegerProduct | None]] = {
    "Conv": _quantized_conv, "MatMul": _quantized_matmul, "Gemm": _quantized_gemm, "Mul": _scaled,
}  # fmt: skip
for _name, _attempt in _ATTEMPTS.items():
    RULES["", _name] = replace(RULES["", _name], lower=integers_first(RULES["", _name].lower, _attempt))
RULES["", "Cast"] = replace(_CAST, accept=_cast_accept, lower=integers_first(_cast, _cast_sums))
