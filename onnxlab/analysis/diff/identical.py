"""Whether two models are equal to the byte, found out without matching anything."""

from __future__ import annotations

from pathlib import Path

import onnx

from onnxlab.analysis.diff.matching import GraphMatching
from onnxlab.errors import LoadError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.protos import external_data
from onnxlab.graph.protos.lazy_tensor import LazyTensor

_BLOCK = 1 << 22
"""Elements that are compared at a time."""


def identical(a: ModelGraph, b: ModelGraph) -> bool:
    """Whether all messages are equal, and what lies in data files too."""
    if a is b:
        return True
    model, other = a.proto, b.proto
    return model == other and _same_data(model, other, a.base_dir, b.base_dir)


def _same_data(model: onnx.ModelProto, other: onnx.ModelProto, base_dir: Path | None, other_dir: Path | None) -> bool:
    if base_dir is not None and other_dir is not None and base_dir.resolve() == other_dir.resolve():
        return True
    for first, second in zip(external_data.all_tensors(model), external_data.all_tensors(other), strict=True):
        if external_data.is_external(first):
            try:
                if not _same_elements(LazyTensor(first, base_dir), LazyTensor(second, other_dir)):
                    return False
            except LoadError:
                return False
    return True


def _same_elements(tensor: LazyTensor, other: LazyTensor) -> bool:
    for start in range(0, tensor.size, _BLOCK):
        count = min(_BLOCK, tensor.size - start)
        if tensor.elements(start, count).tobytes() != other.elements(start, count).tobytes():
            return False
    return True


def same_places(a: ModelGraph, b: ModelGraph) -> GraphMatching:
    """The pairs of two models that are equal: everything by its place."""
    matching = GraphMatching()
    for ident, other in zip(_scopes(a), _scopes(b), strict=True):
        scope, its = a.scopes[ident], b.scopes[other]
        matching.scopes[ident] = other
        matching.nodes.update(zip(scope.node_ids, its.node_ids, strict=True))
        matching.values.update({vid: its.names[name] for name, vid in scope.names.items() if name in its.names})
    return matching


def _scopes(graph: ModelGraph) -> list[int]:
    """Scopes in an order that depends on the file alone."""
    pending = [graph.main.id, *graph.index.function_ids]
    pending += [ident for ident, scope in sorted(graph.scopes.items()) if scope.kind == "training"]
    idents = []
    while pending:
        scope = graph.scopes[pending.pop(0)]
        idents.append(scope.id)
        for ident in scope.node_ids:
            for bodies in graph.nodes[ident].bodies.values():
                pending.extend(bodies)
    return idents
