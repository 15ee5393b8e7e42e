"""Reductions: ReduceSum and its kin, ArgMax, ArgMin, CumSum, CumProd."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.derivatives import Arrays, Rule, derivative
from onnxlab.ops.base.kernel_helpers import Array, averaging, is_small_float, normal_axes, normal_axis
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import (
    MaybeFact,
    checked_axes,
    checked_axis,
    known_integers,
    known_of,
    like,
    same_as_first,
)
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Expr, Fact, Shape, TensorFact, from_items, maximum, minimum

Axes = tuple[int, ...]
Reduction = Callable[[Array, Axes, bool], Array]


_SHORT, _MANY = range(2, 8), 1 << 9
"""Lengths of the last axis for which NumPy takes most of the time between rows, and elements from which it counts."""


def _sum(x: Array, axes: Axes, keepdims: bool) -> Array:
    if axes == (x.ndim - 1,) and x.shape[-1] in _SHORT and x.size >= _MANY and x.dtype.char in "fd":
        total = np.add(x[..., 0], x[..., 1])  # in the order in which NumPy adds
        for place in range(2, x.shape[-1]):
            np.add(total, x[..., place], out=total)
        np.add(total, 0, out=total)  # NumPy begins with 0: sums of negative zeros are positive
        return total[..., None] if keepdims else total
    return np.add.reduce(x, axis=axes, dtype=x.dtype, keepdims=keepdims)  # type: ignore[call-overload]


def _mean(x: Array, axes: Axes, keepdims: bool) -> Array:
    """The mean; of no elements, which ONNX leaves undefined, NaN as in its reference implementation, 0 of integers."""
    last = axes and axes[0] == x.ndim - len(axes) and axes == tuple(range(axes[0], x.ndim))
    if last and x.dtype.char in "fd" and x.size and x.flags.c_contiguous:
        lead = x.shape[: x.ndim - len(axes)]
        width = prod(x.shape[len(lead) :])
        return (x.reshape(-1, width) @ averaging(width, x.dtype)).reshape((*lead, *(1,) * len(axes) * keepdims))
    count = prod([x.shape[axis] for axis in axes])
    if x.dtype.char in "fd" and 0 < count < _EXACT:  # np.mean in half of its time
        return np.true_divide(_sum(x, axes, keepdims), count)
    if x.dtype.kind == "f":
        return np.mean(x, axes, keepdims=keepdims) if x.size else _sum(x, axes, keepdims) * np.nan
    return np.trunc(np.sum(x, axes, keepdims=keepdims) / max(count, 1)).astype(x.dtype)


_EXACT = 1 << 24
"""Numbers up to which float32 holds integers."""


def _l1(x: Array, axes: Axes, keepdims: bool) -> Array:
    return _sum(np.abs(x), axes, keepdims)


def _l2(x: Array, axes: Axes, keepdims: bool) -> Array:
    return np.sqrt(_sum_square(x, axes, keepdims)).astype(x.dtype, copy=False)


def _sum_square(x: Array, axes: Axes, keepdims: bool) -> Array:
    if x.dtype.char in "fd" and axes == (x.ndim - 1,):  # by BLAS, without squares in memory
        y = np.empty((*x.shape[:-1], 1) if keepdims else x.shape[:-1], x.dtype)
        np.vecdot(x, x, out=y[..., 0] if keepdims else y)
        return y
    return _sum(np.square(x), axes, keepdims)


def _log_sum(x: Array, axes: Axes, keepdims: bool) -> Array:
    return np.log(_sum(x, axes, keepdims)).astype(x.dtype, copy=False)


def _log_sum_exp(x: Array, axes: Axes, keepdims: bool) -> Array:
    wide = x if x.dtype.kind == "f" else x.astype(np.float64)
    top = np.maximum.reduce(wide, axes, keepdims=True, initial=-np.inf)
    finite = np.isfinite(top)
    if np.count_nonzero(finite) < finite.size:
        top = np.where(finite, top, 0).astype(wide.dtype)
    total = np.log(_sum(np.exp(wide - top), axes, True)) + top
    return (total if keepdims else total.reshape(_dropped(x.shape, axes))).astype(x.dtype, copy=False)


def _dropped(shape: Sequence[int], axes: Axes) -> list[int]:
    return [dim for axis, dim in enumerate(shape) if axis not in axes]


def _prod(x: Array, axes: Axes, keepdims: bool) -> Array:
    return np.multiply.reduce(x, axis=axes, dtype=x.dtype, keepdims=keepdims)  # type: ignore[call-overload]


def _extreme(ufunc: Any, sign: int) -> Reduction:
    """Max or Min; of no elements, the identity: the type's lowest or highest value."""

    def run(x: Array, axes: Axes, keepdims: bool) -> Array:
        if x.size:
            return ufunc.reduce(x, axes, keepdims=keepdims)
        if x.dtype.kind == "b":
            return ufunc.reduce(x, axes, keepdims=keepdims, initial=sign > 0)
        if x.dtype.kind in "iu":
            limits = np.iinfo(x.dtype)
            initial: float = limits.max if sign > 0 else limits.min
        else:
            initial = sign * np.inf
        return ufunc.reduce(x, axes, keepdims=keepdims, initial=initial)

    return run


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": _sum,
    "ReduceMean": _mean,
    "ReduceProd": _prod,
    "ReduceMax": _extreme(np.maximum, -1),
    "ReduceMin": _extreme(np.minimum, 1),
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": _sum_square,
}


def _reduce(function: Reduction, x: Array, axes: Axes, keepdims: int) -> Array:
    if is_small_float(x.dtype):
        return np.asarray(function(x.astype(np.float32), axes, keepdims == 1)).astype(x.dtype)
    return function(x, axes, keepdims == 1)


def _by_attribute(function: Reduction) -> Callable[..., Array]:
    """The kernel where `axes` is an attribute; absent or empty means every axis."""

    def run(x: Array, axes: Sequence[int] | None = None, keepdims: int = 1) -> Array:
        return _reduce(function, x, normal_axes(axes or None, x.ndim), keepdims)

    return run


def _by_input(function: Reduction) -> Callable[..., Array]:
    """The kernel where `axes` is an input; absent or empty means every axis, or none with noop_with_empty_axes."""

    def run(x: Array, axes: Array | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Array:
        if axes is None or not axes.size:
            # without axes nothing is summed up, but functions of single elements still apply
            chosen = () if noop_with_empty_axes else normal_axes(None, x.ndim)
        else:
            chosen = normal_axes(axes.reshape(-1).tolist(), x.ndim)
        return _reduce(function, x, chosen, keepdims)

    return run


for _name, _function in _REDUCTIONS.items():
    kernel(_name, since=1)(_by_attribute(_function))
    kernel(_name, since=13 if _name == "ReduceSum" else 18)(_by_input(_function))


def _arg(function: Callable[..., Array], x: Array, axis: int, keepdims: int, select_last_index: int) -> Array:
    axis = normal_axis(axis, x.ndim)
    if select_last_index:
        indices = x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis, keepdims=keepdims == 1)
    else:
        indices = function(x, axis, keepdims=keepdims == 1)
    return np.asarray(indices, np.int64)


@kernel("ArgMax")
def arg_max(x: Array, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """int64 index of the largest element along `axis`: of equal ones the first, or the last."""
    return _arg(np.ndarray.argmax, x, axis, keepdims, select_last_index)


@kernel("ArgMin")
def arg_min(x: Array, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """int64 index of the smallest element along `axis`: of equal ones the first, or the last."""
    return _arg(np.ndarray.argmin, x, axis, keepdims, select_last_index)


def _cumulate(ufunc: Any, x: Array, axis: Array, exclusive: int, reverse: int) -> Array:
    place = normal_axis(int(axis.reshape(-1)[0]), x.ndim)
    ordered = np.flip(x, place) if reverse else x
    wide = ordered.astype(np.float32) if is_small_float(x.dtype) else ordered
    result = ufunc.accumulate(wide, axis=place, dtype=wide.dtype).astype(x.dtype, copy=False)
    if exclusive:
        lead = (slice(None),) * place
        shifted = np.full_like(result, ufunc.identity)
        shifted[(*lead, slice(1, None))] = result[(*lead, slice(None, -1))]
        result = shifted
    return np.flip(result, place) if reverse else result


@kernel("CumSum", since=11)
def cum_sum(x: Array, axis: Array, exclusive: int = 0, reverse: int = 0) -> Array:
    """Running sums along `axis`; exclusive leaves out the element itself, reverse runs from the end."""
    return _cumulate(np.add, x, axis, exclusive, reverse)


@kernel("CumProd", since=26)
def cum_prod(x: Array, axis: Array, exclusive: int = 0, reverse: int = 0) -> Array:
    """Running products along `axis`; exclusive leaves out the element itself, reverse runs from the end."""
    return _cumulate(np.multiply, x, axis, exclusive, reverse)


# -- shape rules -------------------------------------------------------------------------------------------------------


rule("CumSum CumProd")(same_as_first)


def _product(elements: Sequence[Any]) -> Any:
    total: Any = 1
    for element in elements:
        total = total * element
    return total


def _extreme_rule(of_numbers: Callable[..., Any], of_dims: Callable[..., Any]) -> Callable[[Sequence[Any]], Any]:
    def apply(elements: Sequence[Any]) -> Any:
        symbolic = any(isinstance(element, Expr) for element in elements)
        return of_dims(*elements) if symbolic else of_numbers(elements)

    return apply


_FOLDS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "ReduceProd": _product,
    "ReduceSum": lambda elements: reduce(lambda a, b: a + b, elements, 0),
    "ReduceMax": _extreme_rule(max, maximum),
    "ReduceMin": _extreme_rule(min, minimum),
}


def _reduced(name: str, attributes: Attributes, x: Fact, axes: Sequence[int] | None, every: bool) -> Fact:
    """The fact of a reduction; `axes` is None if unknown; `every` means that none are given: all are reduced."""
    keep = attributes.get("keepdims", 1) == 1  # any other number means no
    if x.shape is None:
        return like(x, () if every and not keep else None)
    rank = len(x.shape)
    if every:
        gone = set(range(rank))
    elif axes is None:
        return like(x, None)
    else:
        gone = set(checked_axes(axes, rank))
    dims = tuple(1 if axis in gone else dim for axis, dim in enumerate(x.shape) if keep or axis not in gone)
    fact = like(x, dims)
    known = known_of(x)
    if name in _FOLDS and known is not None and len(gone) == rank and None not in known.items and known.items:
        if known.kind == "f":
            items = [math.nan if isinstance(item, Expr) else item for item in known.items]
            known = None if any(item != item for item in items) else known
        if known is not None and isinstance(fact, TensorFact):
            shape = (1,) * len(dims)
            return TensorFact(fact.elem_type, dims, from_items(shape, [_FOLDS[name](known.items)], known.kind))
    return fact


def _by_input_rule(name: str) -> Callable[..., Fact]:
    def infer(ctx: InferContext, attributes: Attributes, x: Fact, axes: MaybeFact = None) -> Fact:
        known_axes = None if axes is None else known_integers(axes)
        none_given = axes is None or (axes.shape == (0,))
        if none_given and attributes.get("noop_with_empty_axes"):
            return x
        fact = _reduced(name, attributes, x, known_axes, none_given)
        if fact.shape is None and x.shape is not None and attributes.get("keepdims", 1) == 1:
            return like(x, tuple(ctx.symbol(0, axis) for axis in range(len(x.shape))))
        return fact

    infer.__doc__ = f"Shape rule of {name}: the axes of the second input become 1, or go without keepdims."
    return infer


def by_attribute(name: str) -> Callable[..., Fact]:
    """A shape rule for versions that take the axes as an attribute."""

    def infer(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
        axes = attributes.get("axes")
        return _reduced(name, attributes, x, axes, not axes)

    infer.__doc__ = f"Shape rule of {name} with the axes in an attribute."
    return infer


for _name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"):
    rule(f"Reduce{_name}", since=13 if _name == "Sum" else 18)(_by_input_rule(f"Reduce{_name}"))
    rule(f"Reduce{_name}", since=1)(by_attribute(f"Reduce{_name}"))


@rule("ArgMax")
@rule("ArgMin")
def arg_max_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Indices along `axis`, which becomes 1 or, without keepdims, goes."""
    if x.shape is None:
        return TensorFact(dtypes.INT64, None)
    axis = checked_axis(attributes.get("axis", 0), len(x.shape))
    unit: Shape = (1,) if attributes.get("keepdims", 1) == 1 else ()
    return TensorFact(dtypes.INT64, (*x.shape[:axis], *unit, *x.shape[axis + 1 :]))


# -- gradients ---------------------------------------------------------------------------------------------------------


def _axes(attributes: Attributes, inputs: Arrays) -> Sequence[int] | None:
    """Axes as the second input, or as the attribute of older versions."""
    return inputs[1].tolist() if len(inputs) > 1 and inputs[1] is not None else attributes.get("axes")


def _reduction(function: Callable[..., Array]) -> Rule:
    """A rule from a function of (x, y, gradient, number of elements), all with the reduced axes kept."""

    def rule(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
        x, listed = inputs[0], _axes(attributes, inputs)
        if not listed and attributes.get("noop_with_empty_axes"):
            return [gradients[0], *[None] * (len(inputs) - 1)]
        axes = normal_axes(listed or None, x.ndim)
        shape = tuple(1 if axis in axes else dim for axis, dim in enumerate(x.shape))
        gradient = function(
            x, outputs[0].reshape(shape), gradients[0].reshape(shape), prod(x.shape[axis] for axis in axes)
        )
        return [np.array(np.broadcast_to(gradient, x.shape)), *[None] * (len(inputs) - 1)]

    return rule


def _of_extreme(x: Array, y: Array, g: Array, count: int) -> Array:
    axes = tuple(axis for axis in range(x.ndim) if y.shape[axis] != x.shape[axis])
    hit = x == y
    return np.where(hit, g / hit.sum(axis=axes, keepdims=True), 0)


derivative("ReduceSum")(_reduction(lambda x, y, g, count: g))
derivative("ReduceMean")(_reduction(lambda x, y, g, count: g / count))
derivative("ReduceMax")(_reduction(_of_extreme))
derivative("ReduceMin")(_reduction(_of_extreme))
derivative("ReduceSumSquare")(_reduction(lambda x, y, g, count: 2 * x * g))
derivative("ReduceL2")(_reduction(lambda x, y, g, count: g * x / np.where(y == 0, 1, y)))
derivative("ReduceLogSumExp")(_reduction(lambda x, y, g, count: g * np.exp(x - y)))


# -- traits ------------------------------------------------------------------------------------------------------------


traits(
    "ArgMax ArgMin",
    OpTraits(category="reduction", shape="shapes", flops=1, elements="none", half="exact", zero_gradient=True),
)
traits("CumProd", OpTraits(category="reduction", shape="shapes", flops=1, signature="...|/1"))
traits("CumSum", OpTraits(category="reduction", shape="shapes", flops=1))
traits("ReduceL1 ReduceLogSum ReduceLogSumExp", OpTraits(category="reduction", shape="sizes", flops=1))
traits("ReduceL2 ReduceMean ReduceSumSquare", OpTraits(category="reduction", shape="sizes", flops=1, half="rounded"))
traits(
    "ReduceMax ReduceMin",
    OpTraits(category="reduction", shape="sizes", flops=1, half="exact", size_arithmetic=True, masks="passed"),
)
traits("ReduceProd", OpTraits(category="reduction", shape="sizes", flops=1, size_arithmetic=True))
traits("ReduceSum", OpTraits(category="reduction", shape="sizes", flops=1, half="rounded", size_arithmetic=True))
