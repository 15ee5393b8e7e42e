"""Normalizations: Batch-, Instance-, Group-, Layer-, RMS-, Lp- and MeanVarianceNormalization, LRN."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.derivatives import derivative, unary
from onnxlab.ops.base.half_arithmetic import BLOCK
from onnxlab.ops.base.kernel_helpers import Array, averaging, narrow, normal_axes, normal_axis, widen, widened
from onnxlab.ops.base.prepared_constants import prepared
from onnxlab.ops.base.registry import Attributes, in_place, kernel, rule
from onnxlab.ops.base.rule_helpers import MaybeFact, along_axis, checked_axis, dims_text, elem_type, like, same_as_first
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.shapes import Dim, Fact, FactError, TensorFact

_SINGLE = np.dtype(np.float32)


def _per_channel(parameter: Array, rank: int) -> Array:
    """A parameter of shape [C] (or, not spatial, [C, D1, …]) shaped for [N, C, D1, …]."""
    if parameter.ndim == 1:
        return parameter.reshape(-1, *(1,) * (rank - 2)) if rank > 1 else parameter
    return parameter


def scale_and_shift(
    x: Array, scale: Array, bias: Array, mean: Array, var: Array, epsilon: float, out: Array | None = None
) -> Array:
    """scale · (x − mean) / √(var + epsilon) + bias for each channel, in two passes over x; `out` may be x itself."""
    make = partial(_factors, epsilon, x.ndim, x.dtype)
    factor, offset = prepared(("factors", epsilon, x.ndim, x.dtype), make, scale, bias, mean, var)
    if x.size <= 4 * BLOCK or factor.size != x.shape[1] or x.ndim < 3 or not x.flags.c_contiguous:
        y = np.multiply(x, factor, out=out)
        return np.add(y, offset, out=y)
    y = np.empty(x.shape, x.dtype) if out is None else out
    step = max(1, 2 * BLOCK // max(1, prod(x.shape[2:])))  # channels whose elements stay in the cache between passes
    for image, result in zip(x, y, strict=True):
        for start in range(0, len(factor), step):
            part = slice(start, start + step)
            np.multiply(image[part], factor[part], out=result[part])
            np.add(result[part], offset[part], out=result[part])
    return y


def _factors(
    epsilon: float, rank: int, dtype: np.dtype[Any], scale: Array, bias: Array, mean: Array, var: Array
) -> tuple[Array, Array]:
    """Factor and summand of X, shaped for it."""
    factor = scale / np.sqrt(var + var.dtype.type(epsilon))
    arrays = [_per_channel(factors, rank).astype(dtype, copy=False) for factors in (factor, bias - mean * factor)]
    return arrays[0], arrays[1]


@kernel("BatchNormalization", since=14)
def batch_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    var: Array,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Array | tuple[Array, Array, Array]:
    """Normalize X [N, C, …] by channel with the given mean and variance.

    In training mode, mean and variance are those of X itself, and the running ones are outputs too.
    """
    if not training_mode and x.dtype == scale.dtype == mean.dtype == _SINGLE:
        return scale_and_shift(x, scale, bias, mean, var, epsilon)
    wide, factor, offset, old_mean, old_var = (widen(p) for p in (x, scale, bias, mean, var))
    if not training_mode:
        return narrow(scale_and_shift(wide, factor, offset, old_mean, old_var, epsilon), x.dtype)
    axes = (0, *range(2, x.ndim))
    batch_mean, batch_var = wide.mean(axis=axes), wide.var(axis=axes)
    y = scale_and_shift(wide, factor, offset, batch_mean, batch_var, epsilon)
    running = [
        (old * momentum + new * (1 - momentum)).astype(array.dtype)
        for old, new, array in zip((old_mean, old_var), (batch_mean, batch_var), (mean, var), strict=True)
    ]
    return narrow(y, x.dtype), running[0], running[1]


@in_place("BatchNormalization", 14)
def _batch_normalization_into(
    out: Array,
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    var: Array,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Array | tuple[Array, Array, Array]:
    if training_mode or any(array.dtype != np.float32 for array in (x, scale, bias, mean, var)):
        return batch_normalization(x, scale, bias, mean, var, epsilon, momentum, training_mode)
    return scale_and_shift(x, scale, bias, mean, var, epsilon, out)


@kernel("BatchNormalization", since=1, context=True)
def batch_normalization_1(
    ctx: RunContext,
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    var: Array,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    is_test: int = 0,
    spatial: int = 1,
    consumed_inputs: Sequence[int] | None = None,
) -> Array | tuple[Array, ...]:
    """BatchNormalization-14: opsets 1 to 13 train where the node has more outputs than Y.

    With spatial=0 the statistics are those of every single feature [C, D1, …].
    """
    if not any(ctx.outputs[1:]):
        return batch_normalization(x, scale, bias, mean, var, epsilon=epsilon)
    if spatial:
        training = batch_normalization(x, scale, bias, mean, var, epsilon=epsilon, momentum=momentum, training_mode=1)
        axes = (0, *range(2, x.ndim))
        return (*training, x.mean(axis=axes), x.var(axis=axes))
    saved_mean, saved_var = x.mean(axis=0), x.var(axis=0)
    y = scale_and_shift(x, scale, bias, saved_mean, saved_var, epsilon)
    running_mean = mean * momentum + saved_mean * (1 - momentum)
    return y, running_mean, var * momentum + saved_var * (1 - momentum), saved_mean, saved_var


@in_place("BatchNormalization", 1)
def _batch_normalization_1_into(
    out: Array,
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    var: Array,
    epsilon: float = 1e-5,
    **others: Any,
) -> Array | tuple[Array, Array, Array]:
    return _batch_normalization_into(out, x, scale, bias, mean, var, epsilon)


def standardize(
    rows: Array,
    epsilon: float,
    center: bool = True,
    factors: Array | None = None,
    terms: Array | None = None,
    out: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Bring every row of a float matrix to mean 0 and variance 1.

    Args:
        center: without it rows are only divided by their root mean square.
        factors: [columns], by which the result is scaled.
        terms: [columns], by which the result is shifted.
        out: a matrix to write to.

    Returns:
        (`out` or a new matrix, means [rows], 1/√(var + epsilon) [rows])
    """
    count, width = rows.shape
    y = np.empty((count, width), rows.dtype) if out is None else out
    means, inverse = (np.empty if center else np.zeros)(count, rows.dtype), np.empty(count, rows.dtype)
    step = max(1, 2 * BLOCK // max(1, width))
    if count <= step:
        _standardize_rows(rows, y, means, inverse, epsilon, center, factors, terms)
    else:
        for start in range(0, count, step):
            part = slice(start, start + step)
            _standardize_rows(rows[part], y[part], means[part], inverse[part], epsilon, center, factors, terms)
    return y, means, inverse


def _standardize_rows(
    source: Array, y: Array, mean: Array, scale: Array, epsilon: float, center: bool, factors: Array | None,
    terms: Array | None,
) -> None:  # fmt: skip
    """`standardize` of rows that fit the cache, into y, mean and scale."""
    small, root, average = _constants(source.shape[1], epsilon, source.dtype)
    if center:
        np.dot(source, average, mean)
        source = np.subtract(source, mean[:, None], out=y)
    np.vecdot(source, source, out=scale)
    np.add(scale, small, out=scale)
    np.divide(root, np.sqrt(scale, out=scale), out=scale)
    np.multiply(source, scale[:, None], out=y)
    if factors is not None:
        np.multiply(y, factors, out=y)
    if terms is not None:
        np.add(y, terms, out=y)


@lru_cache(maxsize=64)
def _constants(width: int, epsilon: float, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """width·epsilon, √width and the factors that average a row.

    Computing 1/√(Σx²/width + epsilon) as √width/√(Σx² + width·epsilon) takes a pass less. The numbers are arrays of
    rank 0, which ufuncs take faster than Python's.
    """
    return np.asarray(width * epsilon, dtype), np.asarray(np.sqrt(width), dtype), averaging(width, dtype)


def layer_norm(
    x: Array, scale: Array | None, bias: Array | None, axis: int, epsilon: float, center: bool = True
) -> tuple[Array, Array, Array]:
    """Standardize over the axes from `axis` on, then scale and shift: (Y, means, inverse deviations)."""
    axis = normal_axis(axis, x.ndim)
    lead, columns = x.shape[:axis], x.shape[axis:]
    factors = None if scale is None else _whole(scale, columns, x.dtype)
    terms = None if bias is None or (factors is None and scale is not None) else _whole(bias, columns, x.dtype)
    y, width = np.empty(x.shape, x.dtype), prod(columns)  # no view of a matrix: its buffer may be used again
    rows = x.reshape(prod(lead), width)
    _, means, inverse = standardize(rows, epsilon, center, factors, terms, y.reshape(rows.shape))
    if scale is not None and factors is None:
        np.multiply(y, scale, out=y)
    if bias is not None and terms is None:
        np.add(y, bias, out=y)
    shape = (*lead, *(1,) * (x.ndim - axis))
    return y, means.reshape(shape), inverse.reshape(shape)


def _whole(parameter: Array, columns: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
    """A parameter that has an element for each column, as a vector."""
    if parameter.shape != columns or parameter.dtype != dtype:
        return None
    return parameter if parameter.ndim == 1 else parameter.reshape(-1)


@kernel("LayerNormalization", since=1)
def layer_normalization(
    x: Array,
    scale: Array,
    bias: Array | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[Array, Array, Array]:
    """Normalize over the axes from `axis` on; also the means and inverse deviations, in `stash_type`."""
    singles = x.dtype == _SINGLE and scale.dtype == _SINGLE and (bias is None or bias.dtype == _SINGLE)
    if singles and stash_type == dtypes.FLOAT:
        return layer_norm(x, scale, bias, axis, epsilon)
    y, means, inverse = layer_norm(widen(x), widen(scale), None if bias is None else widen(bias), axis, epsilon)
    stash = dtypes.to_numpy(stash_type)
    return y.astype(x.dtype, copy=False), means.astype(stash, copy=False), inverse.astype(stash, copy=False)


@kernel("RMSNormalization", since=23)
def rms_normalization(x: Array, scale: Array, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Array:
    """Divide by the root mean square over the axes from `axis` on, then scale."""
    y, _, _ = layer_norm(widen(x), None, None, axis, epsilon, center=False)
    wide = y.astype(x.dtype, copy=False) * scale
    return wide.astype(scale.dtype, copy=False)


@kernel("InstanceNormalization")
@widened
def instance_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    epsilon: float = 1e-5,
    consumed_inputs: Sequence[int] | None = None,
) -> Array:
    """Normalize every channel of every image of X [N, C, …]."""
    y, _, _ = standardize(x.reshape(prod(x.shape[:2]), prod(x.shape[2:])), epsilon)
    y = y.reshape(x.shape)
    np.multiply(y, _per_channel(scale, x.ndim), out=y)
    return np.add(y, _per_channel(bias, x.ndim), out=y)


@kernel("GroupNormalization", since=21)
@widened
def group_normalization(
    x: Array, scale: Array, bias: Array, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> Array:
    """Normalize every group of channels of every image; scale and bias are per channel."""
    if x.shape[1] % num_groups:
        raise ValueError(f"X has {x.shape[1]} channels, which do not split into {num_groups} groups")
    y, _, _ = standardize(x.reshape(len(x) * num_groups, prod(x.shape[1:]) // num_groups), epsilon)
    y = y.reshape(x.shape)
    np.multiply(y, _per_channel(scale, x.ndim), out=y)
    return np.add(y, _per_channel(bias, x.ndim), out=y)


@kernel("GroupNormalization", since=18)
def group_normalization_18(x: Array, scale: Array, bias: Array, num_groups: int, epsilon: float = 1e-5) -> Array:
    """GroupNormalization-21 with a scale and bias per group."""
    group_size = x.shape[1] // num_groups
    return group_normalization(
        x, scale.repeat(group_size), bias.repeat(group_size), num_groups=num_groups, epsilon=epsilon
    )


@kernel("LpNormalization")
@widened
def lp_normalization(x: Array, axis: int = -1, p: int = 2) -> Array:
    """Divide by the p-norm along `axis`; zeros stay zeros."""
    total = np.sum(np.abs(x), axis, keepdims=True) if p == 1 else np.sum(x * x, axis, keepdims=True)
    norm = total if p == 1 else np.sqrt(total)
    return x / np.where(norm == 0, x.dtype.type(1), norm)


@kernel("MeanVarianceNormalization", since=9)
@widened
def mean_variance_normalization(x: Array, axes: Sequence[int] = (0, 2, 3)) -> Array:
    """(x − mean) / (deviation + 1e-9) over `axes`."""
    places = normal_axes(axes, x.ndim)
    y = x - x.mean(axis=places, keepdims=True)
    deviation = np.sqrt(np.mean(y * y, axis=places, keepdims=True))
    return np.divide(y, deviation + x.dtype.type(1e-9), out=y)


@kernel("LRN")
@widened
def lrn(x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Array:
    """Divide by (bias + alpha/size · Σ x² over `size` neighboring channels)^beta."""
    before, after = (size - 1) // 2, size // 2
    squares = np.zeros((x.shape[0], x.shape[1] + before + after, *x.shape[2:]), x.dtype)
    np.square(x, out=squares[:, before : before + x.shape[1]])
    total = squares[:, : x.shape[1]].copy()
    for offset in range(1, size):
        total += squares[:, offset : offset + x.shape[1]]
    total *= x.dtype.type(alpha / size)
    total += x.dtype.type(bias)
    return x / total ** x.dtype.type(beta)


@kernel("Dropout", since=12, context=True)
def dropout(
    ctx: RunContext,
    data: Array,
    ratio: Array | None = None,
    training_mode: Array | None = None,
    seed: int | None = None,
) -> Array | tuple[Array, Array]:
    """The input; in training mode scaled by 1/(1 − ratio) with random elements set to 0. And the mask."""
    share = 0.5 if ratio is None else float(ratio.reshape(()))
    if training_mode is None or not bool(training_mode.reshape(())) or share == 0:
        return data if len(ctx.outputs) < 2 else (data, np.ones(data.shape, bool))
    rng = ctx.rng if seed is None else np.random.RandomState(seed)
    mask = rng.uniform(size=data.shape) >= share
    scale = 0.0 if share == 1 else 1 / (1 - share)
    return (widen(data) * mask * scale).astype(data.dtype), mask


@kernel("Dropout", since=1, context=True)
def dropout_1(
    ctx: RunContext,
    data: Array,
    ratio: float = 0.5,
    is_test: int = 0,
    consumed_inputs: Sequence[int] | None = None,
) -> Array | tuple[Array, Array]:
    """Inference: the input, and a mask of zeros as in ONNX Runtime, in its type (bool since 10)."""
    if len(ctx.outputs) < 2:
        return data
    return data, np.zeros(data.shape, data.dtype if ctx.opset_version() < 10 else bool)


# -- shape rules -------------------------------------------------------------------------------------------------------


rule("MeanVarianceNormalization LRN InstanceNormalization GroupNormalization")(same_as_first)
rule("LpNormalization")(along_axis)


@rule("BatchNormalization", since=7)
def batch_normalization_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact, bias: Fact, mean: Fact, variance: Fact
) -> tuple[Fact, ...]:
    """The input's shape; in training also the running mean and variance of each channel."""
    if x.shape is not None and len(x.shape) > 1:
        channels = x.shape[1]
        for name, fact in (("scale", scale), ("B", bias), ("mean", mean), ("var", variance)):
            if fact.shape is not None and len(fact.shape) == 1 and _differ(fact.shape[0], channels):
                raise FactError(
                    f"{name} has shape {dims_text(fact.shape)}, the input {dims_text(x.shape)} has {channels} channels",
                    code="channel-mismatch",
                    expected=f"[{channels}]",
                    found=dims_text(fact.shape),
                )
    return (x.bare, *[statistic.bare for statistic in (mean, variance, mean, variance)][: max(len(ctx.outputs) - 1, 0)])


def _differ(a: Dim, b: Dim) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


@rule("LayerNormalization", since=17)
@rule("LayerNormalization", since=1)
def layer_normalization_rule(
    ctx: InferContext, attributes: Attributes, x: Fact, scale: MaybeFact = None, bias: MaybeFact = None
) -> tuple[Fact, ...]:
    """The input's shape; mean and inverse deviation have 1 from `axis` on."""
    if x.shape is None:
        return like(x, None), TensorFact(dtypes.FLOAT), TensorFact(dtypes.FLOAT)
    axis = checked_axis(attributes.get("axis", -1), len(x.shape))
    stash = TensorFact(attributes.get("stash_type", 1), (*x.shape[:axis], *(1,) * (len(x.shape) - axis)))
    return x.bare, stash, stash


@rule("RMSNormalization", since=23)
def rms_normalization_rule(ctx: InferContext, attributes: Attributes, x: Fact, scale: Fact) -> Fact:
    """The input's shape and type, which is the scale's too: the schema allows another, onnx and ONNX Runtime do not."""
    if elem_type(x) and elem_type(scale) and elem_type(x) != elem_type(scale):
        x_type, scale_type = dtypes.name(elem_type(x)), dtypes.name(elem_type(scale))
        raise FactError(
            f"X is {x_type} and scale {scale_type}", code="type-mismatch", expected=x_type, found=scale_type
        )
    return x.bare


@rule("Dropout", since=7)
def dropout_with_typed_mask(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """The input's shape, and a mask of the input's type."""
    return x.bare, x.bare


@rule("Dropout", since=10)
def dropout_rule(ctx: InferContext, attributes: Attributes, x: Fact, *_others: MaybeFact) -> tuple[Fact, Fact]:
    """The input's shape, and a mask of booleans."""
    return x.bare, TensorFact(dtypes.BOOL, x.shape)


# -- gradients ---------------------------------------------------------------------------------------------------------


derivative("Dropout")(unary(lambda x, y, g, a: g))


# -- traits ------------------------------------------------------------------------------------------------------------


traits(
    "BatchNormalization",
    OpTraits(
        category="normalization", shape="shapes", flops=2, elements="none", half="rounded", signature="N C ...|C|C|C|C"
    ),
)
traits(
    "Dropout",
    OpTraits(
        category="activation",
        shape="shapes",
        flops=1,
        elements="none",
        random=True,
        was_attribute={12: {1: ("ratio", "float")}},
        neutral_input={2: 0},
    ),
)
traits(
    "GroupNormalization",
    OpTraits(
        category="normalization", shape="shapes", flops=8, elements="none", half="rounded", signature="N C ...|?|?"
    ),
)
traits(
    "InstanceNormalization",
    OpTraits(
        category="normalization", shape="shapes", flops=8, elements="none", half="rounded", signature="N C ...|C|C"
    ),
)
traits(
    "LRN LpNormalization MeanVarianceNormalization",
    OpTraits(category="normalization", shape="shapes", flops=1, elements="none", half="rounded"),
)
traits(
    "LayerNormalization", OpTraits(category="normalization", shape="shapes", flops=8, elements="none", half="rounded")
)
traits("RMSNormalization", OpTraits(category="normalization", shape="shapes", flops=5, elements="none"))
