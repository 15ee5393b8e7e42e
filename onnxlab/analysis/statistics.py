"""Statistics of a value: range, mean, NaN count and a histogram, for arrays of every ONNX type.

Works through an array in chunks, so that a value of many gigabytes costs a few megabytes more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnxlab import dtypes

BINS = 32
_CHUNK = 1 << 20  # elements taken at a time; 8 MB as float64


@dataclass(frozen=True, slots=True)
class Statistics:
    """Summary of one value.

    Attributes:
        dtype: element type, as "float32"; "sequence", "map" or "none" for values that are no tensors.
        shape: dimensions; of a sequence or map its length.
        count: number of elements (of all tensors in a sequence).
        minimum, maximum: over everything that is not NaN, infinities included; None where nothing is ordered.
        mean, std: over the finite elements, in float64 (population standard deviation); None without any.
        nan, inf, zeros: numbers of elements; `inf` counts both signs.
        counts: BINS numbers of finite elements, in equal steps from low to high; () where there is none.
        low, high: finite minimum and maximum, the ends of the histogram.

    Complex numbers are summarized by their magnitude.
    """

    dtype: str
    shape: tuple[int, ...]
    count: int
    minimum: float | int | None = None
    maximum: float | int | None = None
    mean: float | None = None
    std: float | None = None
    nan: int = 0
    inf: int = 0
    zeros: int = 0
    counts: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None

    @property
    def edges(self) -> tuple[float, ...]:
        """The BINS + 1 borders of the histogram; () where there is none."""
        if self.low is None or self.high is None:
            return ()
        return tuple(float(edge) for edge in np.linspace(self.low, self.high, BINS + 1))


def statistics(value: Any) -> Statistics:
    """Summarize an array, a sequence (list), a map (dict) or an absent optional (None)."""
    if value is None:
        return Statistics("none", (), 0)
    if isinstance(value, dict):
        return Statistics("map", (len(value),), len(value))
    if isinstance(value, (list, tuple)):
        return _of_sequence(value)
    array = np.asarray(value)
    name = dtypes.name(dtypes.from_numpy(array.dtype))
    if name == "string":
        return Statistics("string", array.shape, array.size)
    if array.size == 0:
        return Statistics(name, array.shape, 0)
    return _of_numbers(array, name)


def _of_sequence(values: list[Any] | tuple[Any, ...]) -> Statistics:
    """The tensors of a sequence as one population; the shape is the sequence's length."""
    tensors = [np.ravel(item) for item in values if isinstance(item, np.ndarray)]
    if not tensors or len(tensors) < len(values) or len({tensor.dtype for tensor in tensors}) > 1:
        return Statistics("sequence", (len(values),), len(values))
    joined = statistics(np.concatenate(tensors))
    return replace(joined, dtype="sequence", shape=(len(values),))


def _of_numbers(array: np.ndarray[Any, Any], name: str) -> Statistics:
    """Two passes: range, counts and moments; then the histogram between the finite ends."""
    seen = _Tally()
    with np.errstate(over="ignore", invalid="ignore"):  # float64 near its end: the deviation becomes infinite
        for chunk in _chunks(array):
            seen.add(chunk)
    summary = Statistics(
        name,
        array.shape,
        array.size,
        seen.minimum,
        seen.maximum,
        nan=seen.nan,
        inf=seen.inf,
        zeros=seen.zeros,
    )
    if seen.low is None or seen.high is None:
        return summary
    low, high = float(seen.low), float(seen.high)
    return replace(summary, mean=seen.mean, std=seen.std, counts=_histogram(array, low, high), low=low, high=high)


class _Tally:
    """Range, counts and moments of the chunks seen so far."""

    def __init__(self) -> None:
        self.finite = self.nan = self.inf = self.zeros = 0
        self.low: Any = None  # of the finite elements
        self.high: Any = None
        self.minimum: Any = None  # of all that are not NaN
        self.maximum: Any = None
        self._shift = 0.0  # moments are taken about the first element, or their difference would cancel
        self._sum = self._squares = 0.0

    def add(self, chunk: np.ndarray[Any, Any]) -> None:
        self.zeros += chunk.size - int(np.count_nonzero(chunk))
        if chunk.dtype.kind == "f":
            is_finite = np.isfinite(chunk)
            if not is_finite.all():
                infinite = chunk[np.isinf(chunk)]
                self.inf += infinite.size
                self.nan += chunk.size - int(np.count_nonzero(is_finite)) - infinite.size
                self.minimum, self.maximum = _widened(self.minimum, self.maximum, infinite)
                chunk = chunk[is_finite]
        if not chunk.size:
            return
        self.low, self.high = _widened(self.low, self.high, chunk)
        self.minimum, self.maximum = _widened(self.minimum, self.maximum, chunk)
        if not self.finite:
            self._shift = float(chunk[0])
        self.finite += chunk.size
        offsets = chunk.astype(np.float64) - self._shift
        self._sum += float(offsets.sum())
        self._squares += float(np.dot(offsets, offsets))

    @property
    def mean(self) -> float:
        return self._shift + self._sum / self.finite

    @property
    def std(self) -> float:
        offset = self._sum / self.finite
        return float(max(0.0, self._squares / self.finite - offset * offset) ** 0.5)


def _widened(low: Any, high: Any, chunk: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """The range of `chunk` and (low, high), as Python numbers: integers beyond 2**53 stay exact."""
    if not chunk.size:
        return low, high
    ends = chunk.min().item(), chunk.max().item()
    return ends if low is None else (min(low, ends[0]), max(high, ends[1]))


def _chunks(array: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Flat pieces in a type that NumPy computes with: magnitudes for complex, float64 for low-bit floats."""
    flat = array.reshape(-1)  # a copy only where the array is not contiguous
    for start in range(0, flat.size, _CHUNK):
        chunk = flat[start : start + _CHUNK]
        if chunk.dtype.kind == "c":
            yield np.abs(chunk)
        elif chunk.dtype.kind == "b":
            yield chunk.view(np.uint8)
        elif chunk.dtype.kind in "iuf" and chunk.dtype != np.float16:
            yield chunk
        else:  # float16 overflows when summed; ml_dtypes' kinds know few functions
            yield chunk.astype(np.float64)


def _histogram(array: np.ndarray[Any, Any], low: float, high: float) -> tuple[int, ...]:
    """BINS counts of the finite elements between `low` and `high`; if those are equal, all in the first."""
    counts = np.zeros(BINS, np.int64)
    # Halved, so that a range from -max to max does not overflow.
    width = high / 2 - low / 2
    for chunk in _chunks(array):
        numbers = chunk.astype(np.float64)
        numbers = numbers[np.isfinite(numbers)]
        if width > 0:
            place = (numbers / 2 - low / 2) * (BINS / width)
            bins = np.minimum(place.astype(np.int64), BINS - 1)
        else:
            bins = np.zeros(numbers.size, np.int64)
        counts += np.bincount(bins, minlength=BINS)
    return tuple(int(count) for count in counts)
