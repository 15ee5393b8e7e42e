"""MindSpore's and Ascend's dumps of graphs, ge_onnx_*.pbtxt: protobuf text of ModelProtos that mean something else."""

import re
from collections.abc import Mapping
from typing import Any, Final

import onnx
from google.protobuf import text_format

from onnxlab.errors import LoadError
from onnxlab.formats.base.format import Content, Format, OpenedFile, Written, is_model
from onnxlab.formats.base.numerals import as_written, numerals_of
from onnxlab.formats.base.text import FIELDS, text_of
from onnxlab.formats.known.protobuf_text import in_octal
from onnxlab.graph.protos import ge_dump

_TITLE: Final = "a GE dump"
_BEGINS: Final = re.compile(rf"(?:{FIELDS})\s*[:{{]")
_MARK: Final = re.compile(r'op_type:\s*"ge:|producer_name:\s*"GE"')


def _recognizes(content: Content) -> bool:
    head = content.beginning
    return head is not None and _BEGINS.match(head) is not None and _MARK.search(head) is not None


def _read(content: Content) -> OpenedFile:
    text, model = text_of(content, _TITLE), onnx.ModelProto()
    refusal = ""
    try:
        text_format.Parse(text, model)
    except (text_format.ParseError, RecursionError) as error:
        refusal = f"this dump has fields that onnx.proto lacks ({error}), which an edit would lose: it is only shown"
        try:
            model = text_format.Parse(text, onnx.ModelProto(), allow_unknown_field=True)
        except (text_format.ParseError, RecursionError) as worse:
            raise LoadError(f"it is no protobuf text of {_TITLE}: {worse}") from worse
    if not is_model(model):
        raise LoadError(f"it is {_TITLE} without a graph")
    return OpenedFile(model, numerals_of(text), read_only=refusal)


def _write(model: onnx.ModelProto, extra: object) -> Written:
    if not ge_dump.is_dump(model):
        raise ValueError("its operators are not those of GE")
    return Written(as_written(in_octal(text_format.MessageToString(model, as_utf8=True)), extra).encode())


def _notes(extra: object, message: Any) -> Mapping[str, str]:
    return dict(ge_dump.details(message)) if isinstance(message, onnx.NodeProto) else {}


FORMAT = Format(
    "ge", _TITLE, (), _recognizes, _read, _write, rank=50, notes=_notes, instead="save it as .pbtxt",
    uninferred="Nothing is inferred of a dump: types are what its descriptors say, and none where they say nothing.",
)  # fmt: skip
