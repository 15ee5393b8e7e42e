"""A forest: all trees of an ensemble of ai.onnx.ml as arrays with one entry per node.

All trees go down one level at a time together, for all rows: a matrix [rows, trees] of node numbers.
"""

# NumPy types the results of its ufuncs as Any
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from onnxlab.limits import RunContext
from onnxlab.ops.base.kernel_helpers import Array
from onnxlab.ops.base.prepared_constants import remembered
from onnxlab.ops.ml.tree_nodes import LEAF, MEMBER, features_of, in_range, linked, members, planted_nodes, same_length

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


@dataclass(frozen=True)
class Forest:
    """Nodes of all trees, one entry per node.

    Attributes:
        modes: places in MODES, LEAF for leaves.
        true: node to go to where the condition holds, the node itself for a leaf.
        false: node to go to where the condition does not hold, the node itself for a leaf.
        missing: whether NaN goes to the true branch.
        members: for BRANCHMEMBER, {node: values}.
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
        """Branches on the longest path from a root to a leaf."""
        level, depth = np.unique(self.roots), 0
        while (inner := level[self.modes[level] != LEAF]).size:
            level = _distinct(np.concatenate([self.true[inner], self.false[inner]]), len(self.modes))
            depth += 1
        return depth

    def leaves(self, ctx: RunContext, x: Array) -> Array:
        """[rows, trees]: the leaf that every tree sends every row to."""
        modes, missing = self._kinds
        is_plain = len(modes) == 1 and modes[0] != MEMBER and not missing
        if is_plain and len(x) * len(self.modes) <= _AT_ONCE and self._reads_up_to < x.shape[1]:
            return self._leaves_at_once(_COMPARE[modes[0]], x)
        at = self.roots[None] if len(x) == 1 else np.broadcast_to(self.roots, (len(x), len(self.roots)))
        rows = np.arange(len(x))[:, None]
        if is_plain:  # leaves lead to themselves
            compare = _COMPARE[modes[0]]
            for _ in range(self.depth):
                ctx.check()
                go = compare(x[rows, self.features[at]], self.values[at])
                at = np.where(go, self.true[at], self.false[at])
            return at
        while not ((mode := self.modes[at]) == LEAF).all():
            ctx.check()
            seen, split = x[rows, self.features[at]], self.values[at]
            go = np.zeros(at.shape, bool)
            for rule in modes:
                chosen = self._member(at, seen) if rule == MEMBER else _COMPARE[rule](seen, split)
                go = chosen if len(modes) == 1 else np.where(mode == rule, chosen, go)
            if missing:
                go |= self.missing[at] & np.isnan(seen)
            at = np.where(go, self.true[at], self.false[at])
        return at

    @cached_property
    def _reads_up_to(self) -> float:
        """The last feature that any node compares; infinity where one counts from the end."""
        read = self._tables(1)[0]
        return float("inf") if read.min(initial=0) < 0 else int(read.max(initial=0))

    @cached_property
    def _tables(self) -> Callable[[int], tuple[Array, ...]]:
        return lru_cache(2)(partial(_tables, self.modes, self.features, self.values, self.true, self.false, self.roots))

    def _leaves_at_once(self, compare: Callable[[Array, Array], Array], x: Array) -> Array:
        """`leaves` of a few nodes and rows: every node is compared, so that a step down is a single look-up."""
        read, values, true, false, at = self._tables(len(x))
        following = np.where(compare(x.T.take(read, axis=0), values), true, false).reshape(-1)
        for _ in range(self.depth):
            at = following.take(at)
        return (at if len(x) == 1 else at // len(x)).T

    def _member(self, at: Array, seen: Array) -> Array:
        matches = np.zeros(at.shape, bool)
        for node, values in self.members.items():
            matches |= (at == node) & np.isin(seen, values)
        return matches

    @cached_property
    def _voted_alike(self) -> Array | None:
        """[1, targets] for which every leaf votes, where all vote for the same; else None."""
        rows = self.voted[self.modes == LEAF]
        return rows[:1] if len(rows) and len(self.roots) and bool((rows == rows[0]).all()) else None

    @cached_property
    def is_voted(self) -> bool:
        """Whether every leaf votes for every target."""
        return self._voted_alike is not None and bool(self._voted_alike.all())

    def collect(self, ctx: RunContext, x: Array, aggregate: str) -> tuple[Array, Array]:
        """(scores [rows, targets], whether any leaf voted, of each row or [1, targets] of all)."""
        dtype = x.dtype if x.dtype == self.votes.dtype else np.result_type(self.votes, x)
        step = max(1, _ROWS // max(1, len(self.roots) * self.votes.shape[1]))
        if aggregate == "SUM" and len(x) <= step and self._voted_alike is not None:
            votes = self.votes.take(self.leaves(ctx, x).T, axis=0)  # added up tree by tree, all rows at once
            return np.add.reduce(votes, axis=0, dtype=dtype), self._voted_alike
        scores = np.zeros((len(x), self.votes.shape[1]), dtype)
        voted = np.zeros(scores.shape, bool)
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


def _tables(
    modes: Array, features: Array, values: Array, true: Array, false: Array, roots: Array, rows: int
) -> tuple[Array, ...]:  # fmt: skip
    """Arrays with which `rows` rows go down at once, [nodes, rows]: row r is at node n in place n · rows + r.

    They are the features that nodes compare (of each node alone, 0 for leaves), the values that these are compared
    with, both places to go to, and the places of the roots. Arrays of one shape are compared several times faster.
    """
    number = np.arange(rows)
    places = [nodes[:, None] * rows + number for nodes in (true, false, roots)]
    return (np.where(modes == LEAF, 0, features), values[:, None].repeat(rows, axis=1), *places)


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
    nodes = remembered(linked, treeids, nodeids, modes, true, false)
    mode, count, weights = nodes.modes, len(nodes.modes), np.asarray(vote_weights)
    columns = features_of(mode, features)
    same_length("nodes_values", len(values), "nodes_nodeids", count)
    place = nodes.votes(vote_trees, vote_nodes, vote_targets, len(weights), targets)
    dtype = np.float64 if weights.dtype == np.float64 and isinstance(vote_weights, np.ndarray) else np.float32
    votes, voted = np.zeros((count, targets), dtype), np.zeros((count, targets), bool)
    if alone:
        leaves = np.flatnonzero(mode == LEAF)
        votes[leaves, 0], voted[leaves] = np.asarray(values, dtype)[leaves], True
        _, first = np.unique(place[0], return_index=True)
        votes[place[0][first], 0] = weights.astype(dtype)[first]
    else:
        np.add.at(votes, place, weights.astype(dtype))
    voted[place] = True
    return Forest(
        mode,
        columns,
        np.asarray(values, np.float64 if dtype == np.float64 else np.float32),
        nodes.true,
        nodes.false,
        np.asarray(missing, bool) if missing and len(missing) == count else np.zeros(count, bool),
        {},
        nodes.roots,
        votes,
        voted,
    )


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
    nodes = planted_nodes(
        nodes_modes.reshape(-1), nodes_truenodeids, nodes_trueleafs, nodes_falsenodeids, nodes_falseleafs, tree_roots,
        len(leaf_targetids),
    )  # fmt: skip
    inner, leaves, total = nodes_modes.size, len(leaf_targetids), len(nodes.modes)
    features = features_of(nodes.modes[:inner], nodes_featureids)
    same_length("nodes_splits", nodes_splits.size, "nodes_modes", inner)
    pad, targets = np.zeros(leaves, np.int64), np.asarray(leaf_targetids, np.int64)
    in_range("the target of a leaf", targets, n_targets)
    votes, voted = np.zeros((total, n_targets), leaf_weights.dtype), np.zeros((total, n_targets), bool)
    votes[np.arange(inner, total), targets] = leaf_weights.reshape(-1)
    voted[np.arange(inner, total), targets] = True
    missing = np.zeros(total, bool)
    if nodes_missing_value_tracks_true:
        missing[:inner] = nodes_missing_value_tracks_true
    return Forest(
        nodes.modes,
        np.concatenate([features, pad]),
        np.concatenate([nodes_splits.reshape(-1), pad.astype(nodes_splits.dtype)]),
        nodes.true,
        nodes.false,
        missing,
        members(nodes_modes.reshape(-1), membership_values),
        nodes.roots,
        votes,
        voted,
    )
