"""A .pt2 archive: the program as JSON, and its weights, which are read in place.

Pickles in it (sample inputs, weights of old versions) are never loaded.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.formats.base.format import Content
from onnxlab.formats.pt2.graph import graph_of, is_row_major, shape_of
from onnxlab.formats.weights.npz import data_start
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.external_data import ExternalData

_PROGRAM: Final = "models/model.json"
_WEIGHTS: Final = ("data/weights/model_weights_config.json", "data/constants/model_constants_config.json")
_GROWTH: Final = 4
"""How many times an entry may be larger than the archive: torch stores without compression."""


def is_archive(content: Content) -> bool:
    """Tell whether a file is a .pt2 archive: a zip whose first entries torch.export wrote."""
    if not content.head.startswith(b"PK\x03\x04"):
        return False
    if b"/models/model.json" in content.head or b"/data/weights/" in content.head[:200]:
        return True
    return content.suffix == ".pt2"


def read(content: Content) -> onnx.ModelProto:
    """The program of an archive as a model; weights are external data of the archive where it has a path.

    Raises:
        LoadError: the file is no such archive, or is damaged.
    """
    try:
        if content.path is None:
            return _read(io.BytesIO(content.data), None, content.size)
        with content.path.open("rb") as file:
            return _read(file, content.path, content.size)
    except LoadError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError, RecursionError) as error:
        raise LoadError(f"it is no .pt2 archive that can be read: {error or type(error).__name__}") from None
    except MemoryError:
        raise LoadError("it is a .pt2 archive that does not fit into memory") from None


def _read(file: IO[bytes], path: Path | None, size: int) -> onnx.ModelProto:
    with zipfile.ZipFile(file) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        roots = [name[: -len(_PROGRAM)] for name in entries if name.endswith(f"/{_PROGRAM}") or name == _PROGRAM]
        if len(roots) != 1:
            raise LoadError(f"it is a zip archive with {len(roots)} programs of torch.export ({_PROGRAM}), not one")
        root = roots[0]

        def parsed(name: str) -> Any:
            return json.loads(_bytes(archive, entries[root + name], size))

        program = parsed(_PROGRAM)
        module = program.get("graph_module") if isinstance(program, dict) else None
        graph = module.get("graph") if isinstance(module, dict) else None
        if not isinstance(graph, dict) or not isinstance(module, dict):
            raise LoadError("it is a .pt2 archive whose program has no graph")
        stored: dict[str, onnx.TensorProto] = {}
        for name in _WEIGHTS:
            if root + name in entries:
                folder = root + str(PurePosixPath(name).parent)
                stored |= _stored(_Weights(archive, entries, file, path, size, folder), parsed(name))
    model = onnx.ModelProto(ir_version=10, producer_name="torch.export", producer_version=_version(program))
    model.graph.CopyFrom(graph_of(graph, _by_name(module, stored)))
    domains = sorted({node.domain for node in model.graph.node})
    model.opset_import.extend(onnx.OperatorSetIdProto(domain=domain, version=1) for domain in domains)
    return model


def _version(program: Mapping[str, Any]) -> str:
    version = program.get("torch_version")
    return version if isinstance(version, str) else ""


class _Weights:
    """The places of an archive's weights."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        entries: Mapping[str, zipfile.ZipInfo],
        file: IO[bytes],
        path: Path | None,
        size: int,
        folder: str,
    ) -> None:
        self.archive, self.entries, self.file = archive, entries, file
        self.path, self.size, self.folder = path, size, folder

    def tensor(self, name: str, row: Mapping[str, Any]) -> onnx.TensorProto | None:
        """One weight; None for a pickle. Raises LoadError."""
        entry = self.entries.get(f"{self.folder}/{row.get('path_name')}")
        meta = row.get("tensor_meta")
        if row.get("use_pickle") or not isinstance(meta, dict):
            return None
        if entry is None:
            raise LoadError(f"its weight {name!r:.200} is in {row.get('path_name')!r:.200}, which is not there")
        elem_type, shape, strides, offset = shape_of(meta)
        width = dtypes.to_numpy(elem_type).itemsize
        sound = len(strides) == len(shape)
        last = 0 if 0 in shape else 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=False))
        if not sound or (offset + last) * width > entry.file_size:
            raise LoadError(f"its weight {name!r:.200} needs more than the {entry.file_size:,} bytes that are there")
        tensor = onnx.TensorProto(name=name, data_type=elem_type, dims=shape)
        packed = is_row_major(shape, strides)
        if packed and self.path is not None and entry.compress_type == zipfile.ZIP_STORED and elem_type != dtypes.BOOL:
            start = data_start(self.file, entry) + offset * width
            ExternalData(self.path.name, start, tensors.nbytes(tensor)).note(tensor)
            return tensor
        raw = _bytes(self.archive, entry, self.size)[offset * width :]
        if not packed:
            if tensors.nbytes(tensor) > _GROWTH * len(raw):
                raise LoadError(f"its weight {name!r:.200} repeats its {len(raw):,} bytes by strides of 0")
            steps = tuple(step * width for step in strides)
            raw = np.ndarray(shape, f"V{width}", raw, 0, steps).tobytes()
        tensor.raw_data = raw[: tensors.nbytes(tensor)]
        return tensor


def _stored(weights: _Weights, configuration: Any) -> dict[str, onnx.TensorProto]:
    """The weights that a configuration lists, by their names in the module."""
    config = configuration.get("config", configuration) if isinstance(configuration, dict) else {}
    if not isinstance(config, dict):
        raise LoadError("its list of weights is no object")
    weights_by_name = {}
    for name, row in config.items():
        tensor = weights.tensor(name, row) if isinstance(row, dict) else None
        if tensor is not None:
            weights_by_name[name] = tensor
    return weights_by_name


def _by_name(module: Mapping[str, Any], stored: Mapping[str, onnx.TensorProto]) -> dict[str, onnx.TensorProto]:
    """Weights by their names in the graph; the doc string of each is its name in the module."""
    signature = module.get("signature")
    specs = signature.get("input_specs", []) if isinstance(signature, dict) else []
    by_name = {}
    for spec in specs if isinstance(specs, list) else []:
        for kind, argument in spec.items() if isinstance(spec, dict) else ():
            if not isinstance(argument, dict) or not isinstance(argument.get("arg"), dict):
                continue
            theirs = next((argument[key] for key in (f"{kind}_name", "tensor_constant_name") if key in argument), None)
            ours = argument["arg"].get("name")
            if isinstance(ours, str) and isinstance(theirs, str) and theirs in stored:
                tensor = onnx.TensorProto()
                tensor.CopyFrom(stored[theirs])
                tensor.name, tensor.doc_string = ours, theirs
                by_name[ours] = tensor
    return by_name


def _bytes(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, size: int) -> bytes:
    """The bytes of an entry; raises LoadError where it unpacks to many times the size of the archive."""
    if entry.file_size > _GROWTH * size:
        raise LoadError(f"{entry.filename!r:.200} in it unpacks to {entry.file_size:,} bytes, more than torch packs")
    with archive.open(entry) as file:
        return file.read(entry.file_size)
