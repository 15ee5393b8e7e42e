"""Strided views of buffers, the places of values while a plan is made, without any memory behind them yet.

A transpose, slice, split or reshape is mostly another view of the same buffer and costs nothing at run time. A
channels-last layout needs no special treatment either: a convolution's result is a view of shape [N, C, H, W] whose
channel stride is one element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(eq=False, slots=True)
class ArenaBuffer:
    """Memory that records read and write.

    Attributes:
        kind: "arena" (of a run), "input", "output" (the caller's arrays), "constant", "table" (words of the plan) or
            "fault" (see `PlanBuilder.fault`).
        index: of an input or output.
        array: of a constant.
        first, last: records between which an arena buffer is in use; -1 before any.
        offset: in the arena, once the plan is laid out.
        is_replaced: whether its last record writes another value to its memory.
    """

    kind: str
    nbytes: int
    index: int = -1
    array: Array | None = None
    first: int = -1
    last: int = -1
    offset: int = 0
    is_replaced: bool = False


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class View:
    """A value: `shape` and `strides` (bytes) over a buffer, from `offset` bytes on."""

    buffer: ArenaBuffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, gaps left out."""
        return self.size * self.dtype.itemsize

    @property
    def is_inside(self) -> bool:
        """Whether all elements lie in the buffer."""
        first, end = self.offset, self.offset + self.dtype.itemsize
        for size, stride in zip(self.shape, self.strides, strict=True):
            if size < 1:
                return True
            first += min(0, (size - 1) * stride)
            end += max(0, (size - 1) * stride)
        return first >= 0 and end <= self.buffer.nbytes

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return self.is_laid_out(dense(self.shape, self.dtype.itemsize))

    def is_laid_out(self, strides: Sequence[int]) -> bool:
        """Whether the strides are these, wherever they matter."""
        return all(a == b for size, a, b in zip(self.shape, self.strides, strides, strict=True) if size > 1)

    @property
    def where(self) -> tuple[ArenaBuffer, int]:
        """The address of the first element."""
        return self.buffer, self.offset

    def at(self, offset: int, shape: Sequence[int], strides: Sequence[int]) -> View:
        """Another view of the same buffer, `offset` bytes further on."""
        return View(self.buffer, self.offset + offset, tuple(shape), tuple(strides), self.dtype)

    def transposed(self, perm: Sequence[int]) -> View:
        """The view with its axes permuted; axes left out of `perm` have one element. ValueError for a wrong `perm`."""
        if len({*perm}) < len(perm) or not {*perm}.issubset(range(len(self.shape))):
            raise ValueError(f"perm {list(perm)} is no order of {len(self.shape)} axes")
        return self.at(0, [self.shape[axis] for axis in perm], [self.strides[axis] for axis in perm])

    def broadcast(self, shape: Sequence[int]) -> View:
        """The view with shape `shape`, with stride 0 where it repeats.

        Raises:
            ValueError: the shapes do not broadcast.
        """
        lead = len(shape) - len(self.shape)
        strides = [0] * lead
        for size, want, stride in zip(self.shape, shape[lead:], self.strides, strict=True):
            if size not in (1, want):
                raise ValueError(f"{self.shape} does not broadcast to {tuple(shape)}")
            strides.append(0 if size == 1 and want != 1 else stride)
        return self.at(0, shape, strides)

    def reshaped(self, shape: Sequence[int]) -> View | None:
        """The same elements in another shape, or None where that takes a copy."""
        if self.contiguous:
            return self.at(0, shape, dense(shape, self.dtype.itemsize))
        sizes, (steps,) = merged(self.shape, [self.strides])
        strides = _regrouped(reversed([*zip(sizes, steps, strict=True)]), shape)
        return None if strides is None else self.at(0, shape, strides)

    def offsets(self, axes: int) -> Array:
        """Bytes from the first element to each element of the first `axes` axes, flattened, as int64; read-only."""
        shape, strides = self.shape[:axes], self.strides[:axes]
        return _kept_offsets(shape, strides) if prod(shape) <= _SMALL else _offsets(shape, strides)


def merged(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Drop dims of one element, and join neighbors that are one run in every layout.

    Args:
        shape: sizes, outermost first.
        strides: of each layout, in the same order.

    Returns:
        sizes, and for each layout its strides.
    """
    dims: list[tuple[int, ...]] = []  # the size, and the stride in each layout
    for size, *steps in zip(shape, *strides, strict=True):
        if dims and all(outer == step * size for outer, step in zip(dims[-1][1:], steps, strict=True)):
            dims[-1] = (dims[-1][0] * size, *steps)
        elif size != 1:
            dims.append((size, *steps))
    sizes, *layouts = ([dim[place] for dim in dims] for place in range(1 + len(strides)))
    return sizes, layouts


def _regrouped(axes: Iterator[tuple[int, int]], shape: Sequence[int]) -> list[int] | None:
    """The strides of merged axes, innermost first, in another shape; None where a size spans two of them."""
    size, stride = 1, 0
    regrouped = []
    for target_size in reversed(shape):
        if target_size != 1 and size == 1:
            size, stride = next(axes, (1, 0))
        if not target_size or size % target_size:
            return None
        regrouped.append(stride)
        size, stride = size // target_size, stride * target_size
    return regrouped[::-1]


_SMALL = 4096


def _offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    total = np.zeros((1,) * len(shape), np.int64)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = np.arange(size, dtype=np.int64) * stride
        total = total + steps.reshape((-1,) + (1,) * (len(shape) - 1 - axis))
    offsets = np.broadcast_to(total, shape).reshape(-1)
    offsets.flags.writeable = False
    return offsets


# `_offsets`, cached: blocks of a network have equal shapes, and every edit makes plans anew.
_kept_offsets = lru_cache(maxsize=256)(_offsets)


def dense(shape: Sequence[int], itemsize: int, order: Sequence[int] | None = None) -> tuple[int, ...]:
    """Strides of an array without gaps: contiguous, or with its axes in another order in memory, outermost first."""
    strides, step = [0] * len(shape), itemsize
    for axis in reversed(range(len(shape)) if order is None else order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def channels_last(shape: Sequence[int], itemsize: int = 4) -> tuple[int, ...]:
    """Strides of [N, C, D1, …] with the channels innermost."""
    return dense(shape, itemsize, (0, *range(2, len(shape)), 1))


def constant_view(array: Array) -> View:
    """A view of an array that the plan keeps."""
    array = np.array(array, order="C", copy=None)  # keeps rank 0, unlike ascontiguousarray
    return View(ArenaBuffer("constant", array.nbytes, array=array), 0, array.shape, array.strides, array.dtype)


def plain(arrays: Sequence[Array]) -> list[Array]:
    """Arrays as compiled code reads them: contiguous and aligned."""
    return [
        array if (flags := array.flags).c_contiguous and flags.aligned else np.array(array, order="C")
        for array in arrays
    ]
