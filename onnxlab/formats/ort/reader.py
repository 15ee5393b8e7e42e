"""Reading FlatBuffers of the tables of `tables.py`: every offset, length and depth is checked before it is followed.

Files are not trusted: tables may overlap or contain themselves, vectors may claim any length. The tables, items and
bytes read are limited in proportion to the size of the file, and so are time and memory.
"""

import struct
from typing import Any, Final

import numpy as np

from onnxlab.errors import LoadError
from onnxlab.formats.ort.tables import DEFAULTS, IDS, SCALARS, STRUCTS, UNIONS

DEEPEST: Final = 96
"""Levels of nested tables: protobuf reads no more than 100 levels of messages."""

_SHARED: Final = 16
"""Limit of the bytes of strings read, in sizes of the file; names are shared, so their bytes are read repeatedly."""

REREAD: Final = 4
"""Limit of the bytes of vectors read, in sizes of the file; vectors are not shared, but read more than once here."""

_U16, _U32, _I32 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i")
_SCALARS = {kind: struct.Struct(layout) for kind, layout in SCALARS.items()}
_ARRAYS = {kind: np.dtype(name) for kind, name in
           {"i64": "<i8", "i32": "<i4", "u32": "<u4", "i8": "<i1", "u8": "<u1", "f32": "<f4"}.items()}  # fmt: skip


def damaged(why: str) -> LoadError:
    """The error for a damaged file."""
    return LoadError(f"it is damaged: {why}; copy or make it again")


class FlatBuffer:
    """The bytes of a file, with counters that limit how much is read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.size = memoryview(data), len(data)
        self._tables = len(data) // 4 + 16
        self._bytes = _SHARED * len(data) + (1 << 16)
        self._items = REREAD * len(data) + (1 << 16)
        self._strings: dict[int, bytes] = {}

    def root(self, table: str) -> "FlatTable":
        """The table that the file begins with."""
        return FlatTable(self, self.offset(0), table, 0)

    def u32(self, at: int) -> int:
        """An unsigned number of 32 bits at a place."""
        if not 0 <= at <= self.size - 4:
            raise damaged(f"an offset leads to byte {at:,} of {self.size:,}")
        return int(_U32.unpack_from(self.data, at)[0])

    def offset(self, at: int) -> int:
        """The target of the offset at a place."""
        target = at + self.u32(at)
        if target == at or target > self.size - 4:
            raise damaged(f"an offset at byte {at:,} leads out of its {self.size:,} bytes")
        return target

    def vector(self, at: int, width: int) -> tuple[int, int]:
        """(where the items of a vector begin, how many there are)."""
        start = self.offset(at)
        count = self.u32(start)
        if count * width > self.size - start - 4:
            raise damaged(f"a vector claims {count:,} items of {width} bytes, and the file ends before")
        self._items -= count * width
        if self._items < 0:
            raise damaged("it refers to the same vectors over and over")
        return start + 4, count

    def string(self, at: int) -> bytes:
        """The string that the offset at a place leads to."""
        start = self.offset(at)
        text = self._strings.get(start)
        if text is None:
            begin, count = self.vector(at, 1)
            text = self._strings[start] = bytes(self.data[begin : begin + count])
        self._bytes -= len(text) + 1
        if self._bytes < 0:
            raise damaged("it refers to the same strings over and over")
        return text

    def visit(self, depth: int) -> None:
        """Count a table; raises LoadError where there are too many, or it is nested too deep."""
        self._tables -= 1
        if self._tables < 0:
            raise damaged("it refers to the same tables over and over")
        if depth > DEEPEST:
            raise LoadError(f"its tables are nested deeper than {DEEPEST} levels")


class FlatTable:
    """A table: `table["name"]` is a field, or the field's default where the file does not have it.

    Attributes:
        at: the offset of the table in the file.
    """

    __slots__ = ("_buffer", "_depth", "_ids", "_name", "_slots", "_vtable", "at")

    def __init__(self, buffer: FlatBuffer, at: int, name: str, depth: int) -> None:
        buffer.visit(depth)
        vtable = at - int(_I32.unpack_from(buffer.data, at)[0])
        if not 0 <= vtable <= buffer.size - 4:
            raise damaged(f"the {name} at byte {at:,} has no table of fields")
        length = int(_U16.unpack_from(buffer.data, vtable)[0])
        if length < 4 or length % 2 or vtable + length > buffer.size:
            raise damaged(f"the {name} at byte {at:,} has a broken table of fields")
        self._buffer, self.at, self._name, self._depth = buffer, at, name, depth
        self._ids, self._vtable, self._slots = IDS[name], vtable, (length - 4) // 2

    def _place(self, ident: int, width: int) -> int:
        """The place of a field of `width` bytes, 0 where the table does not have it."""
        if ident >= self._slots:
            return 0
        offset = int(_U16.unpack_from(self._buffer.data, self._vtable + 4 + 2 * ident)[0])
        if not offset:
            return 0
        place = self.at + offset
        if offset < 4 or place + width > self._buffer.size:
            raise damaged(f"a field of the {self._name} at byte {self.at:,} lies outside of it")
        return place

    def place_of(self, field: str) -> int:
        """The place of a field in the file, 0 where the table does not have it."""
        return self._place(self._ids[field][0], 0)

    def __contains__(self, field: str) -> bool:
        return self.place_of(field) != 0

    def __getitem__(self, field: str) -> Any:
        ident, kind = self._ids[field]
        if kind in _SCALARS:
            layout = _SCALARS[kind]
            place = self._place(ident, layout.size)
            return layout.unpack_from(self._buffer.data, place)[0] if place else DEFAULTS.get((self._name, field), 0)
        place = self._place(ident, 4)
        if kind.startswith("["):
            return self._vector(place, kind[1:-1]) if place else ()
        if not place:
            return b"" if kind == "string" else None
        if kind == "string":
            return self._buffer.string(place)
        if kind in UNIONS:
            chosen, tables = self[f"{field}_type"], UNIONS[kind]
            if not 0 < chosen < len(tables):
                raise LoadError(f"it has a type of the unknown kind {chosen}")
            kind = tables[chosen]
        return FlatTable(self._buffer, self._buffer.offset(place), kind, self._depth + 1)

    def text(self, field: str) -> str:
        """A field that is a string; bytes that are no UTF-8 are escaped with backslashes."""
        encoded: bytes = self[field]
        return encoded.decode("utf-8", "backslashreplace")

    def texts(self, field: str) -> list[str]:
        """A field that is a vector of strings."""
        return [item.decode("utf-8", "backslashreplace") for item in self[field]]

    def _vector(self, place: int, kind: str) -> Any:
        buffer = self._buffer
        if kind in _ARRAYS:
            dtype = _ARRAYS[kind]
            start, count = buffer.vector(place, dtype.itemsize)
            if kind == "u8":
                return buffer.data[start : start + count]
            return np.frombuffer(buffer.data, dtype, count, start)
        if kind in STRUCTS:
            layout = struct.Struct(STRUCTS[kind])
            start, count = buffer.vector(place, layout.size)
            return list(layout.iter_unpack(buffer.data[start : start + count * layout.size]))
        start, count = buffer.vector(place, 4)
        places = range(start, start + 4 * count, 4)
        if kind == "string":
            return [buffer.string(entry) for entry in places]
        return [FlatTable(buffer, buffer.offset(entry), kind, self._depth + 1) for entry in places]
