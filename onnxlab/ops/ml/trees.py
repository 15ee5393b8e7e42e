"""Tree ensembles of ai.onnx.ml: TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.limits import InferContext, RunContext
from onnxlab.ops.base.estimates import trees_flops
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.prepared_constants import recalled, remembered
from onnxlab.ops.base.registry import Attributes, kernel, rule
from onnxlab.ops.base.rule_helpers import dims_text, like
from onnxlab.ops.base.traits import OpTraits, traits
from onnxlab.ops.ml.features import (
    DOMAIN,
    check_transform,
    classes_of,
    features,
    labels,
    length_of,
    post_transform,
    row_count,
    same_length,
    winner,
)
from onnxlab.ops.ml.forest import grow, planted
from onnxlab.ops.ml.tree_settings import AGGREGATES, refuse_older, refuse_planted
from onnxlab.shapes import Fact, FactError, TensorFact


def first_of(*candidates: Any) -> Any:
    """The first candidate that is not None."""
    return next((item for item in candidates if item is not None), None)


@kernel("TreeEnsembleRegressor", domain=DOMAIN, context=True, bound=True)
def tree_ensemble_regressor(
    n_targets: int = 1,
    aggregate_function: str = "SUM",
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: Array | None = None,
    nodes_falsenodeids: Sequence[int] = (),
    nodes_featureids: Sequence[int] = (),
    nodes_hitrates: Sequence[float] | None = None,
    nodes_hitrates_as_tensor: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    nodes_modes: Sequence[str] = (),
    nodes_nodeids: Sequence[int] = (),
    nodes_treeids: Sequence[int] = (),
    nodes_truenodeids: Sequence[int] = (),
    nodes_values: Sequence[float] | None = None,
    nodes_values_as_tensor: Array | None = None,
    post_transform: str = "NONE",
    target_ids: Sequence[int] = (),
    target_nodeids: Sequence[int] = (),
    target_treeids: Sequence[int] = (),
    target_weights: Sequence[float] | None = None,
    target_weights_as_tensor: Array | None = None,
) -> Callable[[RunContext, Array], Array]:
    """[N, targets]: what the leaves of all trees give, summed, averaged, smallest or largest."""
    recall = recalled(
        grow,
        nodes_treeids,
        nodes_nodeids,
        nodes_modes,
        nodes_featureids,
        first_of(nodes_values_as_tensor, nodes_values),
        nodes_truenodeids,
        nodes_falsenodeids,
        nodes_missing_value_tracks_true,
        target_treeids,
        target_nodeids,
        target_ids,
        first_of(target_weights_as_tensor, target_weights),
        n_targets,
    )
    base = np.asarray(first_of(base_values_as_tensor, base_values, ()))

    def regress(ctx: RunContext, x: Array) -> Array:
        forest = recall()
        scores, voted = forest.collect(ctx, features(x), aggregate_function)
        if base.size:  # a target without votes stays 0, as in ONNX Runtime
            moved = scores + base.astype(scores.dtype)
            scores = moved if forest.is_voted else np.where(voted, moved, scores)
        return _transformed(scores, post_transform).astype(np.float32, copy=False)

    return regress


_transformed = post_transform


@kernel("TreeEnsembleClassifier", domain=DOMAIN, context=True, bound=True)
def tree_ensemble_classifier(
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: Array | None = None,
    class_ids: Sequence[int] = (),
    class_nodeids: Sequence[int] = (),
    class_treeids: Sequence[int] = (),
    class_weights: Sequence[float] | None = None,
    class_weights_as_tensor: Array | None = None,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    nodes_falsenodeids: Sequence[int] = (),
    nodes_featureids: Sequence[int] = (),
    nodes_hitrates: Sequence[float] | None = None,
    nodes_hitrates_as_tensor: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    nodes_modes: Sequence[str] = (),
    nodes_nodeids: Sequence[int] = (),
    nodes_treeids: Sequence[int] = (),
    nodes_truenodeids: Sequence[int] = (),
    nodes_values: Sequence[float] | None = None,
    nodes_values_as_tensor: Array | None = None,
    post_transform: str = "NONE",
) -> Callable[[RunContext, Array], tuple[Array, Array]]:
    """(labels [N], scores [N, classes]): the class with the largest score; of two classes see `_binary`."""
    names = labels(classlabels_strings, classlabels_int64s)
    weights = first_of(class_weights_as_tensor, class_weights)
    recall = recalled(
        grow,
        nodes_treeids,
        nodes_nodeids,
        nodes_modes,
        nodes_featureids,
        first_of(nodes_values_as_tensor, nodes_values),
        nodes_truenodeids,
        nodes_falsenodeids,
        nodes_missing_value_tracks_true,
        class_treeids,
        class_nodeids,
        class_ids,
        weights,
        len(names),
    )
    base = np.asarray(first_of(base_values_as_tensor, base_values, ()))
    threshold, is_pair = threshold_of(class_ids, weights), len(names) == 2
    known = np.arange(2) if is_pair and not classlabels_strings and not are_one(class_ids) else names

    def classify(ctx: RunContext, x: Array) -> tuple[Array, Array]:
        forest = recall()
        scores, voted = forest.collect(ctx, features(x), "SUM")
        if is_pair and not (forest.is_voted and not base.size):
            chosen, transformed = _binary(scores, voted, base.astype(scores.dtype), threshold, post_transform)
            return known[chosen], transformed.astype(np.float32)
        if is_pair:
            best = (scores[:, 1] > (threshold or 0.0)).astype(np.intp)
        else:
            scores = scores + base.astype(scores.dtype) if base.size else scores
            best = winner(scores if base.size or forest.is_voted else np.where(voted, scores, -np.inf))
        return known[best], _transformed(scores, post_transform).astype(np.float32, copy=False)

    return classify


def are_one(ids: Sequence[int]) -> bool:
    """Whether there are numbers, and all are the same."""
    array = np.asarray(ids)
    return bool(array.size and (array == array[0]).all())


def threshold_of(ids: Sequence[int], weights: Any) -> float | None:
    """The score above which the second of two classes wins, where the leaves vote for one of them; else None."""
    if not are_one(ids):
        return None
    return 0.5 if bool(np.all(np.asarray(weights) >= 0)) else 0.0


def _binary(
    scores: Array, voted: Array, base: Array, threshold: float | None, transform: str
) -> tuple[Array, Array]:  # fmt: skip
    """(whether the second class wins [N], scores of both) as ONNX Runtime has them, row by row.

    The score of the second class decides; where no leaf voted for it, that of the first class stands for it. The second
    class wins if that score is above the threshold, which is 0 where the leaves vote for both classes.
    """
    second = voted[:, 1]
    if base.size == 2:
        total = scores[:, 0] + base[1]
        first = np.where(second, -total, scores[:, 0] + base[0])
        scores = np.stack([first, np.where(second, total, 0)], axis=1)
    elif base.size == 1:
        scores = np.stack([scores[:, 0] + base[0], scores[:, 1]], axis=1)
    is_first_alone = len(voted) == 1 and voted.item(0) and not voted.item(1)  # of all rows
    scores = scores if is_first_alone and base.size < 2 else np.where(voted, scores, 0)
    if base.size < 2 and (is_first_alone or not np.count_nonzero(second)):
        alone = _paired(scores[:, :1], threshold, base.size == 1, transform)
        return (scores[:, 0] > (threshold or 0.0)).astype(np.intp), alone
    deciding = np.where(second, scores[:, 1], scores[:, 0])
    chosen = (deciding > (threshold or 0.0)).astype(np.intp)
    transformed = _transformed(scores, transform)
    if base.size < 2 and np.count_nonzero(second) < second.size:
        alone = _paired(scores[:, :1], threshold, base.size == 1, transform)
        transformed = np.where(second[:, None], transformed, alone)
    return chosen, transformed


def _paired(scores: Array, threshold: float | None, based: bool, transform: str) -> Array:
    """The scores of both classes from one alone, listed under the first and meant for the second.

    A score that ONNX Runtime leaves undefined is 0.
    """
    if transform == "PROBIT" or (threshold is None and based):
        return np.concatenate([_transformed(scores, transform), np.zeros_like(scores)], axis=1)
    if transform == "LOGISTIC":
        return _transformed(np.concatenate([-scores, scores], axis=1), transform)
    return np.concatenate([1 - scores if threshold == 0.5 else -scores, scores], axis=1)


@kernel("TreeEnsemble", since=5, domain=DOMAIN, context=True)
def tree_ensemble(
    ctx: RunContext,
    x: Array,
    leaf_targetids: Sequence[int],
    leaf_weights: Array,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_modes: Array,
    nodes_splits: Array,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    tree_roots: Sequence[int],
    aggregate_function: int = 1,
    membership_values: Array | None = None,
    n_targets: int = 1,
    nodes_hitrates: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    post_transform: int = 0,
) -> Array:
    """[N, targets] from interior nodes and leaves that are numbered apart."""
    forest = remembered(
        planted,
        leaf_targetids,
        leaf_weights,
        nodes_falseleafs,
        nodes_falsenodeids,
        nodes_featureids,
        nodes_modes,
        nodes_splits,
        nodes_trueleafs,
        nodes_truenodeids,
        tree_roots,
        membership_values,
        n_targets,
        nodes_missing_value_tracks_true,
    )
    scores, _ = forest.collect(ctx, x, AGGREGATES[aggregate_function])
    transform = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[post_transform]
    return _transformed(scores, transform).astype(x.dtype)


# -- shape rules -------------------------------------------------------------------------------------------------------


def classifier(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """A label for each row, and a score for each row and class."""
    check_transform(attributes)
    elem, count = classes_of(attributes)
    rows = row_count(ctx, x)
    return TensorFact(elem, (rows,)), TensorFact(dtypes.FLOAT, (rows, count or ctx.symbol(1, 1)))


@rule("TreeEnsembleClassifier", domain=DOMAIN)
def tree_classifier_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> tuple[Fact, Fact]:
    """The facts that other classifiers have."""
    _, classes = classes_of(attributes)
    if classes:
        refuse_older(attributes, x, "class", classes, (0, 1, 2) if classes <= _PAIR else (0, classes))
    return classifier(ctx, attributes, x)


@rule("TreeEnsembleRegressor", domain=DOMAIN)
def tree_regressor_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """The fact that other regressors have."""
    targets = attributes.get("n_targets") or 0
    refuse_older(attributes, x, "target", targets, (0, targets))
    return regressor(ctx, attributes, x)


def regressor(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A number for each row and target."""
    check_transform(attributes)
    count = attributes.get("n_targets") or attributes.get("targets") or 1
    return TensorFact(dtypes.FLOAT, (row_count(ctx, x), count))


_PAIR = 2  # classes, for which there may be a value for one alone
_OF_NODES = (
    "nodes_featureids",
    "nodes_truenodeids",
    "nodes_falseleafs",
    "nodes_trueleafs",
    "nodes_modes",
    "nodes_splits",
    "nodes_hitrates",
    "nodes_missing_value_tracks_true",
)


@rule("TreeEnsemble", since=5, domain=DOMAIN)
def tree_ensemble_rule(ctx: InferContext, attributes: Attributes, x: Fact) -> Fact:
    """A number for each row and target, in the input's type."""
    if x.shape is not None and len(x.shape) != 2:
        raise FactError("it reads rows of features", code="rank-mismatch", expected="2 dims", found=dims_text(x.shape))
    refuse_planted(attributes)
    nodes, leaves = len(attributes["nodes_falsenodeids"]), len(attributes["leaf_targetids"])
    for name in _OF_NODES:
        if attributes.get(name) is not None:
            same_length(name, length_of(attributes[name]), "nodes_falsenodeids", nodes)
    same_length("leaf_weights", length_of(attributes["leaf_weights"]), "leaf_targetids", leaves)
    return like(x, (row_count(ctx, x), attributes.get("n_targets") or ctx.symbol(0, 1)))


# -- traits ------------------------------------------------------------------------------------------------------------


traits(
    "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor",
    OpTraits(category="tree", shape="shapes", flops=trees_flops, layer="model"),
    "ai.onnx.ml",
)
