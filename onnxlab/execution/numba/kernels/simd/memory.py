"""Memory of kernels by address: vectors and numbers to and from it, counters that threads share, calls by address."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from onnxlab.execution.numba.kernels.simd.half_floats import narrowed, widened
from onnxlab.execution.numba.kernels.simd.lanes import (
    INTEGERS,
    MASKS,
    VECTOR,
    WIDTH,
    declared,
    external,
    lanes,
    part_mask,
    pointer,
)

_F32, _I8, _I16, _I32, _I64 = ir.FloatType(), ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64)
_i64, _f32 = types.int64, types.float32


def masked_load(builder: Any, address: Any, chosen: Any) -> Any:
    """Load the chosen lanes; the others are undefined."""
    where = VECTOR.as_pointer()
    load = external(builder, f"llvm.masked.load.v{WIDTH}f32.p0", VECTOR, where, _I32, MASKS, VECTOR)
    return builder.call(load, [pointer(builder, address, VECTOR), _I32(4), chosen, ir.Constant(VECTOR, None)])


def masked_store(builder: Any, address: Any, value: Any, chosen: Any) -> None:
    """Store the chosen lanes and leave the others' memory alone."""
    where = VECTOR.as_pointer()
    store = external(builder, f"llvm.masked.store.v{WIDTH}f32.p0", ir.VoidType(), VECTOR, where, _I32, MASKS)
    builder.call(store, [value, pointer(builder, address, VECTOR), _I32(4), chosen])


@declared(lanes, _i64)
def load(builder: Any, address: Any) -> Any:
    """Load a vector of float32 from any multiple of 4."""
    return builder.load(pointer(builder, address, VECTOR), align=4)


@declared(types.void, _i64, lanes)
def store(builder: Any, address: Any, value: Any) -> None:
    """Store a vector of float32 at any multiple of 4."""
    builder.store(value, pointer(builder, address, VECTOR), align=4)


@declared(lanes, _i64, _i64)
def load_part(builder: Any, address: Any, count: Any) -> Any:
    """The first `count` lanes, zero in the others; only these bytes are touched."""
    return masked_load(builder, address, part_mask(builder, count))


@declared(types.void, _i64, lanes, _i64)
def store_part(builder: Any, address: Any, value: Any, count: Any) -> None:
    """Store the first `count` lanes."""
    masked_store(builder, address, value, part_mask(builder, count))


@declared(_i64, _i64, _i64)
def word(builder: Any, address: Any, index: Any) -> Any:
    """The int64 number `index` of a record."""
    return builder.load(builder.gep(pointer(builder, address, _I64), [index]), align=8)


@declared(_i64, _i64)
def get_i32(builder: Any, address: Any) -> Any:
    """Load an int32, widened to int64."""
    return builder.sext(builder.load(pointer(builder, address, _I32), align=4), _I64)


@declared(_i64, _i64)
def get_i64(builder: Any, address: Any) -> Any:
    """Load an int64 from any address."""
    return builder.load(pointer(builder, address, _I64), align=1)


@declared(_i64, _i64)
def get_u8(builder: Any, address: Any) -> Any:
    """Load a uint8, widened to int64."""
    return builder.zext(builder.load(pointer(builder, address, _I8), align=1), _I64)


@declared(types.void, _i64, _i64)
def put_u8(builder: Any, address: Any, value: Any) -> None:
    """Store the low 8 bits."""
    builder.store(builder.trunc(value, _I8), pointer(builder, address, _I8), align=1)


@declared(types.void, _i64, _i64)
def put_i64(builder: Any, address: Any, value: Any) -> None:
    """Store an int64 at any address."""
    builder.store(value, pointer(builder, address, _I64), align=1)


@declared(types.void, _i64, _i64)
def put_i32(builder: Any, address: Any, value: Any) -> None:
    """Store the low 32 bits."""
    builder.store(builder.trunc(value, _I32), pointer(builder, address, _I32), align=1)


@declared(types.void, _i64, _i64)
def put_i16(builder: Any, address: Any, value: Any) -> None:
    """Store the low 16 bits."""
    builder.store(builder.trunc(value, ir.IntType(16)), pointer(builder, address, ir.IntType(16)), align=1)


@declared(_i64, _i64)
def get_i16(builder: Any, address: Any) -> Any:
    """Load an int16, widened to int64."""
    return builder.sext(builder.load(pointer(builder, address, ir.IntType(16)), align=1), _I64)


@declared(_f32, _i64)
def get_f32(builder: Any, address: Any) -> Any:
    """Load a float32."""
    return builder.load(pointer(builder, address, _F32), align=4)


@declared(types.void, _i64, _f32)
def put_f32(builder: Any, address: Any, value: Any) -> None:
    """Store a float32."""
    builder.store(value, pointer(builder, address, _F32), align=4)


@declared(types.void, _i64, _i64, _i64)
def copy_bytes(builder: Any, target: Any, source: Any, count: Any) -> None:
    """Copy `count` bytes between places that do not overlap."""
    byte = _I8.as_pointer()
    move = external(builder, "llvm.memcpy.p0.p0.i64", ir.VoidType(), byte, byte, _I64, ir.IntType(1))
    builder.call(move, [pointer(builder, target, _I8), pointer(builder, source, _I8), count, ir.IntType(1)(0)])


@declared(types.void, _i64, _i64)
def clear_bytes(builder: Any, target: Any, count: Any) -> None:
    """Set `count` bytes to zero."""
    byte = _I8.as_pointer()
    fill = external(builder, "llvm.memset.p0.i64", ir.VoidType(), byte, _I8, _I64, ir.IntType(1))
    builder.call(fill, [pointer(builder, target, _I8), _I8(0), count, ir.IntType(1)(0)])


@declared(_i64, _i64, _i64)
def atomic_add(builder: Any, address: Any, value: Any) -> Any:
    """Add to an int64 in memory, seen by all threads; returns what it was."""
    return builder.atomic_rmw("add", pointer(builder, address, _I64), value, "seq_cst")


@declared(_i64, _i64)
def atomic_load(builder: Any, address: Any) -> Any:
    """Load an int64 with acquire ordering."""
    return builder.load_atomic(pointer(builder, address, _I64), "acquire", 8)


@declared(types.void)
def relax(builder: Any) -> None:
    """Let another thread have the processor."""
    builder.call(external(builder, "sched_yield", _I32), [])


@declared(types.void, _i64, _i64, _i64, _i64)
def call_kernel(builder: Any, kernel: Any, record: Any, unit: Any, scratch: Any) -> None:
    """Call a compiled kernel by the address of its code."""
    kind = ir.FunctionType(ir.VoidType(), [_I64, _I64, _I64])
    builder.call(builder.inttoptr(kernel, kind.as_pointer()), [record, unit, scratch])


@declared(lanes, _i64)
def load_half(builder: Any, address: Any) -> Any:
    """float16 in memory, widened."""
    kind = ir.VectorType(_I16, WIDTH)
    return widened(builder, builder.load(pointer(builder, address, kind), align=2))


@declared(types.void, _i64, lanes)
def store_half(builder: Any, address: Any, value: Any) -> None:
    """Store a vector as float16, rounded."""
    bits = narrowed(builder, value)
    builder.store(bits, pointer(builder, address, bits.type), align=2)


@declared(lanes, _i64)
def load_bytes(builder: Any, address: Any) -> Any:
    """uint8 or bool in memory, as float32."""
    kind = ir.VectorType(_I8, WIDTH)
    return builder.uitofp(builder.load(pointer(builder, address, kind), align=1), VECTOR)


@declared(types.void, _i64, lanes)
def store_bytes(builder: Any, address: Any, value: Any) -> None:
    """Numbers that are 0 or 1, as bool."""
    kind = ir.VectorType(_I8, WIDTH)
    builder.store(builder.fptoui(value, kind), pointer(builder, address, kind), align=1)


@declared(types.void, _i64, _i64, _i64, _i64)
def transpose_store(builder: Any, source: Any, step: Any, target: Any, stride: Any) -> None:
    """Transpose a square of vectors: row r of the source is at `source + r * step`, of the target `+ r * stride`."""
    rows = [builder.load(pointer(builder, builder.add(source, builder.mul(step, _I64(r))), VECTOR), align=4)
            for r in range(WIDTH)]  # fmt: skip
    half = WIDTH // 2
    while half:  # exchange the off-diagonal quarters of ever smaller squares
        low = [lane if lane % (2 * half) < half else lane - half + WIDTH for lane in range(WIDTH)]
        high = [lane + half if lane % (2 * half) < half else lane + WIDTH for lane in range(WIDTH)]
        orders = [ir.Constant(INTEGERS, [ir.Constant(_I32, lane) for lane in order]) for order in (low, high)]
        for r in range(WIDTH):
            if r % (2 * half) < half:
                pair = rows[r], rows[r + half]
                rows[r], rows[r + half] = (builder.shuffle_vector(*pair, order) for order in orders)
        half //= 2
    for r, row in enumerate(rows):
        where = builder.add(target, builder.mul(stride, _I64(r)))
        builder.store(row, pointer(builder, where, VECTOR), align=4)
