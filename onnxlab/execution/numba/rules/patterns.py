"""Where patterns of nodes match in a part that is compiled; `graph.query.patterns` says how they are written.

    MatMul(Softmax([Add](MatMul(q, k), mask)), v)

Of that language rows of the table have operators of ai.onnx, plain names and numbers. A number is a constant that
equals it, which is looked at while binding. The order of the operands of Add and Mul does not count, and what does
nothing to floats in a region (Identity, Dropout, Cast to float32) may stand between any two operators: rewriting,
which must say why a pattern does not match and leaves every node in place that it does not name, has a matcher of its
own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from onnxlab import dtypes
from onnxlab.execution.base.background import paced
from onnxlab.execution.base.provider import Part
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.graph.query.patterns import parser
from onnxlab.graph.query.patterns.pattern import Argument, Call, Name, Number

_COMMUTATIVE = ("Add", "Mul")
_THROUGH = ("Identity", "Cast", "Dropout")
_EXTRA = ("ReduceMean",)
"""Operators whose further inputs are no operands: axes."""


def _passes(node: NodeView) -> bool:
    """Whether a node hands on what it gets: casts to less than float32 round."""
    if node.domain or node.op_type not in _THROUGH:
        return False
    return node.op_type != "Cast" or node.attributes.get("to") == dtypes.FLOAT


def parse(text: str) -> tuple[Call, ...]:
    """The ways of writing that a pattern stands for.

    Raises:
        ValueError: it is no pattern, or says what is not looked at here.
    """
    ways = parser.parse(text)
    for call in (inner for way in ways for inner in way.calls()):
        known = len(call.op_types) == 1 and not (call.domain or call.attributes or call.stays or call.output)
        if not known or not all(map(_is_plain, call.inputs)):
            raise ValueError(f"{call} asks for more than operators of ai.onnx, names and numbers")
    return ways


def _is_plain(argument: Argument) -> bool:
    """Whether a piece of a pattern is an operator, a name without conditions, or one number."""
    if isinstance(argument, Name):
        return argument == Name(argument.name)
    return isinstance(argument, Call) or (isinstance(argument, Number) and isinstance(argument.value, int | float))


@dataclass(frozen=True, slots=True)
class Match:
    """Nodes of a part that a pattern describes.

    Attributes:
        nodes: in the part's order; the last one makes the result.
        values: names of values by the pattern's names.
        numbers: (name of a value, what it has to be).
        members: the matches that it is made of, where it is made of several.
    """

    nodes: tuple[NodeView, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    numbers: tuple[tuple[str, float], ...] = ()
    members: tuple[Match, ...] = ()

    @property
    def output(self) -> str:
        """The name of the value that the match computes."""
        return self.nodes[-1].outputs[0]

    def node(self, op_type: str) -> NodeView:
        """The first node of an operator that the pattern has."""
        return next(node for node in self.nodes if node.op_type == op_type)


class Matcher:
    """Finds patterns in a part. What is inside of a match is read by nothing else."""

    def __init__(self, part: Part) -> None:
        self._place = {node.id: place for place, node in enumerate(part.nodes)}
        self._makers = {name: node for node in paced(part.nodes) for name in node.outputs if name}
        self._outputs = frozenset(part.outputs)
        self._before: dict[int, frozenset[str]] = {}
        self._readers: dict[str, list[NodeView]] = defaultdict(list)
        for node in paced(part.nodes):
            for name in node.inputs:
                self._readers[name].append(node)

    def find(self, term: Call, root: NodeView) -> Match | None:
        """The first way in which a term describes a node and those before it."""
        if len(root.outputs) != 1 or not self._fits(term, root):
            return None
        for match in self._matches(term, root.outputs[0], Match(())):
            nodes = tuple(sorted(dict.fromkeys(match.nodes), key=lambda node: self._place[node.id]))
            named = {call.name for call in term.calls()}
            outer = [name for variable, name in match.values.items() if variable not in named]
            if nodes[-1] is root and self._is_closed(nodes, outer):
                return replace(match, nodes=nodes)
        return None

    def only_reader(self, node: NodeView) -> NodeView | None:
        """The node that alone reads what a node makes, None where there are several or it leaves the part."""
        readers = self._readers[node.outputs[0]]
        return readers[0] if len(readers) == 1 and node.outputs[0] not in self._outputs else None

    def origin(self, name: str) -> str:
        """The value that a name stands for, before operators that do nothing."""
        node = self._makers.get(name)
        while node is not None and _passes(node):
            name = node.inputs[0]
            node = self._makers.get(name)
        return name

    def _is_closed(self, nodes: Sequence[NodeView], outer: Sequence[str]) -> bool:
        """Whether nothing else reads what these nodes make but the last one, and none makes what comes from outside."""
        inside = set(nodes)
        names = [name for node in nodes[:-1] for name in node.outputs if name]
        if not set(names).isdisjoint(outer):
            return False
        return not any(name in self._outputs or not inside.issuperset(self._readers[name]) for name in names)

    def _matches(self, term: Argument, name: str, match: Match) -> Iterator[Match]:
        """All ways in which a pattern describes a value, added to what was found before."""
        if isinstance(term, Number):
            yield replace(match, numbers=(*match.numbers, (name, float(term.value))))
        elif isinstance(term, Name):
            yield from self._named(term.name, name, match)
        elif isinstance(term, Call):
            node, passed = self._maker(name, term.op_type)
            if node is None or not self._fits(term, node):
                return
            if term.name:
                match = replace(match, values={**match.values, term.name: name})
            match = replace(match, nodes=(*match.nodes, *passed, node))
            yield from self._operands(term, node, match)

    def _named(self, variable: str, name: str, match: Match) -> Iterator[Match]:
        known = match.values.get(variable)
        if known is None:
            yield replace(match, values={**match.values, variable: name})
        elif self.origin(known) == self.origin(name):
            yield match

    def _maker(self, name: str, op_type: str) -> tuple[NodeView | None, list[NodeView]]:
        """The node that makes a value, and those in between that do nothing."""
        passed: list[NodeView] = []
        node = self._makers.get(name)
        while node is not None and _passes(node) and node.op_type != op_type:
            passed.append(node)
            node = self._makers.get(node.inputs[0])
        return node, passed

    def _fits(self, term: Call, node: NodeView) -> bool:
        if node.op_type != term.op_type or node.domain:
            return False
        sources = self._sources(node)
        if any(sources.isdisjoint(makers) for makers in term.makers):
            return False
        return len(node.inputs) == len(term.inputs) or term.op_type in _EXTRA

    def _sources(self, node: NodeView) -> frozenset[str]:
        """The operators that a node's inputs come from, those in between included."""
        operators = self._before.get(node.id)
        if operators is None:
            kinds: set[str] = set()
            for name in node.inputs:
                maker = self._makers.get(name)
                while maker is not None:
                    kinds.add(maker.op_type)
                    maker = self._makers.get(maker.inputs[0]) if _passes(maker) else None
            operators = self._before[node.id] = frozenset(kinds)
        return operators

    def _operands(self, term: Call, node: NodeView, match: Match) -> Iterator[Match]:
        orders = [term.inputs]
        if term.op_type in _COMMUTATIVE:
            orders.append(term.inputs[::-1])
        for order in orders:
            ways: Iterator[Match] = iter((match,))
            for operand, name in zip(order, node.inputs, strict=False):
                ways = self._extended(operand, name, ways)
            yield from ways

    def _extended(self, operand: Argument, name: str, ways: Iterator[Match]) -> Iterator[Match]:
        for way in ways:
            yield from self._matches(operand, name, way)
