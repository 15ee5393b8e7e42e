"""What a node does, read off its serialised bytes: operator, attributes, domain and overload, without any names.

Serialising a message takes less time than looking at two of its fields from Python. Known fields come in the order of
their numbers, all of a NodeProto's are length-delimited: names of inputs, of outputs, of the node; then op_type,
attributes, doc_string, domain, overload, metadata.
"""

from __future__ import annotations

import onnx


def _tag(field: str) -> int:
    """First byte of a serialised field of a NodeProto."""
    return onnx.NodeProto.DESCRIPTOR.fields_by_name[field].number << 3 | 2


_OP_TYPE, _DOC_STRING, _DOMAIN, _METADATA = map(_tag, ("op_type", "doc_string", "domain", "metadata_props"))
_VARINT = 128
"""Lengths from this on take more than a byte."""


def signature(data: bytes, annotated: bool) -> bytes:
    """The end of a serialised node, from its operator on.

    Args:
        annotated: leave out documentation and metadata, of which every node may have another; it takes twice the time.
    """
    at, end = 0, len(data)
    while at < end and data[at] < _OP_TYPE:
        size = data[at + 1]
        at = at + 2 + size if size < _VARINT else _after(data, at)
    return _without_notes(data, at) if annotated else data[at:]


def _without_notes(data: bytes, start: int) -> bytes:
    at, end = start, len(data)
    while at < end and data[at] < _DOC_STRING:
        at = _after(data, at)
    parts = [data[start:at]]
    while at < end and data[at] < _METADATA:
        after = _after(data, at)
        if data[at] >= _DOMAIN:
            parts.append(data[at:after])
        at = after
    return b"".join(parts)


def _after(data: bytes, at: int) -> int:
    """Where the length-delimited field that begins at `at` ends."""
    at += 1
    size = data[at] & 127
    shift = 0
    while data[at] >= _VARINT:
        at += 1
        shift += 7
        size |= (data[at] & 127) << shift
    return at + 1 + size
