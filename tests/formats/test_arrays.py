"""Files of NumPy arrays that lie, unpack to more than they may, or are none."""

import io
import zipfile
from typing import Any

import numpy as np
import pytest

from onnxlab.errors import EditError, LoadError
from onnxlab.formats.arrays import read_arrays
from onnxlab.notebook.protocol.uploads import Upload


def saved(array: Any, save: Any = np.save, **keywords: Any) -> bytes:
    file = io.BytesIO()
    save(file, array, **keywords)
    return file.getvalue()


def header(shape: Any, dtype: Any = "<f4") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", header((1 << 21,)) + bytes(1 << 23))
    return file.getvalue()


def test_arrays_and_archives_come_back() -> None:
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert np.array_equal(read_arrays(io.BytesIO(saved(array)), "a.npy"), array)
    assert np.array_equal(read_arrays(io.BytesIO(saved(array.T)), "a.npy"), array.T)
    arrays = read_arrays(io.BytesIO(saved(array, np.savez_compressed, other=array + 1)), "a.npz")
    assert np.array_equal(arrays["other"], array + 1)
    assert np.array_equal(arrays["arr_0"], array)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (header((10**12,)), "says 4,000,000,000,000 bytes, 0 are there"),
        (header((2**62, 2**62)), "are there"),
        (header((-1,)) + bytes(64), "are there"),
        (header((10**12,), "|S0"), "are there"),
        (header((2,)) + bytes(7), "says 8 bytes, 7 are there"),
        (header("(" * 5000 + ")" * 5000), "no array"),
        (saved(np.array([{}], object), allow_pickle=True), "Python objects"),
        (b"", "no array"),
        (b"PK\x05\x06" + bytes(18), None),
        (saved(np.ones(3), np.savez)[:-40], "no array"),
        (bomb(), "unpacks to 8.4 MB"),
    ],
)
def test_hostile_files_are_refused_before_anything_is_made(data: bytes, says: str) -> None:
    if says is None:
        assert read_arrays(io.BytesIO(data), "f") == {}
        return
    with pytest.raises(LoadError, match=says):
        read_arrays(io.BytesIO(data), "f", 1 << 20)
    if "unpacks" not in says:  # which is not too much for a view
        with pytest.raises(EditError):
            Upload("f.npy", bytearray(data)).array()
