"""Writing names that need not be UTF-8: files have them, protobuf reads them as bytes and does not take them back.

protobuf does parse such names, so they are written by parsing serialized bytes.
"""

from collections.abc import Iterable
from typing import Any

from onnxlab.errors import EditError

Name = str | bytes


def set_strings(proto: Any, field: str, names: Iterable[Name]) -> None:
    """Replace a repeated string field; names that are not UTF-8 are given as bytes. Nothing changes where one is none.

    Raises:
        TypeError, AttributeError: a name is neither a string nor bytes.
        UnicodeEncodeError: a string has half of a surrogate pair.
    """
    names = list(names)
    try:
        "".join(names).encode()  # type: ignore[arg-type]  # raises before the field is changed
    except TypeError:
        data = b"".join(_field(proto, field, name) for name in names)
        proto.ClearField(field)
        proto.MergeFromString(data)
    else:
        getattr(proto, field)[:] = names


def set_string(proto: Any, field: str, name: Name) -> None:
    """Set a string field; a name that is not UTF-8 is given as bytes."""
    if isinstance(name, str):
        setattr(proto, field, name)
    else:
        proto.MergeFromString(_field(proto, field, name))


def text(name: str) -> str:
    """A string itself. Raises EditError where it is none, or has half of a surrogate pair, which no file can hold."""
    if not isinstance(name, str):
        raise EditError(f"a name is a string, got {name!r:.80}")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise unwritable(error) from None
    return name


def unwritable(error: UnicodeEncodeError) -> EditError:
    """The message for a string that cannot be written to a file."""
    shown = ascii(error.object if len(error.object) <= 60 else error.object[:57] + "...")
    half = ascii(error.object[error.start])
    return EditError(f"{shown} is no text: {half} is half of a surrogate pair and no character; leave it out")


def readable(name: Name) -> str:
    r"""A name for messages and paths, with \xff for what is not UTF-8."""
    return name if isinstance(name, str) else name.decode(errors="backslashreplace")


def _field(proto: Any, field: str, name: Name) -> bytes:
    """A string field as protobuf writes it: tag, length, bytes."""
    data = name.encode() if isinstance(name, str) else name
    number: int = proto.DESCRIPTOR.fields_by_name[field].number
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    """A number from 0 on as protobuf writes it: seven bits a byte, the lowest first."""
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)
