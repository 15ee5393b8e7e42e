"""Support vector machines of ai.onnx.ml with support vectors; those in primal form are left to NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.builder import Word
from onnxlab.execution.numba.plan.plan import SCRATCH
from onnxlab.execution.numba.plan.views import Array, View
from onnxlab.execution.numba.rules.ml.trees import DOMAIN, accept_scores, features, transformed
from onnxlab.execution.numba.rules.registry import StaticFacts, rule
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.base.prepared_constants import remembered
from onnxlab.ops.ml.svm import matrix

_FUNCTIONS = ("LINEAR", "POLY", "RBF", "SIGMOID")
_SUM, _SIGN, _PROBABILITIES, _DECISIONS, _PAIR = range(5)
_PADDING = 16
"""Support vectors that are computed at once at the most."""
_MOST = 16
"""The highest power of POLY, which is multiplied out."""


def _accept(node: NodeView, view: StaticFacts) -> str:
    attributes = node.attributes
    supports = attributes.get("vectors_per_class") or attributes.get("n_supports", 0)
    if not supports:
        return "a linear machine in primal form"
    if attributes.get("kernel_type", "LINEAR") == "POLY":
        degree = (*(attributes.get("kernel_params") or ()), 0.0, 0.0, 0.0)[2]
        if degree != int(degree) or not 1 <= degree <= _MOST:
            return f"powers of {degree}: only whole ones to {_MOST}"
    return accept_scores(node, view)


def _padded(values: Sequence[float], rows: int) -> Array:
    """[rows, vectors rounded up], float32."""
    numbers = matrix(values, rows).astype(np.float32)
    return np.pad(numbers, ((0, 0), (0, -numbers.shape[1] % _PADDING)))


def _columns(values: Sequence[float], vectors: int) -> Array:
    """[features, vectors rounded up], float32."""
    numbers = matrix(values, vectors).astype(np.float32).T
    return np.ascontiguousarray(np.pad(numbers, ((0, 0), (0, -vectors % _PADDING))))


def _words(binder: Binder, attributes: Mapping[str, Any], x: View, vectors: int, machines: int) -> dict[str, Word]:
    """The words that both operators share."""
    columns = remembered(_columns, attributes["support_vectors"], vectors)
    weights = remembered(_padded, attributes["coefficients"], machines)
    if columns.shape[0] != x.shape[1] or weights.shape[1] != columns.shape[1]:
        raise UnbindableError(f"{columns.shape[0]} features of support vectors, {x.shape[1]} of X")
    gamma, offset, degree = (*(attributes.get("kernel_params") or ()), 0.0, 0.0, 0.0)[:3]
    parameters = np.array([gamma, offset, 0], np.float32)
    parameters.view(np.int32)[2] = int(degree)
    rows = x.shape[0]
    return {
        "x": x.where, "x_row": x.strides[0], "rows": rows, "unit_rows": max(1, -(-rows // 32)),
        "features": x.shape[1], "vectors": binder.builder.keep(columns), "padded": columns.shape[1],
        "function": _FUNCTIONS.index(attributes.get("kernel_type", "LINEAR")),
        "parameters": binder.builder.keep(parameters), "weights": binder.builder.keep(weights),
    }  # fmt: skip


def _emit(binder: Binder, values: dict[str, Word], x: View, writes: list[View], work: int) -> None:
    rows, unit = x.shape[0], max(1, -(-x.shape[0] // 32))
    binder.builder.emit("vector_machine", -(-rows // unit), values, [x], writes, work=rows * (100.0 + work * 0.2))


@rule("SVMRegressor", domain=DOMAIN, accept=_accept, weight=8)
def svm_regressor(binder: Binder, node: NodeView) -> None:
    """Lower SVMRegressor; as in ONNX Runtime, post_transform changes nothing."""
    attributes, x = node.attributes, features(binder, node)
    count = attributes["n_supports"]
    y = binder.allocate(node.outputs[0], (x.shape[0], 1), np.float32)
    rho = np.array([*(attributes.get("rho") or ()), 0.0][:1], np.float32)
    values = _words(binder, attributes, x, count, 1) | {
        "rho": binder.builder.keep(rho), "y": y.where, "y_row": 4,
        "kind": _SIGN if attributes.get("one_class") else _SUM,
    }  # fmt: skip
    if count * 4 > SCRATCH // 2:
        raise UnbindableError(f"{count} support vectors")
    _emit(binder, values, x, [y], count * x.shape[1])
    binder.put(node.outputs[0], y)


@rule("SVMClassifier", domain=DOMAIN, accept=_accept, weight=8)
def svm_classifier(binder: Binder, node: NodeView) -> None:
    """Lower SVMClassifier: machines that vote one against one, and probabilities where there are sigmoids for them."""
    attributes, x = node.attributes, features(binder, node)
    counts, names = list(attributes["vectors_per_class"]), np.asarray(attributes["classlabels_ints"], np.int64)
    classes, vectors = len(counts), sum(counts)
    pairs, rho = classes * (classes - 1) // 2, np.asarray(attributes.get("rho") or (), np.float32)
    a, b = attributes.get("prob_a") or (), attributes.get("prob_b") or ()
    if classes < 2 or len(names) < classes or min(counts) < 0 or len(rho) < pairs or (a and len(a) < pairs):
        raise UnbindableError("labels, machines or thresholds are missing")
    if vectors * 4 + (2 * pairs + classes * (classes + 4)) * 8 > SCRATCH // 2:
        raise UnbindableError(f"{vectors} support vectors of {classes} classes")
    kind = _PROBABILITIES if a else _PAIR if classes == 2 else _DECISIONS
    transform = attributes.get("post_transform", "NONE")
    if kind == _PAIR and transform not in ("NONE", "LOGISTIC"):
        raise UnbindableError(f"{transform} of one decision")
    columns = {_PROBABILITIES: classes, _PAIR: 2, _DECISIONS: pairs}[kind]
    shown = len(node.outputs) > 1 and node.outputs[1]
    y = binder.allocate(node.outputs[1] if shown and transform == "NONE" else "", (x.shape[0], columns), np.float32)
    choices = binder.allocate(node.outputs[0], (x.shape[0],), np.int64)
    sigmoids = np.array([[*a][:pairs], ([*b] or [0.0] * len(a))[:pairs]], np.float32)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    keep = binder.builder.keep
    values = _words(binder, attributes, x, vectors, classes - 1) | {
        "starts": keep(starts), "classes": classes, "rho": keep(rho), "sigmoids": keep(sigmoids) if a else 0,
        "choices": choices.where, "names": keep(names), "y": y.where, "y_row": 4 * columns, "kind": kind,
    }  # fmt: skip
    _emit(binder, values, x, [choices, y], vectors * (x.shape[1] + classes))
    binder.put(node.outputs[0], choices)
    transformed(binder, node.outputs[1] if shown else "", y, transform)
