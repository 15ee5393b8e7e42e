"""Losses: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import numpy as np

from onnxlab.ops.base.kernel_helpers import Array, widened
from onnxlab.ops.base.registry import kernel
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.onnx.nn.activation import log_softmax


def _loss(x: Array, target: Array, weight: Array | None, ignore_index: int | None, reduction: str) -> Array:
    """−weight[target] · x[target] of log-probabilities [N, C, D1, …]: for each, summed, or averaged by weight."""
    classes = x.shape[1]
    ignored = np.zeros(target.shape, bool) if ignore_index is None else target == ignore_index
    safe = np.where(ignored, 0, target)
    if safe.size and (int(safe.min()) < -classes or int(safe.max()) >= classes):
        raise IndexError(f"target runs from {int(safe.min())} to {int(safe.max())}: there are {classes} classes")
    picked = np.take_along_axis(x, np.expand_dims(safe, 1).astype(np.intp), axis=1).squeeze(1)
    factor = np.ones(target.shape, x.dtype) if weight is None else weight[safe]
    factor = np.where(ignored, x.dtype.type(0), factor).astype(x.dtype, copy=False)
    loss = -picked * factor
    if reduction == "none":
        return loss
    if reduction == "sum":
        return np.asarray(loss.sum(dtype=x.dtype))
    if reduction == "mean":
        return np.asarray(loss.sum(dtype=x.dtype) / factor.sum(dtype=x.dtype))
    raise ValueError(f"reduction is {reduction!r}: expected none, sum or mean")


@kernel("NegativeLogLikelihoodLoss", since=12)
@widened
def negative_log_likelihood_loss(
    x: Array,
    target: Array,
    weight: Array | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    """The loss of log-probabilities [N, C, D1, …] for classes [N, D1, …]."""
    return _loss(x, target, weight, ignore_index, reduction)


@kernel("SoftmaxCrossEntropyLoss", since=12)
@widened
def softmax_cross_entropy_loss(
    scores: Array,
    target: Array,
    weight: Array | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> tuple[Array, Array]:
    """The loss of scores [N, C, D1, …] for classes [N, D1, …], and their log-probabilities."""
    logs = log_softmax(scores, axis=1)
    return _loss(logs, target, weight, ignore_index, reduction), logs


traits(
    "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    OpTraits(category="elementwise", shape="shapes", flops=1, signature="N C ...|N ...|C"),
)
