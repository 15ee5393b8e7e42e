"""Places of the largest elements: ArgMax, ArgMin and TopK of few elements, ArrayFeatureExtractor."""

from __future__ import annotations

from math import prod

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.builder import Word
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.views import View
from onnxlab.execution.numba.rules.attribute_checks import axis_of
from onnxlab.execution.numba.rules.onnx.rotary import gathered
from onnxlab.execution.numba.rules.registry import StaticFacts, dtype_reason, moves, rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.shapes import TensorFact

_MOST = 1 << 14
"""Elements up to which a scalar loop is faster than NumPy, whose calls have overhead."""
_FEW = 32
"""Elements of TopK up to which they are sorted by insertion, whatever the number of the others."""
_UNITS = 32
"""Pieces of work that threads share, of TopK on more than _MOST elements."""
_FLOAT = np.dtype(np.float32)


def _accept(node: NodeView, view: StaticFacts) -> str:
    return dtype_reason(node.inputs[0], view, lambda dtype: dtype == _FLOAT)


def _accept_few(node: NodeView, view: StaticFacts) -> str:
    fact = view.fact(node.inputs[0])
    sizes = [dim for dim in (fact.shape or ()) if isinstance(dim, int)] if isinstance(fact, TensorFact) else []
    if prod(sizes) > _MOST:
        return "so many elements that NumPy is as quick"
    return _accept(node, view)


def _words(binder: Binder, node: NodeView, default: int) -> tuple[View, int, dict[str, Word]]:
    """(x, axis, what records of both kernels have)."""
    x = contiguous(binder.builder, binder.floats(node.inputs[0]))
    axis = axis_of(node, len(x.shape), default)
    outer, size, inner = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
    return x, axis, {
        "x": x.where, "outer": outer, "size": size, "inner": inner, "outer_bytes": size * inner * 4,
        "step": inner * 4, "inner_bytes": 4, "unit": max(1, outer * inner),
    }  # fmt: skip


@rule("ArgMax", "ArgMin", accept=_accept_few)
def arg(binder: Binder, node: NodeView) -> None:
    """Lower ArgMax and ArgMin."""
    attributes = node.attributes
    x, axis, words = _words(binder, node, 0)
    if x.size > _MOST:
        raise UnbindableError(f"{x.size} elements")
    ones = (1,) if attributes.get("keepdims", 1) == 1 else ()
    target = binder.allocate(node.outputs[0], (*x.shape[:axis], *ones, *x.shape[axis + 1 :]), np.int64)
    values = words | {
        "largest": int(node.op_type == "ArgMax"), "last": int(attributes.get("select_last_index", 0) != 0),
        "places": target.where,
    }  # fmt: skip
    binder.builder.emit("arg", 1, values, [x], [target], work=float(x.size))
    binder.put(node.outputs[0], target)


@rule("TopK", since=10, accept=_accept, weight=2)
def top_k(binder: Binder, node: NodeView) -> None:
    """Lower TopK of a few elements."""
    (count,) = binder.integers(node.inputs[1])
    x, axis, words = _words(binder, node, -1)
    if not 0 < count <= min(_FEW, x.shape[axis]):
        raise UnbindableError(f"the first {count}")
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    names = (*node.outputs, "")[:2]
    y, places = binder.allocate(names[0], shape, np.float32), binder.allocate(names[1], shape, np.int64)
    rows = x.size // x.shape[axis]
    unit = max(1, rows if x.size <= _MOST else -(-rows // _UNITS))
    values = words | {
        "largest": int(node.attributes.get("largest", 1) != 0), "count": count, "places": places.where, "y": y.where,
        "unit": unit,
    }  # fmt: skip
    binder.builder.emit("top", -(-rows // unit), values, [x], [y, places], work=x.size * 3.0)
    binder.put(names[0], y)
    binder.put(names[1], places)


def _extractor_accept(node: NodeView, view: StaticFacts) -> str:
    reason = dtype_reason(node.inputs[1], view, lambda dtype: dtype == np.int64)
    return reason or dtype_reason(node.inputs[0], view, lambda dtype: moves(dtype) and dtype.kind in "fiub")


@rule("ArrayFeatureExtractor", domain="ai.onnx.ml", accept=_extractor_accept, reads=(0, 1))
def array_feature_extractor(binder: Binder, node: NodeView) -> None:
    """Lower ArrayFeatureExtractor: columns by index."""
    x, indices = binder.view(node.inputs[0]), binder.view(node.inputs[1])
    flat = contiguous(binder.builder, indices).reshaped([indices.size])
    assert flat is not None
    if not x.shape:
        raise UnbindableError("a scalar has no columns")
    rows = x if len(x.shape) > 1 else x.at(0, (1, *x.shape), (0, *x.strides))
    binder.put(node.outputs[0], gathered(binder, rows, len(rows.shape) - 1, flat, node.outputs[0]))
