"""Shape rules of operators that work element by element, with the arithmetic of known elements.

Elements may be symbolic (`Expr`), so that sizes computed by exporters as Shape → Cast → Mul → Floor → Cast come out
as expressions of the model's own dims.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.known_elements import (
    absolute,
    compare,
    divide,
    equal,
    exact,
    mixed,
    modulo,
    of_numbers,
    power,
    rounding,
    whole,
)
from onnxlab.ops.base.registry import rule
from onnxlab.ops.base.rule_helpers import MaybeFact, broadcast_shapes, computed, elem_type, known_of, like, normal_axis
from onnxlab.shapes import (
    Expr,
    Fact,
    FactError,
    TensorFact,
    at_least,
    floor_div,
    maximum,
    minimum,
)

Attributes = Mapping[str, Any]


# -- operators that take their type and shape from one input ------------------------------------------------------

_SAME = """
    Relu LeakyRelu ThresholdedRelu Elu Selu Celu Gelu Sigmoid HardSigmoid HardSwish Mish Swish Tanh Erf Softplus
    Softsign Shrink Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Reciprocal BitwiseNot Trilu
    MeanVarianceNormalization LRN InstanceNormalization
    GroupNormalization ReverseSequence CumSum CumProd ScatterElements Scatter ScatterND TensorScatter
""".split()  # noqa: SIM905 - fifty names read better without quotes


def same_as_first(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> Fact:
    """The type and shape of the first input."""
    return TensorFact(x.elem_type, x.shape) if isinstance(x, TensorFact) else x.bare


for _name in _SAME:
    rule(_name)(same_as_first)


@rule("Softmax")
@rule("LogSoftmax")
@rule("Hardmax")
@rule("LpNormalization")
def along_axis(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The type and shape of the input, which must have the axis."""
    if x.shape and "axis" in attributes:
        normal_axis(attributes["axis"], len(x.shape))
    return x.bare


@rule("Bernoulli", since=15)
def bernoulli(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape, in the type that `dtype` asks for."""
    return TensorFact(attributes.get("dtype") or elem_type(x), x.shape)


@rule("Identity")
def identity(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's fact, elements included."""
    return x


def _unary(name: str, function: Callable[[Any], Any]) -> None:
    def infer(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
        return computed(x.bare, (x,), function, ctx)

    infer.__doc__ = f"Shape rule of {name}, with known elements."
    rule(name)(infer)


_unary("Neg", operator.neg)
_unary("Abs", absolute)
_unary("Sign", of_numbers(lambda a: (a > 0) - (a < 0)))
_unary("Floor", rounding(math.floor, lambda a: floor_div(a, 1)))
_unary("Ceil", rounding(math.ceil, lambda a: -floor_div(-a, 1)))
_unary("Round", rounding(round, lambda a: a if whole(a) else None))
_unary("Sqrt", of_numbers(math.sqrt))
_unary("Not", of_numbers(operator.not_))


@rule("IsNaN", since=9)
@rule("IsInf", since=10)
def is_nan(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """Booleans of the input's shape."""
    return TensorFact(dtypes.BOOL, x.shape)


# -- operators that broadcast -------------------------------------------------------------------------------------


def _legacy_shape(attributes: Attributes, inputs: tuple[Fact, ...]) -> Any:
    """Before opset 7 the second operand was broadcast to the first, and only if `broadcast` said so."""
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
_binary("Div", divide, 7, legacy=1)
_binary("Pow", power, 7, legacy=1)
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


def _least(*operands: Any) -> Any:
    return minimum(*map(_only_whole, operands)) if any(isinstance(o, Expr) for o in operands) else min(operands)


def _greatest(*operands: Any) -> Any:
    return maximum(*map(_only_whole, operands)) if any(isinstance(o, Expr) for o in operands) else max(operands)


def _only_whole(operand: Any) -> Any:
    number = exact(operand)
    if isinstance(number, Fraction):
        if number.denominator != 1:
            raise ArithmeticError("not a whole number")
        return number.numerator
    return number


def _total(*operands: Any) -> Any:
    return sum(operands[1:], operands[0]) if not any(isinstance(o, Expr) for o in operands) else None


_binary("Min", _least, 8)
_binary("Max", _greatest, 8)
_binary("Sum", _total, 8)
_binary("Mean", of_numbers(lambda *operands: sum(operands) / len(operands)), 8)


@rule("Mod", since=10)
def mod(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """Broadcast; elements by Python's remainder, or C's with fmod=1."""
    function = of_numbers(math.fmod) if attributes.get("fmod") else modulo
    fact = TensorFact(elem_type(a) or elem_type(b), broadcast_shapes([a.shape, b.shape]))
    return computed(fact, (a, b), function)


@rule("BitShift", since=11)
def bit_shift(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact) -> Fact:
    """Broadcast; elements shifted by `direction`."""
    shift = operator.lshift if attributes.get("direction") == "LEFT" else operator.rshift
    fact = TensorFact(elem_type(a), broadcast_shapes([a.shape, b.shape]))
    return computed(fact, (a, b), of_numbers(shift))


@rule("Clip", since=11)
def clip(ctx: InferContext, attributes: Attributes, x: Fact, low: MaybeFact = None, high: MaybeFact = None) -> Fact:
    """The input's shape; elements between the bounds, which are scalars."""
    operands = [fact for fact in (x, low, high) if fact is not None]
    if any(known_of(fact) is None for fact in operands):
        return x.bare

    def between(a: Any, *bounds: Any) -> Any:
        rest = list(bounds)
        if low is not None:
            a = _greatest(a, rest.pop(0))
        return _least(a, rest.pop(0)) if high is not None else a

    return computed(x.bare, operands, between)


@rule("Clip", since=1)
def clip_by_attributes(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape; the bounds are attributes."""
    return x.bare


@rule("Where", since=9)
def where(ctx: InferContext, attributes: Attributes, condition: Fact, a: Fact, b: Fact) -> Fact:
    """Broadcast of all three; elements chosen one by one where the condition is known, or both agree."""
    shape = broadcast_shapes([condition.shape, a.shape, b.shape])
    fact = TensorFact(elem_type(a) or elem_type(b), shape)
    if known_of(condition) is None and isinstance(condition, TensorFact) and condition.shape is not None:
        return fact
    return _chosen(fact, condition, a, b)


def _chosen(fact: TensorFact, condition: Fact, a: Fact, b: Fact) -> Fact:
    knowns = [known_of(each) for each in (condition, a, b)]
    chosen = knowns[0]
    if chosen is not None and chosen.complete and len(set(chosen.items)) == 1:
        source = a if chosen.items[0] else b  # one side is all that counts
        if known_of(source) is not None:
            return computed(fact, (source,), lambda item: item)
    return computed(fact, (condition, a, b), lambda c, x, y: x if c is True else y if c is False else None)


# -- types --------------------------------------------------------------------------------------------------------


@rule("Cast")
def cast(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape in the type `to`; known elements converted as C does."""
    to = attributes["to"]
    if not isinstance(to, int) or to not in dtypes.ELEM_TYPES:
        raise FactError(
            f"attribute to={to} is no element type",
            code="bad-attribute",
            expected="a TensorProto.DataType",
            found=str(to),
        )
    return _converted(x, to)


@rule("CastLike", since=15)
def cast_like(ctx: InferContext, attributes: Attributes, x: Fact, target: Fact) -> Fact:
    """The input's shape in the type of the second input."""
    return _converted(x, elem_type(target))


def _converted(x: Fact, to: int) -> Fact:
    integral = dtypes.is_integer(to)

    def convert(item: Any) -> Any:
        if isinstance(item, Expr):
            if integral and not whole(item):
                return floor_div(item, 1) if at_least(item, 0) else None
            return item if to != dtypes.BOOL else (True if at_least(item, 1) else None)
        if to == dtypes.BOOL:
            return bool(item)
        return int(item) if integral else item

    return computed(like(None, x.shape) if not to else TensorFact(to, x.shape), (x,), convert)
