"""Whether two models are equal to the byte, found out without matching anything."""

from __future__ import annotations

from pathlib import Path

import onnx

from onnxlab.analysis.diff.matching import Matching
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
    one, other = a.proto, b.proto
    return one == other and _same_data(one, other, a.base_dir, b.base_dir)


def _same_data(one: onnx.ModelProto, other: onnx.ModelProto, mine: Path | None, its: Path | None) -> bool:
    if mine is not None and its is not None and mine.resolve() == its.resolve():
        return True
    for first, second in zip(external_data.all_tensors(one), external_data.all_tensors(other), strict=True):
        if external_data.is_external(first):
            try:
                if not _same_elements(LazyTensor(first, mine), LazyTensor(second, its)):
                    return False
            except LoadError:
                return False
    return True


def _same_elements(one: LazyTensor, other: LazyTensor) -> bool:
    for start in range(0, one.size, _BLOCK):
        count = min(_BLOCK, one.size - start)
        if one.elements(start, count).tobytes() != other.elements(start, count).tobytes():
            return False
    return True


def same_places(a: ModelGraph, b: ModelGraph) -> Matching:
    """The pairs of two models that are equal: everything by its place."""
    found = Matching()
    for one, other in zip(_scopes(a), _scopes(b), strict=True):
        mine, its = a.scopes[one], b.scopes[other]
        found.scopes[one] = other
        found.nodes.update(zip(mine.node_ids, its.node_ids, strict=True))
        found.values.update({vid: its.names[name] for name, vid in mine.names.items() if name in its.names})
    return found


def _scopes(graph: ModelGraph) -> list[int]:
    """Scopes in an order that depends on the file alone."""
    pending = [graph.main.id, *graph.index.function_ids]
    pending += [ident for ident, scope in sorted(graph.scopes.items()) if scope.kind == "training"]
    found = []
    while pending:
        scope = graph.scopes[pending.pop(0)]
        found.append(scope.id)
        for ident in scope.node_ids:
            for bodies in graph.nodes[ident].bodies.values():
                pending.extend(bodies)
    return found
