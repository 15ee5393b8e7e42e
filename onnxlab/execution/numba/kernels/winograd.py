"""Winograd's minimal filtering F(4×4, 3×3): 36 products of small matrices in place of 9 taps over 16 pixels.

The input transform turns each 6×6 patch of the image (4×4 outputs and what their windows need around them) into 36
planes [tiles, channels]; `gemm` multiplies each with its plane of transformed weights; the output transform turns the
36 results of a tile into 4×4 pixels, adds bias and residual, and clamps. Channels are the lanes. For small images,
F(2×2, 3×3) does the same with patches of 4×4, 16 planes and 2×2 outputs.

Where a tile holds a pixel that is not finite, or large beside the others, the planes get its pixels as they are
instead, and the output transform does what a convolution says, tap by tap.

A record: image (x of the input, y of the output transform) with its strides and size, planes with their stride,
tiles, padding, and what is done to results; a byte for each such wild tile, the planes with their pixels, their
channels, the weights [taps, channels, columns], the size of what is made, and the edge of a patch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onnxlab.execution.numba.kernels.simd.lanes import (
    BYTES,
    WIDTH,
    float_of_bits,
    fma,
    greater,
    largest,
    less,
    select,
    splat,
    sum_of,
    vabs,
    vmax,
)
from onnxlab.execution.numba.kernels.simd.memory import get_f32, get_u8, load, put_f32, put_u8, store, word
from onnxlab.execution.numba.kernels.simd.tail_vectors import get, put
from onnxlab.execution.numba.machine.object_cache import helper, kernel

f = np.float32


@helper
def _forward(edge, source, step, target, stride, count):
    """Bᵀ times six vectors, `step` bytes apart, to six others; or times four."""
    a, b, c, d = load(source), load(source + step), load(source + 2 * step), load(source + 3 * step)
    if edge == 4:
        put(target, a - c, count)
        put(target + stride, b + c, count)
        put(target + 2 * stride, c - b, count)
        put(target + 3 * stride, b - d, count)
        return
    e, g = load(source + 4 * step), load(source + 5 * step)
    four, five, two = splat(f(4.0)), splat(f(5.0)), splat(f(2.0))
    even, odd = e - four * c, d - four * b
    wide, narrow = e - c, two * (d - b)
    put(target, fma(four, a, e) - five * c, count)
    put(target + stride, even + odd, count)
    put(target + 2 * stride, even - odd, count)
    put(target + 3 * stride, wide + narrow, count)
    put(target + 4 * stride, wide - narrow, count)
    put(target + 5 * stride, fma(four, b, g) - five * d, count)


@helper
def _pixel(record, base, top, left, place, channel, count):
    """A vector of one of the pixels of a patch; zeros around the image."""
    edge = word(record, 31)
    i = place // edge
    y, x = top + i, left + place - i * edge
    value = splat(f(0.0))
    if y >= 0 and y < word(record, 6) and x >= 0 and x < word(record, 7):
        value = get(base + y * word(record, 10) + x * word(record, 11) + channel * 4, count)
    return value


@helper
def _is_wild(record, base, top, left, rest, sizes):
    """Whether some pixel of a tile is large beside all that some output reads; `sizes` is room for 36 numbers."""
    channels, edge = word(record, 5), word(record, 31)
    most = f(0.0)
    for place in range(edge * edge):
        magnitude = splat(f(0.0))
        for channel in range(0, channels, WIDTH):
            magnitude = vmax(magnitude, vabs(_pixel(record, base, top, left, place, channel, channels - channel)))
        size = largest(magnitude)
        put_f32(sizes + place * 4, size)
        most = max(most, size)
    down = min(edge - 2, word(record, 29) - rest // word(record, 9) * (edge - 2))
    across = min(edge - 2, word(record, 30) - rest % word(record, 9) * (edge - 2))
    for i in range(down):
        for j in range(across):
            read = f(0.0)
            for tap in range(9):
                read = max(read, get_f32(sizes + ((i + tap // 3) * edge + j + tap % 3) * 4))
            if most > f(256.0) * read:
                return True
    return False


@helper
def _keep_pixels(record, base, top, left, tile):
    """Give the planes the pixels of a tile as they are."""
    planes, plane_bytes, channels = word(record, 3), word(record, 4), word(record, 5)
    for place in range(word(record, 31) * word(record, 31)):
        for channel in range(0, channels, WIDTH):
            count = channels - channel
            value = _pixel(record, base, top, left, place, channel, count)
            put(planes + place * plane_bytes + (tile * channels + channel) * 4, value, count)


@helper
def _by_taps(record, tile, channel, count, target):
    """The outputs of a wild tile, each from what it reads alone."""
    patches, patch_bytes, inner, edge = word(record, 25), word(record, 26), word(record, 27), word(record, 31)
    step = word(record, 5) * 4
    for i in range(edge - 2):
        for j in range(edge - 2):
            value = splat(f(0.0))
            for tap in range(9):
                source = patches + ((i + tap // 3) * edge + j + tap % 3) * patch_bytes + tile * inner * 4
                weights = word(record, 28) + tap * inner * step + channel * 4
                for c in range(inner):
                    value = fma(splat(get_f32(source + c * 4)), get(weights + c * step, count), value)
            store(target + (i * (edge - 2) + j) * BYTES, value)


@kernel
def winograd_input(record: Any, unit: Any, scratch: Any) -> None:
    """Transform one unit of input tiles, Bᵀ d B."""
    image, planes, plane_bytes, channels = word(record, 2), word(record, 3), word(record, 4), word(record, 5)
    height, width, tiles_down, tiles_across = word(record, 6), word(record, 7), word(record, 8), word(record, 9)
    first, edge = unit * word(record, 15), word(record, 31)
    turned = scratch + edge * edge * BYTES
    for tile in range(first, min(first + word(record, 15), word(record, 14))):
        number = tile // (tiles_down * tiles_across)
        rest = tile - number * tiles_down * tiles_across
        top = rest // tiles_across * (edge - 2) - word(record, 12)
        left = rest % tiles_across * (edge - 2) - word(record, 13)
        base = image + number * word(record, 16)
        squares = splat(f(0.0))
        for channel in range(0, channels, WIDTH):
            count = channels - channel
            for i in range(edge):
                for j in range(edge):
                    y, x = top + i, left + j
                    value = splat(f(0.0))
                    if y >= 0 and y < height and x >= 0 and x < width:
                        value = get(base + y * word(record, 10) + x * word(record, 11) + channel * 4, count)
                    squares = fma(value, value, squares)
                    store(scratch + (i * edge + j) * BYTES, value)
            for j in range(edge):
                _forward(edge, scratch + j * BYTES, edge * BYTES, turned + j * BYTES, edge * BYTES, WIDTH)
            target = planes + (tile * channels + channel) * 4
            for i in range(edge):
                at = target + i * edge * plane_bytes
                _forward(edge, turned + i * edge * BYTES, BYTES, at, plane_bytes, count)
        total, wild = sum_of(squares), False
        if not total < f(1 << 24) * f(1 + channels // 64):  # of ordinary activations it is less
            wild = not total < f(np.inf) or _is_wild(record, base, top, left, rest, scratch)
            if wild:
                _keep_pixels(record, base, top, left, tile)
        put_u8(word(record, 24) + tile, 1 if wild else 0)


@helper
def _backward(edge, source, step, target, stride):
    """Aᵀ times six vectors to four, or four to two."""
    a, b, c, d = load(source), load(source + step), load(source + 2 * step), load(source + 3 * step)
    if edge == 4:
        store(target, a + b + c)
        store(target + stride, b - c - d)
        return
    e, g = load(source + 4 * step), load(source + 5 * step)
    even, odd, wide, narrow = b + c, b - c, d + e, d - e
    store(target, a + even + wide)
    store(target + stride, fma(splat(f(2.0)), narrow, odd))
    store(target + 2 * stride, fma(splat(f(4.0)), wide, even))
    store(target + 3 * stride, fma(splat(f(8.0)), narrow, odd) + g)


@kernel
def winograd_output(record: Any, unit: Any, scratch: Any) -> None:
    """Transform one unit of products back, Aᵀ m A, and add bias and residual."""
    image, planes, plane_bytes, channels = word(record, 2), word(record, 3), word(record, 4), word(record, 5)
    height, width, tiles_down, tiles_across = word(record, 6), word(record, 7), word(record, 8), word(record, 9)
    bias, residual = word(record, 17), word(record, 18)
    low, high = splat(float_of_bits(word(record, 22))), splat(float_of_bits(word(record, 23)))
    first, edge = unit * word(record, 15), word(record, 31)
    side, turned = edge - 2, scratch + edge * edge * BYTES
    for tile in range(first, min(first + word(record, 15), word(record, 14))):
        number = tile // (tiles_down * tiles_across)
        rest = tile - number * tiles_down * tiles_across
        top, left = rest // tiles_across * side, rest % tiles_across * side
        base = image + number * word(record, 16)
        for channel in range(0, channels, WIDTH):
            count = channels - channel
            source = planes + (tile * channels + channel) * 4
            if get_u8(word(record, 24) + tile):
                _by_taps(record, tile, channel, count, scratch)
            else:
                for k in range(edge * edge):
                    store(scratch + k * BYTES, get(source + k * plane_bytes, count))
                for j in range(edge):
                    _backward(edge, scratch + j * BYTES, edge * BYTES, turned + j * BYTES, edge * BYTES)
                for i in range(side):
                    _backward(edge, turned + i * edge * BYTES, BYTES, scratch + i * side * BYTES, BYTES)
            add = splat(f(0.0))
            if bias:
                add = get(bias + channel * 4, count)
            for i in range(min(side, height - top)):
                for j in range(min(side, width - left)):
                    value = load(scratch + (i * side + j) * BYTES) + add
                    if residual:
                        where = residual + number * word(record, 19) + (top + i) * word(record, 20)
                        value = value + get(where + (left + j) * word(record, 21) + channel * 4, count)
                    value = select(less(value, low), low, value)
                    value = select(greater(value, high), high, value)
                    where = base + (top + i) * word(record, 10) + (left + j) * word(record, 11) + channel * 4
                    put(where, value, count)
