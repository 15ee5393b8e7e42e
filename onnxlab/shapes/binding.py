"""Dims with their symbols replaced: by numbers (`evaluate`), by dims (`substitute`), or atom by atom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any, cast

from onnxlab.shapes.arithmetic import broadcast, floor_div, maximum, minimum, product
from onnxlab.shapes.expressions import Atom, Dim, Expr, make

Replacement = Callable[[Atom], "Dim | None"]

_FUNCTIONS: dict[str, Callable[..., Dim]] = {
    "floor": floor_div,
    "min": minimum,
    "max": maximum,
    "broadcast": lambda *dims: reduce(broadcast, dims),
}


def evaluate(dim: Dim, bindings: Mapping[str, int]) -> int | None:
    """The number that `dim` is with each symbol replaced by the value of its name; None if one is missing."""
    value = substitute(dim, bindings)
    return value if isinstance(value, int) else None


def substitute(dim: Dim, bindings: Mapping[str, Dim]) -> Dim:
    """`dim` with each symbol that `bindings` names replaced.

    Raises ZeroDivisionError where a divisor becomes 0.
    """
    return replace_symbols(dim, lambda atom: bindings.get(atom.name))


def replace_symbols(dim: Dim, replacement: Replacement) -> Dim:
    """`dim` with each symbol replaced by what `replacement` returns for it; None keeps it.

    Raises ZeroDivisionError where a divisor becomes 0.
    """
    return _replace(dim, replacement, {}) if isinstance(dim, Expr) else dim


def _replace(dim: Dim, replacement: Replacement, done: dict[Atom, Dim]) -> Dim:
    if not isinstance(dim, Expr):
        return dim
    total: Any = 0
    for monomial, coefficient in dim.terms.items():
        total = total + product([_replaced(atom, replacement, done) for atom in monomial]) * coefficient
    return cast("Dim", int(total) if isinstance(total, Fraction) and total.denominator == 1 else total)


def _replaced(atom: Atom, replacement: Replacement, done: dict[Atom, Dim]) -> Dim:
    if atom in done:
        return done[atom]
    value: Dim | None
    if atom.function:
        arguments = [_replace(argument, replacement, done) for argument in atom.arguments]
        value = _FUNCTIONS[atom.function](*arguments)
    elif atom.definition is not None:
        value = _replace(atom.definition, replacement, done)
    else:
        value = replacement(atom)
        if value is None:
            value = cast("Dim", make({(atom,): 1}))
    done[atom] = value
    return value
