"""Matches of a pattern in text form in a model, as handles."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.handles import Node, Value
from onnxlab.graph.index.records import ValueRecord
from onnxlab.graph.query.patterns.parser import parse
from onnxlab.printable import printable
from onnxlab.shapes import Fact
from onnxlab.transforms.passes import worklist
from onnxlab.transforms.patterns.rule_match import Match, match
from onnxlab.transforms.rewriting import Rewriting

Bound = Value | tuple[Value | None, ...] | None
"""What a name of a pattern stands for."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place where a pattern matches.

    Attributes:
        nodes: the nodes of the pattern, the outermost one first.
        values: the values that the pattern's names stand for; None where one is absent, a tuple for `*name`.
    """

    nodes: tuple[Node, ...]
    values: Mapping[str, Bound]

    @property
    def node(self) -> Node:
        """The outermost node."""
        return self.nodes[0]

    def __str__(self) -> str:
        return printable(f"{len(self.nodes)} nodes, {self.node.label} outermost")


def occurrences(graph: ModelGraph, facts: Mapping[int, Fact], text: str) -> list[Occurrence]:
    """Every place where a pattern matches, graph by graph, producers first; places may share nodes.

    Raises:
        TransformError: the text is no pattern; the message says where.
    """
    ways = parse(text)
    rewriting = Rewriting(graph, facts, lambda names: {})
    roots = {(op_type, way.domain) for way in ways for op_type in way.op_types}
    matches = []
    for node in rewriting.nodes():
        if (node.op_type, node.domain) in roots:
            makers = worklist.makers_of(rewriting, node)
            tried = (match(rewriting, way, node) for way in ways if way.may_read(makers))
            fit = next((candidate for candidate in tried if isinstance(candidate, Match)), None)
            if fit is not None:
                matches.append(_occurrence(graph, fit))
    return matches


def _occurrence(graph: ModelGraph, fit: Match) -> Occurrence:
    nodes = dict.fromkeys(node.id for node in fit.nodes)
    values = {name: _handles(graph, bound) for name, bound in fit.values.items()}
    return Occurrence(tuple(Node(graph, ident) for ident in nodes), values)


def _handles(graph: ModelGraph, bound: ValueRecord | Iterable[ValueRecord | None] | None) -> Bound:
    if bound is None or isinstance(bound, ValueRecord):
        return None if bound is None else Value(graph, bound.id)
    return tuple(None if value is None else Value(graph, value.id) for value in bound)
