"""Every edit, one row each: function, subject, label, statement in Python, parameters as forms and requests have them.

The labels and statements of the history, the schema of the page's requests, its forms and its menus derive from this
table; tests compare the methods of handles and of `Model` with the parameters.
"""

from collections.abc import Mapping
from typing import Any

import onnx

from onnxlab import dtypes
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.statements import declared_arguments, imports_handle, value_handle
from onnxlab.graph.edits import (
    attributes,
    cleaning,
    constants,
    declaring,
    exposing,
    formals,
    grouping,
    initializers,
    inlining,
    insertion,
    metadata,
    naming,
    nodes,
    operators,
    opset_conversion,
    outlining,
    wiring,
)
from onnxlab.graph.edits.cuts import cutting
from onnxlab.graph.edits.recording.edit_spec import EDITS, EditSpec, Parameter
from onnxlab.graph.edits.recording.python_calls import Assign, Item, PythonCall, handle
from onnxlab.graph.index.records import Scope
from onnxlab.graph.protos.attributes import decode, kind_of
from onnxlab.graph.protos.value_info import elem_type_of

Given = Mapping[str, Any]

SHAPE_HINT = "Numbers, names for dynamic dims, ? for unknown ones: n, 3, ?, 224"

_OPERATOR = {"op_type": Parameter("text"), "domain": Parameter("text", default="")}
_SCOPE = {"scope": Parameter("scope", default="")}
_BYPASS = Parameter("bool", default=False)


# -- arguments of statements that are not the functions' own -----------------------------------------------------------


def _attributes(graph: ModelGraph, proto: onnx.NodeProto) -> Given | None:
    """The attributes of a new node as keywords; None where these would not make the same node."""
    if _PLAIN.issuperset([field.name for field, _ in proto.ListFields()]):  # as for most inserted nodes
        return {"domain": proto.domain} if proto.domain else {}
    decoded: dict[str, Any] = {}
    for attribute in proto.attribute:
        if attribute.ref_attr_name or kind_of(attribute) not in _SPELLED:
            return None
        decoded[attribute.name] = decode(attribute)
    keywords = {"domain": proto.domain, **decoded} if proto.domain else decoded
    if {"name", "scope", "position", "op_type", "inputs", "outputs", "self", "slot"} & decoded.keys():
        return None
    rebuilt = operators.make_node(graph, proto.op_type, **keywords)
    bare = onnx.NodeProto()
    bare.CopyFrom(proto)
    for field in ("input", "output", "name"):
        bare.ClearField(field)
    return keywords if rebuilt.SerializePartialToString() == bare.SerializePartialToString() else None


_PLAIN = frozenset(("input", "output", "name", "op_type", "domain"))
_SPELLED = ("int", "float", "string", "ints", "floats", "strings")


def _new_node(graph: ModelGraph, args: Given) -> Given | None:
    proto, scope = args["proto"], args["scope"]
    keywords = _attributes(graph, proto)
    if keywords is None or "" in proto.input:
        return None
    named: dict[str, Any] = {"op_type": proto.op_type, "inputs": list(proto.input), "outputs": list(proto.output)}
    named |= {"name": proto.name, "scope": graph.scope_path(scope) if scope else "", "position": args["position"]}
    return {**named, **keywords}


def _put_node(graph: ModelGraph, args: Given) -> Given | None:
    """Of `insert_before` and `insert_after`: operator, further inputs, attributes."""
    proto = args["proto"]
    keywords = _attributes(graph, proto)
    if keywords is None or args["data_slot"] or proto.output or proto.name or len(proto.input) > 1:
        return None
    slot = {"slot": args["slot"]} if "slot" in args else {}
    return {**slot, "op_type": proto.op_type, **keywords}


def _operator(graph: ModelGraph, args: Given) -> Given | None:
    more = dict(args["attributes"] or {})
    if args["overload"] or {"op_type", "domain", "self"} & more.keys():
        return None
    return {"op_type": args["op_type"], "domain": args["domain"], **more}


def _new_input(graph: ModelGraph, args: Given) -> Given | None:
    info, scope = args["info"], args["scope"] or graph.main
    path = graph.scope_path(scope)
    if isinstance(info, str):
        return {"name": info, "position": args["position"], "scope": path}
    declared = None if scope.is_function else declared_arguments(info)
    return None if declared is None else {"name": info.name, **declared, "position": args["position"], "scope": path}


def _in_scope(graph: ModelGraph, args: Given) -> Given:
    """The arguments with the path of the scope."""
    return {**args, "scope": graph.scope_path(args["scope"]) if args["scope"] else ""}


def _optional(names: Any) -> list[str | None]:
    return [name or None for name in names]


# -- statements of subjects that have several forms --------------------------------------------------------------------


def _bearer(graph: ModelGraph, bearer: Any, attribute: str) -> str:
    """The bearer of documentation or metadata; "" where users have no name for it."""
    if isinstance(bearer, Scope):
        return f"model.graph_{attribute}" if bearer is graph.main else ""
    return f"{handle(graph.names, bearer)}.{attribute}"


def _documented(graph: ModelGraph, bearer: Any, args: Given) -> str:
    place = _bearer(graph, bearer, "doc_string")
    return f"{place} = {args['text']!r}" if place else ""


def _noted(graph: ModelGraph, bearer: Any, args: Given) -> str:
    place, entries = _bearer(graph, bearer, "metadata"), list(args["entries"].items())
    if not place or len(entries) != 1:
        return ""
    key, text = entries[0]
    return f"del {place}[{key!r}]" if text is None else f"{place}[{key!r}] = {text!r}"


def _imported(graph: ModelGraph, _: Any, args: Given) -> str:
    place = f"{imports_handle(graph, args['function'] or graph.main)}[{args['domain']!r}]"
    return f"{place} = {args['version']}" if args["version"] else f"del {place}"


def _inserted(graph: ModelGraph, _: Any, args: Given) -> str:
    words = ["other"]
    if args["connect"]:
        wires = (f"{name!r}: {value_handle(graph.names, value)}" for name, value in args["connect"].items())
        words.append(f"{{{', '.join(wires)}}}")
    words += [f"prefix={args['prefix']!r}"] if args["prefix"] else []
    words += [] if args["add_outputs"] is True else [f"add_outputs={args['add_outputs']!r}"]
    fed = ", ".join(f"{value_handle(graph.names, value)}: {name!r}" for value, name in args["feed"])
    return f"model.insert({', '.join([*words, *([f'feed={{{fed}}}'] if fed else [])])})"


# -- the rows ----------------------------------------------------------------------------------------------------------

_ROWS = (
    # of the model
    EditSpec(
        nodes.add_node, ("model",), lambda args: f"add {args['proto'].name or args['proto'].op_type}",
        PythonCall("add_node"), arguments=_new_node,
        parameters={
            "op_type": Parameter("text"), "inputs": Parameter("values"), "outputs": Parameter("names"),
            "name": Parameter("text", default=""), "domain": Parameter("text", default=""), **_SCOPE,
            "position": Parameter("int", default=None),
        },
    ),
    EditSpec(
        formals.add_input, ("model",), lambda args: f"add input {getattr(args['info'], 'name', args['info'])}",
        PythonCall("add_input"), arguments=_new_input,
        parameters={
            "name": Parameter("name", "Name"), "dtype": Parameter("dtype", "Type", default=None),
            "shape": Parameter("shape", "Shape", f"{SHAPE_HINT}. Empty: unknown rank.", default=None),
            "position": Parameter("int", default=None), **_SCOPE,
        },
    ),
    EditSpec(
        initializers.add_initializer, ("model",), "add initializer {name}", PythonCall("add_initializer"),
        arguments=_in_scope,
        parameters={"name": Parameter("name", "Name"), "array": Parameter("array", "Elements"), **_SCOPE},
    ),
    EditSpec(
        metadata.set_doc_string, ("model", "graph", "node", "value"), "document {subject}", Assign("doc_string"),
        {"text": Parameter("long", "Text")}, written=_documented,
    ),
    EditSpec(
        metadata.set_metadata, ("model", "graph", "node", "value"),
        lambda args: f"set metadata {', '.join(args['entries'])} of {args['subject']}", Item("metadata"),
        {"key": Parameter("name", "Key"), "text": Parameter("text?", "Text", "Empty takes the entry away.")},
        written=_noted,
    ),
    EditSpec(
        metadata.set_model_field, ("model",), "set {field} to {value}", PythonCall("set_field"),
        {"field": Parameter("text"), "value": Parameter("text", "Value")},
    ),
    EditSpec(
        metadata.set_opset, ("model",),
        lambda args: f"import {args['domain'] or 'ai.onnx'} {args['version']}" if args["version"]
        else f"do not import {args['domain'] or 'ai.onnx'}",
        Item("opsets"), written=_imported,
        parameters={
            "domain": Parameter("text", "Domain", "Empty is ai.onnx."),
            "version": Parameter("version", "Version", "0 takes the import away. Nothing is converted."),
        },
    ),
    EditSpec(
        metadata.set_binding, ("model",), lambda args: f"bind {args['variable']} to {args['output'] or 'nothing'}",
        PythonCall("bind"), parameters=metadata.BINDING,
    ),
    EditSpec(
        opset_conversion.convert_opset, ("model",), "convert to ai.onnx {version}", PythonCall("convert_opset"),
        {"version": Parameter("int", "Version", "Of ai.onnx; nodes whose operators changed are rewritten.")},
    ),
    EditSpec(
        declaring.set_declarations, ("model",), "{action} declarations", PythonCall("declarations"),
        {"action": Parameter("text")},
    ),
    EditSpec(cleaning.sort_nodes, ("model",), "sort nodes", PythonCall("sort_nodes"),
             arguments=lambda _, args: None if args["scope"] else {}),
    EditSpec(cleaning.drop_dead_nodes, ("model",), "drop dead nodes", PythonCall("drop_dead_nodes")),
    EditSpec(cleaning.drop_unused_initializers, ("model",), "drop unused initializers",
             PythonCall("drop_unused_initializers")),
    EditSpec(cleaning.drop_unused_functions, ("model",), "drop unused functions", PythonCall("drop_unused_functions")),
    EditSpec(inlining.inline_functions, ("model",), "inline all functions", PythonCall("inline")),
    EditSpec(
        inlining.inline_function, ("model",), "inline {function.name}", PythonCall("inline"),
        {"function": Parameter("function", default="")},
        arguments=lambda graph, args: {"function": graph.scope_path(args["function"])},
    ),
    EditSpec(
        insertion.insert_model, ("model",), lambda args: f"insert {args['other'].proto.graph.name or 'a model'}",
        PythonCall("insert"), written=_inserted, exact=False,
        parameters={
            "file": Parameter("model_file", "Model"), "connect": Parameter("values"), "feed": Parameter("values"),
            "prefix": Parameter("text", "Prefix", "Put before all of its names.", default=""),
            "outputs": Parameter("bool", "Its outputs become outputs of this model", default=True),
        },
    ),
    EditSpec(
        cutting.cut, ("model",), cutting.label_of, PythonCall("cut"),
        arguments=lambda _, args: {"outputs": tuple(args["outputs"]), "inputs": tuple(args["inputs"]),
                                   "siblings": args["siblings"]},
        parameters={
            "outputs": Parameter("values", default=()), "inputs": Parameter("values", default=()),
            "siblings": Parameter("bool", "What crosses the same border too", default=True),
        },
    ),
    EditSpec(
        formals.replace_dim, ("model",), "let the dim {old} be {new}", PythonCall("replace_dim"),
        {
            "old": Parameter("dim", "Dim"), "new": Parameter("dim", "Becomes", SHAPE_HINT),
            "axis": Parameter("int", default=None), "values": Parameter("values", default=None),
        },
    ),
    EditSpec(grouping.clear_groups, ("model",), "clear groups made by hand", PythonCall("clear_groups")),
    # of nodes
    EditSpec(
        nodes.remove_nodes, ("nodes", "node"),
        lambda args: f"{'bypass' if args['bypass'] else 'remove'} {args['subject']}",
        PythonCall("remove", of_model=True, alone=True), {"bypass": _BYPASS},
    ),
    EditSpec(nodes.duplicate_nodes, ("nodes", "node"), "duplicate {subject}",
             PythonCall("duplicate", of_model=True, alone=True)),
    EditSpec(
        outlining.make_function, ("nodes",), "make {name} a function", PythonCall("make_function", of_model=True),
        {
            "name": Parameter("name", "Name"), "domain": Parameter("name", "Domain", default="local"),
            "copies": Parameter("bool", "Call it in place of every copy of these nodes too", default=False),
        },
    ),
    EditSpec(
        grouping.group_nodes, ("nodes",), "group {name}", PythonCall("group_nodes", of_model=True),
        {"name": Parameter("name", "Name")},
    ),
    EditSpec(grouping.ungroup_nodes, ("nodes",), "ungroup {subject}", PythonCall("ungroup_nodes", of_model=True)),
    EditSpec(outlining.for_each_copy, ("nodes",), "edit copies of {subject}", None),
    # of a node
    EditSpec(
        attributes.set_attribute, ("node",), "set {name} of {subject}", Item("attributes"),
        {"name": Parameter("name", "Attribute"), "value": Parameter("attribute", "Value")},
    ),
    EditSpec(
        attributes.clear_attribute, ("node",), "clear {name} of {subject}", Item("attributes"),
        {"name": Parameter("name", "Attribute")},
    ),
    EditSpec(
        attributes.default_attributes, ("node",),
        lambda args: f"{'write out' if args['explicit'] else 'drop'} the defaults of {args['subject']}",
        PythonCall("default_attributes"), {"explicit": Parameter("bool", default=False)},
    ),
    EditSpec(
        naming.rename_node, ("node",), "rename {subject} to {name}", Assign("name"), {"name": Parameter("text", "Name")}
    ),
    EditSpec(
        nodes.move_node, ("node",), "move {subject}", PythonCall("move"),
        {"position": Parameter("int", "Position", "0 is the first node.")},
    ),
    EditSpec(
        operators.set_operator, ("node",), "make {subject} a {op_type}", PythonCall("replace"), arguments=_operator,
        parameters={"op_type": Parameter("text"), "domain": Parameter("text", default=None)},
    ),
    EditSpec(
        wiring.set_input, ("node",), "rewire input {slot} of {subject}", PythonCall("set_input"),
        {"slot": Parameter("int", "Input"), "value": Parameter("value?", "Reads")},
        arguments=lambda _, args: {"slot": args["slot"], "value": args["name"] or None},
    ),
    EditSpec(
        wiring.set_inputs, ("node",), "rewire the inputs of {subject}", PythonCall("set_inputs"),
        {"values": Parameter("values", "Inputs")}, arguments=lambda _, args: {"values": _optional(args["names"])},
    ),
    EditSpec(
        wiring.set_outputs, ("node",), "set the outputs of {subject}", PythonCall("set_outputs"),
        {"names": Parameter("names", "Outputs", "Names with commas between; an empty one is not made.")},
        arguments=lambda _, args: {"names": _optional(args["names"])},
    ),
    EditSpec(
        wiring.insert_on_edge, ("node",), lambda args: f"insert {args['proto'].op_type} before {args['subject']}",
        PythonCall("insert_before"), {"slot": Parameter("int", "Input"), **_OPERATOR}, arguments=_put_node,
    ),
    EditSpec(
        constants.constant_to_initializer, ("node",), "make {subject} an initializer", PythonCall("to_initializer")
    ),
    EditSpec(
        inlining.inline_call, ("node",), "inline {subject}", PythonCall("inline", of_model=True),
        {"nested": Parameter("bool", default=False)},
    ),
    # of a value
    EditSpec(
        naming.rename_value, ("value",), "rename {subject} to {name}", Assign("name"),
        {"name": Parameter("text", "Name")},
    ),
    EditSpec(
        wiring.redirect, ("value",), lambda args: f"read {args['new'].name} in place of {args['subject']}",
        PythonCall("replace_uses"),
        {"other": Parameter("value", "Read instead"), "readers": Parameter("nodes", default=None)},
    ),
    EditSpec(
        wiring.insert_after, ("value",), lambda args: f"insert {args['proto'].op_type} behind {args['subject']}",
        PythonCall("insert_after"), _OPERATOR, arguments=_put_node,
    ),
    EditSpec(
        formals.set_shape, ("value",), "set shape of {subject}", PythonCall("set_shape"),
        {"shape": Parameter("shape", "Shape", SHAPE_HINT)},
    ),
    EditSpec(
        formals.set_dim, ("value",),
        lambda args: f"set dim {args['axis']} of {args['subject']} to "
        f"{'?' if args['dim'] is None else args['dim']}",
        PythonCall("set_dim"), {"axis": Parameter("int", "Axis"), "dim": Parameter("dim", "Dim", SHAPE_HINT)},
    ),
    EditSpec(
        formals.set_dtype, ("value",), "set type of {subject}", PythonCall("set_dtype"),
        {"dtype": Parameter("dtype", "Type")},
        arguments=lambda _, args: {"dtype": dtypes.name(elem_type_of(args["dtype"]))},
    ),
    EditSpec(
        cutting.remove_behind, ("value",), "remove what is behind {subject}", PythonCall("remove_behind", of_model=True)
    ),
    EditSpec(formals.remove_input, ("value",), "remove input {subject}", PythonCall("remove_input", of_model=True)),
    EditSpec(
        exposing.add_output, ("value",), "make {subject} an output",
        PythonCall("add_output", of_model=True), exact=False,
        arguments=lambda _, args: {"position": args["position"]},
        parameters={"position": Parameter("int", default=None)},
    ),
    EditSpec(
        formals.remove_output, ("value",), "remove output {subject}", PythonCall("remove_output", of_model=True),
        arguments=_in_scope, parameters=_SCOPE,
    ),
    EditSpec(
        initializers.set_initializer, ("value",), "replace {subject}", Assign("array"),
        {"array": Parameter("array", "Elements")},
    ),
    EditSpec(
        initializers.remove_initializer, ("value",), "remove initializer {subject}",
        PythonCall("remove_initializer", of_model=True),
    ),
    EditSpec(
        initializers.initializer_to_input, ("value",), "make {subject} an input", PythonCall("to_input"),
        {"keep_default": Parameter("bool", default=False)},
    ),
    EditSpec(
        initializers.input_to_initializer, ("value",), "make {subject} an initializer", PythonCall("to_initializer"),
        {"array": Parameter("array", default=None)},
    ),
    EditSpec(constants.initializer_to_constant, ("value",), "make {subject} a Constant node",
             PythonCall("to_constant")),
)  # fmt: skip

EDITS.update({row.name: row for row in _ROWS})

__all__ = ["EDITS"]
