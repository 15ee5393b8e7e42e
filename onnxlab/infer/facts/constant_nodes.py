"""Facts of Constant nodes, straight from their attribute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.graph.protos import tensors
from onnxlab.infer.facts.type_protos import fact_of_tensor, stored_fact
from onnxlab.shapes import UNKNOWN, Fact, TensorFact, known


def constant_fact(attributes: Sequence[onnx.AttributeProto]) -> Fact:
    """The fact of a Constant's output; UNKNOWN where it has no value.

    Raises:
        ValueError, TypeError: the tensor's data does not fit its dims or type.
    """
    for attribute in attributes[:]:  # a list: iterating over a field of a message takes three times as long
        match attribute.name:
            case "value":
                return fact_of_tensor(attribute.t, tensors.to_array)
            case "sparse_value":
                sparse = attribute.sparse_tensor
                return stored_fact(sparse.values.data_type, sparse.dims)
            case "value_string":
                return TensorFact(dtypes.STRING, ())
            case "value_strings":
                return TensorFact(dtypes.STRING, (len(attribute.strings),))
            case "value_int":
                return _numbers(dtypes.INT64, np.array(attribute.i, np.int64))
            case "value_ints":
                return _numbers(dtypes.INT64, np.array(attribute.ints, np.int64))
            case "value_float":
                return _numbers(dtypes.FLOAT, np.array(attribute.f, np.float32))
            case "value_floats":
                return _numbers(dtypes.FLOAT, np.array(attribute.floats, np.float32))
    return UNKNOWN


def _numbers(elem_type: int, array: np.ndarray[Any, Any]) -> Fact:
    return TensorFact(elem_type, array.shape, known(array))
