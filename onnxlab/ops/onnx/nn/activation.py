"""Activation functions: rectifiers, sigmoids, GELU and its kin, Softmax, LogSoftmax, Hardmax, Clip."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import exp, prod
from typing import Any

import numpy as np

from onnxlab.limits import InferContext
from onnxlab.ops.base.derivatives import Arrays, derivative, unary
from onnxlab.ops.base.half_arithmetic import BLOCK
from onnxlab.ops.base.kernel_helpers import Array, blocked, normal_axis, scratch, widened
from onnxlab.ops.base.known_elements import greatest, least
from onnxlab.ops.base.registry import Attributes, in_place, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, along_axis, computed, dims_text, known_of, same_as_first
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.onnx.math.unary import consuming, erf, half_erf
from onnxlab.shapes import Fact, FactError

_SINGLE = np.dtype(np.float32)
_ZERO, _ONE, _INFINITY = np.zeros((), _SINGLE), np.ones((), _SINGLE), np.full((), np.inf, _SINGLE)
"""Arrays of rank 0: ufuncs take them several times faster than scalars."""
_HALF = np.full((), 0.5, _SINGLE)


@kernel("Relu", since=6)
def relu(x: Array) -> Array:
    """max(x, 0)."""
    if x.dtype == _SINGLE:
        # with a number, clip is three times as fast as maximum, but takes longer to begin
        return np.maximum(x, _ZERO) if x.size < 4096 else x.clip(_ZERO, _INFINITY)
    return np.maximum(x, np.zeros((), x.dtype))


@in_place("Relu", 6)
def _relu_into(out: Array, x: Array) -> Array:
    return np.clip(x, _ZERO, _INFINITY, out=out) if x.dtype == _SINGLE else relu(x)


kernel("Relu", since=1)(consuming(relu))


@kernel("Sigmoid", since=6)
def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(−x))."""
    if x.dtype != _SINGLE or not x.ndim:
        return _sigmoid(x)
    y = np.negative(x)
    np.exp(y, y)
    np.add(y, _ONE, y)
    return np.reciprocal(y, y)


@in_place("Sigmoid", 6)
def _sigmoid_into(out: Array, x: Array) -> Array:
    if x.dtype != _SINGLE:
        return sigmoid(x)
    np.negative(x, out)
    np.exp(out, out)
    np.add(out, _ONE, out)
    return np.reciprocal(out, out)


@widened
def _sigmoid(x: Array) -> Array:
    return np.reciprocal(1 + np.exp(-x)).astype(x.dtype, copy=False)


kernel("Sigmoid", since=1)(consuming(sigmoid))


def _consuming(function: Callable[..., Array]) -> Callable[..., Array]:
    """The kernel of opset 1 of an activation with parameters; `consumed_inputs` was a hint."""

    def run(x: Array, consumed_inputs: Sequence[int] | None = None, **parameters: float) -> Array:
        return function(x, **parameters)

    return run


@kernel("LeakyRelu", since=6)
@widened
def leaky_relu(x: Array, alpha: float = 0.01) -> Array:
    """x where x ≥ 0, else alpha·x."""
    y = np.multiply(x, x.dtype.type(alpha), out=np.empty(x.shape, x.dtype))
    if 0 <= alpha <= 1:
        return np.maximum(x, y, out=y)
    np.copyto(y, x, where=x >= 0)
    return y


@kernel("Elu", since=6)
@widened
def elu(x: Array, alpha: float = 1.0) -> Array:
    """x where x > 0, else alpha·(exp(x) − 1)."""
    return np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, 0)))


@kernel("Celu", since=12)
@widened
def celu(x: Array, alpha: float = 1.0) -> Array:
    """max(0, x) + min(0, alpha·(exp(x/alpha) − 1))."""
    scale = x.dtype.type(alpha)
    return np.maximum(x, 0) + np.minimum(0, scale * np.expm1(x / scale))


@kernel("Selu", since=6)
@widened
def selu(x: Array, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Array:
    """gamma·x where x > 0, else gamma·alpha·(exp(x) − 1)."""
    scale = x.dtype.type(gamma)
    return scale * np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, 0)))


@kernel("Selu", since=1)
def selu_1(
    x: Array, alpha: float = 1.6732, gamma: float = 1.0507, consumed_inputs: Sequence[int] | None = None
) -> Array:
    """Selu-6 with the shorter defaults of opset 1."""
    return selu(x, alpha=alpha, gamma=gamma)


@kernel("HardSigmoid", since=6)
@widened
def hard_sigmoid(x: Array, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """max(0, min(1, alpha·x + beta))."""
    return _hard_sigmoid(np.empty(x.shape, x.dtype), x, alpha, beta)


def _hard_sigmoid(out: Array, x: Array, alpha: float, beta: float) -> Array:
    np.multiply(x, x.dtype.type(alpha), out=out)
    np.add(out, x.dtype.type(beta), out=out)
    return np.clip(out, 0, 1, out=out)  # several times as fast as maximum and minimum with numbers


@in_place("HardSigmoid", 6)
def _hard_sigmoid_into(out: Array, x: Array, alpha: float = 0.2, beta: float = 0.5) -> Array:
    return _hard_sigmoid(out, x, alpha, beta) if x.dtype == _SINGLE else hard_sigmoid(x, alpha, beta)


for _name, _function in {"LeakyRelu": leaky_relu, "Elu": elu, "HardSigmoid": hard_sigmoid}.items():
    kernel(_name, since=1)(_consuming(_function))


@kernel("HardSwish", since=14)
@widened
def hard_swish(x: Array) -> Array:
    """x · HardSigmoid(x; 1/6, 1/2)."""
    y = hard_sigmoid(x, alpha=1 / 6, beta=0.5)
    return np.multiply(y, x, out=y)


@kernel("Softplus")
@widened
def softplus(x: Array) -> Array:
    """log(1 + exp(x)), without overflow for large x."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


@kernel("Softsign")
@widened
def softsign(x: Array) -> Array:
    """x / (1 + |x|)."""
    return x / (1 + np.abs(x))


@kernel("ThresholdedRelu", since=10)
def thresholded_relu(x: Array, alpha: float = 1.0) -> Array:
    """x where x > alpha, else 0."""
    return np.where(x > x.dtype.type(alpha), x, x.dtype.type(0))


@kernel("Shrink", since=9)
def shrink(x: Array, bias: float = 0.0, lambd: float = 0.5) -> Array:
    """x + bias where x < −lambd, x − bias where x > lambd, else 0."""
    shrunk = np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))
    return shrunk.astype(x.dtype)


@kernel("Mish", since=18)
@widened
def mish(x: Array) -> Array:
    """x · tanh(softplus(x))."""
    return x * np.tanh(softplus(x))


@kernel("Swish", since=24)
@widened
def swish(x: Array, alpha: float = 1.0) -> Array:
    """x · sigmoid(alpha·x)."""
    y = sigmoid(x * x.dtype.type(alpha))
    return np.multiply(y, x, out=y if x.ndim else None)


@kernel("Gelu", since=20)
@widened
def gelu(x: Array, approximate: str = "none") -> Array:
    """x/2 · (1 + erf(x/√2)), or its approximation by tanh."""
    if approximate == "tanh":
        return gelu_tanh(x)
    if x.dtype != np.float32:
        return 0.5 * x * (1 + erf(x * np.sqrt(x.dtype.type(0.5))))
    return blocked(x, _gelu_block, rows=3)


@in_place("Gelu", 20)
def _gelu_into(out: Array, x: Array, approximate: str = "none") -> Array:
    if x.dtype != _SINGLE:
        return gelu(x, approximate)
    return gelu_tanh(x, out) if approximate == "tanh" else blocked(x, _gelu_block, 3, out)


def _gelu_block(x: Array, out: Array, temporaries: Array) -> None:
    y = half_erf(x, temporaries)
    np.add(y, _HALF, y)
    np.multiply(y, x, out)


def gelu_tanh(x: Array, out: Array | None = None) -> Array:
    """x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))); `out` is x itself where it may be overwritten."""

    def block_by_block(block: Array, result: Array, temporaries: Array) -> None:
        inner, half = temporaries
        np.multiply(block, block, out=inner)
        np.multiply(inner, 0.044715, out=inner)
        np.add(inner, 1, out=inner)
        np.multiply(inner, block, out=inner)
        np.multiply(inner, x.dtype.type(np.sqrt(2 / np.pi)), out=inner)
        np.tanh(inner, out=inner)
        np.add(inner, 1, out=inner)
        np.multiply(block, 0.5, out=half)
        np.multiply(half, inner, out=result)

    return blocked(x, block_by_block, 2, out)


@kernel("Clip", since=11)
def clip(x: Array, min: Array | None = None, max: Array | None = None) -> Array:
    """min(max(x, min), max); a bound that is absent is the largest finite number, so that infinities become finite."""
    low, high = _bound(min, "min"), _bound(max, "max")
    if x.dtype.kind == "f":
        lowest, highest = _finite(x.dtype)
        low, high = lowest if low is None else low, highest if high is None else high
    if low is not None and high is not None and x.size >= 4096:
        if x.dtype == np.float16 and 0 <= low <= high and not np.signbit(low):
            return _clip_half(x, low, high)
        return np.clip(x, low, high)
    y = x if low is None else np.maximum(x, low)
    return y if high is None else np.minimum(y, high)


@in_place("Clip", 11)
def _clip_into(out: Array, x: Array, min: Array | None = None, max: Array | None = None) -> Array:
    low, high = _bound(min, "min"), _bound(max, "max")
    if x.dtype != _SINGLE or low is None or high is None:
        return clip(x, min, max)
    return np.clip(x, low, high, out=out)


def _bound(bound: Array | None, name: str) -> Array | None:
    """A bound as an array of rank 0; [1] is taken too, as in onnxruntime."""
    if bound is None or not bound.ndim:
        return bound
    if bound.shape != (1,):
        raise ValueError(f"{name} has shape {bound.shape}: expected a scalar")
    return bound.reshape(())


@cache
def _finite(dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The bounds of finite numbers."""
    limits = np.finfo(dtype)
    return np.asarray(limits.min, dtype), np.asarray(limits.max, dtype)


def _clip_half(x: Array, low: Array, high: Array) -> Array:
    """Clip float16 between bounds from 0 up as integers, which have the same order: NumPy is slow with halves."""
    bits = np.ascontiguousarray(x).view(np.int16)
    if bits.max() > 0x7C00 or bits.view(np.uint16).max() > 0xFC00:  # a NaN, positive or negative
        return np.clip(x, low, high)
    return np.clip(bits, low.view(np.int16), high.view(np.int16)).view(np.float16)


@kernel("Clip", since=1)
def clip_1(
    x: Array,
    min: float | None = None,
    max: float | None = None,
    consumed_inputs: Sequence[int] | None = None,
) -> Array:
    """Clip-11 with the bounds as attributes."""
    low = None if min is None else np.asarray(np.maximum(min, np.finfo(x.dtype).min), x.dtype)
    high = None if max is None else np.asarray(np.minimum(max, np.finfo(x.dtype).max), x.dtype)
    return clip(x, low, high)


_FAR = exp(80)
"""Limit of the squares of sums of exponentials, and of their reciprocals, below which float32 is far from underflow
and overflow, and rounding in a row does not count."""


@lru_cache(maxsize=64)
def _ones(width: int, dtype: np.dtype[Any]) -> Array:
    return np.ones(width, dtype)


def softmax_rows(x: Array, y: Array, apart: bool = False) -> None:
    """Softmax of the rows of a float matrix into a C-contiguous one, which may be x itself unless they are `apart`.

    Blocks of rows stay in the cache. Most rows have numbers near 0: their exponentials need no subtraction of the
    largest element first. The sums show the blocks that do.
    """
    width = x.shape[-1]
    rows = max(1, 2 * BLOCK // max(1, width))
    ones, powers = _ones(width, x.dtype), None if apart else scratch((min(rows, len(x)), width), x.dtype)
    for start in range(0, len(x), rows):
        source, result = x[start : start + rows], y[start : start + rows]
        block = result if powers is None else powers[: len(source)]
        scale = np.dot(np.exp(source, out=block), ones)
        factors = np.reciprocal(scale)
        if not (np.dot(scale, scale) < _FAR and np.dot(factors, factors) < _FAR):  # true for NaN too
            np.subtract(source, np.maximum.reduce(source, axis=-1, keepdims=True), out=block)
            factors = np.reciprocal(np.exp(block, out=block) @ ones)
        np.multiply(block, factors[:, None] if len(factors) > 1 else factors.reshape(()), out=result)


@kernel("Softmax", since=13)
@widened
def softmax(x: Array, axis: int = -1) -> Array:
    """exp(x) normalized to sum 1 along `axis`."""
    axis = normal_axis(axis, x.ndim)
    if not x.size:
        return x
    if axis == x.ndim - 1:
        return _softmax_last(np.empty(x.shape, x.dtype), x, apart=True)
    y = np.subtract(x, x.max(axis=axis, keepdims=True))
    np.exp(y, out=y)
    return np.divide(y, y.sum(axis=axis, keepdims=True), out=y)


def _softmax_last(out: Array, x: Array, apart: bool = False) -> Array:
    softmax_rows(x.reshape(-1, x.shape[-1]), out.reshape(-1, x.shape[-1]), apart)
    return out


@in_place("Softmax", 13)
def _softmax_into(out: Array, x: Array, axis: int = -1) -> Array:
    last = normal_axis(axis, x.ndim) == x.ndim - 1
    return _softmax_last(out, x) if last and x.dtype == _SINGLE else softmax(x, axis)


@kernel("LogSoftmax", since=13)
@widened
def log_softmax(x: Array, axis: int = -1) -> Array:
    """log(softmax(x)) along `axis`."""
    axis = normal_axis(axis, x.ndim)
    if not x.size:
        return x
    y = np.subtract(x, x.max(axis=axis, keepdims=True))
    total = np.exp(y).sum(axis=axis, keepdims=True)
    return np.subtract(y, np.log(total, out=total), out=y)


@kernel("Hardmax", since=13)
def hardmax(x: Array, axis: int = -1) -> Array:
    """1 at the first maximum along `axis`, else 0."""
    y = np.zeros_like(x)
    if not x.size:
        return y
    np.put_along_axis(y, np.expand_dims(np.argmax(x, axis=axis), axis), 1, axis=axis)
    return y


def _flattening(function: Callable[..., Array]) -> Callable[..., Array]:
    """The kernel of opsets 1 to 12: the axes from `axis` on are one axis, those before it another."""

    def run(x: Array, axis: int = 1) -> Array:
        axis = axis if axis == x.ndim else normal_axis(axis, x.ndim)
        matrix = x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:]))
        return function(matrix, axis=1).reshape(x.shape)

    return run


kernel("Softmax", since=1)(_flattening(softmax))
kernel("LogSoftmax", since=1)(_flattening(log_softmax))
kernel("Hardmax", since=1)(_flattening(hardmax))


@kernel("SwiGLU", since=28)
@widened
def swiglu(a: Array, b: Array, alpha: float = 1.0) -> Array:
    """swish(A; alpha) · B, of equal shapes."""
    if a.shape != b.shape:
        raise ValueError(f"A has shape {a.shape}, B {b.shape}: expected equal shapes, SwiGLU does not broadcast")
    y = swish(a, alpha=alpha)
    return np.multiply(y, b, out=y if b.ndim else None)


# -- shape rules -------------------------------------------------------------------------------------------------------


rule("Relu LeakyRelu ThresholdedRelu Elu Selu Celu Gelu Sigmoid HardSigmoid HardSwish Mish Swish")(same_as_first)
rule("Softplus Softsign Shrink")(same_as_first)
rule("Softmax LogSoftmax Hardmax")(along_axis)


@rule("Clip", since=11)
def clip_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, low: MaybeFact = None, high: MaybeFact = None
) -> Fact:
    """The input's shape; elements between the bounds, which are scalars."""
    for name, fact in (("min", low), ("max", high)):
        shape = () if fact is None or fact.shape is None else fact.shape
        if len(shape) > 1 or (shape and isinstance(shape[0], int) and shape[0] != 1):
            text = dims_text(shape)
            raise FactError(f"{name} has shape {text}", code="shape-mismatch", expected="a scalar", found=text)
    operands = [fact for fact in (x, low, high) if fact is not None]
    if any(known_of(fact) is None for fact in operands):
        return x.bare

    def between(a: Any, *bounds: Any) -> Any:
        rest = list(bounds)
        if low is not None:
            a = greatest(a, rest.pop(0))
        return least(a, rest.pop(0)) if high is not None else a

    return computed(x.bare, operands, between)


@rule("Clip", since=1)
def clip_by_attributes(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape; the bounds are attributes."""
    return x.bare


# -- gradients ---------------------------------------------------------------------------------------------------------


derivative("Sigmoid")(unary(lambda x, y, g, a: g * y * (1 - y)))
derivative("Softplus")(unary(lambda x, y, g, a: g / (1 + np.exp(-x))))
derivative("Softsign")(unary(lambda x, y, g, a: g / np.square(1 + np.abs(x))))
derivative("Relu")(unary(lambda x, y, g, a: np.where(x > 0, g, 0)))
derivative("LeakyRelu")(unary(lambda x, y, g, a: np.where(x < 0, g * a["alpha"], g)))
derivative("Elu")(unary(lambda x, y, g, a: np.where(x > 0, g, g * (y + a["alpha"]))))
derivative("Clip")(unary(lambda x, y, g, a: np.where(x == y, g, 0)))


@derivative("Gelu")
def _gelu_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (x,), (g,) = inputs, gradients
    if attributes.get("approximate") == "tanh":
        slope = np.sqrt(2 / np.pi)
        t = np.tanh(slope * (x + 0.044715 * x**3))
        return [g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope * (1 + 3 * 0.044715 * x * x))]
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    return [(g * (0.5 * (1 + erf(x * np.sqrt(x.dtype.type(0.5)))) + x * density)).astype(x.dtype)]


@derivative("Softmax")
def _softmax_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (y,), (g,), axis = outputs, gradients, attributes["axis"]
    return [y * (g - (g * y).sum(axis=axis, keepdims=True))]


@derivative("LogSoftmax")
def _log_softmax_gradient(attributes: Attributes, inputs: Arrays, outputs: Arrays, gradients: Arrays) -> Arrays:
    (y,), (g,), axis = outputs, gradients, attributes["axis"]
    return [g - np.exp(y) * g.sum(axis=axis, keepdims=True)]


# -- traits ------------------------------------------------------------------------------------------------------------


_SMOOTH = OpTraits(category="activation", shape="shapes", flops=1, elements="none", half="rounded")
_BLOCKWISE = _SMOOTH._replace(blockwise=True)

traits("Celu Mish Selu Swish", _SMOOTH)
traits("Softsign", _SMOOTH._replace(saturates=(-1.0, 1.0)))
traits(
    "Clip",
    OpTraits(
        category="activation",
        shape="shapes",
        flops=1,
        elements="all",
        half="exact",
        blockwise=True,
        int8="clipped",
        was_attribute={11: {1: ("min", "float"), 2: ("max", "float")}},
    ),
)
traits("Elu HardSwish Softplus", _BLOCKWISE)
traits("Gelu", _BLOCKWISE._replace(flops=14))
traits("LeakyRelu", _BLOCKWISE._replace(int8="pointwise"))
traits("HardSigmoid", _BLOCKWISE._replace(saturates=(0.0, 1.0)))
traits("Hardmax", OpTraits(category="activation", shape="shapes", flops=1, elements="none", flattened_before=13))
traits(
    "LogSoftmax Softmax",
    OpTraits(
        category="activation",
        shape="shapes",
        flops=5,
        elements="none",
        half="rounded",
        masks="read",
        flattened_before=13,
    ),
)
traits(
    "Relu",
    OpTraits(
        category="activation",
        shape="shapes",
        flops=1,
        elements="none",
        half="exact",
        blockwise=True,
        int8="clipped",
    ),
)
traits("Shrink SwiGLU", OpTraits(category="activation", shape="shapes", flops=1))
traits("Sigmoid", _BLOCKWISE._replace(flops=4, saturates=(0.0, 1.0), int8="pointwise"))
traits("ThresholdedRelu", OpTraits(category="activation", shape="shapes", flops=1, elements="none"))
