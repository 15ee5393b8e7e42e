"""Convolutions of 3×3 windows by Winograd's F(4×4, 3×3) as records: transform, 36 products, transform back.

The algorithm takes a quarter of the multiplications and rounds more: on activations of ordinary size the error is about
ten times that of a direct convolution, some 1e-6 of the largest magnitude. A pixel that is not finite or very large
would affect outputs that do not depend on it, so tiles with such a pixel are convolved directly.
`NumbaProvider(precise=True)` does without the algorithm.

Small images have few tiles of 4×4 pixels, by which four times the weights of the convolution would be multiplied, and
reading these takes longer. They are convolved by F(2×2, 3×3): less than half of the multiplications, and not twice the
weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf, prod

import numpy as np

from onnxlab.execution.numba.lowering.matrix_products import (
    Product,
    bits,
    emit_product,
    replaceable,
    scaled_weights,
    weights_key,
)
from onnxlab.execution.numba.machine.host import host
from onnxlab.execution.numba.plan.builder import PlanBuilder, Word
from onnxlab.execution.numba.plan.memory import ALIGNMENT
from onnxlab.execution.numba.plan.views import Array, View
from onnxlab.execution.numba.plan.weight_packing import Packed
from onnxlab.ops.base.window_geometry import Window

_WEIGHTS = {
    4: np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24,
    2: np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]) / 2,
}  # by the pixels that a tile has in a row
_BAND = 1 << 21  # bytes of transformed tiles beyond which an image is convolved in bands
_AT_ONCE = 1 << 14  # pairs of channels whose weights are transformed together, in the processor's cache
_LEAST = 400  # channels times pixels for each element of a vector, from which the algorithm gains; measured


def suits(window: Window, batch: int, channels: int, out_channels: int, group: int) -> bool:
    """Whether a convolution gains: 3×3, steps of one, and channels and an image that are not too small.

    Products take time for each pair of channels, transforms for each channel; wide vectors speed up the products more.
    """
    lanes, channel_mean = host().lanes, 2 * channels * out_channels / max(1, channels + out_channels)
    return (
        (window.kernel, window.strides, window.dilations, group) == ((3, 3), (1, 1), (1, 1), 1)
        and channel_mean >= 1.75 * lanes
        and min(window.output) > 5
        and batch * prod(window.output) * channel_mean >= _LEAST * lanes
    )


def side_of(images: int, output: Sequence[int]) -> int:
    """The pixels of a tile in a row: 4, or 2 where a plane of weights would be read for few tiles; measured."""
    return 4 if 2 * images * prod(-(-size // 4) for size in output) >= host().lanes else 2


def transformed(side: int, weights: Array) -> Array:
    """[1, 9 * channels, columns], taps first, to [planes, channels, columns]."""
    factors, taps = _WEIGHTS[side], weights.reshape(3, 3, -1)
    planes = np.empty(((side + 2) ** 2, taps.shape[2]), np.float32)
    for first in range(0, taps.shape[2], _AT_ONCE):
        planes[:, first : first + _AT_ONCE] = np.einsum(
            "ai,bj,ijk->abk", factors, factors, taps[..., first : first + _AT_ONCE].astype(np.float64), optimize=True
        ).reshape(len(planes), -1)
    return planes.reshape(len(planes), -1, weights.shape[2])


def _image_words(image: View, planes: View) -> dict[str, Word]:
    """The words of an image, and of [planes, tiles, channels] of its tiles, in the records of both transforms."""
    return {
        "image": image.where, "planes": planes.where, "plane_bytes": planes.strides[0], "channels": planes.shape[2],
        "height": image.shape[2], "width": image.shape[3], "row": image.strides[2], "pixel": image.strides[3],
        "image_bytes": image.strides[0],
    }  # fmt: skip


def emit_winograd(builder: PlanBuilder, product: Product, window: Window, packed: Packed) -> View:
    """Append the records of a convolution that `suits`; returns where its result is."""
    side = side_of(product.x.shape[0], window.output)
    for band, begin in _bands(product, window, side):
        _emit_band(builder, band, begin, packed, side)
    return product.target


def _bands(product: Product, window: Window, side: int) -> Iterator[tuple[Product, tuple[int, int]]]:
    """The convolution of some rows of the image after the other, so that transformed tiles take little memory.

    Each with the pixels of padding above and left of it.
    """
    x, target, (above, left) = product.x, product.target, window.begin
    tiles = x.shape[0] * -(-target.shape[2] // side) * -(-target.shape[3] // side)
    count = -(-((side + 2) ** 2) * 4 * tiles * (x.shape[1] + product.columns) // _BAND)
    rows = -(-target.shape[2] // (side * count)) * side
    if product.residual is not None or above > 1 or target.shape[2] > x.shape[2]:
        rows = target.shape[2]
    for first in range(0, target.shape[2], rows):
        lines, skipped = min(rows, target.shape[2] - first), max(0, first - above)
        part = replace(
            product,
            x=x.at(skipped * x.strides[2], (*x.shape[:2], x.shape[2] - skipped, x.shape[3]), x.strides),
            target=target.at(first * target.strides[2], (*target.shape[:2], lines, target.shape[3]), target.strides),
        )
        yield part, (max(0, above - first), left)


def _emit_band(builder: PlanBuilder, product: Product, begin: tuple[int, int], packed: Packed, side: int) -> None:
    x, target, columns, planes = product.x, product.target, product.columns, (side + 2) ** 2
    down, across = -(-target.shape[2] // side), -(-target.shape[3] // side)
    tiles = x.shape[0] * down * across
    unit = max(1, -(-tiles // 16))
    spread, products = (  # a line apart: at distances of powers of two, planes would share a few lines of the cache
        builder.allocate((planes, tiles, width), np.float32, (tiles * width * 4 + ALIGNMENT, width * 4, 4))
        for width in (x.shape[1], columns)
    )
    wild, units = builder.allocate((tiles,), np.uint8), -(-tiles // unit)
    tiling: dict[str, Word] = {
        "tiles_down": down, "tiles_across": across, "tiles": tiles, "unit_tiles": unit, "edge": side + 2,
    }  # fmt: skip
    words = tiling | _image_words(x, spread) | {
        "top": begin[0], "left": begin[1], "wild": wild.where, "made_height": target.shape[2],
        "made_width": target.shape[3],
    }  # fmt: skip
    builder.emit("winograd_input", units, words, [x], [spread, wild], work=spread.size * 0.2)
    emit_product(builder, _planes(product, spread, products, side), packed)
    taps = packed.made((*weights_key(product), "taps"), scaled_weights(product).then(np.ascontiguousarray))
    residual, bias = product.residual, product.bias
    words = tiling | _image_words(target, products) | {
        "low": bits(product.low), "high": bits(product.high), "wild": wild.where, "patches": spread.where,
        "patch_bytes": spread.strides[0], "inner": x.shape[1], "taps": taps.where,
        "bias": 0 if bias is None else builder.keep(np.ascontiguousarray(bias.reshape(-1), np.float32)),
    }  # fmt: skip
    if residual is not None:
        words |= {"residual": residual.where, "residual_bytes": residual.strides[0],
                  "residual_row": residual.strides[2], "residual_pixel": residual.strides[3]}  # fmt: skip
    reads, over = [products, residual, spread, wild, taps], replaceable(residual, target)
    builder.emit("winograd_output", units, words, reads, [target], products.size * 0.2, over)


def _planes(product: Product, spread: View, products: View, side: int) -> Product:
    """The products of transformed tiles with transformed weights."""
    steps = np.array([spread.strides[0], 0, 0, products.strides[0], products.strides[0]], np.int64)
    return replace(
        product, x=spread, offsets=spread.at(0, spread.shape[1:], spread.strides[1:]).offsets(1)[None],
        length=spread.shape[2], target=products, axis=2,
        batches=np.arange(spread.shape[0])[:, None] * steps, groups=spread.shape[0], scale=None, bias=None,
        places=products.at(0, products.shape[1:], products.strides[1:]).offsets(1), residual=None, low=-inf, high=inf,
        constant=scaled_weights(product).then(partial(transformed, side)), window=None,
        key=(*weights_key(product), "winograd", side),
    )  # fmt: skip
