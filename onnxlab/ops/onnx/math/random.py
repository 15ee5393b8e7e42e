"""Random tensors: RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial.

With a `seed` attribute, the numbers are the same in every run; without one, they come from the run's generator.
The numbers themselves are not specified by ONNX and differ from ONNX Runtime's.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.kernel_helpers import Array, widen
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import elem_type
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Fact, TensorFact


def _generator(ctx: RunContext, seed: float | None) -> np.random.Generator:
    if seed is None:
        return ctx.rng
    return np.random.default_rng(np.frombuffer(np.float64(seed).tobytes(), np.uint32))


@kernel("RandomNormal", context=True)
def random_normal(
    ctx: RunContext,
    shape: Sequence[int],
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Array:
    """Normal numbers of this mean and standard deviation."""
    ctx.reserve(8 * prod(shape), "the random tensor")
    return _generator(ctx, seed).normal(mean, scale, shape).astype(dtypes.to_numpy(dtype))


@kernel("RandomUniform", context=True)
def random_uniform(
    ctx: RunContext,
    shape: Sequence[int],
    dtype: int = 1,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Array:
    """Uniform numbers from low to high."""
    ctx.reserve(8 * prod(shape), "the random tensor")
    return _generator(ctx, seed).uniform(low, high, shape).astype(dtypes.to_numpy(dtype))


@kernel("RandomNormalLike", context=True)
def random_normal_like(
    ctx: RunContext,
    x: Array,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Array:
    """RandomNormal of x's shape, and type unless `dtype` says another."""
    return random_normal(ctx, x.shape, dtype or dtypes.from_numpy(x.dtype), mean, scale, seed)


@kernel("RandomUniformLike", context=True)
def random_uniform_like(
    ctx: RunContext,
    x: Array,
    dtype: int | None = None,
    high: float = 1.0,
    low: float = 0.0,
    seed: float | None = None,
) -> Array:
    """RandomUniform of x's shape, and type unless `dtype` says another."""
    return random_uniform(ctx, x.shape, dtype or dtypes.from_numpy(x.dtype), high, low, seed)


@kernel("Bernoulli", since=15, context=True)
def bernoulli(ctx: RunContext, x: Array, dtype: int | None = None, seed: float | None = None) -> Array:
    """1 with the probability that the input gives, else 0."""
    drawn = _generator(ctx, seed).random(x.shape) < widen(x)
    return drawn.astype(dtypes.to_numpy(dtype) if dtype else x.dtype)


@kernel("Multinomial", since=7, context=True)
def multinomial(ctx: RunContext, x: Array, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Array:
    """[batch, sample_size] classes drawn from unnormalized log-probabilities [batch, classes]."""
    logits = widen(x).astype(np.float64)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    edges = np.cumsum(weights, axis=1)
    drawn = _generator(ctx, seed).random((len(x), sample_size)) * edges[:, -1:]
    classes = (drawn[:, :, None] >= edges[:, None, :]).sum(axis=2)
    return np.minimum(classes, x.shape[1] - 1).astype(dtypes.to_numpy(dtype))


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("Bernoulli", since=15)
def bernoulli_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape, in the type that `dtype` asks for."""
    return TensorFact(attributes.get("dtype") or elem_type(x), x.shape)


@rule("RandomNormal")
@rule("RandomUniform")
def random(ctx: InferContext, attributes: Attributes) -> Fact:
    """The shape and dtype of the attributes."""
    return TensorFact(attributes.get("dtype", dtypes.FLOAT), tuple(attributes["shape"]))


@rule("RandomNormalLike")
@rule("RandomUniformLike")
def random_like(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The input's shape, in the type that `dtype` asks for."""
    return TensorFact(attributes.get("dtype") or elem_type(x), x.shape)


@rule("Multinomial", since=7)
def multinomial_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """[batch, sample_size] draws."""
    batch = x.shape[0] if x.shape else ctx.symbol(0, 0)
    return TensorFact(attributes.get("dtype", dtypes.INT32), (batch, attributes.get("sample_size", 1)))


# -- traits ------------------------------------------------------------------------------------------------------------


def _multinomial_bytes(attributes: Mapping[str, Any], array: Any) -> int:
    return int(array.shape[0]) * int(attributes.get("sample_size", 1)) * 8


def _random_bytes(attributes: Mapping[str, Any]) -> int:
    return int(prod(attributes["shape"]) * 8)


traits(
    "Bernoulli RandomNormalLike RandomUniformLike",
    OpTraits(category="constant", shape="shapes", flops=1, elements="none", random=True),
)
traits(
    "Multinomial",
    OpTraits(category="constant", shape="shapes", flops=1, elements="none", random=True, out_bytes=_multinomial_bytes),
)
traits(
    "RandomNormal RandomUniform",
    OpTraits(category="constant", shape="shapes", flops=1, random=True, out_bytes=_random_bytes),
)
