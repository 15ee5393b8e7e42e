"""Elementwise operators on int32 and int64, and casts of them: what loops count and decide by."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from onnxlab import dtypes
from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.builder import FAULT, Word
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.views import View
from onnxlab.execution.numba.rules.registry import Accept, StaticFacts, dtype_reason
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.shapes import TensorFact

KINDS = tuple(map(np.dtype, (np.int64, np.int32, np.bool_, np.float32)))
_INTEGERS = KINDS[:2]
_OPERATIONS = {
    name: number
    for number, name in enumerate(
        ("Cast", "Add", "Sub", "Mul", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Div", "Where")
    )
}
_COMPARING = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
_OF_MATRICES = ("Div", "Where")
"""Taken on two axes and more: numbers in a row may say a shape, which has to be known when a plan is made."""
_CAST_TO = (dtypes.INT64, dtypes.INT32, dtypes.BOOL, dtypes.FLOAT)
_MOST = 1 << 14
"""Elements up to which one by one is as quick as NumPy."""


def or_integers(accept: Accept) -> Accept:
    """Take what `accept` takes, and pairs of integers of one type."""

    def either(node: NodeView, view: StaticFacts) -> str:
        reason = accept(node, view)
        if not reason or node.op_type not in _OPERATIONS or _is_large(node.outputs[0], view):
            return reason
        if node.op_type in _OF_MATRICES and (view.fact(node.outputs[0]).rank or 0) < 2:
            return reason
        *condition, a, b = node.inputs
        kinds = [kind for kind in _INTEGERS if not any(_other(name, view, kind) for name in (a, b))]
        return "" if len(kinds) == 1 and not any(_other(name, view, KINDS[2]) for name in condition) else reason

    return either


def _is_large(name: str, view: StaticFacts) -> bool:
    """Whether a value is known to have many elements."""
    fact = view.fact(name)
    dims = (fact.shape or ()) if isinstance(fact, TensorFact) else ()
    return prod(dim for dim in dims if isinstance(dim, int)) > _MOST


def integer_cast(node: NodeView, view: StaticFacts) -> str:
    """The reason why a Cast is none that is taken: from int32, int64 or bool, or from float32 to int64 or bool.

    What NaN and numbers beyond int64 become is left open by C; processors do as NumPy for int64, not for int32.
    """
    to, fact = node.attributes.get("to"), view.fact(node.inputs[0])
    source = fact.dtype if isinstance(fact, TensorFact) else None
    if to not in _CAST_TO or _is_large(node.outputs[0], view) or not isinstance(fact, TensorFact) or fact.shape is None:
        return "only casts of int32, int64, bool and float32"
    if (
        source in KINDS[:2]
        or (source == np.bool_ and to != dtypes.FLOAT)
        or (source == np.float32 and to in (dtypes.BOOL, dtypes.INT64))
    ):
        return ""
    return f"a cast of {source}"


def lower_cast(binder: Binder, node: NodeView) -> None:
    """Lower a cast of integers; to the type that a value has already it is another name."""
    view, dtype = binder.view(node.inputs[0]), dtypes.to_numpy(node.attributes["to"])
    if view.dtype == dtype:
        binder.put(node.outputs[0], view)
    else:
        emit_integers(binder, node, [view], view.shape, dtype)


def _other(name: str, view: StaticFacts, kind: np.dtype[np.generic]) -> str:
    return dtype_reason(name, view, lambda dtype: dtype == kind)


def is_integer(binder: Binder, name: str) -> bool:
    """Whether a value is of an integer type."""
    return binder.layout(name)[0] in _INTEGERS


def lower_integers(binder: Binder, node: NodeView) -> None:
    """Lower an operator on two integers, or a choice between them."""
    views = [binder.view(name) for name in node.inputs]
    shape = np.broadcast_shapes(*(view.shape for view in views))
    emit_integers(binder, node, views, shape, KINDS[2] if node.op_type in _COMPARING else views[-1].dtype)


def emit_integers(
    binder: Binder, node: NodeView, views: Sequence[View], shape: Sequence[int], dtype: np.dtype[np.generic]
) -> None:
    """Compute a node of one to three operands, and name its result."""
    target = binder.allocate(node.outputs[0], shape, dtype)
    if target.size > _MOST:
        raise UnbindableError(f"{target.size} integers")
    words: dict[str, Word] = {
        "y": target.where, "y_kind": KINDS.index(dtype), "operation": _OPERATIONS[node.op_type], "count": target.size,
        "unit": max(1, target.size), "fault": FAULT.where if node.op_type == "Div" else 0,
    }  # fmt: skip
    fault = [FAULT] if node.op_type == "Div" else []
    read = [*fault]
    for name, view in zip("abc", views, strict=False):
        single = view.size == 1
        operand = view if single else contiguous(binder.builder, view.broadcast(shape))
        words |= {name: operand.where, f"{name}_step": int(not single)}
        words |= {f"{name}_kind": KINDS.index(view.dtype)} if name != "c" else {}
        read.append(operand)
    binder.builder.emit("integers", 1, words, read, [target, *fault], work=target.size * 2.0)
    binder.put(node.outputs[0], target)
