"""The language of onnx.parser, made for people: it has no place for much of a model."""

import re

import onnx
import onnx.parser
import onnx.printer
from google.protobuf.message import DecodeError

from onnxlab.errors import LoadError, TextError
from onnxlab.formats.base.text import text_format

_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[({\[)}\]]', re.DOTALL)
_DEEPEST = 200
"""Nested brackets: protobuf has 100 levels of messages, and onnx's parser overflows the stack for thousands."""


def _nesting(text: str) -> int:
    """The largest number of brackets open at once, outside of strings."""
    depth = deepest = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        bracket = match[0]
        if bracket in "({[":
            depth += 1
            deepest = max(deepest, depth)
        elif bracket in ")}]":
            depth -= 1
    return deepest


def _decode(text: str) -> onnx.ModelProto:
    if (depth := _nesting(text)) > _DEEPEST:
        raise LoadError(f"it is no ONNX text: {depth:,} brackets within each other, at most {_DEEPEST} are read")
    try:
        return onnx.parser.parse_model(text)
    except DecodeError:
        raise LoadError("it is no ONNX text that can be read: it is nested deeper than protobuf's 100 levels") from None
    except onnx.parser.ParseError as error:
        message = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise LoadError(f"it is no ONNX text: {' '.join(message.split())[:300]}") from error
    except (IndexError, RuntimeError) as error:  # std::stoll and std::stod in the parser
        raise LoadError(f"it is no ONNX text: a number in it is out of range ({error})") from None


def _encode(model: onnx.ModelProto) -> str:
    try:
        return onnx.printer.to_text(model) + "\n"
    except UnicodeDecodeError:
        raise TextError("a string in an attribute or tensor is no UTF-8, which ONNX text cannot hold") from None
    except onnx.shape_inference.InferenceError as error:
        raise TextError(f"ONNX text cannot hold a tensor that is broken: {error}") from None


FORMAT = text_format(
    "onnxtxt",
    "ONNX text",
    (".onnxtxt",),
    re.compile(r"<\s*(?:ir_version|opset_import|producer_name|\w+\s*:)|\w+\s*(?:<[^>]*>)?\s*\([^)]*\)\s*=>"),
    _encode,
    _decode,
    rank=62,
)
