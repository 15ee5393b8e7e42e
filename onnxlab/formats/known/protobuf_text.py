"""Protobuf's text format of a model. It holds every field that onnx.proto has; unknown fields are lost."""

import re

import onnx
from google.protobuf import text_format as protobuf_text

from onnxlab.errors import LoadError
from onnxlab.formats.base.text import FIELDS, text_format
from onnxlab.printable import printable


def _decode(text: str) -> onnx.ModelProto:
    try:
        return protobuf_text.Parse(text, onnx.ModelProto())
    except (protobuf_text.ParseError, RecursionError) as error:
        raise LoadError(f"it is no protobuf text of a model: {error}") from error


def _encode(model: onnx.ModelProto) -> str:
    return in_octal(protobuf_text.MessageToString(model, as_utf8=True))


def in_octal(text: str) -> str:
    """Protobuf text with control and invisible characters in octal, as protobuf writes bytes that are no text."""
    lines = text.split("\n")
    return text if "\n".join(map(printable, lines)) == text else "\n".join(map(_octal_line, lines))


def _octal_line(line: str) -> str:
    return "".join(
        char if printable(char) == char else "".join(f"\\{byte:03o}" for byte in char.encode()) for char in line
    )


FORMAT = text_format(
    "textproto",
    "protobuf text",
    (".textproto", ".pbtxt", ".txtpb"),
    re.compile(rf"(?:{FIELDS})\s*[:{{]"),
    _encode,
    _decode,
    rank=60,
)
