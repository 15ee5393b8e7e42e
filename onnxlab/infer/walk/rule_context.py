"""The context of a shape rule: the InferContext of row 1, and bodies as opaque things to infer."""

from __future__ import annotations

from collections.abc import Sequence

from onnxlab.graph.index.records import NodeRecord
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.native import hole
from onnxlab.infer.rules.operators import Operator, Problem
from onnxlab.infer.walk.body_walker import BodyWalker, ScopeBody
from onnxlab.limits import Body
from onnxlab.shapes import Dim, Fact


class RuleContext:
    """The InferContext of one node; the walker infers its bodies. Unknown dims are holes until the outcome is used."""

    __slots__ = ("_frame", "_node", "_walker", "outputs", "problems")

    def __init__(self, walker: BodyWalker, frame: FactFrame, node: NodeRecord, operator: Operator) -> None:
        self.outputs = operator.outputs
        self.problems: list[Problem] = []
        self._walker = walker
        self._frame = frame
        self._node = node

    @property
    def node(self) -> str:
        """Label of the node."""
        return self._walker.graph.label(self._node)

    @property
    def depth(self) -> int:
        """The number of bodies that the node is nested in."""
        scopes = self._walker.graph.scopes
        scope, depth = scopes[self._node.scope], 0
        while scope.kind == "subgraph":
            scope = scopes[scope.parent]
            depth += 1
        return depth

    def opset_version(self, domain: str = "") -> int:
        """Version of `domain` that the node's graph or function imports; 0 where it imports none."""
        graph = self._walker.graph
        return graph.opset_version(domain, graph.scopes[self._node.scope]) or 0

    def symbol(self, slot: int, axis: int) -> Dim:
        """The dimension that stands for an unknown size in an output."""
        return hole(slot, axis)

    def infer(self, body: Body, facts: Sequence[Fact]) -> list[Fact]:
        """Facts of a body's outputs, given those of its inputs by position."""
        assert isinstance(body, ScopeBody)
        return self._walker.walk_for(self._frame, self._node, body, facts)

    def warn(self, message: str, *, code: str = "suspect", expected: str = "", found: str = "", hint: str = "") -> None:
        """Reports what is suspect but does not keep the rule from an answer."""
        self.problems.append(Problem("warning", code, message, expected, found, hint))
