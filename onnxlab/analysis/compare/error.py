"""The error of one array against another: how far apart, how alike, and where first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

FLOORS = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
"""Difference relative to the peak up to which two orders of the same sums may differ, by element type."""


@dataclass(frozen=True, slots=True)
class Error:
    """How an array differs from the one that it is compared with.

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
    """What roundings alone may make of the difference, relative to the peak; of integers, one at a tie."""
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
    if reference.dtype == other.dtype and reference.tobytes() == other.tobytes():
        return _of_equal(reference)
    return _numbers(reference, other)


def common_part(array: Any, other: Any) -> tuple[Any, Any]:
    """What two arrays of one rank have of each axis; anything else as it is."""
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
    wide = reference.astype(np.complex128 if reference.dtype.kind == "c" else np.float64)
    nan, inf = int(np.isnan(wide).sum()), int(np.isinf(wide).sum())
    return Error(peak=float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0)), nan=(nan, nan), inf=(inf, inf))


def _numbers(reference: Array, other: Array) -> Error:
    kind: Any = np.complex128 if "c" in (reference.dtype.kind, other.dtype.kind) else np.float64
    flat, other_flat = reference.astype(kind).reshape(-1), other.astype(kind).reshape(-1)
    finite = np.isfinite(flat) & np.isfinite(other_flat)
    nan = int(np.isnan(flat).sum()), int(np.isnan(other_flat).sum())
    inf = int(np.isinf(flat).sum()), int(np.isinf(other_flat).sum())
    odd = ~finite & ~((flat == other_flat) | (np.isnan(flat) & np.isnan(other_flat)))
    ours, theirs = flat[finite], other_flat[finite]
    apart = np.abs(ours - theirs)
    peak, largest = float(np.abs(ours).max(initial=0.0)), float(apart.max(initial=0.0))
    relative = math.inf if odd.any() else largest / peak if peak else math.inf if largest else 0.0
    with np.errstate(all="ignore"):
        signal, noise = float(np.vdot(ours, ours).real), float(np.vdot(apart, apart).real)
        norms = math.sqrt(signal) * math.sqrt(float(np.vdot(theirs, theirs).real))
        cosine = float(abs(np.vdot(ours, theirs)) / norms) if norms else float(signal == noise)
    sqnr = math.inf if not noise else 10 * math.log10(signal / noise) if signal else -math.inf
    bad = odd.copy()
    bad[finite] |= apart > FLOORS.get(str(reference.dtype), 0.0) * peak
    places = np.flatnonzero(bad)
    first = tuple(int(at) for at in np.unravel_index(places[0], reference.shape)) if len(places) else ()
    equal = bool(not odd.any() and not largest)
    return Error("", peak, largest, relative, sqnr, min(cosine, 1.0), first, nan, inf, equal)
