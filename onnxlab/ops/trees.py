"""Tree ensembles of ai.onnx.ml: TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble."""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxlab.limits import RunContext
from onnxlab.ops.forest import grow, planted
from onnxlab.ops.ml import DOMAIN, labels, post_transform
from onnxlab.ops.numeric import Array
from onnxlab.ops.prepared import remembered
from onnxlab.ops.registry import kernel


def _features(x: Array) -> Array:
    matrix = x.reshape(1, -1) if x.ndim == 1 else x
    return matrix if matrix.dtype == np.float64 else matrix.astype(np.float32, copy=False)


def first_of(*candidates: Any) -> Any:
    """The first attribute that is there."""
    return next((item for item in candidates if item is not None), None)


@kernel("TreeEnsembleRegressor", domain=DOMAIN, context=True)
def tree_ensemble_regressor(
    ctx: RunContext,
    x: Array,
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
) -> Array:
    """[N, targets]: what the leaves of all trees give, summed, averaged, smallest or largest."""
    forest = remembered(
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
    scores, voted = forest.collect(ctx, _features(x), aggregate_function)
    base = first_of(base_values_as_tensor, base_values)
    if base is not None and len(base):  # a target that no leaf gives anything stays 0, as in ONNX Runtime
        scores = np.where(voted, scores + np.asarray(base, scores.dtype), scores)
    return _transformed(scores, post_transform).astype(np.float32)


_transformed = post_transform


@kernel("TreeEnsembleClassifier", domain=DOMAIN, context=True)
def tree_ensemble_classifier(
    ctx: RunContext,
    x: Array,
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
) -> tuple[Array, Array]:
    """(labels [N], scores [N, classes]).

    Where the leaves vote for only one of two classes, the votes decide for the second class: above ½ when all are
    positive, else above 0. (Where they vote for both, ONNX Runtime answers 0 or 1, whatever the labels; here the
    class with the higher score wins, as the operator's page says.)
    """
    names = labels(classlabels_strings, classlabels_int64s)
    weights = first_of(class_weights_as_tensor, class_weights)
    single = len(names) == 2 and remembered(are_one, class_ids)
    forest = remembered(
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
        None if single else class_ids,
        weights,
        1 if single else len(names),
    )
    scores, voted = forest.collect(ctx, _features(x), "SUM")
    base = first_of(base_values_as_tensor, base_values)
    if base is not None and len(base):
        scores = scores + np.asarray(base, scores.dtype)[-scores.shape[1] :]
        voted[...] = True
    if not single:
        best = np.where(voted, scores, -np.inf).argmax(axis=1)
        return names[best], _transformed(scores, post_transform).astype(np.float32)
    positive = remembered(are_positive, weights)
    chosen = names[(scores[:, 0] > (0.5 if positive else 0)).astype(np.intp)]
    if class_ids[0] == 1:
        both = np.concatenate([np.zeros_like(scores), scores], axis=1)
        return chosen, _transformed(both, post_transform).astype(np.float32)
    return chosen, _pair(scores, positive, post_transform).astype(np.float32)


def are_one(ids: Sequence[int]) -> bool:
    """Whether there is one number and no other."""
    array = np.asarray(ids)
    return bool(array.size and (array == array[0]).all())


def are_positive(weights: Any) -> bool:
    return bool(np.all(np.asarray(weights) >= 0))


def _pair(scores: Array, positive: bool, transform: str) -> Array:
    """Scores of both classes from votes that are all listed under the first one but are meant for the second."""
    if transform == "PROBIT":
        return _transformed(np.concatenate([1 - scores, scores], axis=1), transform)
    if transform == "LOGISTIC":
        return _transformed(np.concatenate([-scores, scores], axis=1), transform)
    return np.concatenate([1 - scores if positive else -scores, scores], axis=1)


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
    scores, _ = forest.collect(ctx, x, ("AVERAGE", "SUM", "MIN", "MAX")[aggregate_function])
    transform = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[post_transform]
    return _transformed(scores, transform).astype(x.dtype)
