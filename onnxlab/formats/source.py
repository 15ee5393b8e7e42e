"""The source of a model: its file, the state that the file was in, the bytes as loaded."""

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import onnx

from onnxlab.formats import canonical
from onnxlab.formats.external_data_copies import Moved
from onnxlab.formats.storage import Layout

T = TypeVar("T")

LARGEST = (1 << 31) - 1
"""The most bytes that a protobuf message may have."""


ModelSource = str | PathLike[str] | bytes | onnx.ModelProto
"""What a model can be loaded from."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The state of a file, compared with another state without reading the file."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    def same_content(self, other: "Stamp") -> bool:
        """Whether the file was not written in between; its mode and links may have changed."""
        ours = (self.device, self.inode, self.size, self.modified_ns)
        return ours == (other.device, other.inode, other.size, other.modified_ns)

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """The stamp of a file from its status."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class Source:
    """The file of a model, to load from and save to.

    Attributes:
        path: the file that the model was last read from or written to, None for bytes and protos.
        base_dir: the folder of its external data, None where there is none.
        origin, stamp: the file that holds the bytes as loaded, and its state then.
        data: the bytes as loaded, where no file has them.
        disk: the state of the file at `path` when it was last read or written here.
        layout: tensors of the live model whose bytes the last save put into data files.
        moved: new places of external data that the last save moved.
        origin_format: the format of the bytes as loaded, "onnx" for protobuf's binary one.
        form: the format of the file at `path` when it was last read or written here.
        inline: whether the last save took all external data into the model's file.
        strings: {stand-in in the live model: the bytes of a string that is no UTF-8}.
        extra: content of the file besides the model, for its format.
        read_only: why the model must not be edited, "" where it may.
        uninferred: why inference does not run on its operators, "" where it does.
        digest: SHA-256 of the file in the state `disk`, None where it was not computed while reading.
    """

    path: Path | None = None
    base_dir: Path | None = None
    origin: Path | None = None
    stamp: Stamp | None = None
    data: bytes | None = None
    disk: Stamp | None = None
    layout: Layout = field(default_factory=dict)
    moved: Moved = field(default_factory=dict)
    origin_format: str = "onnx"
    form: str = "onnx"
    inline: bool = False
    strings: Mapping[str, bytes] = field(default_factory=dict)
    digest: str | None = None
    extra: Any = None
    read_only: str = ""
    uninferred: str = ""

    def with_strings(self, strings: Mapping[str, bytes]) -> "Source":
        """This source, for a model that also has stand-ins for these strings now."""
        return replace(self, strings={**strings, **self.strings}) if strings else self

    def original(self) -> bytes | None:
        """The bytes that the model was loaded from, None where the file changed or was removed.

        A model without net edits is saved with these bytes. Where they are gone, serializing the model gives the same
        fields, and the same bytes for files that protobuf itself wrote.
        """
        return self._read(lambda file: file.read()) if self.data is None else self.data

    @property
    def size(self) -> int | None:
        """Bytes of the model as loaded, None where they are not known."""
        if self.data is not None:
            return len(self.data)
        return None if self.stamp is None else self.stamp.size

    def is_canonical(self) -> bool:
        """Whether the file at `origin` is as it was loaded, and parsing and serializing it gives the same bytes."""
        if self.origin_format != "onnx" or self.stamp is None:
            return False
        size = self.stamp.size
        return self._read(lambda file: canonical.is_canonical(file, size)) or False

    def _read(self, read: Callable[[BinaryIO], T]) -> T | None:
        """The result of `read` on the file at `origin`, None where it is not as it was loaded."""
        if self.origin is None or self.stamp is None:
            return None
        with contextlib.suppress(OSError), self.origin.open("rb") as file:
            before = Stamp.of(os.fstat(file.fileno()))
            result = read(file)
            if before == self.stamp == Stamp.of(os.fstat(file.fileno())):
                return result
        return None
