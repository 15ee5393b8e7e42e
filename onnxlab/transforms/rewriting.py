"""The graph as passes see it: facts, constants, and the few edits that rewriting is made of."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertNode, RemoveNode, SetInitializer, SetInputs
from onnxlab.graph.edit.ir_versions import INITIALIZERS_SINCE
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.bypassing import bypass_to_output
from onnxlab.graph.edits.connecting import reading
from onnxlab.graph.edits.constants import is_constant, numbers_of
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.protos import glow_dialect, tensors
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.walk.walker import Walker
from onnxlab.limits import FOLDED
from onnxlab.ops import find_traits
from onnxlab.shapes import UNKNOWN, Fact, TensorFact
from onnxlab.transforms.metadata_transfer import carry_over, spoken
from onnxlab.transforms.receipt import Application, RefusedRewrite
from onnxlab.transforms.traces import Traces
from onnxlab.transforms.zero_signs import ZeroSigns

_TYPES = {number: name.lower() for name, number in onnx.AttributeProto.AttributeType.items()}
"""Types of attributes as schemas name them."""

Array = np.ndarray[Any, Any]

Compute = Callable[[Sequence[str]], dict[str, Array]]
"""Arrays of values that depend on no input, by name. Raises OnnxlabError where a node cannot run."""


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """The limits of a rewrite.

    Attributes:
        protected: names of nodes, values, scopes and functions that stay as they are, and prefixes of names that end
            in "/".
        budget: bytes that stored results may add to the model.
        domains: domains of operators that replacements may bring, besides those that the model has.
        refused: (rule, place) pairs that are not applied; place "" for every place.
        most: the largest number of applications, None for no limit.
        nodes: ids of the nodes at which rules may match, None for all.
        regions: whether the nodes of each application are recorded, before and after.
        traced: whether the ids of the nodes that each application removes and inserts are recorded.
    """

    protected: frozenset[str] = frozenset()
    budget: int = FOLDED
    domains: frozenset[str] = frozenset()
    refused: frozenset[tuple[str, str]] = frozenset()
    most: int | None = None
    nodes: frozenset[int] | None = None
    regions: bool = False
    traced: bool = False


class Rewriting:
    """One call of a set of passes over all graphs of a model, inside of one edit.

    Attributes:
        graph: the model.
        options: the limits of the rewrite.
        applied: the applications so far.
        unfit: by rule and place, why a replacement cannot stand where the rule matches.
        regions: the nodes of each application of a rule, where `options.regions` asks for them.
        traces: the nodes that each application removes and inserts, where `options.traced` asks for them.
        budget: bytes that folding may still add to the model.
        asked: how many times a fact was read.
        inputs_are_weights: whether the model is of before IR version 4, when every initializer had to be an input.
    """

    def __init__(
        self, graph: ModelGraph, facts: Mapping[int, Fact], compute: Compute, options: RewriteOptions | None = None
    ) -> None:
        self.graph = graph
        self.compute = compute
        self.options = options or RewriteOptions()
        self.budget = self.options.budget
        self.applied: list[Application] = []
        self.unfit: dict[tuple[str, str], RefusedRewrite] = {}
        self.regions: list[Any] = []
        self.traces = Traces(graph) if self.options.traced else None
        self.asked = 0
        self._names: FreshNames | None = None
        self._zero_signs = ZeroSigns(graph)
        self._known = facts
        self._newest = graph.index.newest_id
        self._frame = FactFrame()
        self._walker: Walker | None = None
        self._constants: dict[int, tuple[Any, Array]] = {}
        self.inputs_are_weights = 0 < graph.header.ir_version < INITIALIZERS_SINCE
        self._prefixes = tuple(name for name in self.options.protected if name.endswith("/"))

    # -- looking ----------------------------------------------------------------------------------------------------

    def nodes(self, *op_types: str) -> Iterator[NodeRecord]:
        """Nodes that may be changed, producers first, graph by graph; of ONNX's own operators, or all."""
        graph = self.graph
        for scope in list(graph.scopes.values()):
            if scope.kind == "training" or self.is_protected_scope(scope):
                continue
            for ident in list(graph.index.topological(scope)):
                node = graph.nodes.get(ident)
                if node is None or (op_types and (node.domain or node.op_type not in op_types)):
                    continue
                if not self.is_protected(node):
                    yield node

    def is_protected_scope(self, scope: Scope) -> bool:
        """Whether a graph or function, or one around it, is protected by the options."""
        names, graph = self.options.protected, self.graph
        at: Scope | None = scope if names else None
        while at is not None:
            if not names.isdisjoint((graph.scope_path(at), at.name)):
                return True
            at = graph.scopes[at.parent] if at.parent else None
        return False

    def stays(self, node: NodeRecord) -> bool:
        """Whether a node is protected by the options: by its name, a value that it makes, or its graph."""
        names = self.options.protected
        if not names:
            return False
        if node.name in names or any(self.graph.values[vid].name in names for vid in node.outputs if vid):
            return True
        if self._prefixes and node.name.startswith(self._prefixes):
            return True
        return self.is_protected_scope(self.graph.scopes[node.scope])

    def is_protected(self, node: NodeRecord) -> bool:
        """Whether a node must stay as it is: protected by the options, or referring to attributes of its function."""
        if self.stays(node):
            return True
        return (node.op_type == "Identity" and self._saves(node)) or self._refers(node)

    def _saves(self, node: NodeRecord) -> bool:
        """Whether a node is one by which Glow saves an output, of the output's name."""
        outputs = [self.graph.values[vid] for vid in node.outputs if vid]
        return any(value.info is not None and glow_dialect.is_save_node(node.proto, value.info) for value in outputs)

    def _refers(self, node: NodeRecord) -> bool:
        """Whether a node in a function has attributes that the call gives."""
        if not self.graph.index.function_ids or not self.graph.root(self.graph.scopes[node.scope]).is_function:
            return False
        return any(attribute.ref_attr_name for attribute in node.proto.attribute)

    def fact(self, value: int) -> Fact:
        """The inferred fact of a value; that of a new value is inferred when it is first read."""
        self.asked += 1
        known = self._frame.facts.get(value)
        if known is not None:
            return known
        if value <= self._newest:
            return self._known.get(value, UNKNOWN)
        return self._infer(value)

    def _infer(self, value: int) -> Fact:
        record = self.graph.values.get(value)
        if record is None:
            return UNKNOWN
        walker = self._walker = self._walker or Walker(self.graph)
        if record.initializer is not None:
            self._frame.set(value, walker.sources.fact(record))
        elif record.producers:
            node = self.graph.nodes[record.producers[0][0]]
            if node.bodies:
                return UNKNOWN
            for vid in node.inputs:
                if vid:
                    self._frame.set(vid, self.fact(vid))
            walker.infer_node(self._frame, node)
        return self._frame.facts.get(value, UNKNOWN)

    def inferred(self, node: NodeRecord) -> Fact | None:
        """The inferred fact of the first value of a new node; None where there is none."""
        if node.bodies or not node.outputs or not node.outputs[0]:
            return None
        walker = self._walker = self._walker or Walker(self.graph)
        held = self._frame.facts.get(node.outputs[0])
        for vid in node.inputs:
            if vid:
                self._frame.set(vid, self.fact(vid))
        walker.infer_node(self._frame, node)
        fact = self._frame.facts.get(node.outputs[0])
        if held is not None:
            self._frame.set(node.outputs[0], held)
        elif node.outputs[0] <= self._newest:
            self._frame.facts.pop(node.outputs[0], None)
        return fact

    def say(self, value: int, fact: Fact) -> None:
        """Store the fact of a value that a pass made."""
        self._frame.set(value, fact)

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
        if not node.outputs or not node.outputs[0]:
            return None
        values = self.graph.values
        for vid in node.outputs[1:]:
            if vid and (values[vid].uses or values[vid].formal_outputs):
                return None
        return values[node.outputs[0]]

    def maker(self, value: ValueRecord | None) -> NodeRecord | None:
        """The node that makes a value; None for inputs, initializers, and where attributes of a function decide."""
        if value is None or not value.producers:
            return None
        node = self.graph.nodes.get(value.producers[0][0])
        return None if node is None or self._refers(node) else node

    def constant(self, value: "ValueRecord | None") -> Array | None:
        """The elements of an initializer that no input overrides, or of a Constant; None for any other value."""
        stored = self.stored(value)
        if stored is None or value is None:
            return None
        held = self._constants.get(value.id)
        if held is None or held[0] is not stored:
            held = self._constants[value.id] = stored, tensors.to_array(stored, self.graph.base_dir)
        return held[1]

    def stored(self, value: ValueRecord | None) -> "onnx.TensorProto | onnx.SparseTensorProto | None":
        """The message with the elements of a constant value, None for any other."""
        if value is None:
            return None
        if value.initializer is not None:
            return None if value.is_input and not self.inputs_are_weights else value.initializer
        if not value.producers:
            return None
        node = self.maker(value)
        if node is not None and is_constant(node):
            return _constant(node.proto.attribute)
        return None

    def is_random(self, node: NodeRecord) -> bool:
        """Whether a node's result is random, so that each run gives another one."""
        return find_traits(node.domain, node.op_type).random

    def sees_zero_signs(self, node: NodeRecord) -> bool:
        """Whether the sign of a zero that a node makes may matter to what depends on it, as that of a divisor does."""
        return node.id > self._newest or self._zero_signs.matter(node)

    # -- changing ---------------------------------------------------------------------------------------------------

    def is_malformed(self, node: NodeRecord) -> bool:
        """Whether an attribute has another type than the operator's, which is what rules read it as."""
        if not node.proto.attribute or (schema := self.graph.schema(node)) is None:
            return False
        types = ((item, schema.attributes.get(item.name)) for item in node.proto.attribute)
        return any(formal is not None and _TYPES.get(item.type) != formal.type for item, formal in types)

    def place(self, node: NodeRecord) -> str:
        """The string that identifies a node: the name of a value that it makes."""
        return next((self.graph.values[vid].name for vid in node.outputs if vid), node.name)

    def allows(self, rule: str, place: str) -> bool:
        """Whether a rule may be applied at a place; asked before anything is changed."""
        options = self.options
        if options.most is not None and len(self.applied) >= options.most:
            return False
        return not options.refused or not ((rule, place) in options.refused or (rule, "") in options.refused)

    def note(self, rule: str, place: str, label: str, effect: str) -> None:
        """Record an application."""
        self.applied.append(Application(rule, label, effect, place))
        if self.traces is not None:
            self.traces.note()

    def remove(self, node: NodeRecord, heir: NodeRecord | ValueRecord | None = None) -> None:
        """Take a node out whose values nothing reads, or which something else makes by the end of the edit.

        Args:
            node: the node to remove.
            heir: a node, or a stored value, that gets its documentation and metadata.
        """
        carry_over(self.graph, node.proto, heir)
        self.graph.apply(RemoveNode(node.id))

    def heir(self, value: ValueRecord) -> NodeRecord | ValueRecord:
        """The receiver of the documentation of a node whose place a value takes: its maker, or the value itself."""
        return self.maker(value) or value

    def bypass(self, node: NodeRecord, source: ValueRecord) -> bool:
        """Let the readers of a node's value read another one and take the node out; False where that cannot be.

        An output of the graph keeps its name: what makes the other value takes it over, if it can.
        """
        graph, value = self.graph, self.output(node)
        if value is None or source.id == value.id:
            return False
        if value.formal_outputs:
            if not source.producers or source.scope != node.scope or source.formal_outputs:
                return False
            if any(scope != node.scope for scope, _ in value.formal_outputs) or _is_read_in_bodies(graph, source):
                return False
            if self.stays(graph.nodes[source.producers[0][0]]):
                return False  # the bypass would rename the value of a protected node
            fact = self.fact(value.id)
            carry_over(graph, node.proto, self.heir(source))
            bypass_to_output(graph, node, source, value, alike=True)
            self._frame.set(source.id, fact)
            return True
        if not self.redirect(value, source):
            return False
        self.remove(node, self.heir(source))
        return True

    def redirect(self, old: ValueRecord, new: ValueRecord) -> bool:
        """Let every node that reads a value read another one; outputs of graphs stay. False where a name is hidden."""
        try:
            readers = dict.fromkeys(node for node, _ in old.uses)
            changes = [reading(self.graph, self.graph.nodes[reader], old, new) for reader in readers]
        except EditError:
            return False
        for change in changes:
            self.graph.apply(change)
        return True

    def read(self, node: NodeRecord, slot: int, value: ValueRecord) -> None:
        """Let a slot of a node read another value."""
        names = [*node.proto.input, *[""] * (slot + 1 - len(node.proto.input))]
        names[slot] = value.name
        self.graph.apply(SetInputs(node.id, tuple(names)))

    def store(self, name: str, array: Array, scope: Scope | None = None) -> ValueRecord:
        """Add a constant under a name that is free, or whose producer was taken out; functions get a Constant node."""
        scope = scope or self.graph.main
        tensor = tensors.from_array(array, name)
        if self.graph.root(scope).is_function:
            node = onnx.NodeProto(op_type="Constant", output=[name])
            node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t.CopyFrom(tensor)
            self.graph.apply(InsertNode(scope.id, 0, node))
        else:
            self.graph.apply(SetInitializer(scope.id, name, tensor))
        return self.graph.values[scope.names[name]]

    def fresh(self, name: str, node: bool = False) -> str:
        """A name that no value has, or no node of the main graph, like the one given."""
        self._names = self._names or FreshNames(self.graph)
        return self._names.node(name) if node else self._names.value(name)

    def replace_by(self, node: NodeRecord, arrays: dict[int, Array]) -> bool:
        """Store what a node makes in its place: arrays by value id, of all its values that are read.

        False where a value is an output of a graph, which stays made by a node.
        """
        outputs = [self.graph.values[vid] for vid in node.outputs if vid]
        read = [value for value in outputs if value.uses or value.formal_outputs]
        if any(value.formal_outputs or value.id not in arrays for value in read):
            return False
        constants = [(value.name, arrays[value.id]) for value in read]
        scope = self.graph.scopes[node.scope]
        removed = spoken(node.proto)
        self.remove(node)
        for name, array in constants:
            carry_over(self.graph, removed, self.heir(self.store(name, array, scope)))
        return True


def _is_read_in_bodies(graph: ModelGraph, value: ValueRecord) -> bool:
    """Whether a body reads a value; a new name of the value may already name another one there."""
    return any(graph.nodes[reader].scope != value.scope for reader, _ in value.uses)


def _constant(attributes: Sequence[onnx.AttributeProto]) -> onnx.TensorProto | None:
    """The tensor of a Constant; None for a sparse one, and for strings outside of a tensor."""
    for attribute in attributes:
        if attribute.ref_attr_name:
            return None
        if attribute.name == "value":
            return attribute.t
        if (numbers := numbers_of(attribute)) is not None:
            return tensors.from_array(numbers)
    return None
