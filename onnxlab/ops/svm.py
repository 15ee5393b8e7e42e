"""Support vector machines of ai.onnx.ml: SVMRegressor, SVMClassifier."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onnxlab.ops.ml import DOMAIN, labels, post_transform
from onnxlab.ops.numeric import Array
from onnxlab.ops.prepared import remembered
from onnxlab.ops.registry import kernel

_transformed = post_transform


def _kernel_product(x: Array, vectors: Array, kind: str, parameters: Sequence[float] | None) -> Array:
    """[N, vectors]: the kernel function of every row and support vector; parameters are gamma, coef0, degree."""
    gamma, coef0, degree = (*(parameters or (0.0, 0.0, 0.0)),)[:3]
    if kind == "RBF":
        square = (x * x).sum(axis=1)[:, None] + (vectors * vectors).sum(axis=1) - 2 * (x @ vectors.T)
        return np.exp(-gamma * np.maximum(square, 0))
    product = x @ vectors.T
    if kind == "LINEAR":
        return product
    if kind == "POLY":
        return (gamma * product + coef0) ** degree
    if kind == "SIGMOID":
        return np.tanh(gamma * product + coef0)
    raise ValueError(f"kernel_type is {kind!r}: expected LINEAR, POLY, RBF or SIGMOID")


@kernel("SVMRegressor", domain=DOMAIN)
def svm_regressor(
    x: Array,
    coefficients: Sequence[float] = (),
    kernel_params: Sequence[float] | None = None,
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float] = (0.0,),
    support_vectors: Sequence[float] = (),
) -> Array:
    """[N, 1]: Σ coefficient · kernel(x, vector) + rho; its sign for a one-class machine."""
    rows, weights = x.astype(np.float64), np.asarray(coefficients, np.float64)
    if n_supports:
        vectors = remembered(matrix, support_vectors, n_supports)
        scores = _kernel_product(rows, vectors, kernel_type, kernel_params) @ weights
    else:  # a linear machine in primal form
        scores = _kernel_product(rows, weights.reshape(1, -1), "LINEAR", None)[:, 0]
    scores = scores + (rho[0] if rho else 0.0)
    if one_class:
        scores = np.where(scores > 0, 1.0, -1.0)
    return _transformed(scores[:, None], post_transform).astype(np.float32)


@kernel("SVMClassifier", domain=DOMAIN)
def svm_classifier(
    x: Array,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    coefficients: Sequence[float] = (),
    kernel_params: Sequence[float] | None = None,
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Sequence[float] | None = None,
    prob_b: Sequence[float] | None = None,
    rho: Sequence[float] = (),
    support_vectors: Sequence[float] = (),
    vectors_per_class: Sequence[int] | None = None,
) -> tuple[Array, Array]:
    """(labels [N], scores): one-against-one machines vote, prob_a and prob_b make probabilities; or linear ones."""
    names, rows = labels(classlabels_strings, classlabels_ints), x.reshape(len(x), -1).astype(np.float64)
    if not vectors_per_class:
        return _linear(rows, names, coefficients, rho, post_transform)
    counts = list(vectors_per_class)
    classes, total = len(counts), sum(counts)
    vectors = remembered(matrix, support_vectors, total)
    weights = remembered(matrix, coefficients, classes - 1)
    products = _kernel_product(rows, vectors, kernel_type, kernel_params)
    decisions = _one_against_one(products, weights, counts, rho)
    votes = np.zeros((len(rows), classes))
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    for number, (i, j) in enumerate(pairs):
        votes[:, i] += decisions[:, number] > 0
        votes[:, j] += decisions[:, number] <= 0
    if prob_a:
        scores = _probabilities(decisions, prob_a, prob_b or (0.0,) * len(prob_a), pairs, classes)
        best = scores.argmax(axis=1)
    else:
        scores, best = decisions, votes.argmax(axis=1)
        if classes == 2:  # one machine: its decision is for the first class
            if post_transform == "NONE" and len(names) == 2:
                scores = np.concatenate([decisions, -decisions], axis=1)
            return names[best], _transformed(scores, post_transform).astype(np.float32)
    return names[best], _transformed(scores, post_transform).astype(np.float32)


def matrix(values: Sequence[float], rows: int) -> Array:
    """An attribute's numbers as a matrix of float64."""
    return np.asarray(values, np.float64).reshape(rows, -1)


def _linear(
    rows: Array, names: Array, coefficients: Sequence[float], rho: Sequence[float], transform: str
) -> tuple[Array, Array]:
    """Machines in primal form, one for each class."""
    weights = remembered(matrix, coefficients, len(names))
    scores = rows @ weights.T + (rho[0] if rho else 0.0)
    return names[scores.argmax(axis=1)], _transformed(scores, transform).astype(np.float32)


def _one_against_one(products: Array, weights: Array, counts: Sequence[int], rho: Sequence[float]) -> Array:
    """[N, pairs]: the decision of the machine for each pair of classes, positive for the first."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    decisions: list[Array] = []
    for i in range(len(counts)):
        for j in range(i + 1, len(counts)):
            first, second = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            score = products[:, first] @ weights[j - 1, first] + products[:, second] @ weights[i, second]
            decisions.append(score + rho[len(decisions)])
    return np.stack(decisions, axis=1)


def _probabilities(
    decisions: Array, a: Sequence[float], b: Sequence[float], pairs: Sequence[tuple[int, int]], classes: int
) -> Array:
    """Class probabilities by Wu, Lin and Weng's pairwise coupling, as in libsvm."""
    pairwise = np.zeros((len(decisions), classes, classes))
    for number, (i, j) in enumerate(pairs):
        p = np.clip(1 / (1 + np.exp(decisions[:, number] * a[number] + b[number])), 1e-7, 1 - 1e-7)
        pairwise[:, i, j], pairwise[:, j, i] = p, 1 - p
    if classes == 2:
        return pairwise[:, [0, 1], [1, 0]]
    return np.stack([_couple(matrix) for matrix in pairwise])


def _couple(pairwise: Array) -> Array:
    """The distribution whose pairwise odds fit [classes, classes] best: libsvm's fixed-point iteration."""
    classes = len(pairwise)
    q = -pairwise * pairwise.T
    np.fill_diagonal(q, 0)
    np.fill_diagonal(q, (pairwise.T**2).sum(axis=1))
    p = np.full(classes, 1 / classes)
    for _ in range(max(100, classes)):
        qp = q @ p
        expected = p @ qp
        if np.abs(qp - expected).max() < 0.005 / classes:
            break
        for t in range(classes):
            step = (expected - qp[t]) / q[t, t]
            p[t] += step
            expected = (expected + step * (step * q[t, t] + 2 * qp[t])) / (1 + step) ** 2
            qp = (qp + step * q[t]) / (1 + step)
            p /= 1 + step
    return p
