"""NumPy's .npy and .npz files: read without trust, nothing larger than what is there, and written without pickles."""

import zipfile
from collections.abc import Iterable
from math import prod
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.limits import format_bytes

Array = np.ndarray[Any, Any]


def read_arrays(file: BinaryIO, label: str, most: int | None = None) -> Array | dict[str, Array]:
    """The array of a .npy file, or those of an .npz file by name.

    Args:
        file: a seekable file at its beginning.
        label: the name of the file in messages.
        most: bytes that the arrays may have together; None for no limit but memory.

    Raises:
        LoadError: the file is neither, is cut off, holds Python objects, or is larger than it may be.
    """
    try:
        if zipfile.is_zipfile(file):
            return _archived(file, most)
        size = file.seek(0, 2)
        file.seek(0)
        return _array(file, size, most)
    except MemoryError:
        raise LoadError(f"{label} holds arrays that do not fit into memory") from None
    except Exception as error:  # zipfile, zlib, ast and NumPy raise a dozen kinds of errors for other files
        raise LoadError(f"{label} holds no array that can be read: {error or type(error).__name__}") from None


def write_arrays(file: IO[bytes], arrays: Iterable[tuple[str, Array]]) -> None:
    """Write an .npz file, one array after the other; no array of it is a pickle."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays:
            if array.dtype == object:
                array = array.astype(str)  # an array of objects would be a pickle
            elif dtypes.is_extension(array.dtype):
                array = array.view(f"V{array.itemsize}")  # NumPy would write float8_e5m2 as "<f1", which it cannot read
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                npy.write_array(entry, array, allow_pickle=False)


def with_type(array: Array, dtype: "np.dtype[Any] | None") -> Array:
    """An array that `write_arrays` wrote as bit patterns in its type, if it can be one; others as they are."""
    if array.dtype.kind == "V" and array.dtype.names is None and dtype is not None and dtypes.is_extension(dtype):
        return array.view(dtype) if array.dtype.itemsize == dtype.itemsize else array
    return array


def _archived(file: BinaryIO, most: int | None) -> dict[str, Array]:
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        total = sum(entry.file_size for entry in entries)
        if most is not None and total > most:
            raise ValueError(f"it unpacks to {format_bytes(total)}, {format_bytes(most)} is the limit")
        arrays = {}
        for entry in entries:
            with archive.open(entry) as packed:  # unpacks no more than the size counted above
                arrays[entry.filename.removesuffix(".npy")] = _array(packed, entry.file_size, most)
        return arrays


def _array(file: IO[bytes], size: int, most: int | None) -> Array:
    """The array in a .npy file of `size` bytes; raises ValueError where it has fewer elements than its header says."""
    version = npy.read_magic(file)
    header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = header(file)
    available, claimed = size - file.tell(), prod(shape) * max(dtype.itemsize, 1)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are not loaded")
    if not 0 <= claimed <= available:
        raise ValueError(f"its header says {claimed:,} bytes, {available:,} are there")
    if most is not None and claimed > most:
        raise ValueError(f"it has {format_bytes(claimed)}, {format_bytes(most)} is the limit")
    file.seek(0)
    return npy.read_array(file, allow_pickle=False)
