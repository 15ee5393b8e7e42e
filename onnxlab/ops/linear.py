"""ai.onnx.ml: linear models."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxlab.ops.ml import DOMAIN, labels, logistic, post_transform, probit
from onnxlab.ops.numeric import Array
from onnxlab.ops.registry import kernel

_transformed = post_transform  # an attribute has its name


def _rows(x: Array) -> Array:
    """[N, F] of [N, F] or [F], as float32 unless double."""
    matrix = x.reshape(1, -1) if x.ndim == 1 else x.reshape(len(x), -1)
    return matrix if matrix.dtype == np.float64 else matrix.astype(np.float32, copy=False)


@kernel("LinearRegressor", domain=DOMAIN)
def linear_regressor(
    x: Array,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Array:
    """[N, targets]: X · coefficientsᵀ + intercepts."""
    rows = _rows(x)
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
    rows, names = _rows(x), labels(classlabels_strings, classlabels_ints)
    features = rows.shape[1]
    count = len(intercepts) if intercepts else len(coefficients) // max(1, features)
    # as in ONNX Runtime the rows decide how many coefficients each class has
    weights = np.asarray(coefficients, np.float32)[: count * features].reshape(count, features)
    scores = rows.astype(np.float32) @ weights.T
    if intercepts:
        scores = scores + np.asarray(intercepts, np.float32)
    if count > 1:
        return names[scores.argmax(axis=1)], _transformed(scores, post_transform).astype(np.float32)
    if len(names) != 2:
        names = labels(["0", "1"] if classlabels_strings else None, [0, 1])
        return names[(scores[:, 0] > 0).astype(np.intp)], _transformed(scores, post_transform).astype(np.float32)
    chosen = names[(scores[:, 0] > 0).astype(np.intp)]
    if post_transform == "PROBIT":
        return chosen, probit(scores).astype(np.float32)
    pair = np.concatenate([1 - scores, scores], axis=1) if post_transform != "LOGISTIC" else np.concatenate(
        [logistic(-scores), logistic(scores)], axis=1)  # fmt: skip
    return chosen, pair.astype(np.float32)
