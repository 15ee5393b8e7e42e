"""Integers in memory as vectors: 8 and 16 bits as float32 and back, and sums of products of 16-bit pairs.

`pairs` is the one instruction that quantised products are made of: two neighbouring 16-bit integers of one vector
times two of the other, added, to 32 bits. x86 has it as pmaddwd, and with the addition that follows as VNNI's
vpdpwssd, which LLVM chooses where the processor has it; for others it is written out. `quads` takes four bytes at once,
which have to be such that two products fit 16 bits.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import types

from onnxlab.execution.compiled.kernels.lanes import (
    INTEGERS,
    VECTOR,
    WIDTH,
    declared,
    external,
    lanes,
    pointer,
    splat_value,
)

_I8, _I16, _I32 = ir.IntType(8), ir.IntType(16), ir.IntType(32)
_i64 = types.int64
SHORTS = ir.VectorType(_I16, 2 * WIDTH)


def _features(*known: tuple[int, str, str]) -> tuple[tuple[int, str], ...]:
    """(lanes, LLVM intrinsic) of those (lanes, feature, intrinsic) that this processor has."""
    found = llvm.get_host_cpu_features()
    return tuple((width, name) for width, feature, name in known if found.get(feature))


_PAIRS = _features(
    (16, "avx512bw", "llvm.x86.avx512.pmaddw.d.512"),
    (8, "avx2", "llvm.x86.avx2.pmadd.wd"),
    (4, "sse2", "llvm.x86.sse2.pmadd.wd"),
)
_BYTE_PAIRS = _features(
    (16, "avx512bw", "llvm.x86.avx512.pmaddubs.w.512"),
    (8, "avx2", "llvm.x86.avx2.pmadd.ub.sw"),
    (4, "ssse3", "llvm.x86.ssse3.pmadd.ub.sw.128"),
)


def pairs(builder: Any, a: Any, b: Any) -> Any:
    """[n] int32 of two [2n] int16: a[2i] * b[2i] + a[2i + 1] * b[2i + 1], wrapping."""
    count = a.type.count // 2
    for width, name in _PAIRS:
        if width == count:
            return builder.call(external(builder, name, ir.VectorType(_I32, width), a.type, b.type), [a, b])
        if width < count:
            halves = [[_part(builder, v, half * count, count) for v in (a, b)] for half in (0, 1)]
            low, high = (pairs(builder, *half) for half in halves)
            return builder.shuffle_vector(low, high, _order(range(count)))
    wide = ir.VectorType(_I32, count)
    products = [
        builder.mul(*(builder.sext(_every_second(builder, v, first, count), wide) for v in (a, b))) for first in (0, 1)
    ]
    return builder.add(*products)


def quads(builder: Any, a: Any, b: Any) -> Any:
    """[n] int32 of [4n] uint8 and [4n] int8: four products each, added; no two neighbours may be beyond 16 bits."""
    ones = ir.Constant(ir.VectorType(_I16, a.type.count // 2), [ir.Constant(_I16, 1)] * (a.type.count // 2))
    return pairs(builder, _byte_pairs(builder, a, b), ones)


def _byte_pairs(builder: Any, a: Any, b: Any) -> Any:
    """[n] int16 of [2n] uint8 and [2n] int8: two products each, added."""
    count = a.type.count // 2
    wide = ir.VectorType(_I16, count)
    for width, name in _BYTE_PAIRS:
        if 2 * width == count:
            return builder.call(external(builder, name, wide, a.type, b.type), [a, b])
        if 2 * width < count:
            halves = [[_part(builder, v, half * count, count) for v in (a, b)] for half in (0, 1)]
            low, high = (_byte_pairs(builder, *half) for half in halves)
            return builder.shuffle_vector(low, high, _order(range(count)))
    products = [
        builder.mul(
            builder.zext(_every_second(builder, a, first, count), wide),
            builder.sext(_every_second(builder, b, first, count), wide),
        )
        for first in (0, 1)
    ]
    return builder.add(*products)


def _order(lanes: Any) -> Any:
    chosen = [ir.Constant(_I32, lane) for lane in lanes]
    return ir.Constant(ir.VectorType(_I32, len(chosen)), chosen)


def _part(builder: Any, vector: Any, first: int, count: int) -> Any:
    return builder.shuffle_vector(vector, vector, _order(range(first, first + count)))


def _every_second(builder: Any, vector: Any, first: int, count: int) -> Any:
    return builder.shuffle_vector(vector, vector, _order(range(first, 2 * count, 2)))


def _narrow(item: Any, signed: bool) -> tuple[Any, Any]:
    """(load, store) of this kind of integer; stored numbers must fit, fractions are cut off."""
    kind = ir.VectorType(item, WIDTH)

    def fetch(builder: Any, address: Any) -> Any:
        value = builder.load(pointer(builder, address, kind), align=1)
        return builder.sitofp(value, VECTOR) if signed else builder.uitofp(value, VECTOR)

    def keep(builder: Any, address: Any, value: Any) -> None:
        whole = builder.fptosi(value, INTEGERS)
        builder.store(builder.trunc(whole, kind), pointer(builder, address, kind), align=1)

    return declared(lanes, _i64)(fetch), declared(types.void, _i64, lanes)(keep)


load_i8, store_i8 = _narrow(_I8, signed=True)
load_u8, _ = _narrow(_I8, signed=False)
load_i16, store_i16 = _narrow(_I16, signed=True)


def _nibbles(high: bool) -> Any:
    """Load the lower or the upper four bits of each byte as numbers from 0 to 15."""
    kind = ir.VectorType(_I8, WIDTH)

    def fetch(builder: Any, address: Any) -> Any:
        value = builder.load(pointer(builder, address, kind), align=1)
        operand = ir.Constant(kind, [ir.Constant(_I8, 4 if high else 15)] * WIDTH)
        return builder.uitofp(builder.lshr(value, operand) if high else builder.and_(value, operand), VECTOR)

    return declared(lanes, _i64)(fetch)


load_low, load_high = _nibbles(high=False), _nibbles(high=True)


@declared(lanes, _i64)
def load_i32(builder: Any, address: Any) -> Any:
    """int32 in memory, rounded to float32."""
    return builder.sitofp(builder.load(pointer(builder, address, INTEGERS), align=4), VECTOR)


@declared(lanes, _i64, _i64, _i64)
def load_less(builder: Any, sums: Any, others: Any, factor: Any) -> Any:
    """int32 in memory less others times a factor, rounded to float32."""
    share = splat_value(builder, builder.trunc(factor, _I32), INTEGERS)
    value, other = (builder.load(pointer(builder, place, INTEGERS), align=4) for place in (sums, others))
    return builder.sitofp(builder.sub(value, builder.mul(other, share)), VECTOR)


@declared(types.void, _i64, _i64)
def add_i32(builder: Any, target: Any, source: Any) -> None:
    """Add a vector of int32 in memory to another one."""
    place = pointer(builder, target, INTEGERS)
    made = builder.add(builder.load(place, align=4), builder.load(pointer(builder, source, INTEGERS), align=4))
    builder.store(made, place, align=4)


@declared(types.void, _i64, _i64, _i64)
def add_products(builder: Any, sums: Any, x: Any, weights: Any) -> None:
    """sums[i] += x[i] * weights[i] for a vector: int32, int16, and int16 in the low halves of int32."""
    shorts = builder.load(pointer(builder, x, ir.VectorType(_I16, WIDTH)), align=2)
    wide = builder.bitcast(builder.sext(shorts, INTEGERS), SHORTS)
    factors = builder.load(pointer(builder, weights, SHORTS), align=4)
    place = pointer(builder, sums, INTEGERS)
    builder.store(builder.add(builder.load(place, align=4), pairs(builder, wide, factors)), place, align=4)
