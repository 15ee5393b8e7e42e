"""Samples of a data set, whatever holds them: an iterable, a sequence, a folder, a Dask bag or array.

A sample is {input: array}, an array where the model has one input, a pair of one of these and a target, or a file.
Entries whose names are no inputs are targets too. Files are read by the process that uses the sample, on a cluster a
worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from onnxlab.errors import FeedError, LoadError
from onnxlab.formats.arrays import read_arrays
from onnxlab.graph.protos import tensors

SUFFIXES = (".npz", ".npy", ".pb")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some samples in a row.

    Attributes:
        items: the samples or paths of their files; of Dask, one object that becomes a list of samples.
        is_delayed: whether it is such an object.
    """

    items: Any
    is_delayed: bool = False


@dataclass(frozen=True, slots=True)
class Samples:
    """A data set, cut into chunks.

    Attributes:
        chunks: each used once, in their order.
        count: number of samples, None where it is not known.
        chunk_count: number of chunks, None where it is not known.
        about: a description that tells another data set from this one.
    """

    chunks: Iterator[Chunk]
    count: int | None
    chunk_count: int | None
    about: str


def samples_of(source: Any, size: int) -> Samples:
    """Cut a data set into chunks.

    Args:
        source: an iterable, sequence, folder, Dask bag or array.
        size: number of samples in a chunk; the chunks of a Dask bag or array are its partitions.

    Raises:
        LoadError: the folder is missing or holds no samples.
        TypeError: the source is no data set.
    """
    if type(source).__module__.partition(".")[0] == "dask" and hasattr(source, "to_delayed"):
        return _of_dask(source, size)
    if isinstance(source, str | PathLike):
        files = _listed(Path(source))
        return _of_sequence(files, size, f"folder {Path(source).name!r} of {len(files)} samples")
    if isinstance(source, Mapping) or not (hasattr(source, "__iter__") or hasattr(source, "__getitem__")):
        raise TypeError(
            f"samples is a {type(source).__name__}; give an iterable of samples, a folder, or a Dask bag or array"
        )
    if hasattr(source, "__len__") and hasattr(source, "__getitem__"):
        return _of_sequence(source, size, f"{type(source).__name__} of {len(source)} samples")
    return Samples(_cut(source, size), None, None, "iterable")


def _of_sequence(sequence: Sequence[Any], size: int, about: str) -> Samples:
    count = len(sequence)

    def chunks() -> Iterator[Chunk]:
        for first in range(0, count, size):
            yield Chunk([_item(sequence, place) for place in range(first, min(first + size, count))])

    return Samples(chunks(), count, -(-count // size), about)


def _item(sequence: Sequence[Any], place: int) -> Any:
    """An item; what goes wrong with it is the sample's fault, not the data set's."""
    try:
        return sequence[place]
    except Exception as error:
        return Unreadable(f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A stand-in for a sample that could not be taken out of its sequence."""

    reason: str


def _cut(iterable: Iterable[Any], size: int) -> Iterator[Chunk]:
    iterator = iter(iterable)
    while items := list(islice(iterator, size)):
        yield Chunk(items)


def _of_dask(collection: Any, size: int) -> Samples:
    if hasattr(collection, "npartitions") and not hasattr(collection, "shape"):
        parts = collection.to_delayed()
        return Samples(_delayed(parts), None, len(parts), f"bag of {len(parts)} partitions")
    if not collection.ndim:
        raise TypeError("the Dask array is a scalar; give one whose first axis counts the samples")
    blocks = (
        collection.rechunk({axis: size if axis == 0 else -1 for axis in range(collection.ndim)})
        .to_delayed()
        .reshape(-1)
    )
    count = None if np.isnan(collection.shape[0]) else int(collection.shape[0])
    return Samples(_delayed(blocks), count, len(blocks), f"array of {len(blocks)} blocks")


def _delayed(parts: Iterable[Any]) -> Iterator[Chunk]:
    return (Chunk(part, is_delayed=True) for part in parts)


def _listed(folder: Path) -> list[Path]:
    """Files of samples in their order, and folders with `input_0.pb` and so on, as onnx writes test data."""
    if not folder.is_dir():
        state = "is a file" if folder.exists() else "does not exist"
        raise LoadError(f"{str(folder)!r} {state}: give a folder of samples, with an .npz, .npy or .pb file for each")
    files = sorted(
        path for path in folder.iterdir()
        if path.suffix.lower() in SUFFIXES or (path.is_dir() and any(path.glob("input_*.pb")))
    )  # fmt: skip
    if not files:
        raise LoadError(f"{str(folder)!r} holds no samples: no {', '.join(SUFFIXES)} file")
    return files


def label_of(item: Any) -> str:
    """The name of a sample's file, "" where it has none."""
    return Path(item).name if isinstance(item, str | PathLike) else ""


def sample_of(item: Any, inputs: Mapping[str, int | None]) -> tuple[dict[str, Any], Any]:
    """(arrays by input, target) of a sample.

    Args:
        inputs: the model's inputs in their order, with their ranks. An array that lacks the first axis gets one.

    Raises:
        LoadError: the file of the sample cannot be read.
        FeedError: the item is no sample.
    """
    target: Any = None
    if isinstance(item, Unreadable):
        raise LoadError(item.reason)
    if isinstance(item, str | PathLike):
        item = _read(Path(item), list(inputs))
    elif isinstance(item, tuple) and len(item) == 2:
        item, target = item
    if isinstance(item, Mapping):
        feeds = {name: _array(value) for name, value in item.items() if name in inputs}
        others = {name: value for name, value in item.items() if name not in inputs}
        if others and target is None:
            target = next(iter(others.values())) if len(others) == 1 else others
    elif len(inputs) == 1:
        feeds = {next(iter(inputs)): _array(item)}
    else:
        raise FeedError(
            f"a sample is a {type(item).__name__}; the model has {len(inputs)} inputs: give {{name: array}}"
        )
    return {name: _batched(array, inputs[name]) for name, array in feeds.items()}, target


def _array(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else np.asarray(value)


def _batched(array: Any, rank: int | None) -> Any:
    """The array with an axis of one sample where it has one axis less than the input."""
    return array[None] if rank is not None and array.ndim == rank - 1 else array


def _read(path: Path, names: Sequence[str]) -> Any:
    """The content of a file, or of the files of a folder, in the order of inputs."""
    if path.is_dir():
        files = sorted(path.glob("input_*.pb"), key=lambda file: (len(file.name), file.name))
        return {name: _tensor(file)[1] for name, file in zip(names, files, strict=False)}
    if path.suffix.lower() == ".pb":
        name, array = _tensor(path)
        return {name: array} if name in names else array
    try:
        with path.open("rb") as file:
            return read_arrays(file, path.name)
    except OSError as error:
        raise LoadError(f"{path.name} cannot be read: {error.strerror or error}") from None


def _tensor(path: Path) -> tuple[str, Any]:
    try:
        tensor = onnx.TensorProto.FromString(path.read_bytes())
        return tensor.name, tensors.to_array(tensor)
    except OSError as error:
        raise LoadError(f"{path.name} cannot be read: {error.strerror or error}") from None
    except (ValueError, DecodeError, MemoryError) as error:
        raise LoadError(f"{path.name} holds no tensor: {error}") from None
