"""The safetensors format: a header in JSON that says where each tensor lies, then their bytes.

Reading makes no copy: tensors come back as TensorProtos whose external data is the file itself.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import onnx

from onnxlab import dtypes
from onnxlab.errors import LoadError, SaveError
from onnxlab.graph.protos import external_data, tensors
from onnxlab.graph.protos.external_data import ExternalData

LONGEST_HEADER: Final = 100_000_000
"""Bytes of the longest header, as in the format's own library."""

_METADATA: Final = "__metadata__"
# element type: name in the format, in the order in which the format's own library sorts tensors
_NAMES: Final = {
    dtypes.UINT64: "U64",
    dtypes.INT64: "I64",
    dtypes.DOUBLE: "F64",
    dtypes.COMPLEX64: "C64",
    dtypes.FLOAT: "F32",
    dtypes.UINT32: "U32",
    dtypes.INT32: "I32",
    dtypes.BFLOAT16: "BF16",
    dtypes.FLOAT16: "F16",
    dtypes.UINT16: "U16",
    dtypes.INT16: "I16",
    dtypes.FLOAT8E8M0: "F8_E8M0",
    dtypes.FLOAT8E4M3FN: "F8_E4M3",
    dtypes.FLOAT8E5M2: "F8_E5M2",
    dtypes.INT8: "I8",
    dtypes.UINT8: "U8",
    dtypes.FLOAT4E2M1: "F4",
    dtypes.BOOL: "BOOL",
}
_ELEM_TYPES: Final = {name: elem_type for elem_type, name in _NAMES.items()}
_ORDER: Final = {elem_type: place for place, elem_type in enumerate(_NAMES)}


class TensorEntry(NamedTuple):
    """One tensor of a header; the beginning and end of its bytes are counted from the end of the header."""

    name: str
    elem_type: int
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """The header of a file.

    Attributes:
        entries: the tensors, in the order of the file.
        metadata: free text by key.
        start: the offset in the file at which the bytes of tensors begin.
    """

    entries: tuple[TensorEntry, ...]
    metadata: dict[str, str]
    start: int


def begins_like_one(head: bytes) -> bool:
    """Tell whether a file that begins with these bytes may be in the format.

    Args:
        head: the first bytes, 16 or more where the file has them.
    """
    return head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= LONGEST_HEADER


def read_header(file: IO[bytes], size: int, label: str) -> Header:
    """Read and check the header of a file.

    Args:
        file: the file, at its beginning.
        size: bytes of the file.
        label: the name of the file in messages.

    Raises:
        LoadError: the file is of another format, is cut off, or contradicts itself; the message says where.
    """
    first = file.read(8)
    length = int.from_bytes(first, "little")
    if len(first) < 8 or not 2 <= length <= min(LONGEST_HEADER, size - 8):
        actual = max(size - 8, 0)
        raise LoadError(
            f"{label} is no safetensors file: its header should have {length:,} bytes, {actual:,} are there"
        )
    try:
        rows = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_without_doubles)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{label} is no safetensors file: its header is no JSON object: {error}") from None
    if not isinstance(rows, dict):
        raise LoadError(f"{label} is no safetensors file: its header is a JSON {type(rows).__name__}, not an object")
    metadata = rows.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise LoadError(f"{label}: {_METADATA} of its header holds something else than texts")
    entries = [_entry(name, row, label) for name, row in rows.items()]
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    _check_layout(entries, size - 8 - length, label)
    return Header(tuple(entries), metadata, 8 + length)


def _without_doubles(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key stands in it twice")
    return result


def _entry(name: str, row: Any, label: str) -> TensorEntry:
    """One row of the header, checked by itself; raises LoadError."""
    if not isinstance(row, dict) or row.keys() != {"dtype", "shape", "data_offsets"}:
        raise LoadError(f"{label}: the header says of {name!r:.200} something else than dtype, shape and data_offsets")
    elem_type = _ELEM_TYPES.get(row["dtype"]) if isinstance(row["dtype"], str) else None
    if elem_type is None:
        raise LoadError(f"{label}: {name!r:.200} has the dtype {row['dtype']!r:.60}, which ONNX has no type for")
    shape, offsets = row["shape"], row["data_offsets"]
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise LoadError(f"{label}: shape or data_offsets of {name!r:.200} are no lists of whole numbers from 0 on")
    nbits = math.prod(shape) * dtypes.bits(elem_type)
    if offsets[1] - offsets[0] != nbits / 8:
        typed = f"{dtypes.name(elem_type)}{shape!r:.200}"
        raise LoadError(
            f"{label}: {name!r:.200} lies in {offsets[1] - offsets[0]:,} bytes, {typed} takes {nbits / 8:,}"
        )
    return TensorEntry(name, elem_type, tuple(shape), *offsets)


def _are_sizes(items: Any) -> bool:
    return (
        isinstance(items, list)
        and len(items) <= 64
        and all(isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 1 << 62 for item in items)
    )


def _check_layout(entries: Sequence[TensorEntry], actual: int, label: str) -> None:
    """Refuse gaps, overlaps, and bytes that the file does not have, as the format's own library does."""
    position = 0
    for entry in entries:
        if entry.begin != position:
            raise LoadError(
                f"{label}: {entry.name!r:.200} begins at byte {entry.begin:,}, where {position:,} is the next"
            )
        position = entry.end
    if position != actual:
        raise LoadError(f"{label}: its tensors take {position:,} bytes, {actual:,} are there: it is cut off or damaged")


def read(path: Path, label: str = "") -> tuple[dict[str, onnx.TensorProto], dict[str, str]]:
    """The tensors of a file, as external data of that file in its folder, and its metadata.

    Raises:
        LoadError: see `read_header`; or the file cannot be opened.
    """
    descriptor = external_data.open_confined(path.parent, path.name, label or path.name)
    with open(descriptor, "rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        header = read_header(file, size, label or str(path))
    weights = {}
    for entry in header.entries:
        tensor = _described(entry)
        ExternalData(path.name, header.start + entry.begin, entry.end - entry.begin).note(tensor)
        weights[entry.name] = tensor
    return weights, header.metadata


def held(header: Header, data: bytes) -> dict[str, onnx.TensorProto]:
    """The tensors of a file that is in memory, with their bytes."""
    weights = {}
    for entry in header.entries:
        tensor = _described(entry)
        tensor.raw_data = data[header.start + entry.begin : header.start + entry.end]
        weights[entry.name] = tensor
    return weights


def _described(entry: TensorEntry) -> onnx.TensorProto:
    return onnx.TensorProto(name=entry.name, data_type=entry.elem_type, dims=entry.shape)


def in_order(stored: Iterable[onnx.TensorProto]) -> list[onnx.TensorProto]:
    """Tensors in the order in which the format's own library writes them: wide elements first, then by name."""
    return sorted(stored, key=lambda tensor: (_ORDER.get(tensor.data_type, len(_ORDER)), tensor.name.encode()))


def check(stored: Iterable[onnx.TensorProto]) -> None:
    """Raise SaveError where the format has no place for a tensor; the message names it."""
    for tensor in stored:
        if tensor.data_type not in _NAMES:
            raise SaveError(
                f"safetensors has no {dtypes.name(tensor.data_type)}, which {tensor.name!r:.200} holds; "
                "leave it out (names=...) or save the model as .onnx"
            )
        if math.prod(tensor.dims) * dtypes.bits(tensor.data_type) % 8:
            raise SaveError(f"safetensors has no half bytes, which {tensor.name!r:.200} ends with; leave it out")
        if tensor.name == _METADATA:
            raise SaveError(f"safetensors keeps the name {_METADATA!r} for itself; rename the initializer")


def write(
    file: IO[bytes], stored: Sequence[onnx.TensorProto], base_dir: Path | None, metadata: Mapping[str, str]
) -> None:
    """Write tensors in the order given, with only one at a time in memory.

    Raises:
        SaveError: the format has no place for one of the tensors.
        LoadError: the data of a tensor cannot be read.
    """
    check(stored)
    rows: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    position = 0
    for tensor in stored:
        nbytes = tensors.nbytes(tensor)
        rows[tensor.name] = {
            "dtype": _NAMES[tensor.data_type],
            "shape": list(tensor.dims),
            "data_offsets": [position, position + nbytes],
        }
        position += nbytes
    try:
        header = json.dumps(rows, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise SaveError("a name or metadata holds text that is no UTF-8, which safetensors cannot hold") from None
    header += b" " * (-len(header) % 8)
    file.write(len(header).to_bytes(8, "little") + header)
    for tensor in stored:
        file.write(tensors.to_bytes(tensor, base_dir))
