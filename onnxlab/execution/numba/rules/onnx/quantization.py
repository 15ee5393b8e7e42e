"""Quantization and elementwise operators on quantized values: chains that read and write levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.integer_products import IntegerProduct
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.builder import Word
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.elementwise_chains import Chain, Operand, QuantizedView, Zero, chain, limits, rounded
from onnxlab.execution.numba.plan.views import Array, View, constant_view, dense
from onnxlab.execution.numba.rules.registry import StaticFacts, dtype_reason, reason_at, rule
from onnxlab.graph.edit.snapshot import NodeView

DOMAIN = "com.microsoft"
BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
_CHUNK = 8192
"""Elements of which one unit finds the least and the greatest."""


def given(node: NodeView, slot: int) -> str:
    """The name of an input, "" where it is absent."""
    return node.inputs[slot] if len(node.inputs) > slot else ""


def parameters(node: NodeView, view: StaticFacts, *slots: int) -> str:
    """The reason why a node is not taken: these inputs are to be known while binding."""
    for slot in slots:
        name = given(node, slot)
        if name and not view.known(name):
            return f"{name!r} is no constant"
    return ""


def bytes_reason(node: NodeView, view: StaticFacts, *slots: int) -> str:
    """The reason why a node is not taken: these inputs are to be int8 or uint8, of known rank."""
    return reason_at(node, view, lambda dtype: dtype in BYTES, *slots)


def fixed(binder: Binder, name: str) -> Array | None:
    """The array of a constant, or of what follows from shapes; None for what comes from outside, however small."""
    value = binder.value(name)
    return value if isinstance(value, np.ndarray) else None


def number(binder: Binder, name: str, default: float = 0.0) -> float:
    """A scale or zero point of a whole tensor.

    Raises:
        UnbindableError: it has several.
    """
    if not name:
        return default
    array = fixed(binder, name)
    if array is None or array.size != 1:
        raise UnbindableError(f"{name!r} is not one number that is known")
    return float(array.reshape(()))


def along(binder: Binder, name: str, shape: tuple[int, ...], axis: int) -> Operand:
    """A scale or zero point as an operand: one number, or one for each slice along an axis."""
    array = fixed(binder, name)
    assert array is not None
    if array.size == 1:
        return float(array.reshape(()))
    if array.ndim != 1:
        raise UnbindableError(f"{name!r} is for blocks")
    axis += len(shape) if axis < 0 else 0
    if not 0 <= axis < len(shape) or array.size != shape[axis]:
        raise UnbindableError(f"{name!r} has {array.size} elements for axis {axis} of {shape}")
    return constant_view(array.astype(np.float32).reshape(-1, *[1] * (len(shape) - 1 - axis)))


def same_zero(binder: Binder, zero: Zero, name: str) -> bool:
    """Whether a zero point is the value of this name."""
    if isinstance(zero, str):
        return zero == name
    array = fixed(binder, name) if name else np.zeros(1)
    return zero is not None and array is not None and array.size == 1 and int(array.reshape(())) == zero


def zero_of(binder: Binder, name: str) -> Zero:
    """The zero point that this name stands for."""
    array = fixed(binder, name) if name else np.zeros(1)
    if array is None:
        return name
    return int(array.reshape(())) if array.size == 1 else None


def put_levels(binder: Binder, name: str, view: View, zero: Operand, note: QuantizedView, dtype: Any) -> None:
    """Name a quantized result; its bytes are made from the levels only where a reader needs them."""
    binder.levels[name] = note
    binder.offer(name, chain("add", view, zero, dtype=dtype))


def levels_view(binder: Binder, note: QuantizedView) -> View:
    """The levels in memory."""
    return binder.emit_once(note.value)


def levels_of(binder: Binder, name: str, zero: str) -> View:
    """The int16 levels of a quantized value with this zero point, made from its bytes where they are not held."""
    note = binder.levels.get(name)
    if note is not None and same_zero(binder, note.zero, zero):
        return levels_view(binder, note)
    return binder.emit(centered(binder, name, zero))


def centered(binder: Binder, name: str, zero: str) -> Chain:
    """Bytes without their zero point, which may be one for each row."""
    operand: Operand = 0.0
    if zero:
        array = fixed(binder, zero)
        if array is not None and array.size == 1:
            operand = float(array.reshape(()))
        else:
            view = binder.view(zero)
            if len(view.shape) == 1 and view.size > 1:
                view = view.at(0, (*view.shape, 1), (*view.strides, 0))
            operand = view if view.size > 1 else view.at(0, (), ())
    return chain("sub", binder.view(name), operand, dtype=np.int16)


# -- QuantizeLinear and DequantizeLinear -----------------------------------------------------------------------------


def _quantize_accept(node: NodeView, view: StaticFacts) -> str:
    kind = node.attributes.get("output_dtype", 0)
    fact = view.fact(node.outputs[0])
    if getattr(fact, "dtype", None) not in BYTES or node.attributes.get("block_size", 0):
        return "only int8 and uint8, of tensors and axes"
    if kind not in (0, dtypes.INT8, dtypes.UINT8):
        return "only int8 and uint8"
    return parameters(node, view, 1, 2) or dtype_reason(node.inputs[0], view, lambda dtype: dtype == np.float32)


@rule("QuantizeLinear", since=10, accept=_quantize_accept)
def quantize_linear(binder: Binder, node: NodeView) -> None:
    """Lower QuantizeLinear."""
    name, scale, zero = node.inputs[0], node.inputs[1], given(node, 2)
    array = fixed(binder, zero) if zero else None
    dtype = _dtype(node) if array is None else array.dtype
    quantized(binder, node.outputs[0], name, scale, zero, dtype, node.attributes.get("axis", 1))


rule("QuantizeLinear", domain=DOMAIN, accept=_quantize_accept)(quantize_linear)


def _dtype(node: NodeView) -> np.dtype[Any]:
    return np.dtype(np.int8 if node.attributes.get("output_dtype", 0) == dtypes.INT8 else np.uint8)


def quantized(binder: Binder, output: str, name: str, scale: str, zero: str, dtype: Any, axis: int = 1) -> None:
    """Name the quantized value of the floats `name`; a product of integers that waits takes it in."""
    value = binder.value(name)
    shape = tuple(value.shape)
    step, offset = along(binder, scale, shape, axis), along(binder, zero, shape, axis) if zero else 0.0
    single = isinstance(step, float) and isinstance(offset, float)
    if single and isinstance(value, IntegerProduct) and not value.sums and value.residual is None:
        value.quantize(binder.builder, step, *limits(dtype, int(offset)))  # type: ignore[arg-type]
        view = binder.emit(value)
    elif single and isinstance(value, View) and value.dtype == np.float32 and _whole(value):
        qparams = np.array([step, offset, *limits(dtype, int(offset))], np.float32)  # type: ignore[arg-type]
        view = emit_levels(binder, value, constant_view(qparams))
    else:
        low, high = _bounds(binder, offset, dtype)
        view = binder.emit(rounded(binder.operand(name), step, low, high))
    note = QuantizedView(
        view, int(offset) if isinstance(offset, float) else None, step if isinstance(step, float) else None
    )
    put_levels(binder, output, view, offset, note, dtype)


def _bounds(binder: Binder, offset: Operand, dtype: Any) -> tuple[Operand, Operand]:
    if isinstance(offset, float):
        return limits(dtype, int(offset))
    assert isinstance(offset, View)
    zeros = offset.buffer.array
    assert zeros is not None
    low, high = limits(dtype, 0)
    return constant_view(low - zeros), constant_view(high - zeros)


def _dequantize_accept(node: NodeView, view: StaticFacts) -> str:
    if node.attributes.get("block_size", 0) or node.attributes.get("output_dtype", 0) not in (0, dtypes.FLOAT):
        return "only whole tensors and axes, to float32"
    fact = view.fact(node.outputs[0])
    if getattr(fact, "dtype", None) != np.float32:
        return "only to float32"
    return parameters(node, view, 1, 2) or bytes_reason(node, view, 0)


@rule("DequantizeLinear", since=10, accept=_dequantize_accept)
def dequantize_linear(binder: Binder, node: NodeView) -> None:
    """Lower DequantizeLinear."""
    dequantized(binder, node.outputs[0], node.inputs[0], node.inputs[1], given(node, 2), node.attributes.get("axis", 1))


rule("DequantizeLinear", domain=DOMAIN, accept=_dequantize_accept)(dequantize_linear)


def dequantized(binder: Binder, output: str, name: str, scale: str, zero: str, axis: int = 1) -> None:
    """Name the floats that a quantized value stands for."""
    shape = binder.shape(name)
    step = along(binder, scale, shape, axis)
    note = binder.levels.get(name)
    if note is None or not same_zero(binder, note.zero, zero):
        offset = along(binder, zero, shape, axis) if zero else 0.0
        note = QuantizedView(chain("sub", binder.view(name), offset, dtype=np.int16), zero_of(binder, zero), None)
    binder.offer(output, chain("mul", note.value, step))
    if isinstance(step, float):
        binder.levels[output] = QuantizedView(note.value, note.zero, step)


# -- DynamicQuantizeLinear -------------------------------------------------------------------------------------------


@rule("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(binder: Binder, node: NodeView) -> None:
    """Lower DynamicQuantizeLinear."""
    levels, scale, zero = dynamic_levels(binder, binder.floats(node.inputs[0]))
    y, y_scale, y_zero = (*node.outputs, "", "")[:3]
    put_levels(binder, y, levels, zero, QuantizedView(levels, y_zero or None, None), np.uint8)
    binder.put(y_scale, scale)
    binder.put(y_zero, chain("copy", zero, dtype=np.uint8))


def dynamic_levels(binder: Binder, x: View) -> tuple[View, View, View]:
    """(levels, scale, zero point) of a tensor by its range, as uint8; both numbers float32, known at run time."""
    builder = binder.builder
    x = x if _whole(x) else contiguous(builder, x)
    chunks = -(-x.size // _CHUNK)
    extents, qparams = builder.allocate((chunks, 2), np.float32), builder.allocate((4,), np.float32)
    values: dict[str, Word] = {
        "x": x.where, "count": x.size, "chunk": _CHUNK, "extents": extents.where, "found": qparams.where,
    }  # fmt: skip
    builder.emit("extent", chunks, values, [x], [extents], work=x.size * 0.05)
    builder.emit("byte_range", 1, {**values, "chunks": chunks}, [extents], [qparams], work=20)
    return emit_levels(binder, x, qparams), qparams.at(0, (), ()), qparams.at(4, (), ())


def emit_levels(binder: Binder, x: View, qparams: View) -> View:
    """Quantize floats that are one run of memory by [scale, zero point, least and greatest level], in their layout."""
    builder = binder.builder
    y = builder.allocate(x.shape, np.int16, [stride // 2 for stride in x.strides])
    values: dict[str, Word] = {
        "x": x.where, "count": x.size, "chunk": _CHUNK, "found": qparams.where, "y": y.where,
    }  # fmt: skip
    builder.emit("to_levels", -(-x.size // _CHUNK), values, [x, qparams], [y], work=x.size * 0.2)
    return y


def _whole(view: View) -> bool:
    """Whether the elements fill one run of memory, in any order."""
    order = sorted(range(len(view.shape)), key=lambda axis: -view.strides[axis])
    return view.transposed(order).is_laid_out(dense([view.shape[axis] for axis in order], view.dtype.itemsize))


# -- com.microsoft's QLinear operators -------------------------------------------------------------------------------

_BINARY = {"QLinearAdd": "add", "QLinearMul": "mul"}


def _pair_accept(node: NodeView, view: StaticFacts) -> str:
    return parameters(node, view, 1, 2, 4, 5, 6, 7) or bytes_reason(node, view, 0, 3)


@rule(*_BINARY, domain=DOMAIN, accept=_pair_accept)
def binary(binder: Binder, node: NodeView) -> None:
    """Lower QLinearAdd and QLinearMul."""
    a, b = (floats_of(binder, *node.inputs[first : first + 3]) for first in (0, 3))
    requantized(binder, node, chain(_BINARY[node.op_type], a, b), given(node, 6), given(node, 7))


def _single_accept(node: NodeView, view: StaticFacts) -> str:
    return parameters(node, view, 1, 2, 3, 4) or bytes_reason(node, view, 0)


@rule("QLinearSigmoid", "QLinearLeakyRelu", domain=DOMAIN, accept=_single_accept)
def unary(binder: Binder, node: NodeView) -> None:
    """Lower QLinearSigmoid and QLinearLeakyRelu."""
    x = floats_of(binder, *node.inputs[:3])
    activated = chain("sigmoid", x)
    if node.op_type == "QLinearLeakyRelu":
        activated = chain("prelu", x, float(node.attributes.get("alpha", 0.01)))
    requantized(binder, node, activated, given(node, 3), given(node, 4))


def floats_of(binder: Binder, name: str, scale: str, zero: str) -> Chain:
    """The floats that a quantized value with this scale and zero point stands for."""
    note = binder.levels.get(name)
    number(binder, scale)
    if note is not None and same_zero(binder, note.zero, zero):
        return chain("mul", note.value, number(binder, scale))
    return chain("mul", chain("sub", binder.view(name), number(binder, zero)), number(binder, scale))


def requantized(binder: Binder, node: NodeView, value: Operand, scale: str, zero: str) -> None:
    """Name floats in integers with this scale and zero point."""
    known = fixed(binder, zero) if zero else None
    like = binder.value(node.inputs[0])
    dtype = known.dtype if known is not None else getattr(like, "dtype", np.dtype(np.uint8))
    offset, step = number(binder, zero), number(binder, scale)
    view = binder.emit(rounded(value, step, *limits(dtype, int(offset))))
    put_levels(binder, node.outputs[0], view, offset, QuantizedView(view, int(offset), step), dtype)


def constant_levels(binder: Binder, name: str, zero: str, axis: int | None = None) -> Array | None:
    """A constant of int8 or uint8 without its zero point, as int16; None where it is none."""
    array = fixed(binder, name)
    if array is None or array.dtype not in BYTES:
        return None
    offset = fixed(binder, zero) if zero else None
    if zero and offset is None:
        return None
    if offset is None or not offset.any():
        return array.astype(np.int16)
    shape = [1] * array.ndim
    if offset.size > 1:
        shape[array.ndim - 1 if axis is None else axis] = -1
    return array.astype(np.int16) - offset.astype(np.int16).reshape(shape)
