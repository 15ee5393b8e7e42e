"""The graph as passes see it: facts, constants, and the few edits that rewriting is made of."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import onnx

from onnxlab.graph.edit.changes import RemoveNode, SetInitializer, SetInputs
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.bypassing import bypass_to_output
from onnxlab.graph.edits.connecting import reading
from onnxlab.graph.edits.constants import is_constant, numbers_of
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.index.topology import reachable
from onnxlab.graph.protos import tensors
from onnxlab.ops import find_traits
from onnxlab.shapes import Fact, TensorFact
from onnxlab.transforms.receipt import Application

Array = np.ndarray[Any, Any]

Compute = Callable[[Sequence[str]], dict[str, Array]]
"""Arrays of values that depend on no input, by name. Raises OnnxlabError where a node cannot run."""


class Rewriting:
    """One call of a set of passes over the main graph, inside of one edit.

    Attributes:
        graph: the model.
        applied: what was done so far.
        lost: names of removed nodes that said something of themselves.
        budget: bytes that folding may still add to the model.
    """

    def __init__(
        self,
        graph: ModelGraph,
        fact: Callable[[int], Fact],
        compute: Compute,
        protected: Collection[str] = (),
        budget: int = 0,
    ) -> None:
        self.graph = graph
        self.compute = compute
        self.budget = budget
        self.applied: list[Application] = []
        self.lost: list[str] = []
        self._fact = fact
        self._protected = protected
        self._names: FreshNames | None = None
        self._facts: dict[int, Fact] = {}
        self._before_zero_signs: set[int] | None = None

    # -- looking ----------------------------------------------------------------------------------------------------

    def nodes(self, *op_types: str) -> Iterator[NodeRecord]:
        """Nodes of the main graph that may be changed, producers first; of ONNX's own operators, or all."""
        graph = self.graph
        for ident in list(graph.index.topological(graph.main)):
            node = graph.nodes.get(ident)
            if node is None or self._is_protected(node):
                continue
            if not op_types or (node.op_type in op_types and not node.domain):
                yield node

    def _is_protected(self, node: NodeRecord) -> bool:
        if not self._protected:
            return False
        names = self._protected
        return node.name in names or any(self.graph.values[vid].name in names for vid in node.outputs if vid)

    def fact(self, value: int) -> Fact:
        """What inference knew of a value before this call, or what a pass said of a value that it made."""
        found = self._facts.get(value)
        return self._fact(value) if found is None else found

    def shape(self, value: int) -> tuple[Any, ...] | None:
        """The dims of a tensor, None where the rank is not known."""
        fact = self.fact(value)
        return fact.shape if isinstance(fact, TensorFact) else None

    def elem_type(self, value: int) -> int:
        """The element type of a tensor, 0 where it is not known."""
        fact = self.fact(value)
        return fact.elem_type if isinstance(fact, TensorFact) else 0

    def input(self, node: NodeRecord, slot: int) -> ValueRecord | None:
        """The value that a node reads in a slot, None where it reads none."""
        vid = node.inputs[slot] if slot < len(node.inputs) else 0
        return self.graph.values[vid] if vid else None

    def output(self, node: NodeRecord) -> ValueRecord | None:
        """The first value that a node makes, None where another of its values is read too."""
        made = [self.graph.values[vid] for vid in node.outputs if vid]
        if not made or not node.outputs[0] or any(each.uses or each.formal_outputs for each in made[1:]):
            return None
        return made[0]

    def maker(self, value: ValueRecord | None) -> NodeRecord | None:
        """The node of the main graph that makes a value, None for inputs, initializers and values of outer graphs."""
        if value is None or not value.producer:
            return None
        return self.graph.nodes.get(value.producer[0])

    def constant(self, value: ValueRecord | None) -> Array | None:
        """The elements of an initializer that no input overrides, or of a Constant; None for any other value."""
        stored = self.stored(value)
        return None if stored is None else tensors.to_array(stored, self.graph.base_dir)

    def stored(self, value: ValueRecord | None) -> "onnx.TensorProto | onnx.SparseTensorProto | None":
        """The message with the elements of a constant value, None for any other."""
        if value is None:
            return None
        if value.initializer is not None:
            return None if value.is_input else value.initializer
        node = self.maker(value)
        if node is not None and is_constant(node):
            return _constant(node.proto.attribute)
        return None

    def is_random(self, node: NodeRecord) -> bool:
        """Whether a node makes something else every time."""
        return find_traits(node.domain, node.op_type).random

    def sees_zero_signs(self, node: NodeRecord) -> bool:
        """Whether the sign of a zero that a node makes may matter to what depends on it, as that of a divisor does."""
        if self._before_zero_signs is None:
            graph = self.graph
            nodes = [graph.nodes[ident] for ident in graph.main.node_ids]
            makers = [self.maker(value) for each in nodes for value in self._zero_signs(each)]
            starts = [maker.id for maker in makers if maker is not None]
            found = reachable(starts, lambda at: graph.index.producers(graph.nodes[at]), lambda at: True)
            self._before_zero_signs = {*starts, *found}
        return node.id in self._before_zero_signs

    def _zero_signs(self, node: NodeRecord) -> list[ValueRecord | None]:
        """What a node reads of which the sign of a zero matters; all, and what its bodies read, where nobody knows."""
        traits = find_traits(node.domain, node.op_type)
        if node.bodies or traits.category == "custom":
            return [self.graph.values[vid] for vid in (*node.inputs, *self.graph.index.captures(node)) if vid]
        return [self.input(node, slot) for slot in traits.zero_signs]

    # -- changing ---------------------------------------------------------------------------------------------------

    def note(self, rule: str, place: str, what: str) -> None:
        """Write down an application."""
        self.applied.append(Application(rule, place, what))

    def remove(self, node: NodeRecord) -> None:
        """Take a node out whose values nothing reads, or which something else makes by the end of the edit."""
        if node.proto.doc_string or node.proto.metadata_props:
            self.lost.append(self.graph.label(node))
        self.graph.apply(RemoveNode(node.id))

    def bypass(self, rule: str, node: NodeRecord, source: ValueRecord, what: str) -> bool:
        """Let the readers of a node's value read another one and take the node out; False where that cannot be.

        An output of the graph keeps its name: what makes the other value takes it over, if it can.
        """
        graph, value = self.graph, self.output(node)
        if value is None or source.id == value.id:
            return False
        label = graph.label(node)
        if value.formal_outputs:
            if not source.producers or source.scope != node.scope or source.formal_outputs:
                return False
            if any(scope != node.scope for scope, _ in value.formal_outputs):
                return False
            fact = self.fact(value.id)
            if node.proto.doc_string or node.proto.metadata_props:
                self.lost.append(label)
            bypass_to_output(graph, node, source, value)
            self._facts[source.id] = fact
        else:
            self.redirect(value, source)
            self.remove(node)
        self.note(rule, label, what)
        return True

    def redirect(self, old: ValueRecord, new: ValueRecord) -> None:
        """Let every node that reads a value read another one; outputs of graphs stay."""
        for reader in list(dict.fromkeys(node for node, _ in old.uses)):
            self.graph.apply(reading(self.graph, self.graph.nodes[reader], old, new))

    def read(self, node: NodeRecord, slot: int, value: ValueRecord) -> None:
        """Let a slot of a node read another value."""
        names = [*node.proto.input, *[""] * (slot + 1 - len(node.proto.input))]
        names[slot] = value.name
        self.graph.apply(SetInputs(node.id, tuple(names)))

    def store(self, name: str, array: Array) -> ValueRecord:
        """Add an initializer under a name that is free, or whose producer was taken out."""
        scope = self.graph.main
        self.graph.apply(SetInitializer(scope.id, name, tensors.from_array(array, name)))
        return self.graph.values[scope.names[name]]

    def fresh(self, name: str) -> str:
        """A name that no value has, like the one given."""
        if self._names is None:
            self._names = FreshNames(self.graph)
        return self._names.value(name)

    def replace_by(self, node: NodeRecord, arrays: dict[int, Array]) -> bool:
        """Store what a node makes in its place: arrays by value id, of all its values that are read.

        False where a value is an output of a graph, which stays made by a node.
        """
        made = [self.graph.values[vid] for vid in node.outputs if vid]
        read = [value for value in made if value.uses or value.formal_outputs]
        if any(value.formal_outputs or value.id not in arrays for value in read):
            return False
        stored = [(value.name, arrays[value.id]) for value in read]
        self.remove(node)
        for name, array in stored:
            self.store(name, array)
        return True


def _constant(attributes: Sequence[onnx.AttributeProto]) -> onnx.TensorProto | None:
    """What a Constant holds as a tensor; None for a sparse one, and for strings outside of a tensor."""
    for attribute in attributes:
        if attribute.name == "value":
            return attribute.t
        if (numbers := numbers_of(attribute)) is not None:
            return tensors.from_array(numbers)
    return None
