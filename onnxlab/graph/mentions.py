"""Every place of the protos that mentions a value by name, and the records that point into messages.

Used by the changes as methods of ModelGraph.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import onnx

from onnxlab.graph.records import NodeRecord, Scope, ValueRecord

if TYPE_CHECKING:
    from onnxlab.graph.modelgraph import ModelGraph


def rename_mentions(graph: "ModelGraph", value: ValueRecord, name: str) -> None:
    """Write a value's new name wherever the protos mention it; the index is not touched.

    Nodes that make or read it, inputs and outputs, initializers, value_info and quantization annotations of its scope,
    outputs of inner scopes, bindings of training graphs.
    """
    for node_id, slot in value.producers:
        graph.nodes[node_id].proto.output[slot] = name
    for node_id, slot in value.uses:
        graph.nodes[node_id].proto.input[slot] = name
    for scope_id, position in value.formal_outputs:
        outputs = graph.scopes[scope_id].proto.output
        if graph.scopes[scope_id].is_function:
            outputs[position] = name
        else:
            outputs[position].name = name
    scope = graph.scopes[value.scope]
    if scope.is_function:
        for position, vid in enumerate(scope.inputs):
            if vid == value.id:
                scope.proto.input[position] = name
    else:
        _rename_in_graph(graph, scope, value, name)
    scope.infos = None
    for info in scope.proto.value_info:
        if info.name == value.name:
            info.name = name


def _rename_in_graph(graph: "ModelGraph", scope: Scope, value: ValueRecord, name: str) -> None:
    for info in scope.proto.input:
        if info.name == value.name:
            info.name = name
    if value.initializer is not None:
        if isinstance(value.initializer, onnx.SparseTensorProto):
            value.initializer.values.name = name
        else:
            value.initializer.name = name
    for annotation in scope.proto.quantization_annotation:
        if annotation.tensor_name == value.name:
            annotation.tensor_name = name
        for entry in annotation.quant_parameter_tensor_names:
            if entry.value == value.name:
                entry.value = name
    if scope is graph.main:
        for training in graph.proto.training_info:
            for binding in [*training.initialization_binding, *training.update_binding]:
                if binding.key == value.name:
                    binding.key = name
                if binding.value == value.name:
                    binding.value = name


def refresh_bodies(graph: "ModelGraph", node: NodeRecord) -> None:
    """Point the records of a node's bodies into its proto again, after the proto was copied."""
    bodies = {name: iter(scopes) for name, scopes in node.bodies.items()}
    for attribute in node.proto.attribute:
        if attribute.name in bodies:
            for proto in [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs:
                _refresh_scope(graph, graph.scopes[next(bodies[attribute.name])], proto)


def _refresh_scope(graph: "ModelGraph", scope: Scope, proto: onnx.GraphProto) -> None:
    scope.proto = proto
    scope.infos = None
    for node_id, node_proto in zip(scope.node_ids, proto.node, strict=True):
        node = graph.nodes[node_id]
        node.proto = node_proto
        refresh_bodies(graph, node)
    for tensor in proto.initializer:
        graph.values[scope.names[tensor.name]].initializer = tensor
    for sparse in proto.sparse_initializer:
        graph.values[scope.names[sparse.values.name]].initializer = sparse
    for vid in scope.names.values():
        graph.values[vid].info = None
    for info in _infos(proto):
        vid = scope.names.get(info.name, 0)
        if vid and graph.values[vid].info is None:
            graph.values[vid].info = info


def refresh_info(graph: "ModelGraph", scope: Scope, name: str) -> ValueRecord | None:
    """Find the declaration of a value again after one was removed or replaced."""
    scope.infos = None
    vid = scope.names.get(name)
    if vid is None:
        return None
    value = graph.values[vid]
    value.info = None
    if not scope.is_function or value.defined:
        value.info = next((info for info in _infos(scope.proto) if info.name == name), None)
    return value


def _infos(proto: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.ValueInfoProto]:
    """Declarations of a graph or function, the binding ones first: inputs, outputs, then value_info."""
    if isinstance(proto, onnx.GraphProto):
        yield from proto.input
        yield from proto.output
    yield from proto.value_info
