"""Arrays as integers with scales: ranges of values, weights by channels, biases by the scales of a product."""

import math
from typing import Any, Final

import numpy as np

from onnxlab import dtypes

Array = np.ndarray[Any, Any]

SYMMETRIC: Final = {8: 127, 7: 63}
"""By bits, the largest integer of a weight: both signs have the same numbers."""

_MOST_BIAS: Final = 2**30  # a sum of products is added to it in 32 bits
_TINY: Final = np.finfo(np.float32).tiny
_HUGE: Final = float(np.finfo(np.float32).max)


def of_range(low: float, high: float, kind: str) -> tuple[Array, Array]:
    """The scale and the zero point of a range of floats, zero included, so that it is exact."""
    low, high = min(low, 0.0), max(high, 0.0)
    if kind == "int8":
        return _scale(max(-low, high) / SYMMETRIC[8]), np.zeros((), np.int8)
    scale = _scale((high - low) / 255)
    return scale, np.asarray(np.clip(np.rint(-low / float(scale)), 0, 255), np.uint8)


def _scale(step: float) -> Array:
    """A step as a scale: 1 where there is no range, so that nothing is divided by zero."""
    return np.asarray(1.0 if step == 0 else min(max(step, float(_TINY)), _HUGE), np.float32)


def of_constant(array: Array, kind: str) -> list[Array]:
    """A constant as integers of the type of values, with its scale and zero point."""
    scale, zero = of_range(float(array.min(initial=0.0)), float(array.max(initial=0.0)), kind)
    info = np.iinfo(zero.dtype)
    levels = np.rint(array.astype(np.float64) / float(scale)) + int(zero)
    return [np.clip(levels, info.min, info.max).astype(zero.dtype), scale, zero]


def of_weight(array: Array, axis: int | None, bits: int = 8, least: Array | None = None) -> list[Array]:
    """A weight as int8, a scale for each channel of an axis or one for all, and zeros.

    Args:
        array: finite numbers.
        axis: of the channels; None for one scale.
        bits: 8, or 7 for a smaller range.
        least: what scales are at least, one for each channel or for all.
    """
    others = None if axis is None else tuple(other for other in range(array.ndim) if other != axis % array.ndim)
    peaks = np.max(np.abs(array), axis=others, keepdims=True, initial=0.0).astype(np.float64)
    most = float(np.nextafter(np.float32(_HUGE / SYMMETRIC[bits]), np.float32(0)))  # its product is finite
    steps = np.clip(peaks / SYMMETRIC[bits], _TINY, most)
    if least is not None:
        steps = np.maximum(steps, np.reshape(least, steps.shape))
    scales = steps.astype(np.float32)
    levels = np.clip(np.rint(array / scales), -SYMMETRIC[bits], SYMMETRIC[bits]).astype(np.int8)
    flat = scales.reshape(() if axis is None else -1)
    return [levels, flat, np.zeros(flat.shape, np.int8)]


def in_blocks(array: Array, axis: int, size: int, elem_type: int) -> list[Array]:
    """A weight in 4 bits, with a scale and a zero point for each block of elements along an axis.

    Args:
        array: finite numbers.
        axis: along which blocks are cut.
        size: elements of a block; the last one may be shorter.
        elem_type: INT4, whose zero points are 0, or UINT4.
    """
    starts, wide = np.arange(0, array.shape[axis], size), array.astype(np.float64)
    low = np.minimum(np.minimum.reduceat(wide, starts, axis), 0.0)
    high = np.maximum(np.maximum.reduceat(wide, starts, axis), 0.0)
    kind, (least, most) = dtypes.to_numpy(elem_type), (-7, 7) if elem_type == dtypes.INT4 else (0, 15)
    steps = np.maximum(-low, high) / most if elem_type == dtypes.INT4 else (high - low) / most
    scales = np.clip(steps, _TINY, _HUGE / 16).astype(np.float32)
    zeros = np.zeros(scales.shape) if elem_type == dtypes.INT4 else np.clip(np.rint(-low / scales), 0, most)
    levels = np.rint(wide / spread(scales, array, axis, size)) + spread(zeros, array, axis, size)
    return [np.clip(levels, least, most).astype(np.int8).astype(kind), scales, zeros.astype(np.int8).astype(kind)]


def spread(blocks: Array, array: Array, axis: int, size: int) -> Array:
    """Numbers of blocks, repeated for each element of an array."""
    return np.repeat(blocks, size, axis).take(np.arange(array.shape[axis]), axis)


def least_scales(bias: Array, scale: Array, channels: bool) -> Array:
    """The scales of a weight below which a bias would not fit into int32, of each channel or of all."""
    least = np.abs(bias.astype(np.float64)) / (float(scale) * _MOST_BIAS)
    return least if channels else np.asarray(least.max(initial=0.0))


def of_bias(bias: Array, scale: Array, weight_scales: Array) -> list[Array]:
    """A bias as int32, with the product of the scales of value and weight, and zeros."""
    scales = np.maximum(scale * weight_scales, _TINY).astype(np.float32)
    levels = np.rint(bias.astype(np.float64) / scales)
    limit = np.iinfo(np.int32).max
    return [np.clip(levels, -limit, limit).astype(np.int32), scales, np.zeros(scales.shape, np.int32)]


def error_of(array: Array, parts: list[Array], axis: int | None) -> float:
    """The error of integers with scales as percent of the array, both as the root of the mean square."""
    shape = [-1 if axis is not None and number == axis % array.ndim else 1 for number in range(array.ndim)]
    with np.errstate(all="ignore"):
        back = (parts[0].astype(np.float32) - parts[2].reshape(shape)) * parts[1].reshape(shape)
        size = float(np.linalg.norm(array))
        off = 100 * float(np.linalg.norm(back - array)) / size if size else 0.0
    return off if math.isfinite(off) else 0.0
