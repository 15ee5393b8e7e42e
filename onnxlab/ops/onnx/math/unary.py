"""Elementwise mathematical functions of one input: roots, exponentials, trigonometry, Erf; and Det."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.derivatives import derivative, unary
from onnxlab.ops.base.kernel_helpers import Array, blocked, is_small_float, narrow, widen, widened
from onnxlab.ops.base.known_elements import absolute, of_numbers, rounding, whole
from onnxlab.ops.base.registry import Attributes, in_place, kernel, rule
from onnxlab.ops.base.rule_helpers import computed, same_as_first
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Fact, TensorFact, floor_div

Unary = Callable[[Array], Array]

_SINGLE = np.dtype(np.float32)


def floating(function: Callable[..., Any]) -> Unary:
    """A kernel from a ufunc: small floats are computed in float32."""

    def run(x: Array) -> Array:
        if x.dtype == _SINGLE or not is_small_float(x.dtype):
            return function(x)
        return narrow(function(widen(x)), x.dtype)

    return run


def consuming(function: Unary) -> Callable[..., Array]:
    """The kernel of opset 1, whose attribute `consumed_inputs` was a hint for in-place execution."""

    def run(x: Array, consumed_inputs: Sequence[int] | None = None) -> Array:
        return function(x)

    return run


_SINCE_1: dict[str, Unary] = {
    "Abs": np.absolute,
    "Neg": np.negative,
    "Ceil": floating(np.ceil),
    "Floor": floating(np.floor),
    "Reciprocal": floating(np.reciprocal),
    "Sqrt": floating(np.sqrt),
    "Exp": floating(np.exp),
    "Log": floating(np.log),
    "Tanh": floating(np.tanh),
}
for _name, _function in _SINCE_1.items():
    kernel(_name, since=1)(consuming(_function))
    kernel(_name, since=6)(_function)

_SINCE_7: dict[str, Unary] = {
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Round": np.rint,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Tan": np.tan,
    "Sign": np.sign,
}
for _name, _function in _SINCE_7.items():
    kernel(_name, since=7)(floating(_function))


def _into_dead(ufunc: Any) -> Callable[[Array, Array], Array]:
    """A ufunc of float32 written into its input; other types go to the kernel."""

    def run(out: Array, x: Array) -> Array:
        return ufunc(x, out) if x.dtype == _SINGLE else floating(ufunc)(x)

    return run


for _name, _ufunc in {"Abs": np.absolute, "Neg": np.negative, "Ceil": np.ceil, "Floor": np.floor, "Sqrt": np.sqrt,
                      "Reciprocal": np.reciprocal, "Exp": np.exp, "Log": np.log, "Tanh": np.tanh}.items():  # fmt: skip
    in_place(_name, 6)(_into_dead(_ufunc))

kernel("IsNaN", since=9)(np.isnan)
kernel("Not")(np.logical_not)


@kernel("IsInf", since=10)
def is_inf(x: Array, detect_negative: int = 1, detect_positive: int = 1) -> Array:
    """True where X is +inf or −inf, whichever of the two is asked for."""
    infinite = np.isinf(x)
    if detect_negative and detect_positive:
        return infinite
    if not (detect_negative or detect_positive):
        return np.zeros_like(infinite)
    return infinite & ((x > 0) if detect_positive else (x < 0))


def _singles(*numbers: float) -> tuple[Array, ...]:
    """float32 of rank 0, which ufuncs take faster than numbers."""
    return tuple(np.asarray(number, np.float32) for number in numbers)


class OddQuotient:
    """x·P(x²)/Q(x²) of float32, for odd functions that level out; Q's highest coefficient is 1.

    Args:
        p: coefficients of P, the highest power first.
        q: coefficients of Q, the highest power first, without its 1.
        end: |x| from which on the function keeps the quotient's value to the last bit.
    """

    def __init__(self, p: Sequence[float], q: Sequence[float], end: float) -> None:
        self._p, self._q = _singles(*p), _singles(*q)
        self._ends = _singles(-end, end)

    def __call__(self, x: Array, temporaries: Array) -> Array:
        """The values at a vector x, in one of three rows of its length."""
        near, square, y = temporaries
        low, high = self._ends
        x.clip(low, high, near)  # np.clip takes a microsecond more
        np.multiply(near, near, square)
        first, *between, last = self._p
        np.multiply(square, first, y)
        for coefficient in between:
            np.add(y, coefficient, y)
            np.multiply(y, square, y)
        np.add(y, last, y)
        np.multiply(y, near, y)
        first, *rest = self._q
        divisor = np.add(square, first, near)
        for coefficient in rest:
            np.multiply(divisor, square, divisor)
            np.add(divisor, coefficient, divisor)
        return np.divide(y, divisor, y)


# erf on [−4, 4], fitted by iterated weighted least squares; within 7e-7 in float32
_single_erf = OddQuotient(
    (17.57376461, 496.1844982, 3411.035092, 16637.27579, 51482.46002),
    (126.3142429, 1339.209923, 8449.246222, 29951.41576, 45625.25557),
    3.9600002765655518,
)

half_erf = OddQuotient(
    (12.42652813, 701.7108468, 9647.864177, 94114.64422, 582457.5455),
    (252.6284857, 5356.83969, 67593.96977, 479222.6521, 1460008.178),
    5.600286483764648,
)
"""erf(x/√2)/2 by the same fit: the distribution function of the normal distribution minus a half."""


def _erf_block(x: Array, out: Array, temporaries: Array) -> None:
    np.copyto(out, _single_erf(x, temporaries))


_exact_erf = np.frompyfunc(math.erf, 1, 1)


@kernel("Erf", since=9)
@widened
def erf(x: Array) -> Array:
    """The error function, elementwise; float64 to full precision, integers rounded towards zero."""
    if x.dtype == np.float32:
        return blocked(x, _erf_block, rows=3)
    return np.asarray(_exact_erf(x)).astype(x.dtype)


@in_place("Erf", 9)
def _erf_into(out: Array, x: Array) -> Array:
    return blocked(x, _erf_block, 3, out) if x.dtype == _SINGLE else erf(x)


@kernel("Det", since=11)
@widened
def det(x: Array) -> Array:
    """Determinants of the matrices in the last two axes."""
    return np.asarray(np.linalg.det(x)).astype(x.dtype, copy=False)


# -- shape rules -------------------------------------------------------------------------------------------------------


rule("Tanh Erf Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Reciprocal")(same_as_first)


def unary_rule(name: str, function: Callable[[Any], Any]) -> None:
    """Register an operator that computes each element by itself."""

    def infer(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
        return computed(x.bare, (x,), function, ctx)

    infer.__doc__ = f"Shape rule of {name}, with known elements."
    rule(name)(infer)


unary_rule("Neg", operator.neg)
unary_rule("Abs", absolute)
unary_rule("Sign", of_numbers(lambda a: (a > 0) - (a < 0)))
unary_rule("Floor", rounding(math.floor, lambda a: floor_div(a, 1)))
unary_rule("Ceil", rounding(math.ceil, lambda a: -floor_div(-a, 1)))
unary_rule("Round", rounding(round, lambda a: a if whole(a) else None))
unary_rule("Sqrt", of_numbers(math.sqrt))
unary_rule("Not", of_numbers(operator.not_))


@rule("IsNaN", since=9)
@rule("IsInf", since=10)
def is_nan(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Booleans of the input's shape."""
    return TensorFact(dtypes.BOOL, x.shape)


# -- gradients ---------------------------------------------------------------------------------------------------------


derivative("Neg")(unary(lambda x, y, g, a: -g))
derivative("Abs")(unary(lambda x, y, g, a: g * np.sign(x)))
derivative("Sqrt")(unary(lambda x, y, g, a: g / (2 * y)))
derivative("Exp")(unary(lambda x, y, g, a: g * y))
derivative("Log")(unary(lambda x, y, g, a: g / x))
derivative("Reciprocal")(unary(lambda x, y, g, a: -g * y * y))
derivative("Sin")(unary(lambda x, y, g, a: g * np.cos(x)))
derivative("Cos")(unary(lambda x, y, g, a: -g * np.sin(x)))
derivative("Tan")(unary(lambda x, y, g, a: g * (1 + y * y)))
derivative("Asin")(unary(lambda x, y, g, a: g / np.sqrt(1 - x * x)))
derivative("Acos")(unary(lambda x, y, g, a: -g / np.sqrt(1 - x * x)))
derivative("Atan")(unary(lambda x, y, g, a: g / (1 + x * x)))
derivative("Sinh")(unary(lambda x, y, g, a: g * np.cosh(x)))
derivative("Cosh")(unary(lambda x, y, g, a: g * np.sinh(x)))
derivative("Tanh")(unary(lambda x, y, g, a: g * (1 - y * y)))
derivative("Erf")(unary(lambda x, y, g, a: g * (2 / np.sqrt(np.pi)) * np.exp(-x * x)))
derivative("Floor")(unary(lambda x, y, g, a: np.zeros_like(x)))
derivative("Ceil")(unary(lambda x, y, g, a: np.zeros_like(x)))
derivative("Round")(unary(lambda x, y, g, a: np.zeros_like(x)))
derivative("Sign")(unary(lambda x, y, g, a: np.zeros_like(x)))


# -- traits ------------------------------------------------------------------------------------------------------------


traits(
    "Abs Neg",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        elements="all",
        half="exact",
        size_arithmetic=True,
        blockwise=True,
        masks="passed",
    ),
)
traits(
    "Acos Acosh Asin Asinh Atan Atanh Cosh Sinh Tan",
    OpTraits(category="elementwise", shape="shapes", flops=1, elements="none"),
)
traits(
    "Ceil Floor",
    OpTraits(category="elementwise", shape="shapes", flops=1, elements="all", half="rounded", size_arithmetic=True),
)
traits(
    "Cos Exp Log Sin",
    OpTraits(category="elementwise", shape="shapes", flops=1, elements="none", half="rounded"),
)
traits(
    "Reciprocal",
    OpTraits(category="elementwise", shape="shapes", flops=1, elements="none", half="rounded", zero_signs=(0,)),
)
traits("Det", OpTraits(category="matrix", shape="shapes", flops=1, elements="none"))
traits(
    "Erf", OpTraits(category="activation", shape="shapes", flops=12, elements="none", half="rounded", blockwise=True)
)
traits(
    "IsInf",
    OpTraits(category="elementwise", shape="shapes", flops=1, elements="none", half="exact", zero_gradient=True),
)
traits("Round Sign", OpTraits(category="elementwise", shape="shapes", flops=1, elements="all"))
traits(
    "Sqrt",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        elements="all",
        half="rounded",
        size_arithmetic=True,
        blockwise=True,
    ),
)
traits(
    "Tanh",
    OpTraits(
        category="activation",
        shape="shapes",
        flops=1,
        elements="none",
        half="rounded",
        blockwise=True,
        saturates=(-1.0, 1.0),
    ),
)
traits(
    "IsNaN",
    OpTraits(category="elementwise", shape="shapes", flops=1, elements="none", half="exact", zero_gradient=True),
)
traits(
    "Not",
    OpTraits(category="elementwise", shape="shapes", flops=1, elements="all", size_arithmetic=True, zero_gradient=True),
)
