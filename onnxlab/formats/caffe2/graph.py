"""A network of Caffe2 as a GraphProto: its operators in the domain caffe2, what an init net fills as initializers.

Caffe2 may write a value again under its own name, which ONNX forbids: each value written under a name gets a number,
except the last one, which has the plain name unless an input or initializer has it.
"""

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from onnxlab.errors import LoadError
from onnxlab.graph.protos import tensors

DOMAIN: Final = "caffe2"
# operator of an init net: (dtype of the tensor that it fills, argument that has the elements)
_FILLS: Final = {
    "GivenTensorFill": ("float32", "floats"),
    "GivenTensorFp16Fill": ("float16", "floats"),
    "GivenTensorDoubleFill": ("float64", "floats"),
    "GivenTensorIntFill": ("int32", "ints"),
    "GivenTensorInt64Fill": ("int64", "ints"),
    "GivenTensorInt16Fill": ("int16", "ints"),
    "GivenTensorBoolFill": ("bool", "ints"),
    "GivenTensorStringFill": ("object", "strings"),
    "GivenTensorByteStringToUInt8Fill": ("uint8", "s"),
    "Int8GivenTensorFill": ("uint8", "s"),
    "Int8GivenIntTensorFill": ("int32", "ints"),
}
_QUANTIZATION: Final = ("Y_scale", "Y_zero_point")


def graph_of(net: Any, filled: Iterable[onnx.TensorProto] = ()) -> onnx.GraphProto:
    """The graph of a network.

    Args:
        net: a NetDef.
        filled: tensors that an init net fills.

    Raises:
        LoadError: the elements of a tensor that an operator fills do not fit its shape.
    """
    graph = onnx.GraphProto(name=net.name)
    initializers = {tensor.name: tensor for tensor in filled}
    operators = []
    for operator in net.op:
        tensor = filled_by(operator)
        if tensor is None:
            operators.append(operator)
        else:
            initializers[tensor.name] = tensor
    outside = dict.fromkeys([*net.external_input, *_unmade(operators)])
    versions = _Versions(operators, {*outside, *initializers})
    for operator in operators:
        graph.node.append(_node(operator, versions))
    graph.initializer.extend(initializers.values())
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in outside if name not in initializers)
    outputs = dict.fromkeys(net.external_output) or dict.fromkeys(_unread(operators))
    graph.output.extend(onnx.ValueInfoProto(name=versions.now(name)) for name in outputs)
    return graph


class _Versions:
    """Names of values that are written more than once."""

    def __init__(self, operators: Iterable[Any], outside: set[str]) -> None:
        self._last = Counter(name for operator in operators for name in operator.output)
        self._outside = outside
        self._written: Counter[str] = Counter()
        self._taken = {*self._last, *outside}

    def write(self, name: str) -> str:
        """Count a write of a name; returns the name of the value written."""
        self._written[name] += 1
        return self.now(name)

    def now(self, name: str) -> str:
        """The name of the value that was last written under a name."""
        count = self._written[name]
        if count == 0 or (count == self._last[name] and name not in self._outside):
            return name
        numbered = f"{name}@{count}"
        while numbered in self._taken:
            numbered += "'"
        return numbered


def _unmade(operators: Iterable[Any]) -> Iterable[str]:
    """Names that are read before anything writes them."""
    produced: set[str] = set()
    for operator in operators:
        yield from (name for name in operator.input if name not in produced)
        produced.update(operator.output)


def _unread(operators: Iterable[Any]) -> Iterable[str]:
    every = list(operators)
    read = {name for operator in every for name in operator.input}
    return [name for operator in every for name in operator.output if name not in read]


def _node(operator: Any, versions: _Versions) -> onnx.NodeProto:
    node = onnx.NodeProto(op_type=operator.type, domain=DOMAIN, input=[versions.now(name) for name in operator.input])
    if operator.name:
        node.name = operator.name
    node.output.extend([versions.write(name) for name in operator.output])
    node.attribute.extend(_attribute(argument) for argument in operator.arg)
    for key in ("engine", "debug_info"):
        if operator.HasField(key):
            node.metadata_props.add(key=f"caffe2.{key}", value=getattr(operator, key))
    if operator.control_input:
        node.metadata_props.add(key="caffe2.control_input", value=",".join(operator.control_input))
    if operator.HasField("device_option"):
        device = operator.device_option
        node.metadata_props.add(key="caffe2.device", value=f"{device.device_type}:{device.device_id}")
    return node


def _attribute(argument: Any) -> onnx.AttributeProto:
    name = argument.name
    for field in ("i", "f", "s"):
        if argument.HasField(field):
            return helper.make_attribute(name, getattr(argument, field))
    if argument.HasField("n"):
        return onnx.AttributeProto(name=name, type=onnx.AttributeProto.GRAPH, g=graph_of(argument.n))
    if argument.nets:
        inner = [graph_of(net) for net in argument.nets]
        return onnx.AttributeProto(name=name, type=onnx.AttributeProto.GRAPHS, graphs=inner)
    kinds = onnx.AttributeProto
    for field, kind in (("floats", kinds.FLOATS), ("strings", kinds.STRINGS)):
        if held := getattr(argument, field):
            attribute = onnx.AttributeProto(name=name, type=kind)
            getattr(attribute, field).extend(held)
            return attribute
    return onnx.AttributeProto(name=name, type=kinds.INTS, ints=argument.ints)


def filled_by(operator: Any) -> onnx.TensorProto | None:
    """The tensor that an operator of an init net fills, None for any other operator; raises LoadError."""
    if operator.type not in _FILLS or len(operator.output) != 1:
        return None
    dtype, field = _FILLS[operator.type]
    arguments = {argument.name: argument for argument in operator.arg}
    if "values" not in arguments or "shape" not in arguments:
        return None
    values = arguments["values"]
    # bytes are one string, alone or in a list
    held = values.s or b"".join(values.strings) if field == "s" else getattr(values, field)
    name, shape = operator.output[0], list(arguments["shape"].ints)
    count = prod(shape)
    if min(shape, default=0) < 0 or len(shape) > 64 or len(held) != count:
        raise LoadError(f"its {operator.type} fills {name!r:.200} of shape {shape} with {len(held)} elements")
    if field == "s":
        array = np.frombuffer(held, np.uint8)
    else:
        array = np.asarray(list(held), dtype)
    tensor = tensors.from_array(array.reshape(shape), name)
    for key in _QUANTIZATION:
        if key in arguments:
            number = arguments[key].f if arguments[key].HasField("f") else arguments[key].i
            tensor.metadata_props.add(key=f"caffe2.{key}", value=f"{number:g}")
    return tensor
