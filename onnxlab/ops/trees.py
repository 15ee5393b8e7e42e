"""Tree ensembles of ai.onnx.ml: TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble.

All trees go down one level at a time together, for all rows: a matrix [rows, trees] of node numbers.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onnxlab.limits import RunContext
from onnxlab.ops.ml import DOMAIN, labels, post_transform
from onnxlab.ops.numeric import Array
from onnxlab.ops.prepared import remembered
from onnxlab.ops.registry import kernel

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_MEMBER, LEAF = 6, 7
_COMPARE: tuple[Callable[[Array, Array], Array], ...] = (
    np.less_equal,
    np.less,
    np.greater_equal,
    np.greater,
    np.equal,
    np.not_equal,
)
_ROWS = 1 << 18
"""Elements of the matrix of node numbers that is worked on at a time."""


@dataclass(frozen=True)
class Forest:
    """Nodes of all trees, one entry per node.

    Attributes:
        modes: places in MODES, LEAF for leaves.
        true, false: node numbers to go to (themselves for leaves).
        missing: whether NaN goes to the true branch.
        members: for BRANCH_MEMBER, {node: values}.
        roots: node number of every tree's root.
        votes: [nodes, targets] what each leaf adds.
        voted: [nodes, targets] whether it adds anything.
    """

    modes: Array
    features: Array
    values: Array
    true: Array
    false: Array
    missing: Array
    members: dict[int, Array]
    roots: Array
    votes: Array
    voted: Array

    @cached_property
    def _kinds(self) -> tuple[list[int], bool]:
        """(modes of the nodes that branch, whether NaN goes to a true branch anywhere)."""
        return [mode for mode in np.unique(self.modes).tolist() if mode != LEAF], bool(self.missing.any())

    @cached_property
    def depth(self) -> int:
        """Branches on the longest way from a root to a leaf.

        Raises:
            ValueError: the trees go in circles.
        """
        level = np.unique(self.roots)
        for depth in range(len(self.modes) + 1):
            inner = level[self.modes[level] != LEAF]
            if not inner.size:
                return depth
            level = np.unique(np.concatenate([self.true[inner], self.false[inner]]))
        raise ValueError("the trees have a cycle: some row never reaches a leaf")

    def leaves(self, ctx: RunContext, x: Array) -> Array:
        """[rows, trees]: the leaf that every tree sends every row to.

        Raises:
            ValueError: the trees go in circles.
        """
        at = self.roots[None] if len(x) == 1 else np.broadcast_to(self.roots, (len(x), len(self.roots)))
        rows = np.arange(len(x))[:, None]
        modes, missing = self._kinds
        if len(modes) == 1 and modes[0] != _MEMBER and not missing:  # leaves lead to themselves
            compare = _COMPARE[modes[0]]
            for _ in range(self.depth):
                ctx.check()
                go = compare(x[rows, self.features[at]], self.values[at])
                at = np.where(go, self.true[at], self.false[at])
            return at
        for _ in range(len(self.modes) + 1):
            ctx.check()
            mode = self.modes[at]
            if (mode == LEAF).all():
                return at
            seen, split = x[rows, self.features[at]], self.values[at]
            go = np.zeros(at.shape, bool)
            for one in modes:
                chosen = self._member(at, seen) if one == _MEMBER else _COMPARE[one](seen, split)
                go = chosen if len(modes) == 1 else np.where(mode == one, chosen, go)
            if missing:
                go |= self.missing[at] & np.isnan(seen)
            at = np.where(go, self.true[at], self.false[at])
        raise ValueError("the trees have a cycle: some row never reaches a leaf")

    def _member(self, at: Array, seen: Array) -> Array:
        found = np.zeros(at.shape, bool)
        for node, members in self.members.items():
            found |= (at == node) & np.isin(seen, members)
        return found

    def collect(self, ctx: RunContext, x: Array, aggregate: str) -> tuple[Array, Array]:
        """(scores, whether any leaf voted), both [rows, targets]."""
        scores = np.zeros((len(x), self.votes.shape[1]), self.votes.dtype)
        voted = np.zeros(scores.shape, bool)
        step = max(1, _ROWS // max(1, len(self.roots) * self.votes.shape[1]))
        for start in range(0, len(x), step):
            part = slice(start, start + step)
            leaves = self.leaves(ctx, x[part])
            if aggregate in ("SUM", "AVERAGE"):
                scores[part] = self.votes[leaves].sum(axis=1)
                voted[part] = self.voted[leaves].any(axis=1)
                continue
            for leaf in leaves.T:
                votes, given = self.votes[leaf], self.voted[leaf]
                better = np.minimum if aggregate == "MIN" else np.maximum
                both = voted[part] & given
                scores[part] = np.where(both, better(scores[part], votes), np.where(given, votes, scores[part]))
                voted[part] |= given
        if aggregate == "AVERAGE":
            scores /= len(self.roots)
        return scores, voted


def grow(
    treeids: Sequence[int],
    nodeids: Sequence[int],
    modes: Sequence[str],
    features: Sequence[int],
    values: Any,
    true: Sequence[int],
    false: Sequence[int],
    missing: Sequence[int] | None,
    vote_trees: Sequence[int],
    vote_nodes: Sequence[int],
    vote_targets: Sequence[int] | None,
    vote_weights: Any,
    targets: int,
) -> Forest:
    """A forest from the attributes of versions 1 to 5 of the two older operators; without targets all vote for one."""
    vote_targets = [0] * len(vote_nodes) if vote_targets is None else vote_targets
    tree, node = np.asarray(treeids, np.int64), np.asarray(nodeids, np.int64)
    mode = np.array([LEAF if name == "LEAF" else MODES.index(name) for name in modes], np.int64)
    span = int(node.max(initial=0)) + 1
    keys = tree * span + node
    order = np.argsort(keys, kind="stable")

    def find(trees: Array, nodes: Sequence[int]) -> Array:
        """Node numbers of (tree, node id) pairs."""
        wanted = trees * span + np.asarray(nodes, np.int64)
        return order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(order) - 1)]

    own = np.arange(len(mode))
    yes, no = (np.where(mode == LEAF, own, find(tree, branch)) for branch in (true, false))
    weights = np.asarray(vote_weights)
    dtype = np.float64 if weights.dtype == np.float64 and isinstance(vote_weights, np.ndarray) else np.float32
    votes, voted = np.zeros((len(mode), targets), dtype), np.zeros((len(mode), targets), bool)
    place = find(np.asarray(vote_trees, np.int64), vote_nodes), np.asarray(vote_targets, np.int64)
    np.add.at(votes, place, weights.astype(dtype))
    voted[place] = True
    _, roots = np.unique(tree, return_index=True)
    return Forest(
        mode,
        np.asarray(features, np.int64),
        np.asarray(values, np.float64 if dtype == np.float64 else np.float32),
        yes,
        no,
        np.asarray(missing, bool) if missing else np.zeros(len(mode), bool),
        {},
        np.sort(roots),
        votes,
        voted,
    )


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
    return len(set(ids)) == 1


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


def planted(
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
    membership_values: Array | None,
    n_targets: int,
    nodes_missing_value_tracks_true: Sequence[int] | None,
) -> Forest:
    """A forest from the attributes of TreeEnsemble-5."""
    inner, leaves = len(nodes_featureids), len(leaf_targetids)
    pad = np.zeros(leaves, np.int64)
    own = np.arange(inner, inner + leaves)

    def branch(nodes: Sequence[int], is_leaf: Sequence[int]) -> Array:
        numbers = np.asarray(nodes, np.int64) + np.where(np.asarray(is_leaf, bool), inner, 0)
        return np.concatenate([numbers, own])

    votes = np.zeros((inner + leaves, n_targets), leaf_weights.dtype)
    votes[own, np.asarray(leaf_targetids, np.int64)] = leaf_weights.reshape(-1)
    voted = np.zeros(votes.shape, bool)
    voted[own, np.asarray(leaf_targetids, np.int64)] = True
    missing = np.zeros(inner + leaves, bool)
    if nodes_missing_value_tracks_true:
        missing[:inner] = nodes_missing_value_tracks_true
    return Forest(
        np.concatenate([nodes_modes.reshape(-1).astype(np.int64), pad + LEAF]),
        np.concatenate([np.asarray(nodes_featureids, np.int64), pad]),
        np.concatenate([nodes_splits.reshape(-1), pad.astype(nodes_splits.dtype)]),
        branch(nodes_truenodeids, nodes_trueleafs),
        branch(nodes_falsenodeids, nodes_falseleafs),
        missing,
        _members(nodes_modes, membership_values),
        np.asarray(tree_roots, np.int64),
        votes,
        voted,
    )


def _members(modes: Array, values: Array | None) -> dict[int, Array]:
    """The set of every BRANCH_MEMBER node: runs of values that NaN ends, in the order of the nodes."""
    nodes = np.flatnonzero(modes.reshape(-1) == MODES.index("BRANCH_MEMBER")).tolist()
    if not nodes or values is None:
        return {}
    flat = values.reshape(-1)
    runs = np.split(flat, np.flatnonzero(np.isnan(flat)) + 1)
    return {node: run[~np.isnan(run)] for node, run in zip(nodes, runs, strict=False)}
