"""Differences of two messages, field by field: presence, order, unknown fields and NaN bits included."""

import struct
from collections.abc import Iterator
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet


def differences(first: Any, other: Any, path: str = "") -> Iterator[str]:
    """Paths of the fields in which two messages of a type differ."""
    left, right = dict(_set_fields(first)), dict(_set_fields(other))
    for name in [*left, *(name for name in right if name not in left)]:
        where = f"{path}.{name}" if path else name
        if name not in left or name not in right:
            yield where
        else:
            yield from _of_values(left[name], right[name], where)
    if _unknown(first) != _unknown(other):
        yield f"{path}.(unknown)"


def _set_fields(message: Any) -> Iterator[tuple[str, Any]]:
    for field, value in message.ListFields():
        yield field.name, (list(value) if field.is_repeated else value)


def _of_values(left: Any, right: Any, where: str) -> Iterator[str]:
    if isinstance(left, list):
        if len(left) != len(right):
            yield f"{where}.(length)"
        for number, (a, b) in enumerate(zip(left, right, strict=False)):
            yield from _of_values(a, b, f"{where}[{number}]")
    elif hasattr(left, "ListFields"):
        yield from differences(left, right, where)
    elif isinstance(left, float):
        if struct.pack("d", left) != struct.pack("d", right):
            yield where
    elif left != right:
        yield where


def _unknown(message: Any) -> list[tuple[int, int, Any]]:
    return [
        (field.field_number, field.wire_type, field.data if isinstance(field.data, int | bytes) else repr(field.data))
        for field in UnknownFieldSet(message)  # type: ignore[attr-defined]
    ]
