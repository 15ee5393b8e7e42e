"""Serialized messages, read where they stand: what inference asks of every node, without a message object for each.

In a message that protobuf wrote, fields are in the order of their numbers, unknown fields last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import onnx
from google.protobuf.message import Message


class Heads(NamedTuple):
    """Beginnings of nodes that follow each other, up to their signatures, in columns.

    Attributes:
        inputs: names of what all nodes read, one node after the other; "" for an absent one, bytes where a name is
            not UTF-8.
        outputs: names of what they make, likewise.
        reads: number of the inputs of this node and those before it, by node.
        makes: the same of outputs.
        names: position where a node's name begins, as `node_name` writes it.
        signatures: position where a node's signature begins.
        ends: position where a node ends.
    """

    inputs: list[Any]
    outputs: list[Any]
    reads: list[int]
    makes: list[int]
    names: list[int]
    signatures: list[int]
    ends: list[int]


def tag(kind: type[Message], field: str) -> int:
    """First byte of a length-delimited field with a number below 16."""
    number: int = kind.DESCRIPTOR.fields_by_name[field].number
    return number << 3 | 2


VARINT = 128
"""Least number that takes more than one byte."""

_INPUT, _OUTPUT, _NAME = (tag(onnx.NodeProto, field) for field in ("input", "output", "name"))
_ATTRIBUTE = tag(onnx.NodeProto, "attribute")
_G, _GRAPHS = tag(onnx.AttributeProto, "g"), tag(onnx.AttributeProto, "graphs")
_FIXED = {1: 8, 5: 4}
"""Bytes of a field by its wire type, for wire types of fixed size."""
_GROUP = (3, 4)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that stands at `at`, and where it ends."""
    value = data[at]
    if value < VARINT:
        return value, at + 1
    digit = data[at + 1]
    if digit < VARINT:  # two bytes, as nearly all other numbers take
        return value + (digit << 7) - VARINT, at + 2
    value &= 127
    shift = 0
    while data[at] >= VARINT:
        at += 1
        shift += 7
        value |= (data[at] & 127) << shift
    return value, at + 1


def extent(data: bytes, at: int) -> tuple[int, int]:
    """Begin and end of the content of the length-delimited field at `at`, with a tag of one byte."""
    size = data[at + 1]
    if size < VARINT:
        at += 2
        return at, at + size
    size, start = varint(data, at + 1)
    return start, start + size


def find(data: bytes, at: int, end: int, field_tag: int) -> int:
    """The position of the first field with a tag of one byte, from `at` on; `end` where there is none."""
    while at < end and data[at] != field_tag:
        at = _after(data, at)
    return at


def _after(data: bytes, at: int) -> int:
    """The end of the field at `at`; that of an unknown group is the end of its last field."""
    depth = 0
    while True:
        kind, at = varint(data, at)
        wire = kind & 7
        if wire == 2:
            at = extent(data, at - 1)[1]
        elif wire in _GROUP:
            depth += 1 if wire == _GROUP[0] else -1
        else:
            at = at + _FIXED[wire] if wire in _FIXED else varint(data, at)[1]
        if depth <= 0:
            return at


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(tag, where it begins, where its content does, where that ends) of each field of a message that is well formed.

    Raises:
        ValueError: the message has a group.
    """
    while at < end:
        start = at
        kind, at = varint(data, at)
        content = at
        if kind & 7 == 2:
            size, content = varint(data, at)
            at = content + size
        elif kind & 7 in _GROUP:
            raise ValueError(f"a group begins or ends at byte {start}")
        else:
            at = at + _FIXED[kind & 7] if kind & 7 in _FIXED else varint(data, at)[1]
        yield kind, start, content, at


def heads(data: bytes, at: int, end: int, field: int, most: int = 1 << 10) -> Iterator[Heads]:
    """Heads of the nodes that follow each other from `at` on as fields with the tag `field`, up to `most` at once.

    Lists of few nodes stay in a processor's cache until all is made of them.
    """
    while at < end and data[at] == field:
        block = Heads([], [], [], [], [], [], [])
        at = _scan(data, at, end, block, most)
        yield block


def _scan(data: bytes, at: int, end: int, block: Heads, most: int) -> int:
    """Enter up to `most` nodes that begin at `at`; returns the position behind the last."""
    field = data[at]
    inputs, outputs, reads, makes, names, signatures, ends = block
    for _ in range(most):
        if at >= end or data[at] != field:
            break
        size = data[at + 1]
        at += 2
        if size >= VARINT:
            size, at = varint(data, at - 1)
        stop = at + size
        while at < stop and ((kind := data[at]) == _INPUT or kind == _OUTPUT):
            size = data[at + 1]
            start = at + 2
            if size >= VARINT:
                size, start = varint(data, at + 1)
            at = start + size
            try:
                name: str | bytes = data[start:at].decode()
            except UnicodeDecodeError:
                name = data[start:at]
            if kind == _INPUT:
                inputs.append(name)
            else:
                outputs.append(name)
        reads.append(len(inputs))
        makes.append(len(outputs))
        names.append(at)
        if at < stop and data[at] == _NAME:
            size = data[at + 1]
            at = at + 2 + size if size < VARINT else extent(data, at)[1]
        signatures.append(at)
        ends.append(stop)
        at = stop
    return at


def node_name(name: str) -> bytes:
    """The name of a node as protobuf writes it: nothing where it is empty."""
    return onnx.NodeProto(name=name).SerializeToString() if name else b""


def bodies(data: bytes, at: int, end: int, types: Iterable[int]) -> Iterator[tuple[bytes, int, int]]:
    """The bytes again, and where in them each graph of a node's attributes begins and ends, in the order of both.

    `at` and `end` delimit the node's signature, `types` are the types of its attributes.
    """
    for kind in types:
        start, at = extent(data, find(data, at, end, _ATTRIBUTE))
        if kind == onnx.AttributeProto.GRAPH:
            place = find(data, start, at, _G)
            if place < at:
                yield (data, *extent(data, place))
        while kind == onnx.AttributeProto.GRAPHS and (place := find(data, start, at, _GRAPHS)) < at:
            begin, start = extent(data, place)
            yield data, begin, start


_CONSTANT = re.compile(
    rb"\x22\x08Constant\x2a[\x80-\xff]*[\0-\x7f]\x0a\x05value\x2a([\x80-\xff]*[\0-\x7f])"
    rb"((?:\x08[\x80-\xff]*[\0-\x7f])*)\x10([\0-\x7f])"
)
"""op_type, the attribute with its name and tensor; groups: (1) the tensor's size, (2) its field dims, (3) data_type."""

TENSOR = b"\xa0\x01\x04"
"""End of an attribute with a tensor: its type."""


def constant(data: bytes, at: int, end: int) -> re.Match[bytes] | None:
    """The beginning of a Constant that has its tensor in its one attribute `value` and nothing else, else None.

    `at` and `end` delimit the node's signature. Group 2 of the match is the tensor's dims, serialized, group 3 its
    element type. After the match, the rest of the tensor follows, then TENSOR up to the `endpos` of the match.
    """
    match = _CONSTANT.match(data, at, end)
    if match is None:
        return None
    size, start = varint(data, match.start(1))
    return match if data[start + size : end] == TENSOR else None
