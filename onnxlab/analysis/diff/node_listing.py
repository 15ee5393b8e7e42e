"""Differences of the nodes of two scopes: who came and went, and what changed of those that stayed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import onnx

from onnxlab.analysis.diff import texts
from onnxlab.analysis.diff.change import Ignorable, ModelChange
from onnxlab.analysis.diff.matching import GraphMatching
from onnxlab.analysis.diff.orders import longest_increasing
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.constants import is_constant
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.protos import ge_dump
from onnxlab.graph.protos.attributes import decode
from onnxlab.infer.walk.operator_catalogue import signature

_TOLD = frozenset((
    "input", "output", "name", "op_type", "domain", "overload", "attribute", "doc_string", "metadata_props",
))  # fmt: skip
"""Fields of a node that are told one by one."""


class NodeListing:
    """Changes of nodes of a pair of models."""

    def __init__(self, graphs: tuple[ModelGraph, ModelGraph], matching: GraphMatching) -> None:
        self._a, self._b = graphs
        self._matching = matching
        self._matched = set(matching.nodes.values())
        self._matched_values = set(matching.values.values())

    def changes(self, before: Scope, after: Scope, path: str) -> Iterator[ModelChange]:
        """All changes of nodes of two scopes."""
        pairs = self._matching.nodes
        paired = []
        for ident in before.node_ids:
            node = self._a.nodes[ident]
            if ident not in pairs:
                if not self._stays_as_value(node):
                    yield ModelChange(
                        "removed", "node", self._a.label(node), "", old=_call(node), scope=path, a_id=ident
                    )
            else:
                paired.append(ident)
        for ident in after.node_ids:
            if ident not in self._matched:
                node = self._b.nodes[ident]
                if not self._came_as_value(node):
                    yield ModelChange("added", "node", "", self._b.label(node), new=_call(node), scope=path, b_id=ident)
        for ident in paired:
            yield from self._pair(self._a.nodes[ident], self._b.nodes[pairs[ident]], path)
        yield from self._moves(before, after, paired, path)

    def _stays_as_value(self, node: NodeRecord) -> bool:
        """Whether a node is a Constant whose value the other model stores otherwise, which is told of the value."""
        return is_constant(node) and all(vid in self._matching.values for vid in node.outputs if vid)

    def _came_as_value(self, node: NodeRecord) -> bool:
        return is_constant(node) and all(vid in self._matched_values for vid in node.outputs if vid)

    def _pair(self, node: NodeRecord, other: NodeRecord, path: str) -> Iterator[ModelChange]:
        name, called = self._a.label(node), self._b.label(other)
        ids = (node.id, other.id)
        before, after = node.proto, other.proto
        if before.name != after.name:
            yield ModelChange(
                "renamed", "node", before.name or name, after.name or called, scope=path, a_id=node.id, b_id=other.id
            )
        if signature(before.SerializeToString(), False) != signature(after.SerializeToString(), False):
            yield from self._fields(node, other, path)
        values = self._matching.values
        for slot, (vid, new) in enumerate(zip_longest(node.inputs, other.inputs, fillvalue=0)):
            if (values.get(vid, -1) if vid else 0) != new:
                old_name = self._a.values[vid].name if vid else ""
                new_name = self._b.values[new].name if new else ""
                yield ModelChange("changed", "node", name, called, f"input {slot}", old_name, new_name, path, *ids)
        if [bool(vid) for vid in node.outputs] != [bool(vid) for vid in other.outputs]:
            counts = str(len(node.outputs)), str(len(other.outputs))
            yield ModelChange("changed", "node", name, called, "outputs", *counts, path, *ids)

    def _fields(self, node: NodeRecord, other: NodeRecord, path: str) -> Iterator[ModelChange]:
        name, called = self._a.label(node), self._b.label(other)
        ids = (node.id, other.id)
        before, after = node.proto, other.proto
        if (old := _operator(before)) != (new := _operator(after)):
            yield ModelChange("changed", "node", name, called, "operator", old, new, path, *ids)
        ours, theirs = ({attribute.name: attribute for attribute in proto.attribute} for proto in (before, after))
        for key in {**ours, **theirs}:
            was, now = ours.get(key), theirs.get(key)
            bodies = len(node.bodies.get(key, ())), len(other.bodies.get(key, ()))
            if was is not None and now is not None and (was == now or bodies[0] == bodies[1] > 0):
                continue
            old, new = texts.attribute_text(was), texts.attribute_text(now)
            besides: Ignorable | None = ge_dump.word_of(key) if before.op_type.startswith(ge_dump.PREFIX) else None
            if now is None or was is None:
                same = self._is_default(node, was) if now is None else self._is_default(other, now)
                besides = "defaults" if same else besides
            yield ModelChange(
                "changed", "node", name, called, f"attribute {key}", old, new, path, *ids, besides=besides
            )
        if before.doc_string != after.doc_string:
            old, new = texts.shortened(before.doc_string), texts.shortened(after.doc_string)
            yield ModelChange("changed", "node", name, called, "documentation", old, new, path, *ids)
        notes = [{entry.key: entry.value for entry in proto.metadata_props} for proto in (before, after)]
        if notes[0] != notes[1]:
            shown = [texts.shortened(", ".join(f"{key}={value}" for key, value in note.items())) for note in notes]
            yield ModelChange("changed", "node", name, called, "metadata", shown[0], shown[1], path, *ids)
        for field, old, new in texts.rest(self._as_named(node, other), after, _TOLD):
            yield ModelChange("changed", "node", name, called, field, old, new, path, *ids)

    def _as_named(self, node: NodeRecord, other: NodeRecord) -> onnx.NodeProto:
        """A node whose configurations of devices name values as the other node does."""
        if not node.proto.device_configurations:
            return node.proto
        pairs = zip((*node.proto.input, *node.proto.output), (*other.proto.input, *other.proto.output), strict=False)
        names = dict(pairs)
        copy = onnx.NodeProto.FromString(node.proto.SerializeToString())
        for configuration in copy.device_configurations:
            for spec in configuration.sharding_spec:
                spec.tensor_name = names.get(spec.tensor_name, spec.tensor_name)
        return copy

    def _is_default(self, node: NodeRecord, attribute: onnx.AttributeProto | None) -> bool:
        """Whether an attribute is set to what the schema says anyway."""
        graph = self._a if self._a.nodes.get(node.id) is node else self._b
        schema = graph.schema(node)
        spec = schema.attributes.get(attribute.name) if schema and attribute is not None else None
        if spec is None or spec.default is None or attribute is None:
            return False
        value = decode(attribute)
        return isinstance(value, int | float | str | list | tuple) and bool(value == spec.default)

    def _moves(self, before: Scope, after: Scope, paired: list[int], path: str) -> Iterator[ModelChange]:
        inverse = {self._matching.nodes[ident]: at for at, ident in enumerate(paired)}
        order = [inverse[ident] for ident in after.node_ids if ident in inverse]
        stays = longest_increasing(order)
        for position, at in enumerate(order):
            if position not in stays:
                node = self._a.nodes[paired[at]]
                other = self._b.nodes[self._matching.nodes[node.id]]
                places = str(before.position(node)), str(after.position(other))
                yield ModelChange("moved", "node", self._a.label(node), self._b.label(other), "position", *places, path,
                             node.id, other.id)  # fmt: skip


def _operator(proto: onnx.NodeProto) -> str:
    parts = (proto.domain if proto.domain != "ai.onnx" else "", proto.op_type, proto.overload)
    return "::".join(filter(None, parts))


def _call(node: NodeRecord) -> str:
    """A node as a call, with the names that it reads and makes."""
    proto = node.proto
    return texts.shortened(f"{', '.join(proto.output)} = {_operator(proto)}({', '.join(proto.input)})")
