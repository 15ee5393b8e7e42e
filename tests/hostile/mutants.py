"""Byte and field mutants of small models."""

import numpy as np
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message

from tests.hostile.bases import bases
from tests.hostile.exercise import exercise
from tests.hostile.trial import parsed

WEIGHT = 40
INTEGERS = (0, 1, -1, 2, 3, 7, 16, 17, 64, 99, 127, 255, 2**31 - 1, -(2**31), 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
REALS = (0.0, -1.0, 1e30, -1e-40, float("nan"), float("inf"), 0.5)
TEXTS = ("", "x", "y", "a\x00b", "../up", "<b>&", "\x1b[2K", "‮abc", "n" * 1000, "float", "ai.onnx.ml", "com.microsoft",
         "a/" * 50 + "b", "\ud7ff", "SAME_UPPER", "linear", "N", "-1")  # fmt: skip


def preload():
    bases()


def trial(case):
    base = case.pick(bases())
    way = of_bytes if case.chance(0.35) else of_fields
    data = way(case, base.data)
    case.lines.append(f"# {way.__name__} of {base.name}")
    exercise(case, case.file(data), base.feeds)


def of_bytes(case, data):
    """Some bytes changed, cut, put in or repeated."""
    mutated = bytearray(data)
    for _ in range(1 + case.upto(3)):
        place, way = (
            case.upto(max(len(mutated) - 1, 0)),
            case.pick(("flip", "set", "cut", "insert", "repeat", "remove")),
        )
        if not mutated:
            break
        if way == "flip":
            mutated[place] ^= 1 << case.upto(7)
        elif way == "set":
            mutated[place] = case.pick((0, 1, 0x7F, 0x80, 0xFF, case.upto(255)))
        elif way == "cut" and case.chance(0.3):
            del mutated[place:]
        elif way == "insert":
            mutated[place:place] = case.rng.bytes(1 + case.upto(10))
        elif way == "repeat":
            mutated[place:place] = mutated[place : place + 1 + case.upto(40)]
        elif way == "remove":
            del mutated[place : place + 1 + case.upto(10)]
    return bytes(mutated)


def of_fields(case, data):
    """One to three fields anywhere in the message changed."""
    proto = parsed(data)
    if proto is None:
        return data
    for _ in range(1 + case.upto(2)):
        change(case, case.pick(list(messages(proto))))
    return proto.SerializePartialToString()


def messages(proto):
    """A message and all in it; of long lists the first hundred."""
    yield proto
    for field, value in proto.ListFields():
        if field.message_type is None:
            continue
        for inner in value[:100] if field.is_repeated else [value]:
            yield from messages(inner)


def change(case, message):
    """One field of a message; nothing where the message has none."""
    present = [field for field, _ in message.ListFields()]
    fields = present if present and case.chance(0.85) else list(message.DESCRIPTOR.fields)
    if not fields:
        return
    field = case.pick(fields)
    if field.is_repeated:
        of_list(case, message, field)
    elif case.chance(0.15):
        message.ClearField(field.name)
    elif field.message_type is not None:
        getattr(message, field.name).SetInParent()
        change(case, getattr(message, field.name))
    else:
        setattr(message, field.name, scalar(case, field, getattr(message, field.name)))


def of_list(case, message, field):
    items = getattr(message, field.name)
    way = case.pick(("remove", "repeat", "change", "swap", "clear", "add"))
    place = case.upto(len(items) - 1) if len(items) else 0
    if way == "add" or not len(items):
        if field.message_type is not None:
            change(case, items.add())
        else:
            items.append(scalar(case, field, None))
    elif way == "remove":
        del items[place]
    elif way == "repeat":
        items.append(items[place])
    elif way == "clear":
        message.ClearField(field.name)
    elif way == "swap" and len(items) > 1:
        other, copies = case.upto(len(items) - 1), list(items)
        copies = [
            type(item).FromString(item.SerializePartialToString()) if isinstance(item, Message) else item
            for item in copies
        ]
        copies[place], copies[other] = copies[other], copies[place]
        message.ClearField(field.name)
        getattr(message, field.name).extend(copies)
    elif field.message_type is not None:
        change(case, items[place])
    else:
        items[place] = scalar(case, field, items[place])


def scalar(case, field, now):
    """Another value for a field."""
    if field.cpp_type in (Field.CPPTYPE_INT64, Field.CPPTYPE_INT32, Field.CPPTYPE_UINT64, Field.CPPTYPE_UINT32):
        low, high = {
            Field.CPPTYPE_INT64: (-(2**63), 2**63 - 1), Field.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
            Field.CPPTYPE_UINT64: (0, 2**64 - 1), Field.CPPTYPE_UINT32: (0, 2**32 - 1),
        }[field.cpp_type]  # fmt: skip
        number = (now or 0) + case.pick((-1, 1)) if case.chance(0.4) else case.pick(INTEGERS)
        return min(max(number, low), high)
    if field.cpp_type in (Field.CPPTYPE_FLOAT, Field.CPPTYPE_DOUBLE):
        return float(np.float32(case.pick(REALS)))
    if field.cpp_type == Field.CPPTYPE_BOOL:
        return not now
    if field.cpp_type == Field.CPPTYPE_ENUM:
        return case.pick([value.number for value in field.enum_type.values])
    if field.type == Field.TYPE_BYTES:
        return of_bytes(case, now) if now else case.rng.bytes(case.upto(20))
    if now and case.chance(0.3):
        return now[:-1] if case.chance(0.5) else now + "x"
    return case.pick(TEXTS)
