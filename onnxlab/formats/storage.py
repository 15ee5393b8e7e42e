"""Storage of a model's weights when it is saved: in the file, or in data files beside it.

Only initializers of the main graph are moved, and never strings, which a data file cannot hold. Tensors that are in a
data file already stay where they are. The live model is not changed: a copy without the bytes is written.
"""

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.unknown_fields import UnknownFieldSet

from onnxlab import dtypes
from onnxlab.errors import LoadError, SaveError
from onnxlab.formats.atomic import Replacement, write_all
from onnxlab.graph.protos import external_data, tensors
from onnxlab.graph.protos.external_data import ExternalData
from onnxlab.graph.protos.name_bytes import varint

SMALLEST = 1024
"""Tensors of fewer bytes stay in the model's file."""

_PAGE = 4096
VALUE_FIELDS = (
    "raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor of the live model, and where a data file holds its bytes."""

    tensor: onnx.TensorProto
    where: ExternalData


Layout = dict[str, Placed]
"""{name of an initializer: its place}. Edits never overwrite a message, so the same object has the same bytes."""


@dataclass(slots=True)
class StoragePlan:
    """Data files to write: (path relative to the model's folder, tensors in it); and where all tensors are."""

    layout: Layout = field(default_factory=dict)
    files: list[tuple[str, list[Placed]]] = field(default_factory=list)


def unchanged(model: onnx.ModelProto, layout: Layout) -> Layout:
    """The part of a layout whose tensors are unchanged in the model."""
    if not layout:
        return {}
    valid = {}
    for tensor in model.graph.initializer:
        placed = layout.get(tensor.name)
        if placed is not None and placed.tensor is tensor:
            valid[tensor.name] = placed
    return valid


def fits(model: onnx.ModelProto, outside: Layout, limit: int) -> bool:
    """Whether the initializers that go into the model's own file take no more than `limit` bytes, by their shapes."""
    inside = [
        tensor
        for tensor in model.graph.initializer
        if tensor.name not in outside and not external_data.is_external(tensor)
    ]
    # a broken tensor can claim any size
    return sum(map(_size, inside)) <= limit or sum(_size(tensor) for tensor in inside if _is_sound(tensor)) <= limit


def plan(
    model: onnx.ModelProto, folder: Path, name: str, keep: Layout, shard: int | None, fresh: bool,
    avoid: Collection[str] = (),
) -> StoragePlan:  # fmt: skip
    """Decide which tensors go to which data file.

    Args:
        folder, name: folder and name of the data file; the names of shards have their numbers before the suffix.
        keep: tensors whose bytes a file has already.
        shard: the most bytes of one data file; a larger tensor has a file to itself.
        fresh: whether another name is chosen where a file of the name exists.
        avoid: names that other files of the save will have.
    """
    large = [tensor for tensor in model.graph.initializer if tensor.name not in keep and movable(tensor)]
    groups = list(_groups(large, shard))
    result = StoragePlan(dict(keep))
    for location, group in zip(free_names(folder, name, len(groups), avoid, fresh), groups, strict=True):
        placed, offset = [], 0
        for tensor in group:
            size = _size(tensor)
            offset = aligned(offset, size)
            placed.append(Placed(tensor, ExternalData(location, offset, size)))
            offset += size
        result.files.append((location, placed))
        result.layout.update((item.tensor.name, item) for item in placed)
    return result


def aligned(offset: int, size: int) -> int:
    """The first offset from `offset` on where `size` bytes may begin."""
    step = _PAGE if size >= _PAGE else 16
    return -(-offset // step) * step


def movable(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor may go into a data file: its bytes are in the model, fit its shape, and are not too few."""
    if external_data.is_external(tensor) or tensor.data_type == dtypes.STRING or tensor.HasField("segment"):
        return False
    return _size(tensor) >= SMALLEST and _is_sound(tensor)


def _is_sound(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor has the data that its shape claims. This copies the data."""
    size = _size(tensor)
    if size < SMALLEST:
        return True
    if tensor.data_type == dtypes.STRING:
        return True
    if tensor.HasField("raw_data"):
        return len(tensor.raw_data) == size
    count = math.prod(tensor.dims)
    return len(getattr(tensor, tensors.field_of(tensor.data_type))) == tensors.field_length(tensor.data_type, count)


def _size(tensor: onnx.TensorProto) -> int:
    """Bytes of a tensor by type and shape; 0 where these give no size, since a broken tensor must not be moved."""
    try:
        return tensors.nbytes(tensor)
    except LoadError:
        return 0


def _groups(large: Iterable[onnx.TensorProto], shard: int | None) -> Iterator[list[onnx.TensorProto]]:
    group: list[onnx.TensorProto] = []
    filled = 0
    for tensor in large:
        size = _size(tensor)
        if group and shard is not None and filled + size > shard:
            yield group
            group, filled = [], 0
        group.append(tensor)
        filled = -(-filled // _PAGE) * _PAGE + size
    if group:
        yield group


def free_names(folder: Path, name: str, groups: int, avoid: Collection[str], fresh: bool = True) -> list[str]:
    """File names for the groups, none of them existing or to be avoided.

    Raises:
        SaveError: a file of such a name exists, and no other name may be chosen.
    """
    path = Path(name)
    for attempt in count():
        stem = f"{path.stem}.{attempt}" if attempt else path.stem
        middle = [f"-{number:05d}-of-{groups:05d}" for number in range(1, groups + 1)] if groups > 1 else [""]
        names = [f"{stem}{part}{path.suffix}" for part in middle][:groups]
        existing = [item for item in names if item in avoid or (folder / item).exists()]
        if not existing:
            return names
        if not fresh:
            raise SaveError(
                f"the weights were to go to {folder / existing[0]}, where a file is already; name another one, or let "
                "onnxlab choose with external_data=True"
            )
    raise AssertionError("count() does not end")


def write_files(decided: StoragePlan, folder: Path, files: Replacement) -> None:
    """Write the data files of a plan; raises OSError, and LoadError for a tensor whose bytes do not fit its shape."""
    for location, placed in decided.files:
        with files.open(folder / location) as descriptor:
            end = 0
            for item in placed:
                data = tensors.to_bytes(item.tensor)
                write_all(descriptor, bytes(item.where.offset - end))
                write_all(descriptor, data)
                end = item.where.offset + len(data)


def detached(model: onnx.ModelProto, layout: Layout) -> onnx.ModelProto:
    """A copy of a model in which the tensors of `layout` refer to data files instead of holding their bytes."""
    copy: onnx.ModelProto = without(model, "graph")
    copy.graph.CopyFrom(without(model.graph, "initializer"))
    for tensor in model.graph.initializer:
        placed = layout.get(tensor.name)
        if placed is None:
            copy.graph.initializer.append(tensor)
            continue
        target = copy.graph.initializer.add()
        target.CopyFrom(without(tensor, *VALUE_FIELDS))
        placed.where.note(target)
    return copy


def embedded(model: onnx.ModelProto, base_dir: Path | None) -> onnx.ModelProto:
    """A copy of a model that holds all its external data; the model itself where it has none. Raises LoadError."""
    if not any(map(external_data.is_external, external_data.all_tensors(model))):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in external_data.all_tensors(copy):
        if external_data.is_external(tensor):
            where = tensors.nbytes(tensor)
            tensor.raw_data = external_data.read(tensor, base_dir, where).tobytes()
            del tensor.external_data[:]
            tensor.ClearField("data_location")
    return copy


def without(message: Any, *left_out: str) -> Any:
    """A copy of a message without some fields, which are not read; unknown fields are copied."""
    copy = type(message)()
    for descriptor, value in message.ListFields():
        name = descriptor.name
        if name in left_out:
            continue
        if descriptor.is_repeated:
            getattr(copy, name).extend(value)
        elif descriptor.message_type is not None:
            target = getattr(copy, name)
            target.SetInParent()  # an empty message is present too
            target.MergeFrom(value)
        elif isinstance(value, bytes) and descriptor.type == descriptor.TYPE_STRING:
            # protobuf reads a string that is no UTF-8, but does not accept it when a field is set
            copy.MergeFromString(varint(descriptor.number << 3 | _LENGTH) + varint(len(value)) + value)
        else:
            setattr(copy, name, value)
    if unknown := b"".join([_encoded(field) for field in unknown_fields(message)]):
        copy.MergeFromString(unknown)
    return copy


def unknown_fields(message: Any) -> list[Any]:
    """The unknown fields of a message: (field_number, wire_type, data)."""
    fields: Any = UnknownFieldSet(message)  # its type stub lacks iteration
    return list(fields)


_FIXED = {1: 8, 5: 4}
_VARINT, _LENGTH, _GROUP = 0, 2, 3


def _encoded(unknown: Any) -> bytes:
    """An unknown field as its bytes on the wire."""
    key = unknown.field_number << 3 | unknown.wire_type
    if unknown.wire_type == _VARINT:
        return varint(key) + varint(unknown.data)
    if unknown.wire_type == _LENGTH:
        return varint(key) + varint(len(unknown.data)) + bytes(unknown.data)
    if unknown.wire_type == _GROUP:
        return varint(key) + b"".join([_encoded(field) for field in unknown.data]) + varint(key + 1)
    return varint(key) + int(unknown.data).to_bytes(_FIXED[unknown.wire_type], "little")
