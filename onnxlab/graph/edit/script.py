"""The history as a Python script that makes the same edits on another copy of the model.

Ids differ from copy to copy, so each change is taken down together with an expression that finds its target:
`model.nodes["conv1"]`, by position where the name is not unique. A change is written as a call of a handle's method
where that method makes exactly this change, and as a primitive change otherwise; either way the copy gets the same
bytes.
"""

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import onnx
from google.protobuf import text_format
from google.protobuf.message import Message
from onnx import helper

from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph.edit import changes
from onnxlab.graph.edit.statements import SAYINGS, value_handle
from onnxlab.graph.edit.validation import attribute_problem
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.protos.attributes import decode, encode, kind_of
from onnxlab.graph.protos.long_lists import Items, LongList, items_of
from onnxlab.graph.state.change import Change
from onnxlab.graph.state.graph_state import GraphState
from onnxlab.graph.state.names import Names

_KIND = onnx.AttributeProto


@dataclass(slots=True, eq=False)
class LateText:
    """A statement that is written when it is first asked for; see `History.later`."""

    write: Callable[[], str]
    written: str | None = None

    def __str__(self) -> str:
        self.written = self.write() if self.written is None else self.written
        return self.written


class Recorded(NamedTuple):
    """An edit as its row in the table of edits has it.

    Attributes:
        text: the statement of the edit, "" where it has none.
        exact: whether a script may write the statement in the place of the changes.
        shown: the statement for display, "" where it is `text`.
    """

    label: str
    text: str | LateText = ""
    exact: bool = False
    shown: str | LateText = ""


class ScriptStep(NamedTuple):
    """A change as it is taken down, or, without one, a statement that makes several.

    Attributes:
        subject: the Python expression of the handle, scope or target that is changed.
        fits: whether a handle's method accepts the change at that moment; inside an edit, its preconditions may follow
            only later.
        said: the whole statement where it depends on the state before the change, else ""; None where the statement of
            another step includes this change.
        shown: the statement for display instead of the script's; None where another step's statement is displayed.
    """

    change: Change | None
    subject: str
    fits: bool
    said: str | LateText | None = ""
    shown: str | LateText | None = ""


class HistoryStep(NamedTuple):
    """One undoable edit.

    Attributes:
        changes: the changes that undo the edit, or, once it is undone, redo it; the last one first.
        token: number of the state of the model after the edit.
        deeds: the changes made, each with a Python expression of its target.
        held: bytes of replaced data in `changes`, which dropping the step frees.
    """

    label: str
    changes: tuple[Change, ...]
    token: int
    deeds: tuple[ScriptStep, ...] = ()
    held: int = 0


TEXT_LIMIT = 4000
"""Messages of more bytes are written in base64."""

_HEAD = '''"""Edits of an ONNX model, recorded by onnxlab: `replay(model)` makes them again on another copy."""

import base64
import sys

import numpy as np
import onnx
from google.protobuf import text_format

import onnxlab
from onnxlab.graph.edit import changes


def replay(model):
    """Make all edits, each as one undo step."""
'''
_TAIL = """

if __name__ == "__main__":
    opened = onnxlab.load(sys.argv[1])
    replay(opened)
    opened.save(sys.argv[2])
"""


def script_step(graph: GraphState, change: Change, statement: str = "") -> ScriptStep:
    """Take down a change that is about to be applied; `statement` is what makes it in Python, where that is known."""
    if ident := getattr(change, "node", 0):
        subject = node_handle(graph.names, graph.nodes[ident])
        fits = type(change) is not changes.SetAttribute or _fits(graph, change)
    elif scope := getattr(change, "scope", 0):
        subject, fits = _scope(graph, graph.scopes[scope]), True
    else:
        subject, fits = _subject(graph, change)
    if not statement and (say := SAYINGS.get(type(change))):
        statement = say(graph, change)
    return ScriptStep(change, subject, fits, statement)


def without_copy(graph: GraphState, done: ScriptStep) -> ScriptStep:
    """A step that has just been made, with the model's own message in place of its copy.

    The history thus does not hold the data of tensors and lists twice.
    """
    change = done.change
    if isinstance(change, changes.SetInitializer):
        if change.tensor is None or change.sparse:
            return done
        scope = graph.scopes[change.scope]
        stored = scope.proto.initializer[scope.places("initializer").positions(change.name)[-1]]
        change = changes.SetInitializer(change.scope, change.name, stored, change.position, False, change.ids)
        return ScriptStep(change, *done[1:])
    if isinstance(change, changes.SetAttribute) and not isinstance(change.proto, Items | None):
        if change.proto.type not in _BULKY:
            return done
        attributes = graph.nodes[change.node].proto.attribute
        places = range(len(attributes)) if change.position < 0 else (change.position,)
        stored = next(attributes[place] for place in places if attributes[place].name == change.name)
        return done._replace(change=replace(change, proto=items_of(stored) or stored))
    return done


_BULKY = frozenset((_KIND.TENSOR, _KIND.FLOATS, _KIND.INTS, _KIND.STRINGS))
"""Types of attributes that may hold much data, without those of graphs, which edits change in place."""


def _fits(graph: GraphState, change: Any) -> bool:
    """Whether the operator that a node is takes what a SetAttribute gives it."""
    node, proto = graph.nodes[change.node], change.proto
    proto = proto.message() if isinstance(proto, Items) else proto
    schema = graph.schema(node)
    if proto is None or schema is None or function_key(node.proto) in graph.index.functions:
        return True
    if attribute_problem(schema, proto):
        return False
    choices = schema.attributes[proto.name].choices
    if choices is None:
        return True
    texts = {proto.s} if proto.type == onnx.AttributeProto.STRING else set(proto.strings)
    return all(item.decode(errors="replace") in choices for item in texts)


def _subject(graph: GraphState, change: Change) -> tuple[str, bool]:
    """The expression of a handle where the change names neither a node nor a scope, and whether the handle makes it."""
    match change:
        case changes.RenameValue(value=ident):
            return value_handle(graph.names, graph.values[ident]), graph.values[ident].name not in ("", change.name)
        case changes.SetField(target=("node", ident), field=field, value=value):
            scope = graph.scopes[graph.nodes[ident].scope]
            is_refused = field == "name" and (graph.is_ge_dump or graph.names.nodes_called(scope, str(value)))
            return node_handle(graph.names, graph.nodes[ident]), not is_refused
        case changes.SetField(target=("scope", ident)):
            return _scope(graph, graph.scopes[ident]), True
        case changes.SetField(target=("tensor", ident)):
            return value_handle(graph.names, graph.values[ident]), graph.values[ident].info is None  # else sets that
    return "model", True  # a field of the model, or a function that comes


def node_handle(names: Names, node: NodeRecord) -> str:
    """Return the expression that finds a node on another copy: by its name, or by its position."""
    scope, name = names.index.scopes[node.scope], node.proto.name
    main = scope is names.index.main
    if main and name and names.tells(scope, name):
        return f"model.nodes[{name!r}]"
    position = scope.position(node)
    if main:
        return f"model.nodes[{position}]"
    path = names.scope_path(scope, telling=True)
    try:
        if name and names.resolve_node(f"{path}/{name}") == node.id:
            return f"model.nodes[{path + '/' + name!r}]"
    except NameLookupError:
        pass
    return f"model.node_at({path!r}, {position})"


def _scope(graph: GraphState, scope: Scope) -> str:
    return f"model.graph.names.find_scope({graph.names.scope_path(scope, telling=True)!r})"


def to_python(steps: Iterable[HistoryStep]) -> str:
    """The script of some steps, oldest first.

    Raises:
        EditError: a step has no script.
    """
    lines = []
    for step in steps:
        if not step.deeds:
            raise EditError(f"what {step.label!r} did was not taken down, so it cannot be written as Python")
        lines.append(f"    with model.edit({step.label!r}) as edit:")
        deeds = [deed for deed in step.deeds if deed.said is not None]
        lines += [f"        {line}" for deed in deeds for line in _line(deed, len(deeds) == 1).splitlines()]
    return _HEAD + "\n".join(lines or ["    return"]) + "\n" + _TAIL


MOST_SHOWN = 20
"""Statements of an edit that are shown."""
MOST_CHARACTERS = 2000
"""Characters of a statement that are shown."""


def shown(step: HistoryStep) -> str:
    """An edit in Python as it is shown to people: a statement, or a block of several; what is too long is cut off."""
    deeds = [deed for deed in step.deeds if deed.said is not None and deed.shown is not None]
    lines = [
        str(deed.shown or "") or (f"# {step.label}" if _is_large(deed) else _line(deed, len(deeds) == 1))
        for deed in deeds[:MOST_SHOWN]
    ]
    lines = [line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}…" for line in lines]
    if len(lines) <= 1:
        return "".join(lines).replace("edit.apply(", "model.graph.apply(")
    rest = [f"# … and {len(deeds) - MOST_SHOWN} more"] if len(deeds) > MOST_SHOWN else []
    inner = [f"    {line}" for deed in [*lines, *rest] for line in deed.splitlines()]
    return "\n".join([f"with model.edit({step.label!r}) as edit:", *inner])


def _is_large(done: ScriptStep) -> bool:
    """Whether a change holds more than a line can show, and has no statement."""
    if done.said or done.change is None:
        return False
    held = [getattr(done.change, item.name) for item in fields(done.change)]  # type: ignore[arg-type]
    items = [item for item in held if isinstance(item, Items | Message)]
    return any((item.nbytes if isinstance(item, Items) else item.ByteSize()) > TEXT_LIMIT for item in items)


def _line(done: ScriptStep, alone: bool) -> str:
    """One statement; `alone` says that the change is a whole edit, which may be judged at once."""
    change, subject, fits, statement, _ = done
    if statement or change is None:
        return str(statement or "")
    writer = _WRITERS.get(type(change)) if fits else None
    return (writer(change, subject, alone) if writer else "") or f"edit.apply({_primitive(change, subject)})"


def _primitive(change: Change, subject: str) -> str:
    """The change itself; ids that it gives to what it puts back are left to the copy."""
    parts = []
    for field in fields(change):  # type: ignore[arg-type]
        value = getattr(change, field.name)
        if field.name in ("image", "images", "ids", "mentions", "unset") or value == field.default:
            continue
        if isinstance(value, onnx.TensorProto) and value.name != getattr(change, "name", value.name):
            value = named(value, change.name)  # type: ignore[attr-defined]  # the model's own, renamed since
        if field.name in ("node", "scope") or (field.name == "value" and isinstance(change, changes.RenameValue)):
            parts.append(f"{field.name}={subject}.id")
        elif field.name == "target":
            ident = f"{subject}.id" if value[0] in ("node", "scope", "tensor") else value[1]
            parts.append(f"target=({value[0]!r}, {ident})")
        else:
            parts.append(f"{field.name}={literal(value)}")
    return f"changes.{type(change).__name__}({', '.join(parts)})"


def named(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    """A copy by another name."""
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy


def literal(value: Any) -> str:
    """A Python expression that makes a scalar, a message, or a tuple of these."""
    if isinstance(value, tuple | list):
        inner = ", ".join(map(literal, value))
        return f"({inner},)" if isinstance(value, tuple) and len(value) == 1 else f"({inner})"
    value = value.message() if isinstance(value, Items) else value
    return _message(value) if isinstance(value, Message) else repr(value)


def _message(message: Message) -> str:
    kind = f"onnx.{message.DESCRIPTOR.name}"
    data = message.SerializePartialToString()
    if len(data) <= TEXT_LIMIT:
        if isinstance(message, onnx.NodeProto) and (call := _make_node(message)):
            return call
        text = text_format.MessageToString(message, as_one_line=True)
        if _parses_to(type(message), text, data):
            return f"text_format.Parse({text!r}, {kind}())"
    return f"{kind}.FromString(base64.b64decode({base64.b64encode(data).decode()!r}))"


def _parses_to(kind: type[Message], text: str, data: bytes) -> bool:
    """Whether the text form keeps every byte: it drops unknown fields, and refuses strings that are no UTF-8."""
    try:
        return bool(text_format.Parse(text, kind()).SerializePartialToString() == data)
    except (text_format.ParseError, ValueError):
        return False


def _make_node(node: onnx.NodeProto) -> str:
    """A call of onnx.helper.make_node, "" where that would not give the same bytes."""
    arguments: dict[str, Any] = {"name": node.name} if node.name else {}
    if node.domain:
        arguments["domain"] = node.domain
    for attribute in node.attribute:
        if kind_of(attribute) not in _SPELLED or attribute.ref_attr_name:
            return ""
        arguments[attribute.name] = decode(attribute)
    try:
        rebuilt = helper.make_node(node.op_type, list(node.input), list(node.output), **arguments)
    except (TypeError, ValueError):
        return ""
    if rebuilt.SerializePartialToString() != node.SerializePartialToString():
        return ""
    keywords = "".join(f", {key}={value!r}" for key, value in arguments.items())
    return f"onnx.helper.make_node({node.op_type!r}, {list(node.input)!r}, {list(node.output)!r}{keywords})"


# -- what handles do in one change ----------------------------------------------------------------------------------


def _insert_node(change: changes.InsertNode, subject: str, _: bool) -> str:
    path = subject.removeprefix("model.graph.names.find_scope(").removesuffix(")")
    where = "" if path == "''" else f", scope={path}"
    return f"model.insert_node({literal(change.proto)}, {change.position}{where})"


def _set_attribute(change: changes.SetAttribute, subject: str, _: bool) -> str:
    if change.proto is None:
        return f"del {subject}.attributes[{change.name!r}]"
    if change.position >= 0:
        return ""
    proto = change.proto.message() if isinstance(change.proto, Items) else change.proto
    place = f"{subject}.attributes[{change.name!r}]"
    if not proto.ref_attr_name and kind_of(proto) in _SPELLED:
        value = decode(proto)
        if isinstance(value, LongList):
            return f"{place} = {literal(proto)}"
        try:
            if encode(proto.name, value) == encode(proto.name, value, kind_of(proto)) == proto:
                return f"{place} = {value!r}"
        except EditError:
            pass  # an empty list, or bytes that are no text
    return f"{place} = {literal(proto)}"


_SPELLED = ("int", "float", "string", "ints", "floats", "strings")


def _set_field(change: changes.SetField, subject: str, alone: bool) -> str:
    kind, text = change.target[0], isinstance(change.value, str)
    if change.field == "name" and kind == "node" and alone and text:
        return f"{subject}.name = {change.value!r}"
    if change.field == "doc_string" and kind in ("node", "model", "tensor") and text and change.value:
        return f"{subject}.doc_string = {change.value!r}"
    return ""


_WRITERS: dict[type[Any], Callable[[Any, str, bool], str]] = {
    changes.InsertNode: _insert_node,
    changes.RemoveNode: lambda change, subject, _: f"{subject}.remove()",
    changes.MoveNode: lambda change, subject, _: f"{subject}.move({change.position})",
    changes.SetInputs: lambda change, subject, _: f"{subject}.set_inputs({list(change.names)!r})",
    changes.SetOutputs: lambda change, subject, _: f"{subject}.set_outputs({list(change.names)!r})",
    changes.SetAttribute: _set_attribute,
    changes.SetField: _set_field,
    changes.RenameValue: lambda change, subject, alone: f"{subject}.name = {change.name!r}" if alone else "",
}
