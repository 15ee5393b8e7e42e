"""Reading and writing .onnx files: bytes to a ModelProto and back, with the external data beside them.

Nothing is checked here but that the bytes are a model: a file with faults, or of an IR or opset newer than the onnx
package knows, opens, so that it can be looked at and mended.
"""

import contextlib
import difflib
import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, EncodeError

from onnxlab.errors import LoadError, SaveError
from onnxlab.formats import identify
from onnxlab.formats.atomic import Replacement, real_target
from onnxlab.graph import external_data

LARGEST = (1 << 31) - 1
"""The most bytes that a protobuf message may have."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells one state of a file from another without reading it."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model came from and goes to.

    Attributes:
        path: the file it was read from or written to last, None for bytes and protos.
        base_dir: the folder that its external data is in, None where there is none.
        origin, stamp: the file that holds the bytes as loaded, and its state then.
        kept: the bytes as loaded, where no file has them.
    """

    path: Path | None = None
    base_dir: Path | None = None
    origin: Path | None = None
    stamp: Stamp | None = None
    kept: bytes | None = None

    def original(self) -> bytes | None:
        """The bytes that the model was loaded from, None where they are gone: the file changed or was removed.

        A model without net edits is saved with these; where they are gone, serialising it again gives the same
        fields, and for files that protobuf itself wrote the same bytes.
        """
        if self.kept is not None or self.origin is None or self.stamp is None:
            return self.kept
        with contextlib.suppress(OSError), self.origin.open("rb") as file:
            before = Stamp.of(os.fstat(file.fileno()))
            data = file.read()
            if before == self.stamp == Stamp.of(os.fstat(file.fileno())):
                return data
        return None


def read(source: str | os.PathLike[str] | bytes | onnx.ModelProto) -> tuple[onnx.ModelProto, Source]:
    """Read a model without its external data.

    Args:
        source: a path, the bytes of a file, or a ModelProto, which is returned as it is.

    Raises:
        LoadError: there is no such file, or it is no model; the message says what it is instead.
    """
    if isinstance(source, onnx.ModelProto):
        return source, Source()
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        return parse(data, f"these {len(data)} bytes"), Source(kept=data)
    if not isinstance(source, str | os.PathLike):
        raise LoadError(f"a model is loaded from a path, bytes or a ModelProto, not from {type(source).__name__}")
    path = Path(source).expanduser().absolute()
    data, stamp = _contents(path)
    return parse(data, str(source)), Source(path, path.parent, path, stamp)


def parse(data: bytes, label: str) -> onnx.ModelProto:
    """The ModelProto that `data` is; `label` stands for it in the message of a LoadError."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise LoadError(f"cannot load {label}: {identify.describe(data)}") from None
    if not _is_model(model):
        raise LoadError(f"cannot load {label}: {identify.describe(data)}")
    return model


def _is_model(model: onnx.ModelProto) -> bool:
    """Tell a model from other bytes that happen to parse: nearly any short string is some protobuf message."""
    if not model.HasField("graph"):
        return False
    graph = model.graph
    return bool(
        model.ir_version > 0 or model.opset_import or graph.node or graph.input or graph.output or graph.initializer
    )


def _contents(path: Path) -> tuple[bytes, Stamp]:
    """Bytes and state of a regular file below 2 GiB; raises LoadError for everything else."""
    try:
        # O_NONBLOCK: opening a FIFO must not wait for its writer
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise LoadError(f"cannot load {path}: it is no regular file")
            if status.st_size > LARGEST:
                raise LoadError(
                    f"cannot load {path}: it has {status.st_size:,} bytes, and protobuf cannot read a message of "
                    "2 GiB or more; a model of that size has its weights in external data"
                )
            return file.read(), Stamp.of(status)
    except FileNotFoundError:
        raise LoadError(_missing(path)) from None
    except IsADirectoryError:
        raise LoadError(_directory(path)) from None
    except PermissionError:
        raise LoadError(f"cannot load {path}: no permission to read it") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise LoadError(f"cannot load {path}: {getattr(error, 'strerror', None) or error}") from error


def _missing(path: Path) -> str:
    """The sentence for a path that leads nowhere, with names that are close to it."""
    if path.is_symlink():
        return f"cannot load {path}: it is a symbolic link to {os.readlink(path)}, which does not exist"
    if not path.parent.is_dir():
        return f"cannot load {path}: there is no folder {path.parent}"
    near = difflib.get_close_matches(path.name, _models_in(path.parent), cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"cannot load {path}: there is no such file{hint}"


def _directory(path: Path) -> str:
    names = _models_in(path)
    found = f"give one of the models in it: {', '.join(names[:5])}" if names else "give the path of a model file"
    return f"cannot load {path}: it is a folder; {found}"


def _models_in(folder: Path) -> list[str]:
    """Names of the .onnx files in a folder, none where it cannot be listed."""
    with contextlib.suppress(OSError):
        return sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".onnx"))
    return []


def write(
    model: onnx.ModelProto,
    path: str | os.PathLike[str],
    source: Source | None = None,
    original: bytes | None = None,
) -> Source:
    """Write a model, and into another folder its external data with it, all or nothing.

    The file keeps its mode and owner; where `path` is a symbolic link, what it points at is replaced. Data files
    are never overwritten by others: one that is there must have the same content.

    Args:
        model: what to write.
        path: where to.
        source: where it came from; its `original()` keeps giving the bytes as loaded.
        original: bytes to write instead of serialising `model`, when nothing changed.

    Returns:
        The source from now on, with `path` and its folder.

    Raises:
        SaveError: it could not be written; what was there before is still there.
    """
    source = source or Source()
    path = Path(path).expanduser().absolute()
    target = real_target(path)
    data = _serialised(model, path) if original is None else original
    if original is None and _is_same(source.origin, target):
        source = _detached(source)
    try:
        with Replacement() as files:
            if b"location" in data:  # no entry of external data without this key; the search takes no time
                _carry_external_data(model, source.base_dir, path.parent, files)
            files.write(target, data)
    except LoadError as error:
        raise SaveError(f"cannot save to {path}: {error}") from error
    except SaveError:
        raise
    except OSError as error:
        raise SaveError(f"cannot save to {path}: {error.strerror or error}; nothing was changed") from error
    if original is not None:
        return Source(path, path.parent, path, Stamp.of(target.stat()))
    return replace(source, path=path, base_dir=path.parent)


def _is_same(one: Path | None, other: Path) -> bool:
    """Whether two paths lead to one file or folder that exists."""
    with contextlib.suppress(OSError):
        return one is not None and one.samefile(other)
    return False


def _serialised(model: onnx.ModelProto, path: Path) -> bytes:
    try:
        data: bytes = model.SerializeToString()
    except (EncodeError, ValueError) as error:
        raise SaveError(
            f"cannot save to {path}: the model takes 2 GiB or more in one file, which protobuf cannot write; "
            f"keep large weights in external data ({error})"
        ) from None
    return data


def _detached(source: Source) -> Source:
    """The source when its file is about to be overwritten: the bytes are kept, unless protobuf gives them again."""
    data = source.original()
    if data is None or onnx.ModelProto.FromString(data).SerializeToString() == data:
        return replace(source, origin=None, stamp=None)
    return replace(source, origin=None, stamp=None, kept=data)


def _carry_external_data(model: onnx.ModelProto, base_dir: Path | None, folder: Path, files: Replacement) -> None:
    """Copy the data files that `model` names from `base_dir` to `folder`, unless they are there already.

    A model that stays in its folder is not looked at: what is wrong with its data must not keep edits from being
    saved.

    Raises:
        LoadError: a file is missing or outside of `base_dir`.
        SaveError: another file of that name is in the way.
    """
    if _is_same(base_dir, folder):
        return
    for location, tensor in external_data.locations(model).items():
        target = folder / external_data.confined(folder, location, tensor)
        if base_dir is None:
            if not target.exists():
                raise SaveError(
                    f"tensor {tensor!r} has its data in {location!r}, which is not in {folder}: load the model by its "
                    "path, so that onnxlab can find the file, or put it there first"
                )
            continue
        descriptor = external_data.open_confined(base_dir, location, tensor)
        try:
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                files.copy(descriptor, target)
            elif not _same_content(descriptor, target):
                raise SaveError(
                    f"the weights go to {target}, where another file is already; move it away or save into another "
                    "folder"
                )
        finally:
            os.close(descriptor)


def _same_content(descriptor: int, target: Path) -> bool:
    """Compare an open file with another, by size and time first."""
    ours, theirs = os.fstat(descriptor), target.stat()
    if ours.st_size != theirs.st_size or not stat.S_ISREG(theirs.st_mode):
        return False
    if ours.st_mtime_ns == theirs.st_mtime_ns or os.path.samestat(ours, theirs):
        return True
    with open(descriptor, "rb", closefd=False) as one, target.open("rb") as other:
        while chunk := one.read(_CHUNK):
            if chunk != other.read(_CHUNK):
                return False
    return True
