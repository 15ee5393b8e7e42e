"""Matches of patterns in a live graph, with what rules ask of them."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos.attributes import decode
from onnxlab.graph.query.patterns import matcher
from onnxlab.graph.query.patterns.matcher import Mismatch
from onnxlab.graph.query.patterns.syntax_tree import NodePattern
from onnxlab.graph.query.patterns.wiring import Producer, Wiring
from onnxlab.shapes import TensorFact
from onnxlab.transforms.rewriting import Array, Rewriting


@dataclass(slots=True)
class Match(matcher.PatternMatch[NodeRecord, ValueRecord]):
    """A place that a pattern matches.

    Attributes:
        rewriting: the graph.
    """

    rewriting: Rewriting = field(kw_only=True)

    def array(self, name: str) -> Array | None:
        """The elements of a bound constant, None where the value is absent or is not constant."""
        return self.rewriting.constant(self.values.get(name))

    def shape(self, name: str) -> tuple[Any, ...] | None:
        """The dims of a bound value, or of the "result"; None where they are not known."""
        if name == "result":
            return self.rewriting.shape(self.root.outputs[0])
        value = self.values.get(name)
        return self.rewriting.shape(value.id) if isinstance(value, ValueRecord) else None

    def rank(self, name: str) -> int | None:
        """The rank of a bound value, None where it is not known."""
        shape = self.shape(name)
        return None if shape is None else len(shape)

    def elem_type(self, name: str) -> int:
        """The element type of a bound value, or of the "result"; 0 where it is not known."""
        if name == "result":
            return self.rewriting.elem_type(self.root.outputs[0])
        value = self.values.get(name)
        return self.rewriting.elem_type(value.id) if isinstance(value, ValueRecord) else 0

    def attribute(self, node: NodeRecord, name: str, default: Any = None) -> Any:
        """An attribute of a node, decoded."""
        for attribute in node.proto.attribute:
            if attribute.name == name:
                value = decode(attribute)
                return list(value) if isinstance(value, tuple) else value
        return default


def match(rewriting: Rewriting, call: NodePattern, root: NodeRecord) -> Match | Mismatch:
    """Match one way of writing a pattern at a node."""
    candidate = Match(root, call, rewriting=rewriting)
    return matcher.find(_Records(rewriting), candidate) or candidate


class _Records(Wiring[NodeRecord, ValueRecord]):
    """The nodes of a live graph as the matcher sees them."""

    def __init__(self, rewriting: Rewriting) -> None:
        self._rewriting = rewriting
        self._graph = rewriting.graph
        self._values = rewriting.graph.values

    def label(self, node: NodeRecord) -> str:
        return self._graph.label(node)

    def name(self, value: ValueRecord) -> str:
        return value.name

    def key(self, value: ValueRecord) -> int:
        return value.id

    def graph_of(self, node: NodeRecord) -> int:
        return node.scope

    def inputs(self, node: NodeRecord) -> list[ValueRecord | None]:
        values = self._values
        inputs = [values[vid] if vid else None for vid in node.inputs]
        while inputs and inputs[-1] is None:
            inputs.pop()
        return inputs

    def outputs(self, node: NodeRecord) -> list[ValueRecord | None]:
        return [self._values[vid] if vid else None for vid in node.outputs]

    def source(self, value: ValueRecord, op_types: Collection[str] = ()) -> Producer[NodeRecord] | None:
        node = self._rewriting.maker(value)
        return None if node is None else Producer(node, value.producers[0][1])

    def attribute(self, node: NodeRecord, name: str) -> Any:
        for attribute in node.proto.attribute:
            if attribute.name == name:
                return decode(attribute)
        schema = self._graph.schema(node)
        return schema.defaults.get(name) if schema is not None else None

    def is_returned(self, value: ValueRecord) -> bool:
        return bool(value.formal_outputs)

    def reader(self, value: ValueRecord, inside: AbstractSet[int]) -> NodeRecord | None:
        for reader, _ in value.uses:
            if reader not in inside:
                return self._graph.nodes[reader]
        return None

    def is_read_once(self, value: ValueRecord) -> bool:
        return len(value.uses) <= 1 and not value.formal_outputs

    def is_constant(self, value: ValueRecord) -> bool:
        return self._rewriting.stored(value) is not None

    def elements(self, value: ValueRecord) -> Array | None:
        fact = self._rewriting.fact(value.id)
        known = fact.value if isinstance(fact, TensorFact) else None
        return self._rewriting.constant(value) if known is None else known

    def elem_type(self, value: ValueRecord) -> int:
        return self._rewriting.elem_type(value.id)

    def shape(self, value: ValueRecord) -> tuple[Any, ...] | None:
        return self._rewriting.shape(value.id)
