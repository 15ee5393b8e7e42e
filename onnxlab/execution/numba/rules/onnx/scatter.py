"""Operators on elements at tuples of indices: ScatterElements, ScatterND, GatherElements, GatherND."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.builder import FAULT, Word
from onnxlab.execution.numba.plan.copies import contiguous, emit_copy
from onnxlab.execution.numba.plan.views import View
from onnxlab.execution.numba.rules.attribute_checks import axis_of
from onnxlab.execution.numba.rules.registry import StaticFacts, dtype_reason, moves, rule
from onnxlab.graph.edit.snapshot import NodeView

REDUCTIONS = ("none", "add", "mul", "max", "min", "take")
_INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))
_MOST = 1 << 20
"""Indices up to which their offsets are kept with the plan."""


def _accept(node: NodeView, view: StaticFacts) -> str:
    reduction = node.attributes.get("reduction", "none")
    if reduction not in REDUCTIONS[:-1]:
        return f"reduction is {reduction!r}"
    if reason := dtype_reason(node.inputs[1], view, lambda dtype: dtype in _INTEGERS):
        return reason
    plain = reduction == "none"
    return dtype_reason(node.inputs[0], view, lambda dtype: dtype == np.float32 or (plain and _moved(dtype)))


def _moved(dtype: np.dtype[np.generic]) -> bool:
    """Whether elements are held as they are stored: small floats are not."""
    return (moves(dtype) and dtype.kind in "iub") or dtype == np.float32


def _emit(
    binder: Binder, whole: View, indices: View, updates: View, axes: Sequence[int], shape: tuple[int, int],
    reduction: str, places: Word = 0,
) -> None:  # fmt: skip
    """Scatter or gather.

    Args:
        whole: the contiguous view that tuples of indices refer to.
        axes: axes that the indices of a tuple refer to.
        shape: number of tuples, and number of elements of each.
    """
    keep = binder.builder.keep
    values: dict[str, Word] = {
        "target": whole.where, "rows": shape[0], "parts": len(axes),
        "sizes": keep(np.array([whole.shape[axis] for axis in axes] or [0], np.int64)),
        "steps": keep(np.array([whole.strides[axis] for axis in axes] or [0], np.int64)),
        "indices": indices.where, "wide": int(indices.dtype.itemsize == 8), "places": places,
        "updates": updates.where, "inner": shape[1], "item": whole.dtype.itemsize,
        "reduction": REDUCTIONS.index(reduction), "fault": FAULT.where,
    }  # fmt: skip
    reads = [indices, FAULT, whole if reduction == "take" else updates]
    writes = [FAULT, updates if reduction == "take" else whole]
    work = shape[0] * (4.0 * len(axes) + shape[1])
    binder.builder.emit("scatter", 1, values, reads if reduction == "take" else [*reads, whole], writes, work=work)


def _copied(binder: Binder, node: NodeView) -> View:
    """A copy of the data, under the name of the result."""
    data = binder.view(node.inputs[0])
    target = binder.allocate(node.outputs[0], data.shape, data.dtype)
    emit_copy(binder.builder, data, target)
    return target


def _element_places(whole: View, shape: Sequence[int], axis: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Bytes to each element of such a shape, but for the axis that the index is for."""
    if len(shape) != len(whole.shape) or any(
        size > most for at, (size, most) in enumerate(zip(shape, whole.shape, strict=True)) if at != axis
    ):
        raise UnbindableError(f"indices have shape {tuple(shape)}, the data {whole.shape}")
    if prod(shape) > _MOST:
        raise UnbindableError(f"{prod(shape)} indices")
    strides = [0 if at == axis else stride for at, stride in enumerate(whole.strides)]
    return np.ascontiguousarray(whole.at(0, shape, strides).offsets(len(shape)))


@rule("ScatterElements", since=11, accept=_accept, weight=3, reads=(0, 1, 2))
def scatter_elements(binder: Binder, node: NodeView) -> None:
    """Lower ScatterElements: a place for every index, but for its axis."""
    indices = contiguous(binder.builder, binder.view(node.inputs[1]))
    updates = contiguous(binder.builder, binder.view(node.inputs[2]))
    axis = axis_of(node, len(binder.shape(node.inputs[0])))
    if indices.shape != updates.shape:
        raise UnbindableError(f"indices have shape {indices.shape}, updates {updates.shape}")
    target = _copied(binder, node)
    places = binder.builder.keep(_element_places(target, indices.shape, axis))
    reduction = node.attributes.get("reduction", "none")
    _emit(binder, target, indices, updates, [axis], (indices.size, 1), reduction, places)
    binder.put(node.outputs[0], target)


@rule("ScatterND", since=11, accept=_accept, weight=3, reads=(0, 1, 2))
def scatter_nd(binder: Binder, node: NodeView) -> None:
    """Lower ScatterND."""
    indices = contiguous(binder.builder, binder.view(node.inputs[1]))
    updates = contiguous(binder.builder, binder.view(node.inputs[2]))
    shape = binder.shape(node.inputs[0])
    parts = indices.shape[-1] if indices.shape else 0
    if not parts or parts > len(shape) or updates.shape != (*indices.shape[:-1], *shape[parts:]):
        raise UnbindableError(f"indices {indices.shape} and updates {updates.shape} for data {shape}")
    target = _copied(binder, node)
    rows, inner = prod(indices.shape[:-1]), prod(shape[parts:])
    _emit(binder, target, indices, updates, range(parts), (rows, inner), node.attributes.get("reduction", "none"))
    binder.put(node.outputs[0], target)


@rule("GatherElements", since=11, accept=_accept, weight=2, reads=(0, 1))
def gather_elements(binder: Binder, node: NodeView) -> None:
    """Lower GatherElements."""
    data = contiguous(binder.builder, binder.view(node.inputs[0]))
    indices = contiguous(binder.builder, binder.view(node.inputs[1]))
    axis = axis_of(node, len(data.shape))
    target = binder.allocate(node.outputs[0], indices.shape, data.dtype)
    places = binder.builder.keep(_element_places(data, indices.shape, axis))
    _emit(binder, data, indices, target, [axis], (indices.size, 1), "take", places)
    binder.put(node.outputs[0], target)


@rule("GatherND", since=11, accept=_accept, weight=2, reads=(0, 1))
def gather_nd(binder: Binder, node: NodeView) -> None:
    """Lower GatherND without batch dims."""
    data = contiguous(binder.builder, binder.view(node.inputs[0]))
    indices = contiguous(binder.builder, binder.view(node.inputs[1]))
    parts = indices.shape[-1] if indices.shape else 0
    if node.attributes.get("batch_dims", 0) or not 0 < parts <= len(data.shape):
        raise UnbindableError("batch dims, or indices for more axes than there are")
    target = binder.allocate(node.outputs[0], (*indices.shape[:-1], *data.shape[parts:]), data.dtype)
    shape = prod(indices.shape[:-1]), prod(data.shape[parts:])
    _emit(binder, data, indices, target, range(parts), shape, "take")
    binder.put(node.outputs[0], target)
