"""Kinds of an edit's parameters in a request of the page: what fits, in words, and its Python value."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph.handles.handles import Node, Value
from onnxlab.graph.protos.attributes import kind_of
from onnxlab.notebook.edits import typed_tensors
from onnxlab.notebook.protocol import messages
from onnxlab.notebook.protocol.messages import ProtocolError
from onnxlab.notebook.protocol.schema import MAX_TEXT
from onnxlab.notebook.protocol.uploads import Upload, Uploads

if TYPE_CHECKING:
    from onnxlab.model import Model


@dataclass(frozen=True, slots=True)
class ParameterContext:
    """The edit that a parameter belongs to.

    Attributes:
        on: the kind of subject, as in the request.
        subject: the handle that is edited, or the model.
        given: all parameters of the request, not yet converted.
    """

    model: "Model"
    on: str
    subject: Any
    given: Mapping[str, Any]
    uploads: Uploads


@dataclass(frozen=True, slots=True)
class ParameterKind:
    """A kind of parameter.

    Attributes:
        words: a description of the kind, for refusals.
        wire: its type in a request, in TypeScript.
        fits: a function that tells whether a payload is of the kind.
        read: a function that converts a payload to its Python value.
    """

    words: str
    wire: str
    fits: Callable[[Any], bool]
    read: Callable[[ParameterContext, Any], Any] = lambda _, payload: payload


# -- what fits ---------------------------------------------------------------------------------------------------------


def is_id(payload: Any) -> bool:
    """Whether a payload is an integer from 0."""
    return isinstance(payload, int) and not isinstance(payload, bool) and payload >= 0


def _is_dim(payload: Any) -> bool:
    return is_id(payload) or (isinstance(payload, str) and 0 < len(payload) <= 200)


def _is_number(payload: Any) -> bool:
    return isinstance(payload, bool | int | str) or (isinstance(payload, float) and math.isfinite(payload))


def _is_element(payload: Any) -> bool:
    return isinstance(payload, list) and len(payload) == 2 and is_id(payload[0]) and _is_number(payload[1])


def _list_of(fits: Callable[[Any], bool], most: int) -> Callable[[Any], bool]:
    return lambda payload: isinstance(payload, list) and len(payload) <= most and all(map(fits, payload))


def _is_text(payload: Any) -> bool:
    return isinstance(payload, str) and len(payload) <= 1000


_are_numbers = _list_of(_is_number, 1 << 20)
_are_dims = _list_of(_is_dim, 64)
_are_elements = _list_of(_is_element, 100_000)


def _is_plain_attribute(payload: Any) -> bool:
    return _is_number(payload) or _are_numbers(payload)


def _is_array(payload: Any) -> bool:
    if not isinstance(payload, dict):
        return False
    if payload.keys() == {"dtype", "shape", "numbers"}:
        return _is_text(payload["dtype"]) and _are_dims(payload["shape"]) and _is_plain_attribute(payload["numbers"])
    if payload.keys() == {"elements"}:
        return bool(payload["elements"]) and _are_elements(payload["elements"])
    return payload.keys() == {"file"} and _is_text(payload["file"])


def _is_attribute(payload: Any) -> bool:
    if isinstance(payload, dict) and payload.keys() == {"type", "value"}:
        return _is_text(payload["type"]) and _is_plain_attribute(payload["value"])
    return _is_plain_attribute(payload) or (_is_array(payload) and "file" not in payload)


# -- what Python gets --------------------------------------------------------------------------------------------------


def value_of(model: "Model", ident: int) -> Value | None:
    """The handle of a value, None for id 0. Raises NameLookupError where it is gone."""
    if ident and ident not in model.graph.values:
        raise NameLookupError(f"value {ident} is not in the model any more")
    return Value(model.graph, ident) if ident else None


def _values(place: ParameterContext, idents: list[int]) -> list[Value | None]:
    return [value_of(place.model, ident) for ident in idents]


def _value(place: ParameterContext, ident: int) -> Value:
    return chosen_value(place.model, ident)


def chosen_value(model: "Model", ident: int) -> Value:
    """The handle of a value. Raises EditError for id 0, NameLookupError where it is gone."""
    value = value_of(model, ident)
    if value is None:
        raise EditError("no value was chosen; choose one of the model")
    return value


def _nodes(place: ParameterContext, idents: list[int]) -> list[Node]:
    return [node_of(place.model, ident) for ident in idents]


def node_of(model: "Model", ident: int) -> Node:
    """The handle of a node. Raises NameLookupError where it is gone."""
    if ident not in model.graph.nodes:
        raise NameLookupError(f"node {ident} is not in the model any more")
    return Node(model.graph, ident)


def _scope(place: ParameterContext, ident: int) -> str:
    """The path of a scope, "" for id 0."""
    if not ident:
        return ""
    if ident not in place.model.graph.scopes:
        raise NameLookupError(f"scope {ident} is not in the model any more")
    return place.model.graph.scope_path(place.model.graph.scopes[ident])


def _dim(payload: int | str) -> int | str | None:
    return None if payload == "?" else payload


def _upload(place: ParameterContext, file: str) -> Upload:
    return place.uploads.get(file)


def _array(place: ParameterContext, payload: Mapping[str, Any]) -> Any:
    """An array: a new one, one from a file, or the subject's own with some elements changed."""
    if "file" in payload:
        return place.uploads.get(payload["file"]).array()
    if "elements" in payload:
        return typed_tensors.changed(present_array(place), payload["elements"])
    return typed_tensors.array(payload["dtype"], payload["shape"], payload["numbers"])


def present_array(place: ParameterContext) -> Any:
    """The array whose elements are changed: that of an initializer or an attribute.

    Raises:
        EditError: the subject has no array.
    """
    if isinstance(place.subject, Value):
        if (array := place.subject.array) is None:
            raise EditError(f"{place.subject.name!r} is no initializer; only initializers hold data")
        return array
    if not isinstance(place.subject, Node):
        raise EditError("elements are changed of an array that is there; give the type and the shape of a new one too")
    name = place.given["name"]
    attribute = place.subject.attributes.get(name)
    if not hasattr(attribute, "reshape"):
        raise EditError(f"{name!r} of {place.subject.label} is no tensor; give it a type and a shape first")
    return attribute


def _attribute(place: ParameterContext, payload: Any) -> Any:
    """An attribute's value; the payload's `type` is used where neither schema nor node has the attribute."""
    if isinstance(payload, dict) and "value" not in payload:
        return _array(place, payload)
    value, kind = (payload["value"], payload["type"]) if isinstance(payload, dict) else (payload, "")
    name, node = place.given["name"], place.model.graph.nodes[place.subject.id]
    present = next((item for item in node.proto.attribute if item.name == name), None)
    schema = place.model.graph.schema(node)
    spec = schema.attributes.get(name) if schema else None
    return messages.from_wire(value, spec.type if spec else kind_of(present) if present is not None else kind)


WORDS: Mapping[str, tuple[str, str]] = {
    "Dim": ("number | string", 'A dim of a declared shape: a size, a name, or "?".'),
    "Numbers": ("number | string | boolean | (number | string | boolean)[]", "One number fills a tensor."),
    "NewArray": ("{ dtype: string; shape: Dim[]; numbers: Numbers }", "A tensor as it is typed."),
    "NewElements": (
        "{ elements: [place: number, number: number | string][] }", "The elements of a tensor that are others now."
    ),
}  # fmt: skip
"""Types of TypeScript that the kinds' own types use."""

_ARRAY = "NewArray | NewElements"

KINDS: Mapping[str, ParameterKind] = {
    "text": ParameterKind("a text of at most 1000 characters", "string", _is_text),
    "name": ParameterKind("a text that is not empty", "string", lambda payload: bool(payload) and _is_text(payload)),
    "text?": ParameterKind("a text, or null", "string | null", lambda payload: payload is None or _is_text(payload)),
    "long": ParameterKind(
        f"a text of at most {MAX_TEXT} characters", "string",
        lambda payload: isinstance(payload, str) and len(payload) <= MAX_TEXT,
    ),
    "names": ParameterKind("a list of texts", "string[]", _list_of(_is_text, 1000)),
    "bool": ParameterKind("true or false", "boolean", lambda payload: isinstance(payload, bool)),
    "int": ParameterKind("an integer from 0", "number", lambda payload: is_id(payload) and payload < 1 << 31),
    "version": ParameterKind(
        "an integer from 0", "number", lambda payload: is_id(payload) and payload < 1 << 31,
        lambda _, payload: payload or None,
    ),
    "value": ParameterKind("the id of a value", "number", is_id, _value),
    "value?": ParameterKind(
        "the id of a value, or 0", "number", is_id, lambda place, payload: value_of(place.model, payload)
    ),
    "values": ParameterKind("a list of ids of values", "number[]", _list_of(is_id, 10_000), _values),
    "nodes": ParameterKind("a list of ids of nodes", "number[]", _list_of(is_id, 10_000), _nodes),
    "scope": ParameterKind("the id of a scope, 0 for the main graph", "number", is_id, _scope),
    "function": ParameterKind("the path of a function", "string", _is_text),
    "dtype": ParameterKind("the name of an element type", "string", _is_text, lambda _, payload: payload or None),
    "dim": ParameterKind("a dim", "Dim", _is_dim, lambda _, payload: _dim(payload)),
    "shape": ParameterKind(
        "a list of dims, or null", "Dim[] | null", lambda payload: payload is None or _are_dims(payload),
        lambda _, payload: None if payload is None else [_dim(dim) for dim in payload],
    ),
    "array": ParameterKind(
        "an array: {dtype, shape, numbers}, {elements} or {file}", f"{_ARRAY} | {{ file: string }}", _is_array, _array
    ),
    "attribute": ParameterKind(
        "a number, a text, a list of these, {type, value}, or an array",
        f"Numbers | {{ type: string; value: Numbers }} | {_ARRAY}", _is_attribute, _attribute,
    ),
    "model_file": ParameterKind("a file that was sent", "string", _is_text, _upload),
}  # fmt: skip
"""The kinds of parameters in the table of edits, by name."""


def check(edit: str, name: str, kind: str, payload: Any) -> None:
    """Refuse a payload that is not of its parameter's kind. Raises ProtocolError."""
    if not KINDS[kind].fits(payload):
        words = KINDS[kind].words
        raise ProtocolError("malformed", f"edit: {name} of {edit} is {words}, got {str(payload)[:60]!r}")
