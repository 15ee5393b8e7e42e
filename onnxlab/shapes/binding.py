"""Dims with their symbols replaced: by numbers (`evaluate`), by dims (`substitute`), or atom by atom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from operator import attrgetter
from typing import Any, cast

from onnxlab.shapes.arithmetic import broadcast, floor_div, maximum, minimum, product
from onnxlab.shapes.expressions import MAX_COEFFICIENT, Atom, Dim, Expr, all_atoms, make

Replacement = Callable[[Atom], "Dim | None"]

_FUNCTIONS: dict[str, Callable[..., Dim]] = {
    "floor": floor_div,
    "min": minimum,
    "max": maximum,
    "broadcast": lambda *dims: reduce(broadcast, dims),
}


def evaluate(dim: Dim, bindings: Mapping[str, int]) -> int | None:
    """The number that `dim` is with each symbol replaced by the value of its name.

    None where a symbol has no binding, the expression has no value (a divisor is 0), or the number is no int64.
    """
    value = substitute(dim, bindings)
    return value if isinstance(value, int) and -MAX_COEFFICIENT <= value < MAX_COEFFICIENT else None


def substitute(dim: Dim, bindings: Mapping[str, Dim]) -> Dim:
    """`dim` with each symbol that `bindings` names replaced."""
    return replace_symbols(dim, lambda atom: bindings.get(atom.name))


def replace_symbols(dim: Dim, replacement: Replacement, done: dict[Atom, Dim] | None = None) -> Dim:
    """`dim` with each symbol replaced by what `replacement` returns for it; None keeps it.

    A call that the replacement leaves without a value (a divisor is 0, or dims do not broadcast) is kept unchanged.

    Args:
        done: replaced atoms, to be passed to further calls with the same replacement.
    """
    if not isinstance(dim, Expr):
        return dim
    if done is None:
        if (atom := _symbol_of(dim)) is not None:  # as most dims with a symbol
            value = replacement(atom)
            return dim if value is None else value
        done = {}
    for atom in sorted(all_atoms(dim, without=done), key=attrgetter("serial")):  # inner atoms first
        done[atom] = _replaced(atom, replacement, done)
    return _replace(dim, done)


def _symbol_of(expr: Expr) -> Atom | None:
    """The symbol that an expression is; None where it is more than a symbol."""
    if len(expr.terms) == 1:
        [(monomial, coefficient)] = expr.terms.items()
        if len(monomial) == 1 and coefficient == 1:
            atom = monomial[0]
            return atom if not atom.function and atom.definition is None else None
    return None


def _replace(dim: Dim, done: Mapping[Atom, Dim]) -> Dim:
    if not isinstance(dim, Expr):
        return dim
    total: Any = 0
    for monomial, coefficient in dim.terms.items():
        total = total + product([done[atom] for atom in monomial]) * coefficient
    return cast("Dim", int(total) if isinstance(total, Fraction) and total.denominator == 1 else total)


def _replaced(atom: Atom, replacement: Replacement, done: Mapping[Atom, Dim]) -> Dim:
    if atom.function:
        try:
            return _FUNCTIONS[atom.function](*[_replace(argument, done) for argument in atom.arguments])
        except (ZeroDivisionError, ValueError):
            return cast("Dim", make({(atom,): 1}))
    if atom.definition is not None:
        return _replace(atom.definition, done)
    value = replacement(atom)
    return cast("Dim", make({(atom,): 1})) if value is None else value
