"""Reductions: ReduceSum and its kin, ArgMax, ArgMin, CumSum, CumProd."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from onnxlab.ops.base.kernel_helpers import Array, averaging, is_small_float, normal_axes, normal_axis
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits

Axes = tuple[int, ...]
Reduction = Callable[[Array, Axes, bool], Array]


def _sum(x: Array, axes: Axes, keepdims: bool) -> Array:
    return np.add.reduce(x, axis=axes, dtype=x.dtype, keepdims=keepdims)  # type: ignore[call-overload]


def _mean(x: Array, axes: Axes, keepdims: bool) -> Array:
    last = axes and axes == tuple(range(x.ndim - len(axes), x.ndim))
    if last and x.dtype.char in "fd" and x.size and x.flags.c_contiguous:
        lead = x.shape[: x.ndim - len(axes)]
        width = prod(x.shape[len(lead) :])
        return (x.reshape(-1, width) @ averaging(width, x.dtype)).reshape((*lead, *(1,) * len(axes) * keepdims))
    if x.dtype.kind == "f":
        return np.mean(x, axes, keepdims=keepdims)
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    return np.trunc(np.sum(x, axes, keepdims=keepdims) / count).astype(x.dtype)


def _l1(x: Array, axes: Axes, keepdims: bool) -> Array:
    return _sum(np.abs(x), axes, keepdims)


def _l2(x: Array, axes: Axes, keepdims: bool) -> Array:
    return np.sqrt(_sum_square(x, axes, keepdims)).astype(x.dtype, copy=False)


def _sum_square(x: Array, axes: Axes, keepdims: bool) -> Array:
    return _sum(np.square(x), axes, keepdims)


def _log_sum(x: Array, axes: Axes, keepdims: bool) -> Array:
    return np.log(_sum(x, axes, keepdims)).astype(x.dtype, copy=False)


def _log_sum_exp(x: Array, axes: Axes, keepdims: bool) -> Array:
    wide = x if x.dtype.kind == "f" else x.astype(np.float64)
    top = np.max(wide, axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(wide.dtype)
    total = np.log(_sum(np.exp(wide - top), axes, True)) + top
    return (total if keepdims else total.reshape(_dropped(x.shape, axes))).astype(x.dtype, copy=False)


def _dropped(shape: Sequence[int], axes: Axes) -> list[int]:
    return [dim for axis, dim in enumerate(shape) if axis not in axes]


def _prod(x: Array, axes: Axes, keepdims: bool) -> Array:
    return np.multiply.reduce(x, axis=axes, dtype=x.dtype, keepdims=keepdims)  # type: ignore[call-overload]


def _extreme(ufunc: Any, sign: int) -> Reduction:
    """Max or Min; of nothing, the identity: the type's lowest or highest value."""

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
    """The kernel where `axes` is an input; absent or empty means every axis, or none if so asked."""

    def run(x: Array, axes: Array | None = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Array:
        if axes is None or not axes.size:
            # without axes there is nothing to sum up, but what is done to single elements is still done
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
        found = x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis, keepdims=keepdims == 1)
    else:
        found = function(x, axis=axis, keepdims=keepdims == 1)
    return np.asarray(found, np.int64)


@kernel("ArgMax")
def arg_max(x: Array, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """int64 index of the largest element along `axis`: of equal ones the first, or the last."""
    return _arg(np.argmax, x, axis, keepdims, select_last_index)


@kernel("ArgMin")
def arg_min(x: Array, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """int64 index of the smallest element along `axis`: of equal ones the first, or the last."""
    return _arg(np.argmin, x, axis, keepdims, select_last_index)


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


traits(
    "ArgMax ArgMin",
    OpTraits(category="reduction", shape="shapes", flops=1, elements="none", half="exact", zero_gradient=True),
)
traits("CumProd", OpTraits(category="reduction", shape="shapes", flops=1, signature="...|/1"))
traits("CumSum", OpTraits(category="reduction", shape="shapes", flops=1))
traits("ReduceL1 ReduceLogSum ReduceLogSumExp", OpTraits(category="reduction", shape="sizes", flops=1))
traits("ReduceL2 ReduceMean ReduceSumSquare", OpTraits(category="reduction", shape="sizes", flops=1, half="rounded"))
traits(
    "ReduceMax ReduceMin", OpTraits(category="reduction", shape="sizes", flops=1, half="exact", size_arithmetic=True)
)
traits("ReduceProd", OpTraits(category="reduction", shape="sizes", flops=1, size_arithmetic=True))
traits("ReduceSum", OpTraits(category="reduction", shape="sizes", flops=1, half="rounded", size_arithmetic=True))
