"""Labels of classifiers of ai.onnx.ml that are strings: numbers, and the strings behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnxlab.ops.ml.features import DOMAIN

_NUMBERS = {
    "LinearClassifier": "classlabels_ints",
    "SVMClassifier": "classlabels_ints",
    "TreeEnsembleClassifier": "classlabels_int64s",
}
"""The attribute with labels that are numbers, by operator."""
TABLE = "CategoryMapper"
"""The operator that looks numbers up."""


def numbered(
    domain: str, op_type: str, attributes: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]] | None:  # fmt: skip
    """The attributes of a classifier with the places of its strings for labels, and of a TABLE with the strings.

    Returns:
        tuple: None where there are no strings, or they do not stand for one class each.
    """
    texts = attributes.get("classlabels_strings") if domain == DOMAIN and op_type in _NUMBERS else None
    if not isinstance(texts, Sequence) or {*map(type, texts)} != {str}:
        return None
    if op_type == "LinearClassifier" and len(texts) != 2 and len(attributes.get("intercepts") or ()) < 2:
        return None  # with one score, for other than two classes, the labels are "0" and "1", whatever is listed
    others = {name: value for name, value in attributes.items() if name != "classlabels_strings"}
    places = [*range(len(texts))]
    return others | {_NUMBERS[op_type]: places}, {"cats_int64s": places, "cats_strings": texts}
