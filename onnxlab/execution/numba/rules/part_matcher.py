"""Matches of patterns of nodes in a part that is compiled; `graph.query.patterns` says how they are written.

    MatMul(Softmax([Add](MatMul(q, k), mask)), v)

Operators that do not change floats in a region (Identity, Dropout, Cast to float32) may stand between any two operators
of a pattern. A number in a pattern matches a constant that equals it, which is checked while binding. Shapes and
element types are known of constants alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from onnxlab import dtypes, schemas
from onnxlab.execution.base.background import paced
from onnxlab.execution.base.provider import Part
from onnxlab.execution.numba.plan.views import Array
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.graph.query.patterns import matcher
from onnxlab.graph.query.patterns.syntax_tree import NodePattern
from onnxlab.graph.query.patterns.wiring import Producer, Wiring

_THROUGH = ("Identity", "Cast", "Dropout")


def _passes(node: NodeView) -> bool:
    """Whether a node returns its input unchanged, which casts to less than float32 do not, since they round."""
    if node.op_type not in _THROUGH or node.domain:
        return False
    return node.op_type != "Cast" or node.attributes.get("to") == dtypes.FLOAT


@dataclass(frozen=True, slots=True)
class PartMatch:
    """Nodes of a part that a pattern describes.

    Attributes:
        nodes: in the part's order; the last one makes the result.
        values: names of values by the pattern's names.
        numbers: (name of a value, number that it has to equal).
        members: the matches that this one consists of, where it joins several.
    """

    nodes: tuple[NodeView, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    numbers: tuple[tuple[str, Any], ...] = ()
    members: tuple[PartMatch, ...] = ()

    @property
    def output(self) -> str:
        """The name of the value that the match computes."""
        return self.nodes[-1].outputs[0]

    def node(self, op_type: str) -> NodeView:
        """The first node of an operator that the pattern has."""
        return next(node for node in self.nodes if node.op_type == op_type)


class _PartWiring(Wiring[NodeView, str]):
    """The nodes of a part as the matcher sees them, values by name."""

    numbers_later = True

    def __init__(self, part: Part, constants: Mapping[str, Array]) -> None:
        self._place = {node.id: place for place, node in enumerate(part.nodes)}
        self._makers = {name: node for node in paced(part.nodes) for name in node.outputs if name}
        self._constants = constants
        self._returned = frozenset(part.outputs)
        self._readers: dict[str, list[NodeView]] = defaultdict(list)
        for node in paced(part.nodes):
            for name in node.inputs:
                self._readers[name].append(node)

    def label(self, node: NodeView) -> str:
        return node.label

    def name(self, value: str) -> str:
        return value

    def key(self, value: str) -> str:
        """The source of a value, before operators that do not change it."""
        node = self._makers.get(value)
        while node is not None and _passes(node):
            value = node.inputs[0]
            node = self._makers.get(value)
        return value

    def graph_of(self, node: NodeView) -> int:
        return 0

    def inputs(self, node: NodeView) -> list[str | None]:
        inputs = [name or None for name in node.inputs]
        while inputs and inputs[-1] is None:
            inputs.pop()
        return inputs

    def outputs(self, node: NodeView) -> list[str | None]:
        return [name or None for name in node.outputs]

    def source(self, value: str, op_types: Collection[str] = ()) -> Producer[NodeView] | None:
        passed: list[NodeView] = []
        node = self._makers.get(value)
        while node is not None and node.op_type not in op_types and _passes(node):
            passed.append(node)
            value = node.inputs[0]
            node = self._makers.get(value)
        return None if node is None else Producer(node, node.outputs.index(value), passed)

    def attribute(self, node: NodeView, name: str) -> Any:
        if name in node.attributes:
            return node.attributes[name]
        schema = schemas.find(node.domain, node.op_type, node.since_version)
        return schema.defaults.get(name) if schema is not None else None

    def is_returned(self, value: str) -> bool:
        return value in self._returned

    def reader(self, value: str, inside: AbstractSet[int]) -> NodeView | None:
        return next((node for node in self._readers[value] if node.id not in inside), None)

    def is_read_once(self, value: str) -> bool:
        return len(self._readers[value]) == 1 and value not in self._returned

    def is_constant(self, value: str) -> bool:
        return value in self._constants

    def elements(self, value: str) -> Array | None:
        return self._constants.get(value)

    def elem_type(self, value: str) -> int:
        array = self._constants.get(value)
        return 0 if array is None else dtypes.from_numpy(array.dtype)

    def shape(self, value: str) -> tuple[int, ...] | None:
        array = self._constants.get(value)
        return None if array is None else array.shape


class PartMatcher(_PartWiring):
    """Finds patterns in a part. No node outside of a match reads the values inside of it.

    Args:
        part: the nodes.
        constants: {name: array} of the constants that the nodes read.
    """

    def __init__(self, part: Part, constants: Mapping[str, Array]) -> None:
        super().__init__(part, constants)
        self._operators: dict[int, frozenset[str]] = {}

    def find(self, call: NodePattern, root: NodeView) -> PartMatch | None:
        """The first way in which a pattern describes a node and those before it."""
        if len(root.outputs) != 1 or not call.may_read(self._sources(root)):
            return None
        candidate: matcher.PatternMatch[NodeView, str] = matcher.PatternMatch(root, call)
        if matcher.find(self, candidate) is not None:
            return None
        nodes = sorted({*candidate.nodes, *candidate.passed}, key=lambda node: self._place[node.id])
        values = {name: value for name, value in candidate.values.items() if isinstance(value, str)}
        return PartMatch(tuple(nodes), values, tuple(candidate.numbers))

    def only_reader(self, node: NodeView) -> NodeView | None:
        """The only reader of a node's output, None where there are several or the output leaves the part."""
        return self._readers[node.outputs[0]][0] if self.is_read_once(node.outputs[0]) else None

    def _sources(self, node: NodeView) -> frozenset[str]:
        """The operators that a node's inputs come from, those in between included."""
        operators = self._operators.get(node.id)
        if operators is None:
            kinds: set[str] = set()
            for name in node.inputs:
                maker = self._makers.get(name)
                while maker is not None:
                    kinds.add(maker.op_type)
                    maker = self._makers.get(maker.inputs[0]) if _passes(maker) else None
            operators = self._operators[node.id] = frozenset(kinds)
        return operators
