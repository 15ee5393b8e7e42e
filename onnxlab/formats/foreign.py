r"""Strings that are no UTF-8: readable while a model is open, and written back as the bytes that they were.

Protobuf reads such a string as bytes where text is expected, and does not accept the bytes when a field is set. So each
gets a stand-in, which has \xff for each byte that is no UTF-8 and is unlike all other strings of the model. An edit
that replaces the stand-in by another text repairs the string.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import chain, islice
from typing import Any

import onnx
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from onnxlab.errors import EditError
from onnxlab.formats import storage
from onnxlab.graph.protos import wire_format
from onnxlab.graph.protos.name_bytes import readable, set_string, set_strings, varint

Strings = Mapping[str, bytes]
"""{stand-in: the bytes that it stands for}."""

_LARGE = 1 << 26
"""Bytes of a file from which on the search for such strings skips its weights."""
_LONG = 1 << 22
_FEW = 256
"""Messages up to which a model of _LONG bytes has its strings read one by one: most of it is weights or long lists."""


def replace(model: onnx.ModelProto, data: bytes | None = None) -> dict[str, bytes]:
    """Put stand-ins into a model for all strings that are no UTF-8; returns them, mostly none.

    Args:
        data: the model as bytes, where they are at hand.
    """
    if _is_readable(model, data):
        return {}
    texts_in_model = _texts(model)
    stand_ins: dict[bytes, str] = {}
    for text in sorted(text for text in texts_in_model if isinstance(text, bytes)):
        name, number = readable(text), 0
        while (stand_in := f"{name}_{number}" if number else name) in texts_in_model:
            number += 1
        texts_in_model.add(stand_in)
        stand_ins[text] = stand_in
    _map(model, stand_ins)
    return {stand_in: text for text, stand_in in stand_ins.items()}


def restored(data: bytes, strings: Strings) -> bytes:
    """A serialized model with the original bytes in place of the stand-ins."""
    if not strings:
        return data
    model = onnx.ModelProto.FromString(data)
    _map(model, strings)
    return model.SerializeToString()


def brought(
    model: onnx.ModelProto, ours: Strings, before: onnx.ModelProto, after: onnx.ModelProto, theirs: Strings
) -> dict[str, bytes]:
    """The stand-ins among `theirs` that a model gets with the difference of two models, the second of which has them.

    Raises:
        EditError: a text would stand for a string that is no UTF-8 in one of the models, and not for the same in the
            other.
    """
    if not theirs and not ours:
        return {}
    held, new = _texts(model), _texts(after) - _texts(before)
    mixed = {text for text in ours if text in new and theirs.get(text) != ours[text]}
    mixed |= {text for text in theirs if text in new and text in held and ours.get(text) != theirs[text]}
    for text in sorted(mixed):
        raise EditError(
            f"{text!r} stands for a string that is no UTF-8 in one of the models, and is a text or stands for another "
            "string in the other; rename what has it in one of them, and take the difference again"
        )
    return {text: data for text, data in theirs.items() if text not in held or text in ours}


def _texts(model: onnx.ModelProto) -> set[str | bytes]:
    return {text for _, _, texts in _strings(_messages(model)) for text in texts}


def _map(model: onnx.ModelProto, by: Mapping[Any, Any]) -> None:
    for message, field, texts in list(_strings(_messages(model))):
        if not any(text in by for text in texts):
            continue
        mapped = [by.get(text, text) for text in texts]
        if field.is_repeated:
            set_strings(message, field.name, mapped)
        else:
            set_string(message, field.name, mapped[0])


def _messages(model: onnx.ModelProto) -> Iterator[Any]:
    """A model and all messages in it."""
    stack: list[Iterator[Any]] = [iter([model])]
    while stack:
        message = next(stack[-1], None)
        if message is None:
            stack.pop()
            continue
        yield message
        for field in _fields(message.DESCRIPTOR)[1]:
            if field.is_repeated:
                stack.append(iter(getattr(message, field.name)))
            elif message.HasField(field.name):
                stack.append(iter([getattr(message, field.name)]))


def _strings(messages: Iterable[Any]) -> Iterator[tuple[Any, Any, list[str | bytes]]]:
    """(message, field, texts) of every string field of some messages that is set."""
    for message in messages:
        for field in _fields(message.DESCRIPTOR)[0]:
            if content := getattr(message, field.name):
                yield message, field, list(content) if field.is_repeated else [content]


@cache
def _fields(descriptor: Any) -> tuple[list[Any], list[Any]]:
    """The fields of a type of message that are strings, and those that are messages: none of numbers is read."""
    fields = list(descriptor.fields)
    strings = [field for field in fields if field.type == field.TYPE_STRING]
    return strings, [field for field in fields if field.message_type is not None]


def _is_readable(model: onnx.ModelProto, data: bytes | None) -> bool:
    """Whether all strings of a model are UTF-8."""
    if data is not None and len(data) > _LONG:
        messages = list(islice(_messages(model), _FEW + 1))
        if len(messages) <= _FEW:
            texts = chain.from_iterable(texts for _, _, texts in _strings(messages))
            return not any(isinstance(text, bytes) for text in texts)
    return _is_utf8(_without_weights(model) if data is None else data if len(data) < _LARGE else _slim(data))


def _is_utf8(data: bytes) -> bool:
    try:
        _strict().FromString(data)
    except DecodeError:
        return False
    return True


def _without_weights(model: onnx.ModelProto) -> bytes:
    """A model without the data of the initializers of its main graph."""
    slim: onnx.ModelProto = storage.without(model, "graph")
    if model.HasField("graph"):
        slim.graph.CopyFrom(storage.without(model.graph, "initializer"))
        for tensor in model.graph.initializer:
            slim.graph.initializer.append(storage.without(tensor, *storage.VALUE_FIELDS))
    return slim.SerializeToString()


_GRAPH, _INITIALIZER = wire_format.tag(onnx.ModelProto, "graph"), wire_format.tag(onnx.GraphProto, "initializer")
_VALUES = frozenset(wire_format.tag(onnx.TensorProto, name) for name in storage.VALUE_FIELDS)


def _slim(data: bytes) -> bytes:
    """The bytes of a model without the data of the initializers of its main graph."""
    try:
        initializers = partial(_mapped, data, tag=_INITIALIZER, change=partial(_bare, data))
        return _mapped(data, 0, len(data), _GRAPH, initializers)
    except ValueError:  # groups, which no writer uses
        return data


def _bare(data: bytes, at: int, end: int) -> bytes:
    """A tensor without its data."""
    return b"".join(
        [data[start:stop] for tag, start, _, stop in wire_format.fields(data, at, end) if tag not in _VALUES]
    )


def _mapped(data: bytes, at: int, end: int, tag: int, change: Callable[[int, int], bytes]) -> bytes:
    """A message in which the content of each field with a tag is replaced by `change(start, end)` of that content."""
    parts, copied = [], at
    for field_tag, start, content, stop in wire_format.fields(data, at, end):
        if field_tag == tag and stop - start >= storage.SMALLEST:
            changed = change(content, stop)
            parts += [data[copied:start], varint(tag), varint(len(changed)), changed]
            copied = stop
    return b"".join([*parts, data[copied:end]])


@cache
def _strict() -> Any:
    """ModelProto in protobuf's syntax "proto3", which rejects strings that are no UTF-8.

    No field is repeated, so that each message overwrites the one before it: reading takes little time and memory.
    """
    file = descriptor_pb2.FileDescriptorProto()
    onnx.ModelProto.DESCRIPTOR.file.CopyToProto(file)
    file.name, file.syntax = "strict.proto", "proto3"
    messages = list(file.message_type)
    while messages:
        message = messages.pop()
        messages += message.nested_type
        for field in message.field:
            field.ClearField("default_value")
            field.ClearField("options")
            field.label = field.LABEL_OPTIONAL
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(onnx.ModelProto.DESCRIPTOR.full_name))
