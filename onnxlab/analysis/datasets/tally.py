"""Running statistics of many values over many samples: one pass, constant memory, and two of them can be merged.

Counts, minimum and maximum, moments (merged by Chan's formulas), a histogram of signed powers of two with eight bins
each, and the samples with the largest magnitudes. Merging in the order of samples gives the same bits however the
samples were divided, as long as the parts are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxlab.execution.numba.machine.tally_rows import BINS, ROW
from onnxlab.execution.numba.tallying import CountedRows, is_compiled

Array = np.ndarray[Any, Any]

WORST = 5
"""Samples that are remembered for their largest magnitude, for each value."""

COUNTS = ("count", "samples", "nan", "inf", "zeros")
FLOATS = ("minimum", "maximum", "mean", "m2")
_LARGEST = float(np.finfo(np.float32).max)
_FLOAT32 = np.dtype(np.float32)
_PART = 1 << 20  # elements that NumPy takes at a time


class Tally:
    """Statistics of values by name.

    Args:
        names: of the values.
        histograms: also count elements by magnitude; 32 kB for each value.

    Attributes:
        count, samples, nan, inf, zeros: for each value, int64: elements, samples that had it, and special elements.
        minimum, maximum: over all elements but NaN; infinite without any.
        mean, m2: of finite elements: their mean, and the sum of squared deviations.
        bins: for each value BINS counts; None without histograms.
        worst, worst_at: largest magnitudes of samples and their indices, largest first; index -1 for none.
    """

    def __init__(self, names: Sequence[str], histograms: bool = True) -> None:
        self.names = tuple(names)
        size = len(self.names)
        self.count, self.samples, self.nan, self.inf, self.zeros = (np.zeros(size, np.int64) for _ in COUNTS)
        self.minimum, self.maximum = np.full(size, np.inf), np.full(size, -np.inf)
        self.mean, self.m2 = np.zeros(size), np.zeros(size)
        self.bins = np.zeros((size, BINS), np.int64) if histograms else None
        self.worst, self.worst_at = np.full((size, WORST), -np.inf), np.full((size, WORST), -1, np.int64)

    @property
    def finite(self) -> Array:
        """Finite elements of each value."""
        return self.count - self.nan - self.inf

    def add(self, arrays: Sequence[Any], index: int) -> None:
        """Count one sample.

        Args:
            arrays: a value for each name, None where the sample has none.
            index: of the sample.
        """
        sample = self.sample(index)
        for place in reversed(range(len(arrays))):  # what was made last is still in a cache
            sample.put(place, arrays[place])
        sample.finish()

    def sample(self, index: int) -> SampleTally:
        """A counter of one sample, value by value; histograms of this tally count each value as soon as it is put."""
        return SampleTally(self, index)

    def take(self, table: Array, counts: Array, present: Array, index: int) -> None:
        """Add what a sample has in the rows of a table."""
        moments = table.view(np.float64)
        zeros, nan, inf = table[:, 8], table[:, 9], table[:, 10]
        finite = counts - nan - inf
        some = counts > 0
        safe = np.maximum(finite, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = moments[:, 5] + moments[:, 6] / safe
            m2 = np.maximum(moments[:, 7] - moments[:, 6] * (moments[:, 6] / safe), 0.0)
        self._join_moments(finite, mean, m2)
        self.minimum = np.where(some, np.minimum(self.minimum, moments[:, 3]), self.minimum)
        self.maximum = np.where(some, np.maximum(self.maximum, moments[:, 4]), self.maximum)
        self.count += counts
        self.samples += present
        self.zeros += zeros
        self.nan += nan
        self.inf += inf
        largest = np.where(some, np.maximum(-moments[:, 3], moments[:, 4]), -np.inf)
        largest = np.where(nan > 0, np.inf, largest)  # nothing is worse
        self._join_worst(largest[:, None], np.where(some, index, -1)[:, None])

    def _join_moments(self, finite: Array, mean: Array, m2: Array) -> None:
        """Merge the moments by Chan's formulas; `self` still has its counts from before."""
        before = self.finite
        both = np.maximum(before + finite, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            delta = np.where(finite > 0, mean - self.mean, 0.0)
            merged = np.where(before > 0, self.mean + delta * (finite / both), mean)
            spread = self.m2 + m2 + delta * delta * (before / both) * finite
        self.mean = np.where(finite > 0, merged, self.mean)
        self.m2 = np.where(finite > 0, np.where(before > 0, spread, m2), self.m2)

    def _join_worst(self, worst: Array, places: Array) -> None:
        """Keep the largest; of equal ones the first samples."""
        if not ((worst > self.worst[:, -1:]) & (places >= 0)).any():
            return
        sizes = np.concatenate([self.worst, np.where(places >= 0, worst, -np.inf)], axis=1)
        indices = np.concatenate([self.worst_at, places], axis=1)
        order = np.lexsort((np.where(indices < 0, np.iinfo(np.int64).max, indices), -sizes), axis=1)[:, :WORST]
        self.worst, self.worst_at = (np.take_along_axis(table, order, 1) for table in (sizes, indices))

    def merge(self, other: Tally, offset: int = 0) -> None:
        """Add what another tally counted.

        Args:
            other: of the same names.
            offset: added to the other tally's indices of samples.
        """
        if other.names != self.names or (other.bins is None) != (self.bins is None):
            raise ValueError("only tallies of the same values can be merged")
        self._join_moments(other.finite, other.mean, other.m2)
        for name in COUNTS:
            getattr(self, name).__iadd__(getattr(other, name))
        self.minimum, self.maximum = np.minimum(self.minimum, other.minimum), np.maximum(self.maximum, other.maximum)
        if self.bins is not None and other.bins is not None:
            self.bins += other.bins
        self._join_worst(other.worst, np.where(other.worst_at >= 0, other.worst_at + offset, -1))

    def state(self) -> dict[str, Array]:
        """All numbers as arrays, bins that are zero left out."""
        arrays = {name: getattr(self, name) for name in (*COUNTS, *FLOATS, "worst", "worst_at")}
        if self.bins is not None:
            at = np.flatnonzero(self.bins)
            arrays |= {"bins_at": at, "bins": self.bins.reshape(-1)[at]}
        return arrays

    @classmethod
    def of_state(cls, names: Sequence[str], state: Mapping[str, Array]) -> Tally:
        """The tally of a state.

        Raises:
            ValueError, KeyError: the arrays describe no such tally.
        """
        tally = cls(names, "bins" in state)
        for name in (*COUNTS, *FLOATS, "worst", "worst_at"):
            expected, its = getattr(tally, name), state[name]
            if its.shape != expected.shape or its.dtype != expected.dtype:
                raise ValueError(f"{name} has another shape or type")
            setattr(tally, name, its.copy())
        if tally.bins is not None:
            at = state["bins_at"]
            if at.size and not 0 <= int(at.min()) <= int(at.max()) < tally.bins.size:
                raise ValueError("bins are out of range")
            tally.bins.reshape(-1)[at] = state["bins"]
        return tally

    def __reduce__(self) -> Any:
        return Tally.of_state, (self.names, self.state())


class SampleTally:
    """One sample of a tally, to which values come one by one.

    Args:
        tally: receives all but the histograms when the sample is finished.
        index: of the sample.
    """

    def __init__(self, tally: Tally, index: int) -> None:
        size = len(tally.names)
        self._tally, self._index = tally, index
        self._table, self._counts = np.zeros((size, ROW), np.int64), np.zeros(size, np.int64)
        self._present = bytearray(size)
        self._rows = CountedRows(size) if is_compiled() else None
        self._places: list[int] = []
        self._bins = 0 if tally.bins is None else tally.bins.ctypes.data

    def put(self, place: int, value: Any) -> None:
        """Count a value, each once; None where the sample has none."""
        if value is None:
            return
        self._present[place] = 1
        is_plain = type(value) is np.ndarray and value.dtype is _FLOAT32 and value.flags.c_contiguous
        flat = value if is_plain else numbers_of(value)
        if flat is None or not flat.size:
            return
        if self._rows is not None and flat.dtype == _FLOAT32:
            self._places.append(place)
            self._rows.put(flat, self._bins and self._bins + place * BINS * 8)
        else:
            bins = self._tally.bins
            self._counts[place] = flat.size
            _fill(self._table[place], flat.reshape(-1), None if bins is None else bins[place])

    @property
    def is_empty(self) -> bool:
        """Whether nothing was put yet."""
        return not any(self._present)

    def finish(self) -> None:
        """Add the sample to the tally."""
        if not self._present:
            return  # the tally has no values
        if self._rows is not None and self._places:
            rows = self._rows.finish()
            self._table[self._places] = rows
            self._counts[self._places] = rows[:, 1]
        self._tally.take(self._table, self._counts, np.frombuffer(self._present, bool), self._index)


def numbers_of(value: Any) -> Array | None:
    """The elements of a value in one row, in a type that can be counted; None for texts, maps and the like."""
    if isinstance(value, (list, tuple)):
        parts = [numbers_of(item) for item in value]
        arrays = [part for part in parts if part is not None]
        return np.concatenate(arrays) if arrays and len(arrays) == len(parts) else None
    if not isinstance(value, (np.ndarray, np.generic)):
        return None
    array = np.asarray(value).reshape(-1)
    if array.dtype.kind in "OSUMm":
        return None
    if array.dtype.kind == "c":
        array = np.abs(array)
    if array.dtype == np.float32:
        return np.ascontiguousarray(array)
    if array.dtype.kind == "V" or (array.dtype.kind == "f" and array.dtype.itemsize < 4):
        return array.astype(np.float32)  # float16, bfloat16, 8-bit and smaller floats, and 4-bit integers: exact
    if array.dtype.kind in "biu":
        rounded = array.astype(np.float32)
        if array.dtype.itemsize < 3 or np.array_equal(rounded, array):
            return rounded  # as exact, and compiled code counts it
    return array.view(np.uint8) if array.dtype.kind == "b" else array


def _fill(row: Array, flat: Array, bins: Array | None) -> None:
    """Do for a row what the compiled kernel does, for any type of numbers."""
    words = row.view(np.float64)
    words[3:8] = np.inf, -np.inf, 0.0, 0.0, 0.0
    shift = None
    for first in range(0, flat.size, _PART):
        part = flat[first : first + _PART].astype(np.float64)
        nan = np.isnan(part)
        row[8] += part.size - np.count_nonzero(part)
        row[9] += np.count_nonzero(nan)
        if bins is not None:
            small = np.clip(part, -_LARGEST, _LARGEST) if flat.dtype != np.float32 else part
            bits = np.where(np.isinf(part), part, small).astype(np.float32).view(np.uint32)
            bins += np.bincount((bits >> 20).astype(np.int64), minlength=BINS)
        numbers = part[~nan]
        if not numbers.size:
            continue
        words[3], words[4] = min(words[3], numbers.min()), max(words[4], numbers.max())
        finite = numbers[np.isfinite(numbers)]
        row[10] += numbers.size - finite.size
        if finite.size:
            shift = float(finite[0]) if shift is None else shift
            offsets = finite - shift
            words[5], words[6] = shift, words[6] + offsets.sum()
            words[7] += float(np.dot(offsets, offsets))
