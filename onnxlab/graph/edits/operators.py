"""Make a node another operator and keep its wires."""

from collections.abc import Mapping
from typing import Any

import onnx

from onnxlab import schemas
from onnxlab.argument_types import expect
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import SetAttribute, SetField
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.validation import attribute_problem
from onnxlab.graph.edits.attributes import choice_problem, set_attribute
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.protos.attributes import encode
from onnxlab.graph.protos.name_bytes import text
from onnxlab.spelling import suggestion


@recorded
def set_operator(
    graph: ModelGraph,
    node: NodeRecord,
    op_type: str,
    domain: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    overload: str = "",
) -> None:
    """Make a node another operator (or call of a function) with the same inputs and outputs.

    An attribute is kept where the new operator has it too, with the same type and an allowed value.

    Args:
        domain: domain of the new operator; None keeps the node's.
        attributes: further attributes to set, by name.

    Raises:
        EditError: the domain is not imported or has no such operator, or the wires do not fit the operator.
        TypeError: `op_type` or `domain` is no text.
    """
    expect(op_type, str, "op_type", "the name of an operator")
    expect(domain, (str, type(None)), "domain", "the name of a domain, or None")
    with graph.edit() as edit:
        edit.apply(SetField(("node", node.id), "op_type", op_type))
        if domain is not None and domain != node.domain:
            edit.apply(SetField(("node", node.id), "domain", domain or None))
        if overload != node.proto.overload:
            edit.apply(SetField(("node", node.id), "overload", overload or None))
        check_operator(graph, node.proto, graph.scopes[node.scope])
        for attribute in list(node.proto.attribute):
            if not _survives(graph, node, attribute):
                edit.apply(SetAttribute(node.id, attribute.name, None))
        for name, value in (attributes or {}).items():
            set_attribute(graph, node, name, value)


def check_operator(graph: ModelGraph, node: onnx.NodeProto, scope: Scope) -> None:
    """Refuse an operator that nothing knows in a domain whose operators are known.

    Raises:
        EditError: the domain is not imported, or has no such operator at this version; the message suggests others.
    """
    if function_key(node) in graph.index.functions:
        return
    version = graph.opset_version(node.domain, scope)
    shown = node.domain or "ai.onnx"
    if version is None:
        raise EditError(
            f"the model does not import the operator domain {shown!r}, so it cannot use {node.op_type}; "
            f"import it first, as in model.opsets[{shown!r}] = 1"
        )
    if schemas.find(node.domain, node.op_type, version) or version > schemas.latest_opset(node.domain):
        return
    if known := schemas.operators(node.domain, version):
        raise EditError(
            f"{shown} {version} has no operator {node.op_type!r}.{suggestion(node.op_type, known)} A custom one "
            "needs a schema (onnxlab.schemas.register) or a domain of its own."
        )


def _survives(graph: ModelGraph, node: NodeRecord, attribute: onnx.AttributeProto) -> bool:
    """Whether an attribute of the operator before is one of the operator that the node is now."""
    if (function := graph.index.functions.get(function_key(node.proto))) is not None:
        proto = graph.scopes[function].proto
        return attribute.name in proto.attribute or any(
            formal.name == attribute.name and formal.type == attribute.type for formal in proto.attribute_proto
        )
    schema = graph.schema(node)
    if schema is None:
        return True
    return not attribute_problem(schema, attribute) and not choice_problem(graph, node, attribute)


def output_names(graph: ModelGraph, node: onnx.NodeProto, scope: Scope) -> list[str]:
    """Fresh names for the outputs that a new node must have, after its own name or operator; at least one."""
    function = graph.index.functions.get(function_key(node))
    version = graph.opset_version(node.domain, scope)
    schema = None if version is None else schemas.find(node.domain, node.op_type, version)
    least = schema.min_output if schema else 1
    count = max(1, least if function is None else len(graph.scopes[function].outputs))
    fresh, stem = FreshNames(graph, scope), f"{node.name or node.op_type}_out"
    return [fresh.value(stem if count == 1 else f"{stem}{slot}") for slot in range(count)]


def make_node(graph: ModelGraph, op_type: str, domain: str = "", **attributes: Any) -> onnx.NodeProto:
    """A NodeProto without wires, its attributes typed by the operator's schema at the model's opset.

    Raises:
        EditError: an attribute does not fit the operator.
    """
    proto = onnx.NodeProto(op_type=text(op_type))
    if domain:
        proto.domain = text(domain)
    version = graph.opset_version(domain)
    schema = None if version is None else schemas.find(domain, op_type, version)
    for name, value in attributes.items():
        spec = schema.attributes.get(name) if schema else None
        if schema and spec is None:
            known = ", ".join(schema.attributes) or "none"
            raise EditError(
                f"{op_type} has no attribute {name!r} (it takes {known}).{suggestion(name, schema.attributes)}"
            )
        proto.attribute.append(encode(name, value, spec.type if spec else None, op_type))
    return proto
