"""Gestures that are done to a value."""

from collections.abc import Mapping
from typing import Any

from onnxlab.errors import EditError
from onnxlab.graph.handles import Value
from onnxlab.notebook import typed_tensors
from onnxlab.notebook.gesture import Gesture, Given, On, call, described, name_of, value_line
from onnxlab.notebook.node_gestures import OPERATOR, operator


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


GESTURES: Mapping[str, Gesture] = {
    "insert_after": Gesture(
        "value",
        OPERATOR,
        "insert {op_type} after {}",
        lambda on, given: on.it.insert_after(given["op_type"], **operator(given)[1]),
        lambda on, given: f"{on.line}.insert_after({call(given['op_type'], **operator(given)[1])})",
        ("insert_after",),
    ),
    "replace_uses": Gesture(
        "value", {"other": "id"}, "read another value for {}", _replace_uses, _replace_uses_line, ("redirect",)
    ),
    "add_output": Gesture(
        "value",
        {},
        "make {} an output",
        lambda on, given: on.model.add_output(on.it),
        lambda on, given: f"model.add_output({on.line})",
        ("add_output",),
    ),
    "remove_output": Gesture(
        "value",
        {},
        "take {} out of the outputs",
        lambda on, given: on.model.remove_output(on.it),
        lambda on, given: f"model.remove_output({on.line})",
        ("remove_output",),
    ),
    "remove_input": Gesture(
        "value",
        {},
        "take {} out of the inputs",
        lambda on, given: on.model.remove_input(on.it),
        lambda on, given: f"model.remove_input({on.line})",
        ("remove_input",),
    ),
    "remove_initializer": Gesture(
        "value",
        {},
        "remove the data of {}",
        lambda on, given: on.model.remove_initializer(on.it),
        lambda on, given: f"model.remove_initializer({on.line})",
        ("remove_initializer",),
    ),
    "to_input": Gesture(
        "value",
        {"keep_default": "bool"},
        "make {} an input",
        lambda on, given: on.it.to_input(given["keep_default"]),
        lambda on, given: f"{on.line}.to_input({call(keep_default=True) if given['keep_default'] else ''})",
        ("initializer_to_input",),
    ),
    "to_initializer": Gesture(
        "value",
        {},
        "store {}",
        lambda on, given: on.it.to_initializer(),
        lambda on, given: f"{on.line}.to_initializer()",
        ("input_to_initializer",),
    ),
    "to_constant": Gesture(
        "value",
        {},
        "make {} a Constant",
        lambda on, given: on.it.to_constant(),
        lambda on, given: f"{on.line}.to_constant()",
        ("initializer_to_constant",),
    ),
    "set_shape": Gesture(
        "value",
        {"shape": "dims"},
        "set the shape of {}",
        lambda on, given: on.it.set_shape(dims(given)),
        lambda on, given: f"{on.line}.set_shape({call(dims(given))})",
        ("set_shape",),
    ),
    "set_dim": Gesture(
        "value",
        {"axis": "int", "dim": "dim"},
        "set a dim of {}",
        lambda on, given: on.it.set_dim(given["axis"], _dim(given)),
        lambda on, given: f"{on.line}.set_dim({call(given['axis'], _dim(given))})",
        ("set_dim",),
    ),
    "set_dtype": Gesture(
        "value",
        {"dtype": "text"},
        "set the type of {}",
        lambda on, given: on.it.set_dtype(given["dtype"]),
        lambda on, given: f"{on.line}.set_dtype({call(given['dtype'])})",
        ("set_dtype",),
    ),
    "set_array": Gesture(
        "value",
        {"dtype": "text", "shape": "dims", "numbers": "numbers"},
        "replace the data of {}",
        _set_array,
        _set_array_line,
        ("set_initializer",),
    ),
    "load_array": Gesture(
        "value",
        {"file": "file"},
        "replace the data of {}",
        lambda on, given: setattr(on.it, "array", given["file"].array()),
        lambda on, given: f"{on.line}.array = np.load({given['file'].name!r})",
        ("set_initializer",),
    ),
    "set_elements": Gesture(
        "value",
        {"elements": "elements"},
        "change elements of {}",
        _set_elements,
        lambda on, given: typed_tensors.changed_line(f"{on.line}.array", _stored(on), given["elements"]),
        ("set_initializer",),
    ),
    **described("value"),
}
