"""A stored tensor that is read where it is touched: shape and type at once, elements when they are asked for.

Of external data, only the bytes that an index needs are read; every read is checked against the current size of the
file. Files are not mapped: if another program truncated a mapped file, the process would die.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.graph.protos import external_data, tensors

Array = np.ndarray[Any, Any]


class LazyTensor:
    """A tensor of a model, read on demand: `tensor[0]`, `tensor[10:20, 3]`, `np.asarray(tensor)`.

    Attributes:
        name: name of the tensor.
        shape: dims of the tensor.
        dtype: NumPy dtype of the elements, object for strings.
    """

    def __init__(self, tensor: onnx.TensorProto, base_dir: Path | None) -> None:
        """Look at type and shape alone; raises LoadError where they make no tensor."""
        self._tensor, self._base_dir = tensor, base_dir
        tensors.nbytes(tensor)
        self.name: str = tensor.name
        self.shape = tuple(tensor.dims)
        self.dtype = dtypes.to_numpy(tensor.data_type)

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def is_external(self) -> bool:
        """Whether its bytes lie in another file."""
        return external_data.is_external(self._tensor)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"tensor {self.name!r} is a scalar and has no length")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = tensors.to_array(self._tensor, self._base_dir)
        return array.astype(dtype) if dtype is not None and dtype != array.dtype else array.copy() if copy else array

    def __getitem__(self, index: Any) -> Any:
        """The elements of a NumPy index, reading no more than the rows that it touches.

        Raises:
            IndexError: the index is outside of the shape.
            LoadError: the data is missing, too short, or may not be read.
        """
        if not self.is_external or self.dtype == object:
            return np.asarray(self)[index]
        indices = index if isinstance(index, tuple) else (index,)
        start, rows, shape, rest = self._rows(indices)
        inner = math.prod(shape[1:])
        block = self.elements(start * inner, rows * inner).reshape((rows, *shape[1:]))
        return block[rest]

    def _rows(self, indices: tuple[Any, ...]) -> tuple[int, int, tuple[int, ...], tuple[Any, ...]]:
        """(first row, rows, shape that the rows are of, index into the rows) of an index.

        Leading integers pick a contiguous part; a slice after them picks rows of that part. NumPy applies the rest.
        """
        first, axis = 0, 0
        for axis, index in enumerate(indices):
            if axis == self.ndim or isinstance(index, bool | np.bool_) or not isinstance(index, int | np.integer):
                break
            dim = self.shape[axis]
            if not -dim <= index < dim:
                raise IndexError(f"index {index} is outside of axis {axis} of tensor {self.name!r}, which has {dim}")
            first = first * dim + int(index) % dim
        else:
            axis = len(indices)
        rest, shape = indices[axis:], self.shape[axis:]
        if rest and shape and isinstance(rest[0], slice):
            low, high, step = rest[0].indices(shape[0])
            if step == 1:
                count = max(high - low, 0)
                return first * shape[0] + low, count, shape, (slice(None), *rest[1:])
        return first, 1, (1, *shape), (0, *rest)

    def elements(self, start: int, count: int) -> Array:
        """`count` elements from `start` on, in row-major order, as a read-only array of one dimension.

        Raises:
            IndexError: the tensor does not have them.
            LoadError: the data is missing, too short, or may not be read.
        """
        if start < 0 or count < 0 or start + count > self.size:
            raise IndexError(f"elements {start} to {start + count} of tensor {self.name!r}, which has {self.size}")
        if not self.is_external or self.dtype == object:
            return np.asarray(self).reshape(-1)[start : start + count]
        bits = dtypes.bits(self._tensor.data_type)
        skipped = start % 8  # eight elements of any width begin and end with a byte
        first, last = (start - skipped) * bits // 8, -(-(start + count) * bits // 8)
        raw = external_data.read(self._tensor, self._base_dir, tensors.nbytes(self._tensor), first, last - first)
        array = tensors.from_bytes(raw, self._tensor.data_type, skipped + count)[skipped:]
        array.flags.writeable = False
        return array

    def __repr__(self) -> str:
        return f"<LazyTensor {self.name!r}: {dtypes.name(self._tensor.data_type)}{list(self.shape)}>"
