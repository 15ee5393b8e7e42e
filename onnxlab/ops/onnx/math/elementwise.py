"""Elementwise operators of two or more inputs: arithmetic, comparison, logic, bits, Where."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.derivatives import Arrays, binary, derivative, unbroadcast
from onnxlab.ops.base.estimates import broadcast
from onnxlab.ops.base.kernel_helpers import Array, is_small_float, legacy_operand, narrow, widen
from onnxlab.ops.base.known_elements import (
    compare,
    divide_elements,
    equal,
    greatest,
    least,
    mixed,
    modulo,
    of_numbers,
    power_of_elements,
)
from onnxlab.ops.base.registry import Attributes, in_place, kernel, rule
from onnxlab.ops.base.rule_helpers import broadcast_shapes, computed, elem_type, known_of, same_as_first
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Expr, Fact, TensorFact

Binary = Callable[[Array, Array], Array]


def divide(a: Array, b: Array) -> Array:
    """A / B; integers are truncated towards zero, as in C.

    Raises:
        ZeroDivisionError: an integer divisor is 0.
    """
    if a.dtype.kind not in "iu":
        return np.divide(a, b)
    if not np.all(b):
        raise ZeroDivisionError("input B holds a 0: integers cannot be divided by it")
    quotient = np.floor_divide(a, b)
    if a.dtype.kind == "i":
        quotient = quotient + ((quotient * b != a) & ((a < 0) != (b < 0)))
    return quotient.astype(a.dtype, copy=False)


def power(a: Array, b: Array) -> Array:
    """A ** B in A's type; the exponent's may differ. Scalar exponents 2 and 3 are products, 0.5 a root."""
    if is_small_float(a.dtype):
        return narrow(power(widen(a), widen(b)), a.dtype)
    if b.size == 1 and a.ndim >= b.ndim and a.dtype.kind == "f":
        exponent = float(b.reshape(()))
        if exponent == 2:
            return np.square(a)
        if exponent == 3:
            cube = np.square(a)
            return np.multiply(cube, a)
        if exponent == 0.5:
            return np.sqrt(a)
    if a.dtype.kind in "iu":
        if b.dtype.kind in "iu" and np.all(b >= 0):
            return np.power(a, b.astype(a.dtype, copy=False))
        return np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
    return np.power(a, b.astype(a.dtype, copy=False))


def _legacy(function: Binary) -> Callable[..., Array]:
    """The kernel of opsets 1 to 6: broadcasting by the attributes `broadcast` and `axis`."""

    def run(
        a: Array,
        b: Array,
        broadcast: int = 0,
        axis: int | None = None,
        consumed_inputs: Sequence[int] | None = None,
    ) -> Array:
        return function(a, legacy_operand(a, b, broadcast, axis))

    return run


_BINARY: dict[str, Binary] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": divide,
    "Pow": power,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "Less": np.less,
}

for _name, _function in _BINARY.items():
    kernel(_name, since=1)(_legacy(_function))
    kernel(_name, since=7)(_function)


def into_dead(function: Callable[..., Array]) -> Callable[..., Array]:
    """A ufunc that writes into its first argument, where the result fits there."""

    def run(out: Array, *inputs: Array) -> Array:
        shape = np.broadcast(*inputs).shape  # `broadcast_shapes` takes four times as long
        fits = shape == out.shape and all(x.dtype == out.dtype for x in inputs)
        return function(*inputs, out) if fits else function(*inputs)

    return run


for _name in ("Add", "Sub", "Mul"):
    in_place(_name, 7, places=(0, 1))(into_dead(_BINARY[_name]))


@in_place("Div", 7, places=(0, 1))
def _divide_into(out: Array, a: Array, b: Array) -> Array:
    return divide(a, b) if a.dtype.kind != "f" else _into_quotient(out, a, b)


_into_quotient = into_dead(np.divide)

for _name, _function in {
    "GreaterOrEqual": np.greater_equal,
    "LessOrEqual": np.less_equal,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}.items():
    kernel(_name, since=12)(_function)

kernel("BitwiseNot", since=18)(np.invert)


@kernel("Sum", since=6)
def sum_(*inputs: Array) -> Array:
    """Sum of one or more arrays that broadcast."""
    return _fold(np.add, inputs)


@kernel("Max", since=6)
def maximum(*inputs: Array) -> Array:
    """Largest of one or more arrays that broadcast; NaN wins."""
    return reduce(np.maximum, inputs)


@kernel("Min", since=6)
def minimum(*inputs: Array) -> Array:
    """Smallest of one or more arrays that broadcast; NaN wins."""
    return reduce(np.minimum, inputs)


@kernel("Mean", since=6)
def mean(*inputs: Array) -> Array:
    """Mean of one or more arrays that broadcast."""
    return (_fold(np.add, inputs) / np.asarray(len(inputs), inputs[0].dtype)).astype(inputs[0].dtype)


def _consuming(function: Callable[..., Array]) -> Callable[..., Array]:
    """The kernel of opset 1, whose attribute `consumed_inputs` was a hint for in-place execution."""

    def run(*inputs: Array, consumed_inputs: Sequence[int] | None = None) -> Array:
        return function(*inputs)

    return run


kernel("Sum")(_consuming(sum_))
kernel("Max")(_consuming(maximum))
kernel("Min")(_consuming(minimum))
kernel("Mean")(_consuming(mean))


def _fold(ufunc: np.ufunc, inputs: Sequence[Array]) -> Array:
    """reduce() that adds in place from the third array on."""
    if len(inputs) < 3:
        return reduce(ufunc, inputs)
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    total = np.empty(shape, inputs[0].dtype)
    ufunc(inputs[0], inputs[1], out=total)
    for x in inputs[2:]:
        ufunc(total, x, out=total)
    return total


@kernel("Mod", since=10)
def mod(a: Array, b: Array, fmod: int = 0) -> Array:
    """Remainder with the sign of B, or with fmod=1 of A (C's fmod).

    Raises:
        ZeroDivisionError: an integer divisor is 0.
    """
    if a.dtype.kind in "iu" and not (b.all() if b.ndim else b):
        raise ZeroDivisionError("input B holds a 0: integers have no remainder by it")
    function: Any = np.fmod if fmod else np.mod
    if is_small_float(a.dtype):
        return function(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    return function(a, b)


@kernel("BitShift", since=11)
def bit_shift(x: Array, y: Array, direction: str) -> Array:
    """X shifted LEFT or RIGHT by Y bits; a Y below 0 or of the width and more leaves only sign bits."""
    if direction not in ("LEFT", "RIGHT"):
        raise ValueError(f"direction is {direction!r}: expected LEFT or RIGHT")
    width = x.dtype.itemsize * 8
    amount = np.where((y < 0) | (y >= width), np.asarray(width, y.dtype), y)
    return np.left_shift(x, amount) if direction == "LEFT" else np.right_shift(x, amount)


@kernel("Where", since=9)
def where(condition: Array, x: Array, y: Array) -> Array:
    """X where the condition holds, else Y; all three broadcast."""
    return np.where(condition, x, y)


@kernel("PRelu", since=7)
def prelu(x: Array, slope: Array) -> Array:
    """X where X ≥ 0, else slope·X; the slope broadcasts to X."""
    return np.where(x < 0, x * slope, x).astype(x.dtype, copy=False)


@kernel("PRelu", since=1)
def prelu_1(x: Array, slope: Array, consumed_inputs: Sequence[int] | None = None) -> Array:
    """PRelu-7 with one slope, or one for each channel (axis 1)."""
    if slope.size > 1 and slope.ndim == 1:
        slope = slope.reshape((-1,) + (1,) * (x.ndim - 2))
    return prelu(x, slope)


# -- shape rules -------------------------------------------------------------------------------------------------------


rule("BitwiseNot")(same_as_first)


def _legacy_shape(attributes: Attributes, inputs: tuple[Fact, ...]) -> Any:
    """The shape of the first operand: before opset 7, the second was broadcast to it, if `broadcast` is set."""
    return inputs[0].shape


def _binary(name: str, function: Callable[..., Any], since: int, to: int = 0, legacy: int = 0) -> None:
    """Register a broadcasting operator; `to` is the element type of the result, 0 for that of the first input."""

    def infer(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
        shape = broadcast_shapes([fact.shape for fact in inputs])
        elem = to or elem_type(inputs[0]) or next((elem_type(fact) for fact in inputs if elem_type(fact)), 0)
        return computed(TensorFact(elem, shape), inputs, function, ctx)

    def infer_legacy(ctx: InferContext, attributes: Attributes, *inputs: Fact) -> Fact:
        return TensorFact(to or elem_type(inputs[0]), _legacy_shape(attributes, inputs))

    infer.__doc__ = f"Shape rule of {name}: NumPy broadcasting, with known elements."
    infer_legacy.__doc__ = f"Shape rule of {name} with the old `broadcast` attribute."
    rule(name, since=since)(infer)
    if legacy:
        rule(name, since=legacy)(infer_legacy)


_BOOL = dtypes.BOOL


_binary("Add", mixed(operator.add), 7, legacy=1)
_binary("Sub", mixed(operator.sub), 7, legacy=1)
_binary("Mul", mixed(operator.mul), 7, legacy=1)
_binary("Div", divide_elements, 7, legacy=1)
_binary("Pow", power_of_elements, 7, legacy=1)
_binary("PRelu", of_numbers(lambda a, slope: a if a >= 0 else slope * a), 7)
_binary("Equal", equal, 7, _BOOL, 1)
_binary("Less", compare(operator.lt, True, False), 7, _BOOL, 1)
_binary("Greater", compare(operator.gt, True, True), 7, _BOOL, 1)
_binary("LessOrEqual", compare(operator.le, False, False), 12, _BOOL)
_binary("GreaterOrEqual", compare(operator.ge, False, True), 12, _BOOL)
_binary("And", of_numbers(lambda a, b: a and b), 7, _BOOL, 1)
_binary("Or", of_numbers(lambda a, b: a or b), 7, _BOOL, 1)
_binary("Xor", of_numbers(operator.ne), 7, _BOOL, 1)
_binary("BitwiseAnd", of_numbers(operator.and_), 18)
_binary("BitwiseOr", of_numbers(operator.or_), 18)
_binary("BitwiseXor", of_numbers(operator.xor), 18)


def _total(*operands: Any) -> Any:
    return sum(operands[1:], operands[0]) if not any(isinstance(o, Expr) for o in operands) else None


_binary("Min", least, 8)
_binary("Max", greatest, 8)
_binary("Sum", _total, 8)
_binary("Mean", of_numbers(lambda *operands: sum(operands) / len(operands)), 8)


@rule("Mod", since=10)
def mod_rule(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """Broadcast; elements by Python's remainder, or C's with fmod=1."""
    function = of_numbers(math.fmod) if attributes.get("fmod") else modulo
    fact = TensorFact(elem_type(a) or elem_type(b), broadcast_shapes([a.shape, b.shape]))
    return computed(fact, (a, b), function)


@rule("BitShift", since=11)
def bit_shift_rule(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """Broadcast; elements shifted by `direction`."""
    shift = operator.lshift if attributes.get("direction") == "LEFT" else operator.rshift
    fact = TensorFact(elem_type(a), broadcast_shapes([a.shape, b.shape]))
    return computed(fact, (a, b), of_numbers(shift))


@rule("Where", since=9)
def where_rule(ctx: InferContext, attributes: Attributes, condition: Fact, a: Fact, b: Fact) -> Fact:
    """Broadcast of all three; elements chosen one by one where the condition is known, or both agree."""
    shape = broadcast_shapes([condition.shape, a.shape, b.shape])
    fact = TensorFact(elem_type(a) or elem_type(b), shape)
    if known_of(condition) is None and isinstance(condition, TensorFact) and condition.shape is not None:
        return fact
    return _chosen(fact, condition, a, b)


def _chosen(fact: TensorFact, condition: Fact, a: Fact, b: Fact) -> Fact:
    knowns = [known_of(operand) for operand in (condition, a, b)]
    chosen = knowns[0]
    if chosen is not None and chosen.complete and len(set(chosen.items)) == 1:
        source = a if chosen.items[0] else b  # the other side does not count
        if known_of(source) is not None:
            return computed(fact, (source,), lambda item: item)
    return computed(fact, (condition, a, b), lambda c, x, y: x if c is True else y if c is False else None)


# -- gradients ---------------------------------------------------------------------------------------------------------


derivative("Add")(binary(lambda a, b, y, g: g, lambda a, b, y, g: g))
derivative("Sub")(binary(lambda a, b, y, g: g, lambda a, b, y, g: -g))
derivative("Mul")(binary(lambda a, b, y, g: g * b, lambda a, b, y, g: g * a))
derivative("Div")(binary(lambda a, b, y, g: g / b, lambda a, b, y, g: -g * y / b))
derivative("Pow")(
    binary(
        lambda a, b, y, g: g * b * np.power(a, b - 1),
        lambda a, b, y, g: g * y * np.log(np.where(a > 0, a, 1)),
    )
)
derivative("PRelu")(binary(lambda a, b, y, g: np.where(a < 0, g * b, g), lambda a, b, y, g: np.where(a < 0, g * a, 0)))


@derivative("Sum")
def _sum_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    return [unbroadcast(gradients[0], x.shape) for x in inputs]


@derivative("Mean")
def _mean_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    return [unbroadcast(gradients[0] / len(inputs), x.shape) for x in inputs]


@derivative("Max Min")
def _extreme_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    """The gradient in equal parts to the inputs that are the extreme."""
    hits = [np.broadcast_to(x == outputs[0], outputs[0].shape) for x in inputs]
    share = gradients[0] / np.maximum(1, np.sum(hits, axis=0))
    return [unbroadcast(np.where(hit, share, 0), x.shape) for x, hit in zip(inputs, hits, strict=True)]


@derivative("Where")
def _where_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (condition, x, y), (g,) = inputs, gradients
    return [None, unbroadcast(np.where(condition, g, 0), x.shape), unbroadcast(np.where(condition, 0, g), y.shape)]


# -- traits ------------------------------------------------------------------------------------------------------------


_ARITHMETIC = OpTraits(
    category="elementwise",
    shape="shapes",
    flops=1,
    elements="all",
    half="rounded",
    out_bytes=broadcast,
    out_bytes_since=7,
    size_arithmetic=True,
    blockwise=True,
    masks="passed",
)
traits("Add Mul", _ARITHMETIC._replace(commutative=True, int8="pointwise"))
traits("Div", _ARITHMETIC._replace(zero_signs=(1,)))
traits("Sub", _ARITHMETIC)
traits(
    "And",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        elements="all",
        out_bytes=broadcast,
        out_bytes_since=7,
        quiet=True,
        size_arithmetic=True,
        commutative=True,
        zero_gradient=True,
        layer="comparison",
    ),
)
traits(
    "Or Xor",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        elements="all",
        out_bytes=broadcast,
        out_bytes_since=7,
        quiet=True,
        size_arithmetic=True,
        commutative=True,
        zero_gradient=True,
    ),
)
traits(
    "BitShift BitwiseAnd BitwiseOr BitwiseXor",
    OpTraits(category="elementwise", shape="shapes", flops=1, elements="all", out_bytes=broadcast),
)
traits("BitwiseNot", OpTraits(category="elementwise", shape="shapes", flops=1, elements="all"))
traits(
    "Equal Greater Less",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        elements="all",
        half="exact",
        out_bytes=broadcast,
        out_bytes_since=7,
        size_arithmetic=True,
        zero_gradient=True,
        layer="comparison",
    ),
)
traits(
    "GreaterOrEqual LessOrEqual",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        elements="all",
        half="exact",
        out_bytes=broadcast,
        size_arithmetic=True,
        zero_gradient=True,
        layer="comparison",
    ),
)
traits(
    "Max Min",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        elements="all",
        half="exact",
        out_bytes=broadcast,
        out_bytes_since=7,
        size_arithmetic=True,
        blockwise=True,
        commutative=True,
    ),
)
traits(
    "Mean",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        elements="all",
        out_bytes=broadcast,
        out_bytes_since=7,
        commutative=True,
    ),
)
traits(
    "Mod",
    OpTraits(
        category="elementwise", shape="shapes", flops=1, elements="all", out_bytes=broadcast, size_arithmetic=True
    ),
)
traits(
    "PRelu",
    OpTraits(
        category="activation",
        shape="shapes",
        flops=1,
        elements="none",
        half="rounded",
        out_bytes=broadcast,
        out_bytes_since=7,
    ),
)
traits(
    "Pow",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        elements="all",
        half="rounded",
        out_bytes=broadcast,
        out_bytes_since=7,
        zero_signs=(0,),
        size_arithmetic=True,
    ),
)
traits(
    "Sum",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        elements="all",
        out_bytes=broadcast,
        out_bytes_since=7,
        blockwise=True,
        commutative=True,
        masks="passed",
    ),
)
traits(
    "Where",
    OpTraits(
        category="elementwise",
        shape="shapes",
        flops=1,
        half="exact",
        out_bytes=broadcast,
        quiet=True,
        fresh=True,
        size_arithmetic=True,
        layer="comparison",
        masks="passed",
    ),
)
