"""Models as text: protobuf's text format, its JSON, and the language of onnx.parser; told apart by what they contain.

The first two hold every field that onnx.proto has; unknown fields are lost in both. The language of onnx.parser is made
for people: it has no place for much of a model. What a file does not carry is found by reading it back, and told.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx.parser
import onnx.printer
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError, EncodeError

from onnxlab.errors import LoadError, OnnxlabError, TextError
from onnxlab.formats.report import differences
from onnxlab.printable import printable, printable_lines


@dataclass(frozen=True, slots=True)
class Format:
    """A way to write a model as text.

    Attributes:
        name: how messages call it.
        suffixes: of its files.
        begins: how such a file begins, comments apart.
    """

    name: str
    suffixes: tuple[str, ...]
    begins: re.Pattern[str]
    encode: Callable[[onnx.ModelProto], str]
    decode: Callable[[str], onnx.ModelProto]


def _from_text(text: str) -> onnx.ModelProto:
    try:
        return text_format.Parse(text, onnx.ModelProto())
    except (text_format.ParseError, RecursionError) as error:
        raise LoadError(f"it is no protobuf text of a model: {error}") from error


def _from_json(text: str) -> onnx.ModelProto:
    try:
        return json_format.Parse(text, onnx.ModelProto())
    except (json_format.ParseError, RecursionError) as error:
        raise LoadError(f"it is no JSON of a model: {error}") from error


_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[({\[)}\]]', re.DOTALL)
_DEEPEST = 200
"""Brackets within each other: protobuf has 100 levels of messages, and onnx's parser no stack for thousands."""


def _nesting(text: str) -> int:
    """How many brackets are open at once at most, strings left out."""
    depth = deepest = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        bracket = match[0]
        if bracket in "({[":
            depth += 1
            deepest = max(deepest, depth)
        elif bracket in ")}]":
            depth -= 1
    return deepest


def _from_language(text: str) -> onnx.ModelProto:
    if (found := _nesting(text)) > _DEEPEST:
        raise LoadError(f"it is no ONNX text: {found:,} brackets within each other, at most {_DEEPEST} are read")
    try:
        return onnx.parser.parse_model(text)
    except DecodeError:
        raise LoadError("it is no ONNX text that can be read: it is nested deeper than protobuf's 100 levels") from None
    except onnx.parser.ParseError as error:
        said = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise LoadError(f"it is no ONNX text: {' '.join(said.split())[:300]}") from error


def _to_language(model: onnx.ModelProto) -> str:
    try:
        return onnx.printer.to_text(model) + "\n"
    except UnicodeDecodeError:
        raise TextError("a string in an attribute or tensor is no UTF-8, which ONNX text cannot hold") from None
    except onnx.shape_inference.InferenceError as error:
        raise TextError(f"ONNX text cannot hold a tensor that is broken: {error}") from None


def _in_octal(text: str) -> str:
    """Protobuf text with what a terminal would obey or not show in octal, as protobuf itself writes other bytes."""
    lines = text.split("\n")
    return text if "\n".join(map(printable, lines)) == text else "\n".join(map(_octal_line, lines))


def _octal_line(line: str) -> str:
    return "".join(
        char if printable(char) == char else "".join(f"\\{byte:03o}" for byte in char.encode()) for char in line
    )


_FIELDS = (
    "ir_version|opset_import|producer_name|producer_version|domain|model_version|doc_string|graph|metadata_props|"
    "training_info|functions|configuration"
)

_CAMEL = "|".join(field.camelcase_name for field in onnx.ModelProto.DESCRIPTOR.fields)

FORMATS = (
    Format(
        "protobuf text",
        (".textproto", ".pbtxt", ".txtpb"),
        re.compile(rf"(?:{_FIELDS})\s*[:{{]"),
        lambda model: _in_octal(text_format.MessageToString(model, as_utf8=True)),
        _from_text,
    ),
    Format(
        "JSON",
        (".json",),
        re.compile(rf'\{{\s*"(?:{_FIELDS}|{_CAMEL})"'),
        lambda model: json_format.MessageToJson(model, preserving_proto_field_name=True) + "\n",
        _from_json,
    ),
    Format(
        "ONNX text",
        (".onnxtxt",),
        re.compile(r"<\s*(?:ir_version|opset_import|producer_name|\w+\s*:)|\w+\s*(?:<[^>]*>)?\s*\([^)]*\)\s*=>"),
        _to_language,
        _from_language,
    ),
)

_HEAD = 65536


def by_suffix(path: Path | None) -> Format | None:
    """The textual format that a file name asks for, None for .onnx and any other."""
    suffix = path.suffix.lower() if path is not None else ""
    return next((entry for entry in FORMATS if suffix in entry.suffixes), None)


def by_name(name: str) -> Format | None:
    """The textual format that messages call so, None for "onnx"."""
    return next((entry for entry in FORMATS if entry.name == name), None)


def by_content(data: bytes) -> Format | None:
    """The textual format that a file is in, None for one that is no text or no model."""
    head = data[:_HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    while head.startswith((b"#", b"//")):  # comments
        head = head.partition(b"\n")[2].lstrip()
    if not head[:1].isascii() or b"\0" in head:
        return None
    text = head.decode("utf-8", "replace")
    return next((entry for entry in FORMATS if entry.begins.match(text)), None)


def text_of(model: onnx.ModelProto, suffix: str = ".onnxtxt") -> str:
    """A model as text for people, in the format of a suffix; what is not visible in it is escaped.

    Raises:
        TextError: no textual format has this suffix, or it cannot hold the model.
    """
    form = by_suffix(Path(f"model.{suffix.removeprefix('.')}"))
    if form is None:
        known = ", ".join(suffix for entry in FORMATS for suffix in entry.suffixes)
        raise TextError(f"{suffix!r:.80} is no textual format of models; there are {known}")
    try:
        return printable_lines(form.encode(model).split("\n"))
    except OnnxlabError:
        raise
    except (ValueError, EncodeError) as error:
        raise TextError(f"{form.name} cannot hold this model: {error}") from error


def decode(data: bytes, form: Format) -> onnx.ModelProto:
    """The model in the bytes of a textual file; raises LoadError with what is wrong, and where."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoadError(f"it is no {form.name}: {error}") from error
    return form.decode(text)


def encode(model: onnx.ModelProto, form: Format) -> tuple[bytes, str]:
    """A model as text, and a sentence on what the text does not carry, "" if it carries everything.

    Raises:
        ValueError: the text cannot be made: a string that is no UTF-8, a message that is too large.
    """
    data = form.encode(model).encode("utf-8")
    try:
        again = decode(data, form)
    except LoadError as error:
        return data, f"{form.name} of this model cannot be read back: {error}"
    lost: dict[str, int] = {}
    for change in differences(model, again):
        path = re.sub(r"\[\d+\]", "[…]", change.path)
        lost[path] = lost.get(path, 0) + 1
    if not lost:
        return data, ""
    names = [f"{path} ({count})" if count > 1 else path for path, count in lost.items()]
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return data, f"{form.name} does not carry all of this model; lost or changed: {', '.join(names[:8])}{more}"
