"""onnxruntime as the oracle for values, with its optimizations disabled, so that it does as the file says."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx

if TYPE_CHECKING:
    import onnxruntime

Feeds = Mapping[str, np.ndarray]


REMEMBERED = 400_000_000
"""Bytes of results that are remembered: all values of all models of the corpus take gigabytes in each test worker."""


class Oracle:
    """Runs models through onnxruntime and remembers the latest results, which are read-only.

    Attributes:
        nbytes: of the arrays that are remembered.
    """

    def __init__(self, most: int = REMEMBERED) -> None:
        self._results: dict[str, dict[str, np.ndarray]] = {}
        self._most = most
        self.nbytes = 0

    def __call__(
        self, model: Path | str | bytes, feeds: Feeds, outputs: Sequence[str] | None = None
    ) -> dict[str, np.ndarray]:
        """{name: array} of `outputs`, any values of the main graph; by default the graph's own outputs."""
        folder = Path(model).parent if isinstance(model, Path | str) else None
        data = Path(model).read_bytes() if isinstance(model, Path | str) else model
        key = fingerprint(data, feeds, outputs)
        if key not in self._results:
            proto = with_outputs(data, outputs)
            session = new_session(proto.SerializeToString(), folder)
            names = [value.name for value in proto.graph.output]
            arrays = session.run(names, {name: np.asarray(array) for name, array in feeds.items()})
            for array in arrays:
                if isinstance(array, np.ndarray):
                    array.setflags(write=False)
            self._results[key] = dict(zip(names, arrays, strict=True))
            self.nbytes += size(self._results[key])
        results = self._results[key] = self._results.pop(key)  # the latest
        while self.nbytes > self._most:
            self.nbytes -= size(self._results.pop(next(iter(self._results))))
        return {name: results[name] for name in (outputs or results)}


def size(results: Mapping[str, np.ndarray]) -> int:
    """Bytes of results; sequences and maps are small."""
    return sum(array.nbytes for array in results.values() if isinstance(array, np.ndarray))


def with_outputs(data: bytes, outputs: Sequence[str] | None) -> onnx.ModelProto:
    """The model with the values named `outputs` as its graph outputs."""
    model = onnx.ModelProto()
    model.ParseFromString(data)
    if outputs is not None:
        declared = {value.name: value for value in [*model.graph.output, *model.graph.value_info]}
        chosen = [declared.get(name, onnx.ValueInfoProto(name=name)) for name in outputs]
        chosen = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in chosen]
        del model.graph.output[:]
        model.graph.output.extend(chosen)
    return model


def new_session(data: bytes, folder: Path | None) -> "onnxruntime.InferenceSession":
    """A session on the CPU, optimizations off, one thread; external data is looked for in `folder`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder.resolve()))
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def fingerprint(data: bytes, feeds: Feeds, outputs: Sequence[str] | None) -> str:
    digest = hashlib.sha256(data)
    for name, array in sorted(feeds.items()):
        array = np.asarray(array)
        content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
        digest.update(f"{name}{array.dtype}{array.shape}".encode() + content)
    digest.update(repr(outputs).encode())
    return digest.hexdigest()


@cache
def oracle() -> Oracle:
    """The oracle of this process."""
    return Oracle()
