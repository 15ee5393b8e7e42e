"""Where a pattern matches, or why it does not: the deepest point that it got to, in words."""

from dataclasses import dataclass, field
from typing import Any

import onnx

from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos.attributes import decode
from onnxlab.ops import find_traits
from onnxlab.transforms.patterns.pattern import Call, Literal, Name
from onnxlab.transforms.rewriting import Array, Rewriting


@dataclass(slots=True)
class Match:
    """A place that a pattern matches.

    Attributes:
        root: the node that the pattern's outermost call stands for.
        nodes: all nodes of the pattern, outermost first, by the text of their calls' operators.
        values: bound values by name; None for those that are absent.
        attributes: bound attributes by name.
    """

    root: NodeRecord
    rewriting: Rewriting
    nodes: list[NodeRecord] = field(default_factory=list)
    values: dict[str, ValueRecord | None] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)

    def node(self, op_type: str) -> NodeRecord:
        """The first node of an operator."""
        return next(node for node in self.nodes if node.op_type == op_type)

    def array(self, name: str) -> Array | None:
        """The elements of a bound constant, None where it is absent."""
        return self.rewriting.constant(self.values.get(name))

    def rank(self, name: str) -> int | None:
        """The rank of a bound value, None where it is not known."""
        value = self.values.get(name)
        shape = self.rewriting.shape(value.id) if value is not None else None
        return None if shape is None else len(shape)

    def attribute(self, node: NodeRecord, name: str, default: Any = None) -> Any:
        """An attribute of a node, decoded."""
        for attribute in node.proto.attribute:
            if attribute.name == name:
                return _value(attribute)
        return default


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a pattern does not match: how many of its nodes did, and what failed."""

    depth: int
    why: str


def match(rewriting: Rewriting, call: Call, root: NodeRecord) -> Match | Failure:
    """Match a pattern at a node."""
    state = _State(rewriting, root)
    if state.node(call, root, outermost=True):
        return state.match
    return state.failure


class _State:
    """One attempt; operands of operators that commute are tried in both orders."""

    def __init__(self, rewriting: Rewriting, root: NodeRecord) -> None:
        self.match = Match(root, rewriting)
        self.failure = Failure(-1, "it was not tried")
        self._rewriting = rewriting

    def _fail(self, why: str) -> bool:
        if len(self.match.nodes) > self.failure.depth:
            self.failure = Failure(len(self.match.nodes), why)
        return False

    def node(self, call: Call, node: NodeRecord, outermost: bool = False) -> bool:
        """Match a call at a node; what was bound is taken back where it fails."""
        label = self._rewriting.graph.label(node)
        if (node.op_type, node.domain) != (call.op_type, call.domain):
            return self._fail(f"{label} is {node.op_type}, not {call.op_type}")
        if not outermost and (other := self._other_reader(node)):
            return self._fail(f"{label} is read by {other} too")
        if len(node.inputs) > len(call.inputs):
            extra = [slot for slot in range(len(call.inputs), len(node.inputs)) if node.inputs[slot]]
            if extra:
                return self._fail(f"{label} has {len(node.inputs)} inputs, the pattern {len(call.inputs)}")
        kept = len(self.match.nodes), dict(self.match.values), dict(self.match.attributes)
        for inputs in self._orders(call, node):
            self.match.nodes.append(node)
            if self._attributes(call, node, label) and self._inputs(call, inputs, label):
                return True
            del self.match.nodes[kept[0] :]
            self.match.values, self.match.attributes = dict(kept[1]), dict(kept[2])
        return False

    def _orders(self, call: Call, node: NodeRecord) -> list[list[int]]:
        inputs = [*node.inputs, *[0] * (len(call.inputs) - len(node.inputs))]
        if len(inputs) == 2 and find_traits(node.domain, node.op_type).commutative:
            return [inputs, inputs[::-1]]
        return [inputs]

    def _other_reader(self, node: NodeRecord) -> str:
        values = self._rewriting.graph.values
        made = [values[vid] for vid in node.outputs if vid]
        if any(value.formal_outputs for value in made):
            return "an output of the graph"
        readers = [reader for value in made for reader, _ in value.uses]
        if len(readers) < 2:
            return ""
        return self._rewriting.graph.label(self._rewriting.graph.nodes[readers[-1]])

    def _attributes(self, call: Call, node: NodeRecord, label: str) -> bool:
        held = {attribute.name: attribute for attribute in node.proto.attribute}
        for name, wanted in call.attributes:
            found = _value(held[name]) if name in held else None
            if isinstance(wanted, Literal):
                if found != wanted.value:
                    return self._fail(f"{label} has {name}={found!r}, not {wanted}")
            else:
                self.match.attributes[wanted.name] = found
        return True

    def _inputs(self, call: Call, inputs: list[int], label: str) -> bool:
        values = self._rewriting.graph.values
        return all(
            self._input(wanted, values[vid] if vid else None, label)
            for wanted, vid in zip(call.inputs, inputs, strict=False)
        )

    def _input(self, wanted: Call | Name, value: ValueRecord | None, label: str) -> bool:
        if isinstance(wanted, Call):
            maker = self._rewriting.maker(value)
            if maker is None:
                what = "an absent input" if value is None else f"{value.name}, which no node makes"
                return self._fail(f"{label} reads {what}, not {wanted.op_type}")
            return self.node(wanted, maker)
        if value is None:
            self.match.values[wanted.name] = None
            return wanted.optional or self._fail(f"{wanted.name} of {label} is absent")
        if wanted.constant and self._rewriting.stored(value) is None:
            maker = self._rewriting.maker(value)
            origin = f"comes from {self._rewriting.graph.label(maker)}" if maker is not None else "is an input"
            return self._fail(f"{wanted.name} is not constant: {value.name} {origin}")
        bound = self.match.values.setdefault(wanted.name, value)
        if bound is not value:
            other = bound.name if bound is not None else "nothing"
            return self._fail(f"{wanted.name} is {other} and {value.name} at once")
        return True


def _value(attribute: onnx.AttributeProto) -> Any:
    found = decode(attribute)
    return list(found) if isinstance(found, tuple) else found
