"""Foundations of text formats: telling them by their beginning, decoding, and finding what a text does not carry."""

import re
from collections.abc import Callable

import onnx
from google.protobuf.message import EncodeError

from onnxlab.errors import LoadError, SaveError, TextError
from onnxlab.formats.base.format import Content, Format, FormatLoss, OpenedFile, Written, is_model
from onnxlab.formats.base.numerals import as_written, numerals_of
from onnxlab.formats.report import FieldChange, differences
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.external_data import all_tensors, is_external

Encode = Callable[[onnx.ModelProto], str]
Decode = Callable[[str], onnx.ModelProto]

FIELDS = (
    "ir_version|opset_import|producer_name|producer_version|domain|model_version|doc_string|graph|metadata_props|"
    "training_info|functions|configuration"
)


def text_format(
    name: str, title: str, suffixes: tuple[str, ...], begins: re.Pattern[str], encode: Encode, decode: Decode, rank: int
) -> Format:
    """A format of text that is recognized by its beginning, comments apart."""

    def recognizes(content: Content) -> bool:
        head = content.beginning
        return head is not None and begins.match(head) is not None

    return Format(
        name,
        title,
        suffixes,
        recognizes,
        lambda content: _opened(content, title, decode),
        lambda model, extra: _written(model, title, lambda message: as_written(encode(message), extra), decode),
        lambda model, extra: _losses(model, title, encode, decode),
        rank,
        encode,
    )


def text_of(content: Content, title: str) -> str:
    """A whole file as text; raises LoadError where the file is no text."""
    try:
        return content.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoadError(f"it is no {title}: {error}") from error


def _opened(content: Content, title: str, decode: Decode) -> OpenedFile:
    text = text_of(content, title)
    model = decode(text)
    if not is_model(model):
        raise LoadError(f"it is {title} without a graph")
    return OpenedFile(model, numerals_of(text))


def _written(model: onnx.ModelProto, title: str, encode: Encode, decode: Decode) -> Written:
    text = encode(model)
    lost, unreadable = _lost(model, text, decode)
    if unreadable:
        raise TextError(f"its text could not be read back ({unreadable}); .textproto and .json carry all of a model")
    if not lost:
        return Written(text.encode())
    names = [f"{path} ({count})" if count > 1 else path for path, count in lost.items()]
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    warning = f"{title} does not carry all of this model; lost or changed: {', '.join(names[:8])}{more}"
    return Written(text.encode(), warning)


def _losses(model: onnx.ModelProto, title: str, encode: Encode, decode: Decode) -> list[FormatLoss]:
    try:
        text = encode(model)
    except (ValueError, EncodeError, SaveError) as error:
        return [FormatLoss("model", "", f"{title} cannot hold it: {error}", refused=True)]
    lost, unreadable = _lost(model, text, decode)
    if unreadable:
        return [FormatLoss("model", "", f"its {title} cannot be read back: {unreadable}", refused=True)]
    return [FormatLoss("field", path, f"lost or changed {count} times" if count > 1 else "lost or changed")
            for path, count in lost.items()]  # fmt: skip


def _lost(model: onnx.ModelProto, text: str, decode: Decode) -> tuple[dict[str, int], str]:
    """{path of a field: how many of its values differ when a text is read back}, and why it cannot be read back."""
    try:
        again = decode(text)
    except LoadError as error:
        return {}, str(error)
    lost: dict[str, int] = {}
    for change in differences(_raw(model), _raw(again)):
        if _equal_meaning(change):
            continue
        path = re.sub(r"\[\d+\]", "[…]", change.path)
        lost[path] = lost.get(path, 0) + 1
    return lost, ""


def _raw(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose tensors hold their elements in raw_data: no text keeps the field in which they were."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in all_tensors(copy):
        if is_external(tensor) or tensor.data_type in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING):
            continue
        try:
            data = tensors.to_bytes(tensor)
        except LoadError:
            continue  # a broken tensor is compared as it is
        tensor.ClearField(tensors.field_of(tensor.data_type))
        tensor.raw_data = data
    return copy


def _equal_meaning(change: FieldChange) -> bool:
    """Whether the two values of a field mean the same: ONNX takes an absent string for an empty one."""
    return all(value is None or value == "" for value in (change.old, change.new))
