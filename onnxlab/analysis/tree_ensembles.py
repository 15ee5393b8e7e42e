"""A look into tree ensembles of ai.onnx.ml: trees with their sizes, splits, and which features they use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from onnxlab.errors import EditError
from onnxlab.ops.base.prepared_constants import remembered
from onnxlab.ops.ml.forest import Forest, grow, planted
from onnxlab.ops.ml.tree_nodes import LEAF, MODES, features_of, in_range, linked, members, planted_nodes, same_length
from onnxlab.printable import printable_lines
from onnxlab.short_help import ShortHelp

Array = np.ndarray[Any, Any]
SIGNS = dict(zip(MODES, ("≤", "<", "≥", ">", "=", "≠", "in"), strict=True))
_SHOWN = 8
_LINES = 200
_COLUMNS = (
    "nodes_treeids", "nodes_nodeids", "nodes_modes", "nodes_featureids", "nodes_values", "nodes_truenodeids",
    "nodes_falsenodeids", "nodes_missing_value_tracks_true",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FeatureUse:
    """The use of a feature by the trees.

    Attributes:
        feature: its column in the input.
        splits: number of splits that ask for the feature.
        low, high: the least and the largest threshold.
    """

    feature: int
    splits: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Trees(metaclass=ShortHelp):
    """The trees of an ensemble.

    Attributes:
        depths: of each tree, the number of branches on its longest path.
        splits: of each tree, the number of nodes that branch.
        leaves: of each tree, the number of leaves.
        features: those that are used, the most used first.
    """

    depths: tuple[int, ...]
    splits: tuple[int, ...]
    leaves: tuple[int, ...]
    features: tuple[FeatureUse, ...]
    forest: Forest = field(repr=False)

    def __len__(self) -> int:
        """The number of trees."""
        return len(self.depths)

    def __str__(self) -> str:
        """A headline, and the features by use."""
        depth = f"depth {min(self.depths, default=0)} to {max(self.depths, default=0)}"
        lines = [f"{len(self)} trees, {sum(self.splits)} splits, {sum(self.leaves)} leaves, {depth}"]
        lines += [
            f"  feature {use.feature}: {use.splits} splits, {use.low:.4g} … {use.high:.4g}"
            for use in self.features[:_SHOWN]
        ]
        if len(self.features) > _SHOWN:
            lines.append(f"  … and {len(self.features) - _SHOWN} more features")
        return printable_lines(lines)

    def text(self, tree: int = 0) -> str:
        """Write a tree, a line for each split and leaf; of a large one the first lines.

        Args:
            tree: its position.

        Returns:
            str: indented lines; below a split, first the branch for which it holds.

        Raises:
            IndexError: there is no such tree.
        """
        forest, lines = self.forest, list[str]()
        pending = [(int(forest.roots[tree]), 0)]
        while pending and len(lines) < _LINES:
            node, depth = pending.pop()
            lines.append("  " * depth + self._line(node))
            if forest.modes[node] != LEAF:
                pending += [(int(forest.false[node]), depth + 1), (int(forest.true[node]), depth + 1)]
        return "\n".join([*lines, *(["…"] if pending else [])])

    def _line(self, node: int) -> str:
        forest = self.forest
        if forest.modes[node] == LEAF:
            votes = [f"{target}: {forest.votes[node, target]:.4g}" for target in np.flatnonzero(forest.voted[node])]
            return "leaf " + (", ".join(votes[:_SHOWN]) or "without a vote")
        mode = MODES[int(forest.modes[node])]
        value = (
            f"{len(forest.members.get(node, ()))} values" if mode == "BRANCH_MEMBER" else f"{forest.values[node]:.6g}"
        )
        return f"feature {forest.features[node]} {SIGNS[mode]} {value}"


_VOTES = {"TreeEnsembleClassifier": "class", "TreeEnsembleRegressor": "target"}
"""How the attributes of the votes of an older ensemble begin."""


def is_ensemble(op_type: str) -> bool:
    """Whether an operator of ai.onnx.ml is a tree ensemble."""
    return op_type == "TreeEnsemble" or op_type in _VOTES


def trees_of(op_type: str, attributes: Mapping[str, Any]) -> Trees:
    """The trees that the attributes of a node hold.

    Raises:
        EditError: the node is no tree ensemble, or its attributes hold no trees.
    """
    if not is_ensemble(op_type):
        raise EditError(f"{op_type} is no tree ensemble")
    try:
        return _measured(_forest(op_type, attributes))
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise EditError(f"the attributes of {op_type} hold no trees: {error}") from error


def _forest(op_type: str, attributes: Mapping[str, Any]) -> Forest:
    of = partial(_of, attributes)
    if op_type == "TreeEnsemble":
        names = ("leaf_targetids", "leaf_weights", "nodes_falseleafs", "nodes_falsenodeids", "nodes_featureids",
                 "nodes_modes", "nodes_splits", "nodes_trueleafs", "nodes_truenodeids", "tree_roots")  # fmt: skip
        newest: list[Any] = [np.asarray(of(name)) for name in names]
        count, missing = int(of("n_targets", 1)), of("nodes_missing_value_tracks_true", None)
        plant: Callable[..., Forest] = planted
        return plant(*newest, of("membership_values", None), count, missing)
    vote = _VOTES[op_type]
    columns = [_either(of, name) if name == "nodes_values" else of(name) for name in _COLUMNS]
    targets = [int(target) for target in of(f"{vote}_ids")]
    build: Callable[..., Forest] = grow
    return build(
        *columns, of(f"{vote}_treeids"), of(f"{vote}_nodeids"), targets, _either(of, f"{vote}_weights"),
        max([1, *(target + 1 for target in targets)]),
    )  # fmt: skip


def refuse_lists(op_type: str, attributes: Mapping[str, Any]) -> None:
    """Raise ValueError where the attributes of a tree ensemble are no trees; the votes are not added up."""
    of = partial(_of, attributes)
    if op_type == "TreeEnsemble":
        names = ("truenodeids", "trueleafs", "falsenodeids", "falseleafs")
        true, true_leaves, false, false_leaves = (of(f"nodes_{name}") for name in names)
        modes, targets = np.asarray(of("nodes_modes")), np.asarray(of("leaf_targetids"), np.int64)
        planted_nodes(modes.reshape(-1), true, true_leaves, false, false_leaves, of("tree_roots"), len(targets))
        members(modes.reshape(-1), of("membership_values"))
        in_range("the target of a leaf", targets, max(1, of("n_targets", 1)))
        features_of(modes.reshape(-1), of("nodes_featureids"))
        same_length("nodes_splits", np.size(of("nodes_splits")), "nodes_modes", modes.size)
        same_length("leaf_weights", np.size(of("leaf_weights")), "leaf_targetids", len(targets))
    else:
        columns = ("treeids", "nodeids", "modes", "truenodeids", "falsenodeids")
        nodes = remembered(linked, *(of(f"nodes_{name}") for name in columns))
        vote, classes = _VOTES[op_type], (of("classlabels_strings"), of("classlabels_int64s"))
        trees, ids, targets = (of(f"{vote}_{name}") for name in ("treeids", "nodeids", "ids"))
        end = max(map(len, classes)) if vote == "class" else max(1, of("n_targets", 1))  # inference tells of 0
        nodes.votes(trees, ids, targets, len(_either(of, f"{vote}_weights")), end)
        features_of(nodes.modes, of("nodes_featureids"))
        same_length("nodes_values", len(_either(of, "nodes_values")), "nodes_modes", len(nodes.modes))


def _of(attributes: Mapping[str, Any], name: str, default: Any = ()) -> Any:
    held = attributes.get(name)
    return default if held is None else held


def _either(of: Callable[..., Any], name: str) -> Any:
    """A list, or the tensor that newer versions may have in its place."""
    tensor = of(f"{name}_as_tensor", None)
    return of(name) if tensor is None else tensor


def _measured(forest: Forest) -> Trees:
    """Sizes of all trees, one level at a time."""
    count, most = len(forest.roots), len(forest.modes)
    depths, splits, leaves = (np.zeros(count, np.int64) for _ in range(3))
    owner, level, seen = np.arange(count), forest.roots, 0
    for depth in range(most + 1):
        if not level.size:
            break
        seen += len(level)
        if seen > most:
            raise ValueError("a node stands in several places, or in a cycle")
        inner = forest.modes[level] != LEAF
        leaves += np.bincount(owner[~inner], minlength=count)
        splits += np.bincount(owner[inner], minlength=count)
        depths[owner] = depth
        owner = np.concatenate([owner[inner], owner[inner]])
        level = np.concatenate([forest.true[level[inner]], forest.false[level[inner]]])
    branching = np.flatnonzero(forest.modes != LEAF)
    uses = []
    for feature in np.unique(forest.features[branching]).tolist():
        values = forest.values[branching[forest.features[branching] == feature]]
        uses.append(FeatureUse(feature, len(values), float(np.min(values)), float(np.max(values))))
    ranked = tuple(sorted(uses, key=lambda use: (-use.splits, use.feature)))
    return Trees(tuple(depths.tolist()), tuple(splits.tolist()), tuple(leaves.tolist()), ranked, forest)
