"""What can be done to a model by hand: every gesture with what it takes, what it does, and its line of Python.

A gesture calls the same methods as a cell would; its line is what somebody would write to have the same done, and is
shown beside the edit in the page's history.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from onnxlab import schemas
from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph.handles import Node, Value
from onnxlab.notebook.protocol import ProtocolError

if TYPE_CHECKING:
    from onnxlab.model import Model

Subject = Literal["model", "nodes", "node", "value"]
Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Gesture:
    """One kind of edit.

    Attributes:
        subject: what it is done to; "nodes" takes a list of ids.
        takes: its further parameters by name: "text", "int", "ids", "id" (0: none), "dims", "bool"; all are required.
        label: what the history calls it, of the subject's name.
        act: does it.
        line: the same in Python, of the subject in Python.
    """

    subject: Subject
    takes: Mapping[str, str]
    label: str
    act: "Callable[[Model, Any, Given], Any]"
    line: "Callable[[Model, Any, Given], str]"


def _name(model: "Model", ident: int) -> str | None:
    return Value(model.graph, ident).name if ident else None


def _operator(given: Given) -> tuple[str, dict[str, str]]:
    """Operator type and, outside of the default domain, the keyword that names it."""
    return given["op_type"], {"domain": given["domain"]} if given["domain"] else {}


def _call(*arguments: Any, **keywords: Any) -> str:
    return ", ".join([*map(repr, arguments), *(f"{name}={value!r}" for name, value in keywords.items())])


def _add_node(model: "Model", subject: Any, given: Given) -> None:
    inputs, outputs = _ends(model, given)
    model.add_node(given["op_type"], inputs, outputs, domain=given["domain"])


def _ends(model: "Model", given: Given) -> tuple[list[str], list[str]]:
    """Names of a new node's inputs, and a free name for each output that its operator must have."""
    op_type, domain = given["op_type"], given["domain"]
    version = model.graph.opset_version(domain)
    schema = schemas.find(domain, op_type, version) if version else None
    names = model.graph.main.names
    outputs: list[str] = []
    for number in range(schema.min_output if schema else 1):
        stem = f"{op_type.lower()}_{number}" if number else op_type.lower()
        free = (name for name in [stem, *(f"{stem}_{i}" for i in range(1, len(names) + 2))] if name not in names)
        outputs.append(next(free))
    return [_name(model, ident) or "" for ident in given["inputs"]], outputs


def _dims(given: Given) -> list[int | str | None]:
    return [dim if dim != "?" else None for dim in given["shape"]]


_OPERATOR = {"op_type": "text", "domain": "text"}

GESTURES: Mapping[str, Gesture] = {
    "add_node": Gesture(
        "model",
        {**_OPERATOR, "inputs": "ids"},
        "add {op_type}",
        _add_node,
        lambda model, it, given: (
            f"model.add_node({_call(given['op_type'], *_ends(model, given), **_operator(given)[1])})"
        ),
    ),
    "duplicate": Gesture(
        "nodes",
        {},
        "duplicate {}",
        lambda model, nodes, given: model.duplicate(nodes),
        lambda model, it, given: f"model.duplicate({it})",
    ),
    "replace": Gesture(
        "node",
        _OPERATOR,
        "make {} a {op_type}",
        lambda model, node, given: node.replace(given["op_type"], given["domain"]),
        lambda model, it, given: f"{it}.replace({_call(given['op_type'], **_operator(given)[1])})",
    ),
    "connect": Gesture(
        "node",
        {"slot": "int", "value": "id"},
        "rewire {}",
        lambda model, node, given: _connect(model, node, given["slot"], given["value"]),
        lambda model, it, given: f"{it}.set_input({_call(given['slot'], _name(model, given['value']))})",
    ),
    "insert_before": Gesture(
        "node",
        {"slot": "int", **_OPERATOR},
        "insert {op_type} before {}",
        lambda model, node, given: node.insert_before(given["slot"], given["op_type"], **_operator(given)[1]),
        lambda model, it, given: f"{it}.insert_before({_call(given['slot'], given['op_type'], **_operator(given)[1])})",
    ),
    "insert_after": Gesture(
        "value",
        _OPERATOR,
        "insert {op_type} after {}",
        lambda model, value, given: value.insert_after(given["op_type"], **_operator(given)[1]),
        lambda model, it, given: f"{it}.insert_after({_call(given['op_type'], **_operator(given)[1])})",
    ),
    "add_output": Gesture(
        "value",
        {},
        "make {} an output",
        lambda model, value, given: model.add_output(value),
        lambda model, it, given: f"model.add_output({it})",
    ),
    "remove_output": Gesture(
        "value",
        {},
        "take {} out of the outputs",
        lambda model, value, given: model.remove_output(value),
        lambda model, it, given: f"model.remove_output({it})",
    ),
    "to_input": Gesture(
        "value",
        {},
        "make {} an input",
        lambda model, value, given: value.to_input(),
        lambda model, it, given: f"{it}.to_input()",
    ),
    "to_initializer": Gesture(
        "value",
        {},
        "store {}",
        lambda model, value, given: value.to_initializer(),
        lambda model, it, given: f"{it}.to_initializer()",
    ),
    "to_constant": Gesture(
        "value",
        {},
        "make {} a Constant",
        lambda model, value, given: value.to_constant(),
        lambda model, it, given: f"{it}.to_constant()",
    ),
    "set_shape": Gesture(
        "value",
        {"shape": "dims"},
        "set the shape of {}",
        lambda model, value, given: value.set_shape(_dims(given)),
        lambda model, it, given: f"{it}.set_shape({_call(_dims(given))})",
    ),
    "set_dtype": Gesture(
        "value",
        {"dtype": "text"},
        "set the type of {}",
        lambda model, value, given: value.set_dtype(given["dtype"]),
        lambda model, it, given: f"{it}.set_dtype({_call(given['dtype'])})",
    ),
}


def _connect(model: "Model", node: Node, slot: int, value: int) -> None:
    if value and (refused := model.can_connect(Value(model.graph, value), node, slot)):
        raise EditError(f"{refused}. The wire stays as it was.")
    node.set_input(slot, Value(model.graph, value) if value else None)


# -- doing them --------------------------------------------------------------------------------------------------------

_FITS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "text": ("a text", lambda given: isinstance(given, str) and len(given) <= 1000),
    "int": ("an integer from 0", lambda given: _is_id(given) and given < 1 << 20),
    "id": ("an id", lambda given: _is_id(given)),
    "ids": (
        "a list of ids",
        lambda given: isinstance(given, list) and len(given) <= 10_000 and all(map(_is_id, given)),
    ),
    "dims": ("a list of dims", lambda given: isinstance(given, list) and len(given) <= 64 and all(map(_is_dim, given))),
}


def _is_id(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def _is_dim(given: Any) -> bool:
    return _is_id(given) or (isinstance(given, str) and 0 < len(given) <= 200)


def line(model: "Model", name: str, subject: Sequence[int], given: Given) -> str:
    """A gesture in Python, for the model as it is before. Raises what `perform` does before it acts."""
    gesture = check(name, subject, given)
    _subject(model, gesture, subject)
    return gesture.line(model, subject_line(model, gesture, subject), given)


def perform(model: "Model", name: str, subject: Sequence[int], given: Given, origin: str) -> None:
    """Do a gesture as one undo step, and return its line of Python.

    Args:
        subject: ids of what it is done to; empty for the model.
        given: its parameters.
        origin: the view that asked.

    Raises:
        ProtocolError: there is no such gesture, or its parameters do not fit.
        NameLookupError: the subject is not in the model any more.
        EditError: the model refuses; nothing changed.
    """
    gesture = check(name, subject, given)
    found = _subject(model, gesture, subject)
    shown = {key: value for key, value in given.items() if isinstance(value, str)}
    label = gesture.label.format(_called(model, gesture, subject), **shown)
    with model.graph.edit(label, origin):
        gesture.act(model, found, given)


def check(name: str, subject: Sequence[int], given: Given) -> Gesture:
    """The gesture of this name, its parameters looked at. Raises ProtocolError as `perform` does."""
    gesture = GESTURES.get(name)
    if gesture is None:
        raise ProtocolError("malformed", f"edit: no gesture {name!r}; there are {', '.join(GESTURES)}")
    if given.keys() != gesture.takes.keys():
        takes = ", ".join(gesture.takes) or "nothing"
        raise ProtocolError("malformed", f"edit: {name} takes {takes}, got {', '.join(map(str, given)) or 'nothing'}")
    for key, kind in gesture.takes.items():
        words, fits = _FITS[kind]
        if not fits(given[key]):
            raise ProtocolError("malformed", f"edit: {key} of {name} is {words}, got {str(given[key])[:60]!r}")
    wanted = {"model": len(subject) == 0, "nodes": len(subject) > 0}.get(gesture.subject, len(subject) == 1)
    if not wanted:
        raise ProtocolError("malformed", f"edit: {name} is done to one {gesture.subject}, got {len(subject)} ids")
    return gesture


def _subject(model: "Model", gesture: Gesture, subject: Sequence[int]) -> Any:
    known: Mapping[int, Any] = model.graph.values if gesture.subject == "value" else model.graph.nodes
    for ident in subject:
        if ident not in known:
            raise NameLookupError(f"{gesture.subject.removesuffix('s')} {ident} is not in the model any more")
    if gesture.subject == "model":
        return model
    if gesture.subject == "value":
        return Value(model.graph, subject[0])
    nodes = [Node(model.graph, ident) for ident in subject]
    return nodes if gesture.subject == "nodes" else nodes[0]


def _called(model: "Model", gesture: Gesture, subject: Sequence[int]) -> str:
    if gesture.subject == "model":
        return "the model"
    if gesture.subject == "value":
        return Value(model.graph, subject[0]).name
    first = model.graph.label(model.graph.nodes[subject[0]])
    return first if len(subject) == 1 else f"{len(subject)} nodes"


def subject_line(model: "Model", gesture: Gesture, subject: Sequence[int]) -> str:
    """What a gesture is done to, in Python."""
    if gesture.subject == "model":
        return "model"
    if gesture.subject == "value":
        return value_line(model, subject[0])
    nodes = [node_line(model, ident) for ident in subject]
    return f"[{', '.join(nodes)}]" if gesture.subject == "nodes" else nodes[0]


def node_line(model: "Model", ident: int) -> str:
    """A node in Python: by its name where that finds it, else by its first output, else by its id."""
    record = model.graph.nodes[ident]
    outputs = [model.graph.values[value].name for value in record.outputs if value]
    for key in (record.name, *outputs[:1]):
        try:
            if key and model.graph.resolve_node(key) == ident:
                return f"model.nodes[{key!r}]"
        except NameLookupError:
            continue
    return f"model.node({ident})"


def value_line(model: "Model", ident: int) -> str:
    """A value in Python: by its name where that finds it, else by its id."""
    name = Value(model.graph, ident).path
    try:
        if model.graph.resolve_value(name) == ident:
            return f"model.value({name!r})"
    except NameLookupError:
        return f"model.value({ident})"
    return f"model.value({ident})"
