"""Products, division, minimum and maximum of dims, and what can be proved about their order.

Every function returns the canonical form of its result: expressions that are equal by the rules in this file's
comments are the same object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm
from typing import Any, cast

from onnxlab.shapes.expressions import (
    MAX_SIZE,
    Atom,
    Coefficient,
    Dim,
    Expr,
    Monomial,
    call,
    make,
    multiply,
    provides,
    serial,
    terms_of,
)

_REMEMBERED = 4096
"""Results cached for each operation: the convolutions and pools of a network divide few different sizes."""


def at_least(a: Dim, b: Dim) -> bool:
    """True where a ≥ b whatever the symbols are; False where that is not known."""
    difference = a - b
    low = difference if isinstance(difference, int) else difference.minimum
    return low is not None and low >= 0


def product(dims: Iterable[Dim]) -> Dim:
    """The number of elements of a tensor with these dims; 1 for a scalar."""
    number: Coefficient = 1
    factors: list[Atom] = []
    sums: list[Expr] = []
    for dim in dims:
        if isinstance(dim, int):
            number *= dim
        elif len(dim.terms) == 1:
            ((monomial, coefficient),) = dim.terms.items()
            number *= coefficient
            factors += monomial
        else:
            sums.append(dim)
    factors.sort(key=serial)
    total: Dim = make({tuple(factors): number})
    for factor in sums:
        total = factor if total == 1 else total * factor
    return total


@provides
def floor_div(a: Dim, b: Dim) -> Dim:
    """floor(a / b). Raises ZeroDivisionError for b == 0; a symbolic divisor is taken to be positive."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return _symbolic_floor(a, b)


@lru_cache(_REMEMBERED)
def _symbolic_floor(a: Dim, b: Dim) -> Dim:
    if isinstance(b, int) and b:
        return _floor_int(a, b) if b > 0 else _floor_int(-a, -b)
    exact = exact_div(a, b)
    if exact is not None:
        return exact
    assert isinstance(b, Expr)
    reduced = _reduced(a, b)
    if reduced != (a, b):
        return floor_div(*reduced)
    lowest = 0 if at_least(a, 0) and at_least(b, 0) else None
    return cast("Dim", make({(call("floor", (a, b), lowest),): 1}))


def _reduced(a: Dim, b: Expr) -> tuple[Dim, Dim]:
    """The same fraction without the factors that all terms of both have; b, and so each of its factors, is not 0."""
    terms = [*terms_of(a).items(), *b.terms.items()]
    common = terms[-1][0]
    for monomial, _ in terms:
        common = tuple((Counter(common) & Counter(monomial)).elements())
    scale = lcm(*(c.denominator for _, c in terms))
    number = Fraction(gcd(*(int(c * scale) for _, c in terms)), scale)
    if not common and number == 1:
        return a, b

    def divided(dim: Dim) -> Dim:
        return cast("Dim", make({_without(m, common) or (): Fraction(c) / number for m, c in terms_of(dim).items()}))

    return divided(a), divided(b)


def _floor_int(a: Any, b: int) -> Dim:
    """Pull out of floor(a / b) what b divides; then reduce the fraction and merge a floor inside a floor."""
    whole: dict[Monomial, Coefficient] = {}
    rest: dict[Monomial, int] = {}
    scale = lcm(*[c.denominator for c in a.terms.values()])
    b *= scale
    for monomial, coefficient in a.terms.items():
        c = int(coefficient * scale)
        quotient = c // b if c > 0 or not monomial else -(-c // b)  # toward zero, but down for the constant
        whole[monomial] = quotient
        if c != quotient * b:
            rest[monomial] = c - quotient * b
    constant = rest.pop((), 0)
    if not rest:
        return cast("Dim", make(whole))
    first = min(rest, key=_serials) if len(rest) > 1 else next(iter(rest))
    if rest[first] < 0:  # floor(-x / b) = -floor((x + b - 1) / b)
        inner = make({**{m: -c for m, c in rest.items()}, (): b - 1 - constant})
        return cast("Dim", make(whole) - floor_div(inner, b))
    common = gcd(b, *rest.values())
    if common > 1:
        rest, constant, b = {m: c // common for m, c in rest.items()}, constant // common, b // common
    if len(rest) == 1 and rest.get(first) == 1 and len(first) == 1 and first[0].function == "floor":
        inner, divisor = first[0].arguments
        if isinstance(divisor, int):  # floor((floor(x / d) + c) / b) = floor((x + c * d) / (b * d))
            return cast("Dim", make(whole) + floor_div(inner + constant * divisor, b * divisor))
    inner = make({**rest, (): constant})
    floor = call("floor", (inner, b), inner.minimum // b if inner.minimum is not None else None)
    whole[(floor,)] = whole.get((floor,), 0) + 1
    return cast("Dim", make(whole))


def _serials(monomial: Monomial) -> list[int]:
    return [atom.serial for atom in monomial]


def exact_div(a: Dim, b: Dim) -> Dim | None:
    """a / b where b divides a for every value of the symbols; else None. Polynomial long division."""
    if isinstance(b, int) and b == 0:
        raise ZeroDivisionError("division of a dimension by zero")
    if isinstance(a, int) and isinstance(b, int):
        return None if a % b else a // b
    remainder, divisor = dict(terms_of(a)), terms_of(b)
    if len(divisor) == 1:
        return _divided_terms(remainder, *divisor.items())
    lead = max(divisor, key=_degree_order)
    quotient: dict[Monomial, Coefficient] = {}
    for _step in range(MAX_SIZE):
        if not remainder:
            return cast("Dim", make(quotient))
        top = max(remainder, key=_degree_order)
        monomial = _without(top, lead)
        if monomial is None or Fraction(remainder[top], divisor[lead]).denominator != 1:
            return None
        c = Fraction(remainder[top], divisor[lead]).numerator
        quotient[monomial] = c
        for other, value in multiply(divisor, {monomial: -c}).items():
            remainder[other] = remainder.get(other, 0) + value
        remainder = {m: value for m, value in remainder.items() if value}
    return None


def _divided_terms(terms: dict[Monomial, Coefficient], divisor: tuple[Monomial, Coefficient]) -> Dim | None:
    """The same for a divisor of one term: it must divide each of the others."""
    factor, number = divisor
    quotient: dict[Monomial, Coefficient] = {}
    for monomial, coefficient in terms.items():
        rest = _without(monomial, factor) if factor else monomial
        share = Fraction(coefficient, number) if coefficient % number else coefficient // number
        if rest is None or share.denominator != 1:
            return None
        quotient[rest] = share.numerator
    return cast("Dim", make(quotient))


def _degree_order(monomial: Monomial) -> tuple[int, list[int]]:
    return len(monomial), [-atom.serial for atom in monomial]


def _without(monomial: Monomial, factor: Monomial) -> Monomial | None:
    rest = list(monomial)
    for atom in factor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def ceil_div(a: Dim, b: Dim) -> Dim:
    """ceil(a / b) for a positive b."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return floor_div(a + b - 1, b)


def minimum(*dims: Dim) -> Dim:
    """The least of `dims`."""
    numbers = [dim for dim in dims if isinstance(dim, int)]
    return min(numbers) if len(numbers) == len(dims) else _extreme("min", dims)


def maximum(*dims: Dim) -> Dim:
    """The greatest of `dims`."""
    numbers = [dim for dim in dims if isinstance(dim, int)]
    return max(numbers) if len(numbers) == len(dims) else _extreme("max", dims)


def broadcast(a: Dim, b: Dim) -> Dim:
    """The dim that two dims broadcast to: the one that is not 1, whatever it turns out to be.

    Raises ValueError for two ints that are different and not 1.
    """
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int) and isinstance(b, int):
        raise ValueError(f"{a} and {b} do not broadcast")
    return _symbolic_broadcast(a, b)


@lru_cache(_REMEMBERED)
def _symbolic_broadcast(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) or at_least(a, 2):  # the other dim must be 1 or equal
        return a
    if isinstance(b, int) or at_least(b, 2):
        return b
    parts: set[Dim] = set()
    for dim in (a, b):
        atom = sole_atom(dim)
        parts.update(atom.arguments if atom is not None and atom.function == "broadcast" else (dim,))
    for extreme in sorted(filter(sole_atom, parts), key=_mins_first):
        parts -= _implied(extreme, parts)
    if len(parts) == 1:
        return parts.pop()
    arguments = tuple(sorted(cast("set[Expr]", parts), key=lambda dim: dim.serial))
    lowest = max(0, min(dim.minimum or 0 for dim in arguments))
    return cast("Dim", make({(call("broadcast", arguments, lowest),): 1}))


def _mins_first(dim: Dim) -> tuple[bool, int]:
    atom = sole_atom(dim)
    return atom is not None and atom.function != "min", dim.serial if isinstance(dim, Expr) else 0


def _implied(extreme: Dim, others: set[Dim]) -> set[Dim]:
    """The dims that a broadcast with a min or max decides, or that decide it: they can be left out.

    min(n, 512) and n broadcast only where the two are equal or the min is 1: the result is n. max(n, 4) and an n of
    at least 1 broadcast only where the two are equal or n is 1: the result is the max.
    """
    atom = sole_atom(extreme)
    if atom is None or atom.function not in ("min", "max"):
        return set()
    same = {dim for dim in atom.arguments if dim in others}
    if atom.function == "max":
        return {dim for dim in same if at_least(dim, 1)}
    positive = all(dim in same or at_least(dim, 1) for dim in atom.arguments)
    return {extreme} if len(same) == 1 and positive else set()


@lru_cache(_REMEMBERED)
def _extreme(function: str, dims: tuple[Dim, ...]) -> Dim:
    """Flatten, fold the ints, drop what another argument bounds, and intern what is left in one order."""
    flat: set[Dim] = set()
    for dim in dims:
        atom = sole_atom(dim)
        flat.update(atom.arguments if atom is not None and atom.function == function else (dim,))
    remaining = list(flat)
    for dim in flat:
        others = [other for other in remaining if other is not dim]
        if any(at_least(dim, other) if function == "min" else at_least(other, dim) for other in others):
            remaining = others
    if len(remaining) == 1:
        return remaining[0]
    remaining.sort(key=lambda dim: dim.serial if isinstance(dim, Expr) else 0)
    bounds = [dim if isinstance(dim, int) else dim.minimum for dim in remaining]
    known = [bound for bound in bounds if bound is not None]
    if function == "min":
        bound = min(known) if len(known) == len(bounds) else None
    else:
        bound = max(known, default=None)
    return cast("Dim", make({(call(function, tuple(remaining), bound),): 1}))


def sole_atom(dim: Dim) -> Atom | None:
    """The atom that a dim consists of, else None."""
    if isinstance(dim, Expr) and len(dim.terms) == 1:
        ((monomial, coefficient),) = dim.terms.items()
        if coefficient == 1 and len(monomial) == 1:
            return monomial[0]
    return None
