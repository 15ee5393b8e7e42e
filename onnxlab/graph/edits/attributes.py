"""Edits of attributes: set, clear, go back to the default; the operator's schema says what fits."""

from typing import Any

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import SetAttribute
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.protos.attributes import encode
from onnxlab.spelling import suggestion


@recorded
def set_attribute(graph: ModelGraph, node: NodeRecord, name: str, value: Any) -> None:
    """Give an attribute a value of the type that the operator's schema says.

    Raises:
        EditError: the operator has no such attribute, or the value does not fit it; nothing changed.
    """
    if not isinstance(name, str):
        raise EditError(f"the name of an attribute is a string, got {name!r:.80}")
    kind = _attribute_kind(graph, node, name)
    proto = encode(name, value, kind, node.proto.op_type)
    if refused := choice_problem(graph, node, proto):
        raise EditError(f"{refused} The old value stays.")
    graph.apply(SetAttribute(node.id, name, proto))


@recorded
def clear_attribute(graph: ModelGraph, node: NodeRecord, name: str) -> None:
    """Take an attribute away, so that its default holds.

    Raises:
        EditError: the attribute is not set, or the operator requires it.
    """
    if all(attribute.name != name for attribute in node.proto.attribute):
        raise EditError(f"{graph.label(node)} does not set {name!r}")
    graph.apply(SetAttribute(node.id, name, None))


@recorded
def default_attributes(graph: ModelGraph, node: NodeRecord, explicit: bool = False) -> None:
    """Take away every attribute that says what its default says; with `explicit` write the defaults out instead.

    Raises:
        EditError: the operator, and so its defaults, are not known.
    """
    schema = graph.schema(node)
    if schema is None:
        raise EditError(f"{graph.label(node)} is a {node.op_type}, whose schema is not known, so it has no defaults")
    present = {attribute.name: attribute for attribute in node.proto.attribute}
    with graph.edit() as edit:
        for spec in schema.attributes.values():
            if spec.default is None:
                continue
            default = encode(spec.name, spec.default, spec.type, node.op_type)
            if explicit and spec.name not in present:
                edit.apply(SetAttribute(node.id, spec.name, default))
            elif not explicit and _says_the_same(present.get(spec.name), default):
                edit.apply(SetAttribute(node.id, spec.name, None))


def _says_the_same(attribute: onnx.AttributeProto | None, default: onnx.AttributeProto) -> bool:
    if attribute is None:
        return False
    bare = onnx.AttributeProto()
    bare.CopyFrom(attribute)
    bare.ClearField("doc_string")
    return bare == default


def _attribute_kind(graph: ModelGraph, node: NodeRecord, name: str) -> str | None:
    schema = graph.schema(node)
    if schema is None or (graph.index.functions and function_key(node.proto) in graph.index.functions):
        return None
    spec = schema.attributes.get(name)
    if spec is None:
        known = ", ".join(schema.attributes) or "none"
        raise EditError(
            f"{node.op_type} has no attribute {name!r} (it takes {known})."
            f"{suggestion(name, schema.attributes)} The node stays as it was."
        )
    return spec.type


def choice_problem(graph: ModelGraph, node: NodeRecord, proto: onnx.AttributeProto) -> str:
    """The fault of a string of which the operator knows only some values, "" for none."""
    schema = graph.schema(node)
    spec = schema.attributes.get(proto.name) if schema else None
    if spec is None or not spec.choices or proto.ref_attr_name:
        return ""
    for item in (proto.s,) if spec.type == "string" else dict.fromkeys(proto.strings):
        if item.decode(errors="replace") not in spec.choices:
            return (
                f"attribute {proto.name!r} of {node.op_type} is one of {', '.join(spec.choices)}; "
                f"got {item.decode(errors='replace')!r}."
            )
    return ""
