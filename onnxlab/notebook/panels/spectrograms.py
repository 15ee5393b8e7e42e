"""A row of a tensor as a spectrogram: the power of its frequencies, frame by frame."""

from typing import Any

import numpy as np

from onnxlab.notebook.panels.tensor_planes import Array, Plane, PlaneImage, coded, numbers_of

FRAMES = 1 << 13
"""Most frames that are transformed."""
LONGEST, SHORTEST = 512, 16
"""Elements of a frame."""
RANGE = 80.0
"""Decibels below the loudest that are shown; everything below looks the same."""


def spectrogram(source: Any, plane: Plane, pixels: int) -> PlaneImage:
    """Decibels [frequency, frame] of the plane's first row, the highest frequency on top.

    Frames overlap by half and are weighted by a Hann window; powers of frames in one column of pixels are averaged. A
    frame with NaN or infinity gives NaN.
    """
    size = LONGEST
    while size > SHORTEST and plane.width < 8 * size:
        size //= 2
    size = min(size, max(2, plane.width))
    count = max(1, (plane.width - size) // max(1, size // 2) + 1)
    starts = np.unique(np.linspace(0, max(0, plane.width - size), min(count, FRAMES)).astype(np.int64))
    window = np.hanning(size + 2)[1:-1]
    columns = min(len(starts), pixels)
    powers = np.empty((size // 2 + 1, columns))
    for column, chunk in enumerate(np.array_split(starts, columns)):
        frames = np.stack([_frame(source, plane, int(start), size) for start in chunk]) * window
        with np.errstate(all="ignore"):
            powers[:, column] = (np.abs(np.fft.rfft(frames, axis=1)) ** 2).mean(0)
    rows = powers[1:][-pixels:] if len(powers) > 1 else powers  # the lowest is the mean, which outweighs all others
    return coded(_decibels(rows)[::-1, :, None])


def _frame(source: Any, plane: Plane, start: int, size: int) -> Array:
    row: Array = numbers_of(plane.read(source, slice(0, 1), slice(start, start + size)))[0]
    return row


def _decibels(powers: Array) -> Array:
    finite = powers[np.isfinite(powers)]
    top = float(finite.max()) if finite.size else 0.0
    floor = top * 10 ** (-RANGE / 10) or 1e-30
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(powers), 10 * np.log10(np.maximum(powers, floor)), np.nan)
