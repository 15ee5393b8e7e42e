"""What a gesture is, what its parameters may be, and how the things of a model are written in Python."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from onnxlab.errors import NameLookupError
from onnxlab.graph.handles.handles import Node, Value
from onnxlab.notebook.protocol.messages import MAX_TEXT
from onnxlab.notebook.protocol.uploads import Upload

if TYPE_CHECKING:
    from onnxlab.model import Model

Subject = Literal["model", "nodes", "node", "value"]
Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EditCommand:
    """One kind of edit.

    Attributes:
        subject: what it is done to; "nodes" takes a list of ids.
        takes: its further parameters by name, each a key of KINDS; all are required.
        label: what the history calls it, of the subject's name.
        act: does it.
        line: the same in Python.
        edits: the edits of `onnxlab.graph.edits.EDITS` that it offers by hand.
    """

    subject: Subject
    takes: Mapping[str, str]
    label: str
    act: "Callable[[On, Given], Any]"
    line: "Callable[[On, Given], str]"
    edits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class On:
    """What a gesture is done to.

    Attributes:
        it: the model, a Node, a list of Nodes or a Value.
        line: the same in Python.
    """

    model: "Model"
    it: Any
    line: str


# -- what parameters may be --------------------------------------------------------------------------------------------


def is_id(given: Any) -> bool:
    """Whether a parameter can be an id: an integer from 0, no Boolean."""
    return isinstance(given, int) and not isinstance(given, bool) and given >= 0


def _is_dim(given: Any) -> bool:
    return is_id(given) or (isinstance(given, str) and 0 < len(given) <= 200)


def _is_number(given: Any) -> bool:
    return isinstance(given, bool | int | str) or (isinstance(given, float) and math.isfinite(given))


def _is_element(given: Any) -> bool:
    return isinstance(given, list) and len(given) == 2 and is_id(given[0]) and _is_number(given[1])


def _list_of(fits: Callable[[Any], bool], most: int) -> Callable[[Any], bool]:
    return lambda given: isinstance(given, list) and len(given) <= most and all(map(fits, given))


def _is_text(given: Any) -> bool:
    return isinstance(given, str) and len(given) <= 1000


def _is_attribute(given: Any) -> bool:
    return given is None or _is_number(given) or _list_of(_is_number, 1 << 20)(given)


KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "text": ("a text of at most 1000 characters", _is_text),
    "texts": ("a list of texts", _list_of(_is_text, 1000)),
    "long": (
        f"a text of at most {MAX_TEXT} characters",
        lambda given: isinstance(given, str) and len(given) <= MAX_TEXT,
    ),
    "text?": ("a text, or null", lambda given: given is None or _is_text(given)),
    "bool": ("true or false", lambda given: isinstance(given, bool)),
    "int": ("an integer from 0", lambda given: is_id(given) and given < 1 << 31),
    "id": ("an id", is_id),
    "ids": ("a list of ids", _list_of(is_id, 10_000)),
    "dim": ("a dim", _is_dim),
    "dims": ("a list of dims", _list_of(_is_dim, 64)),
    "dims?": ("a list of dims, or null", lambda given: given is None or _list_of(_is_dim, 64)(given)),
    "attribute": ("a number, a text, a list of these, or null", _is_attribute),
    "numbers": ("a number or a text, or a list of these", lambda given: given is not None and _is_attribute(given)),
    "file": ("a file that was sent", lambda given: isinstance(given, Upload)),
    "elements": ("a list of [place, number]", lambda given: bool(given) and _list_of(_is_element, 100_000)(given)),
}


# -- in Python ---------------------------------------------------------------------------------------------------------


def call(*arguments: Any, **keywords: Any) -> str:
    """Arguments as they stand between the brackets of a call."""
    return ", ".join([*map(repr, arguments), *(f"{name}={value!r}" for name, value in keywords.items())])


def name_of(model: "Model", ident: int) -> str | None:
    """What a value is called, None for id 0."""
    if not ident:
        return None
    if ident not in model.graph.values:
        raise NameLookupError(f"value {ident} is not in the model any more")
    return Value(model.graph, ident).name


def scope_of(model: "Model", ident: int) -> str:
    """The path of a scope, as `Model.add_node` takes it; "" for id 0."""
    if not ident:
        return ""
    if ident not in model.graph.scopes:
        raise NameLookupError(f"scope {ident} is not in the model any more")
    return model.graph.scope_path(model.graph.scopes[ident])


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


def subject_of(model: "Model", gesture: EditCommand, subject: Sequence[int]) -> On:
    """What a gesture is done to, by ids. Raises NameLookupError where it is not in the model any more."""
    known: Mapping[int, Any] = model.graph.values if gesture.subject == "value" else model.graph.nodes
    for ident in subject:
        if ident not in known:
            raise NameLookupError(f"{gesture.subject.removesuffix('s')} {ident} is not in the model any more")
    if gesture.subject == "model":
        return On(model, model, "model")
    if gesture.subject == "value":
        return On(model, Value(model.graph, subject[0]), value_line(model, subject[0]))
    nodes = [Node(model.graph, ident) for ident in subject]
    lines = [node_line(model, ident) for ident in subject]
    return On(model, nodes, f"[{', '.join(lines)}]") if gesture.subject == "nodes" else On(model, nodes[0], lines[0])


def called(model: "Model", gesture: EditCommand, subject: Sequence[int]) -> str:
    """What the history calls the subject."""
    if gesture.subject == "model":
        return "the model"
    if gesture.subject == "value":
        return Value(model.graph, subject[0]).name
    first = model.graph.label(model.graph.nodes[subject[0]])
    return first if len(subject) == 1 else f"{len(subject)} nodes"


# -- gestures that are one call ----------------------------------------------------------------------------------------


Arguments = Callable[[On, Given], tuple[Sequence[Any], Mapping[str, Any]]]


def method(
    subject: Subject,
    name: str,
    label: str,
    takes: Mapping[str, str] | None = None,
    arguments: Arguments | None = None,
    edits: Sequence[str] | None = None,
    *,
    of_model: bool = False,
) -> EditCommand:
    """A gesture that is a call of one method: of its subject or, `of_model`, of the model with the subject first.

    Args:
        arguments: what it is called with; default: all parameters as they were given.
        edits: default: the edit of the method's name.
    """
    names = list(takes or {})
    told = arguments or (lambda on, given: ([given[name] for name in names], {}))

    def act(on: On, given: Given) -> None:
        positional, keywords = told(on, given)
        bearer, first = (on.model, [on.it]) if of_model else (on.it, [])
        getattr(bearer, name)(*first, *positional, **keywords)

    def line(on: On, given: Given) -> str:
        positional, keywords = told(on, given)
        words = call(*positional, **keywords)
        return (
            f"model.{name}({', '.join(filter(None, [on.line, words]))})" if of_model else f"{on.line}.{name}({words})"
        )

    return EditCommand(subject, takes or {}, label, act, line, (name,) if edits is None else tuple(edits))


# -- what a model, a node and a value say about themselves -------------------------------------------------------------


def described(subject: Literal["model", "node", "value"]) -> dict[str, EditCommand]:
    """The gestures that write the documentation string and the metadata of one kind of subject."""
    return {
        f"{subject}_doc": EditCommand(
            subject,
            {"text": "long"},
            "write about {}",
            lambda on, given: setattr(on.it, "doc_string", given["text"]),
            lambda on, given: f"{on.line}.doc_string = {given['text']!r}",
            ("set_doc_string",),
        ),
        f"{subject}_metadata": EditCommand(
            subject,
            {"key": "text", "text": "text?"},
            "note {key} of {}",
            _set_metadata,
            _metadata_line,
            ("set_metadata",),
        ),
    }


def _set_metadata(on: On, given: Given) -> None:
    if given["text"] is None:
        on.it.metadata.pop(given["key"], None)
    else:
        on.it.metadata[given["key"]] = given["text"]


def _metadata_line(on: On, given: Given) -> str:
    if given["text"] is None:
        return f"{on.line}.metadata.pop({given['key']!r}, None)"
    return f"{on.line}.metadata[{given['key']!r}] = {given['text']!r}"
