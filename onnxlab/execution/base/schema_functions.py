"""Functions that operator schemas carry, as scopes that can be compiled.

A schema's body may be fixed, or made for the node at hand from its attributes and the types of its inputs
("context-dependent"); the latter is built once per combination of element types and ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from onnxlab import dtypes, schemas
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.snapshot import AttributeRef, NodeView, ScopeView, Snapshot
from onnxlab.graph.protos import attributes as codec
from onnxlab.schemas import Schema

_DOMAIN = "onnxlab.schema"  # domain of the wrapping function: no node inside can refer to it


def is_fixed(schema: Schema) -> bool:
    """Whether the schema's body is the same for every node."""
    return schema.function is not None or (schema.onnx is not None and bool(schema.onnx.has_function))


def fixed_function(schema: Schema, opsets: Mapping[str, int]) -> tuple[Snapshot, ScopeView] | None:
    """The body of a schema where `opsets` are imported, or None if it has none."""
    if not is_fixed(schema):
        return None
    if schema.function is not None:
        return _scoped(schema.function.SerializeToString(), _default_opset(opsets))
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
    proto = _node_proto(schema, node, attributes)
    types = [_type_proto(array) for array in arrays]
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


def _node_proto(schema: Schema, node: NodeView, attributes: Mapping[str, Any]) -> Any:
    import onnx

    proto = onnx.NodeProto(
        op_type=node.op_type, domain=node.domain, name=node.name, input=node.inputs, output=node.outputs
    )
    for name, value in node.attributes.items():
        if not isinstance(value, AttributeRef):
            proto.attribute.append(node.attributes.proto(name))
        elif name in attributes:
            formal = schema.attributes.get(name)
            proto.attribute.append(codec.encode(name, attributes[name], formal.type if formal else None))
    return proto


def _type_proto(array: Any) -> Any:
    import onnx

    proto = onnx.TypeProto()
    if isinstance(array, np.ndarray):
        proto.tensor_type.elem_type = dtypes.from_numpy(array.dtype)
        proto.tensor_type.shape.SetInParent()
        for _ in range(array.ndim):
            proto.tensor_type.shape.dim.add()
    return proto


@lru_cache(maxsize=256)
def _scoped(data: bytes, default_opset: int) -> tuple[Snapshot, ScopeView] | None:
    """A serialized FunctionProto as a scope of a snapshot of its own."""
    import onnx

    if not data:
        return None
    function = onnx.FunctionProto.FromString(data)
    function.domain, function.overload = _DOMAIN, ""
    if not any(entry.domain in ("", "ai.onnx") for entry in function.opset_import):
        function.opset_import.add(domain="", version=default_opset)
    model = onnx.ModelProto(ir_version=10, functions=[function], opset_import=function.opset_import)
    snapshot = ModelGraph(model).snapshot()
    return snapshot, snapshot.functions[_DOMAIN, function.name, ""]
