"""TypeProto to fact and back; facts of tensors that a model stores.

Reading: a `dim_value` is an int, a `dim_param` the symbol (or expression) of that text, anything else what the
caller's `unknown(axis)` gives. Writing: ints become `dim_value`, expressions `dim_param`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from struct import calcsize, unpack
from typing import Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.graph.protos.tensors import field_of
from onnxlab.infer.facts.type_encoding import WriteDim, encode
from onnxlab.shapes import (
    MAX_RANK,
    UNKNOWN,
    VARIES,
    Dim,
    Fact,
    KnownValue,
    MapFact,
    OptionalFact,
    SequenceFact,
    Shape,
    SparseTensorFact,
    TensorFact,
    parse,
    text,
)
from onnxlab.shapes.values import is_addressable

Unknown = Callable[[int], Dim]
Named = Callable[[str], Dim]
Decode = Callable[[onnx.TensorProto], "np.ndarray[Any, Any] | None"]

_NAMELESS = frozenset(("", "?", "-1", "None"))
"""Texts that exporters write as dim_param of an unknown dim: equal texts do not mean equal dims."""

MAX_FLOATS = 16
"""Float initializers are known values up to this size: scales, sizes, limits of a Range, not weights."""

MAX_INTEGERS = 256


def fact_of_type(proto: onnx.TypeProto, unknown: Unknown, named: Named = parse) -> Fact:
    """The fact that a declared type states; UNKNOWN where it states nothing."""
    match proto.WhichOneof("value"):
        case "tensor_type" if named is parse and (closed := _closed(proto.SerializeToString())) is not None:
            return closed
        case "tensor_type":
            return TensorFact(proto.tensor_type.elem_type, shape_of(proto.tensor_type, unknown, named))
        case "sparse_tensor_type":
            sparse = proto.sparse_tensor_type
            return SparseTensorFact(sparse.elem_type, shape_of(sparse, unknown, named))
        case "sequence_type":
            named = _varies if named is parse else named  # a name says nothing across elements
            return SequenceFact(fact_of_type(proto.sequence_type.elem_type, _varies, named))
        case "optional_type":
            return OptionalFact(fact_of_type(proto.optional_type.elem_type, unknown, named))
        case "map_type":
            return MapFact(proto.map_type.key_type, fact_of_type(proto.map_type.value_type, unknown, named))
    return UNKNOWN


# Most values of a model have one of few types.
@lru_cache(4096)
def _closed(encoded: bytes) -> Fact | None:
    """The fact of a serialized tensor type whose dims all have a number or a name; None where one has neither."""
    tensor_type = onnx.TypeProto.FromString(encoded).tensor_type
    opened: list[int] = []

    def unknown(axis: int) -> Dim:
        opened.append(axis)
        return 0

    shape = shape_of(tensor_type, unknown)
    return None if opened else TensorFact(tensor_type.elem_type, shape)


def _varies(_: object) -> Dim:
    return VARIES


def shape_of(tensor_type: Any, unknown: Unknown, named: Named = parse) -> Shape | None:
    """Dims of a Tensor or SparseTensor type, None where it has no shape field or more of them than arrays have."""
    if not tensor_type.HasField("shape") or len(tensor_type.shape.dim) > MAX_RANK:
        return None
    return tuple(_dim(dim, axis, unknown, named) for axis, dim in enumerate(tensor_type.shape.dim))


def dims_of(proto: onnx.TypeProto) -> Sequence[onnx.TensorShapeProto.Dimension]:
    """The dims that a type lists; empty for a type other than a tensor's."""
    kind = proto.WhichOneof("value")
    return getattr(proto, kind).shape.dim if kind in ("tensor_type", "sparse_tensor_type") else ()


def _dim(proto: Any, axis: int, unknown: Unknown, named: Named) -> Dim:
    field = proto.WhichOneof("value")
    if field == "dim_value" and proto.dim_value >= 0:
        return int(proto.dim_value)
    if field == "dim_param" and proto.dim_param not in _NAMELESS:
        return named(proto.dim_param)
    return unknown(axis)


def type_of_fact(fact: Fact, write: WriteDim = text) -> onnx.TypeProto:
    """The TypeProto of a fact; `write` gives the dim_param of an Expr, or None to leave the dim empty."""
    return onnx.TypeProto.FromString(encode(fact, write))


def fact_of_initializer(proto: Any, decode: Decode) -> Fact:
    """The fact of a TensorProto or SparseTensorProto; see `fact_of_tensor`.

    Readers of a sparse initializer see a dense tensor, as in ONNX Runtime; onnx's inference alone differs.
    """
    if type(proto) is _TENSOR:  # for messages, three times as fast as isinstance
        return fact_of_tensor(proto, decode)
    return stored_fact(proto.values.data_type, proto.dims)


def stored_fact(elem_type: int, dims: Sequence[int]) -> TensorFact:
    """The fact of stored data by its dims alone, without a shape where one is negative."""
    shape = tuple(dims)
    return TensorFact(elem_type, None if shape and min(shape) < 0 else shape)


def fact_of_tensor(tensor: onnx.TensorProto, decode: Decode) -> Fact:
    """The fact of a stored tensor; `decode` is asked for the elements of small ones that matter and are not at hand.

    The caller handles what `decode` raises, and the ValueError for a tensor without an element type.
    """
    shape = tuple(tensor.dims[:])
    elem_type = tensor.data_type
    if not elem_type:
        raise ValueError("its data_type is UNDEFINED, so that nothing tells what its data means")
    count = prod(shape)
    if count > FOLLOWED.get(elem_type, -1) or (shape and min(shape) < 1 and not is_addressable(shape)):
        return TensorFact(elem_type, None if shape and min(shape) < 0 else shape)
    if raw := tensor.raw_data:
        if len(raw) == count * WIDTHS[elem_type]:
            return fact_of_raw(elem_type, shape, count, raw)
    elif len(items := getattr(tensor, _FIELDS[elem_type])[:]) == count and _are_held(items, elem_type):
        return fact_of_items(elem_type, shape, tuple(items))
    array = decode(tensor)
    if array is None:
        return TensorFact(elem_type, shape)
    return TensorFact(elem_type, shape, KnownValue(value_kind(elem_type), shape, tuple(array.ravel().tolist())))


_TENSOR = onnx.TensorProto
_FORMATS = {
    dtypes.INT64: "q", dtypes.INT32: "i", dtypes.INT16: "h", dtypes.INT8: "b", dtypes.UINT8: "B", dtypes.UINT16: "H",
    dtypes.UINT32: "I", dtypes.UINT64: "Q", dtypes.BOOL: "?", dtypes.FLOAT: "f", dtypes.DOUBLE: "d",
    dtypes.FLOAT16: "e",
}  # fmt: skip
"""Format characters of `struct` for the element types whose elements are followed."""

WIDTHS = {elem_type: calcsize(f"<{letter}") for elem_type, letter in _FORMATS.items()}
_FIELDS = {elem_type: field_of(elem_type) for elem_type in _FORMATS}
_AS_STORED = frozenset((dtypes.INT64, dtypes.INT32, dtypes.UINT64, dtypes.FLOAT, dtypes.DOUBLE))
_NARROW = {
    dtypes.INT16: range(-(1 << 15), 1 << 15), dtypes.INT8: range(-(1 << 7), 1 << 7),
    dtypes.UINT8: range(1 << 8), dtypes.UINT16: range(1 << 16), dtypes.UINT32: range(1 << 32),
}  # fmt: skip


def _are_held(items: Sequence[Any], elem_type: int) -> bool:
    """Whether the items of a typed field are the elements: those of narrow types are kept in a wider one."""
    if elem_type in _AS_STORED:
        return True
    held = _NARROW.get(elem_type)
    return held is not None and (not items or (min(items) in held and max(items) in held))


# The axes, scales and shapes of a model have few distinct values.
@lru_cache(4096)
def fact_of_raw(elem_type: int, shape: tuple[int, ...], count: int, raw: bytes) -> Fact:
    """The fact of a small tensor by its raw data, which is little-endian."""
    return fact_of_items(elem_type, shape, unpack(f"<{count}{_FORMATS[elem_type]}", raw))


def fact_of_items(elem_type: int, shape: tuple[int, ...], items: tuple[Any, ...]) -> Fact:
    """The fact of a tensor whose elements are known."""
    return TensorFact(elem_type, shape, KnownValue(value_kind(elem_type), shape, items))


_VALUE_KINDS = {
    dtypes.INT64: "i", dtypes.INT32: "i", dtypes.INT16: "i", dtypes.INT8: "i", dtypes.UINT8: "i",
    dtypes.UINT16: "i", dtypes.UINT32: "i", dtypes.UINT64: "i", dtypes.BOOL: "b",
    dtypes.FLOAT: "f", dtypes.DOUBLE: "f", dtypes.FLOAT16: "f",
}  # fmt: skip
FOLLOWED = {elem_type: MAX_FLOATS if kind == "f" else MAX_INTEGERS for elem_type, kind in _VALUE_KINDS.items()}
"""How many elements a stored tensor may have to be a known value."""


def value_kind(elem_type: int) -> str:
    """Kind of the KnownValues of an element type: "i", "f", "b", or "" where elements are not followed."""
    return _VALUE_KINDS.get(elem_type, "")


def tensor_of_fact(fact: TensorFact) -> onnx.TensorProto | None:
    """A TensorProto of a tensor all of whose elements are known, else None."""
    value = fact.value
    return None if value is None else onnx.numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape))
