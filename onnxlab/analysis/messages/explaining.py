"""The messages in a pasted text: what they mean, the node that they are about, and what to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from onnxlab import schemas
from onnxlab.analysis.messages.message import FALLBACK, Message
from onnxlab.analysis.messages.table import TABLE
from onnxlab.printable import printable, printable_lines
from onnxlab.short_help import ShortHelp
from onnxlab.spelling import suggestion

LONGEST = 1 << 18
"""Characters of a pasted text that are looked at, its end counting most: tracebacks end with the message."""


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
        """The explanation for JSON."""
        return {
            "code": self.code, "title": self.title, "about": dict(self.about), "cause": self.cause, "fix": self.fix,
            "places": list(self.places),
        }  # fmt: skip

    def __str__(self) -> str:
        about = [f"  {name}: {text}" for name, text in self.about.items()]
        lines = [f"{self.code}: {self.title}", *about, f"  cause: {self.cause}", f"  fix: {self.fix}"]
        return printable_lines([*lines, *(f"  in the model: {place}" for place in self.places)])


Places = Callable[[Message, Mapping[str, str]], tuple[str, ...]]
"""Says what a model has at the place that a message is about."""


def explanations(text: str, places: Places = lambda message, about: ()) -> tuple[ErrorExplanation, ...]:
    """Explain the messages in a text, in its order; `onnxlab.explain_error` for what is known of a model."""
    text = text[-LONGEST:]
    matches: list[tuple[int, Message, dict[str, str]]] = []
    for message in TABLE:
        for pattern in message.regex:
            match = pattern.search(text)
            if match is not None:
                about = {name: printable(part)[:200] for name, part in match.groupdict().items() if part}
                matches.append((match.start(), message, about))
                break
    ordered = sorted(matches, key=lambda row: row[0])
    return tuple(_explained(message, about, places(message, about)) for _, message, about in ordered)


def _explained(message: Message, about: dict[str, str], places: tuple[str, ...]) -> ErrorExplanation:
    near = _NEAR[message.code](about) if message.code in _NEAR else ""
    words = defaultdict(str, {**FALLBACK, **about, "near": near})
    cause, fix = (_begun(sentence.format_map(words)) for sentence in (message.cause, message.fix))
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
