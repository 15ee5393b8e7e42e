"""Protobuf's JSON of a model. It holds every field that onnx.proto has; unknown fields are lost."""

import re

import onnx
from google.protobuf import json_format

from onnxlab.errors import LoadError
from onnxlab.formats.base.text import FIELDS, text_format

_CAMEL = "|".join(field.camelcase_name for field in onnx.ModelProto.DESCRIPTOR.fields)


def _decode(text: str) -> onnx.ModelProto:
    try:
        return json_format.Parse(text, onnx.ModelProto())
    except (json_format.ParseError, RecursionError) as error:
        raise LoadError(f"it is no JSON of a model: {error}") from error


def _encode(model: onnx.ModelProto) -> str:
    return json_format.MessageToJson(model, preserving_proto_field_name=True) + "\n"


FORMAT = text_format(
    "json", "JSON", (".json",), re.compile(rf'\{{\s*"(?:{FIELDS}|{_CAMEL})"'), _encode, _decode, rank=61
)
