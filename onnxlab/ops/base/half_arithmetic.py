"""float16 and bfloat16 by float32 arithmetic on blocks: NumPy converts them one by one, several times as slowly.

A number is rounded by adding and subtracting 1.5 times a power of two, which is so large that the bits to drop lie
beyond the end of float32's significand: the processor rounds to nearest, ties to even, as IEEE 754 requires.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BLOCK: Final = 1 << 14
"""Elements of float32 that fit a level-1 or level-2 cache together with a temporary or two."""

_FEW = 2048  # elements for which NumPy's own conversion is as quick
_REBIAS = np.float32(2.0**112)  # between the exponents of float16 and float32
_SIGN_AND_HALF = np.int32(0x8FFFE000 - (1 << 32))


class _Grid(NamedTuple):
    """The numbers that a 16-bit float represents.

    Attributes:
        above: the difference between the bits of an exponent and those of 1.5 · 2^(exponent + dropped bits).
        least: the latter number for subnormal results, which all have the same last place; a block of it, because
            NumPy's maximum of two arrays is three times as fast as that of an array and a number.
        bound: magnitudes below it do not overflow, neither in the result nor in a sum before it.
    """

    above: Array
    least: Array
    bound: float


def _grid(dropped: int, smallest: int, bound: float) -> _Grid:
    """The grid of a type with `dropped` bits less than float32 and the smallest normal number 2^`smallest`."""
    least = np.full(BLOCK, 1.5 * 2.0 ** (smallest + dropped), np.float32)
    return _Grid(np.array(dropped << 23 | 1 << 22, np.uint32), least, bound)


_GRIDS: Final = {
    np.dtype(np.float16): _grid(13, -14, 65520.0),
    np.dtype(ml_dtypes.bfloat16): _grid(16, -126, 2.0**110),
}
_EXPONENT = np.array(0x7F800000, np.uint32)
_SIGN = np.array(0x80000000, np.uint32)

HALVES: Final = frozenset(_GRIDS)
"""The dtypes that `rounded` and `to_half` know: float16 and bfloat16."""


def rounded(x: Array, dtype: np.dtype[Any]) -> Array:
    """float32 rounded to what float16 or bfloat16 can hold, still as float32; in x's own memory where it can be."""
    grid = _GRIDS[dtype]
    if x.dtype != np.float32 or not x.flags.c_contiguous or not x.flags.writeable or not _fits(x, grid):
        return x.astype(dtype).astype(np.float32)
    flat = x.reshape(-1)
    anchor, sign = np.empty((2, min(BLOCK, flat.size)), np.uint32)
    for start in range(0, flat.size, BLOCK):
        block = flat[start : start + BLOCK]
        bits, a, s = block.view(np.uint32), anchor[: block.size], sign[: block.size]
        np.bitwise_and(bits, _SIGN, out=s)
        _round(block, block, a, grid)
        np.bitwise_or(bits, s, out=bits)  # what is rounded to 0 keeps its sign
    return x


def _fits(x: Array, grid: _Grid) -> bool:
    """Whether rounding can neither overflow nor meet a NaN."""
    return not x.size or bool(x.max() < grid.bound and x.min() > -grid.bound)


def _round(block: Array, out: Array, anchor: Array, grid: _Grid) -> None:
    """out = block rounded; zeros lose their sign."""
    np.bitwise_and(block.view(np.uint32), _EXPONENT, out=anchor)
    np.add(anchor, grid.above, out=anchor)
    large = anchor.view(np.float32)
    np.maximum(large, grid.least[: block.size], out=large)
    np.add(block, large, out=out)
    np.subtract(out, large, out=out)


def to_half(x: Array) -> Array:
    """float32 rounded to float16, in half NumPy's time."""
    grid = _GRIDS[np.dtype(np.float16)]
    if x.size < _FEW or x.dtype != np.float32 or not _fits(x, grid):
        return x.astype(np.float16)
    flat = np.ascontiguousarray(x).reshape(-1)
    result = np.empty(flat.size, np.uint16)
    anchor, value = np.empty((2, min(BLOCK, flat.size)), np.uint32)
    for start in range(0, flat.size, BLOCK):
        block = flat[start : start + BLOCK]
        a, v = anchor[: block.size], value[: block.size]
        _round(block, v.view(np.float32), a, grid)
        np.multiply(v.view(np.float32), 1 / _REBIAS, out=v.view(np.float32))
        np.bitwise_and(v, ~_SIGN, out=v)
        np.right_shift(v, 13, out=v)
        np.right_shift(block.view(np.uint32), 16, out=a)
        np.bitwise_and(a, 0x8000, out=a)
        np.bitwise_or(v, a, out=v)
        np.copyto(result[start : start + BLOCK], v, casting="unsafe")
    return result.view(np.float16).reshape(x.shape)


def to_single(x: Array) -> Array:
    """float16 (or any other small float) as float32."""
    if x.dtype != np.float16 or x.size < _FEW:
        return x.astype(np.float32)
    bits = np.ascontiguousarray(x).reshape(-1).view(np.int16)
    result = np.empty(bits.size, np.float32)
    for start in range(0, bits.size, BLOCK):
        out = result[start : start + BLOCK]
        words = out.view(np.int32)
        np.copyto(words, bits[start : start + BLOCK])
        np.left_shift(words, 13, out=words)
        np.bitwise_and(words, _SIGN_AND_HALF, out=words)
        np.multiply(out, _REBIAS, out=out)
    if result.max() >= 65536 or result.min() <= -65536:  # infinities and NaN
        return x.astype(np.float32)
    return result.reshape(x.shape)
