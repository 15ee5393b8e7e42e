"""Arrays that watches compare with: files beside the model, read when they are asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from onnxlab.errors import LoadError
from onnxlab.formats.arrays import read_arrays
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.protos.external_data import open_confined

LARGEST = 1 << 30
"""Bytes that a file may unpack to."""


class References:
    """Recorded values by file. Only files in the model's folder are read, since a model file may name them."""

    def __init__(self, graph: ModelGraph) -> None:
        self._graph = graph
        self._read: dict[str, tuple[tuple[int, int], Any]] = {}

    def of(self, file: str, value: str) -> np.ndarray[Any, Any]:
        """The array that a .npy file holds, or an .npz file under the name of a value.

        Raises:
            LoadError: the file is missing, lies elsewhere, cannot be read, or has no such array.
        """
        arrays = self._arrays(file)
        array = arrays.get(value) if isinstance(arrays, dict) else arrays
        if array is None:
            raise LoadError(f"{file} has no array {value!r}; save the value in it under this name")
        return array  # type: ignore[no-any-return]

    def _arrays(self, file: str) -> Any:
        """The arrays of a file, read again where it was written since."""
        folder = self._graph.base_dir or Path.cwd()
        with os.fdopen(open_confined(folder, file, "of a watch"), "rb") as opened:
            status = os.fstat(opened.fileno())
            stamp = status.st_mtime_ns, status.st_size
            known = self._read.get(file)
            if known is None or known[0] != stamp:
                known = self._read[file] = stamp, read_arrays(opened, file, LARGEST)
        return known[1]
