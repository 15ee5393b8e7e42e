"""Propagation of facts: nodes in topological order, and the readers of every value whose fact changes."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord
from onnxlab.infer.rules.fact_frame import Frame
from onnxlab.infer.walk.walker import Walker

_MAX_VISITS = 3
"""How often one node is inferred for one commit: more than once only in a file whose edges form a cycle."""


def propagate(graph: ModelGraph, walker: Walker, frame: Frame, dirty: Iterable[int]) -> None:
    """Infer dirty nodes in topological order, and the readers of every value whose fact changes."""
    nodes, values, scopes = graph.nodes, graph.values, graph.scopes
    heap: list[tuple[int, int, int]] = []
    waiting: set[int] = set()
    visits: dict[int, int] = {}

    def push(node_id: int) -> None:
        node = nodes[node_id]
        scope = scopes[node.scope]
        if scope.owner or scope.is_function:
            if (top := _top(graph, node)) is None:
                return
            node, scope = top, scopes[top.scope]
        if node.id not in waiting and visits.get(node.id, 0) < _MAX_VISITS:
            waiting.add(node.id)
            rank = graph.index.rank(node) if scope.backward else node.label
            heapq.heappush(heap, (node.scope, rank, node.id))

    for node_id in dirty:
        push(node_id)
    while heap:
        node = nodes[heapq.heappop(heap)[2]]
        waiting.discard(node.id)
        visits[node.id] = visits.get(node.id, 0) + 1
        for vid in walker.infer_node(frame, node):
            for reader, _ in values[vid].uses:
                push(reader)


def _top(graph: ModelGraph, node: NodeRecord) -> NodeRecord | None:
    """The node of a root scope that is `node` or holds it; None for a node inside a function."""
    scope = graph.scopes[node.scope]
    while scope.owner:
        node = graph.nodes[scope.owner]
        scope = graph.scopes[node.scope]
    return None if scope.is_function else node
