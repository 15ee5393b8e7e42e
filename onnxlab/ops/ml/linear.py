"""ai.onnx.ml: linear models."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.estimates import linear_flops
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.ml.features import DOMAIN, classes_of, features, labels, logistic, post_transform, row_count, winner
from onnxlab.ops.ml.trees import classifier, regressor
from onnxlab.shapes import Fact, TensorFact

_transformed = post_transform  # an attribute has the function's name


@kernel("LinearRegressor", domain=DOMAIN)
def linear_regressor(
    x: Array,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Array:
    """[N, targets]: X · coefficientsᵀ + intercepts."""
    rows = features(x)
    scores = rows @ np.asarray(coefficients, np.float32).reshape(targets, -1).T
    if intercepts:
        scores = scores + np.asarray(intercepts, np.float32)
    return _transformed(scores, post_transform).astype(np.float32)


@kernel("LinearClassifier", domain=DOMAIN)
def linear_classifier(
    x: Array,
    coefficients: Sequence[float],
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    intercepts: Sequence[float] | None = None,
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[Array, Array]:
    """(labels [N], scores [N, classes]); one score for two classes means the second, the first gets the rest."""
    rows, names = features(x), labels(classlabels_strings, classlabels_ints)
    count = len(intercepts) if intercepts else len(coefficients) // max(1, rows.shape[1])
    # as in ONNX Runtime the rows decide how many coefficients each class has
    weights = np.asarray(coefficients, np.float32)[: count * rows.shape[1]].reshape(count, rows.shape[1])
    scores = rows.astype(np.float32, copy=False) @ weights.T
    if intercepts:
        scores = scores + np.asarray(intercepts, np.float32)
    if count > 1:
        return names[winner(scores)], _transformed(scores, post_transform).astype(np.float32)
    paired = len(names) == 2
    if not paired:
        names = labels(["0", "1"] if classlabels_strings else None, [0, 1])
    chosen = names[(scores[:, 0] > 0).astype(np.intp)]
    transformed = (_pair if paired else _transformed)(scores, post_transform)
    return chosen, transformed.astype(np.float32)


def _pair(scores: Array, transform: str) -> Array:
    """The scores of both classes, from those of the second."""
    if transform == "LOGISTIC":
        return np.concatenate([logistic(-scores), logistic(scores)], axis=1)
    both = np.concatenate([1 - scores, scores], axis=1)
    return _transformed(both, transform) if transform == "PROBIT" else both


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("LinearClassifier", domain=DOMAIN)
def linear_classifier_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """A label for each row, and a score for each row and intercept, or two for two classes."""
    chosen, scores = classifier(ctx, attributes, x)
    intercepts, labels = len(attributes.get("intercepts") or ()), classes_of(attributes)[1]
    if not intercepts or (intercepts == 1 and labels == 2):
        return chosen, scores
    return chosen, TensorFact(dtypes.FLOAT, (row_count(ctx, x), intercepts))


rule("LinearRegressor", domain=DOMAIN)(regressor)


# -- traits ------------------------------------------------------------------------------------------------------------


traits("LinearClassifier", OpTraits(category="matrix", shape="shapes", flops=linear_flops, layer="model"), "ai.onnx.ml")
traits("LinearRegressor", OpTraits(category="matrix", shape="shapes", flops=linear_flops), "ai.onnx.ml")
