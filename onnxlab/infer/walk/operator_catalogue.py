"""The `Operator` of each node of a graph: found once, shared by the nodes that do the same.

Nodes with equal signatures do the same; a signature is the serialized node without names. Serializing a message takes
less time than reading two of its fields from Python.
"""

from __future__ import annotations

import re
from weakref import proxy

import onnx

from onnxlab import schemas
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.readonly_index import MAX_SIGNATURE, GlanceIndex
from onnxlab.graph.index.records import DEFAULT_DOMAINS, NodeRecord, Scope
from onnxlab.graph.protos.wire_format import VARINT, extent, tag
from onnxlab.infer.facts.constant_nodes import constant_fact
from onnxlab.infer.facts.policy import Policy
from onnxlab.infer.facts.stored_constants import fact_of_constant
from onnxlab.infer.facts.symbols import declared_token
from onnxlab.infer.facts.value_sources import Sources
from onnxlab.infer.rules import operator_cache, operators
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.operators import Operator, Problem
from onnxlab.infer.walk.body_walker import ScopeBody
from onnxlab.shapes import UNKNOWN, Fact

Found = Operator | Fact

_REFERENCE = b"\xaa\x01"
"""The first bytes of `ref_attr_name` in every serialized attribute that has it; other attributes may hold them too."""

_CONSTANT = b"\x22\x08Constant"
"""The first bytes of the signature of a Constant of any domain."""

# a NodeProto's known fields come in the order of their numbers, and all of them are length-delimited
_OP_TYPE, _DOC_STRING, _DOMAIN, _METADATA = (
    tag(onnx.NodeProto, field) for field in ("op_type", "doc_string", "domain", "metadata_props")
)

_SPARE = 1000
"""The number of operators that may be kept beyond one for each node."""


def catalogue_of(graph: ModelGraph, policy: Policy) -> Catalogue:
    """The catalogue of a graph: kept there, so that a second inference does not read every message again."""
    key = (Catalogue, policy)
    cached = graph.caches.by_key.get(key)
    if isinstance(cached, Catalogue) and cached.generation == schemas.registry.generation:
        cached.forget_unknown()
        return cached
    catalogue = Catalogue(graph, policy)
    graph.caches.keep(key, catalogue)
    return catalogue


class Catalogue:
    """Operators by node id; for a Constant the fact of its output itself.

    Operators remember what was inferred by them, which depends on the policy.

    Attributes:
        call_nodes: ids of the nodes that called a model-local function when they were met; some may be gone.
        tensors: facts of initializers by value id.
        generation: the generation of the schema registry that the operators were found with.
    """

    def __init__(self, graph: ModelGraph, policy: Policy) -> None:
        self._graph: ModelGraph = proxy(graph)  # a proxy: the graph keeps this object
        self._policy = policy
        self._functions = graph.index.functions
        self._sources = Sources(graph, declared_token(graph, policy))
        self.generation = schemas.registry.generation
        self.by_node: dict[int, Found] = {}
        self.call_nodes: set[int] = set()
        self.tensors: dict[int, Fact] = {}
        self._bound: dict[int, dict[bytes, Found]] = {}
        self._shared: dict[object, Operator] = {}
        self._annotated = False
        self._roots: dict[int, int] = {}
        self._tables: dict[int, operator_cache.Table] = {}
        met = graph.index if isinstance(graph.index, GlanceIndex) else None
        self._signatures: dict[int, bytes] = met.signatures if met else {}
        self._constants: dict[int, re.Match[bytes]] = met.constants if met else {}
        self._met: dict[int, list[onnx.AttributeProto]] = met.attributes if met else {}

    def forget_node(self, node: int) -> None:
        """Drop the operator of a node; to be called when the node, or anything that decides its operator, changed."""
        self.by_node.pop(node, None)
        self._bound.pop(node, None)

    def forget_scope(self, scope: int) -> None:
        """Drop the operator of a scope's owner, whose rule reads the scope's inputs, outputs and declarations."""
        if (record := self._graph.scopes.get(scope)) is not None and record.owner:
            self.forget_node(record.owner)

    def forget_value(self, value: int) -> None:
        """Drop the fact of an initializer; to be called when its tensor is replaced."""
        self.tensors.pop(value, None)

    def forget_outcomes(self) -> None:
        """Forget what was inferred, not what the nodes are: every rule is asked again."""
        bound = (entry for operators_by_key in self._bound.values() for entry in operators_by_key.values())
        for operator in {
            id(operators_by_key): operators_by_key for operators_by_key in [*self.by_node.values(), *bound]
        }.values():
            if isinstance(operator, Operator):
                operator.memo.clear()

    def forget_unknown(self) -> None:
        """Forget unknown operators: onnx.defs may have schemas of them by now."""
        unknown = {
            id(operator): key
            for key, operator in self._shared.items()
            if operator.schema is None and not operator.function
        }
        if unknown:
            for key in unknown.values():
                del self._shared[key]
            for node in [node for node, entry in self.by_node.items() if id(entry) in unknown]:
                self.forget_node(node)

    def find(self, frame: FactFrame, node: NodeRecord) -> Found:
        """The operator of a node; inside a function, with the attributes of the frame's call."""
        return self.by_node.get(node.id) or self.identify(frame, node)

    def any_of(self, node: NodeRecord) -> Found:
        """The operator of a node with the attributes of any call, also of one that is not to be walked again yet."""
        known = self.by_node.get(node.id) or next(iter(self._bound.get(node.id, {}).values()), None)
        if known is not None:
            return known
        function = self._functions.get((node.domain, node.proto.op_type, node.proto.overload), 0)
        return self._new(node, node.proto.attribute, b"", function)

    def identify_read(self) -> None:
        """Find the operators of all nodes that were read with their signatures, in one loop."""
        index, by_node = self._graph.index, self.by_node
        if self._functions or self._annotated or by_node or not isinstance(index, GlanceIndex):
            return
        met: dict[tuple[bytes, int], Operator] = {}
        for (ident, encoded), arity in zip(self._signatures.items(), index.arities().tolist(), strict=True):
            if arity < 0:
                continue
            key = (encoded, arity)
            operator = met.get(key)
            if operator is None:
                operator = met[key] = self._operator(index.nodes[ident], None, encoded, 0)
                if self._has_notes():  # then signatures contain notes, too: equal nodes differ in them
                    break
            by_node[ident] = operator

    def _has_notes(self) -> bool:
        return self._annotated

    def identify(self, frame: FactFrame, node: NodeRecord) -> Found:
        """Find the operator of a node that is not in `by_node`."""
        encoded = self._signatures.get(node.id)
        if encoded is not None and not (self._functions or self._annotated) and frame.call is None:
            operator = self.by_node[node.id] = self._operator(node, None, encoded, 0)  # reads no message
            return operator
        constant = self._constants.get(node.id)
        if constant is not None and not self._functions and (fact := fact_of_constant(constant)) is not None:
            self.by_node[node.id] = fact
            return fact
        if self._bound and (bound := self._bound.get(node.id, {}).get(frame.attribute_key)) is not None:
            return bound
        proto, function = node.proto, 0
        is_own = proto.domain in DEFAULT_DOMAINS
        if self._functions:
            function = self._functions.get((node.domain, proto.op_type, proto.overload), 0)
        if not function and not node.inputs and proto.op_type == "Constant" and is_own:
            return self._identify_constant(frame, node)  # may be too large to be serialized without need
        if not function and not node.bodies:
            if encoded is None and not is_own and operators.has_long_list(proto):  # no operator of ai.onnx has one
                return self._identify_large(frame, node)
            if encoded is None or self._annotated:
                encoded = signature(proto.SerializeToString(), self._annotated)
            if encoded.startswith(_CONSTANT) and is_own:
                return self._identify_constant(frame, node)
            if len(encoded) <= MAX_SIGNATURE and (frame.call is None or _REFERENCE not in encoded):
                operator = self.by_node[node.id] = self._operator(node, None, encoded, 0)
                return operator
        if function:
            self.call_nodes.add(node.id)
        attributes, refers = self._attributes(frame, node)
        identified = self._operator(node, attributes, operators.described(proto, attributes, function), function)
        if refers:
            self._bound.setdefault(node.id, {})[frame.attribute_key] = identified
        else:
            self.by_node[node.id] = identified
        return identified

    def _identify_large(self, frame: FactFrame, node: NodeRecord) -> Operator:
        """The operator of a node with a long list; no other node shares it, since comparing such lists takes longer."""
        attributes, refers = self._attributes(frame, node)
        operator = self._new(node, attributes, b"", 0)
        operator.source = node.proto
        if refers:
            self._bound.setdefault(node.id, {})[frame.attribute_key] = operator
        else:
            self.by_node[node.id] = operator
        return operator

    def _identify_constant(self, frame: FactFrame, node: NodeRecord) -> Fact:
        attributes, refers = self._attributes(frame, node)
        try:
            fact = constant_fact(attributes)
        except (ValueError, TypeError, OSError, RuntimeError) as error:
            frame.problems[node.id] = (Problem("error", "bad-tensor", f"its value cannot be read: {error}"),)
            return UNKNOWN
        if fact is UNKNOWN:
            message = "it has no value"
            frame.problems[node.id] = (
                Problem("error", "attribute-missing", message, "one of its attributes", "none", "set 'value'"),
            )
        elif refers:
            self._bound.setdefault(node.id, {})[frame.attribute_key] = fact
        else:
            self.by_node[node.id] = fact
        return fact

    def _attributes(self, frame: FactFrame, node: NodeRecord) -> tuple[operators.Attributes, bool]:
        """A node's attributes in a frame, and whether they differ from call to call."""
        if frame.call is None:
            return self._met.get(node.id) or node.proto.attribute, False
        return operators.bound_attributes(node.proto, frame.attributes)

    def _operator(
        self, node: NodeRecord, attributes: operators.Attributes | None, encoded: bytes, function: int
    ) -> Operator:
        """The operator of a node with the signature `encoded`; nodes that name as many inputs and outputs share it.

        `attributes` is None where the node's own serve as they are.
        """
        inputs, outputs = node.inputs, node.outputs
        root = self._roots.get(node.scope) or self._root(node.scope)
        if 0 in inputs or 0 in outputs:
            key: object = (root, encoded, function, tuple(map(bool, inputs)), tuple(map(bool, outputs)))
        else:
            key = (root, encoded, function, len(inputs), len(outputs))
        shared = self._shared.get(key)
        if shared is not None and not node.bodies:
            return shared
        return self._make(node, node.proto.attribute if attributes is None else attributes, encoded, function, key)

    def _make(
        self, node: NodeRecord, attributes: operators.Attributes, encoded: bytes, function: int, key: object
    ) -> Operator:
        proto, named = node.proto, (node.inputs, node.outputs)
        if node.bodies:
            operator = self._new(node, attributes, encoded, function)
        else:
            common = None if function else self._table(self._root(node.scope))
            place = (encoded, tuple(map(bool, named[0])), tuple(map(bool, named[1])))
            met = common.get(place) if common is not None else None
            operator = met if met and operator_cache.is_current(met) else self._new(node, attributes, encoded, function)
            if common is not None and operator is not met:
                operator_cache.keep(common, place, operator)
            if len(self._shared) > len(self._graph.nodes) + _SPARE:  # edits left unused ones behind
                self._shared.clear()
            self._shared[key] = operator
        self._annotated = self._annotated or bool(proto.doc_string or proto.metadata_props)
        return operator

    def _new(self, node: NodeRecord, attributes: operators.Attributes, encoded: bytes, function: int) -> Operator:
        domain, named = node.domain, (node.inputs, node.outputs)
        version = self._graph.opset_version(domain, self._graph.scopes[node.scope]) or 0
        bodies = self._bodies(node) if node.bodies else {}
        return operators.make(domain, node.proto.op_type, version, named, attributes, encoded, function, bodies)

    def _table(self, root: int) -> operator_cache.Table:
        """Operators shared by graphs and functions with the same policy, IR version and opset imports."""
        table = self._tables.get(root)
        if table is None:
            proto = self._graph.header
            source = self._graph.scopes[root].proto if self._graph.scopes[root].is_function else proto
            imports = tuple([(entry.domain, entry.version) for entry in source.opset_import])
            table = self._tables[root] = operator_cache.table((self._policy, proto.ir_version, imports))
        return table

    def _root(self, scope: int) -> int:
        """Id of the graph or function around a scope: what decides the versions of its operators."""
        root = self._roots.get(scope)
        if root is None:
            root = self._roots[scope] = self._graph.root(self._graph.scopes[scope]).id
        return root

    def _bodies(self, node: NodeRecord) -> dict[str, ScopeBody | tuple[ScopeBody, ...]]:
        single = {a.name for a in node.proto.attribute if a.type == onnx.AttributeProto.GRAPH}
        bodies: dict[str, ScopeBody | tuple[ScopeBody, ...]] = {}
        for name, ids in node.bodies.items():
            scope_bodies = tuple(self._body(self._graph.scopes[scope]) for scope in ids)
            bodies[name] = scope_bodies[0] if name in single and scope_bodies else scope_bodies
        return bodies

    def _body(self, scope: Scope) -> ScopeBody:
        """A subgraph as rules see it."""
        values = self._graph.values
        return ScopeBody(
            scope.id,
            tuple(values[vid].name for vid in scope.inputs),
            tuple(values[vid].name for vid in scope.outputs),
            tuple(self._sources.declared(values[vid]) for vid in scope.outputs),
        )


def signature(data: bytes, annotated: bool) -> bytes:
    """The end of a serialized node, from its operator on.

    Args:
        annotated: leave out documentation and metadata, which may differ in every node; this takes twice the time.
    """
    at, end = 0, len(data)
    while at < end and data[at] < _OP_TYPE:
        size = data[at + 1]
        at = at + 2 + size if size < VARINT else extent(data, at)[1]
    return _without_notes(data, at) if annotated else data[at:]


def _without_notes(data: bytes, start: int) -> bytes:
    at, end = start, len(data)
    while at < end and data[at] < _DOC_STRING:
        at = extent(data, at)[1]
    parts = [data[start:at]]
    while at < end and data[at] < _METADATA:
        after = extent(data, at)[1]
        if data[at] >= _DOMAIN:
            parts.append(data[at:after])
        at = after
    return b"".join(parts)
