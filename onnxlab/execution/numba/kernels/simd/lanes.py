"""Vectors of float32 as a Numba type, and their arithmetic: what kernels are written in.

Numba's own vectorization depends on what LLVM can prove about loops; kernels here say what they mean instead. A value
of type `lanes` is one register of the host; `+ - *` and `/` work on it, the functions below do the rest. Addresses are
int64 numbers of bytes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from onnxlab.execution.numba.kernels.simd.half_floats import narrowed, widened
from onnxlab.execution.numba.machine.host import host

WIDTH = host().lanes
BYTES = WIDTH * 4

_F32, _I8, _I32, _I64 = ir.FloatType(), ir.IntType(8), ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(_F32, WIDTH)
INTEGERS = ir.VectorType(_I32, WIDTH)
MASKS = ir.VectorType(ir.IntType(1), WIDTH)


class LanesType(types.Type):
    """A vector of float32."""

    def __init__(self) -> None:
        super().__init__(name=f"float32x{WIDTH}")


class MaskType(types.Type):
    """A vector of truth values."""

    def __init__(self) -> None:
        super().__init__(name=f"bool x{WIDTH}")


lanes = LanesType()
mask = MaskType()
_i64, _f32 = types.int64, types.float32


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


@register_model(MaskType)
class _MaskModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, MASKS)


Build = Callable[..., Any]


def declared(result: Any, *arguments: Any) -> Callable[[Build], Any]:
    """Decorator: turn `build(builder, *values) -> value` into a function of compiled code."""

    def declare(build: Build) -> Any:
        def typed(context: Any, *given: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                made = build(builder, *values)
                return context.get_dummy_value() if result is types.void else made

            return result(*arguments), generate

        # Numba counts the parameters of the function it is given
        names = ", ".join(f"a{number}" for number in range(len(arguments)))
        scope: dict[str, Any] = {"typed": typed}
        exec(f"def {build.__name__}(context{', ' if names else ''}{names}):\n return typed(context, {names})", scope)
        return intrinsic(scope[build.__name__])

    return declare


def external(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """An LLVM intrinsic or C function, declared in the builder's module."""
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)


def splat_value(builder: Any, scalar: Any, kind: Any = VECTOR) -> Any:
    """A vector with the scalar in each lane."""
    empty = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(empty, scalar, _I32(0))
    return builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(_I32, kind.count), None))


def pointer(builder: Any, address: Any, kind: Any) -> Any:
    """An address as a pointer to `kind`."""
    return builder.inttoptr(address, kind.as_pointer())


def constant(value: float) -> Any:
    """A vector with one float32 in every lane."""
    return ir.Constant(VECTOR, [ir.Constant(_F32, value)] * WIDTH)


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, fused where the host has it."""
    return builder.call(external(builder, f"llvm.fmuladd.v{WIDTH}f32", VECTOR, VECTOR, VECTOR, VECTOR), [a, b, c])


def part_mask(builder: Any, count: Any) -> Any:
    """True in the first `count` lanes."""
    order = ir.Constant(INTEGERS, [ir.Constant(_I32, lane) for lane in range(WIDTH)])
    return builder.icmp_signed("<", order, splat_value(builder, builder.trunc(count, _I32), INTEGERS))


@declared(lanes, _f32)
def splat(builder: Any, scalar: Any) -> Any:
    """A vector with `scalar` in every lane."""
    return splat_value(builder, scalar)


@declared(lanes, lanes, lanes, lanes)
def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """A · b + c, rounded once where the processor can."""
    return multiply_add(builder, a, b, c)


def _operator(symbol: Any, build: Build) -> None:
    @infer_global(symbol)
    class _Typing(ConcreteTemplate):  # type: ignore[misc]
        cases = [signature(lanes, lanes, lanes)]  # noqa: RUF012 - as in the base class

    @lower_builtin(symbol, lanes, lanes)
    def _lower(context: Any, builder: Any, kind: Any, values: Any) -> Any:
        return build(builder, *values)


_operator(operator.add, lambda builder, a, b: builder.fadd(a, b))
_operator(operator.sub, lambda builder, a, b: builder.fsub(a, b))
_operator(operator.mul, lambda builder, a, b: builder.fmul(a, b))
_operator(operator.truediv, lambda builder, a, b: builder.fdiv(a, b))


def _unary(name: str) -> Any:
    def build(builder: Any, a: Any) -> Any:
        return builder.call(external(builder, f"llvm.{name}.v{WIDTH}f32", VECTOR, VECTOR), [a])

    build.__name__ = f"v{name}"
    return declared(lanes, lanes)(build)


vsqrt, vfloor, vceil, vabs, vround = map(_unary, ("sqrt", "floor", "ceil", "fabs", "rint"))


def _comparison(name: str, sign: str, ordered: bool = True) -> Any:
    def build(builder: Any, a: Any, b: Any) -> Any:
        return (builder.fcmp_ordered if ordered else builder.fcmp_unordered)(sign, a, b)

    build.__name__ = name
    return declared(mask, lanes, lanes)(build)


less, less_equal, greater = (_comparison(n, s) for n, s in (("less", "<"), ("less_equal", "<="), ("greater", ">")))
greater_equal, equal = _comparison("greater_equal", ">="), _comparison("equal", "==")
not_equal = _comparison("not_equal", "!=", ordered=False)


@declared(lanes, mask, lanes, lanes)
def select(builder: Any, chosen: Any, a: Any, b: Any) -> Any:
    """A where `chosen`, else b, lane by lane."""
    return builder.select(chosen, a, b)


@declared(lanes, lanes, lanes)
def vmax(builder: Any, a: Any, b: Any) -> Any:
    """The larger; NaN where either is, as in NumPy."""
    kept = builder.select(builder.fcmp_ordered(">", a, b), a, b)
    return builder.select(builder.fcmp_unordered("uno", a, a), a, kept)


@declared(lanes, lanes, lanes)
def vmin(builder: Any, a: Any, b: Any) -> Any:
    """The lesser of each pair of lanes; NaN where either is."""
    kept = builder.select(builder.fcmp_ordered("<", a, b), a, b)
    return builder.select(builder.fcmp_unordered("uno", a, a), a, kept)


@declared(lanes, lanes)
def power_of_two(builder: Any, a: Any) -> Any:
    """2 to the power of whole numbers between -126 and 127."""
    whole = builder.fptosi(a, INTEGERS)
    bias, shift = (ir.Constant(INTEGERS, [ir.Constant(_I32, n)] * WIDTH) for n in (127, 23))
    return builder.bitcast(builder.shl(builder.add(whole, bias), shift), VECTOR)


@declared(lanes, lanes)
def exponent(builder: Any, a: Any) -> Any:
    """The binary exponent of positive normal numbers, as float32: a = mantissa(a) * 2**exponent(a)."""
    bits = builder.bitcast(a, INTEGERS)
    bias, shift = (ir.Constant(INTEGERS, [ir.Constant(_I32, n)] * WIDTH) for n in (126, 23))
    return builder.sitofp(builder.sub(builder.lshr(bits, shift), bias), VECTOR)


@declared(lanes, lanes)
def mantissa(builder: Any, a: Any) -> Any:
    """The number between 0.5 and 1 that `exponent` leaves."""
    bits = builder.bitcast(a, INTEGERS)
    low, half = (ir.Constant(INTEGERS, [ir.Constant(_I32, n)] * WIDTH) for n in (0x007FFFFF, 0x3F000000))
    return builder.bitcast(builder.or_(builder.and_(bits, low), half), VECTOR)


@declared(lanes, lanes, lanes)
def copy_sign(builder: Any, a: Any, b: Any) -> Any:
    """The size of a with the sign of b."""
    return builder.call(external(builder, f"llvm.copysign.v{WIDTH}f32", VECTOR, VECTOR, VECTOR), [a, b])


def _reduction(name: str, intrinsic_name: str, start: float | None) -> Any:
    def build(builder: Any, a: Any) -> Any:
        if start is None:
            called = external(builder, f"llvm.vector.reduce.{intrinsic_name}.v{WIDTH}f32", _F32, VECTOR)
            return builder.call(called, [a])
        # halves are added until one lane is left: a tree, which rounds less than a chain
        while a.type.count > 1:
            half = a.type.count // 2
            order = ir.VectorType(_I32, half)
            low, high = (
                builder.shuffle_vector(a, a, ir.Constant(order, [ir.Constant(_I32, first + n) for n in range(half)]))
                for first in (0, half)
            )
            a = builder.fadd(low, high)
        return builder.extract_element(a, _I32(0))

    build.__name__ = name
    return declared(_f32, lanes)(build)


sum_of = _reduction("sum_of", "fadd", 0.0)
largest = _reduction("largest", "fmax", None)
smallest = _reduction("smallest", "fmin", None)


@declared(lanes, lanes)
def to_half(builder: Any, value: Any) -> Any:
    """Rounded to what float16 holds."""
    return widened(builder, narrowed(builder, value))


@declared(lanes, lanes)
def to_brain(builder: Any, value: Any) -> Any:
    """Rounded to what bfloat16 holds, to even; NaN stays one."""
    one, bias, kept, shift = (
        ir.Constant(INTEGERS, [ir.Constant(_I32, n)] * WIDTH) for n in (1, 0x7FFF, 0xFFFF0000, 16)
    )
    bits = builder.bitcast(value, INTEGERS)
    odd = builder.and_(builder.lshr(bits, shift), one)
    rounded = builder.and_(builder.add(builder.add(bits, bias), odd), kept)
    return builder.select(builder.fcmp_unordered("uno", value, value), value, builder.bitcast(rounded, VECTOR))


@declared(_f32, _i64)
def float_of_bits(builder: Any, bits: Any) -> Any:
    """The float32 whose bits are the low half of a word of a record."""
    return builder.bitcast(builder.trunc(bits, _I32), _F32)


@declared(lanes, lanes, _i64, _f32)
def part_select(builder: Any, value: Any, count: Any, other: Any) -> Any:
    """The first `count` lanes of a vector, `other` in the rest."""
    return builder.select(part_mask(builder, count), value, splat_value(builder, other))
