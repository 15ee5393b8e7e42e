"""The operations of the elementwise machine, as expressions over vectors x, y and z; truth values are 0 and 1."""

from __future__ import annotations

from math import pi

EXPRESSIONS = {
    "copy": "x",
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "max": "vmax(x, y)",
    "min": "vmin(x, y)",
    "less": "select(less(x, y), ONE, ZERO)",
    "less_equal": "select(less_equal(x, y), ONE, ZERO)",
    "greater": "select(greater(x, y), ONE, ZERO)",
    "greater_equal": "select(greater_equal(x, y), ONE, ZERO)",
    "equal": "select(equal(x, y), ONE, ZERO)",
    "not_equal": "select(not_equal(x, y), ONE, ZERO)",
    "prelu": "select(less(x, ZERO), x * y, x)",
    "and": "x * y",
    "or": "vmax(x, y)",
    "neg": "ZERO_MINUS - x",
    "abs": "vabs(x)",
    "exp": "exp(x)",
    "log": "log(x)",
    "sqrt": "vsqrt(x)",
    "reciprocal": "ONE / x",
    "tanh": "tanh(x)",
    "sigmoid": "sigmoid(x)",
    "erf": "erf(x)",
    "floor": "vfloor(x)",
    "ceil": "vceil(x)",
    "round": "vround(x)",
    "relu": "select(less(x, ZERO), ZERO, x)",
    "softplus": "softplus(x)",
    "not": "ONE - x",
    "sign": "select(greater(x, ZERO), ONE, select(less(x, ZERO), ZERO - ONE, x))",
    "hardswish": "x * vmin(vmax(fma(x, SIXTH, HALF), ZERO), ONE)",
    "square": "x * x",
    "isnan": "select(not_equal(x, x), ONE, ZERO)",
    "expm1": "expm1(x)",
    "silu": "x * sigmoid(x)",
    "gelu": "HALF * x * (ONE + erf(x * ROOT))",
    "gelu_tanh": "HALF * x * (ONE + tanh(x * fma(x * x, CUBIC, SLOPE)))",
    "where": "select(not_equal(x, ZERO), y, z)",
    "fma": "fma(x, y, z)",
    "clip": "vmin(vmax(x, y), z)",
    "half": "to_half(x)",
    "brain": "to_brain(x)",
    "quantize": "vmin(select(greater(vround(x), y), vround(x), y), z)",
}
NAMES = tuple(EXPRESSIONS)
CODE = {name: number for number, name in enumerate(NAMES)}
NUMBERS = {
    "ZERO": 0.0, "ONE": 1.0, "HALF": 0.5, "SIXTH": 1 / 6, "ROOT": 0.5**0.5, "CUBIC": 0.044715 * (2 / pi) ** 0.5,
    "SLOPE": (2 / pi) ** 0.5, "ZERO_MINUS": -0.0,
}  # fmt: skip
