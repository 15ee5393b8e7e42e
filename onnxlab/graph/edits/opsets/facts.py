"""The known facts of the values around a node that is converted: their types, and the elements of constants."""

import math
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from onnxlab.errors import LoadError
from onnxlab.graph.protos.attributes import encode
from onnxlab.graph.protos.tensors import to_array

Nodes = list[onnx.NodeProto]
Rewritten = Nodes | str | None
"""Nodes in the words of another version, the reason why there are none, or None: nothing special is needed."""

Dim = int | str | None
"""A dimension: its size, its symbol, or None where nothing is known."""

_DOUBLES = 2**53  # to here, each integer is a float64
_REAL = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE)
_COMPUTED = ("Add", "Concat", "Identity", "Range", "Sub")  # operators with which the bodies of operators compute axes
_SMALL_INTEGERS = (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.BOOL)


@dataclass(frozen=True, slots=True)
class Facts:
    """Types and constants of values by name, and the outputs that nothing reads."""

    types: MutableMapping[str, onnx.TypeProto]
    constants: MutableMapping[str, onnx.TensorProto] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()

    def dims(self, name: str) -> list[Dim] | None:
        """The dimensions of a tensor; None where not even its rank is known."""
        if name in self.constants:
            return list(self.constants[name].dims)
        declared = self.types.get(name)
        if declared is None or not declared.tensor_type.HasField("shape"):
            return None
        return [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
            for dim in declared.tensor_type.shape.dim
        ]

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor, None where it is not known."""
        return None if (dims := self.dims(name)) is None else len(dims)

    def array(self, name: str) -> "np.ndarray[Any, Any] | None":
        """The elements of a constant; None for other values."""
        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def dtype(self, name: str) -> "np.dtype[Any] | None":
        """The element type of a tensor, None where it is not known."""
        elem_type = self.constants[name].data_type if name in self.constants else 0
        elem_type = elem_type or (self.types[name].tensor_type.elem_type if name in self.types else 0)
        return onnx.helper.tensor_dtype_to_np_dtype(elem_type) if elem_type else None


def input_of(node: onnx.NodeProto, slot: int) -> str:
    """The name of an input, "" where it is left out."""
    return node.input[slot] if slot < len(node.input) else ""


def constant(name: str, array: Any, dtype: Any = None) -> onnx.NodeProto:
    """A Constant node."""
    node = onnx.NodeProto(op_type="Constant", output=[name])
    node.attribute.append(encode("value", np.asarray(array, dtype), "tensor"))
    return node


def constants_in(nodes: Nodes, version: int) -> Nodes | str:
    """Nodes of a version whose Constants hold what Constants of that version can: before 9, only real numbers."""
    written: Nodes = []
    for node in nodes:
        tensor = node.attribute[0].t if node.op_type == "Constant" and len(node.attribute) == 1 else None
        if version >= 9 or tensor is None or tensor.data_type in _REAL:
            written.append(node)
            continue
        try:
            array = to_array(tensor) if tensor.data_type in _SMALL_INTEGERS else None
        except LoadError as error:
            return f"a Constant of ai.onnx {version} holds real numbers only, and its own cannot be read: {error}"
        if array is None or (array.astype(object) > _DOUBLES).any() or (array.astype(object) < -_DOUBLES).any():
            return f"a Constant of ai.onnx {version} holds real numbers only"
        real, cast = f"{node.output[0]}/real", onnx.NodeProto(op_type="Cast", output=node.output)
        cast.input.append(real)
        kind = tensor.data_type if version >= 6 else onnx.TensorProto.DataType.Name(tensor.data_type)
        cast.attribute.append(encode("to", kind))
        written += [constant(real, array, np.float64), cast]
    return written


def computed(node: onnx.NodeProto, facts: Facts, version: int) -> onnx.TensorProto | None:
    """The result of a node on the way to axes or sizes, where its inputs are known; None for others."""
    array: np.ndarray[Any, Any] | None = None
    if node.op_type == "Size" and (dims := facts.dims(node.input[0])) is not None:
        sizes = [dim for dim in dims if isinstance(dim, int)]
        array = np.array(math.prod(sizes), np.int64) if len(sizes) == len(dims) else None
    elif node.op_type in _COMPUTED and all(name in facts.constants for name in node.input):
        evaluator = ReferenceEvaluator(node, opsets={"": version})
        array = np.asarray(next(iter(evaluator.run(None, {name: facts.array(name) for name in node.input}))))
    return None if array is None or array.size > 64 else numpy_helper.from_array(array, node.output[0])


def copied(node: onnx.NodeProto, without: tuple[str, ...] = (), **attributes: Any) -> onnx.NodeProto:
    """A copy of a node without some attributes, and with others of the values given."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    copy.attribute.extend(
        attribute for attribute in node.attribute if attribute.name not in without and attribute.name not in attributes
    )
    copy.attribute.extend(encode(name, value) for name, value in attributes.items() if value is not None)
    return copy


def with_inputs(node: onnx.NodeProto, changes: Mapping[int, str]) -> onnx.NodeProto:
    """A copy of a node that reads other values in some slots."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input.extend([""] * (max(changes, default=-1) + 1 - len(copy.input)))
    for slot, name in changes.items():
        copy.input[slot] = name
    return copy


def operation(op_type: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:
    """A node with one output."""
    node = onnx.NodeProto(op_type=op_type, input=inputs, output=[output])
    node.attribute.extend(encode(name, value) for name, value in attributes.items())
    return node
