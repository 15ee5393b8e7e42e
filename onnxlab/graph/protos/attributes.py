"""AttributeProto to Python value and back, typed by the operator's schema.

Graphs are not decoded here: inside a model, graphs are scopes (`BodyRef`); elsewhere they remain protos.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from onnxlab.argument_types import plain
from onnxlab.errors import EditError
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.long_lists import LONG, LongList, long_list, packed, text, texts

_TYPE = onnx.AttributeProto
TYPE_NAMES: dict[int, str] = {
    _TYPE.FLOAT: "float", _TYPE.INT: "int", _TYPE.STRING: "string", _TYPE.TENSOR: "tensor", _TYPE.GRAPH: "graph",
    _TYPE.SPARSE_TENSOR: "sparse_tensor", _TYPE.TYPE_PROTO: "type_proto", _TYPE.FLOATS: "floats", _TYPE.INTS: "ints",
    _TYPE.STRINGS: "strings", _TYPE.TENSORS: "tensors", _TYPE.GRAPHS: "graphs",
    _TYPE.SPARSE_TENSORS: "sparse_tensors", _TYPE.TYPE_PROTOS: "type_protos",
}  # fmt: skip
_NUMBERS: dict[str, Any] = {name: number for number, name in TYPE_NAMES.items()}
_FIELDS = {
    "float": "f", "int": "i", "string": "s", "tensor": "t", "graph": "g", "sparse_tensor": "sparse_tensor",
    "type_proto": "tp", "floats": "floats", "ints": "ints", "strings": "strings", "tensors": "tensors",
    "graphs": "graphs", "sparse_tensors": "sparse_tensors", "type_protos": "type_protos",
}  # fmt: skip
_PROTOS = {
    "graph": onnx.GraphProto, "sparse_tensor": onnx.SparseTensorProto, "type_proto": onnx.TypeProto,
    "tensor": onnx.TensorProto,
}  # fmt: skip

_EXPECTED = {
    "int": "an integer", "float": "a number", "string": "a string", "ints": "a list of integers",
    "floats": "a list of numbers", "strings": "a list of strings", "tensor": "a NumPy array or TensorProto",
    "graph": "a GraphProto", "sparse_tensor": "a SparseTensorProto", "type_proto": "a TypeProto",
    "tensors": "a list of NumPy arrays or TensorProtos", "graphs": "a list of GraphProtos",
    "sparse_tensors": "a list of SparseTensorProtos", "type_protos": "a list of TypeProtos",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AttributeRef:
    """The value of an attribute inside a function that refers to an attribute of the function."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class BodyRef:
    """A graph-valued attribute of a node in a model: the id of its scope."""

    scope: int


def attribute_type_name(number: int) -> str:
    """Name of an AttributeProto.AttributeType as schemas spell it ("ints"), "undefined" for 0 and unknown numbers."""
    return TYPE_NAMES.get(number, "undefined")


def kind_of(attribute: onnx.AttributeProto) -> str:
    """Type name of an attribute. Files below IR version 2 may leave `type` out: then the field that is set tells."""
    if attribute.type:
        return attribute_type_name(attribute.type)
    for kind, field in _FIELDS.items():
        descriptor = attribute.DESCRIPTOR.fields_by_name[field]
        if getattr(attribute, field) if descriptor.is_repeated else attribute.HasField(field):
            return kind
    return "undefined"


def decode(attribute: onnx.AttributeProto) -> Any:
    """Return the value: int, float, str (bytes where it is not UTF-8), list of these, read-only array, or proto.

    A long list is a `LongList`, which reads like a list. Dtypes of tensors are those of `onnxlab.dtypes`. A reference
    to a function's attribute is an `AttributeRef`. An attribute without a type, and one without its graph, is None.
    """
    kind = kind_of(attribute)
    if attribute.ref_attr_name:
        return AttributeRef(attribute.ref_attr_name, kind)
    if kind == "undefined" or (kind == "graph" and not attribute.HasField("g")):
        return None
    field = getattr(attribute, _FIELDS[kind])
    match kind:
        case "int" | "float" | "graph" | "sparse_tensor" | "type_proto":
            return field
        case "string":
            return text(field)
        case "tensor":
            return tensors.to_array(field)
        case "tensors":
            return [tensors.to_array(item) for item in field]
    if (items := long_list(attribute)) is not None:
        return items
    return texts(field) if kind == "strings" else list(field)


def encode(name: str, value: Any, kind: str | None = None, where: str = "") -> onnx.AttributeProto:
    """Make an AttributeProto of type `kind` (from the schema; guessed from the value where None).

    Raises:
        EditError: the value does not fit; `where` names the operator in the message.
    """
    if isinstance(value, _TYPE):
        if value.name != name:
            raise EditError(f"the AttributeProto given for {name!r} is called {value.name!r}")
        if kind and not value.ref_attr_name and kind_of(value) != kind:
            raise _refusal(name, value, kind, where)
        return value
    if isinstance(value, AttributeRef):
        return _TYPE(name=name, ref_attr_name=value.name, type=_NUMBERS[value.type])
    kind = kind or _guess(name, value)
    proto = _TYPE(name=name, type=_NUMBERS[kind])
    singular = kind[:-1] if kind.endswith("s") else kind
    if singular == kind:
        converted = _convert(name, value, kind, where)
        if isinstance(converted, tuple(_PROTOS.values())):
            getattr(proto, _FIELDS[kind]).CopyFrom(converted)
        else:
            setattr(proto, _FIELDS[kind], converted)
        return proto
    is_list = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim > 0)
    if isinstance(value, str | bytes) or not is_list:
        raise _refusal(name, value, kind, where)
    if not _filled(proto, kind, value):
        getattr(proto, _FIELDS[kind]).extend(_convert(name, item, singular, where, kind) for item in value)
    return proto


def _filled(proto: onnx.AttributeProto, kind: str, value: Any) -> bool:
    """Put in all items of a list at once, where they are all of a type that needs no thought."""
    field = getattr(proto, _FIELDS[kind])
    if isinstance(value, LongList):
        if value.items.kind == kind:
            field.MergeFrom(getattr(value.items.message(), kind))
            return True
        value = value.array
    if kind == "floats" and (data := _packed(value)):
        proto.MergeFromString(data)
        return True
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.dtype.kind in _KINDS_OF.get(kind, "") else value
    if not set(map(type, value)) <= _PLAIN.get(kind, frozenset()):
        return False
    try:
        if kind == "strings":
            known = {item: item.encode() for item in set(value)}
            field[:] = list(map(known.__getitem__, value))  # item by item, protobuf would reserve twice the memory
        else:
            field.extend(value)
    except (ValueError, OverflowError):  # ValueError: a str with half of a surrogate pair
        del field[:]
        return False
    return True


def _packed(value: Any) -> bytes:
    """The items of an array of single precision, and of a long list of floats, as a field; nothing of others."""
    if isinstance(value, np.ndarray) and value.dtype == np.float32 and value.ndim == 1 and value.size:
        return packed(value)  # keeps every bit of a NaN, as Python's floats would not
    if isinstance(value, list) and len(value) > LONG and set(map(type, value)) == {float}:
        with np.errstate(over="ignore"):
            return packed(np.array(value, np.float32))  # one by one, protobuf reserves twice the memory
    return b""


_PLAIN = {"ints": frozenset((int,)), "floats": frozenset((int, float)), "strings": frozenset((str,))}
_KINDS_OF = {"ints": "iu", "floats": "iuf"}
"""Kinds of NumPy's dtypes that become an attribute of each type of list."""


def _convert(name: str, value: Any, kind: str, where: str, outer: str = "") -> Any:
    """One value of a singular kind as the field wants it."""
    value = plain(value)
    match kind:
        case "int" if isinstance(value, int | np.bool_):
            if -(2**63) <= int(value) < 2**63:
                return int(value)
        case "float" if isinstance(value, int | float | np.floating) and not isinstance(value, bool):
            return float(value)
        case "string" if isinstance(value, str):
            return value.encode()
        case "string" if isinstance(value, bytes):
            return value
        case "tensor" if isinstance(value, np.ndarray | np.generic):
            return tensors.from_array(np.asarray(value))
        case "tensor" | "graph" | "sparse_tensor" | "type_proto" if isinstance(value, _PROTOS[kind]):
            return value
    raise _refusal(name, value, outer or kind, where)


def _refusal(name: str, value: Any, kind: str, where: str) -> EditError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    of = f" of {where}" if where else ""
    return EditError(
        f"attribute {name!r}{of} takes {_EXPECTED[kind]}; got {shown} ({type(value).__name__}). The old value stays."
    )


def _guess(name: str, value: Any) -> str:
    """The kind of attribute that a Python value makes where no schema tells."""
    if isinstance(value, LongList):
        return value.items.kind
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        if not value:
            raise EditError(f"attribute {name!r}: an empty list has no type; give an onnx.AttributeProto instead.")
        kinds = {_guess(name, item) for item in value}
        if kinds == {"int", "float"}:
            kinds = {"float"}
        if len(kinds) == 1 and not (kind := kinds.pop()).endswith("s"):
            return kind + "s"
    elif isinstance(value, int | np.integer | np.bool_):
        return "int"
    elif isinstance(value, float | np.floating):
        return "float"
    elif isinstance(value, str | bytes):
        return "string"
    elif isinstance(value, np.ndarray):
        return "tensor"
    else:
        for kind, message in _PROTOS.items():
            if isinstance(value, message):
                return kind
    raise EditError(
        f"attribute {name!r} cannot hold {value!r} ({type(value).__name__}); it takes integers, numbers, strings, "
        "arrays, protos, or lists of one of these."
    )
