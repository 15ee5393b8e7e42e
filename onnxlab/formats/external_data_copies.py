"""External data on its way into another folder, or out of files that hold more than the model uses.

A data file that is used as a whole is copied as it is. Of a data file that holds more (the model is an extracted part,
or an edit removed tensors), only the bytes in use are written, to a new file. The live model goes on reading from the
old places; the saved model has the new ones.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import onnx

from onnxlab.errors import LoadError, SaveError
from onnxlab.formats import storage
from onnxlab.formats.atomic import Replacement, write_all
from onnxlab.graph.protos import external_data, tensors
from onnxlab.graph.protos.external_data import ExternalData

_CHUNK = 1 << 20
_LARGEST_PADDING = 1 << 16
"""Zeros between two tensors are padding up to the coarsest alignment that writers use."""

Moved = Mapping[ExternalData, ExternalData]
"""{place of a tensor's data in the live model: its place in the saved model}."""


class Span(NamedTuple):
    """Bytes of a data file from `start` to `stop`, which tensors use without a gap."""

    start: int
    stop: int


class CopiedSpan(NamedTuple):
    """A span of a data file that is copied to an offset of another one."""

    location: str
    tensor: str
    span: Span
    offset: int


@dataclass(slots=True)
class CarriedData:
    """The treatment of external data in a save.

    Attributes:
        whole: files that are copied as they are, each with the name of a tensor in it.
        name: the name of the data file that takes the pieces.
        pieces: the pieces that are written to that file, in order of their offsets.
        moved: places that differ in the saved model, and places that are known to stay the same.
    """

    whole: dict[str, str] = field(default_factory=dict)
    name: str = ""
    pieces: list[CopiedSpan] = field(default_factory=list)
    moved: dict[ExternalData, ExternalData] = field(default_factory=dict)


def mentioned(model: onnx.ModelProto) -> set[str]:
    """The names of all data files that a model mentions; never raises."""
    return {
        entry.value
        for tensor in external_data.all_tensors(model)
        for entry in tensor.external_data
        if entry.key == "location"
    }


def decide(
    model: onnx.ModelProto, base_dir: Path | None, path: Path, known: Moved, *, compact: bool, as_loaded: bool
) -> CarriedData:
    """Decide what to write for a model whose external data is in `base_dir`, saved to `path`.

    Args:
        known: places that an earlier save to `path` wrote already.
        compact: whether files in the model's own folder that hold more than is used are written anew too.
        as_loaded: whether the bytes as loaded are saved, which name whole files.

    Raises:
        LoadError: a data file that has to be copied is missing, cut off, or not allowed.
        SaveError: a data file has the name of the model's own file.
    """
    folder, done = path.parent, CarriedData()
    at_home = is_same(base_dir, folder)
    if at_home and not known and not compact:
        return done  # data files are not read: their faults must not keep edits from being saved
    places = _places(model)
    if base_dir is not None and not at_home:
        for location, placed in places.items():
            rest = {place: tensor for place, tensor in placed.items() if place not in known}
            _check_length(base_dir, location, rest)
    if as_loaded or base_dir is None:
        done.whole = {} if at_home else {location: _first(placed) for location, placed in places.items()}
        return done
    if compact and not _all_used(places, folder, known):
        known = {}
    offset = 0
    for location, placed in places.items():
        moved = {place: known[place] for place in placed if _is_there(known.get(place), folder)}
        done.moved.update(moved)
        rest = {place: tensor for place, tensor in placed.items() if place not in moved}
        if not rest or (at_home and not compact):
            continue
        if spans := _wasteful(base_dir, location, rest, at_home):
            offset = _pack(done, location, _first(rest), spans, offset)
        elif not at_home:
            done.whole[location] = _first(rest)
    _finish(done, model, path, places)
    return done


def _first(placed: Mapping[ExternalData, onnx.TensorProto]) -> str:
    """The name of a tensor, for messages on the file that it is in."""
    return str(next(iter(placed.values())).name)


def _is_there(place: ExternalData | None, folder: Path) -> bool:
    return place is not None and (folder / place.location).is_file()


def _pack(done: CarriedData, location: str, tensor: str, spans: list[Span], offset: int) -> int:
    """Place spans of a data file one after the other; returns the offset of their end."""
    for span in spans:
        offset = storage.aligned(offset, span.stop - span.start)
        done.pieces.append(CopiedSpan(location, tensor, span, offset))
        offset += span.stop - span.start
    return offset


def _finish(
    done: CarriedData, model: onnx.ModelProto, path: Path, places: Mapping[str, Mapping[ExternalData, object]]
) -> None:
    """Choose the name of the new data file, and enter the new place of each tensor."""
    if path.name in done.whole:
        raise SaveError(
            f"cannot save to {path}: the model has weights in a data file of that name; save under another name"
        )
    if done.pieces:
        names = {*mentioned(model), path.name}
        done.name = storage.free_names(path.parent, f"{path.name}.data", 1, names)[0]
    for location in dict.fromkeys(piece.location for piece in done.pieces):
        pieces = [piece for piece in done.pieces if piece.location == location]
        for place in places[location]:
            if place not in done.moved:
                done.moved[place] = ExternalData(done.name, _new_offset(place.offset, pieces), place.length)
    if done.moved:  # the live model keeps its places, so the next save has to know these too
        done.moved.update((place, place) for location in done.whole for place in places[location])


def _new_offset(offset: int, pieces: list[CopiedSpan]) -> int:
    """The new place of an offset of a data file; 0 for a tensor without elements that lies anywhere."""
    inside = (piece for piece in pieces if piece.span.start <= offset <= piece.span.stop)
    return next((piece.offset + offset - piece.span.start for piece in inside), 0)


def write_files(carried: CarriedData, base_dir: Path | None, folder: Path, files: Replacement) -> None:
    """Write the data files that `decide` decided on.

    Raises:
        LoadError: a file is missing or outside of `base_dir`.
        SaveError: another file of the same name is there already.
    """
    for location, tensor in carried.whole.items():
        _copy_whole(location, tensor, base_dir, folder, files)
    if not carried.pieces or base_dir is None:
        return
    end = 0
    with files.open(folder / carried.name) as target:
        for piece in carried.pieces:
            write_all(target, bytes(piece.offset - end))
            _copy_span(piece, base_dir, target)
            end = piece.offset + piece.span.stop - piece.span.start


def relocated(model: onnx.ModelProto, copy: onnx.ModelProto, moved: Moved) -> onnx.ModelProto:
    """Set the external tensors of a copy of the model to the new places of their data; returns the copy."""
    if not moved:
        return copy
    for tensor, written in zip(external_data.all_tensors(model), external_data.all_tensors(copy), strict=True):
        if not external_data.is_external(tensor):
            continue
        place = ExternalData.of(tensor)
        new = moved.get(place, place)
        if new != place:
            _point(written, new, tensors.nbytes(tensor))
    return copy


def _point(tensor: onnx.TensorProto, place: ExternalData, size: int) -> None:
    """Set the place of a tensor's data; a checksum is removed, since it is one of the whole old file."""
    others = [entry for entry in tensor.external_data if entry.key not in ("location", "offset", "length", "checksum")]
    del tensor.external_data[:]
    ExternalData(place.location, place.offset, size if place.length is None else place.length).note(tensor)
    tensor.external_data.extend(others)


def _places(model: onnx.ModelProto) -> dict[str, dict[ExternalData, onnx.TensorProto]]:
    """By data file, the places in it and a tensor that is there."""
    places: dict[str, dict[ExternalData, onnx.TensorProto]] = {}
    for tensor in external_data.all_tensors(model):
        if external_data.is_external(tensor):
            place = ExternalData.of(tensor)
            places.setdefault(place.location, {}).setdefault(place, tensor)
    return places


def _all_used(places: Mapping[str, Mapping[ExternalData, onnx.TensorProto]], folder: Path, known: Moved) -> bool:
    """Whether the files that earlier saves wrote hold no more than what is still used."""
    written: dict[str, dict[ExternalData, onnx.TensorProto]] = {}
    for placed in places.values():
        for place, tensor in placed.items():
            if place in known:
                written.setdefault(known[place].location, {})[known[place]] = tensor
    return not any(_wasteful(folder, location, placed, True) for location, placed in written.items())


def _wasteful(
    base_dir: Path, location: str, placed: Mapping[ExternalData, onnx.TensorProto], at_home: bool
) -> list[Span]:
    """The ranges of a data file in use, where it holds more than that; empty where all of it is used, or unclear."""
    try:
        descriptor = external_data.open_confined(base_dir, location, _first(placed))
    except LoadError:
        if at_home:  # the file was broken before this save, and stays so
            return []
        raise
    try:
        return _used(descriptor, placed)
    finally:
        os.close(descriptor)


def _check_length(base_dir: Path, location: str, placed: Mapping[ExternalData, onnx.TensorProto]) -> None:
    """Raise LoadError where a data file to be copied ends before a tensor that is in it."""
    if not placed:
        return
    descriptor = external_data.open_confined(base_dir, location, _first(placed))
    size = os.fstat(descriptor).st_size
    os.close(descriptor)
    for place, tensor in placed.items():
        nbytes = tensors.nbytes(tensor)
        if place.offset + nbytes > size:
            raise external_data.too_short(tensor.name, place, nbytes, size)


def _used(descriptor: int, placed: Mapping[ExternalData, onnx.TensorProto]) -> list[Span]:
    size = os.fstat(descriptor).st_size
    try:
        used = sorted({Span(place.offset, place.offset + tensors.nbytes(tensor)) for place, tensor in placed.items()})
    except LoadError:
        return []  # a tensor has no size
    if any(span.stop > size for span in used):
        return []  # the file is cut off, so its content is unknown
    spans = list(_joined([Span(0, 0), *used, Span(size, size)], descriptor))
    return [] if spans == [Span(0, size)] else [span for span in spans if span.stop > span.start]


def _joined(spans: list[Span], descriptor: int) -> Iterator[Span]:
    """Spans in order, with those that touch, overlap, or have nothing but padding between them as one."""
    start, stop = spans[0]
    for _, span in pairwise(spans):
        if span.start > stop and not _is_padding(descriptor, stop, span.start):
            yield Span(start, stop)
            start = span.start
        stop = max(stop, span.stop)
    yield Span(start, stop)


def _is_padding(descriptor: int, start: int, stop: int) -> bool:
    if stop - start >= _LARGEST_PADDING:
        return False
    os.lseek(descriptor, start, os.SEEK_SET)
    return not any(os.read(descriptor, stop - start))


def _copy_span(piece: CopiedSpan, base_dir: Path, target: int) -> None:
    descriptor = external_data.open_confined(base_dir, piece.location, piece.tensor)
    try:
        os.lseek(descriptor, piece.span.start, os.SEEK_SET)
        left = piece.span.stop - piece.span.start
        while left:
            chunk = os.read(descriptor, min(left, _CHUNK))
            if not chunk:
                raise LoadError(f"{piece.location!r} became shorter while it was read")
            write_all(target, chunk)
            left -= len(chunk)
    finally:
        os.close(descriptor)


def _copy_whole(location: str, tensor: str, base_dir: Path | None, folder: Path, files: Replacement) -> None:
    target = folder / external_data.confined(folder, location, tensor)
    if base_dir is None:
        if not target.exists():
            raise SaveError(
                f"tensor {tensor!r} has its data in {location!r}, which is not in {folder}: load the model by its "
                "path, so that onnxlab can find the file, or put it there first"
            )
        return
    descriptor = external_data.open_confined(base_dir, location, tensor)
    try:
        if not target.exists():
            files.folder(target.parent)
            files.copy(descriptor, target)
        elif not _same_content(descriptor, target):
            raise SaveError(
                f"the weights go to {target}, where another file is already; move it away or save into another folder"
            )
    finally:
        os.close(descriptor)


def is_same(path: Path | None, other: Path) -> bool:
    """Whether two paths lead to one file or folder that exists."""
    if path is None:
        return False
    with contextlib.suppress(OSError):
        status = os.stat(path)
        return path == other or os.path.samestat(status, os.stat(other))
    return False


def _same_content(descriptor: int, target: Path) -> bool:
    """Compare an open file with another, by size and time first."""
    ours, theirs = os.fstat(descriptor), target.stat()
    if ours.st_size != theirs.st_size or not stat.S_ISREG(theirs.st_mode):
        return False
    if ours.st_mtime_ns == theirs.st_mtime_ns or os.path.samestat(ours, theirs):
        return True
    with open(descriptor, "rb", closefd=False) as source, target.open("rb") as other:
        while chunk := source.read(_CHUNK):
            if chunk != other.read(_CHUNK):
                return False
    return True
