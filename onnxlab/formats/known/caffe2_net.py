"""A network of Caffe2 as protobuf text, to look at; the init net beside a predict net gives its initializers."""

import re
from pathlib import Path
from typing import Any, Final

import onnx
from google.protobuf import text_format

from onnxlab.errors import LoadError
from onnxlab.formats.base.format import Content, Format, OpenedFile
from onnxlab.formats.base.text import text_of
from onnxlab.formats.caffe2.graph import DOMAIN, filled_by, graph_of
from onnxlab.formats.caffe2.messages import net_def

_TITLE: Final = "a Caffe2 network"
_BEGINS: Final = re.compile(r"(?:name|op|type|num_workers|external_input|external_output|arg|device_option)\s*[:{]")
_OWN: Final = re.compile(r"(?:^|\s)(?:op\s*\{|external_(?:input|output)\s*:)")
_PREDICT: Final = re.compile(r"(?:predict|pred)(?=_net)")
_LARGEST: Final = 1 << 30


def _recognizes(content: Content) -> bool:
    head = content.beginning
    return head is not None and _BEGINS.match(head) is not None and _OWN.search(head) is not None


def _parsed(text: str) -> Any:
    try:
        return text_format.Parse(text, net_def()(), allow_unknown_field=True)
    except (text_format.ParseError, RecursionError, UnicodeError) as error:
        raise LoadError(f"it is no text of {_TITLE}: {error}") from error


def _read(content: Content) -> OpenedFile:
    net = _parsed(text_of(content, _TITLE))
    filled = [] if content.path is None else _filled_beside(content.path)
    model = onnx.ModelProto(ir_version=10, producer_name="caffe2")
    model.graph.CopyFrom(graph_of(net, filled))
    model.opset_import.add(domain=DOMAIN, version=1)
    return OpenedFile(model)


def _filled_beside(path: Path) -> list[onnx.TensorProto]:
    """The tensors that the init net beside a predict net fills, where there is one; raises LoadError."""
    name = _PREDICT.sub("init", path.name)
    init = path.with_name(name)
    if name == path.name or not init.is_file() or init.stat().st_size > _LARGEST:
        return []
    net = _parsed(text_of(Content.of(init.read_bytes(), init), _TITLE))
    return [tensor for tensor in map(filled_by, net.op) if tensor is not None]


FORMAT = Format(
    "caffe2", _TITLE, (), _recognizes, _read, rank=55,
    uninferred="Nothing is inferred of Caffe2's operators: a network says no types but those of what it fills.",
)  # fmt: skip
