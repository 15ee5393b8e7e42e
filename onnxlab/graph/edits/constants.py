"""Constant nodes and initializers: two ways to store a tensor, each turned into the other."""

from typing import Any

import numpy as np
import onnx

from onnxlab import dtypes
from onnxlab.errors import EditError, LoadError
from onnxlab.graph.edit.changes import InsertNode, RemoveNode, SetInitializer
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.initializers import expect_initializer, refuse_function
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos import tensors
from onnxlab.graph.protos.attributes import decode

# attribute of Constant: the array that it stands for
_PLAIN: dict[str, Any] = {
    "value_float": lambda attribute: np.float32(attribute.f),
    "value_floats": lambda attribute: np.array(attribute.floats, np.float32),
    "value_int": lambda attribute: np.int64(attribute.i),
    "value_ints": lambda attribute: np.array(attribute.ints, np.int64),
}


def is_constant(node: NodeRecord) -> bool:
    """Whether a node is a Constant of ai.onnx."""
    return node.op_type == "Constant" and not node.domain


def numbers_of(attribute: onnx.AttributeProto) -> "np.ndarray[Any, Any] | None":
    """The array that `value_int` and the like of a Constant stand for; None for its other attributes."""
    return np.asarray(_PLAIN[attribute.name](attribute)) if attribute.name in _PLAIN else None


@recorded
def constant_to_initializer(graph: ModelGraph, node: NodeRecord) -> ValueRecord:
    """Replace a Constant node by an initializer of the same name; the value stays the same one.

    Raises:
        EditError: the node is no Constant, its value is a function's attribute, or the node is in a function.
    """
    if not is_constant(node):
        raise EditError(f"{graph.label(node)} is a {node.op_type}, not a Constant")
    scope = graph.scopes[node.scope]
    if not node.outputs or not node.outputs[0]:
        raise EditError(f"{graph.label(node)} makes no value")
    name = graph.values[node.outputs[0]].name
    refuse_function(scope, name)
    stored = _stored(graph, node, name)
    sparse = isinstance(stored, onnx.SparseTensorProto)
    ids = {name: node.outputs[0]}
    with graph.edit() as edit:
        edit.apply(RemoveNode(node.id))
        edit.apply(SetInitializer(scope.id, name, stored, sparse=sparse, ids=ids))
    return graph.values[scope.names[name]]


def cast_constant_to_initializer(graph: ModelGraph, node: NodeRecord) -> None:
    """Replace a Cast of a Constant by an initializer; others, those of functions and what no Cast makes stay."""
    source = graph.values.get(node.inputs[0]) if node.op_type == "Cast" and node.inputs else None
    maker = graph.nodes[source.producer[0]] if source is not None and source.producer else None
    if maker is None or not is_constant(maker) or graph.root(graph.scopes[node.scope]).is_function:
        return
    name, to = graph.values[node.outputs[0]].name, next(decode(item) for item in node.proto.attribute)
    try:
        kind = onnx.TensorProto.DataType.Value(to) if isinstance(to, str) else to
        with np.errstate(all="ignore"):
            array = tensors.to_array(_stored(graph, maker, name), graph.base_dir).astype(dtypes.to_numpy(kind))
        tensor = tensors.from_array(array, name)
    except (LoadError, ValueError, TypeError):  # data that cannot be read, a type that there is not
        return
    ids = {name: node.outputs[0]}
    with graph.edit() as edit:
        edit.apply(RemoveNode(node.id))
        edit.apply(SetInitializer(node.scope, name, tensor, sparse=False, ids=ids))
        if not any(value.uses or value.formal_outputs for value in map(graph.values.__getitem__, maker.outputs)):
            edit.apply(RemoveNode(maker.id))


def stored_array(graph: ModelGraph, value: ValueRecord) -> "np.ndarray[Any, Any] | None":
    """The data of an initializer, or of the Constant that makes a value, read-only; None for other values.

    Raises:
        LoadError: external data is missing, too short or outside of the model's folder.
    """
    maker = graph.nodes[value.producer[0]] if value.producer else None
    if maker is None or not is_constant(maker):
        return graph.array(value.id)
    try:
        array = tensors.to_array(_stored(graph, maker, value.name), graph.base_dir)
    except EditError:  # an attribute of the function that the node is in
        return None
    array.flags.writeable = False
    return array


def _stored(graph: ModelGraph, node: NodeRecord, name: str) -> Any:
    """The TensorProto or SparseTensorProto called `name` that a Constant makes."""
    attribute = next((item for item in node.proto.attribute if item.name.startswith(("value", "sparse_value"))), None)
    if attribute is None or attribute.ref_attr_name:
        raise EditError(f"{graph.label(node)} has no value of its own, so it cannot be stored")
    if attribute.name == "sparse_value":
        sparse = onnx.SparseTensorProto()
        sparse.CopyFrom(attribute.sparse_tensor)
        sparse.values.name = name
        return sparse
    tensor = onnx.TensorProto()
    if attribute.name == "value":
        tensor.CopyFrom(attribute.t)
    elif (numbers := numbers_of(attribute)) is not None:
        tensor = tensors.from_array(numbers)
    else:
        single = attribute.name == "value_string"
        strings = [attribute.s] if single else attribute.strings
        dims = [] if single else [len(strings)]
        tensor = onnx.TensorProto(data_type=onnx.TensorProto.STRING, dims=dims, string_data=strings)
    tensor.name = name
    return tensor


@recorded
def initializer_to_constant(graph: ModelGraph, value: ValueRecord) -> NodeRecord:
    """Replace an initializer by a Constant node in front of its first reader; the value stays the same one.

    Raises:
        EditError: the value is no initializer, or is also a graph input.
        LoadError: the external data cannot be read.
    """
    expect_initializer(graph, value)
    if value.is_input:
        raise EditError(f"{value.name!r} is the default of a graph input; remove the input first")
    scope = graph.scopes[value.scope]
    sparse = isinstance(value.initializer, onnx.SparseTensorProto)
    change = InsertNode(scope.id, _first_reader(graph, value), _constant(graph, value))
    with graph.edit() as edit:
        edit.apply(SetInitializer(scope.id, value.name, None, sparse=sparse))
        removal = edit.apply(change)
    return graph.nodes[removal.node]


def _constant(graph: ModelGraph, value: ValueRecord) -> onnx.NodeProto:
    """A Constant node that makes a value; external data is read, since attributes hold theirs."""
    stored = value.initializer
    name = FreshNames(graph, graph.scopes[value.scope]).node(value.name)
    proto = onnx.NodeProto(op_type="Constant", output=[value.name], name=name)
    if isinstance(stored, onnx.SparseTensorProto):
        attribute = proto.attribute.add(name="sparse_value", type=onnx.AttributeProto.SPARSE_TENSOR)
        attribute.sparse_tensor.CopyFrom(stored)
        return proto
    attribute = proto.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    external = stored.data_location == onnx.TensorProto.EXTERNAL
    attribute.t.CopyFrom(
        tensors.from_array(tensors.to_array(stored, graph.base_dir), value.name) if external else stored
    )
    return proto


def _first_reader(graph: ModelGraph, value: ValueRecord) -> int:
    """Position of the first node of the value's scope that reads it, itself or in a body; the end where none does."""
    scope = graph.scopes[value.scope]
    readers = {graph.index.owner_in(graph.nodes[node], scope.id) for node, _ in value.uses} - {0}
    positions = [scope.position(graph.nodes[node]) for node in readers]
    return min(positions, default=len(scope.node_ids))
