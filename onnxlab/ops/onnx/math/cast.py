"""Conversions between element types: Cast, CastLike, BitCast."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.derivatives import derivative, unary
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.known_elements import whole
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import computed, elem_type, like
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Expr, Fact, FactError, TensorFact, at_least, floor_div

_SATURATING = {
    dtypes.FLOAT8E4M3FN,
    dtypes.FLOAT8E4M3FNUZ,
    dtypes.FLOAT8E5M2,
    dtypes.FLOAT8E5M2FNUZ,
}
_ALWAYS_SATURATING = {dtypes.FLOAT4E2M1, dtypes.FLOAT6E2M3, dtypes.FLOAT6E3M2}
_LOW_INTEGERS = {dtypes.INT4: 4, dtypes.UINT4: 4, dtypes.INT2: 2, dtypes.UINT2: 2}


@kernel("Cast", since=6)
def cast(x: Array, to: int, saturate: int = 1, round_mode: str = "up") -> Array:
    """`x` as another element type.

    Floats become integers by truncation, numbers strings and strings numbers as C prints and reads them; the
    small float types saturate unless `saturate` is 0.
    """
    return convert(x, int(to), bool(saturate), round_mode)


@kernel("Cast", since=1)
def cast_1(x: Array, to: str) -> Array:
    """Cast-6 with the type by its name in onnx.proto."""
    return convert(x, dtypes.parse(to))


@kernel("CastLike", since=15)
def cast_like(x: Array, target_type: Array, saturate: int = 1, round_mode: str = "up") -> Array:
    """`x` as the element type of another tensor."""
    return convert(x, dtypes.from_numpy(target_type.dtype), bool(saturate), round_mode)


@kernel("BitCast", since=26)
def bit_cast(x: Array, to: int) -> Array:
    """The same bits read as another type of the same width."""
    target = dtypes.to_numpy(int(to))
    source = dtypes.from_numpy(x.dtype)
    if dtypes.bits(source) != dtypes.bits(int(to)) or not dtypes.bits(source):
        raise ValueError(f"{dtypes.name(source)} and {dtypes.name(int(to))} differ in width: BitCast keeps the bits")
    low = dtypes.bits(source)
    if low >= 8:
        return np.ascontiguousarray(x).view(target).reshape(x.shape)
    # stored one to a byte: unsigned values are the bits themselves, signed ones their low bits
    bits = np.ascontiguousarray(x).view(np.uint8) & ((1 << low) - 1)
    if dtypes.name(int(to)).startswith("int"):
        return _wrap(bits, low, True).astype(target).reshape(x.shape)
    return bits.view(target).reshape(x.shape)


def convert(x: Array, elem_type: int, saturate: bool = True, round_mode: str = "up") -> Array:
    """Return `x` as `elem_type`, itself where it is that already."""
    dtype = dtypes.to_numpy(elem_type)
    if x.dtype == dtype:
        return x
    if x.dtype == object:
        return _from_strings(x, elem_type)
    if elem_type == dtypes.STRING:
        return _to_strings(x)
    if elem_type in _LOW_INTEGERS:
        return _to_low_integers(x, elem_type)
    if elem_type == dtypes.FLOAT8E8M0:
        return _to_e8m0(x.astype(np.float32), saturate, round_mode)
    if elem_type in _ALWAYS_SATURATING or (elem_type in _SATURATING and saturate):
        return saturated(x, dtype)
    if x.dtype.kind == "V" and dtype.kind in "iub":
        return x.astype(np.float32).astype(dtype)  # ml_dtypes converts through float32 too, but not to every type
    return x.astype(dtype)


def saturated(x: Array, dtype: np.dtype[Any]) -> Array:
    """Round to a small float type, values beyond its range (infinities too) to its largest; NaN stays."""
    import ml_dtypes

    largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    wide = x.astype(np.float32)
    return np.clip(wide, -largest, largest, out=wide).astype(dtype)


def _to_low_integers(x: Array, elem_type: int) -> Array:
    """Truncate, then keep the lowest bits, as C does for wider types."""
    bits = _LOW_INTEGERS[elem_type]
    whole = x.astype(np.float32) if x.dtype.kind == "V" else x
    signed = dtypes.name(elem_type).startswith("int")
    return _wrap(whole.astype(np.int64), bits, signed).astype(dtypes.to_numpy(elem_type))


def _wrap(x: Array, bits: int, signed: bool) -> Array:
    """The lowest `bits` of integers, sign-extended where signed."""
    low = x.astype(np.int64) & ((1 << bits) - 1)
    return (low - ((low >> (bits - 1)) << bits) if signed else low).astype(np.int8 if signed else np.uint8)


def _to_e8m0(x: Array, saturate: bool, round_mode: str) -> Array:
    """Round to a power of two, stored as its exponent + 127; 255 is NaN."""
    if round_mode not in ("up", "down", "nearest"):
        raise ValueError(f"round_mode is {round_mode!r}: expected up, down or nearest")
    fraction, exponent = np.frexp(np.abs(x))  # |x| = fraction · 2^exponent, 0.5 ≤ fraction < 1
    up = {"up": fraction > 0.5, "down": fraction > 2, "nearest": fraction >= 0.75}[round_mode]
    biased = exponent.astype(np.int64) - 1 + 127 + up
    biased = np.where(x == 0, -1, np.where(np.isinf(x), 255, biased))
    bad = np.isnan(x)
    if saturate:
        biased = np.clip(biased, 0, 254)
    else:
        bad |= (biased < 0) | (biased > 254)
    return np.where(bad, 255, biased).astype(np.uint8).view(dtypes.to_numpy(dtypes.FLOAT8E8M0))


def _to_strings(x: Array) -> Array:
    """Numbers as text: the digits that ONNX Runtime prints, NaN, INF and -INF."""
    kind = x.dtype.kind
    if kind in "iu":
        text: Callable[[Any], str] = str
    elif kind == "b":
        text = lambda value: str(int(value))  # noqa: E731
    else:
        digits = 17 if x.dtype == np.float64 else 8
        text = lambda value: _float_text(float(value), digits)  # noqa: E731
    result = np.empty(x.shape, object)
    result.reshape(-1)[:] = [text(value) for value in x.reshape(-1).tolist()]
    return result


def _float_text(value: float, digits: int) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "INF" if value > 0 else "-INF"
    return f"{value:.{digits}g}"


def _from_strings(x: Array, elem_type: int) -> Array:
    """Text as numbers.

    Raises:
        ValueError: a text is no number.
    """
    dtype = dtypes.to_numpy(elem_type)
    parse: Callable[[str], Any] = int if dtype.kind in "iu" else float
    values = np.empty(x.shape, np.int64 if parse is int else np.float64)
    try:
        values.reshape(-1)[:] = [parse(text) for text in x.reshape(-1)]
    except ValueError as error:
        raise ValueError(f"input holds a text that is no {dtypes.name(elem_type)}: {error}") from None
    return convert(values, elem_type)


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("Cast")
def cast_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape in the type `to`; known elements converted as C does."""
    to = attributes["to"]
    if not isinstance(to, int) or to not in dtypes.ELEM_TYPES:
        raise FactError(
            f"attribute to={to} is no element type",
            code="bad-attribute",
            expected="a TensorProto.DataType",
            found=str(to),
        )
    return _converted(x, to)


@rule("CastLike", since=15)
def cast_like_rule(ctx: InferContext, attributes: Attributes, x: Fact, target: Fact) -> Fact:
    """The input's shape in the type of the second input."""
    return _converted(x, elem_type(target))


def _converted(x: Fact, to: int) -> Fact:
    integral = dtypes.is_integer(to)

    def convert(item: Any) -> Any:
        if isinstance(item, Expr):
            if integral and not whole(item):
                return floor_div(item, 1) if at_least(item, 0) else None
            return item if to != dtypes.BOOL else (True if at_least(item, 1) else None)
        if to == dtypes.BOOL:
            return bool(item)
        return int(item) if integral else item

    return computed(like(None, x.shape) if not to else TensorFact(to, x.shape), (x,), convert)


# -- gradients ---------------------------------------------------------------------------------------------------------


derivative("Cast")(unary(lambda x, y, g, a: g))


# -- traits ------------------------------------------------------------------------------------------------------------


traits("BitCast", OpTraits(category="elementwise", shape="shapes", flops=0, zero_signs=(0,)))
traits(
    "Cast",
    OpTraits(category="elementwise", shape="shapes", flops=0, elements="all", size_arithmetic=True, forwards=True),
)
traits("CastLike", OpTraits(category="elementwise", shape="shapes", flops=0, elements="all"))
