"""Windows over pixels with contiguous channels: depthwise convolution and pooling.

Both walk a table of offsets like the microkernel's, [tap][pixel] int32, negative where the window leaves the image,
and take all channels of a few pixels at a time. A record:

    x, offsets, tap_bytes, taps, pixels, channels, y, places
    weights, bias       [taps][channels] and [channels], of a depthwise convolution; bias may be 0
    counts              float32 per pixel to divide sums by, of an average
    low, high           bits of float32 to clamp to, of a depthwise convolution
    unit_pixels         what one unit takes
    zeros               at least `channels` zeros
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.simd.lanes import WIDTH, float_of_bits, fma, greater, less, select, splat, vmax
from onnxlab.execution.numba.kernels.simd.memory import get_f32, get_i32, load, load_part, word
from onnxlab.execution.numba.kernels.simd.tail_vectors import put
from onnxlab.execution.numba.machine.object_cache import helper, kernel

_LOWEST, _ZERO, _ONE = np.float32(-inf), np.float32(0.0), np.float32(1.0)
_STEP = WIDTH * 4


@helper
def _row(x, offset, zeros):
    return zeros if offset < 0 else x + offset


@helper
def _clamp(value, low, high):
    value = select(less(value, low), low, value)
    return select(greater(value, high), high, value)


@kernel
def depthwise(record: Any, unit: Any, scratch: Any) -> None:
    """Convolve one unit of pixels channel by channel."""
    x, offsets, tap_bytes, taps = word(record, 2), word(record, 3), word(record, 4), word(record, 5)
    channels, y, places = word(record, 7), word(record, 8), word(record, 9)
    weights, bias, zeros = word(record, 10), word(record, 11), word(record, 16)
    low, high = splat(float_of_bits(word(record, 13))), splat(float_of_bits(word(record, 14)))
    first = unit * word(record, 15)
    last = min(first + word(record, 15), word(record, 6))
    for pixel in range(first, last, 4):  # tables are padded to whole tiles by repeating the last pixel
        table, place = offsets + pixel * 4, places + pixel * 4
        for channel in range(0, channels, WIDTH):
            left = channels - channel
            c = channel * 4
            start = splat(_ZERO)
            if bias:
                start = load(bias + c) if left >= WIDTH else load_part(bias + c, left)
            s0, s1, s2, s3 = start, start, start, start
            for tap in range(taps):
                line = table + tap * tap_bytes
                w = weights + tap * channels * 4 + c
                r0, r1 = _row(x, get_i32(line), zeros) + c, _row(x, get_i32(line + 4), zeros) + c
                r2, r3 = _row(x, get_i32(line + 8), zeros) + c, _row(x, get_i32(line + 12), zeros) + c
                if left >= WIDTH:
                    v = load(w)
                    s0, s1 = fma(load(r0), v, s0), fma(load(r1), v, s1)
                    s2, s3 = fma(load(r2), v, s2), fma(load(r3), v, s3)
                else:
                    v = load_part(w, left)
                    s0, s1 = fma(load_part(r0, left), v, s0), fma(load_part(r1, left), v, s1)
                    s2, s3 = fma(load_part(r2, left), v, s2), fma(load_part(r3, left), v, s3)
            s0, s1, s2, s3 = _clamp(s0, low, high), _clamp(s1, low, high), _clamp(s2, low, high), _clamp(s3, low, high)
            count = min(left, WIDTH)
            put(y + get_i32(place) + c, s0, count)
            put(y + get_i32(place + 4) + c, s1, count)
            put(y + get_i32(place + 8) + c, s2, count)
            put(y + get_i32(place + 12) + c, s3, count)


@kernel
def max_pool(record: Any, unit: Any, scratch: Any) -> None:
    """Take the maximum over the window of each pixel of a unit."""
    x, offsets, tap_bytes, taps = word(record, 2), word(record, 3), word(record, 4), word(record, 5)
    channels, y, places = word(record, 7), word(record, 8), word(record, 9)
    first = unit * word(record, 15)
    for pixel in range(first, min(first + word(record, 15), word(record, 6))):
        place = y + get_i32(places + pixel * 4)
        for channel in range(0, channels, WIDTH):
            count = min(WIDTH, channels - channel)
            best = splat(_LOWEST)
            for tap in range(taps):
                offset = get_i32(offsets + tap * tap_bytes + pixel * 4)
                if offset >= 0:
                    where = x + offset + channel * 4
                    best = vmax(best, load(where) if count == WIDTH else load_part(where, count))
            put(place + channel * 4, best, count)


@kernel
def average_pool(record: Any, unit: Any, scratch: Any) -> None:
    """Take the mean over the window of each pixel of a unit."""
    x, offsets, tap_bytes, taps = word(record, 2), word(record, 3), word(record, 4), word(record, 5)
    channels, y, places, counts = word(record, 7), word(record, 8), word(record, 9), word(record, 12)
    first = unit * word(record, 15)
    for pixel in range(first, min(first + word(record, 15), word(record, 6))):
        place = y + get_i32(places + pixel * 4)
        share = splat(get_f32(counts + pixel * 4))
        for channel in range(0, channels, WIDTH):
            count = min(WIDTH, channels - channel)
            total = splat(_ZERO)
            for tap in range(taps):
                offset = get_i32(offsets + tap * tap_bytes + pixel * 4)
                if offset >= 0:
                    where = x + offset + channel * 4
                    total = total + (load(where) if count == WIDTH else load_part(where, count))
            put(place + channel * 4, total / share, count)
