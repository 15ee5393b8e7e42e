"""Arithmetic of known elements: numbers as ONNX computes them, `Expr`s where the result is exact for every size.

A function raises ArithmeticError, or returns None, where it cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from onnxlab.shapes import Expr, at_least, floor_div, maximum, minimum

_MOST_BITS = 64


def exact(value: Any) -> Any:
    """A float that meets an Expr as a fraction: only dyadic ones with small terms, which floats hold exactly."""
    if isinstance(value, float):
        fraction = Fraction(value)
        if fraction.denominator > 1024 or abs(fraction.numerator) > 2**24:
            raise ArithmeticError("not exact in every float type")
        return fraction
    return value


def mixed(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`function` on numbers as it is; on an Expr and a float with the float made exact."""

    def apply(a: Any, b: Any) -> Any:
        if isinstance(a, Expr) or isinstance(b, Expr):
            return function(exact(a), exact(b))
        return function(a, b)

    apply.on_numbers = function  # type: ignore[attr-defined]
    return apply


def divide_elements(a: Any, b: Any) -> Any:
    """ONNX Div: integers truncate towards zero, which is floor where both are known not to be negative."""
    if isinstance(a, float) or isinstance(b, float):
        return a / b if isinstance(a, float) and isinstance(b, float) else _divide_floats(a, b)
    if isinstance(a, Expr) or isinstance(b, Expr):
        if not (at_least(a, 0) and at_least(b, 0)):
            raise ArithmeticError("the signs are not known")
        return floor_div(a, b)
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _divide_floats(a: Any, b: Any) -> Any:
    if isinstance(b, Expr):
        raise ArithmeticError("division by a symbol is not exact")
    if isinstance(a, Expr):
        divisor = exact(b)
        if divisor == 0 or (abs(divisor.numerator) & (abs(divisor.numerator) - 1)):
            raise ArithmeticError("only division by a power of two is exact")
        return a * (1 / divisor)
    return a / b


def modulo(a: Any, b: Any) -> Any:
    """Remainder with the sign of the divisor (ONNX Mod without fmod); symbolic for non-negative operands."""
    if isinstance(a, Expr) or isinstance(b, Expr):
        if not (at_least(a, 0) and at_least(b, 0)):
            raise ArithmeticError("the signs are not known")
        return a - b * floor_div(a, b)
    return a % b


def power_of_elements(a: Any, b: Any) -> Any:
    """A ** b; of a symbol, small whole powers only."""
    if isinstance(a, Expr):
        if not isinstance(b, (int, float)) or b != int(b) or not 0 <= b <= 4:
            raise ArithmeticError("only small integer powers of a symbol")
        result: Any = 1
        for _ in range(int(b)):
            result = result * a
        return result
    if isinstance(a, int) and isinstance(b, int) and b > _MOST_BITS and not -1 <= a <= 1:
        raise ArithmeticError("no integer type holds it, and memory may not either")
    return a**b


def compare(function: Callable[[Any, Any], bool], strict: bool, swap: bool) -> Callable[[Any, Any], Any]:
    """Less, Greater and the like on symbols: known only where the symbols cannot matter."""

    def apply(a: Any, b: Any) -> Any:
        if not (isinstance(a, Expr) or isinstance(b, Expr)):
            return function(a, b)
        low, high = (b, a) if swap else (a, b)  # low < high, or low <= high
        low, high = exact(low), exact(high)
        if at_least(high, low + 1 if strict else low):
            return True
        return False if at_least(low, high if strict else high + 1) else None

    return apply


def equal(a: Any, b: Any) -> Any:
    """A == b, where that can be decided for symbols."""
    if isinstance(a, Expr) or isinstance(b, Expr):
        if a is b:
            return True
        a, b = exact(a), exact(b)
        return False if at_least(a, b + 1) or at_least(b, a + 1) else None
    return a == b


def rounding(function: Callable[[float], int], symbolic: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A rounding function of numbers and of symbols."""

    def apply(a: Any) -> Any:
        if isinstance(a, Expr):
            return symbolic(a)
        return float(function(a)) if math.isfinite(a) else a

    return apply


def of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` where no operand is symbolic; unknown where one is."""

    def apply(*operands: Any) -> Any:
        return None if any(isinstance(operand, Expr) for operand in operands) else function(*operands)

    return apply


def whole(a: Expr) -> bool:
    """Whether all coefficients are integers."""
    return all(isinstance(coefficient, int) for coefficient in a.terms.values())


def absolute(a: Any) -> Any:
    """|a|; of an Expr only where it is known not to be negative."""
    if isinstance(a, Expr):
        return a if at_least(a, 0) else None
    return abs(a)


def least(*operands: Any) -> Any:
    """The smallest operand; an Expr where the result depends on symbols."""
    return minimum(*map(_only_whole, operands)) if any(isinstance(o, Expr) for o in operands) else min(operands)


def greatest(*operands: Any) -> Any:
    """The largest operand; an Expr where the result depends on symbols."""
    return maximum(*map(_only_whole, operands)) if any(isinstance(o, Expr) for o in operands) else max(operands)


def _only_whole(operand: Any) -> Any:
    number = exact(operand)
    if isinstance(number, Fraction):
        if number.denominator != 1:
            raise ArithmeticError("not a whole number")
        return number.numerator
    return number
