"""Short texts of attributes, types and stored tensors, and how far two tensors are apart."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.constants import numbers_of
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.attributes import decode
from onnxlab.infer.facts.type_protos import fact_of_type
from onnxlab.shapes import VARIES, Dim

LONGEST = 80
"""Characters of a text."""

_LARGEST = 1 << 28
"""Bytes of a stored tensor up to which two are compared element by element."""


def shortened(text: str) -> str:
    """A text of at most LONGEST characters."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def rest(message: Any, other: Any, listed: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """(field, text, the other's text) of fields that differ and are not `listed`, of newer versions of ONNX too."""
    for field in message.DESCRIPTOR.fields:
        before, after = getattr(message, field.name), getattr(other, field.name)
        if field.name not in listed and before != after:
            old, new = (shortened(" ".join(str(content).split())) for content in (before, after))
            yield field.name, "" if old == "[]" else old, "others" if new == old else "" if new == "[]" else new


def attribute_text(attribute: onnx.AttributeProto | None) -> str:
    """The value of an attribute, "" for none."""
    if attribute is None:
        return ""
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}"
    if attribute.HasField("t"):
        return stored_text(attribute.t)
    if attribute.type in (attribute.GRAPH, attribute.GRAPHS):
        return "a graph"
    try:
        value = decode(attribute)
    except (ValueError, LoadError):
        return "unreadable"
    if isinstance(value, float):
        return f"{value:.7g}"
    if not isinstance(value, str | int | bytes) and hasattr(value, "__len__") and len(value) > 16:
        return f"{len(value):,} items"
    return shortened(repr(value) if isinstance(value, str | bytes) else str(value))


def type_text(info: Any) -> str:
    """The type that a declaration states, "" for none."""
    if not isinstance(info, onnx.ValueInfoProto) or not info.HasField("type"):
        return ""
    return shortened(str(fact_of_type(info.type, _varies)))


def _varies(_: int) -> Dim:
    return VARIES


def stored_text(stored: Any) -> str:
    """Type and shape of a stored tensor, with the elements of a small one."""
    sparse = isinstance(stored, onnx.SparseTensorProto)
    if isinstance(stored, onnx.AttributeProto):
        return attribute_text(stored)
    kind = (stored.values if sparse else stored).data_type
    name = dtypes.name(kind) if kind in dtypes.ELEM_TYPES else f"type {kind}"
    text = f"{'sparse ' * sparse}{name}[{','.join(map(str, stored.dims))}]"
    if sparse or math.prod(stored.dims) > 8 or stored.data_location == onnx.TensorProto.EXTERNAL:
        return text
    try:
        return shortened(f"{text} {tensors.to_array(stored).tolist()}")
    except (LoadError, ValueError):
        return text


def array_of(graph: ModelGraph, stored: Any) -> np.ndarray[Any, Any] | None:
    """The elements of what `contents.constant_of` found, None where they cannot be read or are too many."""
    try:
        if isinstance(stored, onnx.AttributeProto):
            return numbers_of(stored)
        if isinstance(stored, onnx.TensorProto) and tensors.nbytes(stored) > _LARGEST:
            return None
        return tensors.to_array(stored, graph.base_dir)
    except (LoadError, ValueError):
        return None


def distance(array: np.ndarray[Any, Any] | None, other: np.ndarray[Any, Any] | None) -> float:
    """The largest difference of two arrays relative to the largest magnitude of the first; infinite for other types."""
    if array is None or other is None or array.dtype != other.dtype or array.shape != other.shape:
        return math.inf
    if array.dtype.kind not in "fiubc" and array.dtype.kind != "V":
        return 0.0 if bool(np.array_equal(array, other)) else math.inf
    if not array.size or array.tobytes() == other.tobytes():
        return 0.0
    wide: Any = np.complex128 if array.dtype.kind == "c" else np.float64
    first, second = array.astype(wide), other.astype(wide)
    if not np.array_equal(np.isfinite(first), np.isfinite(second)):
        return math.inf
    finite = np.isfinite(first)
    peak = float(np.abs(first[finite]).max(initial=0.0))
    apart = float(np.abs(first[finite] - second[finite]).max(initial=0.0))
    return apart / peak if peak else math.inf if apart else 0.0
