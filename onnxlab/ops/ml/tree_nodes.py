"""Nodes of tree ensembles: which leads where, and what keeps the lists of an ensemble from being trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab.ops.base.kernel_helpers import Array

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
MEMBER, LEAF = 6, 7
_PLACES = {"LEAF": LEAF, **{name: place for place, name in enumerate(MODES)}}
_MOST_FEATURES = 2**31
_STRINGS = 1 << 16
"""The most strings that are decoded at a time."""


class _Ids:
    """Node numbers by tree and id, which are sorted once.

    Raises:
        ValueError: a tree has two nodes of one id.
    """

    def __init__(self, trees: Array, ids: Array) -> None:
        self._trees, self.first, places = np.unique(trees, return_index=True, return_inverse=True)
        keys = places * len(ids) + ids
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        twice = np.flatnonzero(self._keys[1:] == self._keys[:-1])
        if twice.size:
            number = self._order[twice[0]]
            raise ValueError(f"node {ids[number]} of tree {trees[number]} is there twice")

    def find(self, trees: Array, ids: Array) -> Array:
        """Node numbers of pairs of a tree and an id. Raises ValueError where there is no such node."""
        count = len(self._keys)
        if not count or not len(ids):
            absent = np.arange(len(ids))
        else:
            place = np.minimum(np.searchsorted(self._trees, trees), len(self._trees) - 1)
            sought = place * count + ids
            at = np.minimum(np.searchsorted(self._keys, sought), count - 1)
            absent = np.flatnonzero(
                (self._keys[at] != sought) | (self._trees[place] != trees) | (ids < 0) | (ids >= count)
            )
        if absent.size:
            raise ValueError(f"there is no node {ids[absent[0]]} in tree {trees[absent[0]]}, which a list names")
        return self._order[at] if len(ids) else ids


@dataclass(frozen=True)
class TreeNodes:
    """The nodes of all trees of an ensemble; a node number is its place in the lists.

    Attributes:
        modes: places in MODES, LEAF for leaves.
        true, false: node numbers to go to, the node itself for a leaf.
        roots: node number of every tree's root.
    """

    modes: Array
    true: Array
    false: Array
    roots: Array


@dataclass(frozen=True)
class ListedNodes(TreeNodes):
    """Nodes that have ids of their own in every tree.

    Attributes:
        ids: the way from ids to node numbers.
    """

    ids: _Ids

    def votes(
        self, trees: Any, nodes: Any, targets: Sequence[int] | None, weights: int, end: int
    ) -> tuple[Array, Array]:
        """(node numbers, targets below `end`) of so many votes; without targets all are for the first.

        Raises:
            ValueError: the lists are of different lengths, or name what is not there.
        """
        for name, other in (("treeids", trees), ("nodeids", nodes), ("ids", nodes if targets is None else targets)):
            same_length(f"{name} of votes", len(other), "weights", weights)
        chosen = np.zeros(weights, np.int64) if targets is None else np.asarray(targets, np.int64)
        in_range("the target or class of a vote", chosen, end)
        return self.ids.find(np.asarray(trees, np.int64), np.asarray(nodes, np.int64)), chosen


def linked(
    treeids: Sequence[int], nodeids: Sequence[int], modes: Sequence[str], true: Sequence[int], false: Sequence[int]
) -> ListedNodes:
    """The nodes that the attributes of versions 1 to 5 of the two older operators list.

    Raises:
        ValueError: the lists are no trees, as ONNX Runtime reads them.
    """
    columns = (treeids, nodeids, true, false)
    tree, node, yes, no = (np.asarray(column, np.int64) for column in columns)
    count, mode = len(node), _places(modes)
    names = ("nodes_treeids", "nodes_modes", "nodes_truenodeids", "nodes_falsenodeids")
    for name, column in zip(names, (tree, mode, yes, no), strict=True):
        same_length(name, len(column), "nodes_nodeids", count)
    in_range("the id of a node", node, count)
    numbers = _Ids(tree, node)
    inner = np.flatnonzero(mode != LEAF)
    true_numbers, false_numbers = np.arange(count), np.arange(count)
    true_numbers[inner] = numbers.find(tree[inner], yes[inner])
    false_numbers[inner] = numbers.find(tree[inner], no[inner])
    _refuse_cycles(mode, true_numbers, false_numbers, numbers.first)
    return ListedNodes(mode, true_numbers, false_numbers, np.sort(numbers.first), numbers)


def planted_nodes(
    modes: Any, true: Any, true_leaves: Any, false: Any, false_leaves: Any, roots: Any, leaves: int
) -> TreeNodes:
    """The nodes of TreeEnsemble-5: those that branch, then the leaves.

    Raises:
        ValueError: the lists are no trees.
    """
    inner, places = len(modes), np.asarray(modes, np.int64)
    in_range("the mode of a node", places, LEAF)
    ends: list[Any] = []
    for word, nodes, is_leaf in (("true", true, true_leaves), ("false", false, false_leaves)):
        same_length(f"nodes_{word}nodeids", len(nodes), "nodes_modes", inner)
        same_length(f"nodes_{word}leafs", len(is_leaf), "nodes_modes", inner)
        numbers, at_leaf = np.asarray(nodes, np.int64), np.asarray(is_leaf, bool)
        in_range(f"nodes_{word}nodeids of a leaf", numbers[at_leaf], leaves)
        in_range(f"nodes_{word}nodeids of a node", numbers[~at_leaf], inner)
        ends.append(np.concatenate([numbers + np.where(at_leaf, inner, 0), np.arange(inner, inner + leaves)]))
    first = np.asarray(roots, np.int64)
    in_range("the root of a tree", first, inner)
    every = np.concatenate([places, np.full(leaves, LEAF)])
    to_true, to_false = ends
    _refuse_cycles(every, to_true, to_false, first)
    return TreeNodes(every, to_true, to_false, first)


def features_of(modes: Array, columns: Any) -> Array:
    """The feature that each node reads; what stands at leaves means nothing.

    Raises:
        ValueError: there is not one for each node, or it is below 0.
    """
    features = np.asarray(columns, np.int64)
    same_length("nodes_featureids", len(features), "nodes_modes", len(modes))
    in_range("the feature of a node", features[modes != LEAF], _MOST_FEATURES)
    return features


def members(modes: Array, values: Any) -> dict[int, Array]:
    """The set of every node that is BRANCH_MEMBER: runs of values that NaN ends, in the order of the nodes.

    Raises:
        ValueError: a node has none, as ONNX Runtime says.
    """
    nodes = np.flatnonzero(modes == MEMBER).tolist()
    flat = np.asarray(() if values is None else values).reshape(-1)
    runs = np.split(flat, np.flatnonzero(np.isnan(flat)) + 1) if nodes else []
    sets = {node: run[~np.isnan(run)] for node, run in zip(nodes, runs, strict=False)}
    for node in nodes:
        if not np.size(sets.get(node, ())):
            raise ValueError(f"node {node} is BRANCH_MEMBER, and membership_values has no values for it")
    return sets


def _refuse_cycles(modes: Array, true: Array, false: Array, roots: Array) -> None:
    """Raise ValueError where some path from a root never ends; a node may be reached in several ways."""
    inner = np.flatnonzero(modes != LEAF)
    ways = np.bincount(np.concatenate([true[inner], false[inner]]), minlength=len(modes))
    ways[modes == LEAF] = 0
    if ways.max(initial=0) <= 1 and not ways[roots].any():
        return  # the first node of a cycle on a path is reached from before and from within, or is a root
    following, leaf = list(zip(true.tolist(), false.tolist(), strict=True)), (modes == LEAF).tolist()
    entered, left, stack = bytearray(len(modes)), bytearray(len(modes)), roots.tolist()
    while stack:
        node = stack[-1]
        if entered[node] or leaf[node]:
            stack.pop()
            left[node] = 1
            continue
        entered[node] = 1
        for child in following[node]:
            if entered[child] and not left[child]:
                raise ValueError("the trees have a cycle: some row never reaches a leaf")
            if not left[child]:
                stack.append(child)


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


def same_length(name: str, count: int, other: str, expected: int) -> None:
    """Raise ValueError where two lists that belong together are not of one length."""
    if count != expected:
        raise ValueError(f"it has {count} {name} and {expected} {other}")


def in_range(name: str, numbers: Array, end: int) -> None:
    """Raise ValueError where a number is below 0, or `end` or more."""
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < end):
        wrong = numbers[(numbers < 0) | (numbers >= end)][0]
        raise ValueError(f"{name} is {wrong}: " + (f"expected 0 to {end - 1}" if end > 0 else "there are none"))
