"""Support vector machines of ai.onnx.ml: SVMRegressor, SVMClassifier."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, combinations
from operator import mul

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext
from onnxlab.ops.base.estimates import svm_flops
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.ml.features import DOMAIN, check_transform, features, labels, post_transform, row_count, winner
from onnxlab.ops.ml.trees import classifier
from onnxlab.shapes import Fact, TensorFact

_transformed = post_transform


def _kernel_product(vectors: Array, kind: str, parameters: Sequence[float] | None) -> Callable[[Array], Array]:
    """[N, F] -> [N, vectors]: the kernel function of every row and vector; parameters are gamma, coef0, degree."""
    gamma, coef0, degree = (*(parameters or (0.0, 0.0, 0.0)),)[:3]
    columns = vectors.T
    if kind == "RBF":
        lengths = (vectors * vectors).sum(axis=1)
        longest = float(lengths.max(initial=0))
        factor = np.array(-gamma)
        return lambda x: np.exp(factor * _distances(x, vectors, lengths, longest))
    if kind == "LINEAR":
        return lambda x: x @ columns
    if kind == "POLY":
        return lambda x: (gamma * (x @ columns) + coef0) ** degree
    if kind == "SIGMOID":
        return lambda x: np.tanh(gamma * (x @ columns) + coef0)
    raise ValueError(f"kernel_type is {kind!r}: expected LINEAR, POLY, RBF or SIGMOID")


_ZERO, _ONE, _TWO = np.array(0.0), np.array(1.0), np.array(2.0)  # NumPy takes longer for Python's numbers
_LEAST, _MOST = np.array(1e-7), np.array(1 - 1e-7)
_SAFE = 1e8
"""Squared lengths of vectors up to which their distance is accurate enough when computed from these."""


def _distances(x: Array, vectors: Array, others: Array, longest: float) -> Array:
    """[N, vectors]: squared Euclidean distances, of long or infinite rows by their differences.

    Args:
        others: squared lengths of the vectors, none above `longest`.
    """
    lengths = np.add.reduce(x * x, axis=1)
    squared = np.maximum(lengths[:, None] + others - _TWO * (x @ vectors.T), _ZERO)
    if not np.maximum.reduce(lengths, initial=0) + longest <= _SAFE:
        for row in np.flatnonzero(~(lengths + longest <= _SAFE)).tolist():
            squared[row] = np.square(x[row] - vectors).sum(axis=1)
    return squared


@kernel("SVMRegressor", domain=DOMAIN, bound=True)
def svm_regressor(
    coefficients: Sequence[float] = (),
    kernel_params: Sequence[float] | None = None,
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float] = (0.0,),
    support_vectors: Sequence[float] = (),
) -> Callable[[Array], Array]:
    """[N, 1]: Σ coefficient · kernel(x, vector) + rho; its sign for a one-class machine.

    As in ONNX Runtime, post_transform changes nothing.
    """
    weights, offset = np.asarray(coefficients, np.float64), rho[0] if rho else 0.0
    if n_supports:
        vectors = matrix(support_vectors, n_supports)
    else:  # a linear machine in primal form
        vectors, kernel_type = weights.reshape(1, -1), "LINEAR"
    product = _kernel_product(vectors, kernel_type, kernel_params)

    def regress(x: Array) -> Array:
        products = product(_rows(x))
        scores = (products @ weights if n_supports else products[:, 0]) + offset
        if one_class:
            scores = np.where(scores > 0, 1.0, -1.0)
        return scores[:, None].astype(np.float32)

    return regress


@kernel("SVMClassifier", domain=DOMAIN, bound=True)
def svm_classifier(
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
) -> Callable[[Array], tuple[Array, Array]]:
    """(labels [N], scores): one-against-one machines vote, prob_a and prob_b make probabilities; or linear ones.

    The class with the most votes wins, even where another one is more probable.
    """
    names = labels(classlabels_strings, classlabels_ints)
    if not vectors_per_class:
        weights = matrix(coefficients, len(names))
        return lambda x: _linear(_rows(x), names, weights, rho, post_transform)
    counts = list(vectors_per_class)
    classes, total = len(counts), sum(counts)
    if classes < 2:
        raise ValueError(f"vectors_per_class lists {classes} class: expected two or more")
    product = _kernel_product(matrix(support_vectors, total), kernel_type, kernel_params)
    decide = _one_against_one(matrix(coefficients, classes - 1), counts, rho, kernel_type in ("RBF", "SIGMOID"))
    firsts, _ = pairs = np.triu_indices(classes, 1)
    of_pairs = (prob_a, prob_b or (0.0,) * len(prob_a)) if prob_a else ((0.0,) * len(firsts),) * 2
    slopes, offsets = (np.asarray(numbers, np.float64)[: len(firsts)].reshape(len(firsts)) for numbers in of_pairs)

    def classify(x: Array) -> tuple[Array, Array]:
        decisions = decide(product(_rows(x)))
        chosen = names[_votes(decisions, pairs, classes).argmax(axis=1)]
        if prob_a:
            scores = _probabilities(decisions, slopes, offsets, pairs, classes)
        elif classes == 2:  # one machine, whose decision is for the first class
            return chosen, _pair(decisions, post_transform).astype(np.float32)
        else:
            scores = decisions
        return chosen, _transformed(scores, post_transform).astype(np.float32)

    return classify


def _rows(x: Array) -> Array:
    """[N, F] as ONNX Runtime sees them, rounded to float32, to be computed with in float64."""
    return features(x).astype(np.float32, copy=False).astype(np.float64)


def _votes(decisions: Array, pairs: tuple[Array, ...], classes: int) -> Array:
    """[N, classes]: how many machines decided for each; without a decision (NaN) it is the second of a pair."""
    winners = np.where(decisions > 0, *pairs) + np.arange(0, len(decisions) * classes, classes)[:, None]
    return np.bincount(winners.ravel(), minlength=len(decisions) * classes).reshape(-1, classes)


def _pair(decisions: Array, transform: str) -> Array:
    """The scores of two classes from what one machine decided: as ONNX Runtime has them."""
    if transform in ("NONE", "LOGISTIC"):
        return _transformed(np.concatenate([-decisions, decisions], axis=1), transform)
    both = np.concatenate([1 - decisions, decisions], axis=1)
    return _transformed(both, transform) if transform == "PROBIT" else both


def matrix(values: Sequence[float], rows: int) -> Array:
    """An attribute's numbers as a matrix of float64."""
    return np.asarray(values, np.float64).reshape(rows, -1)


def _linear(rows: Array, names: Array, weights: Array, rho: Sequence[float], transform: str) -> tuple[Array, Array]:
    """Machines in primal form, one for each class.

    With two classes, the second wins where any score is above 0 (½ where no coefficient is negative), as in ONNX
    Runtime.
    """
    scores = rows @ weights.T + (rho[0] if rho else 0.0)
    best = winner(scores)
    if len(names) == 2:
        top = np.take_along_axis(scores, best[:, None], axis=1)[:, 0]
        best = np.where(top >= 0.5 if (weights >= 0).all() else top > 0, 1, best)
    return names[best], _transformed(scores, transform).astype(np.float32)


def _one_against_one(
    weights: Array, counts: Sequence[int], rho: Sequence[float], is_bounded: bool
) -> Callable[[Array], Array]:
    """Kernel products [N, vectors] -> [N, pairs]: decisions of the machines of all pairs, positive for the first.

    Args:
        is_bounded: whether products are hardly ever infinite or NaN, which vectors that are not of a pair would make
            NaN of when they are multiplied by 0.
    """
    parts = [slice(stop - count, stop) for count, stop in zip(counts, accumulate(counts), strict=True)]
    pairs = list(combinations(range(len(counts)), 2))
    of_pairs = [(parts[i], weights[j - 1, parts[i]], parts[j], weights[i, parts[j]]) for i, j in pairs]
    offsets = np.array([rho[number] for number in range(len(pairs))])

    def decide(products: Array) -> Array:
        decisions = np.empty((len(products), len(pairs)))
        for number, (first, of_first, second, of_second) in enumerate(of_pairs):
            score = np.dot(products[:, first], of_first) + np.dot(products[:, second], of_second)
            np.add(score, offsets[number], decisions[:, number])
        return decisions

    if is_bounded and len(pairs) <= _TOGETHER:
        whole = np.zeros((weights.shape[1], len(pairs)))
        for number, (first, of_first, second, of_second) in enumerate(of_pairs):
            whole[first, number], whole[second, number] = of_first, of_second

        def decide_together(products: Array) -> Array:
            decisions = np.dot(products, whole) + offsets
            return decide(products) if np.isnan(decisions).any() else decisions

        return decide_together

    return decide


_TOGETHER = 10
"""Pairs of classes up to which one product for all is quicker, most of whose factors are 0 where classes are many."""


def _probabilities(
    decisions: Array, slopes: Array, offsets: Array, pairs: tuple[Array, ...], classes: int
) -> Array:  # fmt: skip
    """Class probabilities by Wu, Lin and Weng's pairwise coupling, as in libsvm."""
    p = _ONE / (_ONE + np.exp(decisions * slopes + offsets))
    p = np.minimum(np.maximum(p, _LEAST), _MOST)
    if len(p) * classes <= _FEW:
        try:
            return np.array([_coupled(row, classes) for row in p.tolist()]).reshape(len(p), classes)
        except ZeroDivisionError:  # which arrays make infinite
            pass
    (firsts, seconds), pairwise = pairs, np.zeros((len(decisions), classes, classes))
    pairwise[:, firsts, seconds], pairwise[:, seconds, firsts] = p, 1 - p
    return _couple(pairwise)


def _couple(pairwise: Array) -> Array:
    """[N, classes]: distributions whose pairwise odds fit [N, classes, classes] best: libsvm's fixed-point iteration.

    Each row stops on its own; a row of NaN keeps its first value.
    """
    rows, classes = pairwise.shape[:2]
    q = -pairwise * pairwise.transpose(0, 2, 1)
    diagonal = (pairwise**2).sum(axis=1)
    q[:, range(classes), range(classes)] = diagonal
    p = np.full((rows, classes), 1 / classes)
    live = np.arange(rows)
    for _ in range(100):
        now, matrices = p[live], q[live]
        products = np.einsum("nij,nj->ni", matrices, now)
        expected = (now * products).sum(axis=1)
        going = np.abs(products - expected[:, None]).max(axis=1) >= 0.005 / classes
        live = live[going]
        if not live.size:
            break
        p[live] = _round(matrices[going], now[going], products[going], expected[going])
    return p


_FEW = 64
"""Rows times classes up to which Python's numbers take less time than arrays."""


def _coupled(odds: Sequence[float], classes: int) -> list[float]:
    """The distribution of one row, as `_couple`, of the probabilities that the first class of each pair wins."""
    q, numbers = [[0.0] * classes for _ in range(classes)], iter(odds)
    for i, row in enumerate(q):
        for j in range(i + 1, classes):
            first = next(numbers)
            second = 1 - first
            row[j] = q[j][i] = -first * second
            row[i] += second * second
            q[j][j] += first * first
    p = [1 / classes] * classes
    for _ in range(100):
        qp = [sum(map(mul, row, p)) for row in q]
        expected = sum(map(mul, p, qp))
        if not max([abs(product - expected) for product in qp]) >= 0.005 / classes:
            break
        for t, row in enumerate(q):
            step = (expected - qp[t]) / row[t]
            whole = 1 + step
            p[t] += step
            expected = (expected + step * (step * row[t] + 2 * qp[t])) / whole**2
            qp = [(product + step * item) / whole for product, item in zip(qp, row)]  # noqa: B905 - a microsecond counts
            p = [item / whole for item in p]
    return p


def _round(q: Array, p: Array, qp: Array, expected: Array) -> Array:
    """p after one round over all classes; qp is q·p, expected p·q·p."""
    for t in range(p.shape[1]):
        step = (expected - qp[:, t]) / q[:, t, t]
        p[:, t] += step
        expected = (expected + step * (step * q[:, t, t] + 2 * qp[:, t])) / (1 + step) ** 2
        qp = (qp + step[:, None] * q[:, t]) / (1 + step)[:, None]
        p /= (1 + step)[:, None]
    return p


# -- shape rules -------------------------------------------------------------------------------------------------------


@rule("SVMClassifier", domain=DOMAIN)
def svm_classifier_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """A label for each row, and a score for each row and class, or pair of classes where they are no probabilities."""
    chosen, scores = classifier(ctx, attributes, x)
    machines = len(attributes.get("vectors_per_class") or ())
    if machines <= 2 or attributes.get("prob_a"):
        return chosen, scores
    return chosen, TensorFact(dtypes.FLOAT, (row_count(ctx, x), machines * (machines - 1) // 2))


@rule("SVMRegressor", domain=DOMAIN)
def svm_regressor_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A number for each row."""
    check_transform(attributes)
    return TensorFact(dtypes.FLOAT, (row_count(ctx, x), 1))


# -- traits ------------------------------------------------------------------------------------------------------------


traits("SVMClassifier SVMRegressor", OpTraits(category="tree", shape="shapes", flops=svm_flops), "ai.onnx.ml")
