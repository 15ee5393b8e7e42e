"""Parts of models as models: a node, graph or function alone, so that it can be run like onnx.reference runs it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx

from onnxlab import schemas


def as_model(proto: Any, opset_version: int | None = None) -> Any:
    """A ModelProto that runs this NodeProto, GraphProto or FunctionProto; anything else is returned as it is.

    Inputs of nodes and functions are untyped: whatever is fed is taken.

    Args:
        opset_version: of a node's domain; default the newest. Graphs get the newest of every domain they use.
    """
    if isinstance(proto, onnx.NodeProto):
        graph = onnx.GraphProto(name="node", node=[proto])
        _untyped(graph, proto.input, proto.output)
        return _model(graph, {schemas.canonical_domain(proto.domain): opset_version} if opset_version else {})
    if isinstance(proto, onnx.GraphProto):
        return _model(proto, {})
    if isinstance(proto, onnx.FunctionProto):
        call = onnx.NodeProto(op_type=proto.name, domain=proto.domain, overload=proto.overload, input=proto.input,
                              output=proto.output)  # fmt: skip
        graph = onnx.GraphProto(name=proto.name, node=[call])
        _untyped(graph, proto.input, proto.output)
        model = _model(graph, {proto.domain: 1, **{entry.domain: entry.version for entry in proto.opset_import}})
        model.functions.append(proto)
        return model
    return proto


def _untyped(graph: onnx.GraphProto, inputs: Iterable[str], outputs: Iterable[str]) -> None:
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(inputs) if name)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs if name)


def _model(graph: onnx.GraphProto, versions: dict[str, int]) -> onnx.ModelProto:
    """A model that imports `versions`, and the newest version of every other domain that the graph uses."""
    model = onnx.ModelProto(ir_version=10, graph=graph)
    for domain in sorted({"", *versions, *_domains(graph)}):
        version = versions.get(domain) or schemas.latest_opset(domain) or 1
        model.opset_import.add(domain=domain, version=version)
    return model


def _domains(graph: onnx.GraphProto) -> set[str]:
    """Domains of the nodes, those of bodies included."""
    domains: set[str] = set()
    waiting = [graph]
    while waiting:
        for node in waiting.pop().node:
            domains.add(schemas.canonical_domain(node.domain))
            waiting += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
            waiting += [body for attribute in node.attribute for body in attribute.graphs]
    return domains
