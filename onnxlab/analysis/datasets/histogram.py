"""Quantiles and ranges from histograms of signed powers of two."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from onnxlab.execution.numba.machine.tally_rows import BINS

Array = np.ndarray[Any, Any]

_HALF = BINS // 2
_FINITE = 2040  # bins of a sign whose exponent is not that of infinity and NaN
_LEVELS = 2048  # linear bins of magnitudes that entropy calibration looks at


@cache
def edges() -> tuple[Array, Array]:
    """(lower, upper) edge of each finite bin, in ascending order of numbers: negative ones first."""
    starts = (np.arange(_FINITE + 1, dtype=np.uint32) << 20).view(np.float32).astype(np.float64)
    starts[-1] = float(np.finfo(np.float32).max)
    low, high = starts[:-1], starts[1:]
    return np.concatenate([-high[::-1], low]), np.concatenate([-low[::-1], high])


def ascending(bins: Array) -> Array:
    """The counts of finite bins in ascending order of numbers."""
    return np.concatenate([bins[_HALF : _HALF + _FINITE][::-1], bins[:_FINITE]])


def quantile(bins: Array, share: float, minimum: float, maximum: float) -> float:
    """The number below which this share of finite elements lies; within a bin, as if they were spread evenly.

    A bin is an eighth of a power of two wide, so the result is off by less than 7 %, and never beyond minimum and
    maximum.
    """
    counts = ascending(bins)
    total = int(counts.sum())
    if not total:
        return float("nan")
    before = np.cumsum(counts)
    target = share * total
    place = min(int(np.searchsorted(before, target)), len(counts) - 1)
    while place < len(counts) - 1 and not counts[place]:
        place += 1
    low, high = (side[place] for side in edges())
    inside = (target - (before[place] - counts[place])) / counts[place] if counts[place] else 0.0
    low, high = max(low, minimum), min(high, maximum)
    return float(min(max(low + (high - low) * min(max(inside, 0.0), 1.0), minimum), maximum))


def magnitudes(bins: Array) -> Array:
    """Counts of finite bins by magnitude, both signs together."""
    return bins[:_FINITE] + bins[_HALF : _HALF + _FINITE]


def magnitude_quantile(bins: Array, share: float, largest: float) -> float:
    """The magnitude below which this share of finite elements lies."""
    both = np.zeros(BINS, np.int64)
    both[:_FINITE] = magnitudes(bins)
    return quantile(both, share, 0.0, largest)


def least_divergence(bins: Array, largest: float, levels: int = 128) -> float:
    """The magnitude at which to clip so that quantized magnitudes say most about the real ones.

    The chosen threshold is the one whose clipped distribution has the least Kullback-Leibler divergence from its
    quantized form, as TensorRT calibrates.
    """
    if not largest:
        return 0.0
    counts = _linear(magnitudes(bins), largest)
    counts[0] = counts[1]  # zeros are exact whatever the scale
    best, chosen = np.inf, _LEVELS
    total = np.cumsum(counts)
    for end in range(levels, _LEVELS + 1, 16):
        reference = counts[:end].copy()
        reference[-1] += total[-1] - total[end - 1]
        divergence = _divergence(reference, counts[:end], levels)
        if divergence < best:
            best, chosen = divergence, end
    return largest * chosen / _LEVELS


def _linear(counts: Array, largest: float) -> Array:
    """Counts in equal steps from 0 to `largest`, of bins whose elements are taken to be spread evenly."""
    low, high = (side[_FINITE:] for side in edges())
    used = np.flatnonzero(counts)
    cumulative = np.concatenate([[0.0], np.cumsum(counts[used])])
    points = np.concatenate([[low[used[0]]], np.minimum(high[used], largest)]) if used.size else np.array([0.0])
    places = np.linspace(0.0, largest, _LEVELS + 1)
    return np.diff(np.interp(places, points, cumulative)) if used.size else np.zeros(_LEVELS)


def _divergence(reference: Array, counts: Array, levels: int) -> float:
    """The divergence of a distribution from itself with only `levels` levels."""
    group = np.minimum(np.arange(len(counts)) * levels // len(counts), levels - 1)
    occupied = counts > 0
    sums = np.bincount(group, counts, levels)
    members = np.bincount(group, occupied, levels)
    quantized = np.where(occupied, (sums / np.maximum(members, 1))[group], 0.0)
    p, q = reference / max(reference.sum(), 1e-300), quantized / max(quantized.sum(), 1e-300)
    both = (p > 0) & (q > 0)
    lost = p[(p > 0) & (q <= 0)].sum()
    return float(np.sum(p[both] * np.log(p[both] / q[both])) + lost * 50.0)
