"""Bodies of nodes, and what rules, calls and schema bodies ask of the walker: `walker.py` has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from onnxlab.errors import Diagnostic
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.infer.facts.policy import Policy
from onnxlab.infer.facts.value_sources import Sources
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.shapes import Fact


@dataclass(frozen=True, slots=True)
class ScopeBody:
    """A subgraph attribute of a node: a `Body` that knows its scope."""

    scope: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    output_facts: tuple[Fact, ...]


class BodyWalker(Protocol):
    """Inference of whole scopes of one graph."""

    graph: ModelGraph
    policy: Policy
    sources: Sources
    token: int

    def walk_scope(self, frame: FactFrame, scope: Scope) -> None:
        """Infer initializers and all nodes of a scope; its inputs have facts already."""

    def walk_inside(self, frame: FactFrame, scope: Scope) -> None:
        """Walk a subgraph, or a function, of a node that is being inferred. Raises FactError where it is too deep."""

    def walk_for(self, frame: FactFrame, owner: NodeRecord, body: ScopeBody, facts: Sequence[Fact]) -> list[Fact]:
        """Facts of a body's outputs for these facts of its inputs, for a rule of the body's owner."""
        ...

    def all_diagnostics(self, frame: FactFrame) -> list[Diagnostic]:
        """The problems of a frame and of the calls that it makes."""
        ...

    def of(self, graph: ModelGraph) -> BodyWalker:
        """A walker of another graph, with the default policy."""
        ...
