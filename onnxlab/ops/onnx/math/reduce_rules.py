"""Shape rules of reductions: Reduce*, CumSum has the rule of elementwise operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from onnxlab.limits import InferContext
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, integers, known_of, like, normal_axes
from onnxlab.shapes import Expr, Fact, TensorFact, from_items, maximum, minimum

Attributes = Mapping[str, Any]


def _product(elements: Sequence[Any]) -> Any:
    total: Any = 1
    for element in elements:
        total = total * element
    return total


def _extreme(of_numbers: Callable[..., Any], of_dims: Callable[..., Any]) -> Callable[[Sequence[Any]], Any]:
    def apply(elements: Sequence[Any]) -> Any:
        symbolic = any(isinstance(element, Expr) for element in elements)
        return of_dims(*elements) if symbolic else of_numbers(elements)

    return apply


_FOLDS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "ReduceProd": _product,
    "ReduceSum": lambda elements: reduce(lambda a, b: a + b, elements, 0),
    "ReduceMax": _extreme(max, maximum),
    "ReduceMin": _extreme(min, minimum),
}


def _reduced(name: str, attributes: Attributes, x: Fact, axes: Sequence[int] | None, every: bool) -> Fact:
    """`axes` None: not known; `every`: no axes were given, which means all of them."""
    keep = attributes.get("keepdims", 1) == 1  # any other number means no
    if x.shape is None:
        return like(x, () if every and not keep else None)
    rank = len(x.shape)
    if every:
        gone = set(range(rank))
    elif axes is None:
        return like(x, None)
    else:
        gone = set(normal_axes(axes, rank))
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


def _by_input(name: str) -> Callable[..., Fact]:
    def infer(ctx: InferContext, attributes: Attributes, x: Fact, axes: MaybeFact = None) -> Fact:
        given = None if axes is None else integers(axes)
        none_given = axes is None or (axes.shape == (0,))
        if none_given and attributes.get("noop_with_empty_axes"):
            return x
        fact = _reduced(name, attributes, x, given, none_given)
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
    rule(f"Reduce{_name}", since=13 if _name == "Sum" else 18)(_by_input(f"Reduce{_name}"))
    rule(f"Reduce{_name}", since=1)(by_attribute(f"Reduce{_name}"))
