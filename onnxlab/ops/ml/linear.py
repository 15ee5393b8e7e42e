"""ai.onnx.ml: linear models."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.estimates import linear_flops
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.ml.features import (
    DOMAIN,
    classes_of,
    features,
    labels,
    logistic,
    post_transform,
    row_count,
    rows_of,
    winner,
)
from onnxlab.ops.ml.trees import classifier, regressor
from onnxlab.shapes import Fact, TensorFact

_transformed = post_transform  # an attribute has the function's name


def _fitting(intercepts: Sequence[float] | None) -> Callable[[tuple[int, ...]], Array] | None:
    """The intercepts for scores of a shape; None where there are none."""
    return lru_cache(4)(partial(rows_of, np.asarray(intercepts, np.float32))) if intercepts else None


@kernel("LinearRegressor", domain=DOMAIN, bound=True)
def linear_regressor(
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Callable[[Array], Array]:
    """[N, targets]: X · coefficientsᵀ + intercepts."""
    weights = np.asarray(coefficients, np.float32).reshape(targets, -1).T
    offsets = _fitting(intercepts)

    def regress(x: Array) -> Array:
        scores = features(x) @ weights
        if offsets is not None:
            scores = scores + offsets(scores.shape)
        return _transformed(scores, post_transform).astype(np.float32, copy=False)

    return regress


@kernel("LinearClassifier", domain=DOMAIN, bound=True)
def linear_classifier(
    coefficients: Sequence[float],
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    intercepts: Sequence[float] | None = None,
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> Callable[[Array], tuple[Array, Array]]:
    """(labels [N], scores [N, classes]); one score for two classes means the second, the first gets the rest."""
    names, numbers = labels(classlabels_strings, classlabels_ints), np.asarray(coefficients, np.float32)
    offsets = _fitting(intercepts)
    paired = len(names) == 2

    @lru_cache(1)
    def weights(width: int) -> Array:  # as in ONNX Runtime the rows decide how many coefficients each class has
        count = len(intercepts) if intercepts else len(coefficients) // max(1, width)
        return numbers[: count * width].reshape(count, width).T

    def classify(x: Array) -> tuple[Array, Array]:
        rows = features(x).astype(np.float32, copy=False)
        scores = rows @ weights(rows.shape[1])
        if offsets is not None:
            scores = scores + offsets(scores.shape)
        if scores.shape[1] > 1:
            return names[winner(scores)], _transformed(scores, post_transform).astype(np.float32, copy=False)
        known = names if paired else labels(["0", "1"] if classlabels_strings else None, [0, 1])
        transformed = (_pair if paired else _transformed)(scores, post_transform)
        return known[(scores[:, 0] > 0).astype(np.intp)], transformed.astype(np.float32, copy=False)

    return classify


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
