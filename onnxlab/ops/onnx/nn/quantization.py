"""Quantization: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and the integer products and convolutions.

Integer products run in float BLAS: sums stay exact as long as they are below 2^24 (float32) or 2^53 (float64).
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import conv_bytes, convolution_flops, matmul_bytes, product_flops, quantized_flops
from onnxlab.ops.base.kernel_helpers import Array, normal_axis, widen
from onnxlab.ops.base.prepared_constants import prepared
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, dims_text, elem_type
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.base.window_geometry import window
from onnxlab.ops.onnx.math.cast import convert
from onnxlab.ops.onnx.math.matmul import product, product_shape
from onnxlab.ops.onnx.nn.conv import check_kernel, conv_shape, convolve
from onnxlab.shapes import Fact, FactError, TensorFact

_INTEGER_RANGE = {
    dtypes.INT2: (-2, 1),
    dtypes.UINT2: (0, 3),
    dtypes.INT4: (-8, 7),
    dtypes.UINT4: (0, 15),
}


@cache
def integer_range(elem_type: int) -> tuple[int, int] | None:
    """Smallest and largest value of an integer type, None for another type."""
    if elem_type in _INTEGER_RANGE:
        return _INTEGER_RANGE[elem_type]
    dtype = dtypes.to_numpy(elem_type)
    return (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) if dtype.kind in "iu" else None


def along(parameter: Array, x: Array, axis: int, block_size: int, name: str) -> Array:
    """A scale or zero point shaped for `x`: of the tensor, of each slice along `axis`, or of blocks of them.

    Raises:
        ValueError: its shape fits none of the three.
    """
    if parameter.size == 1:
        return parameter.reshape(())
    axis = normal_axis(axis, x.ndim)
    if parameter.ndim == 1 and not block_size:
        if len(parameter) != x.shape[axis]:
            raise ValueError(f"{name} has {len(parameter)} elements: axis {axis} of x {x.shape} has {x.shape[axis]}")
        return parameter.reshape(-1, *(1,) * (x.ndim - axis - 1))
    if parameter.ndim != x.ndim:
        raise ValueError(f"{name} has shape {parameter.shape}: expected a scalar, [{x.shape[axis]}] or rank {x.ndim}")
    block = block_size or -(-x.shape[axis] // parameter.shape[axis])
    spread = np.repeat(parameter, block, axis)
    return spread[(*(slice(None),) * axis, slice(x.shape[axis]))]


def integer_values(x: Array) -> Array:
    """Quantized values as something NumPy computes with: 4- and 2-bit integers as int8 or uint8."""
    if x.dtype.kind == "V" and "int" in x.dtype.name:
        return x.astype(np.uint8 if x.dtype.name.startswith("u") else np.int8)
    return x


@kernel("QuantizeLinear", since=10)
def quantize_linear(
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    axis: int = 1,
    saturate: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
) -> Array:
    """saturate(round(x / scale) + zero point), ties to even; for a tensor, an axis or blocks."""
    if y_zero_point is not None:
        elem_type = dtypes.from_numpy(y_zero_point.dtype)
    else:
        elem_type = output_dtype or dtypes.UINT8
    limits = integer_range(elem_type)
    if y_scale.size == 1 and x.dtype == _SINGLE and x.ndim and limits is not None and limits[0] >= -(2**16):
        return _quantized_tensor(x, y_scale, y_zero_point, limits, elem_type)
    scale = along(widen(y_scale), x, axis, block_size, "y_scale")
    y = np.divide(x if x.dtype == np.float64 else x.astype(np.float32, copy=False), scale)
    if limits is None:  # small floats: the cast rounds
        if y_zero_point is not None:
            y = y + along(widen(y_zero_point), x, axis, block_size, "y_zero_point")
        return convert(np.asarray(y), elem_type, bool(saturate))
    y = np.rint(y)
    if y_zero_point is not None and np.any(integer_values(y_zero_point)):
        y = y + along(integer_values(y_zero_point), x, axis, block_size, "y_zero_point").astype(y.dtype)
    clipped = np.clip(y, *limits)
    narrow = np.int8 if limits[0] < 0 else np.uint8
    target = dtypes.to_numpy(elem_type)
    return np.asarray(clipped.astype(narrow).astype(target) if target.kind == "V" else clipped.astype(target))


def _quantized_tensor(
    x: Array, scale: Array, zero_point: Array | None, limits: tuple[int, int], elem_type: int
) -> Array:
    """Quantize with one scale for all elements, in as few passes as possible."""
    y = np.divide(x, _scalar(scale))
    np.rint(y, y)
    zero = 0 if zero_point is None else integer_values(zero_point).item()
    if zero:
        np.add(y, _single(zero), y)
    y.clip(*_ends(limits), y)  # np.clip takes a microsecond more
    target = dtypes.to_numpy(elem_type)
    if target.kind == "V":
        return y.astype(np.int8 if limits[0] < 0 else np.uint8).astype(target)
    return y.astype(target)


def _scalar(scale: Array) -> Array:
    """The only element of a scale, in an array of rank 0: float32 where it is of 16 bits."""
    wide = scale if scale.dtype == _SINGLE else widen(scale)
    return wide.reshape(()) if wide.ndim else wide


_SINGLE = np.dtype(np.float32)


@cache
def _ends(limits: tuple[int, int]) -> tuple[Array, Array]:
    """The limits as float32, in arrays: NumPy takes a microsecond for a Python number."""
    return _single(limits[0]), _single(limits[1])


@lru_cache(1024)
def _single(number: int) -> Array:
    return np.array(number, np.float32)


@kernel("DequantizeLinear", since=10)
def dequantize_linear(
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    """(x − zero point) · scale in the scale's type, or `output_dtype`."""
    if x_scale.size == 1 and x_scale.dtype == _SINGLE and x.dtype.char in "bBhH" and output_dtype in (0, 1):
        y = x.astype(_SINGLE)
        if x_zero_point is not None and (offset := x_zero_point.item()):
            np.subtract(y, _single(offset), y)
        return np.multiply(y, _scalar(x_scale), y)
    target = dtypes.to_numpy(output_dtype) if output_dtype else x_scale.dtype
    scale = along(widen(x_scale), x, axis, block_size, "x_scale")
    values = integer_values(x)
    if x_zero_point is not None and np.any(integer_values(x_zero_point)):
        zero = along(integer_values(x_zero_point), x, axis, block_size, "x_zero_point")
        if values.dtype.itemsize > 2:  # differences that float32 would round
            values, zero = values.astype(np.int64) - zero, np.zeros((), np.float32)
        y = np.subtract(values.astype(np.float32), zero.astype(np.float32))
        y = np.multiply(y, scale)
    else:
        y = np.multiply(values.astype(np.float32), scale)
    return np.asarray(y).astype(target, copy=False)


@kernel("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(x: Array) -> tuple[Array, Array, Array]:
    """Quantize to uint8 by the range of x, which is widened to hold 0: (y, scale, zero point).

    A NaN does not count for the range and becomes the lowest level.
    """
    low, high, is_plain = _range(x)
    scale = (high - low) / _LEVELS if high != low else _ONE
    zero = np.uint8(np.minimum(np.maximum(np.rint(-low / scale), _ZERO), _LEVELS))
    y = np.divide(x, scale, out=np.empty(x.shape, np.float32))
    np.rint(y, y)
    np.add(y, np.float32(zero), y)
    if is_plain:
        y.clip(*_ends((0, 255)), y)
    else:  # NaN is made the lowest level, which clip keeps
        np.fmin(np.fmax(y, _ZERO, y), _LEVELS, y)
    return y.astype(np.uint8), np.asarray(scale, np.float32), np.asarray(zero)


_ZERO, _ONE, _LEVELS = np.float32(0), np.float32(1), np.float32(255)


def _range(x: Array) -> tuple[Any, Any, bool]:
    """The least and the greatest of 0 and all numbers but NaN; and whether all quotients by the scale are numbers."""
    flat = x.reshape(-1)
    if flat.size and (low := flat[flat.argmin()]) == low:  # NaN would be the least
        low, high = min(low, _ZERO), max(flat[flat.argmax()], _ZERO)
        return low, high, bool(high - low < np.inf)
    return np.fmin.reduce(x, None, initial=_ZERO), np.fmax.reduce(x, None, initial=_ZERO), False


def _centered(x: Array, zero_point: Array | None) -> tuple[Array, float]:
    """x − zero point as float32, and the largest magnitude that it can have."""
    wide = x.astype(np.float32)
    if zero_point is not None and np.any(zero_point):
        wide -= zero_point.astype(np.float32)
    if not wide.size:
        return wide, 0.0
    return wide, max(float(wide.max()), -float(wide.min()))


def centered(b: Array, zero_point: Array | None) -> tuple[Array, float]:
    """`_centered`, computed once of constants."""
    return prepared("centered", _centered, b, zero_point)


def dynamic_product(
    a: Array, b: Array, largest: float, b_scale: Array, out: Array | None = None
) -> Array:  # fmt: skip
    """A quantized to uint8 by its range, times integers B held in float32 (none above `largest`), as float32.

    The result is that of DynamicQuantizeLinear, MatMulInteger and a scaling, without their conversions.
    """
    levels, scale = _levels(a)
    if 255 * largest * a.shape[-1] < 2**24:
        sums = product(levels, b, out)
        return np.multiply(sums, scale * b_scale, sums)
    return np.multiply(integer_product(levels, b, 255 * largest), scale * b_scale, out, dtype=np.float32)


def _levels(a: Array) -> tuple[Array, np.float32]:
    """The result of DynamicQuantizeLinear for `a`, less the zero point, as float32; and the scale.

    Every step of a recurrent layer calls this function: hence few calls of NumPy.
    """
    low, high, is_plain = _range(a)
    scale = (high - low) / _LEVELS if high != low else _ONE
    levels = np.divide(a, scale)
    np.rint(levels, levels)
    zero = np.rint(-low / scale)  # not above any level, since rounding is monotonic; but both ends may be rounded up
    if is_plain:
        return levels.clip(-zero, _LEVELS - zero, levels), scale
    return np.fmin(np.fmax(levels, -zero, levels), _LEVELS - zero, levels), scale  # NaN is made the lowest level


def integer_product(a: Array, b: Array, bound: float) -> Array:
    """a @ b of integers held in float32, as int32; `bound` is the largest |a·b| of two elements.

    The inner axis is cut into pieces whose sums float32 holds exactly.
    """
    inner = a.shape[-1]
    step = int(2**24 // bound) if bound else inner
    if step >= inner:
        return product(a, b).astype(np.int32)
    if step < 64 or b.ndim < 2:
        return product(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(np.int32)
    total = product(a[..., :step], b[..., :step, :]).astype(np.int32)
    for start in range(step, inner, step):
        total += product(a[..., start : start + step], b[..., start : start + step, :]).astype(np.int32)
    return total


def _row_parameter(parameter: Array | None, a: Array) -> Array | None:
    """A zero point or scale of A: a scalar, or one for each row."""
    if parameter is None or parameter.size == 1:
        return None if parameter is None else parameter.reshape(())
    return parameter[:, None] if parameter.ndim == 1 and a.ndim > 1 else parameter


@kernel("MatMulInteger", since=10)
def mat_mul_integer(a: Array, b: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None) -> Array:
    """(A − zero point) @ (B − zero point) as int32; zero points per tensor, row of A or column of B."""
    left, largest_left = _centered(a, _row_parameter(a_zero_point, a))
    right, largest_right = centered(b, b_zero_point)
    return integer_product(left, right, largest_left * largest_right)


def requantize(x: Array, scale: Array, zero_point: Array | None, dtype: np.dtype[Any]) -> Array:
    """saturate(round(x · scale) + zero point) of integer sums."""
    y = np.multiply(x, scale, dtype=np.float32)
    y = np.rint(y)
    if zero_point is not None:
        y = y + zero_point.astype(np.float32)
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(y, limits.min, limits.max).astype(dtype))


@kernel("QLinearMatMul", since=10)
def q_linear_mat_mul(
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    """The product of quantized matrices, quantized; scales and zero points per tensor, row of A or column of B."""
    if y_zero_point.dtype.kind == "V":
        left = (widen(a) - widen(a_zero_point)) * widen(a_scale)
        right = (widen(b) - widen(b_zero_point)) * widen(b_scale)
        y = product(left, right) / widen(y_scale) + widen(y_zero_point)
        return convert(y, dtypes.from_numpy(y_zero_point.dtype))
    sums = mat_mul_integer(a, b, a_zero_point, b_zero_point)
    row_scale = _row_parameter(widen(a_scale), a)
    out_scale = _row_parameter(widen(y_scale), a)
    scale = row_scale * widen(b_scale) / out_scale
    return requantize(sums, scale.reshape(()) if scale.size == 1 else scale,
                      _row_parameter(y_zero_point, a), y_zero_point.dtype)  # fmt: skip


def _centered_kernels(w: Array, zero_point: Array | None) -> tuple[Array, float]:
    """W − zero point (one, or one for each output channel) as float32, and the largest sum of a kernel's magnitudes."""
    if zero_point is not None and zero_point.size > 1:
        zero_point = zero_point.reshape(-1, *(1,) * (w.ndim - 1))
    weights, _ = _centered(w, zero_point)
    return weights, float(np.abs(weights).sum(axis=tuple(range(1, w.ndim)), dtype=np.float64).max(initial=0))


def _integer_convolution(
    ctx: RunContext,
    x: Array,
    w: Array,
    x_zero_point: Array | None,
    w_zero_point: Array | None,
    group: int,
    geometry: dict[str, Any],
) -> Array:
    """Convolve (X − zero point) with (W − zero point); exact sums as floats."""
    shape = window(x, w.shape[2:], **geometry)
    data, largest = _centered(x, x_zero_point)
    weights, heaviest = prepared("centered kernels", _centered_kernels, w, w_zero_point)
    bound = largest * heaviest
    if bound >= 2**24:
        data, weights = data.astype(np.float64), weights.astype(np.float64)
    return convolve(ctx, data, weights, None, shape, group)


@kernel("ConvInteger", since=10, context=True)
def conv_integer(
    ctx: RunContext,
    x: Array,
    w: Array,
    x_zero_point: Array | None = None,
    w_zero_point: Array | None = None,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """The convolution of (X − zero point) with (W − zero point) as int32; the padding is the zero point."""
    check_kernel(w, kernel_shape)
    geometry = {"strides": strides, "pads": pads, "dilations": dilations, "auto_pad": auto_pad}
    y = _integer_convolution(ctx, x, w, x_zero_point, w_zero_point, group, geometry)
    return y.astype(np.int64).astype(np.int32)


@kernel("QLinearConv", since=10, context=True)
def q_linear_conv(
    ctx: RunContext,
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    b: Array | None = None,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """The convolution of quantized tensors, quantized; W's scale may be one for each output channel.

    The bias is int32 in units of x_scale · w_scale.
    """
    check_kernel(w, kernel_shape)
    geometry = {"strides": strides, "pads": pads, "dilations": dilations, "auto_pad": auto_pad}
    sums = _integer_convolution(ctx, x, w, x_zero_point, w_zero_point, group, geometry)
    ones = (1,) * (x.ndim - 2)
    if b is not None:
        sums = sums + b.reshape(-1, *ones)
    scale = (x_scale.reshape(()) * w_scale.reshape(-1) / y_scale.reshape(())).astype(np.float32)
    return requantize(sums, scale.reshape(-1, *ones), y_zero_point.reshape(()), y_zero_point.dtype)


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("MatMulInteger", since=10)
def matmul_integer(ctx: InferContext, attributes: Attributes, a: Fact, b: Fact, *_zero_points: MaybeFact) -> Fact:
    """The product in int32."""
    return TensorFact(dtypes.INT32, product_shape(a.shape, b.shape))


@rule("QLinearMatMul", since=10)
def qlinear_matmul(
    ctx: InferContext,
    attributes: Attributes,
    a: Fact,
    a_scale: Fact,
    a_zero_point: Fact,
    b: Fact,
    b_scale: Fact,
    b_zero_point: Fact,
    y_scale: Fact,
    y_zero_point: Fact,
) -> Fact:
    """The product in the type of the output's zero point."""
    return TensorFact(elem_type(y_zero_point) or elem_type(a), product_shape(a.shape, b.shape))


@rule("ConvInteger", since=10)
def conv_integer_rule(ctx: InferContext, attributes: Attributes, x: Fact, w: Fact, *_zero_points: MaybeFact) -> Fact:
    """A convolution in int32."""
    return TensorFact(dtypes.INT32, conv_shape(ctx, attributes, x, w))


@rule("QLinearConv", since=10)
def qlinear_conv(
    ctx: InferContext,
    attributes: Attributes,
    x: Fact,
    x_scale: Fact,
    x_zero_point: Fact,
    w: Fact,
    w_scale: Fact,
    w_zero_point: Fact,
    y_scale: Fact,
    y_zero_point: Fact,
    bias: MaybeFact = None,
) -> Fact:
    """A convolution in the type of the output's zero point."""
    return TensorFact(elem_type(y_zero_point) or elem_type(x), conv_shape(ctx, attributes, x, w))


def _check_zero_point(scale: Fact, zero_point: MaybeFact) -> None:
    """Raise FactError where the zero point is known to be of another shape; of one element both forms will do."""
    ours, theirs = scale.shape, zero_point.shape if isinstance(zero_point, TensorFact) else None
    if ours is None or theirs is None or ours == theirs or not all(isinstance(dim, int) for dim in (*ours, *theirs)):
        return
    if not ({ours, theirs} <= {(), (1,)}):
        raise FactError(
            f"its scale has the shape {dims_text(ours)}, its zero point {dims_text(theirs)}", code="zero-point-shape",
            expected=dims_text(ours), found=dims_text(theirs), hint="give the zero point the shape of the scale",
        )  # fmt: skip


@rule("QuantizeLinear", since=10)
def quantize_linear_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact, zero_point: MaybeFact = None
) -> Fact:
    """The input's shape in the type of the zero point, else of `output_dtype`, else uint8."""
    _check_zero_point(scale, zero_point)
    elem = elem_type(zero_point) or attributes.get("output_dtype") or dtypes.UINT8
    return TensorFact(elem, x.shape)


@rule("DequantizeLinear", since=10)
def dequantize_linear_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact, zero_point: MaybeFact = None
) -> Fact:
    """The input's shape in the type of the scale."""
    _check_zero_point(scale, zero_point)
    return TensorFact(attributes.get("output_dtype") or elem_type(scale) or dtypes.FLOAT, x.shape)


@rule("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact, Fact]:
    """The input's shape in uint8, a scale and a zero point."""
    return TensorFact(dtypes.UINT8, x.shape), TensorFact(dtypes.FLOAT, ()), TensorFact(dtypes.UINT8, ())


# -- traits ------------------------------------------------------------------------------------------------------------


def _qlinear_conv_bytes(attributes: Mapping[str, Any], x: Any, x_scale: Any, x_zero: Any, w: Any, *rest: Any) -> int:
    return conv_bytes(attributes, x, w)


def _quantized_matmul_bytes(
    attributes: Mapping[str, Any], a: Any, a_scale: Any, a_zero: Any, b: Any, *rest: Any
) -> int:
    return matmul_bytes(attributes, a, b)


traits(
    "ConvInteger",
    OpTraits(
        category="convolution",
        shape="shapes",
        flops=convolution_flops,
        elements="none",
        out_bytes=conv_bytes,
        signature="N ? ...|M ? ...",
        layer="convolution",
    ),
)
traits(
    "DequantizeLinear",
    OpTraits(category="quantization", shape="shapes", flops=1, elements="none", size_arithmetic=True),
)
traits(
    "DynamicQuantizeLinear QuantizeLinear", OpTraits(category="quantization", shape="shapes", flops=1, elements="none")
)
traits(
    "MatMulInteger",
    OpTraits(
        category="matrix", shape="shapes", flops=product_flops, elements="none", out_bytes=matmul_bytes, layer="product"
    ),
)
traits(
    "QLinearConv",
    OpTraits(
        category="convolution",
        shape="shapes",
        flops=quantized_flops,
        elements="none",
        out_bytes=_qlinear_conv_bytes,
        layer="convolution",
    ),
)
traits(
    "QLinearMatMul",
    OpTraits(
        category="matrix",
        shape="shapes",
        flops=quantized_flops,
        elements="none",
        out_bytes=_quantized_matmul_bytes,
        layer="product",
    ),
)
