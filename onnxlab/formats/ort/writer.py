"""Writing FlatBuffers of the tables of `tables.py`, from nested dicts {field: value}, by the builder of `flatbuffers`.

The builder takes microseconds for every field. To save time, a dict that occurs twice becomes one table of the file,
equal vectors of numbers become one vector, NumPy makes long vectors, and a table with the same fields as an earlier
one is packed as a whole by the layout that the builder chose for the earlier one.
"""

import contextlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import flatbuffers
import numpy as np
from flatbuffers import builder as states
from flatbuffers import number_types

from onnxlab.errors import SaveError
from onnxlab.formats.ort.tables import DEFAULTS, IDS, SCALARS, STRUCTS, UNIONS

LARGEST: Final = (1 << 31) - 1
"""The most bytes of a file: offsets have 31 bits."""

_FEW: Final = 8
"""Items of a vector of tables up to which the builder is quicker than NumPy."""

_FLAGS: Final[dict[str, Any]] = {
    "i64": number_types.Int64Flags,
    "i32": number_types.Int32Flags,
    "u32": number_types.Uint32Flags,
    "i8": number_types.Int8Flags,
    "u8": number_types.Uint8Flags,
    "f32": number_types.Float32Flags,
    "bool": number_types.BoolFlags,
}
_NUMBERS: Final[dict[str, np.dtype[Any]]] = {
    kind: np.dtype(",".join(f"<{'u4' if code == 'I' else 'i4'}" for code in layout[1:])) if kind in STRUCTS
    else np.dtype(layout[0] + layout[1])
    for kind, layout in {**SCALARS, **STRUCTS}.items()
}  # fmt: skip
"""{type of a number or a struct of numbers: its dtype}."""


class _Field(NamedTuple):
    ident: int
    kind: str
    omitted: Any
    """The default of a number, which is not written."""


_FIELDS: Final = {
    table: {name: _Field(ident, kind, DEFAULTS.get((table, name), 0)) for name, (ident, kind) in ids.items()}
    for table, ids in IDS.items()
}
_SLOTS: Final = {table: 1 + max(ident for ident, _ in ids.values()) for table, ids in IDS.items()}
_LETTERS: Final = {"": "I", **{kind: layout[1] for kind, layout in SCALARS.items()}}
_I32, _U16 = struct.Struct("<i"), struct.Struct("<H")
_WIDE: Final = frozenset(kind for kind, layout in SCALARS.items() if struct.calcsize(layout) == 8)


def write(table: str, values: Mapping[str, Any], identifier: bytes, room: int = 1 << 14) -> bytes:
    """The bytes of a file whose root is a table.

    Args:
        table: the name of the table.
        values: its fields.
        identifier: the four bytes that identify the kind of file.
        room: the initial size of the builder's buffer in bytes.

    Raises:
        SaveError: the file would have 2 GiB or more.
    """
    writer = _Writer(min(room, LARGEST))
    with contextlib.suppress(states.BuilderSizeError):
        writer.builder.Finish(writer.table(table, values), file_identifier=identifier)
    if not writer.builder.finished or writer.builder.Offset() > LARGEST:
        raise SaveError("it would have 2 GiB or more, which FlatBuffers cannot hold")
    return bytes(memoryview(writer.builder.Bytes)[writer.builder.Head() :])


class _Layout:
    """The layout of a table that the builder has written, for others with the same fields.

    Offsets of tables are counted from the end of the file, as in the builder.
    """

    def __init__(self, builder: Any, offset: int, parts: Mapping[int, tuple[str, Any]]) -> None:
        start = len(builder.Bytes) - offset
        self._vtable = offset + int(_I32.unpack_from(builder.Bytes, start)[0])
        fields = len(builder.Bytes) - self._vtable
        self._size = int(_U16.unpack_from(builder.Bytes, fields + 2)[0])
        self._alignment = 8 if any(kind in _WIDE for kind, _ in parts.values()) else 4
        self._phase = offset % self._alignment
        places = {ident: int(_U16.unpack_from(builder.Bytes, fields + 4 + 2 * ident)[0]) for ident in parts}
        self._order = sorted((place, ident) for ident, place in places.items())
        code, end = "<i", 4
        for place, ident in self._order:
            letter = _LETTERS[parts[ident][0]]
            code += "x" * (place - end) + letter
            end = place + struct.calcsize(f"<{letter}")
        self._packer = struct.Struct(code + "x" * (self._size - end))

    def place(self, builder: Any, parts: Mapping[int, tuple[str, Any]]) -> int:
        """Write another such table; returns its offset."""
        offset = builder.Offset()
        position: int = offset + self._size + (self._phase - offset - self._size) % self._alignment
        builder.Prep(1, position - offset)
        builder.Pad(position - offset - self._size)
        numbers = []
        for place, ident in self._order:
            kind, value = parts[ident]
            numbers.append(value if kind else position - place - value)
        start = builder.head - self._size
        builder.Bytes[start : builder.head] = self._packer.pack(self._vtable - position, *numbers)
        builder.head = start
        return position


class _Writer:
    def __init__(self, room: int) -> None:
        self.builder = flatbuffers.Builder(room)
        self._tables: dict[int, int] = {}
        self._vectors: dict[tuple[str, bytes], int] = {}
        self._layouts: dict[tuple[str | int, ...], _Layout] = {}

    def table(self, table: str, values: Mapping[str, Any]) -> int:
        """Write a table, after everything that it refers to; returns its offset."""
        written = self._tables.get(id(values))
        if written is not None:
            return written
        fields = _FIELDS[table]
        parts: dict[int, tuple[str, Any]] = {}
        for name, value in values.items():
            if value is None:
                continue
            ident, kind, omitted = fields[name]
            if kind in _FLAGS:
                if value != omitted:
                    parts[ident] = kind, value
            elif kind in UNIONS:
                number, inner = value
                parts[ident] = "", self.table(UNIONS[kind][number], inner)
                parts[fields[f"{name}_type"].ident] = "u8", number
            else:
                parts[ident] = "", self._child(kind, value)
        key: tuple[str | int, ...] = (table, *parts)
        layout = self._layouts.get(key)
        if layout is None:
            offset = self._built(table, parts)
            self._layouts[key] = _Layout(self.builder, offset, parts)
        else:
            offset = layout.place(self.builder, parts)
        self._tables[id(values)] = offset
        return offset

    def _built(self, table: str, parts: Mapping[int, tuple[str, Any]]) -> int:
        """A table as the builder lays it out."""
        builder = self.builder
        builder.StartObject(_SLOTS[table])
        # the builder writes from the end to the beginning: fields of eight bytes are written last, at aligned places
        for ident, (kind, value) in sorted(parts.items(), key=lambda part: part[1][0] in _WIDE):
            if kind:
                builder.Prepend(_FLAGS[kind], value)
            else:
                builder.PrependUOffsetTRelative(value)
            builder.Slot(ident)
        offset: int = builder.EndObject()
        return offset

    def _child(self, kind: str, value: Any) -> int:
        if kind == "string":
            offset: int = self.builder.CreateSharedString(value)
            return offset
        return self._vector(kind[1:-1], value) if kind[0] == "[" else self.table(kind, value)

    def _vector(self, kind: str, items: Any) -> int:
        if kind == "u8":
            offset: int = self.builder.CreateByteVector(items)
            return offset
        if kind not in _NUMBERS:
            return self._references([self._child(kind, item) for item in items])
        array = np.array(items, _NUMBERS[kind])
        key = kind, array.tobytes()
        if key not in self._vectors:
            width = array.dtype.itemsize
            self._vectors[key] = self._placed(key[1], width, len(items), width if width == 8 else 4)
        return self._vectors[key]

    def _references(self, offsets: Sequence[int]) -> int:
        """Write a vector of offsets to tables or strings; returns its offset."""
        builder, count = self.builder, len(offsets)
        if count <= _FEW:
            builder.StartVector(4, count, 4)
            for offset in reversed(offsets):
                builder.PrependUOffsetTRelative(offset)
            vector: int = builder.EndVector()
            return vector
        builder.Prep(4, 4 * count)
        places = builder.Offset() + 4 * np.arange(count, 0, -1)  # offsets are counted from the end of the file
        return self._placed((places - np.array(offsets)).astype("<u4").tobytes(), 4, count, 4)

    def _placed(self, data: bytes, width: int, count: int, alignment: int) -> int:
        """Write a vector whose items are given as bytes; returns its offset."""
        builder = self.builder
        builder.StartVector(width, count, alignment)
        builder.head -= len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        offset: int = builder.EndVector()
        return offset
