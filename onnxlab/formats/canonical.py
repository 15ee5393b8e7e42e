"""Whether protobuf writes a model's file as it stands, found out without its weights.

Parsing and serializing the file anew gives the answer, but takes memory of three times its size, and seconds for
hundreds of megabytes. The content of `raw_data` cannot make a difference, so it is left out: only the lengths of the
weights are read, and only the remaining fields are parsed and serialized.
"""

from typing import BinaryIO

import onnx
from google.protobuf.message import DecodeError

from onnxlab.graph.protos.name_bytes import varint

SMALL = 1 << 24
"""Bytes of a file up to which its weights are not left out."""

_WEIGHTS = tuple(
    message.DESCRIPTOR.fields_by_name[field].number
    for message, field in ((onnx.ModelProto, "graph"), (onnx.GraphProto, "initializer"), (onnx.TensorProto, "raw_data"))
)
_FIXED = {1: 8, 5: 4}
"""Bytes of a field by wire type (protobuf's encoding guide)."""


class _Unusual(Exception):
    """An encoding that protobuf does not write, or does not read."""


def is_canonical(file: BinaryIO, size: int) -> bool:
    """Whether the model in a file of `size` bytes, open at its beginning, would be serialized to the same bytes.

    True is always right; False may be wrong for a large file whose unknown fields are packed in an unusual way.
    """
    try:
        data = file.read(size) if size <= SMALL else bytes(_without(file, size, _WEIGHTS))
        return bool(onnx.ModelProto.FromString(data).SerializeToString() == data)
    except (_Unusual, DecodeError):
        return False


def _without(file: BinaryIO, end: int, path: tuple[int, ...]) -> bytearray:
    """The message up to `end` with all but the first byte of the fields at `path` left out.

    Lengths are written anew, so they must have been in the fewest bytes.
    """
    message = bytearray()
    while file.tell() < end:
        tag = _varint(file)
        number, kind = tag >> 3, tag & 7
        message += varint(tag)
        if kind == 0:
            message += varint(_varint(file))
        elif kind == 2:
            length = _varint(file)
            stop = file.tell() + length
            if number != path[0]:
                content: bytes | bytearray = _exactly(file, length)
            elif len(path) > 1:
                content = _without(file, stop, path[1:])
            else:
                content = _exactly(file, min(length, 1))
                file.seek(stop)
            message += varint(len(content)) + content
        elif kind in _FIXED:
            message += _exactly(file, _FIXED[kind])
        else:
            raise _Unusual
    if file.tell() != end:
        raise _Unusual
    return message


def _varint(file: BinaryIO) -> int:
    """A number in the fewest bytes that it can be in."""
    value = shift = 0
    while True:
        byte = _exactly(file, 1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    if shift > 63 or (shift and not byte):
        raise _Unusual
    return value


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise _Unusual
    return data
