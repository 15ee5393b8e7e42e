"""Elementwise mathematical functions of one input: roots, exponentials, trigonometry, Erf; and Det."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onnxlab.ops.numeric import Array, blocked, is_small_float, narrow, widen, widened
from onnxlab.ops.registry import in_place, kernel

Unary = Callable[[Array], Array]

_SINGLE = np.dtype(np.float32)


def floating(function: Callable[..., Any]) -> Unary:
    """A kernel from a ufunc: small floats are computed in float32."""

    def run(x: Array) -> Array:
        if x.dtype is _SINGLE or not is_small_float(x.dtype):
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
        return ufunc(x, out) if x.dtype is _SINGLE else floating(ufunc)(x)

    return run


for _name, _ufunc in {"Abs": np.absolute, "Neg": np.negative, "Ceil": np.ceil, "Floor": np.floor, "Sqrt": np.sqrt,
                      "Reciprocal": np.reciprocal, "Exp": np.exp, "Log": np.log, "Tanh": np.tanh}.items():  # fmt: skip
    in_place(_name, 6)(_into_dead(_ufunc))

kernel("IsNaN", since=9)(np.isnan)


@kernel("IsInf", since=10)
def is_inf(x: Array, detect_negative: int = 1, detect_positive: int = 1) -> Array:
    """True where X is +inf or −inf, whichever of the two is asked for."""
    found = np.isinf(x)
    if detect_negative and detect_positive:
        return found
    if not (detect_negative or detect_positive):
        return np.zeros_like(found)
    return found & ((x > 0) if detect_positive else (x < 0))


def _singles(*numbers: float) -> tuple[Array, ...]:
    """float32 of rank 0, which ufuncs take faster than numbers."""
    return tuple(np.asarray(number, np.float32) for number in numbers)


# erf(x) ≈ x·P(x²)/Q(x²) on [−4, 4], fitted by iterated weighted least squares; within 7e-7 in float32
_ERF_P = _singles(
    3.851762455345871e-4,
    1.0875215776473495e-2,
    7.476199637310786e-2,
    0.3646505713171544,
    1.1283764164960757,
)
_ERF_Q = _singles(2.191768560240529e-5, 2.7685158560151945e-3, 2.9352381676802496e-2, 0.18518791767654277,
                  0.6564657038361218, 1.0)  # fmt: skip
_ERF_ENDS = _singles(-3.95, 3.95)


def erf_in_place(x: Array, temporaries: Array) -> None:
    """Replace float32 values by their erf; `temporaries` has three rows of the same length."""
    square, p, q = temporaries
    np.clip(x, *_ERF_ENDS, out=x)  # where the quotient is 1: beyond, Gelu of minus infinity is NaN, as it is elsewhere
    np.multiply(x, x, out=square)
    polynomial(square, _ERF_P, p)
    polynomial(square, _ERF_Q, q)
    np.multiply(x, p, out=x)
    np.divide(x, q, out=x)


def polynomial(x: Array, coefficients: Sequence[Array], out: Array) -> None:
    """Horner's scheme, highest power first; the coefficients are arrays of rank 0."""
    np.multiply(x, coefficients[0], out=out)
    for coefficient in coefficients[1:-1]:
        np.add(out, coefficient, out=out)
        np.multiply(out, x, out=out)
    np.add(out, coefficients[-1], out=out)


_exact_erf = np.frompyfunc(math.erf, 1, 1)


@kernel("Erf", since=9)
@widened
def erf(x: Array) -> Array:
    """The error function, elementwise; float64 to full precision, integers rounded towards zero."""
    if x.dtype == np.float32:
        return blocked(x, erf_in_place, scratch=3)
    return np.asarray(_exact_erf(x)).astype(x.dtype)


@in_place("Erf", 9)
def _erf_into(out: Array, x: Array) -> Array:
    return blocked(x, erf_in_place, 3, out) if x.dtype is _SINGLE else erf(x)


@kernel("Det", since=11)
@widened
def det(x: Array) -> Array:
    """Determinants of the matrices in the last two axes."""
    return np.asarray(np.linalg.det(x)).astype(x.dtype, copy=False)
