"""Reading model files of any format to a ModelProto, without the external data beside them. `saving.py` writes.

The only check here is that the bytes are a model: a file with faults, or of an IR or opset version newer than the onnx
package knows, opens, so that it can be inspected and repaired.
"""

import contextlib
import difflib
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any

import onnx

from onnxlab.errors import LoadError
from onnxlab.formats import foreign, identify, registry
from onnxlab.formats.base.format import HEAD, Content, Format, OpenedFile
from onnxlab.formats.paths import PathProblem, absolute
from onnxlab.formats.source import LARGEST, Source, Stamp

_LEAN = 128
"""Bytes for each node up to which a file is hashed, which then takes next to no time compared with opening it."""


Given = str | os.PathLike[str] | bytes | onnx.ModelProto


def read(source: Given, trust: bool = False, inputs: Sequence[Any] = ()) -> tuple[onnx.ModelProto, Source]:
    """Read a model without its external data.

    Args:
        source: a path, the bytes of a file, or a ModelProto, which is returned itself.
        trust: whether code of the file may run, for formats that are converted in this way.
        inputs: types of the inputs of such a file, or arrays.

    Strings that are no UTF-8 have stand-ins in the model that is returned, as `Source.strings` says.

    Raises:
        LoadError: there is no such file, or the file is no model; the message says what it is instead.
    """
    if isinstance(source, onnx.ModelProto):
        _refuse_inputs(inputs, "a ModelProto")
        return source, Source(strings=foreign.replace(source))
    if trust and (converted := _converted(source, inputs)) is not None:
        source, inputs = converted, ()
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        content = Content.of(data)
        form, opened = _opened(content, inputs)
        strings = _stand_ins(opened.model, content, form)
        return opened.model, Source(
            data=data,
            origin_format=form.name,
            form=form.name,
            strings=strings,
            extra=opened.extra,
            read_only=opened.read_only,
            uninferred=form.uninferred,
        )
    path = _path(source)
    with _contents(path) as (content, stamp):
        form, opened = _opened(content, inputs)
        model, strings = opened.model, _stand_ins(opened.model, content, form)
        lean = content.size <= _LEAN * len(model.graph.node)
        digest = hashlib.sha256(content.data).hexdigest() if lean else None
    return model, Source(
        path, path.parent, path, stamp, disk=stamp, origin_format=form.name, form=form.name, strings=strings,
        digest=digest, extra=opened.extra, read_only=opened.read_only, uninferred=form.uninferred,
    )  # fmt: skip


def _path(source: Any) -> Path:
    if not isinstance(source, str | os.PathLike):
        hint = "; give what its read() returns" if hasattr(source, "read") else ""
        hint = hint or ("; give onnx.helper.make_model(graph)" if isinstance(source, onnx.GraphProto) else "")
        hint = hint or ("; give its proto" if isinstance(getattr(source, "proto", None), onnx.ModelProto) else "")
        kind = type(source).__name__
        raise LoadError(f"a model is loaded from a path, bytes or a ModelProto, not from {kind}{hint}")
    try:
        return absolute(source)
    except PathProblem as problem:
        raise LoadError(f"cannot load {str(source)!r:.1000}: {problem}") from None


def _converted(source: Given, inputs: Sequence[Any]) -> bytes | None:
    """The ONNX file that the program of a format converts a file to; None for formats that are read here."""
    if isinstance(source, bytes | bytearray | memoryview):
        return _made(Content.of(bytes(source)), inputs)
    with _contents(_path(source)) as (content, _):
        return _made(content, inputs)


def _made(content: Content, inputs: Sequence[Any]) -> bytes | None:
    form = registry.by_content(content)
    if form is None or form.convert is None:
        return None
    try:
        return form.convert(content, inputs)
    except LoadError as error:
        raise LoadError(f"cannot load {content.label}: {error}") from error


def _stand_ins(model: onnx.ModelProto, content: Content, form: Format) -> dict[str, bytes]:
    return foreign.replace(model, content.data if form.name == "onnx" else None)


def decode(data: bytes, path: Path | None) -> onnx.ModelProto:
    """The ModelProto in the bytes of a file, whose format its content or else its name gives; raises LoadError."""
    return _opened(Content.of(data, path))[1].model


def _opened(content: Content, inputs: Sequence[Any] = ()) -> tuple[Format, OpenedFile]:
    form = registry.by_content(content) or registry.by_suffix(content.path)
    if form is None or form.read is None:
        raise LoadError(f"cannot load {content.label}: {identify.describe(content.head)}")
    try:
        opened = form.read(content)
        _refuse_inputs(inputs, form.title)
    except LoadError as error:
        raise LoadError(f"cannot load {content.label}: {error}") from error
    return form, opened


def _refuse_inputs(inputs: Sequence[Any], kind: str) -> None:
    """Raise LoadError for types of inputs that nothing asks for."""
    if inputs:
        raise LoadError(f"inputs= (--input) gives a TorchScript file types that it lacks, this is {kind}: leave it out")


@contextlib.contextmanager
def _contents(path: Path) -> Iterator[tuple[Content, Stamp]]:
    """Content and state of a regular file; raises LoadError for everything else."""
    try:
        # O_NONBLOCK: opening a FIFO must not wait for its writer
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise LoadError(f"cannot load {path}: it is no regular file")
            head = file.read(HEAD)
            yield Content(head, status.st_size, path, lambda: _all(file, status.st_size)), Stamp.of(status)
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


def _all(file: BufferedReader, size: int) -> bytes:
    if size > LARGEST:
        raise LoadError(
            f"it has {size:,} bytes, and protobuf cannot read a message of 2 GiB or more; a model of that size has its "
            "weights in external data"
        )
    unbuffered: Any = file.raw  # what is in the buffer would be joined to the rest, by a copy of all
    unbuffered.seek(0)
    data: bytes = unbuffered.readall()
    return data


def _missing(path: Path) -> str:
    """The sentence for a path that leads nowhere, with names that are close to it."""
    if re.search(r"(?:^|/)(?:https?|ftp|s3|gs|hf):/", path.as_posix()):
        return f"cannot load {path}: nothing is fetched from the network; download the file, and give its path"
    if path.is_symlink():
        return f"cannot load {path}: it is a symbolic link to {os.readlink(path)}, which does not exist"
    if not path.parent.is_dir():
        return f"cannot load {path}: there is no folder {path.parent}"
    near = difflib.get_close_matches(path.name, _models_in(path.parent), cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"cannot load {path}: there is no such file{hint}"


def _directory(path: Path) -> str:
    names = _models_in(path)
    advice = f"give one of the models in it: {', '.join(names[:5])}" if names else "give the path of a model file"
    return f"cannot load {path}: it is a folder; {advice}"


def _models_in(folder: Path) -> list[str]:
    """Names of the .onnx files in a folder, none where it cannot be listed."""
    with contextlib.suppress(OSError):
        return sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".onnx"))
    return []
