"""Writing FlatBuffers of the tables of `tables.py`, from nested dicts {field: value}."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import flatbuffers
import numpy as np
from flatbuffers import number_types

from onnxlab.errors import SaveError
from onnxlab.formats.ort.tables import DEFAULTS, IDS, SCALARS, STRUCTS, TABLES, UNIONS

LARGEST: Final = (1 << 31) - 1
"""The most bytes of a file: offsets have 31 bits."""

_FLAGS = {
    "i64": number_types.Int64Flags, "i32": number_types.Int32Flags, "u32": number_types.Uint32Flags,
    "i8": number_types.Int8Flags, "u8": number_types.Uint8Flags, "f32": number_types.Float32Flags,
    "bool": number_types.BoolFlags,
}  # fmt: skip
_WIDTHS = {"i64": 8, "i8": 1, "u8": 1, "bool": 1}
_DTYPES = {"i64": "<i8", "i32": "<i4", "u32": "<u4", "i8": "i1", "f32": "<f4"}


def write(table: str, values: Mapping[str, Any], identifier: bytes) -> bytes:
    """The bytes of a file whose root is a table. Raises SaveError where they would be 2 GiB or more."""
    builder = flatbuffers.Builder(1 << 16)
    try:
        builder.Finish(_table(builder, table, values), file_identifier=identifier)
    except (flatbuffers.builder.BuilderSizeError, OverflowError):
        raise SaveError("it would have 2 GiB or more, which FlatBuffers cannot hold") from None
    return bytes(builder.Output())


def _table(builder: Any, table: str, values: Mapping[str, Any]) -> int:
    ids, placed = IDS[table], []
    for name, value in values.items():
        ident, kind = ids[name]
        if value is None:
            continue
        if kind in SCALARS:
            if value != DEFAULTS.get((table, name), 0):
                placed.append((_WIDTHS.get(kind, 4), ident, _FLAGS[kind], value))
        elif kind in UNIONS:
            chosen, inner = value
            placed.append((4, ident, None, _table(builder, UNIONS[kind][chosen], inner)))
            placed.append((1, ident - 1, _FLAGS["u8"], chosen))
        else:
            placed.append((4, ident, None, _offset(builder, kind, value)))
    placed.sort(key=lambda item: (item[0], item[1]), reverse=True)
    builder.StartObject(len(TABLES[table]))
    for _, ident, flags, value in placed:
        if flags is None:
            builder.PrependUOffsetTRelative(value)
        else:
            builder.Prepend(flags, value)
        builder.Slot(ident)
    return int(builder.EndObject())


def _offset(builder: Any, kind: str, value: Any) -> int:
    """Write a string, vector or table; returns where it is."""
    if kind == "string":
        return int(builder.CreateSharedString(value))
    if not kind.startswith("["):
        return _table(builder, kind, value)
    return _vector(builder, kind[1:-1], value)


def _vector(builder: Any, kind: str, items: Sequence[Any]) -> int:
    if kind == "u8":
        return int(builder.CreateByteVector(items))
    if kind in _DTYPES:
        return int(builder.CreateNumpyVector(np.asarray(items, _DTYPES[kind])))
    if kind in STRUCTS:
        packed = np.array(items, "<i8").reshape(-1, 3).astype("<u4").reshape(-1)  # negative slots are not written
        builder.StartVector(12, len(items), 4)
        builder.head -= packed.nbytes
        builder.Bytes[builder.head : builder.head + packed.nbytes] = packed.tobytes()
        return int(builder.EndVector())
    offsets = [_offset(builder, kind, item) for item in items]
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())
