"""Numbers in protobuf text as the program writes them that wrote the file: protobuf's C++ writes 1, its Python 1.0."""

import re
import struct
from dataclasses import dataclass
from typing import Final

_FIELD: Final = re.compile(r"^(\s*(?:f|floats|float_data|(double_data)): )(-?\d[\d.]*(?:e[+-]?\d+)?)$", re.MULTILINE)
"""A line of onnx.proto's fields of floating-point numbers; those of double precision have a second group."""


@dataclass(frozen=True, slots=True)
class Numerals:
    """The style of a text whose numbers are written as protobuf's C++ writes them.

    A float has 6 digits, or 9 where 6 do not give the same number again; a double has 15 or 17.
    """


def numerals_of(text: str) -> Numerals | None:
    """The style of a text's numbers, None where they are in Python's style or leave it open."""
    return Numerals() if any(match[3].lstrip("-").isdigit() for match in _FIELD.finditer(text)) else None


def as_written(text: str, style: object) -> str:
    """A text as Python's protobuf writes it, with the numbers in a style."""
    return _FIELD.sub(_short, text) if isinstance(style, Numerals) else text


def _short(match: re.Match[str]) -> str:
    code, few, many = ("d", 15, 17) if match[2] else ("f", 6, 9)  # in the order in which C++ tries them
    value = float(match[3])
    text = f"{value:.{few}g}"
    same = _bits(code, float(text)) == _bits(code, value)
    return match[1] + (text if same else f"{value:.{many}g}" if code == "d" else f"{_single(value):.{many}g}")


def _single(value: float) -> float:
    """The float32 that Python's shorter digits stand for, exactly."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _bits(code: str, value: float) -> bytes:
    try:
        return struct.pack(code, value)
    except OverflowError:  # rounded up beyond the largest number of the type
        return b""
