"""The signature of a node, read off its serialized bytes: operator, attributes, domain and overload, without names.

Serializing a message takes less time than looking at two of its fields from Python. Known fields come in the order of
their numbers, all of a NodeProto's are length-delimited: names of inputs, of outputs, of the node; then op_type,
attributes, doc_string, domain, overload, metadata.
"""

from __future__ import annotations

import onnx

from onnxlab.graph.protos.wire_format import VARINT, extent, tag

_OP_TYPE, _DOC_STRING, _DOMAIN, _METADATA = (
    tag(onnx.NodeProto, field) for field in ("op_type", "doc_string", "domain", "metadata_props")
)


def signature(data: bytes, annotated: bool) -> bytes:
    """The end of a serialized node, from its operator on.

    Args:
        annotated: leave out documentation and metadata, of which every node may have another; it takes twice the time.
    """
    at, end = 0, len(data)
    while at < end and data[at] < _OP_TYPE:
        size = data[at + 1]
        at = at + 2 + size if size < VARINT else extent(data, at)[1]
    return _without_notes(data, at) if annotated else data[at:]


def _without_notes(data: bytes, start: int) -> bytes:
    at, end = start, len(data)
    while at < end and data[at] < _DOC_STRING:
        at = extent(data, at)[1]
    parts = [data[start:at]]
    while at < end and data[at] < _METADATA:
        after = extent(data, at)[1]
        if data[at] >= _DOMAIN:
            parts.append(data[at:after])
        at = after
    return b"".join(parts)
