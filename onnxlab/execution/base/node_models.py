"""Parts of models as models: a node, graph or function alone, so that it can be run like onnx.reference runs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import onnx

from onnxlab import schemas
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.graph.protos.renaming import nodes_inside

IR_VERSION = 10


def as_model(proto: Any, opset_version: int | None = None) -> Any:
    """A ModelProto that runs this NodeProto, GraphProto or FunctionProto; anything else is returned as it is.

    Inputs of nodes and functions are untyped: whatever is fed is taken.

    Args:
        opset_version: of a node's domain; default the newest. Graphs get the newest of every domain they use.
    """
    if isinstance(proto, onnx.NodeProto):
        domain = schemas.canonical_domain(proto.domain)
        return _model(_untyped("node", proto), {domain: opset_version} if opset_version else {})
    if isinstance(proto, onnx.GraphProto):
        return _model(proto, {})
    if isinstance(proto, onnx.FunctionProto):
        call = onnx.NodeProto(op_type=proto.name, domain=proto.domain, overload=proto.overload, input=proto.input,
                              output=proto.output)  # fmt: skip
        versions = {proto.domain: 1, **{entry.domain: entry.version for entry in proto.opset_import}}
        model = _model(_untyped(proto.name, call), versions)
        model.functions.append(proto)
        return model
    return proto


def node_proto(node: NodeView, attributes: Iterable[onnx.AttributeProto] | None = None) -> onnx.NodeProto:
    """A node of a snapshot as a message of its own; default: with the attributes that it has."""
    return onnx.NodeProto(
        op_type=node.op_type, domain=node.domain, name=node.name, input=node.inputs, output=node.outputs,
        attribute=map(node.attributes.proto, node.attributes) if attributes is None else attributes,
    )  # fmt: skip


def model_of(graph: onnx.GraphProto, opsets: Mapping[str, int]) -> onnx.ModelProto:
    """A model of this graph that imports `opsets`."""
    imports = [onnx.OperatorSetIdProto(domain=domain, version=version) for domain, version in opsets.items()]
    return onnx.ModelProto(ir_version=IR_VERSION, graph=graph, opset_import=imports)


def _untyped(name: str, node: onnx.NodeProto) -> onnx.GraphProto:
    """A graph of one node."""
    inputs, outputs = dict.fromkeys(filter(None, node.input)), filter(None, node.output)
    return onnx.GraphProto(
        name=name, node=[node], input=[onnx.ValueInfoProto(name=name) for name in inputs],
        output=[onnx.ValueInfoProto(name=name) for name in outputs],
    )  # fmt: skip


def _model(graph: onnx.GraphProto, versions: dict[str, int]) -> onnx.ModelProto:
    """A model that imports `versions`, and the newest version of every other domain that the graph uses."""
    domains = sorted({"", *versions, *_domains(graph)})
    return model_of(graph, {name: versions.get(name) or schemas.latest_opset(name) or 1 for name in domains})


def _domains(graph: onnx.GraphProto) -> set[str]:
    """Domains of the nodes, those of bodies included."""
    return {schemas.canonical_domain(node.domain) for node in nodes_inside(graph.node)}
