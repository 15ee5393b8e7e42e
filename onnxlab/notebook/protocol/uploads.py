"""Files that were chosen in the browser: they arrive as bytes, piece by piece, and never become paths."""

import base64
import binascii
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from onnxlab.errors import EditError, LoadError
from onnxlab.formats.arrays import read_arrays
from onnxlab.graph.protos import tensors
from onnxlab.model.opening import load
from onnxlab.notebook.protocol.messages import ProtocolError

if TYPE_CHECKING:
    from onnxlab.model import Model

MOST = 1 << 29
"""Bytes that the files of a view may have together."""


@dataclass(slots=True)
class Upload:
    """A file as it was chosen: its name is only for showing."""

    name: str
    data: bytearray
    _model: "Model | None" = field(default=None, repr=False)

    def opened(self) -> "Model":
        """The model in the file, shared by all callers, for reading. Raises LoadError where the file is no model."""
        if self._model is None:
            self._model = load(bytes(self.data))
        return self._model

    def taken(self) -> "Model":
        """The model in the file, for the caller alone. Raises LoadError where the file is no model."""
        model, self._model = self.opened(), None
        return model

    def array(self, name: str = "") -> "np.ndarray[Any, Any]":
        """The tensor in a .npy, .npz (the array called `name`, or its only one) or .pb file.

        Raises:
            EditError: the file has no such tensor, or holds Python objects.
        """
        try:
            if self.name.endswith(".pb"):
                return tensors.to_array(onnx.TensorProto.FromString(bytes(self.data)))
            arrays = read_arrays(io.BytesIO(self.data), self.name, MOST)
        except LoadError as error:
            raise EditError(f"{error}; choose a .npy or .pb file") from None
        except (ValueError, OSError, DecodeError, MemoryError) as error:
            raise EditError(
                f"{self.name} holds no tensor that can be read: {error}; choose a .npy or .pb file"
            ) from None
        if isinstance(arrays, np.ndarray):
            return arrays
        if name in arrays:
            return arrays[name]
        if len(arrays) != 1:
            raise EditError(f"{self.name} holds {len(arrays)} arrays, one is needed; choose a .npy file")
        return next(iter(arrays.values()))


class Uploads:
    """The files of one view, by the id that the page gave each; the oldest make room for new ones."""

    def __init__(self) -> None:
        self._files: dict[str, Upload] = {}

    def receive(self, file: str, name: str, offset: int, data: str) -> int:
        """Append the next piece of a file, in base64; returns the number of bytes received.

        Raises:
            ProtocolError: a piece before this one is missing, the piece is no base64, or there are too many bytes.
        """
        upload = Upload(name, bytearray()) if offset == 0 else self._files.get(file)
        if upload is None or offset != len(upload.data):
            received = 0 if upload is None else len(upload.data)
            raise ProtocolError("malformed", f"upload: {received} bytes of {name!r} are there, got a piece at {offset}")
        try:
            piece = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ProtocolError("malformed", f"upload: the piece of {name!r} is no base64: {error}") from None
        while self._size() + len(piece) > MOST and (oldest := next((key for key in self._files if key != file), None)):
            del self._files[oldest]
        if self._size() + len(piece) > MOST:
            self._files.pop(file, None)
            hint = "Read it in a cell: onnxlab.load('path.onnx') can be compared with, inserted or shown; np.load."
            raise ProtocolError("too_large", f"{name} has more than {MOST >> 20} MB", hint)
        upload.data += piece
        self._files[file] = upload
        return len(upload.data)

    def get(self, file: object) -> Upload:
        """A file by its id. Raises ProtocolError where the page sent no file with that id."""
        if not isinstance(file, str) or file not in self._files:
            raise ProtocolError("malformed", f"no file {file!r} was sent; choose it again")
        return self._files[file]

    def _size(self) -> int:
        return sum(len(upload.data) for upload in self._files.values())
