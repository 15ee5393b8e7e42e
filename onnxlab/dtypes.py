"""ONNX element types, their short names and the NumPy dtypes that hold them.

An element type is the int of `TensorProto.DataType`. The ints are written down here, so that neither onnx nor
ml_dtypes is imported until one of the exotic types is needed; a test compares them with onnx.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Final

import numpy as np

UNDEFINED: Final = 0
FLOAT: Final = 1
UINT8: Final = 2
INT8: Final = 3
UINT16: Final = 4
INT16: Final = 5
INT32: Final = 6
INT64: Final = 7
STRING: Final = 8
BOOL: Final = 9
FLOAT16: Final = 10
DOUBLE: Final = 11
UINT32: Final = 12
UINT64: Final = 13
COMPLEX64: Final = 14
COMPLEX128: Final = 15
BFLOAT16: Final = 16
FLOAT8E4M3FN: Final = 17
FLOAT8E4M3FNUZ: Final = 18
FLOAT8E5M2: Final = 19
FLOAT8E5M2FNUZ: Final = 20
UINT4: Final = 21
INT4: Final = 22
FLOAT4E2M1: Final = 23
FLOAT8E8M0: Final = 24
UINT2: Final = 25
INT2: Final = 26
FLOAT6E2M3: Final = 27
FLOAT6E3M2: Final = 28

# element type: (short name, name in onnx.proto, bits of one stored element, attribute of numpy or ml_dtypes)
_TABLE: Final[dict[int, tuple[str, str, int, str]]] = {
    FLOAT: ("float32", "FLOAT", 32, "float32"),
    UINT8: ("uint8", "UINT8", 8, "uint8"),
    INT8: ("int8", "INT8", 8, "int8"),
    UINT16: ("uint16", "UINT16", 16, "uint16"),
    INT16: ("int16", "INT16", 16, "int16"),
    INT32: ("int32", "INT32", 32, "int32"),
    INT64: ("int64", "INT64", 64, "int64"),
    STRING: ("string", "STRING", 0, "object_"),
    BOOL: ("bool", "BOOL", 8, "bool_"),
    FLOAT16: ("float16", "FLOAT16", 16, "float16"),
    DOUBLE: ("float64", "DOUBLE", 64, "float64"),
    UINT32: ("uint32", "UINT32", 32, "uint32"),
    UINT64: ("uint64", "UINT64", 64, "uint64"),
    COMPLEX64: ("complex64", "COMPLEX64", 64, "complex64"),
    COMPLEX128: ("complex128", "COMPLEX128", 128, "complex128"),
    BFLOAT16: ("bfloat16", "BFLOAT16", 16, "bfloat16"),
    FLOAT8E4M3FN: ("float8e4m3fn", "FLOAT8E4M3FN", 8, "float8_e4m3fn"),
    FLOAT8E4M3FNUZ: ("float8e4m3fnuz", "FLOAT8E4M3FNUZ", 8, "float8_e4m3fnuz"),
    FLOAT8E5M2: ("float8e5m2", "FLOAT8E5M2", 8, "float8_e5m2"),
    FLOAT8E5M2FNUZ: ("float8e5m2fnuz", "FLOAT8E5M2FNUZ", 8, "float8_e5m2fnuz"),
    UINT4: ("uint4", "UINT4", 4, "uint4"),
    INT4: ("int4", "INT4", 4, "int4"),
    FLOAT4E2M1: ("float4e2m1", "FLOAT4E2M1", 4, "float4_e2m1fn"),
    FLOAT8E8M0: ("float8e8m0", "FLOAT8E8M0", 8, "float8_e8m0fnu"),
    UINT2: ("uint2", "UINT2", 2, "uint2"),
    INT2: ("int2", "INT2", 2, "int2"),
    FLOAT6E2M3: ("float6e2m3", "FLOAT6E2M3", 6, "float6_e2m3fn"),
    FLOAT6E3M2: ("float6e3m2", "FLOAT6E3M2", 6, "float6_e3m2fn"),
}

ELEM_TYPES: Final[tuple[int, ...]] = tuple(_TABLE)
"""Every element type but UNDEFINED, in the order of onnx.proto."""

_SHORT: Final = {UNDEFINED: "undefined"} | {elem_type: row[0] for elem_type, row in _TABLE.items()}
_PROTO: Final = {UNDEFINED: "UNDEFINED"} | {elem_type: row[1] for elem_type, row in _TABLE.items()}


def _spellings() -> dict[str, int]:
    """Every accepted lower-case name: ours, onnx.proto's and the NumPy dtype's."""
    spellings = {"str": STRING, "object": STRING, "undefined": UNDEFINED}
    for elem_type, (short, proto, _bits, numpy_name) in _TABLE.items():
        for text in (short, proto.lower(), numpy_name, numpy_name.rstrip("_"), numpy_name.replace("_", "")):
            spellings[text] = elem_type
    return spellings


_SPELLINGS: Final = _spellings()


def name(elem_type: int) -> str:
    """Return the short name: "float32", "bfloat16", "int4", "string", "undefined", or "elem_type 99"."""
    return _SHORT.get(elem_type) or f"elem_type {elem_type}"


def proto_name(elem_type: int) -> str:
    """Return the name in onnx.proto: "FLOAT", "BFLOAT16". Raises ValueError for any other int."""
    if elem_type not in _PROTO:
        raise ValueError(f"{elem_type} is no element type: TensorProto.DataType goes from 0 to {max(_PROTO)}")
    return _PROTO[elem_type]


def parse(spec: str | int | np.dtype[Any] | type) -> int:
    """Return the element type that `spec` means.

    Args:
        spec: a name ("float32", "FLOAT", "tensor(float)", "float8_e4m3fn"), a NumPy dtype or scalar type,
            or an element type.

    Raises:
        ValueError: `spec` means none; the message lists the names.
    """
    if isinstance(spec, (int, np.integer)) and not isinstance(spec, bool):
        if int(spec) in _SHORT:
            return int(spec)
    elif isinstance(spec, str):
        text = spec.strip().lower()
        if text.startswith("tensor(") and text.endswith(")"):
            text = text[7:-1]
        if text in _SPELLINGS:
            return _SPELLINGS[text]
    elif isinstance(spec, (np.dtype, type)):
        return from_numpy(spec)
    raise ValueError(f"{spec!r} is no ONNX element type; use one of {', '.join(_SHORT.values())}")


@cache
def to_numpy(elem_type: int) -> np.dtype[Any]:
    """Return the NumPy dtype that holds elements of this type, one element per item (strings: object).

    Raises:
        ValueError: the type is UNDEFINED or unknown.
    """
    row = _TABLE.get(elem_type)
    if row is None:
        raise ValueError(f"{name(elem_type)} has no NumPy dtype")
    if hasattr(np, row[3]):
        scalar: type = getattr(np, row[3])
    else:
        import ml_dtypes

        scalar = getattr(ml_dtypes, row[3])
    return np.dtype(scalar)


def is_extension(dtype: np.dtype[Any]) -> bool:
    """True for the narrow types of ml_dtypes, which NumPy's own files have no name for."""
    return type(dtype).__module__ != "numpy.dtypes"


def from_numpy(dtype: np.dtype[Any] | type | str) -> int:
    """Return the element type of arrays of `dtype`; object, str and bytes arrays hold strings.

    Raises:
        ValueError: ONNX has no such type (datetimes, records, long doubles).
    """
    dtype = np.dtype(dtype)
    elem_type = _of_numpy(dtype)
    if elem_type is None:
        raise ValueError(f"NumPy dtype {dtype} is no ONNX element type; convert the array first")
    return elem_type


@lru_cache(256)
def _of_numpy(dtype: np.dtype[Any]) -> int | None:
    return STRING if dtype.kind in "OUST" else _SPELLINGS.get(dtype.name)


def bits(elem_type: int) -> int:
    """Return the bits that one element takes in a TensorProto; 0 for strings, whose length varies.

    Raises:
        ValueError: the type is UNDEFINED or unknown.
    """
    row = _TABLE.get(elem_type)
    if row is None:
        raise ValueError(f"{name(elem_type)} has no size")
    return row[2]


def is_float(elem_type: int) -> bool:
    """True for the real floating-point types, the 4-, 6- and 8-bit ones included."""
    return name(elem_type).startswith(("float", "bfloat"))


def is_integer(elem_type: int) -> bool:
    """True for signed and unsigned integers of every width; not for bool."""
    return name(elem_type).startswith(("int", "uint"))
