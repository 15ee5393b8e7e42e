"""Tensor data that lies in files beside the model: where it may lie, and reading it.

The names of these files come from the model, so they are not trusted. The rules are those of onnx's
ExternalDataSecurity: a relative path without `..`, to a regular file inside the model's folder, no link out of the
folder and no hard link (which could be any file), offset and length within the file. Symbolic links that stay inside
the folder are followed.

Bytes are read, not mapped: if another program truncated a mapped file, the process would die.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import numpy as np
import onnx

from onnxlab.errors import LoadError
from onnxlab.limits import claim

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
# O_NONBLOCK: opening a FIFO must not wait for its writer
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class ExternalData:
    """The place of a tensor's bytes, as its `external_data` gives it; `length` None means to the end of the file."""

    location: str
    offset: int = 0
    length: int | None = None

    @classmethod
    def of(cls, tensor: onnx.TensorProto) -> "ExternalData":
        """Read the entries of a tensor. Unknown keys are left alone.

        Raises:
            LoadError: there is no location, or offset or length is not a whole number ≥ 0.
        """
        entries = {entry.key: entry.value for entry in tensor.external_data}
        numbers = {}
        for key in ("offset", "length"):
            text = entries.get(key)
            # ASCII digits only: int() would also take "1_0", " 7" and "٣"
            if text is not None and not (text.isascii() and text.isdigit()):
                raise LoadError(
                    f"tensor {tensor.name!r}: the {key} of its external data is {text!r}, not a whole number ≥ 0"
                )
            numbers[key] = int(text) if text is not None else None
        if not entries.get("location"):
            raise LoadError(f"tensor {tensor.name!r} is said to have external data, but not in which file")
        return cls(entries["location"], numbers["offset"] or 0, numbers["length"])

    def note(self, tensor: onnx.TensorProto) -> None:
        """Say in a tensor that its data is here, after other entries of it were taken away."""
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", self.location), ("offset", self.offset), ("length", self.length)):
            if value is not None:
                tensor.external_data.add(key=key, value=str(value))


def is_external(tensor: onnx.TensorProto) -> bool:
    """Whether the tensor's data lies in another file."""
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def locations(model: onnx.ModelProto) -> dict[str, str]:
    """{file name as the model gives it: name of a tensor that lies in it}, in file order.

    Raises:
        LoadError: a tensor's entries are malformed.
    """
    tensor_at: dict[str, str] = {}
    for tensor in all_tensors(model):
        if is_external(tensor):
            tensor_at.setdefault(ExternalData.of(tensor).location, tensor.name)
    return tensor_at


def all_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every TensorProto of a model: initializers, the parts of sparse ones, attributes, in bodies and functions."""
    pending: list[Any] = [model.graph, *model.functions]
    for training in model.training_info:
        pending += [training.initialization, training.algorithm]
    yield from _inside(pending)


def tensors_inside(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    """Every TensorProto in attributes of nodes, in their bodies too."""
    pending: list[Any] = []
    for node in nodes:
        for attribute in node.attribute:
            yield from _attribute_tensors(attribute, pending)
    yield from _inside(pending)


def _inside(pending: list[Any]) -> Iterator[onnx.TensorProto]:
    while pending:
        body = pending.pop()
        if isinstance(body, onnx.GraphProto):
            yield from body.initializer
            for sparse in body.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        else:
            for attribute in body.attribute_proto:
                yield from _attribute_tensors(attribute, pending)
        for node in body.node:
            for attribute in node.attribute:
                yield from _attribute_tensors(attribute, pending)


def _attribute_tensors(attribute: onnx.AttributeProto, pending: list[Any]) -> Iterator[onnx.TensorProto]:
    """Tensors of one attribute; its graphs are added to `pending`."""
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    if attribute.HasField("sparse_tensor"):
        yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
    for sparse in attribute.sparse_tensors:
        yield from (sparse.values, sparse.indices)
    if attribute.HasField("g"):
        pending.append(attribute.g)
    pending.extend(attribute.graphs)


def read(
    tensor: onnx.TensorProto, base_dir: Path | None, nbytes: int, start: int = 0, count: int | None = None
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Read the bytes of an external tensor, which takes `nbytes`, from `base_dir`; or `count` of them from `start` on.

    Raises:
        LoadError: there is no base_dir, the place is not allowed, the file is missing or too short, or the length
            of the entries is not that of the tensor's type and shape.
    """
    where = ExternalData.of(tensor)
    if base_dir is None:
        raise LoadError(
            f"tensor {tensor.name!r} has its data in {where.location!r}, and the model was not loaded from a file "
            "beside it: load the model by its path"
        )
    if where.length is not None and where.length != nbytes:
        raise LoadError(
            f"tensor {tensor.name!r}: {where.location!r} is said to hold {where.length} bytes of it, "
            f"its type and shape take {nbytes}"
        )
    descriptor = open_confined(base_dir, where.location, tensor.name)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        size = os.fstat(descriptor).st_size
        # checked before a buffer of that size is allocated
        if where.offset + nbytes > size:
            raise too_short(tensor.name, where, nbytes, size)
        claim(nbytes if count is None else count, f"tensor {tensor.name!r}")
        array = np.empty(nbytes if count is None else count, np.uint8)
        view, done = memoryview(array.data), 0
        file.seek(where.offset + start)
        while done < array.size:
            read_now = file.readinto(view[done:])
            if not read_now:
                raise too_short(tensor.name, where, nbytes, where.offset + start + done)
            done += read_now
    return array


def too_short(tensor: str, where: ExternalData, nbytes: int, size: int) -> LoadError:
    """The error for a data file that ends before a tensor does."""
    return LoadError(
        f"tensor {tensor!r} needs bytes {where.offset} to {where.offset + nbytes} of {where.location!r}, which has "
        f"only {size}: the file is cut off or belongs to another model"
    )


def open_confined(base_dir: Path, location: str, tensor: str) -> int:
    """Open a data file for reading and return its descriptor.

    Raises:
        LoadError: the file is missing or not allowed; the message names `tensor`.
    """
    try:
        descriptor = _open_plain(base_dir, location)
        if descriptor is None:
            descriptor = _open_beneath(base_dir.resolve(), confined(base_dir, location, tensor))
    except FileNotFoundError:
        raise LoadError(
            f"tensor {tensor!r} has its data in {location!r}, which is not in {base_dir}: put the file beside the model"
        ) from None
    except OSError as error:
        # also where a link replaced a file or folder after the check
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise _refused(tensor, location, "cannot be reached through plain folders") from None
        raise LoadError(f"tensor {tensor!r}: {location!r} cannot be read: {error.strerror}") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise _refused(tensor, location, "is no regular file")
    if status.st_nlink > 1:
        os.close(descriptor)
        raise _refused(tensor, location, "has more than one hard link, so it could be any file; make a copy of it")
    return descriptor


def _open_plain(base_dir: Path, location: str) -> int | None:
    """Open a file that no link leads to, as nearly all are, without resolving its path; None where that does not do."""
    name = PurePosixPath(location)
    plain = name.parts and not name.is_absolute() and ".." not in name.parts and "\0" not in location
    if not plain or os.open not in os.supports_dir_fd:
        return None
    try:
        return _open_beneath(base_dir, name)
    except OSError:
        return None  # a link inside the folder may have to be followed


def confined(base_dir: Path, location: str, tensor: str) -> Path:
    """The path of a data file relative to the resolved folder, free of links; the file need not be there.

    Raises:
        LoadError: `location` is absolute, contains `..` or leads out of the folder.
    """
    name = PurePosixPath(location)
    if name.is_absolute() or Path(location).is_absolute() or Path(location).drive:
        raise _refused(tensor, location, "is an absolute path")
    if ".." in name.parts or ".." in Path(location).parts:
        raise _refused(tensor, location, "goes up with '..'")
    if "\0" in location or not name.parts:
        raise _refused(tensor, location, "is no file name")
    folder = base_dir.resolve()
    try:
        return (folder / name).resolve().relative_to(folder)
    except ValueError:
        raise _refused(tensor, location, f"leads out of {base_dir} by a symbolic link") from None
    except (OSError, RuntimeError) as error:  # a link that leads back to itself
        raise LoadError(f"tensor {tensor!r}: {location!r} cannot be read: {error}") from error


def _refused(tensor: str, location: str, why: str) -> LoadError:
    return LoadError(
        f"tensor {tensor!r} has its data in {location!r}, which {why}: onnxlab reads only plain files inside the "
        "model's folder"
    )


def _open_beneath(folder: Path, relative: PurePath) -> int:
    """Open a file below `folder` without following any link, one part of the path after the other."""
    if os.open not in os.supports_dir_fd:
        return os.open(folder / relative, _READ | _NOFOLLOW)
    current = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in relative.parts[:-1]:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW, dir_fd=current)
            os.close(current)
            current = inner
        return os.open(relative.name, _READ | _NOFOLLOW, dir_fd=current)
    finally:
        os.close(current)
