"""NumPy's .npz archives as weights: arrays by name, read in place where the archive holds them as they are.

An array that is uncompressed, in row-major order and little-endian becomes external data in the archive itself; all
others are read. NumPy writes the narrow types of ml_dtypes without a name: such arrays come back as bit patterns, whose
type is only known from the tensor that they replace.
"""

import io
import zipfile
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
import onnx
from numpy.lib import format as npy

from onnxlab import dtypes
from onnxlab.errors import LoadError, SaveError
from onnxlab.formats.arrays import write_arrays
from onnxlab.graph.protos import external_data, tensors
from onnxlab.graph.protos.external_data import ExternalData
from onnxlab.limits import claim

_LOCAL_HEADER: Final = 30
_BITS: Final = {1: dtypes.UINT8, 2: dtypes.UINT16}
_ENCRYPTED: Final = 1


class Archive(NamedTuple):
    """The entries of a file.

    Attributes:
        tensors: tensors by name, in file order.
        untyped: names of tensors that are bit patterns, of a type that the file does not give.
    """

    tensors: dict[str, onnx.TensorProto]
    untyped: frozenset[str]


class _Header(NamedTuple):
    shape: tuple[int, ...]
    fortran: bool
    dtype: "np.dtype[Any]"
    length: int  # bytes in front of the elements


def begins_with_array(head: bytes) -> bool:
    """Tell whether the first entry of a zip archive, by its local header, is an array."""
    length = int.from_bytes(head[26:28], "little")
    return head[_LOCAL_HEADER : _LOCAL_HEADER + length].endswith(b".npy")


def read(path: Path, label: str = "") -> Archive:
    """The arrays of a file as tensors; `label` is the name of the file in messages.

    Raises:
        LoadError: the file is no such archive, is damaged, holds Python objects or types that ONNX does not have, or
            does not fit into memory.
    """
    descriptor = external_data.open_confined(path.parent, path.name, path.name)
    with open(descriptor, "rb") as file:
        return _archive(file, path.name, label or str(path))


def held(data: bytes, label: str) -> Archive:
    """The arrays of an archive that is in memory, with their elements; raises LoadError as `read` does."""
    return _archive(io.BytesIO(data), None, label)


def _archive(file: IO[bytes], location: str | None, label: str) -> Archive:
    """All arrays; those that the file called `location` holds as ONNX stores them become external data in it."""
    try:
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            names = [entry.filename.removesuffix(".npy") for entry in entries]
            if len(set(names)) < len(names):
                raise ValueError("a name stands in it twice")
            rows = [_tensor(archive, file, entry, location) for entry in entries]
    except LoadError:
        raise
    except MemoryError:
        raise LoadError(f"{label} holds arrays that do not fit into memory") from None
    except Exception as error:  # zipfile, zlib, ast and NumPy raise a dozen kinds of errors for other files
        why = error or type(error).__name__
        raise LoadError(f"{label} is no .npz file that can be read: {why}") from None
    untyped = frozenset(tensor.name for tensor, bits in rows if bits)
    return Archive({tensor.name: tensor for tensor, _ in rows}, untyped)


def _tensor(
    archive: zipfile.ZipFile, file: IO[bytes], entry: zipfile.ZipInfo, location: str | None
) -> tuple[onnx.TensorProto, bool]:
    """One array, and whether it is a bit pattern; raises errors of NumPy, zipfile and this module for bad arrays."""
    name = entry.filename.removesuffix(".npy")
    if not entry.filename.endswith(".npy"):
        raise ValueError(f"{entry.filename!r:.200} in it is no array")
    if entry.flag_bits & _ENCRYPTED:
        raise ValueError(f"{name!r:.200} in it is encrypted")
    with archive.open(entry) as packed:
        header = _header(packed, entry, name)
        bits = header.dtype.kind == "V"
        elem_type = _elem_type(header.dtype, name)
        if location is not None and _lies_as_it_is(entry, header) and elem_type != dtypes.STRING:
            tensor = onnx.TensorProto(name=name, data_type=elem_type, dims=header.shape)
            start = data_start(file, entry) + header.length
            ExternalData(location, start, tensors.nbytes(tensor)).note(tensor)
            return tensor, bits
        claim(entry.file_size, f"the array {name!r:.200}")
        packed.seek(0)
        array = npy.read_array(packed, allow_pickle=False)
    if bits:
        array = np.ascontiguousarray(array).view(dtypes.to_numpy(elem_type))
    return tensors.from_array(array, name), bits


def _header(packed: IO[bytes], entry: zipfile.ZipInfo, name: str) -> _Header:
    """The header of an array; raises ValueError where the entry has fewer bytes than it says."""
    version = npy.read_magic(packed)
    shape, fortran, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(packed)
    length, claimed = packed.tell(), prod(shape) * dtype.itemsize
    if dtype.hasobject:
        raise ValueError(f"{name!r:.200} in it holds Python objects, which are not loaded")
    if len(shape) > 64 or min(shape, default=0) < 0 or claimed > entry.file_size - length:
        raise ValueError(f"{name!r:.200} should have {claimed:,} bytes, {entry.file_size - length:,} are there")
    return _Header(shape, fortran, dtype, length)


def _elem_type(dtype: "np.dtype[Any]", name: str) -> int:
    if dtype.kind == "V" and dtype.names is None and dtype.itemsize in _BITS:
        return _BITS[dtype.itemsize]
    try:
        return dtypes.from_numpy(dtype)
    except ValueError as error:
        raise ValueError(f"{name!r:.200} in it: {error}") from None


def _lies_as_it_is(entry: zipfile.ZipInfo, header: _Header) -> bool:
    """Whether the archive holds the elements as ONNX stores them."""
    row_major = not header.fortran or len(header.shape) <= 1
    little = header.dtype.itemsize == 1 or header.dtype.str[0] in "<|"
    return entry.compress_type == zipfile.ZIP_STORED and row_major and little and header.dtype.kind != "b"


def data_start(file: IO[bytes], entry: zipfile.ZipInfo) -> int:
    """The offset of an entry's bytes in the archive, after its local header; raises ValueError."""
    before = file.tell()
    file.seek(entry.header_offset)
    local = file.read(_LOCAL_HEADER)
    file.seek(before)
    if len(local) < _LOCAL_HEADER or not local.startswith(b"PK\x03\x04"):
        raise ValueError("an entry does not begin where the archive says")
    names = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    return entry.header_offset + _LOCAL_HEADER + names


def check(stored: Sequence[onnx.TensorProto]) -> None:
    """Raise SaveError where an archive has no place for a tensor; the message names it."""
    for tensor in stored:
        if "\0" in tensor.name or not tensor.name:
            raise SaveError(f"an .npz archive has no place for the name {tensor.name!r:.200}; rename the initializer")


def write(file: IO[bytes], stored: Sequence[onnx.TensorProto], base_dir: Path | None) -> None:
    """Write tensors in the order given, as `numpy.savez` does, but with only one at a time in memory.

    Raises:
        SaveError: an archive has no place for one of the tensors.
        LoadError: the data of a tensor cannot be read.
    """
    check(stored)
    write_arrays(file, ((tensor.name, tensors.to_array(tensor, base_dir)) for tensor in stored))
