"""The error of one array against another: how far apart, how alike, and where first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

FLOORS = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
"""Difference relative to the peak up to which two orders of the same sums may differ, by element type."""


@dataclass(frozen=True, slots=True)
class Error:
    """The difference of an array from the one that it is compared with.

    Attributes:
        problem: why they cannot be compared element by element, "" where they can.
        peak: the largest magnitude of the reference, of finite elements.
        largest: the largest difference of finite elements.
        relative: `largest` / `peak`; infinite where shapes, types, NaN or infinities differ.
        sqnr: signal to noise in dB, infinite for equal arrays.
        cosine: of the angle between both, as vectors.
        first: index of the first element that is further off than the floor of the type, () where none is.
        nan, inf: numbers of such elements in the reference and in the other.
        equal: whether all elements are the same number, or NaN on both sides.
    """

    problem: str = ""
    peak: float = 0.0
    largest: float = 0.0
    relative: float = 0.0
    sqnr: float = math.inf
    cosine: float = 1.0
    first: tuple[int, ...] = ()
    nan: tuple[int, int] = (0, 0)
    inf: tuple[int, int] = (0, 0)
    equal: bool = True


def floor_of(reference: Any) -> float:
    """The part of a difference that roundings alone explain, relative to the peak; for 8-bit integers, one step."""
    dtype = getattr(reference, "dtype", None)
    if dtype is None:
        return 0.0
    if dtype.kind in "iu":
        peak = float(np.abs(reference.astype(np.float64)).max(initial=0.0)) if dtype.itemsize == 1 else 0.0
        return 1.0 / peak if peak else 0.0
    return FLOORS.get(str(dtype), 1e-5 if dtype.kind in "fc" else 0.0)


def error(reference: Any, other: Any) -> Error:
    """Compare an array with its reference; sequences, maps and texts are equal or not."""
    if not isinstance(reference, np.ndarray) or not isinstance(other, np.ndarray):
        return _whole(_same(reference, other), "values that are no tensors differ")
    if reference.shape != other.shape:
        return _whole(False, f"shape {list(other.shape)} in place of {list(reference.shape)}")
    if reference.dtype.kind in "OSU" or other.dtype.kind in "OSU":
        return _whole(bool(np.array_equal(reference, other)), "texts differ")
    if not reference.size:
        return Error()
    if reference.dtype == other.dtype and _same_bytes(reference, other):
        return _of_equal(reference)
    return _numbers(reference, other)


def common_part(array: Any, other: Any) -> tuple[Any, Any]:
    """The parts of two arrays of one rank that they share on each axis; other arrays as they are."""
    if not isinstance(array, np.ndarray) or not isinstance(other, np.ndarray) or array.ndim != other.ndim:
        return array, other
    both = tuple(slice(0, min(sizes)) for sizes in zip(array.shape, other.shape, strict=True))
    return array[both], other[both]


def failed_to_run(why: str, both: bool) -> Error:
    """The error of a value that a side cannot make; that of neither is no difference."""
    return Error(why) if both else Error(why, relative=math.inf, sqnr=-math.inf, cosine=0.0, equal=False)


def _whole(equal: bool, problem: str) -> Error:
    return Error() if equal else Error(problem, relative=math.inf, sqnr=-math.inf, cosine=0.0, equal=False)


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_same, value, other))
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_same(item, other[key]) for key, item in value.items())
    return bool(np.array_equal(value, other)) if value is not None and other is not None else value is other


def _of_equal(reference: Array) -> Error:
    sums = _Sums()
    kind: Any = np.complex128 if reference.dtype.kind == "c" else np.float64
    for _, ours, _ in _blocks(reference, reference, kind):
        special = ~np.isfinite(ours)
        if special.any():
            sums.nan[0] += int(np.isnan(ours).sum())
            sums.inf[0] += int(np.isinf(ours).sum())
            ours = ours[~special]
        sums.peak = max(sums.peak, float(np.abs(ours).max(initial=0.0)))
    return Error(peak=sums.peak, nan=(sums.nan[0],) * 2, inf=(sums.inf[0],) * 2)


_BLOCK = 1 << 13
"""Elements that are looked at together, in float64: so many stay in a cache, and need no threads."""


@dataclass(slots=True)
class _Sums:
    """Sums over blocks of two arrays."""

    peak: float = 0.0
    largest: float = 0.0
    signal: float = 0.0
    noise: float = 0.0
    product: complex = 0.0
    power: float = 0.0
    nan: list[int] = field(default_factory=lambda: [0, 0])
    inf: list[int] = field(default_factory=lambda: [0, 0])
    is_odd: bool = False

    def add(self, ours: Array, theirs: Array) -> None:
        """Add a block; where an element is special on either side the others count alone."""
        with np.errstate(all="ignore"):
            apart = theirs - ours
        if not np.isfinite(apart).all():
            ours, theirs = self._without_special(ours, theirs)
            apart = theirs - ours
        if not ours.size:
            return
        with np.errstate(all="ignore"):
            self.peak = max(self.peak, float(np.abs(ours).max()))
            self.largest = max(self.largest, float(np.abs(apart).max()))
            self.signal += float(np.vdot(ours, ours).real)
            self.noise += float(np.vdot(apart, apart).real)
            self.product += complex(np.vdot(ours, theirs))
            self.power += float(np.vdot(theirs, theirs).real)

    def _without_special(self, ours: Array, theirs: Array) -> tuple[Array, Array]:
        for side, block in enumerate((ours, theirs)):
            self.nan[side] += int(np.isnan(block).sum())
            self.inf[side] += int(np.isinf(block).sum())
        finite = np.isfinite(ours) & np.isfinite(theirs)
        self.is_odd |= bool(_odd(ours, theirs).any())
        return ours[finite], theirs[finite]


def _odd(ours: Array, theirs: Array) -> Array:
    """A mask of elements where one side is special and the other is not the same."""
    finite = np.isfinite(ours) & np.isfinite(theirs)
    odd: Array = ~finite & ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    return odd


def _blocks(reference: Array, other: Array, kind: Any) -> Iterator[tuple[int, Array, Array]]:
    """(where it begins, both sides) of each block."""
    flat, other_flat = reference.reshape(-1), other.reshape(-1)
    for first in range(0, flat.size, _BLOCK):
        part = slice(first, first + _BLOCK)
        yield first, flat[part].astype(kind), other_flat[part].astype(kind)


def _numbers(reference: Array, other: Array) -> Error:
    kind: Any = np.complex128 if "c" in (reference.dtype.kind, other.dtype.kind) else np.float64
    sums = _Sums()
    for _, ours, theirs in _blocks(reference, other, kind):
        sums.add(ours, theirs)
    peak, largest, signal, noise = sums.peak, sums.largest, sums.signal, sums.noise
    relative = math.inf if sums.is_odd else largest / peak if peak else math.inf if largest else 0.0
    norms = math.sqrt(signal) * math.sqrt(sums.power)
    cosine = abs(sums.product) / norms if norms else float(signal == noise)
    sqnr = math.inf if not noise else 10 * math.log10(signal / noise) if signal else -math.inf
    most = FLOORS.get(str(reference.dtype), 0.0) * peak
    first = _first_beyond(reference, other, kind, most) if sums.is_odd or largest > most else ()
    equal = not sums.is_odd and not largest
    nan, inf = (sums.nan[0], sums.nan[1]), (sums.inf[0], sums.inf[1])
    return Error("", peak, largest, relative, sqnr, min(cosine, 1.0), first, nan, inf, equal)


def _first_beyond(reference: Array, other: Array, kind: Any, most: float) -> tuple[int, ...]:
    """Index of the first element that is further off than this."""
    for start, ours, theirs in _blocks(reference, other, kind):
        with np.errstate(all="ignore"):
            places = np.flatnonzero(_odd(ours, theirs) | (np.abs(theirs - ours) > most))
        if places.size:
            return tuple(int(at) for at in np.unravel_index(start + int(places[0]), reference.shape))
    return ()


def _same_bytes(reference: Array, other: Array) -> bool:
    """Whether two arrays of one shape and type have the same bytes; stops where they do not."""
    flat, other_flat = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (reference, other))
    step = _BLOCK * 8
    return all(
        np.array_equal(flat[first : first + step], other_flat[first : first + step])
        for first in range(0, flat.size, step)
    )
