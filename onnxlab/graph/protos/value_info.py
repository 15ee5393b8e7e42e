"""ValueInfoProtos from what people write: a dtype and a shape. Works on messages alone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.argument_types import listed, plain
from onnxlab.errors import EditError
from onnxlab.graph.protos.name_bytes import text


def declare(name: str, dtype: Any = None, shape: Sequence[int | str | None] | None = None) -> onnx.ValueInfoProto:
    """A ValueInfoProto: without a dtype it declares no type, without a shape no rank.

    Raises:
        EditError: dtype or shape is invalid.
    """
    info = onnx.ValueInfoProto(name=text(name))
    if dtype is not None:
        info.type.tensor_type.elem_type = elem_type_of(dtype)
        if shape is not None:
            fill_shape(info, shape)
    elif shape is not None:
        raise EditError(f"{name!r} is given a shape but no dtype; a declaration needs both")
    return info


def elem_type_of(dtype: Any) -> int:
    """The TensorProto.DataType that a name, NumPy dtype or number means.

    Raises:
        EditError: `dtype` names no element type.
    """
    if isinstance(dtype, int) and dtype in dtypes.ELEM_TYPES:
        return int(dtype)
    if isinstance(dtype, str):
        for elem_type in dtypes.ELEM_TYPES:
            if dtypes.name(elem_type) == dtype:
                return int(elem_type)
    try:
        return int(dtypes.from_numpy(np.dtype(dtype)))
    except (TypeError, ValueError):
        known = ", ".join(dtypes.name(elem_type) for elem_type in dtypes.ELEM_TYPES)
        raise EditError(f"{dtype!r} is no element type; there are {known}") from None


def fill_shape(info: onnx.ValueInfoProto, shape: Sequence[int | str | None]) -> None:
    """Write a shape into a tensor type.

    Raises:
        EditError: `shape` is no sequence of dims.
    """
    if isinstance(shape, str | bytes | Mapping) or not isinstance(shape, Iterable):
        raise EditError(f"a shape is a list of dims, as in ['batch', 3, None]; {info.name!r} got {shape!r}")
    dims = info.type.tensor_type.shape
    del dims.dim[:]
    dims.SetInParent()
    for axis, dim in enumerate(listed(shape, "a shape", "a list of dims, as ['batch', 3, None]")):
        fill_dim(dims.dim.add(), dim, axis, info.name)


def fill_dim(entry: onnx.TensorShapeProto.Dimension, dim: Any, axis: int, name: str) -> None:
    """Write one dim into its message: an integer, a name, or None for neither; a denotation stays."""
    dim = plain(dim)
    entry.ClearField("dim_value")
    entry.ClearField("dim_param")
    if isinstance(dim, str) and dim:
        entry.dim_param = text(dim)
    elif isinstance(dim, int) and not isinstance(dim, bool) and 0 <= dim < 2**63:
        entry.dim_value = dim
    elif dim is not None:
        raise EditError(f"dim {axis} of {name!r} is an integer ≥ 0, a name or None; got {dim!r}")


def display_name(value_name: str) -> str:
    """The last part of a path-like value name, which is what tells it apart on a small drawing."""
    return value_name.rstrip("/").rsplit("/", 1)[-1] or value_name or "_"


def unnamed_dim(value_name: str, axis: Any) -> str:
    """The name that stands for a dim without one: "X.0" for axis 0 of X."""
    return f"{display_name(value_name)}.{axis}"


def describe(message: Any, other: Any) -> None:
    """Give a declaration or tensor the documentation and metadata of another, where it has none."""
    if other is None:
        return
    if other.HasField("doc_string") and not message.HasField("doc_string"):
        message.doc_string = other.doc_string
    if not message.metadata_props:
        message.metadata_props.extend(other.metadata_props)
