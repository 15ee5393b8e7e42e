"""What a shape rule sees of its node: the InferContext of row 1, and bodies as opaque things to infer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnxlab.infer.native import hole
from onnxlab.infer.operators import Operator, Problem
from onnxlab.limits import Body
from onnxlab.shapes import Dim, Fact

Walk = Callable[["ScopeBody", Sequence[Fact]], list[Fact]]


@dataclass(frozen=True, slots=True)
class ScopeBody:
    """A subgraph attribute of a node: a `Body` that knows its scope."""

    scope: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    output_facts: tuple[Fact, ...]


class RuleContext:
    """The InferContext of one node; `walk` infers bodies. Unknown dims are holes until the outcome is used."""

    def __init__(self, operator: Operator, node: str, depth: int, opset: Callable[[str], int], walk: Walk) -> None:
        self.node = node
        self.depth = depth
        self.outputs = operator.outputs
        self.problems: list[Problem] = []
        self._opset = opset
        self._walk = walk

    def opset_version(self, domain: str = "") -> int:
        """Version of `domain` that the node's graph or function imports; 0 where it imports none."""
        return self._opset(domain)

    def symbol(self, slot: int, axis: int) -> Dim:
        """The dimension that stands for an unknown size in an output."""
        return hole(slot, axis)

    def infer(self, body: Body, facts: Sequence[Fact]) -> list[Fact]:
        """Facts of a body's outputs, given those of its inputs by position."""
        assert isinstance(body, ScopeBody)
        return self._walk(body, facts)

    def warn(self, message: str, *, code: str = "suspect", expected: str = "", found: str = "", hint: str = "") -> None:
        """Reports what is suspect but does not keep the rule from an answer."""
        self.problems.append(Problem("warning", code, message, expected, found, hint))
