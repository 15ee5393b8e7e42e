"""The changes that turn one model into another, message by message, and keep what both have in common where it is.

Each step looks at the graph as the steps before it leave it, and changes nothing that already is as it should be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx
from google.protobuf.unknown_fields import UnknownFieldSet

from onnxlab.analysis.diff.matching import GraphMatching
from onnxlab.analysis.diff.orders import longest_increasing, numbered
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import (
    InsertEntry,
    InsertFormal,
    InsertFunction,
    InsertNode,
    MoveNode,
    RemoveEntry,
    RemoveFormal,
    RemoveFunction,
    RemoveNode,
    RenameValue,
    ReplaceEntry,
    SetAttribute,
    SetField,
    SetFormal,
    SetInputs,
    SetOutputs,
    field_value,
)
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.name_references import mentions_by_name, reading_scopes
from onnxlab.graph.index.named_entries import EntryField, entry_name, formal_name
from onnxlab.graph.index.records import GRAPH_KINDS, Scope
from onnxlab.graph.index.tables import function_key
from onnxlab.graph.state.change import Change

_ENTRIES: tuple[EntryField, ...] = ("initializer", "sparse_initializer", "value_info", "quantization_annotation")
_OF_MODEL = frozenset(("graph", "functions", "training_info"))
_OF_SCOPE = frozenset(("node", "input", "output", *_ENTRIES))
_OF_NODE = frozenset(("input", "output", "attribute"))
_OF_TRAINING = frozenset(("initialization", "algorithm"))


class Becoming:
    """The steps from one model to another.

    Args:
        graph: the graph that is changed.
        target: the model that the graph becomes; it stays as it is.
        matching: pairs of ids of the two models.
    """

    def __init__(self, graph: ModelGraph, target: ModelGraph, matching: GraphMatching) -> None:
        self._graph, self._target, self._matching = graph, target, matching
        self._pairs = {
            ident: other
            for ident, other in matching.nodes.items()
            if _unknown(graph.nodes[ident].proto) == _unknown(target.nodes[other].proto)
        }  # fields that this protobuf does not know come with the whole node
        self._of = {other: ident for ident, other in self._pairs.items()}  # node of `target`: of the graph

    def steps(self) -> Iterator[Change]:
        """The changes, to be applied one by one.

        Raises:
            EditError: training graphs came or went, for which there is no change.
        """
        graph, target = self._graph, self._target
        if len(graph.header.training_info) != len(target.header.training_info):
            raise EditError("the models have different numbers of training graphs; save the second one instead")
        for at, training in enumerate(target.header.training_info):
            if any(training.HasField(part) != graph.header.training_info[at].HasField(part) for part in _OF_TRAINING):
                raise EditError("a training graph came or went, which no edit makes; save the second model instead")
        yield from self._fields(("model", 0), graph.header, target.header, _OF_MODEL)
        yield from self._functions()
        for ident, other in self._matching.scopes.items():
            if ident in graph.scopes:  # else it went with its owner
                yield from self._names(graph.scopes[ident], target.scopes[other])
        for ident, other in self._matching.scopes.items():
            if ident in graph.scopes:
                yield from self._scope(graph.scopes[ident], target.scopes[other])
        for at, training in enumerate(target.header.training_info):
            yield from self._fields(("training", at), graph.header.training_info[at], training, _OF_TRAINING)

    def _fields(self, target: tuple[Any, int], message: Any, other: Any, apart: frozenset[str]) -> Iterator[Change]:
        for field in other.DESCRIPTOR.fields:
            if field.name not in apart:
                value = field_value(other, field.name)
                if field_value(message, field.name) != value:
                    yield SetField(target, field.name, value)

    def _functions(self) -> Iterator[Change]:
        graph, functions = self._graph, self._target.header.functions
        keys = [function_key(proto) for proto in functions]
        if len(set(keys)) < len(keys):
            raise EditError("the second model has two functions of one name; rename one of them there first")
        for ident in list(graph.index.function_ids):
            if function_key(graph.scopes[ident].proto) not in keys:
                yield RemoveFunction(ident)
        for at, key in enumerate(keys):
            present = [function_key(graph.scopes[ident].proto) for ident in graph.index.function_ids]
            if key not in present:
                yield InsertFunction(at, functions[at])
            elif present[at] != key:
                yield RemoveFunction(graph.index.function_ids[present.index(key)])
                yield InsertFunction(at, functions[at])

    # -- names ------------------------------------------------------------------------------------------------------

    def _names(self, scope: Scope, other: Scope) -> Iterator[Change]:
        """Give values the names of their partners; a name that is in the way is set aside first."""
        graph = self._graph
        pairs = self._matching.values
        wants = {
            vid: self._target.values[pairs[vid]].name
            for vid in scope.names.values()
            if vid in pairs and self._target.values[pairs[vid]].scope == other.id
        }
        # The empty name is no value's: a value that had it would be gone when an output of that name is taken back.
        wants = {vid: name for vid, name in wants.items() if name and graph.values[vid].name != name}
        number = 0
        for name in wants.values():
            standing = scope.names.get(name, 0)
            if standing:
                while (spare := f"{name}.{number}") in scope.names or graph.index.lookup(scope, spare):
                    number += 1
                yield self._renaming(standing, spare)
        for vid, name in wants.items():
            value = graph.values[vid]
            if not any(graph.index.lookup(reader_scope, name) for reader_scope in reading_scopes(graph, value)):
                yield self._renaming(vid, name)  # else its readers and its maker get the new name one by one

    def _renaming(self, vid: int, name: str) -> Change:
        return RenameValue(vid, name, mentions_by_name(self._graph, self._graph.values[vid]))

    # -- scopes -----------------------------------------------------------------------------------------------------

    def _scope(self, scope: Scope, other: Scope) -> Iterator[Change]:
        yield from self._fields(("scope", scope.id), scope.proto, other.proto, _OF_SCOPE)
        pairs = self._pairs
        for ident in list(scope.node_ids):
            if ident not in pairs or self._target.nodes[pairs[ident]].scope != other.id:
                yield RemoveNode(ident)
        yield from self._nodes(scope, other)
        kinds: tuple[Any, ...] = ("input", "output")
        for kind in kinds:
            yield from self._formals(scope, other, kind)
        if not scope.is_function:
            for field in _ENTRIES:
                yield from self._entries(scope, other, field)
        elif len(other.proto.value_info) or len(scope.proto.value_info):
            yield from self._entries(scope, other, "value_info")

    def _nodes(self, scope: Scope, other: Scope) -> Iterator[Change]:
        graph = self._graph
        positions = {ident: at for at, ident in enumerate(scope.node_ids)}
        order = list(other.node_ids)
        common = [positions[self._of[ident]] for ident in order if self._of.get(ident) in positions]
        stays = longest_increasing(common)
        before, met = -1, 0
        for ident in order:
            node_id = self._of.get(ident)
            if node_id not in positions:
                yield InsertNode(scope.id, before + 1, self._target.nodes[ident].proto)
                before += 1
                continue
            node = graph.nodes[node_id]
            at = scope.position(node)
            if met not in stays:
                yield MoveNode(node_id, before if at < before else before + 1)
                at = scope.position(node)
            met += 1
            before = at
            yield from self._node(node_id, self._target.nodes[ident].proto)

    def _node(self, ident: int, target: onnx.NodeProto) -> Iterator[Change]:
        node = self._graph.nodes[ident]
        if node.proto.SerializeToString() == target.SerializeToString():
            return
        if list(node.proto.input) != list(target.input):
            yield SetInputs(ident, tuple(target.input))
        if list(node.proto.output) != list(target.output):
            yield SetOutputs(ident, tuple(target.output))
        yield from self._attributes(ident, target)
        yield from self._fields(("node", ident), node.proto, target, _OF_NODE)

    def _attributes(self, ident: int, target: onnx.NodeProto) -> Iterator[Change]:
        node = self._graph.nodes[ident]
        ours, theirs = [item.name for item in node.proto.attribute], [item.name for item in target.attribute]
        if ours != theirs or len(set(ours)) < len(ours):
            if all(
                attribute == other for attribute, other in zip(node.proto.attribute, target.attribute, strict=False)
            ) and (len(ours) == len(theirs)):
                return
            for at in range(len(ours) - 1, -1, -1):
                yield SetAttribute(ident, ours[at], None, at)
            for at, item in enumerate(target.attribute):
                yield SetAttribute(ident, item.name, item, at)
            return
        for at, item in enumerate(target.attribute):
            standing = node.proto.attribute[at]
            if standing != item and not self._is_followed(node.bodies.get(item.name, ()), standing, item):
                yield SetAttribute(ident, item.name, item)

    def _is_followed(self, bodies: Sequence[int], old: onnx.AttributeProto, other: onnx.AttributeProto) -> bool:
        """Whether attributes differ in their graphs alone, which are brought up to date by themselves."""
        if not bodies or old.type != other.type or old.type not in GRAPH_KINDS or len(old.graphs) != len(other.graphs):
            return False
        if any(body not in self._matching.scopes for body in bodies):
            return False
        shells = []
        for attribute in (old, other):
            shell = onnx.AttributeProto.FromString(attribute.SerializeToString())
            shell.ClearField("g")
            shell.ClearField("graphs")
            shells.append(shell)
        return bool(shells[0] == shells[1])

    # -- inputs, outputs and entries --------------------------------------------------------------------------------

    def _formals(self, scope: Scope, other: Scope, kind: Any) -> Iterator[Change]:
        present = getattr(scope.proto, kind)
        target = list(getattr(other.proto, kind))
        formals = scope.inputs if kind == "input" else scope.outputs
        plan = _Plan([formal_name(item) for item in present], [formal_name(item) for item in target])
        ids = {self._graph.values[vid].name: vid for vid in formals}
        for at in plan.removed:
            yield RemoveFormal(scope.id, kind, at)
        for at, is_new in plan.placed():
            if is_new:
                name = formal_name(target[at])
                yield InsertFormal(scope.id, kind, at, target[at], {name: ids[name]} if name in ids else None)
            elif not scope.is_function and getattr(scope.proto, kind)[at] != target[at]:
                yield SetFormal(scope.id, kind, at, target[at])

    def _entries(self, scope: Scope, other: Scope, field: EntryField) -> Iterator[Change]:
        present, target = getattr(scope.proto, field), getattr(other.proto, field)
        if not len(present) and not len(target):
            return
        names = [entry_name(field, item) for item in target]
        plan = _Plan([entry_name(field, item) for item in present], names)
        ids: Mapping[str, int] = dict(scope.names)
        for at in plan.removed:
            yield RemoveEntry(scope.id, field, at)
        for at, is_new in plan.placed():
            if is_new:
                known = {names[at]: ids[names[at]]} if names[at] in ids else None
                yield InsertEntry(scope.id, field, at, target[at], known)
            elif getattr(scope.proto, field)[at] != target[at]:
                yield ReplaceEntry(scope.id, field, at, target[at])


class _Plan:
    """The removals and additions by which one list of names becomes another; names may stand in a list twice.

    Attributes:
        removed: positions that go, the last first.
    """

    def __init__(self, present: Sequence[str], target: Sequence[str]) -> None:
        present_keys, target_keys = numbered(present), numbered(target)
        place = {key: at for at, key in enumerate(present_keys)}
        common = [key for key in target_keys if key in place]
        stays = longest_increasing([place[key] for key in common])
        self._kept = {key for at, key in enumerate(common) if at in stays}
        self._target = target_keys
        self.removed = [at for at in range(len(present_keys) - 1, -1, -1) if present_keys[at] not in self._kept]

    def placed(self) -> Iterator[tuple[int, bool]]:
        """(position, whether something is to be put there), from the first on."""
        for at, key in enumerate(self._target):
            yield at, key not in self._kept


def _unknown(node: onnx.NodeProto) -> list[tuple[int, int, str]]:
    fields: Any = UnknownFieldSet(node)
    return [(item.field_number, item.wire_type, repr(item.data)) for item in fields]
