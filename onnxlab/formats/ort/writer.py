"""Writing FlatBuffers of the tables of `tables.py`, from nested dicts {field: value}.

A table is written before what it refers to, and all strings last, each once: offsets lead forwards. The builder of the
package `flatbuffers` writes from the end to the beginning, value by value, which takes three times as long.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from onnxlab.errors import SaveError
from onnxlab.formats.ort.tables import DEFAULTS, IDS, SCALARS, STRUCTS, UNIONS

LARGEST: Final = (1 << 31) - 1
"""The most bytes of a file: offsets have 31 bits."""

_U16, _U32 = struct.Struct("<H"), struct.Struct("<I")
_WIDTHS = {kind: struct.calcsize(layout) for kind, layout in SCALARS.items()}
_CODES = {kind: layout[1] for kind, layout in SCALARS.items()}
_DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "i64": np.dtype("<i8"),
    "i32": np.dtype("<i4"),
    "u32": np.dtype("<u4"),
    "f32": np.dtype("<f4"),
}
_REFERENCE = "I"
_WITH_UNIONS: Final = {table for table, ids in IDS.items() if any(kind in UNIONS for _, kind in ids.values())}
_OMITTED: Final = {
    table: {name: DEFAULTS.get((table, name), 0) if kind in _WIDTHS else None for name, (_, kind) in ids.items()}
    for table, ids in IDS.items()
}
"""{table: {field: the value that is not written}}."""


def write(table: str, values: Mapping[str, Any], identifier: bytes) -> bytes:
    """The bytes of a file whose root is a table. Raises SaveError where they would be 2 GiB or more."""
    writer = _Writer(identifier)
    writer.refer(0, writer.table(table, values))
    writer.write_strings()
    if len(writer.data) > LARGEST:
        raise SaveError("it would have 2 GiB or more, which FlatBuffers cannot hold")
    return bytes(writer.data)


class _Layout:
    """The layout of a table's fields; tables with the same fields share it.

    Attributes:
        vtable: where the table of fields was written.
        alignment: of the table.
        packer: of the whole table; its first number leads to the table of fields.
        order: names of the fields as they are packed.
        scalars: names of those that are numbers.
        references: (name, where it lies in the table, type) of all others.
    """

    __slots__ = ("alignment", "order", "packer", "references", "scalars", "vtable")

    def __init__(self, writer: "_Writer", table: str, names: Sequence[str]) -> None:
        ids = IDS[table]
        widths = {name: _WIDTHS.get(ids[name][1], 4) for name in names}
        wide = [name for name in names if widths[name] == 8]
        rest = sorted((name for name in names if widths[name] < 8), key=lambda name: -widths[name])
        code, offset, offsets, self.order = "<i", 4, {}, []
        if wide:  # so that those of eight bytes begin at a multiple of eight
            if rest and widths[rest[0]] == 4:
                wide.insert(0, rest.pop(0))
            else:
                code, offset = "<i4x", 8
        for name in (*wide, *rest):
            offsets[name] = offset
            self.order.append(name)
            code += _CODES.get(ids[name][1], _REFERENCE)
            offset += widths[name]
        self.packer, self.alignment = struct.Struct(code), 8 if wide else 4
        slots = [0] * (max((ids[name][0] for name in names), default=-1) + 1)
        for name in names:
            slots[ids[name][0]] = offsets[name]
        self.scalars = frozenset(name for name in names if ids[name][1] in _WIDTHS)
        self.references = [(name, offsets[name], ids[name][1]) for name in self.order if name not in self.scalars]
        writer.align(2)
        self.vtable = len(writer.data)
        writer.data += struct.pack(f"<{len(slots) + 2}H", 4 + 2 * len(slots), offset, *slots)


class _Writer:
    def __init__(self, identifier: bytes) -> None:
        self.data = bytearray(4) + identifier
        self._strings: dict[bytes, list[int]] = {}
        self._layouts: dict[tuple[str, tuple[str, ...]], _Layout] = {}

    def align(self, step: int, ahead: int = 0) -> None:
        """Fill up, so that what comes `ahead` bytes later begins at a multiple of `step`."""
        if short := -(len(self.data) + ahead) % step:
            self.data += bytes(short)

    def refer(self, place: int, target: int) -> None:
        """Let the offset at a place lead to what lies behind it."""
        _U32.pack_into(self.data, place, target - place)

    def table(self, table: str, values: Mapping[str, Any]) -> int:
        """Write a table and all that it refers to; returns where it is."""
        ids, omitted = IDS[table], _OMITTED[table]
        present = {
            name: value for name, value in values.items()
            if value is not None and (omitted[name] is None or value != omitted[name])
        }  # fmt: skip
        if table in _WITH_UNIONS:
            for name in [name for name in present if ids[name][1] in UNIONS]:
                number, inner = present[name]
                present[f"{name}_type"], present[name] = number, (UNIONS[ids[name][1]][number], inner)
        key = (table, tuple(present))
        layout = self._layouts.get(key)
        if layout is None:
            layout = self._layouts[key] = _Layout(self, table, key[1])
        data = self.data
        if short := -len(data) % layout.alignment:
            data += bytes(short)
        at = len(data)
        data += layout.packer.pack(
            at - layout.vtable, *[present[name] if name in layout.scalars else 0 for name in layout.order]
        )
        for name, offset, kind in layout.references:
            if kind == "string":
                text = present[name]
                self._strings.setdefault(text if isinstance(text, bytes) else text.encode(), []).append(at + offset)
            else:
                self._child(at + offset, kind, present[name])
        return at

    def _child(self, place: int, kind: str, value: Any) -> None:
        """Write a string, vector or table, and let the offset at a place lead to it."""
        if kind == "string":
            self._strings.setdefault(value if isinstance(value, bytes) else value.encode(), []).append(place)
        elif kind in UNIONS:
            self.refer(place, self.table(*value))
        elif kind[0] == "[":
            self._vector(place, kind[1:-1], value)
        else:
            self.refer(place, self.table(kind, value))

    def _vector(self, place: int, kind: str, items: Any) -> None:
        count = len(items)
        self.align(4, 4)
        if kind in _DTYPES or kind == "u8" or kind in STRUCTS:
            self.align(8 if kind == "i64" else 4, 4)
            self.refer(place, len(self.data))
            self.data += _U32.pack(count)
            if kind == "u8":
                self.data += items
            elif kind in _DTYPES:
                self.data += np.asarray(items, _DTYPES[kind]).tobytes() if count > 4 else b"".join(
                    [struct.pack(SCALARS[kind], item) for item in items]
                )  # fmt: skip
            else:
                self.data += b"".join([struct.pack(STRUCTS[kind], *item) for item in items])
            return
        self.refer(place, len(self.data))
        first = len(self.data) + 4
        self.data += _U32.pack(count) + bytes(4 * count)
        for number, item in enumerate(items):
            self._child(first + 4 * number, kind, item)

    def write_strings(self) -> None:
        """Write every string once, behind all that refers to it."""
        for text, places in self._strings.items():
            self.align(4)
            at = len(self.data)
            self.data += _U32.pack(len(text)) + text + b"\0"
            for place in places:
                self.refer(place, at)
        self.align(4)
