"""Settings of tree ensembles for which ONNX Runtime refuses a model: for shape rules, which tell of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxlab import dtypes
from onnxlab.ops.base.registry import Attributes
from onnxlab.ops.ml.features import check_transform, length_of
from onnxlab.shapes import Fact, FactError

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
"""Names of aggregate_function; TreeEnsemble-5 has their places."""
_FLOATS = {np.dtype(np.float32): dtypes.FLOAT, np.dtype(np.float64): dtypes.DOUBLE}
_CODE = "tree-ensemble"
_TRANSFORMS = 5  # of TreeEnsemble-5
_LISTS = ("nodes_values", "nodes_hitrates", "base_values")


def refuse_older(attributes: Attributes, x: Fact, votes: str, targets: int, base: Sequence[int]) -> None:
    """Raise FactError for settings of TreeEnsembleRegressor or TreeEnsembleClassifier.

    Args:
        votes: "target" or "class".
        targets: number of targets or classes.
        base: numbers of base_values that there may be.
    """
    for name in (*_LISTS, f"{votes}_weights"):
        if attributes.get(name) is not None and attributes.get(f"{name}_as_tensor") is not None:
            raise FactError(f"it has both {name} and {name}_as_tensor", code=_CODE, expected="one of them",
                            found="both", hint=f"delete {name}, or {name}_as_tensor")  # fmt: skip
        kind = getattr(attributes.get(f"{name}_as_tensor"), "data_type", None)
        if kind is not None and x.dtype in _FLOATS and kind != _FLOATS[x.dtype]:
            raise FactError(f"{name}_as_tensor has another element type than X", code=_CODE, expected=str(x.dtype),
                            found=dtypes.name(kind), hint=f"give {name} in the type of X")  # fmt: skip
    if targets < 1:
        text = f"attribute n_targets is {attributes.get('n_targets', 'not set')}"
        raise FactError(text, code=_CODE, expected="1 or more", found=str(targets), hint="set n_targets")
    name = "base_values" if attributes.get("base_values") else "base_values_as_tensor"
    if attributes.get(name) is not None and (count := length_of(attributes[name])) not in base:
        allowed = ", ".join(map(str, base[:-1])) + f" or {base[-1]}"
        raise FactError(f"it has {count} {name}", code=_CODE, expected=allowed, found=str(count),
                        hint="give one for each target or class, or none")  # fmt: skip
    check_transform(attributes, _CODE)
    _refuse_other(attributes, "aggregate_function", AGGREGATES)


def refuse_planted(attributes: Attributes) -> None:
    """Raise FactError for settings of TreeEnsemble-5."""
    if attributes.get("n_targets", 0) < 1:
        text = f"attribute n_targets is {attributes.get('n_targets', 'not set')}"
        raise FactError(text, code=_CODE, expected="1 or more", hint="set n_targets")
    _refuse_other(attributes, "aggregate_function", range(len(AGGREGATES)))
    _refuse_other(attributes, "post_transform", range(_TRANSFORMS))


def _refuse_other(attributes: Attributes, name: str, known: Sequence[Any]) -> None:
    """Raise FactError for a value of an attribute that is not known."""
    if (value := attributes.get(name)) is not None and value not in known:
        raise FactError(f"attribute {name} is {value!r}", code=_CODE, expected="one of " + ", ".join(map(str, known)),
                        found=repr(value))  # fmt: skip
