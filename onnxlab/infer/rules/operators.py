"""Operators: nodes apart from the names of their values, with version, attributes, and how to infer them.

Nodes that do the same share one `Operator`, and with it a memo of what was inferred for which input facts: the
blocks of a transformer are inferred once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import onnx

from onnxlab import ops, schemas
from onnxlab.errors import Severity
from onnxlab.graph.index.index import GRAPH_KINDS
from onnxlab.graph.protos.attributes import AttributeRef, decode, kind_of
from onnxlab.graph.protos.long_lists import LISTS, items_of, long_list, outline
from onnxlab.shapes import Fact
from onnxlab.shapes.values import MAX_ELEMENTS

Reads = Literal["none", "all", "some"]
Attributes = Sequence[onnx.AttributeProto]

MEMO_SIZE = 4096


class Remembered:
    """The number of remembered outcomes, of all operators of the process, since this was last reset."""

    count = 0


REMEMBERED = Remembered()


@dataclass(frozen=True, slots=True)
class Problem:
    """A diagnostic that does not know its node yet."""

    severity: Severity
    code: str
    message: str
    expected: str = ""
    found: str = ""
    hint: str = ""


class Outcome:
    """The result of inference for some input facts; never changed once it is made.

    Attributes:
        facts: one per output slot; may have holes (`native.hole`) until they are used for a node.
        holes: whether facts have holes, or are small integer tensors whose elements get names.
        problems: what is wrong or suspect, without the name of the node.
        plain: whether there are neither holes nor problems, so that the facts serve every node as they are.
    """

    __slots__ = ("facts", "holes", "plain", "problems")

    def __init__(self, facts: tuple[Fact, ...], holes: bool = False, problems: tuple[Problem, ...] = ()) -> None:
        self.facts = facts
        self.holes = holes
        self.problems = problems
        self.plain = not holes and not problems


@dataclass(slots=True, eq=False)
class Operator:
    """One way to compute outputs from inputs.

    Attributes:
        version: version of `domain` that the operator's graph or function imports.
        outputs: for each output slot, whether the node names it.
        attributes: decoded, defaults of the schema included; a Body for each graph.
        function: scope id of the model-local function that it calls, else 0.
        rule: onnxlab's rule, None where onnx's is used.
        reads: whether its outputs depend on the elements of "none" of its inputs, on those of "some" of them, or
            on them only where "all" are known.
        shared: whether nodes may share the operator and its memo: not with bodies, whose captures are no inputs.
        arity: the fault in the number of inputs or outputs, False for none, None before the first check.
        faults: problems of its attributes, found by the same check.
        oddities: problems that do not matter to its rule: attributes that the operator does not have, deprecation.
        repeated: an attribute that it has more than once, "" where there is none.
        unbound: an attribute that refers to one of a function although no function is around, "" where there is none.
        given: a NodeProto with its operator and attributes, serialized; graphs left out. Empty where a list is long.
        source: the node itself where `given` is empty; `proto` lacks those long lists that onnx's rules do not read.
        memo: outcomes by the facts of the inputs.
    """

    domain: str
    op_type: str
    version: int
    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]
    given: bytes = b""
    schema: schemas.Schema | None = None
    rule: Callable[..., Any] | None = None
    function: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)
    reads: Reads = "some"
    shared: bool = True
    arity: Problem | Literal[False] | None = None
    faults: Sequence[Problem] = ()
    oddities: Sequence[Problem] = ()
    repeated: str = ""
    unbound: str = ""
    memo: dict[tuple[Fact | None, ...], Outcome] = field(default_factory=dict)
    source: onnx.NodeProto | None = None
    _proto: onnx.NodeProto | None = None

    @property
    def proto(self) -> onnx.NodeProto:
        """A node with these attributes and placeholder names, for onnx's own inference."""
        if self._proto is None:
            proto = onnx.NodeProto.FromString(self.given) if self.source is None else _cut(self.source)
            proto.input.extend(f"x{slot}" if named else "" for slot, named in enumerate(self.inputs))
            proto.output.extend(f"y{slot}" if named else "" for slot, named in enumerate(self.outputs))
            self._proto = proto  # assigned when complete: another thread may use the operator
        return self._proto

    def remember(self, inputs: tuple[Fact | None, ...], outcome: Outcome) -> None:
        """Keep an outcome for input facts that come again; forgets all when there are too many."""
        if self.shared:
            if len(self.memo) >= MEMO_SIZE:
                self.memo.clear()
            self.memo[inputs] = outcome
            REMEMBERED.count += 1


def reads_elements(domain: str, op_type: str) -> Reads:
    """The way in which the output facts of an operator depend on the elements of its inputs."""
    return ops.find_traits(domain, op_type).elements


def bound_attributes(
    node: onnx.NodeProto, bindings: Mapping[str, onnx.AttributeProto]
) -> tuple[list[onnx.AttributeProto], bool]:
    """A node's attributes with references to a function's attributes replaced, and whether there were any.

    A reference to an attribute that the call does not give leaves the attribute out.
    """
    bound, has_references = [], False
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            bound.append(attribute)
            continue
        has_references = True
        if attribute.ref_attr_name in bindings:
            copy = onnx.AttributeProto()
            copy.CopyFrom(bindings[attribute.ref_attr_name])
            copy.name = attribute.name
            bound.append(copy)
    return bound, has_references


def described(node: onnx.NodeProto, attributes: Attributes, function: int) -> bytes:
    """A node without names, as a serialized NodeProto: operator and attributes, graphs left out.

    A large tensor that a call passes to a `function` is described by its type and dims: inference reads no more of
    it, and twelve layers that differ in nothing but their weights are walked once.
    """
    attributes_without_graphs = [a for a in attributes if a.type not in GRAPH_KINDS]
    return onnx.NodeProto(
        op_type=node.op_type,
        domain=node.domain or None,
        overload=node.overload or None,
        attribute=map(_outline, attributes_without_graphs) if function else attributes_without_graphs,
    ).SerializeToString()


_TREES = ("nodes_", "target_", "class_", "leaf_", "membership_", "tree_roots")
"""Prefixes of the attributes of tree ensembles whose presence is all that onnx's rules check."""


def has_long_list(node: onnx.NodeProto) -> bool:
    """Whether an attribute of a node is a list so long that it should not be serialized without need."""
    attributes = node.attribute[:]
    if LISTS.isdisjoint([attribute.type for attribute in attributes]):  # true of nearly all nodes
        return False
    return any(items_of(attribute) is not None for attribute in attributes)


def _cut(node: onnx.NodeProto) -> onnx.NodeProto:
    """The operator and attributes of a node, long lists of tree ensembles cut off, graphs left out."""
    is_ensemble = node.op_type.startswith("TreeEnsemble")
    attributes = [attribute for attribute in node.attribute if attribute.type not in GRAPH_KINDS]
    return onnx.NodeProto(
        op_type=node.op_type,
        domain=node.domain,
        attribute=[
            outline(attribute) if is_ensemble and attribute.name.startswith(_TREES) else attribute
            for attribute in attributes
        ],
    )


def _outline(attribute: onnx.AttributeProto) -> onnx.AttributeProto:
    if attribute.type != onnx.AttributeProto.TENSOR or prod(attribute.t.dims) <= MAX_ELEMENTS:
        return attribute
    tensor = onnx.TensorProto(dims=attribute.t.dims, data_type=attribute.t.data_type)
    return onnx.AttributeProto(name=attribute.name, type=attribute.type, t=tensor)


def make(
    domain: str,
    op_type: str,
    version: int,
    named: tuple[Sequence[int], Sequence[int]],
    attributes: Attributes,
    encoded: bytes,
    function: int,
    bodies: Mapping[str, Any],
) -> Operator:
    """The Operator of a node.

    Args:
        version: version of `domain`; 0 where the model does not import it: then the newest schema is taken.
        named: ids of the node's inputs and of its outputs, 0 where one has no name.
        attributes: attributes of the node, references bound.
        encoded: the node as `described` gives it; empty where an attribute is a long list: the caller sets `source`.
        function: scope id of the model-local function of this name, else 0.
        bodies: {attribute: Body or list of them} of graph attributes.
    """
    schema = rule = None
    if not function:
        schema_version = version or schemas.latest_opset(domain)
        schema = schemas.find(domain, op_type, schema_version)
        entry = ops.find_rule(domain, op_type, schema.since_version if schema else schema_version)
        rule = entry.function if entry else None
    operator = Operator(
        domain,
        op_type,
        version,
        tuple(map(bool, named[0])),
        tuple(map(bool, named[1])),
        encoded,
        schema,
        rule,
        function,
        decoded(attributes, schema, bodies) if not function else {},
        "some" if function or schemas.custom(domain, op_type, version) else reads_elements(domain, op_type),
        not bodies,
    )
    operator.repeated = _repeated(attributes)
    operator.unbound = next((str(attribute.name) for attribute in attributes[:] if attribute.ref_attr_name), "")
    if any(type(value) is onnx.GraphProto for value in operator.attributes.values()):
        operator.rule = _nothing_known
    if bodies and rule is None:  # onnx's rule reads the graphs
        operator.proto.attribute.extend(a for a in attributes if a.type in GRAPH_KINDS)
    return operator


def _nothing_known(*_: Any) -> tuple[()]:
    """The facts of a node with a graph that a call passes to its function: its names mean nothing in the function."""
    return ()


def _repeated(attributes: Attributes) -> str:
    """The first name that several attributes have, "" where there is none."""
    seen: set[str] = set()
    for attribute in attributes[:]:
        if attribute.name in seen:
            return str(attribute.name)
        seen.add(attribute.name)
    return ""


def decoded(attributes: Attributes, schema: schemas.Schema | None, bodies: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as rules take them: defaults filled in, tuples for lists, protos of tensors as they are."""
    values: dict[str, Any] = {} if schema is None else dict(schema.defaults)
    for attribute in attributes[:]:
        name, kind = attribute.name, attribute.type
        if name in bodies:
            values[name] = bodies[name]
        elif kind == _INT and not attribute.ref_attr_name:  # nine of ten attributes are integers
            values[name] = attribute.i
        elif kind == _INTS and not attribute.ref_attr_name:
            values[name] = long_list(attribute) or tuple(attribute.ints)
        elif kind_of(attribute) == "tensor":
            values[name] = attribute.t  # decoded by the rule that wants its elements: it may be large
        else:
            value = decode(attribute)
            if not isinstance(value, AttributeRef):
                values[name] = tuple(value) if isinstance(value, list) else value
    return values


_INT, _INTS = onnx.AttributeProto.INT, onnx.AttributeProto.INTS
