"""ONNX's own format: a ModelProto in protobuf's binary encoding. It holds everything."""

import onnx
from google.protobuf.message import DecodeError

from onnxlab.errors import LoadError
from onnxlab.formats import identify
from onnxlab.formats.base.format import Content, Format, OpenedFile, Written, is_model
from onnxlab.garbage_collection import about_to_hold


def _recognizes(content: Content) -> bool:
    """Whether the bytes are no text; other formats are tried before, since most short strings parse as protobuf."""
    return not identify.is_text(content.head)


def _read(content: Content) -> OpenedFile:
    about_to_hold(content.size)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content.data)
    except DecodeError:
        raise LoadError(identify.describe(content.data)) from None
    if not is_model(model):
        raise LoadError(identify.describe(content.data))
    return OpenedFile(model)


def _write(model: onnx.ModelProto, extra: object) -> Written:
    return Written(model.SerializeToString())


FORMAT = Format("onnx", "ONNX", (".onnx",), _recognizes, _read, _write, rank=99)
