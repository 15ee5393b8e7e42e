"""Differences between two messages, field by field: what a save is about to change in a file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from google.protobuf.message import Message

from onnxlab.formats.storage import unknown_fields
from onnxlab.printable import printable

# {type of message: the key by which entries of a repeated field are paired}
_KEYS: dict[str, Callable[[Any], Any]] = {
    "NodeProto": lambda node: tuple(node.output) or node.name,
    "AttributeProto": lambda attribute: attribute.name,
    "TensorProto": lambda tensor: tensor.name,
    "SparseTensorProto": lambda tensor: tensor.values.name,
    "ValueInfoProto": lambda info: info.name,
    "OperatorSetIdProto": lambda entry: entry.domain,
    "StringStringEntryProto": lambda entry: entry.key,
    "FunctionProto": lambda function: (function.domain, function.name, function.overload),
    "TensorAnnotation": lambda annotation: annotation.tensor_name,
}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs.

    Attributes:
        path: from the ModelProto, by position in the old message ("graph.node[3].attribute[0].ints"), or in the new
            one where the entry is new.
        old, new: scalars, tuples of scalars, or messages; None where the field or entry is absent. For the order of a
            repeated field: tuples of positions in the old one.
    """

    path: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return printable(f"{self.path}: {_short(self.old)} → {_short(self.new)}")


def differences(old: Message, new: Message, path: str = "") -> Iterator[FieldChange]:
    """Every field in which two messages of one type differ, in the order of the field numbers.

    Entries of repeated messages are paired by name (nodes by their outputs), so that an inserted entry is one
    difference and not many.
    """
    fields = list(_fields(old, new, path))
    yield from fields
    if not fields and not same(old, new):  # they differ in bits that Python does not show, such as those of a NaN
        yield FieldChange(path or "model", old, new)


def _fields(old: Message, new: Message, path: str) -> Iterator[FieldChange]:
    prefix = f"{path}." if path else ""
    descriptors: Any = old.DESCRIPTOR.fields
    for descriptor in sorted(descriptors, key=lambda item: item.number):
        name = descriptor.name
        where = f"{prefix}{name}"
        if descriptor.is_repeated:
            ours, theirs = getattr(old, name), getattr(new, name)
            if descriptor.message_type is not None:
                yield from _entries(ours, theirs, where)
            elif not _equal_scalars(ours, theirs):
                yield FieldChange(where, tuple(ours), tuple(theirs))
            continue
        before, after = _value(old, name), _value(new, name)
        if descriptor.message_type is not None and before is not None and after is not None:
            yield from differences(before, after, where)
        elif not _equal(before, after):
            yield FieldChange(where, before, after)
    if _unknown(old) != _unknown(new):
        yield FieldChange(f"{prefix}(unknown fields)", _unknown(old), _unknown(new))


def same(old: Message, new: Message) -> bool:
    """Whether two messages are equal to the bit; NaNs, signs of zeros and unknown fields included."""
    return old.SerializePartialToString(deterministic=True) == new.SerializePartialToString(deterministic=True)


def _entries(old: Sequence[Any], new: Sequence[Any], path: str) -> Iterator[FieldChange]:
    """Differences of a repeated message field: changed, removed and inserted entries, and the order."""
    before = [item.SerializePartialToString(deterministic=True) for item in old]
    after = [item.SerializePartialToString(deterministic=True) for item in new]
    if before == after:
        return
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    ours, theirs = range(start, len(before) - end), range(start, len(after) - end)
    pairs = _pairs(old, new, ours, theirs, before, after)
    for position in ours:
        if position not in pairs:
            yield FieldChange(f"{path}[{position}]", old[position], None)
        elif before[position] != after[pairs[position]]:
            yield from differences(old[position], new[pairs[position]], f"{path}[{position}]")
    came = set(theirs) - set(pairs.values())
    for position in sorted(came):
        yield FieldChange(f"{path}[{position}]", None, new[position])
    order = sorted(pairs, key=lambda position: pairs[position])
    if order != sorted(order):
        yield FieldChange(f"{path}(order)", tuple(sorted(order)), tuple(order))


def _pairs(
    old: Sequence[Any], new: Sequence[Any], ours: range, theirs: range, before: list[bytes], after: list[bytes]
) -> dict[int, int]:
    """{position in old: position in new} of paired entries: equal, of one name, or in one place."""
    pairs: dict[int, int] = {}
    free = dict.fromkeys(theirs)
    key = _KEYS.get(old[0].DESCRIPTOR.name if old else new[0].DESCRIPTOR.name)

    def match(left: Callable[[int], Any], right: Callable[[int], Any]) -> None:
        waiting: dict[Any, list[int]] = {}
        for position in reversed(list(free)):
            waiting.setdefault(right(position), []).append(position)
        for position in ours:
            if position not in pairs and (positions := waiting.get(left(position))):
                pairs[position] = positions.pop()
                del free[pairs[position]]

    match(lambda position: before[position], lambda position: after[position])
    if key is not None:
        match(lambda position: key(old[position]), lambda position: key(new[position]))
        if isinstance((old or new)[0], onnx.NodeProto):
            match(lambda position: old[position].name or None, lambda position: new[position].name or ())
    if len(ours) == len(theirs):  # no entry was inserted or removed: the rest is paired by position
        match(lambda position: position, lambda position: position)
    return pairs


def _value(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _equal(before: Any, after: Any) -> bool:
    if isinstance(before, float) and isinstance(after, float):
        return repr(before) == repr(after)
    return type(before) is type(after) and bool(before == after)


def _equal_scalars(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    if len(ours) != len(theirs):
        return False
    return list(ours) == list(theirs) and (not ours or not isinstance(ours[0], float) or repr(ours) == repr(theirs))


def _unknown(message: Message) -> tuple[tuple[int, int, Any], ...]:
    return tuple((field.field_number, field.wire_type, field.data) for field in unknown_fields(message))


def _short(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, Message):
        name = getattr(value, "name", "") or ", ".join(getattr(value, "output", ()))
        return f"{value.DESCRIPTOR.name} {name!r}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
