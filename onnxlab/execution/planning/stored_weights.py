"""Weights that are left in their file during runs: those of a model that is too large to be held in memory.

A model whose external data takes more than half of the memory that a run may use is not read whole. Its large
initializers stay in their file. The nodes that need them read them, window by window where the operator permits it, and
free them afterwards. The operating system caches as much of the file as fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from onnxlab import dtypes
from onnxlab.graph.edit.snapshot import Snapshot
from onnxlab.graph.protos import external_data, tensors
from onnxlab.graph.protos.lazy_tensor import LazyTensor
from onnxlab.limits import SHARE_OF_MEMORY, available_memory

LARGE = 1 << 20
"""Bytes from which a tensor may be left in its file."""

_SHARE_OF_BUDGET = 0.5


class StoredWeights:
    """Chooses the weights of a graph's snapshots that stay in their file.

    Attributes:
        budget: bytes that a run may use; None is the default of runs.
        large: {value id: tensor} of the initializers of the last snapshot that could stay, which the budget decides.
    """

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self.large: dict[int, LazyTensor] = {}
        self.budget: int | None = None

    def of(self, snapshot: Snapshot) -> Mapping[int, LazyTensor]:
        """{value id: tensor} of the initializers to be left in their file: none of a model that fits."""
        if snapshot is not self._snapshot:
            if not self._still(snapshot):
                self.large = _large(snapshot)
            self._snapshot = snapshot
        if not self.large:
            return {}
        waiting = {value: tensor for value, tensor in self.large.items() if not snapshot.is_read(value)}
        budget = int(SHARE_OF_MEMORY * available_memory()) if self.budget is None else self.budget
        total = sum(tensors.nbytes(snapshot.tensor(value)) for value in waiting)
        return waiting if total > _SHARE_OF_BUDGET * budget else {}

    def _still(self, snapshot: Snapshot) -> bool:
        """Whether a later snapshot has the same large initializers, since only others have changed."""
        before = self._snapshot
        if before is None or before.scopes is not snapshot.scopes:
            return False
        changed = snapshot.other_tensors(before)
        return not any(value in self.large or _is_large(snapshot.tensor(value)) for value in changed)


def _large(snapshot: Snapshot) -> dict[int, LazyTensor]:
    """Large initializers of the main graph in external data whose elements only nodes of the main graph need."""
    main = snapshot.main
    large = {
        value: LazyTensor(tensor, snapshot.base_dir)
        for name, value in main.initializers.items()
        if name not in main.inputs and _is_large(tensor := snapshot.tensor(value))
    }
    if large:
        elsewhere = {value for scope in snapshot.scopes.values() for _, value in scope.captures}
        for value in elsewhere.union(main.output_ids):
            large.pop(value, None)
    return large


def _is_large(tensor: Any) -> bool:
    """Whether a stored tensor is external and large; a malformed one counts as small and raises where it is read."""
    if not isinstance(tensor, onnx.TensorProto) or not external_data.is_external(tensor):
        return False
    has_size = tensor.data_type in dtypes.ELEM_TYPES and tensor.data_type != dtypes.STRING
    return has_size and min(tensor.dims, default=0) >= 0 and tensors.nbytes(tensor) >= LARGE


__all__ = ["LARGE", "StoredWeights"]
