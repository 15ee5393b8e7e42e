"""TensorProto to read-only NumPy array and back."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper


def to_array(tensor: Any, base_dir: Path | None = None) -> "np.ndarray[Any, Any]":
    """Return the data of a TensorProto or SparseTensorProto as a read-only array."""
    array: np.ndarray[Any, Any] = onnx.numpy_helper.to_array(tensor, str(base_dir or ""))
    array.flags.writeable = False
    return array


def from_array(array: "np.ndarray[Any, Any]", name: str = "") -> onnx.TensorProto:
    """Return a TensorProto of an array."""
    return onnx.numpy_helper.from_array(array, name)
