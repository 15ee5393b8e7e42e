"""Gestures that are done to nodes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onnxlab.errors import EditError
from onnxlab.graph.handles.handles import Node, Value
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.protos.attributes import kind_of
from onnxlab.notebook.edits import typed_tensors
from onnxlab.notebook.edits.edit_command import EditCommand, Given, On, call, described, method, name_of
from onnxlab.notebook.protocol import messages

if TYPE_CHECKING:
    from onnxlab.model import Model

OPERATOR = {"op_type": "text", "domain": "text"}


def operator(given: Given) -> tuple[str, dict[str, str]]:
    """Operator type and, outside of the default domain, the keyword that names it."""
    return given["op_type"], {"domain": given["domain"]} if given["domain"] else {}


def attribute_value(model: "Model", node: NodeRecord, name: str, value: Any, kind: str) -> Any:
    """An attribute's value as the page sent it; `kind` counts where neither schema nor node know the attribute."""
    given = next((item for item in node.proto.attribute if item.name == name), None)
    schema = model.graph.schema(node)
    spec = schema.attributes.get(name) if schema else None
    return messages.from_wire(value, spec.type if spec else kind_of(given) if given is not None else kind)


def _connect(on: On, given: Given) -> None:
    slot, value = given["slot"], given["value"]
    name_of(on.model, value)
    if value and (refused := on.model.can_connect(Value(on.model.graph, value), on.it, slot)):
        raise EditError(f"{refused}. The wire stays as it was.")
    on.it.set_input(slot, Value(on.model.graph, value) if value else None)


def _set_attributes(on: On, given: Given) -> None:
    name, value = given["name"], given["value"]
    for node in on.it:
        if value is not None:
            record = on.model.graph.nodes[node.id]
            node.attributes[name] = attribute_value(on.model, record, name, value, given["type"])
        else:
            node.attributes.pop(name, None)


def _attributes_line(on: On, given: Given) -> str:
    name, value = given["name"], given["value"]
    head = f"with model.edit({'set ' + name!r}):\n    for node in {on.line}:\n        "
    if value is None:
        return f"{head}node.attributes.pop({name!r}, None)"
    return f"{head}node.attributes[{name!r}] = {messages.from_wire(value, given['type'])!r}"


def _set_elements(on: On, given: Given) -> None:
    name = given["name"]
    on.it.attributes[name] = typed_tensors.changed(_tensor(on.it, name), given["elements"])


def _elements_line(on: On, given: Given) -> str:
    name = given["name"]
    return typed_tensors.changed_line(f"{on.line}.attributes[{name!r}]", _tensor(on.it, name), given["elements"])


def _tensor(node: Node, name: str) -> Any:
    found = node.attributes.get(name)
    if not hasattr(found, "reshape"):
        raise EditError(f"{name!r} of {node.label} is no tensor; give it a type and a shape first")
    return found


def _replacement(on: On, given: Given) -> tuple[list[str], dict[str, str]]:
    return [given["op_type"]], {} if on.it.domain == given["domain"] else {"domain": given["domain"]}


def _function(on: On, given: Given) -> tuple[list[str], dict[str, bool]]:
    return [given["name"], given["domain"]], {"copies": given["copies"]}


def _typed(given: Given) -> tuple[str, list[int], Any]:
    return given["dtype"], given["shape"], given["numbers"]


GESTURES: Mapping[str, EditCommand] = {
    "duplicate": method("nodes", "duplicate", "duplicate {}", edits=["duplicate_nodes"], of_model=True),
    "replace": method("node", "replace", "make {} a {op_type}", OPERATOR, _replacement, ["set_operator"]),
    "connect": EditCommand(
        "node",
        {"slot": "int", "value": "id"},
        "rewire {}",
        lambda on, given: _connect(on, given),
        lambda on, given: f"{on.line}.set_input({call(given['slot'], name_of(on.model, given['value']))})",
        ("set_input", "set_inputs"),
    ),
    "set_outputs": method(
        "node",
        "set_outputs",
        "set the outputs of {}",
        {"names": "texts"},
        lambda on, given: ([[name or None for name in given["names"]]], {}),
    ),
    "insert_before": method(
        "node",
        "insert_before",
        "insert {op_type} before {}",
        {"slot": "int", **OPERATOR},
        lambda on, given: ([given["slot"], given["op_type"]], operator(given)[1]),
        ["insert_on_edge"],
    ),
    "move": method("node", "move", "move {}", {"position": "int"}, edits=["move_node"]),
    "default_attributes": method(
        "node",
        "default_attributes",
        "default attributes of {}",
        {"explicit": "bool"},
        lambda on, given: ([], {"explicit": given["explicit"]}),
    ),
    "set_attributes": EditCommand(
        "nodes",
        {"name": "text", "value": "attribute", "type": "text"},
        "set {name} of {}",
        _set_attributes,
        _attributes_line,
        ("set_attribute", "clear_attribute", "for_each_copy"),
    ),
    "set_tensor": EditCommand(
        "node",
        {"name": "text", "dtype": "text", "shape": "dims", "numbers": "numbers"},
        "set {name} of {}",
        lambda on, given: on.it.attributes.__setitem__(given["name"], typed_tensors.array(*_typed(given))),
        lambda on, given: f"{on.line}.attributes[{given['name']!r}] = {typed_tensors.array_line(*_typed(given))}",
        ("set_attribute",),
    ),
    "set_tensor_elements": EditCommand(
        "node", {"name": "text", "elements": "elements"}, "set {name} of {}", _set_elements, _elements_line
    ),
    "node_to_initializer": method("node", "to_initializer", "store {}", edits=["constant_to_initializer"]),
    "inline": method(
        "node",
        "inline",
        "inline {}",
        {"nested": "bool"},
        lambda on, given: ([], {"nested": given["nested"]}),
        ["inline_call"],
        of_model=True,
    ),
    "make_function": method(
        "nodes",
        "make_function",
        "make {name} a function",
        {"name": "text", "domain": "text", "copies": "bool"},
        _function,
        of_model=True,
    ),
    **described("node"),
}
