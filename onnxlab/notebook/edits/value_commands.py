"""Gestures that are done to a value."""

from collections.abc import Mapping
from typing import Any

from onnxlab.errors import EditError
from onnxlab.graph.handles.handles import Value
from onnxlab.notebook.edits import typed_tensors
from onnxlab.notebook.edits.edit_command import EditCommand, Given, On, described, method, name_of, value_line
from onnxlab.notebook.edits.node_commands import OPERATOR, operator


def dims(given: Given) -> list[int | str | None] | None:
    """Dims as Python takes them: "?" is None; null stays."""
    shape = given["shape"]
    return None if shape is None else [None if dim == "?" else dim for dim in shape]


def _dim(given: Given) -> int | str | None:
    return None if given["dim"] == "?" else given["dim"]


def _stored(on: On) -> Any:
    found = on.it.array
    if found is None:
        raise EditError(f"{on.it.name!r} is no initializer; only initializers hold data")
    return found


def _replace_uses(on: On, given: Given) -> None:
    name_of(on.model, given["other"])
    on.it.replace_uses(Value(on.model.graph, given["other"]))


def _replace_uses_line(on: On, given: Given) -> str:
    name_of(on.model, given["other"])
    return f"{on.line}.replace_uses({value_line(on.model, given['other'])})"


def _set_array(on: On, given: Given) -> None:
    on.it.array = typed_tensors.array(given["dtype"], given["shape"], given["numbers"])


def _set_array_line(on: On, given: Given) -> str:
    return f"{on.line}.array = {typed_tensors.array_line(given['dtype'], given['shape'], given['numbers'])}"


def _set_elements(on: On, given: Given) -> None:
    on.it.array = typed_tensors.changed(_stored(on), given["elements"])


GESTURES: Mapping[str, EditCommand] = {
    "insert_after": method(
        "value",
        "insert_after",
        "insert {op_type} after {}",
        OPERATOR,
        lambda on, given: ([given["op_type"]], operator(given)[1]),
    ),
    "replace_uses": EditCommand(
        "value", {"other": "id"}, "read another value for {}", _replace_uses, _replace_uses_line, ("redirect",)
    ),
    "add_output": method("value", "add_output", "make {} an output", of_model=True),
    "remove_output": method("value", "remove_output", "take {} out of the outputs", of_model=True),
    "remove_input": method("value", "remove_input", "take {} out of the inputs", of_model=True),
    "remove_initializer": method("value", "remove_initializer", "remove the data of {}", of_model=True),
    "to_input": method(
        "value",
        "to_input",
        "make {} an input",
        {"keep_default": "bool"},
        lambda on, given: ([], {"keep_default": True} if given["keep_default"] else {}),
        ["initializer_to_input"],
    ),
    "to_initializer": method("value", "to_initializer", "store {}", edits=["input_to_initializer"]),
    "to_constant": method("value", "to_constant", "make {} a Constant", edits=["initializer_to_constant"]),
    "set_shape": method(
        "value", "set_shape", "set the shape of {}", {"shape": "dims"}, lambda on, given: ([dims(given)], {})
    ),
    "set_dim": method(
        "value",
        "set_dim",
        "set a dim of {}",
        {"axis": "int", "dim": "dim"},
        lambda on, given: ([given["axis"], _dim(given)], {}),
    ),
    "set_dtype": method("value", "set_dtype", "set the type of {}", {"dtype": "text"}),
    "set_array": EditCommand(
        "value",
        {"dtype": "text", "shape": "dims", "numbers": "numbers"},
        "replace the data of {}",
        _set_array,
        _set_array_line,
        ("set_initializer",),
    ),
    "load_array": EditCommand(
        "value",
        {"file": "file"},
        "replace the data of {}",
        lambda on, given: setattr(on.it, "array", given["file"].array()),
        lambda on, given: f"{on.line}.array = np.load({given['file'].name!r})",
        ("set_initializer",),
    ),
    "set_elements": EditCommand(
        "value",
        {"elements": "elements"},
        "change elements of {}",
        _set_elements,
        lambda on, given: typed_tensors.changed_line(f"{on.line}.array", _stored(on), given["elements"]),
        ("set_initializer",),
    ),
    **described("value"),
}
