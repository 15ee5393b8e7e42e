"""`explain_error`: the messages in a pasted text, what they mean, the node that they are about, and what to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxlab import schemas
from onnxlab.analysis.messages.message import FALLBACK, Message
from onnxlab.analysis.messages.table import TABLE
from onnxlab.printable import printable, printable_lines
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import suggestion

if TYPE_CHECKING:
    from onnxlab.model import Model

LONGEST = 1 << 18
"""Characters of a pasted text that are looked at, its end counting most: tracebacks end with the message."""
_SHOWN = 5
_SUFFIXES = ("_nchwc", "_fused", "_quant", "_cast")
"""What ONNX Runtime puts behind the name of a value when it calls a node by one."""


@dataclass(frozen=True, slots=True)
class ErrorExplanation(metaclass=ShortHelp):
    """The explanation of an error message; print it.

    Attributes:
        code: of the message, as "E07"; `docs/errors.md` has them all.
        title: what is wrong.
        about: what the message says: node, op, value, got, expected, …
        cause: what it means.
        fix: what to do.
        places: what the model says of the nodes in question, where a model is given.

    Examples:
        >>> text = "No Op registered for Relo with domain_version of 17"
        >>> explanation, = onnxlab.explain_error(text)
        >>> explanation.code, explanation.about["op"]
        ('E04', 'Relo')
    """

    code: str
    title: str
    about: Mapping[str, str]
    cause: str
    fix: str
    places: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "code": self.code, "title": self.title, "about": dict(self.about), "cause": self.cause, "fix": self.fix,
            "places": list(self.places),
        }  # fmt: skip

    def __str__(self) -> str:
        about = [f"  {name}: {text}" for name, text in self.about.items()]
        lines = [f"{self.code}: {self.title}", *about, f"  cause: {self.cause}", f"  fix: {self.fix}"]
        return printable_lines([*lines, *(f"  in the model: {place}" for place in self.places)])


def explain_error(text: str, model: Model | None = None) -> tuple[ErrorExplanation, ...]:
    """Explain the error messages of onnx, onnxruntime and torch that are in a text.

    Args:
        text: as it was printed, traceback and all.
        model: the model that it came from: the nodes in question are looked up in it.

    Returns:
        tuple[ErrorExplanation, ...]: in the order of the text; none where no message is known.

    Examples:
        >>> onnxlab.explain_error("Unsupported model IR version: 99, max supported IR version: 13")[0].title
        'an IR version that the tool does not know'
        >>> onnxlab.explain_error("it does not work")
        ()
    """
    text = text[-LONGEST:]
    matches: list[tuple[int, Message, dict[str, str]]] = []
    for message in TABLE:
        for pattern in message.regex:
            match = pattern.search(text)
            if match is not None:
                about = {name: printable(part)[:200] for name, part in match.groupdict().items() if part}
                matches.append((match.start(), message, about))
                break
    return tuple(_explained(message, about, model) for _, message, about in sorted(matches, key=lambda row: row[0]))


def _explained(message: Message, about: dict[str, str], model: Model | None) -> ErrorExplanation:
    near = _NEAR[message.code](about) if message.code in _NEAR else ""
    words = defaultdict(str, {**FALLBACK, **about, "near": near})
    cause, fix = (_begun(sentence.format_map(words)) for sentence in (message.cause, message.fix))
    places = () if model is None else tuple(_places(model, message, about))
    return ErrorExplanation(message.code, message.title, about, cause, fix, places)


def _begun(sentence: str) -> str:
    """A sentence that may begin with words for what was not said; names stay as they are."""
    return sentence[0].upper() + sentence[1:] if sentence.startswith(tuple(FALLBACK.values())) else sentence


# -- what the schemas say -------------------------------------------------------------------------------------------


def _near_operator(about: Mapping[str, str]) -> str:
    """The fix for an operator that is not there in a version."""
    op, version = about["op"], int(about["version"])
    for domain in ("", "ai.onnx.ml", "com.microsoft"):
        since = schemas.versions(domain, op)
        if domain and since:
            return f"{op} is an operator of the domain {domain}: set the node's domain, and import that."
        if since and since[0] > version:
            return (
                f"{op} came in version {since[0]}: convert the model up, `onnxlab edit m.onnx --opset {since[0]} -o "
                "new.onnx`, or write it out with operators of this version."
            )
    near = suggestion(op, schemas.operators("")).strip()
    return (
        f"{near} Otherwise give the node the domain that it belongs to, import that domain, and register its library."
    )


def _near_attribute(about: Mapping[str, str]) -> str:
    """The fix for an attribute that an operator does not have."""
    op, name = about["op"], about["attribute"]
    since = schemas.versions("", op)
    schema = schemas.find("", op, since[-1]) if since else None
    if schema is None:
        return f"See what attributes {op} has, and rename or remove this one."
    known = list(schema.attributes)
    return (
        f"{op} has {', '.join(known) or 'no attributes'}.{suggestion(name, known)} `onnxlab check m.onnx` lists every "
        "such attribute."
    )


def _near_types(about: Mapping[str, str]) -> str:
    """The fix for an element type that an operator does not take."""
    op, got = about["op"], about["got"]
    cast = f"Cast the input of {about.get('node') or 'the node'}, or give what makes it another type."
    for version in schemas.versions("", op):
        schema = schemas.find("", op, version)
        if schema is not None and any(got in types for types in schema.type_constraints.values()):
            higher = f"`onnxlab edit m.onnx --opset {version} -o new.onnx`"
            return f"{op} takes it from opset {version} on: {higher}. Else: {cast}"
    return cast


_NEAR: dict[str, Callable[[Mapping[str, str]], str]] = {
    "E04": _near_operator,
    "E10": _near_attribute,
    "E16": _near_types,
}


# -- what the model says --------------------------------------------------------------------------------------------


def _places(model: Model, message: Message, about: Mapping[str, str]) -> list[str]:
    """The node that a message names, with what it reads, and what onnxlab itself has to say of the same."""
    graph = model.graph
    node = _node_of(model, about)
    lines = []
    if node is not None:
        record = graph.nodes[node]
        reads = [f"{graph.values[vid].name}: {model.fact(vid)}" for vid in record.inputs if vid]
        lines.append(f"{graph.label(record)} ({record.op_type}) reads {', '.join(reads) or 'nothing'}")
    problems = [item for item in model.check() if item.node == node or item.code in message.codes]
    for item in problems[:_SHOWN]:
        label = graph.label(graph.nodes[item.node]) if item.node in graph.nodes else model.name
        lines.append(f"{label}: {item}")
    if len(problems) > _SHOWN:
        lines.append(f"… and {len(problems) - _SHOWN} more")
    return lines


def _node_of(model: Model, about: Mapping[str, str]) -> int | None:
    """The id of a node by its name, or by the name of a value that it makes."""
    graph = model.graph
    name = about.get("node")
    if not name:
        return None
    names = {name, *(name.removesuffix(suffix) for suffix in _SUFFIXES)}
    for node in graph.nodes.values():
        if printable(node.proto.name) in names or names & {
            printable(graph.values[vid].name) for vid in node.outputs if vid
        }:
            return node.id
    return None
