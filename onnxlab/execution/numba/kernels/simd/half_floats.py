"""float16 to float32 and back: by instructions where the processor has them, else by arithmetic on their bits.

There, LLVM calls functions of a compiler's library (`__extendhfsf2`), which a process need not have.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from onnxlab.execution.numba.machine.host import host

_BIAS = (127 - 15) << 23  # of a float32's exponent above that of a float16
_INFINITY, _LEAST_NORMAL = 0x7C00, 0x0400
_TOO_LARGE, _LEAST_AS_FLOAT, _FLOAT_INFINITY = 0x477FF000, 0x38800000, 0x7F800000  # 65520, 2**-14, infinity


def widened(builder: Any, bits: Any) -> Any:
    """A vector of float32 of the bits of as many float16."""
    count = bits.type.count
    floats, whole = ir.VectorType(ir.FloatType(), count), _Integers(builder, count)
    if "f16c" in host().features:
        return builder.fpext(builder.bitcast(bits, ir.VectorType(ir.HalfType(), count)), floats)
    word = builder.zext(bits, whole.kind)
    size = builder.and_(word, whole.of(0x7FFF))
    normal = builder.add(builder.shl(size, whole.of(13)), whole.of(_BIAS))
    unit = ir.Constant(floats, [2.0**-24] * count)
    subnormal = builder.bitcast(builder.fmul(builder.uitofp(size, floats), unit), whole.kind)
    result = whole.where("<", size, _LEAST_NORMAL, subnormal, normal)
    result = whole.where(">=", size, _INFINITY, builder.add(normal, whole.of(_BIAS)), result)
    sign = builder.shl(builder.and_(word, whole.of(0x8000)), whole.of(16))
    return builder.bitcast(builder.or_(result, sign), floats)


def narrowed(builder: Any, value: Any) -> Any:
    """The bits of a vector of float32, rounded to as many float16: to the nearest, halves to even."""
    count = value.type.count
    floats, whole, shorts = value.type, _Integers(builder, count), ir.VectorType(ir.IntType(16), count)
    if "f16c" in host().features:
        return builder.bitcast(builder.fptrunc(value, ir.VectorType(ir.HalfType(), count)), shorts)
    word = builder.bitcast(value, whole.kind)
    size = builder.and_(word, whole.of(0x7FFFFFFF))
    kept = builder.lshr(size, whole.of(13))
    rounding = builder.add(builder.and_(kept, whole.of(1)), whole.of((0xFFF - _BIAS) % (1 << 32)))
    normal = builder.lshr(builder.add(size, rounding), whole.of(13))
    half = ir.Constant(floats, [0.5] * count)  # its last place is a float16's least number, to which the sum rounds
    sum_bits = builder.bitcast(builder.fadd(builder.bitcast(size, floats), half), whole.kind)
    subnormal = builder.sub(sum_bits, builder.bitcast(half, whole.kind))
    nan = builder.or_(builder.and_(kept, whole.of(0x1FF)), whole.of(0x7E00))
    result = whole.where("<", size, _LEAST_AS_FLOAT, subnormal, normal)
    result = whole.where(">=", size, _TOO_LARGE, whole.of(_INFINITY), result)
    result = whole.where(">", size, _FLOAT_INFINITY, nan, result)
    sign = builder.lshr(builder.and_(word, whole.of(0x80000000)), whole.of(16))
    return builder.trunc(builder.or_(result, sign), shorts)


class _Integers:
    """Vectors of so many integers of 32 bits."""

    def __init__(self, builder: Any, count: int) -> None:
        self.builder = builder
        self.kind = ir.VectorType(ir.IntType(32), count)

    def of(self, number: int) -> Any:
        """The vector of one number."""
        return ir.Constant(self.kind, [number] * self.kind.count)

    def where(self, order: str, values: Any, bound: int, yes: Any, no: Any) -> Any:
        """`yes` where the values are in this order to the bound, `no` elsewhere."""
        return self.builder.select(self.builder.icmp_unsigned(order, values, self.of(bound)), yes, no)
