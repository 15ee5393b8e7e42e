"""Facts of Constant nodes, straight from their attribute."""

from __future__ import annotations

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.graph import tensors
from onnxlab.infer.types import fact_of_initializer
from onnxlab.shapes import UNKNOWN, Fact, TensorFact, known

_LISTS = {
    "value_int": (dtypes.INT64, np.int64),
    "value_ints": (dtypes.INT64, np.int64),
    "value_float": (dtypes.FLOAT, np.float32),
    "value_floats": (dtypes.FLOAT, np.float32),
}


def constant_fact(attributes: list[onnx.AttributeProto]) -> Fact:
    """The fact of a Constant's output; UNKNOWN where it has no value.

    Raises:
        ValueError, TypeError: the tensor's data does not fit its dims or type.
    """
    for attribute in attributes:
        match attribute.name:
            case "value":
                return fact_of_initializer(attribute.t, lambda: tensors.to_array(attribute.t))
            case "sparse_value":
                sparse = attribute.sparse_tensor
                return TensorFact(sparse.values.data_type, tuple(sparse.dims))
            case "value_string":
                return TensorFact(dtypes.STRING, ())
            case "value_strings":
                return TensorFact(dtypes.STRING, (len(attribute.strings),))
            case "value_int" | "value_float":
                elem_type, scalar = _LISTS[attribute.name]
                item = attribute.i if attribute.name == "value_int" else attribute.f
                return TensorFact(elem_type, (), known(scalar(item)))
            case "value_ints" | "value_floats":
                elem_type, scalar = _LISTS[attribute.name]
                items = attribute.ints if attribute.name == "value_ints" else attribute.floats
                return TensorFact(elem_type, (len(items),), known(np.array(items, dtype=scalar)))
    return UNKNOWN
