"""New errors of an edit: the first node that it made invalid."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.operators import Problem
from onnxlab.infer.walk.walker import Walker

_Refusal = tuple[int, Problem]


class Refusals:
    """The errors of all frames, compared with those of the last look.

    Attributes:
        known: the errors at the last look, None before the first one.
        first: the first new one in topological order, None where there is none.
    """

    def __init__(self, graph: ModelGraph) -> None:
        self._graph = graph
        self.known: set[_Refusal] | None = None
        self.first: Diagnostic | None = None

    def look(self, walker: Walker, frames: Iterable[FactFrame]) -> None:
        """Compare with the last look; the first look finds nothing new."""
        refusals = {
            (node, problem)
            for frame in frames
            for node, problems in frame.problems.items()
            for problem in problems
            if problem.severity == "error" and node in self._graph.nodes
        }
        before = refusals if self.known is None else self.known
        # a node whose refusal only changed its wording refused before
        refusing = {node for node, _ in before}
        new = [refusal for refusal in refusals - before if refusal[0] not in refusing]
        self.known = refusals
        self.first = None
        if new:
            node, problem = min(new, key=lambda refusal: (*self._place(refusal[0]), refusal[1].code))
            self.first = walker.diagnostic(self._graph.nodes[node], problem)

    def _place(self, node_id: int) -> tuple[list[float], int]:
        """The place of a node: the ranks of those that hold it and its own, bodies first; functions come last."""
        path: list[float] = [inf]
        node: NodeRecord | None = self._graph.nodes[node_id]
        while node is not None:
            path.insert(0, self._graph.index.rank(node))
            scope = self._graph.scopes[node.scope]
            node = self._graph.nodes[scope.owner] if scope.owner else None
        return ([int(scope.is_function), *path], node_id)
