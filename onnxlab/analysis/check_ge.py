"""Rules of dumps of GE, whose references are not ONNX's: see `graph.protos.ge_dump`."""

from collections import Counter

from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import Scope
from onnxlab.graph.protos import ge_dump


def problems(graph: ModelGraph) -> list[Diagnostic]:
    """References that lead nowhere, outputs that nothing reads, names that stand for two nodes; scope by scope."""
    return [problem for scope in graph.scopes.values() for problem in _of_scope(graph, scope)]


def _of_scope(graph: ModelGraph, scope: Scope) -> list[Diagnostic]:
    nodes = [graph.nodes[ident] for ident in scope.node_ids]
    names = Counter(node.name for node in nodes)
    listed = {name for node in nodes for name in node.proto.output}
    read = {name for node in nodes for name in node.proto.input}
    diagnostics = []
    for node in nodes:
        label = graph.label(node)
        if names[node.name] > 1:
            message = f"{names[node.name]} nodes are called {node.name!r}, so references to it are ambiguous"
            diagnostics.append(Diagnostic("error", "ge-name", message, node.id, 0, scope.id, hint="rename all but one"))
        for name in node.proto.input:
            if name and (reference := ge_dump.split(name)) is None:
                message = f"{label} reads {name!r}, which is no reference of the form node:port"
                diagnostics.append(Diagnostic("error", "ge-reference", message, node.id, 0, scope.id))
            elif name and reference is not None and name not in listed:
                reason = f"{reference.node!r} does not list it" if reference.node in names else "there is no such node"
                message = f"{label} reads {name!r}: {reason}"
                diagnostics.append(Diagnostic("error", "ge-reference", message, node.id, 0, scope.id))
        for name in node.proto.output:
            if name not in read:
                message = f"{label} lists its output {name!r}, which nothing reads"
                diagnostics.append(Diagnostic("warning", "ge-unread", message, node.id, 0, scope.id))
    return diagnostics
