"""Contents of nodes and stored tensors as numbers: equal where these are equal, whatever anything is called.

The numbers are Python's hashes, which differ from process to process, so that no file can be made to collide.
"""

from __future__ import annotations

import math
from typing import Any

import onnx

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.constants import is_constant, numbers_of
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos import external_data, tensors
from onnxlab.infer.walk.operator_catalogue import signature

_BLOCK = 1 << 24
"""Bytes of external data that are read at a time."""


def operator(node: NodeRecord) -> int:
    """The operator alone."""
    proto = node.proto
    return hash((proto.op_type, node.domain, proto.overload))


def behavior(graph: ModelGraph, node: NodeRecord) -> int:
    """Operator and attributes; of bodies what their nodes do, in order."""
    if not node.bodies:
        return hash(signature(node.proto.SerializeToString(), True))
    plain = [item.SerializeToString() for item in node.proto.attribute if item.name not in node.bodies]
    bodies = [(name, *(body_behavior(graph, graph.scopes[body]) for body in ids)) for name, ids in node.bodies.items()]
    return hash((operator(node), *sorted(plain), *sorted(bodies)))


def body_behavior(graph: ModelGraph, scope: Scope) -> int:
    """The nodes of a body in file order, without names."""
    inner = [behavior(graph, graph.nodes[ident]) for ident in scope.node_ids]
    return hash((len(scope.inputs), len(scope.outputs), *inner))


def constant_of(graph: ModelGraph, value: ValueRecord) -> Any:
    """The message that stores a value: an initializer, the attribute of the Constant that makes it, or None."""
    if value.initializer is not None:
        return value.initializer
    if not value.producers:
        return None
    node = graph.nodes[value.producers[0][0]]
    if (
        node.proto.op_type != "Constant"
        or not is_constant(node)
        or len(node.proto.attribute) != 1
        or node.proto.attribute[0].ref_attr_name
    ):
        return None
    attribute = node.proto.attribute[0]
    return attribute.t if attribute.name == "value" else attribute


def content(graph: ModelGraph, stored: Any) -> tuple[int, int]:
    """(content, kind) of what `constant_of` found: the elements with type and shape, and type with rank alone."""
    if isinstance(stored, onnx.TensorProto):
        dims, kind = tuple(stored.dims), stored.data_type
        return hash((kind, dims, _elements(stored, graph))), hash(("stored", kind, len(dims)))
    if isinstance(stored, onnx.SparseTensorProto):
        parts = (_elements(stored.values, graph), _elements(stored.indices, graph))
        return hash((tuple(stored.dims), *parts)), hash(("stored", stored.values.data_type, len(stored.dims)))
    array = numbers_of(stored)
    if array is None:
        data = stored.SerializeToString()
        return hash(data), hash(("stored", stored.name))
    elem_type = dtypes.from_numpy(array.dtype)
    return hash((elem_type, array.shape, _in_blocks(array.tobytes()))), hash(("stored", elem_type, array.ndim))


def _elements(tensor: onnx.TensorProto, graph: ModelGraph) -> int:
    """A number for the elements of a tensor, wherever they are stored; of unreadable ones for the message."""
    try:
        if tensor.HasField("raw_data") and not tensor.data_location:
            return _in_blocks(tensor.raw_data)
        if tensor.data_type == dtypes.STRING:
            return hash(tuple(tensor.string_data))
        if external_data.is_external(tensor):
            return _external(tensor, graph, tensors.nbytes(tensor))
        return _in_blocks(tensors.to_bytes(tensor, graph.base_dir))
    except (LoadError, ValueError):
        message = onnx.TensorProto.FromString(tensor.SerializeToString())
        for field in ("name", "doc_string", "metadata_props"):
            message.ClearField(field)
        return hash(message.SerializeToString())


def _in_blocks(data: bytes) -> int:
    if len(data) <= _BLOCK:
        return hash(data)
    view = memoryview(data)
    return hash(tuple(hash(view[start : start + _BLOCK]) for start in range(0, len(data), _BLOCK)))


def _external(tensor: onnx.TensorProto, graph: ModelGraph, size: int) -> int:
    """A hash as `_in_blocks` makes it, with no more than a block of the bytes in memory."""
    read = external_data.read
    if size <= _BLOCK:
        return hash(read(tensor, graph.base_dir, size).tobytes())
    starts = range(0, size, _BLOCK)
    blocks = (read(tensor, graph.base_dir, size, start, min(_BLOCK, size - start)) for start in starts)
    return hash(tuple(hash(block.tobytes()) for block in blocks))


def element_count(stored: Any) -> int:
    """The number of elements of a stored message; 1 for an attribute that is no tensor."""
    return math.prod(stored.dims) if isinstance(stored, onnx.TensorProto) else 1
