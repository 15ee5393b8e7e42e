"""ai.onnx.ml: tree ensembles, linear models, features. Labels that are strings are left to NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.matrix_products import bits
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.builder import Word
from onnxlab.execution.numba.plan.copies import contiguous
from onnxlab.execution.numba.plan.elementwise_chains import Chain, chain
from onnxlab.execution.numba.plan.views import Array, View, constant_view
from onnxlab.execution.numba.plan.weight_packing import Key
from onnxlab.execution.numba.rules.onnx.matmul import by_constant
from onnxlab.execution.numba.rules.onnx.rows import emit_rows
from onnxlab.execution.numba.rules.registry import StaticFacts, dtype_reason, rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.base.prepared_constants import remembered
from onnxlab.ops.ml.features import for_features
from onnxlab.ops.ml.forest import Forest, grow, planted
from onnxlab.ops.ml.tree_nodes import LEAF
from onnxlab.ops.ml.trees import are_one, threshold_of

DOMAIN = "ai.onnx.ml"
_FLOAT, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC")
_AGGREGATES = {"SUM": 0, "AVERAGE": 0, "MIN": 1, "MAX": 2}
_BRANCH, _OF_NAN = 16, 8
_BITS = (0b0011, 0b0001, 0b0110, 0b0100, 0b0010, 0b1101)
"""What goes to the true branch of each of MODES: what is less, equal, greater, NaN, from the lowest bit."""
_NOT_EQUAL = 5
_MOST = 1 << 31  # bytes of all nodes, whose offsets are int32
_NODES = (
    "nodes_treeids", "nodes_nodeids", "nodes_modes", "nodes_featureids", "nodes_values", "nodes_truenodeids",
    "nodes_falsenodeids", "nodes_missing_value_tracks_true",
)  # fmt: skip


def accept_scores(node: NodeView, view: StaticFacts) -> str:
    """Take features of float32, labels that are numbers, and scores of the transforms that there are."""
    attributes = node.attributes
    if attributes.get("classlabels_strings"):
        return "labels that are strings"
    if attributes.get("post_transform", "NONE") not in _TRANSFORMS or any(
        name.endswith("_as_tensor") for name in attributes
    ):
        return "only the transforms " + ", ".join(_TRANSFORMS) + ", of float32"
    return dtype_reason(node.inputs[0], view, lambda dtype: dtype == _FLOAT)


def features(binder: Binder, node: NodeView) -> View:
    """X as rows of contiguous features."""
    return _in_rows(binder, binder.floats(node.inputs[0]))


def _in_rows(binder: Binder, view: View) -> View:
    x = contiguous(binder.builder, view)
    if len(x.shape) > 2 or not x.size:
        raise UnbindableError(f"X has shape {x.shape}")
    item = x.dtype.itemsize
    return x if len(x.shape) == 2 else x.at(0, (1, x.shape[0]), (item * x.shape[0], item))


# -- trees -----------------------------------------------------------------------------------------------------------


def _grown(attributes: Mapping[str, Any], votes: str, ids: Any, targets: int) -> Forest:
    """The forest of one of the two older operators, whose votes are for "target" or "class"."""
    lists = [attributes.get(name, None if name.endswith("true") else ()) for name in _NODES]
    ballots = [attributes.get(f"{votes}_{name}", ()) for name in ("treeids", "nodeids")]
    forest: Forest = remembered(grow, *lists, *ballots, ids, attributes.get(f"{votes}_weights", ()), targets)
    return forest


def _words(binder: Binder, forest: Forest, key: Key) -> tuple[dict[str, Word], list[View]]:
    """The tables of a forest, remembered by a key; behind its nodes a leaf without votes, of the trees that fill up."""
    if forest.members:
        raise UnbindableError("BRANCH_MEMBER")
    leaves, heads = forest.modes == LEAF, _heads(forest)
    nodes, size = _nodes(forest, heads)
    count, targets = forest.votes.shape
    roots = np.full(-(-len(forest.roots) // 8) * 8, count * size, np.int64)
    roots[: len(forest.roots)] = forest.roots * size
    arrays = {"nodes": nodes, "roots": roots, "votes": np.zeros((count + 1, targets), forest.votes.dtype),
              "voted": np.zeros((count + 1, targets), np.uint8)}  # fmt: skip
    arrays["votes"][:-1], arrays["voted"][:-1] = forest.votes, forest.voted
    views = {name: binder.packed.made((*key, name), array) for name, array in arrays.items()}
    words: dict[str, Word] = {name: view.where for name, view in views.items()}
    words["plain"] = int((heads[~leaves] % _BRANCH == _BITS[0]).all())
    words["full"] = int(forest.voted[leaves].all())
    return words | {"trees": len(roots), "targets": targets, "divisor": bits(1.0)}, [*views.values()]


def _heads(forest: Forest) -> Array:
    """The first word of each node."""
    to_true = np.array([*_BITS, 0, 0])[forest.modes] | forest.missing * _OF_NAN
    constant = np.where(forest.modes == _NOT_EQUAL, _BRANCH - 1, forest.missing * _OF_NAN)
    heads = np.where(np.isnan(forest.values), constant, to_true) + forest.features * (2 * _BRANCH) + _BRANCH
    return np.where(forest.modes == LEAF, 0, heads)


def _nodes(forest: Forest, heads: Array) -> tuple[Array, int]:
    """Three int32 and a number of each node, and a leaf behind them; the bytes of a node."""
    number = forest.votes.dtype
    nodes = np.zeros((len(heads) + 1, 2 + number.itemsize // 2), np.int32)
    size, last = nodes.itemsize * nodes.shape[1], number.itemsize // 4
    if max(nodes.nbytes, int(heads.max(initial=0))) >= _MOST:
        raise UnbindableError(f"{len(heads)} nodes")
    places, leaves = np.arange(len(heads) + 1), forest.modes == LEAF
    nodes[:-1, 0], nodes[:, 1:3] = heads, places[:, None] * size
    for column, following in ((1, forest.false), (2, forest.true)):
        nodes[:-1, column] = np.where(leaves, places[:-1], following) * size
    splits = np.nan_to_num(forest.values.astype(number), nan=0.0, posinf=np.inf, neginf=-np.inf)
    nodes[:-1, -last:] = splits.view(np.int32).reshape(-1, last)
    return nodes, size


def _checked(forest: Forest, x: View) -> None:
    """Check features, numbers and the end of each tree, because the kernel trusts them."""
    if not 0 <= int(forest.modes.min(initial=LEAF)) <= int(forest.modes.max(initial=LEAF)) <= LEAF:
        raise UnbindableError("a mode that is not there")
    inner = forest.modes != LEAF
    for numbers in (forest.roots, forest.true[inner], forest.false[inner]):
        if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(forest.modes):
            raise UnbindableError("a node that is not there")
    if forest.votes.dtype != x.dtype:
        raise UnbindableError(f"votes of {forest.votes.dtype}, X of {x.dtype}")
    features = forest.features[inner]
    if features.size and not 0 <= int(features.min()) <= int(features.max()) < x.shape[1]:
        raise UnbindableError("a feature that X does not have")


def _run(
    binder: Binder, x: View, forest: Forest, extra: dict[str, Word], writes: list[View], y: View
) -> None:  # fmt: skip
    _checked(forest, x)
    words, reads = _words(binder, forest, ("forest", *binder.packed.key_of(forest.votes, persistent=True)))
    rows = x.shape[0]
    unit = max(1, -(-rows // 32))
    values = {"x": x.where, "x_row": x.strides[0], "rows": rows, "unit_rows": unit, "y": y.where, **words, **extra}
    values["number"] = x.dtype.itemsize
    values["full"] = values["full"] if values["aggregate"] == 0 and len(forest.roots) else 0
    work = rows * len(forest.roots) * (4.0 + 1.5 * forest.depth)
    binder.builder.emit("forest", -(-rows // unit), values, [x, *reads], [y, *writes], work=work)


def _base(binder: Binder, values: Any, targets: int) -> Word:
    if not values:
        return 0
    base = np.asarray(values, np.float32)[-targets:]
    return binder.builder.keep(np.ascontiguousarray(np.broadcast_to(base, (targets,))))


@rule("TreeEnsembleRegressor", domain=DOMAIN, accept=accept_scores, weight=8)
def tree_regressor(binder: Binder, node: NodeView) -> None:
    """Lower TreeEnsembleRegressor."""
    attributes, x = node.attributes, features(binder, node)
    targets, aggregate = attributes.get("n_targets", 1), attributes.get("aggregate_function", "SUM")
    forest = _grown(attributes, "target", attributes.get("target_ids", ()), targets)
    transform = _transform(attributes.get("post_transform", "NONE"), targets)
    plain = transform == "NONE"
    y = binder.allocate(node.outputs[0] if plain else "", (x.shape[0], targets), np.float32)
    extra: dict[str, Word] = {
        "aggregate": _AGGREGATES[aggregate], "base": _base(binder, attributes.get("base_values"), targets),
        "divisor": bits(float(len(forest.roots)) if aggregate == "AVERAGE" else 1.0),
    }  # fmt: skip
    _run(binder, x, forest, extra, [], y)
    transformed(binder, node.outputs[0], y, transform)


def _transform(name: str, columns: int) -> str:
    """The transform that is applied to `columns` scores: none to a single one."""
    return name if columns > 1 else "NONE"


def transformed(binder: Binder, name: str, scores: View, transform: str) -> None:
    """Name the scores after their transform."""
    if transform == "NONE" or not name:
        binder.put(name, scores)
    elif transform == "LOGISTIC":
        binder.put(name, chain("sigmoid", scores))
    else:
        rows, length = scores.shape
        target = binder.allocate(name, scores.shape, np.float32)
        emit_rows(binder, "softmax", scores, target, rows, length, length * 4, length * 4, cost=0.5)
        binder.put(name, target)


def _classifier_accept(node: NodeView, view: StaticFacts) -> str:
    classes, base = len(node.attributes.get("classlabels_int64s", ())), len(node.attributes.get("base_values") or ())
    if classes < 2 or (classes == 2 and not remembered(are_one, node.attributes.get("class_ids", ()))):
        return "less than two classes, or votes for both of two: decided row by row"
    if base not in ((0, 1) if classes == 2 else (0, classes)):
        return f"{base} values to add to the scores of {classes} classes"
    return accept_scores(node, view)


@rule("TreeEnsembleClassifier", domain=DOMAIN, accept=_classifier_accept, weight=8)
def tree_classifier(binder: Binder, node: NodeView) -> None:
    """Lower TreeEnsembleClassifier."""
    attributes, x = node.attributes, features(binder, node)
    names = np.asarray(attributes.get("classlabels_int64s", ()), np.int64)
    ids, base = attributes.get("class_ids", ()), attributes.get("base_values") or ()
    single = len(names) == 2 and remembered(are_one, ids)
    forest = _grown(attributes, "class", None if single else ids, 1 if single else len(names))
    if single and not forest.voted[forest.modes == LEAF].all():
        raise UnbindableError("a leaf that votes for neither class")
    transform, pair, threshold = _transform(attributes.get("post_transform", "NONE"), len(names)), 0, 0.0
    if single:
        threshold = remembered(threshold_of, ids, attributes.get("class_weights", ())) or 0.0
        if ids[0] == 1:  # what is to be added to the first score is not seen
            pair, base = 1, ()
        else:
            pair = 2 if threshold and transform != "LOGISTIC" else 3
            transform = transform if transform == "LOGISTIC" else "NONE"
    y, choices = _answers(binder, node, x.shape[0], len(names), transform)
    extra: dict[str, Word] = {
        "choices": choices.where, "names": binder.builder.keep(names), "pair": pair,
        "aggregate": 0, "threshold": bits(threshold), "always": 1,
        "base": _base(binder, base, 1 if single else len(names)),
    }  # fmt: skip
    _run(binder, x, forest, extra, [choices], y)
    binder.put(node.outputs[0], choices)
    transformed(binder, node.outputs[1] if len(node.outputs) > 1 else "", y, transform)


_TARGETS = ("AVERAGE", "SUM", "MIN", "MAX")
_PLANTED = (
    "leaf_targetids", "leaf_weights", "nodes_falseleafs", "nodes_falsenodeids", "nodes_featureids", "nodes_modes",
    "nodes_splits", "nodes_trueleafs", "nodes_truenodeids", "tree_roots",
)  # fmt: skip


def _ensemble_accept(node: NodeView, view: StaticFacts) -> str:
    if node.attributes.get("post_transform", 0) >= len(_TRANSFORMS):
        return "only the transforms " + ", ".join(_TRANSFORMS)
    plain = node.attributes.get("post_transform", 0) == 0
    return dtype_reason(node.inputs[0], view, lambda dtype: dtype == _FLOAT or (plain and dtype == _DOUBLE))


@rule("TreeEnsemble", domain=DOMAIN, accept=_ensemble_accept, weight=8)
def tree_ensemble(binder: Binder, node: NodeView) -> None:
    """Lower TreeEnsemble."""
    attributes, x = node.attributes, _in_rows(binder, binder.view(node.inputs[0]))
    targets = attributes.get("n_targets", 1)
    lists = [attributes[name] for name in _PLANTED]
    missing = attributes.get("nodes_missing_value_tracks_true")
    forest = remembered(planted, *lists, attributes.get("membership_values"), targets, missing)
    transform = _transform(_TRANSFORMS[attributes.get("post_transform", 0)], targets)
    aggregate = _TARGETS[attributes.get("aggregate_function", 1)]
    plain = transform == "NONE"
    y = binder.allocate(node.outputs[0] if plain else "", (x.shape[0], targets), x.dtype)
    extra: dict[str, Word] = {
        "aggregate": _AGGREGATES[aggregate],
        "divisor": bits(float(len(forest.roots)) if aggregate == "AVERAGE" else 1.0),
    }
    _run(binder, x, forest, extra, [], y)
    transformed(binder, node.outputs[0], y, transform)


def _answers(binder: Binder, node: NodeView, rows: int, classes: int, transform: str) -> tuple[View, View]:
    """Places for scores and labels."""
    plain = transform == "NONE" and len(node.outputs) > 1
    y = binder.allocate(node.outputs[1] if plain else "", (rows, classes), np.float32)
    return y, binder.allocate(node.outputs[0], (rows,), np.int64)


# -- linear models ---------------------------------------------------------------------------------------------------


def _scores(binder: Binder, x: View, coefficients: Array, intercepts: Any, name: str = "") -> View:
    """Rows times coefficients [count, features] plus intercepts."""
    target = binder.allocate(name, (x.shape[0], len(coefficients)), np.float32)
    key = ("coefficients", *binder.packed.key_of(coefficients, persistent=False))
    scores = by_constant(binder, x, np.ascontiguousarray(coefficients.T), target, key)
    if intercepts:
        scores.add_columns(np.broadcast_to(np.asarray(intercepts, np.float32), (1, len(coefficients))))
    return binder.emit(scores)


@rule("LinearRegressor", domain=DOMAIN, accept=accept_scores, weight=5)
def linear_regressor(binder: Binder, node: NodeView) -> None:
    """Lower LinearRegressor."""
    attributes, x = node.attributes, features(binder, node)
    coefficients = np.asarray(attributes["coefficients"], np.float32).reshape(attributes.get("targets", 1), -1)
    transform = _transform(attributes.get("post_transform", "NONE"), len(coefficients))
    name = node.outputs[0] if transform == "NONE" else ""
    scores = _scores(binder, x, coefficients, attributes.get("intercepts"), name)
    transformed(binder, node.outputs[0], scores, transform)


@rule("LinearClassifier", domain=DOMAIN, accept=accept_scores, weight=5)
def linear_classifier(binder: Binder, node: NodeView) -> None:
    """Lower LinearClassifier."""
    attributes, x = node.attributes, features(binder, node)
    names = np.asarray(attributes.get("classlabels_ints", ()), np.int64)
    width = x.shape[1]
    count = len(attributes.get("intercepts") or ()) or len(attributes["coefficients"]) // width
    weights = np.asarray(attributes["coefficients"], np.float32)[: count * width].reshape(count, width)
    scores = _scores(binder, x, weights, attributes.get("intercepts"))
    transform = attributes.get("post_transform", "NONE")
    paired = count == 1 and len(names) == 2
    if count > 1 and len(names) < count:
        raise UnbindableError("fewer labels than scores")
    y, choices = scores, binder.allocate(node.outputs[0], (x.shape[0],), np.int64)
    if paired:
        y = binder.builder.allocate((x.shape[0], 2), np.float32)
    elif count == 1:
        names = np.array([0, 1])
    unit = max(1, -(-x.shape[0] // 32))
    values: dict[str, Word] = {
        "x": scores.where, "x_row": scores.strides[0], "rows": x.shape[0], "unit_rows": unit, "targets": count,
        "y": y.where, "choices": choices.where, "names": binder.builder.keep(names), "threshold": bits(0.0),
        "pair": 0 if not paired else 3 if transform == "LOGISTIC" else 2,
    }  # fmt: skip
    writes = [choices, y] if paired else [choices]
    binder.builder.emit("choose", -(-x.shape[0] // unit), values, [scores], writes, work=x.shape[0] * 10.0)
    binder.put(node.outputs[0], choices)
    if count == 1 and transform != "LOGISTIC":
        transform = "NONE"
    transformed(binder, node.outputs[1] if len(node.outputs) > 1 else "", y, _transform(transform, y.shape[1]))


@rule("Scaler", domain=DOMAIN, accept=accept_scores)
def scaler(binder: Binder, node: NodeView) -> None:
    """Lower Scaler."""
    offset, scale = (
        constant_view(np.asarray(node.attributes.get(name, default), np.float32))
        for name, default in (("offset", (0.0,)), ("scale", (1.0,)))
    )
    binder.put(node.outputs[0], chain("mul", chain("sub", binder.operand(node.inputs[0]), offset), scale))


def _imputer_accept(node: NodeView, view: StaticFacts) -> str:
    if not node.attributes.get("imputed_value_floats"):
        return "imputed values that are no floats"
    return accept_scores(node, view)


@rule("Imputer", domain=DOMAIN, accept=_imputer_accept)
def imputer(binder: Binder, node: NodeView) -> None:
    """Lower Imputer."""
    x, old = binder.floats(node.inputs[0]), node.attributes.get("replaced_value_float", 0.0)
    values = np.asarray(node.attributes["imputed_value_floats"], np.float32)
    new = constant_view(for_features(values, x.shape))
    same = chain("equal", x, x) if old != old else chain("equal", x, float(np.float32(old)))
    binder.put(node.outputs[0], chain("where", same, x, new) if old != old else chain("where", same, new, x))


@rule("Normalizer", domain=DOMAIN, accept=accept_scores)
def normalizer(binder: Binder, node: NodeView) -> None:
    """Rows divided by their largest element, sum of magnitudes or length; not where that is 0."""
    x = contiguous(binder.builder, binder.floats(node.inputs[0]))
    norm, length = node.attributes.get("norm", "MAX"), x.shape[-1]
    source: View = x
    if norm == "L1":
        source = binder.emit(chain("abs", x))
    elif norm == "MAX":  # NaN is no maximum
        least = float(np.finfo(np.float32).min)
        source = binder.emit(chain("where", chain("greater", x, least), x, least))
    mode = {"MAX": 1, "L1": 0, "L2": 3}[norm]
    sizes = binder.builder.allocate((*x.shape[:-1], 1), np.float32)
    emit_rows(binder, "reduce_rows", source, sizes, x.size // length, length, length * 4, 4, mode=mode, cost=0.1)
    size: Chain | View = chain("sqrt", sizes) if norm == "L2" else sizes
    divisor = binder.emit(chain("where", chain("equal", size, 0.0), 1.0, size))
    binder.put(node.outputs[0], chain("div", x, divisor))
