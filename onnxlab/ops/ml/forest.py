"""A forest: all trees of an ensemble of ai.onnx.ml as arrays with one entry per node.

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
from onnxlab.ops.base.kernel_helpers import Array

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
"""The most elements of the matrix of node numbers at a time."""
_FEW = 64
"""The most marks for each number at which marking pays: it reads a mark for every possible number."""
_AT_ONCE = 1 << 14
"""The most pairs of a row and a node up to which all are compared at once."""
_STRINGS = 1 << 16
"""The most strings that are decoded at a time."""


_PLACES = {"LEAF": LEAF, **{name: place for place, name in enumerate(MODES)}}


@dataclass(frozen=True)
class Forest:
    """Nodes of all trees, one entry per node.

    Attributes:
        modes: places in MODES, LEAF for leaves.
        true: node to go to where the condition holds, the node itself for a leaf.
        false: node to go to where the condition does not hold, the node itself for a leaf.
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
        return np.flatnonzero(np.bincount(self.modes, minlength=LEAF)[:LEAF]).tolist(), bool(self.missing.any())

    @cached_property
    def depth(self) -> int:
        """Branches on the longest path from a root to a leaf.

        Raises:
            ValueError: the trees have a cycle.
        """
        level = np.unique(self.roots)
        for depth in range(len(self.modes) + 1):
            inner = level[self.modes[level] != LEAF]
            if not inner.size:
                return depth
            level = _distinct(np.concatenate([self.true[inner], self.false[inner]]), len(self.modes))
        raise ValueError("the trees have a cycle: some row never reaches a leaf")

    def leaves(self, ctx: RunContext, x: Array) -> Array:
        """[rows, trees]: the leaf that every tree sends every row to.

        Raises:
            ValueError: the trees have a cycle.
        """
        at = self.roots[None] if len(x) == 1 else np.broadcast_to(self.roots, (len(x), len(self.roots)))
        rows = np.arange(len(x))[:, None]
        modes, missing = self._kinds
        if len(modes) == 1 and modes[0] != _MEMBER and not missing:  # leaves lead to themselves
            compare = _COMPARE[modes[0]]
            if len(x) * len(self.modes) <= _AT_ONCE and self._reads_up_to < x.shape[1]:
                return self._leaves_at_once(compare, x)
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
            for rule in modes:
                chosen = self._member(at, seen) if rule == _MEMBER else _COMPARE[rule](seen, split)
                go = chosen if len(modes) == 1 else np.where(mode == rule, chosen, go)
            if missing:
                go |= self.missing[at] & np.isnan(seen)
            at = np.where(go, self.true[at], self.false[at])
        raise ValueError("the trees have a cycle: some row never reaches a leaf")

    @cached_property
    def _read(self) -> Array:
        """The features that nodes compare, 0 for leaves."""
        return np.where(self.modes == LEAF, 0, self.features)

    @cached_property
    def _reads_up_to(self) -> float:
        """The last feature that any node compares; infinity where one counts from the end."""
        return float("inf") if self._read.min(initial=0) < 0 else int(self._read.max(initial=0))

    def _leaves_at_once(self, compare: Callable[[Array, Array], Array], x: Array) -> Array:
        """`leaves` of a few nodes and rows: every node is compared, so that a step down is a single look-up."""
        go = compare(x.take(self._read, axis=1), self.values)
        following = np.where(go, self.true, self.false)
        first = np.arange(0, following.size, len(self.modes))[:, None]
        at = self.roots + first
        if len(x) > 1:
            following += first
        flat = following.reshape(-1)
        for _ in range(self.depth):
            at = flat.take(at)
        return at - first

    def _member(self, at: Array, seen: Array) -> Array:
        matches = np.zeros(at.shape, bool)
        for node, members in self.members.items():
            matches |= (at == node) & np.isin(seen, members)
        return matches

    @cached_property
    def _voted_alike(self) -> Array | None:
        """[targets] for which every leaf votes, where all vote for the same; else None."""
        rows = self.voted[self.modes == LEAF]
        return rows[0] if len(rows) and len(self.roots) and bool((rows == rows[0]).all()) else None

    def collect(self, ctx: RunContext, x: Array, aggregate: str) -> tuple[Array, Array]:
        """(scores, whether any leaf voted), both [rows, targets]."""
        scores = np.zeros((len(x), self.votes.shape[1]), np.result_type(self.votes, x))
        voted = np.zeros(scores.shape, bool)
        step = max(1, _ROWS // max(1, len(self.roots) * self.votes.shape[1]))
        for start in range(0, len(x), step):
            part = slice(start, start + step)
            leaves = self.leaves(ctx, x[part])
            if aggregate in ("SUM", "AVERAGE"):
                scores[part] = self.votes.take(leaves, axis=0).sum(axis=1, dtype=scores.dtype)
                alike = self._voted_alike
                voted[part] = self.voted.take(leaves, axis=0).any(axis=1) if alike is None else alike
                continue
            for leaf in leaves.T:
                votes, has_vote = self.votes[leaf], self.voted[leaf]
                better = np.minimum if aggregate == "MIN" else np.maximum
                both = voted[part] & has_vote
                scores[part] = np.where(both, better(scores[part], votes), np.where(has_vote, votes, scores[part]))
                voted[part] |= has_vote
        if aggregate == "AVERAGE":
            scores /= len(self.roots)
        return scores, voted


def _distinct(numbers: Array, end: int) -> Array:
    """The distinct ones among numbers below `end`; many are marked, which takes a tenth of the time of sorting."""
    if len(numbers) < end // _FEW:
        return np.unique(numbers)
    marks = np.zeros(end, bool)
    marks[numbers] = True
    return np.flatnonzero(marks)


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
    """A forest from the attributes of versions 1 to 5 of the two older operators; without targets all vote for one.

    With one target, as in ONNX Runtime, only the first vote of a leaf counts, without votes the value of its node.
    """
    alone = targets == 1 and vote_targets is not None
    vote_targets = np.zeros(len(vote_nodes), np.int64) if vote_targets is None else vote_targets  # type: ignore[assignment]
    tree, node = np.asarray(treeids, np.int64), np.asarray(nodeids, np.int64)
    mode = _places(modes)
    span = int(node.max(initial=0)) + 1
    keys = tree * span + node
    order = np.argsort(keys, kind="stable")

    def find(trees: Array, nodes: Sequence[int]) -> Array:
        """Node numbers of (tree, node id) pairs."""
        sought = trees * span + np.asarray(nodes, np.int64)
        return order[np.minimum(np.searchsorted(keys, sought, sorter=order), len(order) - 1)]

    node_numbers = np.arange(len(mode))
    yes, no = (np.where(mode == LEAF, node_numbers, find(tree, branch)) for branch in (true, false))
    weights = np.asarray(vote_weights)
    dtype = np.float64 if weights.dtype == np.float64 and isinstance(vote_weights, np.ndarray) else np.float32
    votes, voted = np.zeros((len(mode), targets), dtype), np.zeros((len(mode), targets), bool)
    place = find(np.asarray(vote_trees, np.int64), vote_nodes), np.asarray(vote_targets, np.int64)
    if alone:
        leaves = np.flatnonzero(mode == LEAF)
        votes[leaves, 0], voted[leaves] = np.asarray(values, dtype)[leaves], True
        _, first = np.unique(place[0], return_index=True)
        votes[place[0][first], 0] = weights.astype(dtype)[first]
    else:
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


def _places(modes: Sequence[str]) -> Array:
    """The place of every node's mode in MODES.

    Raises:
        ValueError: a mode is in neither MODES nor LEAF.
    """
    places = np.empty(len(modes), np.int64)
    try:
        for start in range(0, len(modes), _STRINGS):
            part = modes[start : start + _STRINGS]
            places[start : start + len(part)] = np.fromiter(map(_PLACES.__getitem__, part), np.int64, len(part))
    except KeyError as error:
        raise ValueError(f"the mode of a node is {error}: expected one of {', '.join(_PLACES)}") from None
    return places


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
    leaf_numbers = np.arange(inner, inner + leaves)

    def branch(nodes: Sequence[int], is_leaf: Sequence[int]) -> Array:
        numbers = np.asarray(nodes, np.int64) + np.where(np.asarray(is_leaf, bool), inner, 0)
        return np.concatenate([numbers, leaf_numbers])

    votes = np.zeros((inner + leaves, n_targets), leaf_weights.dtype)
    votes[leaf_numbers, np.asarray(leaf_targetids, np.int64)] = leaf_weights.reshape(-1)
    voted = np.zeros(votes.shape, bool)
    voted[leaf_numbers, np.asarray(leaf_targetids, np.int64)] = True
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
