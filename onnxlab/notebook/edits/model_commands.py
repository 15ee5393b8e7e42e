"""Gestures that are done to the model as a whole, or to the graph or body that a view shows of it."""

from collections.abc import Mapping
from typing import Any

from onnxlab import schemas
from onnxlab.errors import EditError
from onnxlab.model.opening import load
from onnxlab.notebook.edits import typed_tensors
from onnxlab.notebook.edits.edit_command import EditCommand, Given, On, call, described, method, name_of, scope_of
from onnxlab.notebook.edits.node_commands import OPERATOR, operator
from onnxlab.notebook.edits.value_commands import dims


def _where(on: On, given: Given) -> dict[str, Any]:
    """The keyword that names the body or function that is shown; none in the main graph."""
    path = scope_of(on.model, given["scope"])
    return {"scope": path} if path else {}


def _node_arguments(on: On, given: Given) -> tuple[list[Any], dict[str, Any]]:
    inputs = [name_of(on.model, ident) or "" for ident in given["inputs"]]
    return [given["op_type"], inputs, _outputs(on, given)], {**operator(given)[1], **_where(on, given)}


def _outputs(on: On, given: Given) -> list[str]:
    """A free name for each output that the operator must have."""
    op_type, domain, graph = given["op_type"], given["domain"], on.model.graph
    version = graph.opset_version(domain)
    schema = schemas.find(domain, op_type, version) if version else None
    taken = {name for scope in graph.scopes.values() for name in scope.names} if given["scope"] else graph.main.names
    outputs: list[str] = []
    for number in range(schema.min_output if schema else 1):
        stem = f"{op_type.lower()}_{number}" if number else op_type.lower()
        free = (name for name in [stem, *(f"{stem}_{i}" for i in range(1, len(taken) + 2))] if name not in taken)
        outputs.append(next(free))
    return outputs


def _input(on: On, given: Given) -> tuple[list[Any], dict[str, Any]]:
    shape = dims(given)
    typed = [given["dtype"], *([] if shape is None else [shape])] if given["dtype"] else []
    if shape is not None and not typed:
        raise EditError(f"{given['name']!r} is given a shape but no type; give both or neither")
    return [given["name"], *typed], _where(on, given)


def _add_initializer(on: On, given: Given) -> None:
    array = typed_tensors.array(given["dtype"], given["shape"], given["numbers"])
    on.model.add_initializer(given["name"], array, **_where(on, given))


def _add_initializer_line(on: On, given: Given) -> str:
    array = typed_tensors.array_line(given["dtype"], given["shape"], given["numbers"])
    where = call(**_where(on, given))
    return f"model.add_initializer({given['name']!r}, {array}{', ' + where if where else ''})"


def _set_opset(on: On, given: Given) -> None:
    if given["version"]:
        on.model.opsets[given["domain"]] = given["version"]
    else:
        del on.model.opsets[given["domain"]]


def _set_opset_line(on: On, given: Given) -> str:
    where = f"model.opsets[{given['domain']!r}]"
    return f"{where} = {given['version']}" if given["version"] else f"del {where}"


def _field(given: Given) -> Any:
    """ir_version and model_version are numbers, the rest is text."""
    text = given["text"].strip()
    if not given["field"].endswith("version") or given["field"] == "producer_version":
        return text
    try:
        return int(text)
    except ValueError:
        raise EditError(f"{given['field']} is an integer, got {text!r}") from None


def _in_turn(on: On, given: Given, key: str, names: list[str], what: str) -> dict[str, str]:
    """{name in the other model: value of this one} for the values that were given, in turn."""
    if len(given[key]) > len(names):
        raise EditError(f"{given['file'].name} has {len(names)} {what}, got {len(given[key])} values for them")
    return {name: name_of(on.model, ident) or "" for name, ident in zip(names, given[key], strict=False)}


def _insertion(on: On, given: Given) -> tuple[dict[str, str], dict[str, Any]]:
    """What the inputs of a model in a file read, and the keywords: the values that its outputs replace, and others."""
    other = _other(given)
    connect = _in_turn(on, given, "connect", [each.name for each in other.inputs if not each.initializer], "inputs")
    fed = _in_turn(on, given, "feed", [each.name for each in other.outputs], "outputs")
    keywords: dict[str, Any] = {"prefix": given["prefix"]} if given["prefix"] else {}
    keywords |= {} if given["outputs"] else {"add_outputs": False}
    return connect, keywords | ({"feed": {value: name for name, value in fed.items()}} if fed else {})


def _other(given: Given) -> Any:
    """The model in a file that was chosen. Raises LoadError where it is none."""
    return load(bytes(given["file"].data))


def _insert(on: On, given: Given) -> None:
    connect, keywords = _insertion(on, given)
    on.model.insert(_other(given), connect, **keywords)


def _insert_line(on: On, given: Given) -> str:
    connect, keywords = _insertion(on, given)
    return f"model.insert({call(given['file'].name, *([connect] if connect else []), **keywords)})"


def _graph_doc(on: On, given: Given) -> None:
    on.model.graph_doc_string = given["text"]


def _declarations(action: str, label: str) -> EditCommand:
    return method("model", "declarations", label, {}, lambda on, given: ([action], {}), ["set_declarations"])


GESTURES: Mapping[str, EditCommand] = {
    "add_node": method(
        "model", "add_node", "add {op_type}", {**OPERATOR, "inputs": "ids", "scope": "id"}, _node_arguments
    ),
    "add_input": method(
        "model",
        "add_input",
        "add input {name}",
        {"name": "text", "dtype": "text", "shape": "dims?", "scope": "id"},
        _input,
    ),
    "add_initializer": EditCommand(
        "model",
        {"name": "text", "dtype": "text", "shape": "dims", "numbers": "numbers", "scope": "id"},
        "store {name}",
        _add_initializer,
        _add_initializer_line,
        ("add_initializer",),
    ),
    "set_opset": EditCommand(
        "model", {"domain": "text", "version": "int"}, "set the opset", _set_opset, _set_opset_line, ("set_opset",)
    ),
    "convert_opset": method("model", "convert_opset", "convert to another opset", {"version": "int"}, edits=[]),
    "set_field": method(
        "model",
        "set_field",
        "set {field}",
        {"field": "text", "text": "text"},
        lambda on, given: ([given["field"], _field(given)], {}),
        ["set_model_field"],
    ),
    "graph_doc": EditCommand(
        "model",
        {"text": "long"},
        "write about the graph",
        _graph_doc,
        lambda on, given: f"model.graph_doc_string = {given['text']!r}",
        ("set_doc_string",),
    ),
    "insert": EditCommand(
        "model",
        {"file": "file", "connect": "ids", "feed": "ids", "prefix": "text", "outputs": "bool"},
        "insert another model",
        _insert,
        _insert_line,
        ("insert_model",),
    ),
    "sort_nodes": method("model", "sort_nodes", "sort the nodes"),
    "drop_dead_nodes": method("model", "drop_dead_nodes", "drop dead nodes"),
    "drop_unused_initializers": method("model", "drop_unused_initializers", "drop unused initializers"),
    "drop_unused_functions": method("model", "drop_unused_functions", "drop unused functions"),
    "refresh_declarations": _declarations("refresh", "bring declared types up to date"),
    "store_declarations": _declarations("store", "declare every value"),
    "drop_declarations": _declarations("drop", "drop declared types"),
    "inline_all": method("model", "inline", "inline all functions", edits=["inline_functions"]),
    **described("model"),
}
