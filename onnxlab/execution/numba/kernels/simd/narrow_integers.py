"""Integers in memory as vectors: 8 and 16 bits as float32 and back, and sums of products of pairs and quads.

`pairs` is the one instruction that products of 16 bits are made of: two neighboring integers of one vector times two
of the other, added, to 32 bits. x86 has it as pmaddwd, and with the addition that follows as VNNI's vpdpwssd, which
LLVM chooses where the processor has it; for others it is written out. `add_quads` takes four bytes at once: VNNI's
vpdpbusd adds them to 32 bits, elsewhere they have to be such that two products fit 16 bits.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from onnxlab.execution.numba.kernels.simd.lanes import INTEGERS, VECTOR, WIDTH, declared, external, lanes, pointer
from onnxlab.execution.numba.machine.host import host

_I8, _I16, _I32 = ir.IntType(8), ir.IntType(16), ir.IntType(32)
_i64 = types.int64
SHORTS = ir.VectorType(_I16, 2 * WIDTH)


def _features(*known: tuple[int, str, str]) -> tuple[tuple[int, str], ...]:
    """(lanes, LLVM intrinsic) of those (lanes, feature, intrinsic) that the host has."""
    return tuple((width, name) for width, feature, name in known if feature in host().features)


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
_QUADS = _features(
    (16, "avx512vnni", "llvm.x86.avx512.vpdpbusd.512"),
    *(
        (lanes, feature, f"llvm.x86.avx512.vpdpbusd.{lanes * 32}")
        for lanes in (8, 4)
        for feature in ("avx512vnni", "avxvnni")
    ),
)
VNNI = host().vnni


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
        builder.mul(*(builder.sext(_part(builder, v, first, count, 2), wide) for v in (a, b))) for first in (0, 1)
    ]
    return builder.add(*products)


def add_quads(builder: Any, total: Any, a: Any, b: Any) -> Any:
    """[n] int32 plus four products each of [4n] uint8 and [4n] int8; without VNNI, two may not be beyond 16 bits."""
    if VNNI:
        return _add_quads(builder, total, a, b)
    ones = ir.Constant(ir.VectorType(_I16, a.type.count // 2), [ir.Constant(_I16, 1)] * (a.type.count // 2))
    return builder.add(total, pairs(builder, _byte_pairs(builder, a, b), ones))


def _add_quads(builder: Any, total: Any, a: Any, b: Any) -> Any:
    """The same for whatever bytes, by VNNI; written out where a processor is made to do without."""
    count = total.type.count
    for width, name in _QUADS:
        if width == count:  # LLVM takes the bytes as int32, and where it wants them as bytes since, it sees to that
            given = [builder.bitcast(v, total.type) for v in (a, b)]
            return builder.call(external(builder, name, *[total.type] * 4), [total, *given])
        if width < count:
            low, high = (
                _add_quads(builder, *(_part(builder, v, half * v.type.count // 2, v.type.count // 2)
                                      for v in (total, a, b))) for half in (0, 1)
            )  # fmt: skip
            return builder.shuffle_vector(low, high, _order(range(count)))
    for place in range(4):
        first, second = (_part(builder, v, place, count, 4) for v in (a, b))
        products = builder.mul(builder.zext(first, total.type), builder.sext(second, total.type))
        total = builder.add(total, products)
    return total


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
            builder.zext(_part(builder, a, first, count, 2), wide),
            builder.sext(_part(builder, b, first, count, 2), wide),
        )
        for first in (0, 1)
    ]
    return builder.add(*products)


def _order(lanes: Any) -> Any:
    chosen = [ir.Constant(_I32, lane) for lane in lanes]
    return ir.Constant(ir.VectorType(_I32, len(chosen)), chosen)


def _part(builder: Any, vector: Any, first: int, count: int, step: int = 1) -> Any:
    return builder.shuffle_vector(vector, vector, _order(range(first, first + count * step, step)))


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
