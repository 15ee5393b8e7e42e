"""Reverse-mode rules: from the gradients of an operator's outputs to those of its inputs.

    rule(attributes, inputs, outputs, gradients) -> gradients of the inputs, None where there is none

Arrays are as in kernels, None for absent inputs; `gradients` are arrays, of zeros for outputs that nothing depends on.
Rules are for floats, and for the operator versions in use: a rule reads what became an input from either place.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.registry import Attributes, load

Arrays = Sequence[Any]
Rule = Callable[[Attributes, Arrays, Arrays, Arrays], Arrays]

_RULES: dict[str, Rule] = {}


def derivative(op_types: str) -> Callable[[Rule], Rule]:
    """Register the decorated rule for operators of ai.onnx, named with spaces between."""

    def add(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(op_types.split(), rule))
        return rule

    return add


def find_derivative(domain: str, op_type: str) -> Rule | None:
    """The rule of an operator, None where there is none."""
    load()
    return None if domain else _RULES.get(op_type)


def operators() -> list[str]:
    """Names of the operators that have a rule."""
    load()
    return sorted(_RULES)


def unbroadcast(gradient: Array, shape: Sequence[int]) -> Array:
    """Sum a gradient over the axes along which an input of `shape` was stretched."""
    lead = gradient.ndim - len(shape)
    axes = [*range(lead), *(lead + axis for axis, dim in enumerate(shape) if dim == 1 != gradient.shape[lead + axis])]
    return gradient.sum(axis=tuple(axes)).reshape(shape) if axes or lead else gradient


def binary(left: Callable[..., Array], right: Callable[..., Array]) -> Rule:
    """A rule from both partial derivatives: each takes (a, b, y, gradient of y)."""

    def rule(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
        (a, b), (y, *_), (g, *_) = inputs[:2], outputs, gradients
        return [unbroadcast(left(a, b, y, g), a.shape), unbroadcast(right(a, b, y, g), b.shape)]

    return rule


def unary(function: Callable[..., Array]) -> Rule:
    """A rule from the derivative: it takes (x, y, gradient of y, attributes)."""

    def rule(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
        return [function(inputs[0], outputs[0], gradients[0], attributes), *[None] * (len(inputs) - 1)]

    return rule
