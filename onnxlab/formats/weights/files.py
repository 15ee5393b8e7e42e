"""Weights that lie in files without a graph: .safetensors, their shards by an index, and .npz."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import onnx

from onnxlab import dtypes
from onnxlab.errors import LoadError, MissingKeyError, SaveError
from onnxlab.formats import output
from onnxlab.formats.kinds import FileKind
from onnxlab.formats.ort import checkpoint
from onnxlab.formats.paths import PathProblem, absolute
from onnxlab.formats.weights import npz, safetensors
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.limits import format_bytes
from onnxlab.printable import printable_lines

SAFETENSORS: Final = FileKind("safetensors", (".safetensors",), safetensors.begins_like_one)
NPZ: Final = FileKind("an .npz archive", (".npz",), lambda head: head.startswith((b"PK\x03\x04", b"PK\x05\x06")))
KINDS: Final = (SAFETENSORS, NPZ, checkpoint.KIND)
"""Kinds of files that weights are written to."""

_LARGEST_INDEX: Final = 1 << 28
_SHOWN: Final = 40


class Weights(Mapping[str, LazyTensor]):
    """Tensors of a file by name, whose elements are read when they are used: `weights["fc.bias"][:4]`.

    Attributes:
        path: the file, or the index of several.
        metadata: free text by key, where the format has metadata.
        untyped: names of tensors that are bit patterns, of a type that the file does not give.

    Examples:
        >>> import numpy as np, onnxlab
        >>> np.savez("weights.npz", scale=np.ones(3, np.float32))
        >>> weights = onnxlab.read_weights("weights.npz")
        >>> weights["scale"].shape
        (3,)
    """

    def __init__(
        self,
        path: Path,
        stored: dict[str, onnx.TensorProto],
        metadata: Mapping[str, str] | None = None,
        untyped: frozenset[str] = frozenset(),
    ) -> None:
        self.path = path
        self.metadata = dict(metadata or {})
        self.untyped = untyped
        self._stored = stored

    def __getitem__(self, name: str) -> LazyTensor:
        return LazyTensor(self.tensor(name), self.path.parent)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def tensor(self, name: str, elem_type: int | None = None) -> onnx.TensorProto:
        """The message of a tensor, whose external data lies in the folder of the file.

        Args:
            name: the name of the tensor.
            elem_type: the element type of an untyped tensor.

        Raises:
            MissingKeyError: no tensor has this name.
        """
        if name not in self._stored:
            raise MissingKeyError(f"{self.path.name} has no tensor {name!r:.200}; list(weights) has the names")
        stored = self._stored[name]
        if elem_type is None or name not in self.untyped or elem_type == stored.data_type:
            return stored
        item = dtypes.to_numpy(elem_type)
        if not dtypes.is_extension(item) or item.itemsize != dtypes.to_numpy(stored.data_type).itemsize:
            return stored
        typed = onnx.TensorProto()
        if dtypes.bits(elem_type) < 8:
            typed.CopyFrom(tensors.from_array(tensors.to_array(stored, self.path.parent).view(item), name))
        else:
            typed.CopyFrom(stored)
            typed.data_type = elem_type
        return typed

    def table(self) -> list[dict[str, Any]]:
        """A row for each tensor: name, dtype, shape, bytes."""
        return [
            {
                "name": name,
                "dtype": (
                    f"{dtypes.bits(tensor.data_type)} bits" if name in self.untyped else dtypes.name(tensor.data_type)
                ),
                "shape": list(tensor.dims),
                "bytes": tensors.nbytes(tensor),
            }
            for name, tensor in self._stored.items()
        ]

    def __repr__(self) -> str:
        rows = self.table()
        total = format_bytes(sum(row["bytes"] for row in rows))
        lines = [f"{self.path.name}: {len(rows)} tensor{'' if len(rows) == 1 else 's'}, {total}"]
        lines += [f"  {row['name']:.120}: {row['dtype']}{row['shape']}" for row in rows[:_SHOWN]]
        if len(rows) > _SHOWN:
            lines.append(f"  and {len(rows) - _SHOWN} more; table() has them all")
        return printable_lines(lines)


def read_weights(path: Any) -> Weights:
    """List the tensors of a .safetensors or .npz file, of a training checkpoint, or of an index of several files.

    Only the headers are read; elements are read when they are used.

    Args:
        path: the path of the file.

    Returns:
        Weights: the tensors by name.

    Raises:
        LoadError: there is no such file, or it is of another format or damaged; the message says which.

    Examples:
        >>> import numpy as np, onnxlab
        >>> np.savez("weights.npz", scale=np.ones(3, np.float32))
        >>> list(onnxlab.read_weights("weights.npz"))
        ['scale']
    """
    try:
        file = absolute(path)
        with file.open("rb") as opened:
            head = opened.read(1024)
    except PathProblem as problem:
        raise LoadError(f"cannot read the weights {str(path)!r:.1000}: {problem}") from None
    except OSError as error:
        raise LoadError(f"cannot read the weights {file}: {error.strerror or error}") from None
    if checkpoint.KIND.fits(head):
        try:
            return Weights(file, checkpoint.read_checkpoint(file).parameters)
        except LoadError as error:
            raise LoadError(f"{file.name}: {error}") from error
    if head.startswith(b"PK"):
        archive = npz.read(file)
        return Weights(file, archive.tensors, untyped=archive.untyped)
    if head.lstrip()[:1] == b"{":
        return _sharded(file)
    stored, metadata = safetensors.read(file)
    return Weights(file, stored, metadata)


def _sharded(index: Path) -> Weights:
    """The tensors of several files, by the index that names the file of each; raises LoadError."""
    if index.stat().st_size > _LARGEST_INDEX:
        raise LoadError(f"{index} is too large for an index of weights")
    try:
        document = json.loads(index.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{index} is no index of weights: {error}") from None
    places = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(places, dict) or not all(isinstance(shard, str) for shard in places.values()):
        raise LoadError(f"{index} is no index of weights: it has no weight_map of names and files")
    shards: dict[str, dict[str, onnx.TensorProto]] = {}
    metadata: dict[str, str] = {}
    for name, shard in places.items():
        if shard not in shards:
            if Path(shard).name != shard:
                raise LoadError(f"{index}: {name!r:.200} is said to be in {shard!r:.200}, which is no plain file name")
            shards[shard], said_there = safetensors.read(index.parent / shard, shard)
            metadata.update(said_there)
        if name not in shards[shard]:
            raise LoadError(f"{index}: {name!r:.200} is said to be in {shard}, which does not have it")
    return Weights(index, {name: shards[shard][name] for name, shard in places.items()}, metadata)


def kind_of(path: Any) -> FileKind:
    """The kind of weight file that a name's suffix stands for.

    Raises:
        SaveError: no kind has this suffix.
    """
    suffix = Path(path).suffix.lower()
    for kind in KINDS:
        if suffix and suffix in kind.suffixes:
            return kind
    raise SaveError(
        f"cannot write weights to {str(path)!r:.1000}: give a name that ends in .safetensors, .npz or .ckpt"
    )


def write_weights(
    path: Any,
    stored: Sequence[onnx.TensorProto],
    base_dir: Path | None,
    metadata: Mapping[str, str],
    inputs: Sequence[Path | None] = (),
) -> Path:
    """Write tensors to a file of the format of its suffix, as a whole or not at all; returns its path.

    Args:
        path: the path to write to, ending in .safetensors, .npz or .ckpt.
        stored: the tensors, in the order in which they are written.
        base_dir: the folder of their external data.
        metadata: free text by key, for formats that have metadata.
        inputs: files that must not be replaced.

    Raises:
        SaveError: the format has no place for a tensor, or the file cannot be written; a former file stays.
        LoadError: the data of a tensor cannot be read.
    """
    kind = kind_of(path)

    def content(file: IO[bytes]) -> None:
        if kind is NPZ:
            npz.write(file, stored, base_dir)
        elif kind is checkpoint.KIND:
            file.write(checkpoint.of_model(stored, base_dir).to_bytes())
        else:
            safetensors.write(file, stored, base_dir, metadata)

    if kind is not SAFETENSORS and metadata:
        raise SaveError(f"{kind.name} has no place for metadata; write .safetensors, or leave it out")
    if kind is not checkpoint.KIND:
        (npz if kind is NPZ else safetensors).check(stored)
    return output.write(path, content, kind, inputs)
