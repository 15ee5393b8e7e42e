"""Products of one value with several constant matrices, as queries, keys and values are made: one product for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod

import numpy as np

from onnxlab.execution.numba.lowering.binder import Binder
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.plan.views import Array
from onnxlab.execution.numba.plan.weight_packing import Late
from onnxlab.execution.numba.rules.onnx.matmul import by_constant
from onnxlab.execution.numba.rules.part_matcher import PartMatch

_SMALL = 8e6
"""Multiplications from which joining gains nothing, while an edit of one matrix would pack the others too."""


def has_one_factor(match: PartMatch, constants: Mapping[str, Array]) -> bool:
    """Whether the scale of a product, where it has one, is one number."""
    return "scale" not in match.values or constants[match.values["scale"]].size == 1


def products(binder: Binder, match: PartMatch) -> None:
    """Lower all members to one product; the result of each member is a view of a part of it."""
    members = match.members
    x = binder.shape(members[0].values["x"])
    factors = [binder.weights(member.values["w"]) for member in members]
    weights = [array for array, _ in factors if array is not None]
    sizes = [array.shape[1] for array in weights]
    if len(x) < 2 or any(array.shape[0] != x[-1] for array in weights) or prod(x) * sum(sizes) > _SMALL:
        raise UnbindableError("factors that do not fit, or enough work for each by itself")
    scales = [float(_array(binder, member, "scale").reshape(())) if "scale" in member.values else 1.0
              for member in members]  # fmt: skip
    key = ("joined", *(part for _, key in factors for part in key), *scales)
    target = binder.builder.allocate((*x[:-1], sum(sizes)), np.float32)
    whole = Late(partial(_side_by_side, scales), (x[-1], sum(sizes)), weights)
    product = by_constant(binder, binder.floats(members[0].values["x"]), whole, target, key)
    bias = [_array(binder, member, "b") * np.float32(scale) if "b" in member.values else np.zeros(size, np.float32)
            for member, scale, size in zip(members, scales, sizes, strict=True)]  # fmt: skip
    if any("b" in member.values for member in members):
        product.add_columns(np.concatenate(bias)[None].astype(np.float32))
    view, at = binder.emit(product), 0
    for member, size in zip(members, sizes, strict=True):
        binder.put(member.output, view.at(at * 4, (*x[:-1], size), view.strides))
        at += size


def _side_by_side(scales: Sequence[float], *weights: Array) -> Array:
    return np.concatenate([array * np.float32(scale) for array, scale in zip(weights, scales, strict=True)], axis=1)


def _array(binder: Binder, match: PartMatch, name: str) -> Array:
    array = binder.known(match.values[name])
    assert array is not None
    return array
