"""Functions that operator schemas carry, as scopes that can be compiled.

A schema's body may be fixed, or made for the node at hand from its attributes and the types of its inputs
("context-dependent"); the latter is built once per combination of element types and ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx.helper import make_tensor_type_proto

from onnxlab import dtypes, schemas
from onnxlab.execution.base.node_models import IR_VERSION, node_proto
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.snapshot import AttributeRef, NodeView, ScopeView, Snapshot
from onnxlab.graph.protos import attributes as codec
from onnxlab.infer.walk.schema_bodies import DOMAIN, standalone
from onnxlab.schemas import Schema


def fixed_function(schema: Schema, opsets: Mapping[str, int]) -> tuple[Snapshot, ScopeView] | None:
    """The body of a schema where `opsets` are imported, or None if it has none."""
    if schema.function is not None:
        return _scoped(schema.function.SerializeToString(), _default_opset(opsets))
    if schema.onnx is None or not schema.onnx.has_function:
        return None
    chosen = _version(schema.onnx.function_opset_versions, opsets.get(schema.domain, 1))
    return _scoped(schema.onnx.get_function_with_opset_version(chosen), _default_opset(opsets))


def made_function(
    schema: Schema, opsets: Mapping[str, int], node: NodeView, attributes: Mapping[str, Any], arrays: Sequence[Any]
) -> tuple[Snapshot, ScopeView] | None:
    """The body that a schema makes for a node on these inputs, or None if it makes none.

    Args:
        opsets: imported where the node stands.
        attributes: the node's, decoded, with references resolved; defaults left out.
    """
    if schema.onnx is None or not schema.onnx.has_context_dependent_function:
        return None
    chosen = _version(schema.onnx.context_dependent_function_opset_versions, opsets.get(schema.domain, 1))
    proto, types = _node_proto(schema, node, attributes), map(_type_proto, arrays)
    data = schema.onnx.get_context_dependent_function_with_opset_version(
        chosen, proto.SerializeToString(), [item.SerializeToString() for item in types]
    )
    return _scoped(data, _default_opset(opsets))


def _default_opset(opsets: Mapping[str, int]) -> int:
    """Version of ai.onnx for bodies that use it without importing it: the caller's, else the newest."""
    return opsets.get("") or schemas.latest_opset("")


def _version(versions: Sequence[int], version: int) -> int:
    """The newest body that is not newer than the model's opset, else the oldest, since a body imports its own opset."""
    return max((since for since in versions if since <= version), default=min(versions))


def signature(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The signature that a made body depends on: element type and rank of each input."""
    return tuple((array.dtype, array.ndim) if isinstance(array, np.ndarray) else type(array) for array in arrays)


def _node_proto(schema: Schema, node: NodeView, attributes: Mapping[str, Any]) -> onnx.NodeProto:
    """The node with its references to attributes resolved."""
    references = {name for name, value in node.attributes.items() if isinstance(value, AttributeRef)}
    types = {name: formal.type for name, formal in schema.attributes.items()}
    stored = [node.attributes.proto(name) for name in node.attributes if name not in references]
    resolved = [codec.encode(name, attributes[name], types.get(name)) for name in attributes if name in references]
    return node_proto(node, [*stored, *resolved])


def _type_proto(array: Any) -> onnx.TypeProto:
    """The element type and the rank of an array; nothing of any other value."""
    is_array = isinstance(array, np.ndarray)
    return make_tensor_type_proto(dtypes.from_numpy(array.dtype), [None] * array.ndim) if is_array else onnx.TypeProto()


@lru_cache(maxsize=256)
def _scoped(data: bytes, default_opset: int) -> tuple[Snapshot, ScopeView] | None:
    """A serialized FunctionProto as a scope of a snapshot of its own."""
    if not data:
        return None
    function = standalone(onnx.FunctionProto.FromString(data), default_opset)
    model = onnx.ModelProto(ir_version=IR_VERSION, functions=[function], opset_import=function.opset_import)
    snapshot = ModelGraph(model).snapshot()
    return snapshot, snapshot.functions[DOMAIN, function.name, ""]
