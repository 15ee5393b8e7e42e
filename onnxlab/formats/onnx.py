"""Reading model files, binary or text, to a ModelProto, without the external data beside them. `saving.py` writes.

Nothing is checked here but that the bytes are a model: a file with faults, or of an IR or opset newer than the onnx
package knows, opens, so that it can be looked at and mended.
"""

import contextlib
import difflib
import hashlib
import os
import stat
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from onnxlab.errors import LoadError
from onnxlab.formats import foreign, identify, textual
from onnxlab.formats.paths import PathProblem, absolute
from onnxlab.formats.source import LARGEST, Source, Stamp
from onnxlab.garbage_collection import about_to_hold

_LEAN = 128
"""Bytes of a file for each of its nodes up to which hashing it is next to nothing beside opening it."""


def read(source: str | os.PathLike[str] | bytes | onnx.ModelProto) -> tuple[onnx.ModelProto, Source]:
    """Read a model without its external data.

    Args:
        source: a path, the bytes of a file, or a ModelProto, which is returned itself.

    Strings that are no UTF-8 have stand-ins in the model that is returned, as `Source.strings` says.

    Raises:
        LoadError: there is no such file, or it is no model; the message says what it is instead.
    """
    if isinstance(source, onnx.ModelProto):
        return source, Source(strings=foreign.replace(source))
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        model = decode(data, None)
        return model, Source(kept=data, origin_format=format_of(data), strings=_stand_ins(model, data))
    if not isinstance(source, str | os.PathLike):
        raise LoadError(f"a model is loaded from a path, bytes or a ModelProto, not from {type(source).__name__}")
    try:
        path = absolute(source)
    except PathProblem as problem:
        raise LoadError(f"cannot load {str(source)!r:.1000}: {problem}") from None
    data, stamp = _contents(path)
    model = decode(data, path)
    form, strings = format_of(data), _stand_ins(model, data)
    lean = len(data) <= _LEAN * len(model.graph.node)
    digest = hashlib.sha256(data).hexdigest() if lean else None
    return model, Source(
        path, path.parent, path, stamp, disk=stamp, origin_format=form, form=form, strings=strings, digest=digest
    )


def _stand_ins(model: onnx.ModelProto, data: bytes) -> dict[str, bytes]:
    return foreign.replace(model, data if format_of(data) == "onnx" else None)


def parse(data: bytes, label: str) -> onnx.ModelProto:
    """The ModelProto that `data` is; `label` stands for it in the message of a LoadError."""
    about_to_hold(len(data))
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise LoadError(f"cannot load {label}: {identify.describe(data)}") from None
    if not _is_model(model):
        raise LoadError(f"cannot load {label}: {identify.describe(data)}")
    return model


def decode(data: bytes, path: Path | None) -> onnx.ModelProto:
    """The ModelProto in the bytes of a file: its content says in which format, else its name; raises LoadError."""
    label = str(path or f"these {len(data)} bytes")
    form = textual.by_content(data) or (textual.by_suffix(path) if identify.is_text(data) else None)
    if form is None:
        return parse(data, label)
    try:
        model = textual.decode(data, form)
    except LoadError as error:
        raise LoadError(f"cannot load {label}: {error}") from error
    if not _is_model(model):
        raise LoadError(f"cannot load {label}: it is {form.name} without a graph")
    return model


def format_of(data: bytes) -> str:
    """The name of the format that the bytes of a model are in."""
    form = textual.by_content(data)
    return form.name if form else "onnx"


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
    except LoadError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise LoadError(_missing(path)) from None
    except IsADirectoryError:
        raise LoadError(_directory(path)) from None
    except PermissionError:
        raise LoadError(f"cannot load {path}: no permission to read it") from None
    except OSError as error:
        raise LoadError(f"cannot load {path}: {error.strerror or error}") from error


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
