"""Facts of Constants from their serialized bytes, without a message: the same as `types.fact_of_tensor` gives."""

from __future__ import annotations

import re
from math import prod

import onnx

from onnxlab import dtypes
from onnxlab.graph.protos.wire_format import TENSOR, VARINT, extent, varint
from onnxlab.infer.facts.type_protos import FOLLOWED, WIDTHS, fact_of_items, fact_of_raw
from onnxlab.shapes import Fact, TensorFact

_FIELDS = {name: field.number << 3 for name, field in onnx.TensorProto.DESCRIPTOR.fields_by_name.items()}
_NAME, _RAW, _INT64 = (_FIELDS[name] | 2 for name in ("name", "raw_data", "int64_data"))
_TYPED = {dtypes.FLOAT: _FIELDS["float_data"] | 2, dtypes.INT64: _INT64}
"""The typed fields of elements that precede `name`, by element type; floats are encoded as in raw_data."""

_SIGN = 1 << 63


def fact_of_constant(match: re.Match[bytes]) -> Fact | None:
    """The fact of a Constant's output from what `wire.constant` found; None where the message has to be parsed."""
    dims, elem_type = match[2], match[3][0]
    shape = tuple(dims[1::2]) if dims.isascii() else _shape(dims)  # ASCII: each dim is one byte
    count = prod(shape)
    if count > FOLLOWED.get(elem_type, -1):
        return TensorFact(elem_type, shape) if elem_type and max(shape, default=0) < _SIGN else None
    if 0 in shape:
        return None
    return _followed(match.string, match.end(), match.endpos - len(TENSOR), elem_type, shape, count)


def _shape(dims: bytes) -> tuple[int, ...]:
    """The numbers of the serialized field `dims`; negative ones come out as 2**63 or more."""
    shape, at = [], 0
    while at < len(dims):
        dim, at = varint(dims, at + 1)
        shape.append(dim)
    return tuple(shape)


def _followed(data: bytes, at: int, end: int, elem_type: int, shape: tuple[int, ...], count: int) -> Fact | None:
    """The fact with all elements, where they stand in one of the usual fields; `at` is behind the element type."""
    before = after = (0, 0)
    if at < end and data[at] == _TYPED.get(elem_type):
        before = extent(data, at)
        at = before[1]
    if at < end and data[at] == _NAME:
        at = extent(data, at)[1]
    if at < end and data[at] == _RAW and not before[1]:
        after = extent(data, at)
    elif at < end:  # another field: the message has to be parsed
        return None
    start, stop = after if after[1] else before
    if elem_type == dtypes.INT64 and not after[1]:
        items = _integers(data, start, stop)
        return fact_of_items(elem_type, shape, items) if len(items) == count else None
    if stop - start != count * WIDTHS[elem_type]:
        return None
    return fact_of_raw(elem_type, shape, count, data[start:stop])


def _integers(data: bytes, at: int, end: int) -> tuple[int, ...]:
    """Packed numbers of 64 bits in two's complement."""
    items = []
    while at < end:
        item = data[at]
        if item < VARINT:
            at += 1
        else:
            item, at = varint(data, at)
        items.append(item if item < _SIGN else item - 2 * _SIGN)
    return tuple(items)
