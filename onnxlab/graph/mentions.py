"""Every place of the protos that mentions a value by name, and the records that point into messages.

Used by the changes as methods of ModelGraph.
"""

from typing import TYPE_CHECKING, Any

import onnx

from onnxlab.graph.records import NodeRecord, Scope, ValueRecord

if TYPE_CHECKING:
    from onnxlab.graph.modelgraph import ModelGraph


Mention = tuple[Any, ...]
"""Steps from a scope's or the model's proto to a string field: ("value_info", 3, "name")."""


def mentions_by_name(graph: "ModelGraph", value: ValueRecord) -> tuple[Mention, ...]:
    """Places that mention a value by nothing but its name: declarations, quantization annotations, training bindings.

    Entries that mention a name which no value has are left by some exporters; so what a rename changed must be
    remembered to be undone exactly.
    """
    scope, name = graph.scopes[value.scope], value.name
    found: list[Mention] = [
        ("value_info", i, "name") for i, info in enumerate(scope.proto.value_info) if info.name == name
    ]
    if scope.is_function:
        return tuple(found)
    for i, annotation in enumerate(scope.proto.quantization_annotation):
        if annotation.tensor_name == name:
            found.append(("quantization_annotation", i, "tensor_name"))
        for j, entry in enumerate(annotation.quant_parameter_tensor_names):
            if entry.value == name:
                found.append(("quantization_annotation", i, "quant_parameter_tensor_names", j, "value"))
    if scope is graph.main:
        for i, training in enumerate(graph.proto.training_info):
            for field in ("initialization_binding", "update_binding"):
                for j, entry in enumerate(getattr(training, field)):
                    found += [
                        ("training_info", i, field, j, key) for key in ("key", "value") if getattr(entry, key) == name
                    ]
    return tuple(found)


def rename_mentions(graph: "ModelGraph", value: ValueRecord, name: str, mentions: tuple[Mention, ...]) -> None:
    """Write a value's new name where the index says it is mentioned, and at `mentions`; the index is not touched.

    Nodes that make or read it, inputs and outputs of its scope and inner ones, its initializer.
    """
    for node_id, slot in value.producers:
        graph.nodes[node_id].proto.output[slot] = name
    for node_id, slot in value.uses:
        graph.nodes[node_id].proto.input[slot] = name
    for scope_id, position in value.formal_outputs:
        _rename_formal(graph.scopes[scope_id].proto.output, position, name)
    scope = graph.scopes[value.scope]
    for position, vid in enumerate(scope.inputs):
        if vid == value.id:
            _rename_formal(scope.proto.input, position, name)
    if isinstance(value.initializer, onnx.SparseTensorProto):
        value.initializer.values.name = name
    elif value.initializer is not None:
        value.initializer.name = name
    for *path, field in mentions:
        target: Any = graph.proto if path[0] == "training_info" else scope.proto
        for step in path:
            target = target[step] if isinstance(step, int) else getattr(target, step)
        setattr(target, field, name)


def _rename_formal(formals: Any, position: int, name: str) -> None:
    """Inputs and outputs are messages in a graph and plain names in a function."""
    if isinstance(formals[position], str):
        formals[position] = name
    else:
        formals[position].name = name


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
    infos = graph.index.infos(scope)
    for name, vid in scope.names.items():
        graph.values[vid].info = infos.get(name)


def refresh_info(graph: "ModelGraph", scope: Scope, name: str) -> ValueRecord | None:
    """Find the declaration of a value again after one was added, removed or replaced."""
    scope.infos = None
    vid = scope.names.get(name)
    if vid is None:
        return None
    value = graph.values[vid]
    value.info = graph.index.infos(scope).get(name) if value.defined else None
    return value
