"""Softmax, the norms and reductions: records over rows of contiguous elements."""

from __future__ import annotations

from math import prod

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.matrix_products import bits
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.builder import Word
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.elementwise_chains import Chain, chain
from onnxlab.execution.numba.plan.views import View, dense
from onnxlab.execution.numba.rules.attribute_checks import axis_of
from onnxlab.execution.numba.rules.part_matcher import PartMatch
from onnxlab.execution.numba.rules.registry import StaticFacts, floats, floats_at, rule
from onnxlab.graph.edit.snapshot import NodeView


def emit_rows(
    binder: Binder, kernel: str, x: View, target: View, rows: int, length: int, x_row: int, y_row: int,
    reads: list[View] | None = None, cost: float = 1.0, **extra: Word,
) -> None:  # fmt: skip
    """Emit a record that runs a kernel over `rows` rows of `length` elements."""
    unit = max(1, -(-rows // 16))
    values: dict[str, Word] = {
        "x": x.where, "y": target.where, "rows": rows, "length": length, "x_row": x_row, "y_row": y_row,
        "divisor": bits(1.0), "unit_rows": unit, **extra,
    }  # fmt: skip
    units = -(-rows // unit)
    binder.builder.emit(kernel, units, values, [x, *(reads or [])], [target], work=rows * max(1, x.size // rows) * cost)


@rule("Softmax", "LogSoftmax")
def softmax_(binder: Binder, node: NodeView) -> None:
    """Lower Softmax and LogSoftmax."""
    x = binder.floats(node.inputs[0])
    rank = len(x.shape)
    old = node.since_version < 13
    axis = axis_of(node, rank, 1 if old else -1, after=int(old))
    order = list(range(rank))
    if not old and axis != rank - 1:  # the axis to the end, and back by a view
        order.append(order.pop(axis))
        x = x.transposed(order)
    x = contiguous(binder.builder, x)
    length = prod(x.shape[axis:]) if old else x.shape[-1]
    name = node.outputs[0] if order == list(range(rank)) else ""
    target = binder.allocate(name, x.shape, np.float32)
    mode = int(node.op_type == "LogSoftmax")
    emit_rows(binder, "softmax", x, target, x.size // length, length, length * 4, length * 4, mode=mode, cost=0.5)
    back = [order.index(a) for a in range(rank)]
    binder.put(node.outputs[0], target.transposed(back))


def _one_output(node: NodeView, view: StaticFacts) -> str:
    return (
        "its other outputs are read"
        if any(name and view.read(name) for name in node.outputs[1:])
        else floats(node, view)
    )


def _standardized(binder: Binder, name: str, x: View, length: int, epsilon: float, mode: int, scale: View | None,
                  bias: View | None, residual: View | None = None) -> View:  # fmt: skip
    """Rows of `length` elements with the mean taken off and divided by the deviation."""
    target = binder.allocate(name, x.shape, np.float32)
    reads = [view for view in (scale, bias, residual) if view is not None]
    emit_rows(
        binder, "norm", x, target, x.size // length, length, length * 4, length * 4, reads, 0.4,
        epsilon=bits(epsilon), mode=mode, scale=scale.where if scale else 0, bias=bias.where if bias else 0,
        residual=residual.where if residual else 0, residual_row=length * 4,
    )  # fmt: skip
    return target


def _parameter(binder: Binder, node: NodeView, slot: int, length: int, shape: tuple[int, ...]) -> View | None:
    """A scale or bias as a contiguous row."""
    if len(node.inputs) <= slot or not node.inputs[slot]:
        return None
    view = binder.floats(node.inputs[slot])
    if view.size != length:
        view = view.broadcast(shape)
    return contiguous(binder.builder, view)


@rule("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization", accept=_one_output, since=0, weight=2)
def layer_normalization(binder: Binder, node: NodeView) -> None:
    """Lower LayerNormalization and RMSNormalization."""
    x = binder.contiguous(node.inputs[0])
    axis = axis_of(node, len(x.shape), -1)
    length = prod(x.shape[axis:])
    scale = _parameter(binder, node, 1, length, x.shape[axis:])
    bias = _parameter(binder, node, 2, length, x.shape[axis:])
    epsilon, mode = node.attributes.get("epsilon", 1e-5), int(node.op_type != "LayerNormalization")
    binder.put(node.outputs[0], _standardized(binder, node.outputs[0], x, length, epsilon, mode, scale, bias))


def _skip_accept(node: NodeView, view: StaticFacts) -> str:
    if any(name and view.read(name) for name in node.outputs[1:3]):
        return "its means or deviations are read"
    return floats(node, view)


_SKIP = ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")


@rule(*_SKIP, accept=_skip_accept, weight=2, domain="com.microsoft")
def skip_layer_normalization(binder: Binder, node: NodeView) -> None:
    """The norm of X + skip + bias; the kernel adds the skip itself where nothing else is asked for."""
    simple = int(node.op_type == "SkipSimplifiedLayerNormalization")
    x, skip = binder.contiguous(node.inputs[0]), binder.contiguous(node.inputs[1])
    length = x.shape[-1]
    added = _parameter(binder, node, 4 - simple, length, x.shape[-1:])
    total = node.outputs[3] if len(node.outputs) > 3 else ""
    residual: View | None = skip
    if total or added is not None or x.shape != skip.shape:
        terms = binder.chain("add", [x, skip])
        terms = terms if added is None else binder.chain("add", [terms, added.at(0, (length,), (4,))])
        x, residual = contiguous(binder.builder, binder.emit(terms)), None
        binder.put(total, x)
    scale = _parameter(binder, node, 2, length, x.shape[-1:])
    bias = None if simple else _parameter(binder, node, 3, length, x.shape[-1:])
    epsilon = node.attributes.get("epsilon", 1e-12)
    normalized = _standardized(binder, node.outputs[0], x, length, epsilon, simple, scale, bias, residual)
    binder.put(node.outputs[0], normalized)


def _decomposed(binder: Binder, match: PartMatch, mode: int) -> None:
    """A norm of the last axis that is written as a reduction and arithmetic."""
    x = binder.shape(match.values["x"])
    for node in match.nodes:
        if node.op_type == "ReduceMean" and (_reduced_axes(binder, node) not in ([-1], [len(x) - 1])
                                             or node.attributes.get("keepdims", 1) != 1):  # fmt: skip
            raise UnbindableError("a mean of other axes than the last")
    epsilon = binder.known(match.values["epsilon"])
    if epsilon is None or epsilon.size != 1 or not x:
        raise UnbindableError("an epsilon that is not one number that is known")
    names = [match.values.get(name, "") for name in ("scale", "bias")]
    for name in names:
        if name and (binder.shape(name)[-1:] != x[-1:] or max((1, *binder.shape(name)[:-1])) > 1):
            raise UnbindableError("a scale or bias that is not one row")
    view = binder.contiguous(match.values["x"])
    scale, bias = (binder.contiguous(name) if name else None for name in names)
    least = float(epsilon.reshape(()))
    binder.put(match.output, _standardized(binder, match.output, view, x[-1], least, mode, scale, bias))


def decomposed_layer_norm(binder: Binder, match: PartMatch) -> None:
    """ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul and Add."""
    _decomposed(binder, match, 0)


def decomposed_rms_norm(binder: Binder, match: PartMatch) -> None:
    """Pow, ReduceMean, Add, Sqrt, Div and Mul."""
    _decomposed(binder, match, 1)


def _reduced_axes(binder: Binder, node: NodeView) -> list[int] | None:
    """The axes of a reduction, by attribute or second input."""
    axes = node.attributes.get("axes")
    if axes is None and len(node.inputs) > 1 and node.inputs[1]:
        axes = binder.integers(node.inputs[1])
    return None if axes is None else list(axes)


@rule("InstanceNormalization", "GroupNormalization", weight=2)
def group_normalization(binder: Binder, node: NodeView) -> None:
    """Groups of channels standardized, one of each as InstanceNormalization has it; then a scale and bias."""
    x = binder.contiguous(node.inputs[0])
    channels, old = x.shape[1], node.since_version < _PER_CHANNEL
    groups = node.attributes.get("num_groups", channels)
    if groups < 1 or channels % groups:
        raise UnbindableError(f"{channels} channels do not split into {groups} groups")
    group_size, space = channels // groups, x.shape[2:]
    standardized = _standardized(
        binder, "", x, group_size * prod(space), node.attributes.get("epsilon", 1e-5), 0, None, None
    )
    apart = node.op_type == "GroupNormalization" and old
    shape = (groups, group_size, *space) if apart else (channels, *space)
    split = standardized.reshaped((x.shape[0], *shape))
    assert split is not None
    ones = [1] * (len(shape) - 1)
    scale, bias = (_column(binder, name, (shape[0], *ones)) for name in node.inputs[1:3])
    if not apart:
        binder.combine(node.outputs[0], "fma", [split, scale, bias])
        return
    whole = binder.emit(binder.chain("fma", [split, scale, bias])).reshaped(x.shape)
    assert whole is not None
    binder.put(node.outputs[0], whole)


_PER_CHANNEL = 21
"""Version of GroupNormalization from which on scale and bias are per channel; before, they were per group."""


def _column(binder: Binder, name: str, shape: tuple[int, ...]) -> View:
    view = binder.contiguous(name)
    if view.size != prod(shape):
        raise UnbindableError(f"{name!r} does not have {prod(shape)} elements")
    column = view.reshaped(shape)
    assert column is not None
    return column


# -- reductions ------------------------------------------------------------------------------------------------------

_MODES = {"ReduceSum": 0, "ReduceMean": 0, "ReduceMax": 1, "ReduceMin": 2, "ReduceSumSquare": 3, "ReduceL2": 3}
_LARGEST = float(np.finfo(np.float32).max)


@rule(*_MODES, "ReduceLogSumExp")
def reduction(binder: Binder, node: NodeView) -> None:
    """Lower the reductions."""
    x = binder.floats(node.inputs[0])
    rank = len(x.shape)
    reduced = _reduced_in_order(binder, node, rank)
    kept_axes = [axis for axis in range(rank) if axis not in reduced]
    shape = [1 if axis in reduced else size for axis, size in enumerate(x.shape)]
    if node.op_type == "ReduceLogSumExp":
        flat = _log_sum_exp(binder, x, kept_axes, reduced, shape)
    else:
        flat = _reduced(binder, x, kept_axes, reduced, node.op_type)
    if node.attributes.get("keepdims", 1) != 1:
        shape = [x.shape[axis] for axis in kept_axes]
    result = flat.at(0, shape, dense(shape, 4))
    if node.op_type == "ReduceL2":
        binder.combine(node.outputs[0], "sqrt", [result])
    else:
        binder.put(node.outputs[0], result)


def _reduced_in_order(binder: Binder, node: NodeView, rank: int) -> list[int]:
    """The axes of a reduction from the front, all where none are given."""
    axes = _reduced_axes(binder, node)
    if not axes:
        if node.attributes.get("noop_with_empty_axes", 0):
            raise UnbindableError("a reduction along no axis")
        axes = list(range(rank))
    return sorted(axis + rank if axis < 0 else axis for axis in axes)


@rule("LpNormalization")
def lp_normalization(binder: Binder, node: NodeView) -> None:
    """The elements along an axis divided by their sum of magnitudes or length; not where that is 0."""
    x, magnitudes = binder.floats(node.inputs[0]), node.attributes.get("p", 2) == 1
    axis = axis_of(node, len(x.shape), -1)
    kept_axes = [place for place in range(len(x.shape)) if place != axis]
    shape = [1 if place == axis else size for place, size in enumerate(x.shape)]
    source = binder.emit(chain("abs", x)) if magnitudes else x
    total = _reduced(binder, source, kept_axes, [axis], "ReduceSum" if magnitudes else "ReduceSumSquare")
    size: Chain | View = total.at(0, shape, dense(shape, 4))
    size = size if magnitudes else chain("sqrt", size)
    divisor = binder.emit(chain("where", chain("equal", size, 0.0), 1.0, size))
    binder.combine(node.outputs[0], "div", [x, divisor])


_FACTORS = 8  # of a product, which are read by one elementwise operation


def _few_factors(node: NodeView, view: StaticFacts) -> str:
    """Take products along axes of a few elements."""
    if reason := floats_at(node, view, 0):
        return reason
    dims, axes = view.fact(node.inputs[0]).shape, node.attributes.get("axes")
    if len(node.inputs) > 1 and node.inputs[1]:
        axes = view.constant(node.inputs[1])
    if dims is None or axes is None or not len(axes):
        return "a product along axes that are not known"
    sizes = [dims[int(axis)] for axis in axes if -len(dims) <= axis < len(dims)]
    numbers = [size for size in sizes if isinstance(size, int)]
    few = len(numbers) == len(axes) and 1 <= prod(numbers) <= _FACTORS
    return "" if few else f"a product of other than 1 to {_FACTORS} factors"


@rule("ReduceProd", accept=_few_factors)
def product(binder: Binder, node: NodeView) -> None:
    """Lower a product of a few slices."""
    x = binder.floats(node.inputs[0])
    reduced = _reduced_in_order(binder, node, len(x.shape))
    kept_axes = [axis for axis in range(len(x.shape)) if axis not in reduced or node.attributes.get("keepdims", 1) == 1]
    if len({*reduced}) < len(reduced) or not 1 <= prod(x.shape[axis] for axis in reduced) <= _FACTORS:
        raise UnbindableError(f"a product along axes {reduced} of {x.shape}")
    shape = [1 if axis in reduced else x.shape[axis] for axis in kept_axes]
    strides = [0 if axis in reduced else x.strides[axis] for axis in kept_axes]
    offsets = [sum(place * x.strides[axis] for place, axis in zip(places, reduced, strict=True))
               for places in np.ndindex(*(x.shape[axis] for axis in reduced))]  # fmt: skip
    result: Chain | View = x.at(offsets[0], shape, strides)
    for offset in offsets[1:]:
        result = chain("mul", result, x.at(offset, shape, strides))
    binder.put(node.outputs[0], result)


def _log_sum_exp(binder: Binder, x: View, kept_axes: list[int], reduced: list[int], shape: list[int]) -> View:
    """log Σ eˣ, with the largest taken out of the sum; `shape` is that of x where reduced axes have one element."""
    largest = _reduced(binder, x, kept_axes, reduced, "ReduceMax").at(0, shape, dense(shape, 4))
    top = binder.emit(binder.chain("clip", [largest, -_LARGEST, _LARGEST]))  # else ∞ - ∞ is none
    terms = binder.emit(binder.chain("exp", [binder.chain("sub", [x, top])]))
    total = _reduced(binder, terms, kept_axes, reduced, "ReduceSum").at(0, shape, dense(shape, 4))
    return binder.emit(binder.chain("add", [binder.chain("log", [total]), top]))


def _reduced(binder: Binder, x: View, kept_axes: list[int], reduced: list[int], op_type: str) -> View:
    """The contiguous result: along rows where the last kept axis is not the contiguous one, else down columns."""
    count = prod(x.shape[axis] for axis in reduced)
    mode = _MODES[op_type]
    divisor = bits(float(count) if op_type == "ReduceMean" else 1.0)
    target = binder.builder.allocate([x.shape[axis] for axis in kept_axes], np.float32)
    inner = x.transposed([*reduced, *kept_axes])
    lines = inner.reshaped([count, target.size])
    if kept_axes and lines is not None and lines.strides[1] == 4 and target.size > 1:
        emit_rows(binder, "reduce_columns", x, target, 1, count, 0, 0, mode=mode, divisor=divisor, columns=target.size,
              step=lines.strides[0], cost=0.1)  # fmt: skip
        return target
    blocks = _blocks(x, kept_axes, reduced)
    if blocks is not None:
        rows, row_step, columns, step = blocks
        emit_rows(binder, "reduce_columns", x, target, rows, count, row_step, columns * 4, mode=mode, divisor=divisor,
              columns=columns, step=step, cost=0.1)  # fmt: skip
        return target
    rows_last = contiguous(binder.builder, x.transposed([*kept_axes, *reduced]))
    rows = max(1, target.size)
    emit_rows(binder, "reduce_rows", rows_last, target, rows, count, count * 4, 4, mode=mode, divisor=divisor, cost=0.1)
    return target


def _blocks(x: View, kept_axes: list[int], reduced: list[int]) -> tuple[int, int, int, int] | None:
    """(rows, bytes between them, contiguous columns, bytes between lines) of axes that are rows | reduced | columns."""
    for cut in range(1, len(kept_axes)):
        view = x.transposed([*kept_axes[:cut], *reduced, *kept_axes[cut:]])
        rows, columns = (prod(x.shape[axis] for axis in axes) for axes in (kept_axes[:cut], kept_axes[cut:]))
        grouped = view.reshaped([rows, x.size // (rows * columns), columns])
        if grouped is not None and columns >= 4 and (grouped.strides[2] == 4):
            return rows, grouped.strides[0], columns, grouped.strides[1]
    return None
