"""The changes that turn one model into another, message by message, and keep what both have in common where it is.

Each step looks at the graph as it is when the steps before it were applied: what is there already is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx
from google.protobuf.unknown_fields import UnknownFieldSet

from onnxlab.analysis.diff.matching import Matching
from onnxlab.analysis.diff.orders import longest_increasing
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
        graph: what is changed.
        wanted: what it shall become; it stays as it is.
        matching: pairs of the ids of both.
    """

    def __init__(self, graph: ModelGraph, wanted: ModelGraph, matching: Matching) -> None:
        self._graph, self._wanted, self._matching = graph, wanted, matching
        self._pairs = {
            one: other
            for one, other in matching.nodes.items()
            if _unknown(graph.nodes[one].proto) == _unknown(wanted.nodes[other].proto)
        }  # fields that this protobuf does not know come with the whole node
        self._of = {other: one for one, other in self._pairs.items()}  # node of `wanted`: of the graph

    def steps(self) -> Iterator[Change]:
        """The changes, to be applied one by one.

        Raises:
            EditError: training graphs came or went, for which there is no change.
        """
        graph, wanted = self._graph, self._wanted
        if len(graph.header.training_info) != len(wanted.header.training_info):
            raise EditError("the models have different numbers of training graphs; save the second one instead")
        yield from self._fields(("model", 0), graph.header, wanted.header, _OF_MODEL)
        yield from self._functions()
        for one, other in self._matching.scopes.items():
            if one in graph.scopes:  # else it went with its owner
                yield from self._names(graph.scopes[one], wanted.scopes[other])
        for one, other in self._matching.scopes.items():
            if one in graph.scopes:
                yield from self._scope(graph.scopes[one], wanted.scopes[other])
        for at, training in enumerate(wanted.header.training_info):
            yield from self._fields(("training", at), graph.header.training_info[at], training, _OF_TRAINING)

    def _fields(self, target: tuple[Any, int], one: Any, other: Any, apart: frozenset[str]) -> Iterator[Change]:
        for field in other.DESCRIPTOR.fields:
            if field.name not in apart:
                value = field_value(other, field.name)
                if field_value(one, field.name) != value:
                    yield SetField(target, field.name, value)

    def _functions(self) -> Iterator[Change]:
        graph, wanted = self._graph, self._wanted.header.functions
        keys = [function_key(proto) for proto in wanted]
        for ident in list(graph.index.function_ids):
            if function_key(graph.scopes[ident].proto) not in keys:
                yield RemoveFunction(ident)
        for at, key in enumerate(keys):
            present = [function_key(graph.scopes[ident].proto) for ident in graph.index.function_ids]
            if key not in present:
                yield InsertFunction(at, wanted[at])
            elif present[at] != key:
                yield RemoveFunction(graph.index.function_ids[present.index(key)])
                yield InsertFunction(at, wanted[at])

    # -- names ------------------------------------------------------------------------------------------------------

    def _names(self, scope: Scope, other: Scope) -> Iterator[Change]:
        """Give values the names of their partners; a name that is in the way is set aside first."""
        graph = self._graph
        pairs = self._matching.values
        wants = {
            vid: self._wanted.values[pairs[vid]].name
            for vid in scope.names.values()
            if vid in pairs and self._wanted.values[pairs[vid]].scope == other.id
        }
        wants = {vid: name for vid, name in wants.items() if graph.values[vid].name != name}
        number = 0
        for name in wants.values():
            standing = scope.names.get(name, 0)
            if standing:
                while (spare := f"{name}.{number}") in scope.names or graph.index.lookup(scope, spare):
                    number += 1
                yield self._renaming(standing, spare)
        for vid, name in wants.items():
            value = graph.values[vid]
            if not any(graph.index.lookup(each, name) for each in reading_scopes(graph, value)):
                yield self._renaming(vid, name)  # else its readers and its maker get the new name one by one

    def _renaming(self, vid: int, name: str) -> Change:
        return RenameValue(vid, name, mentions_by_name(self._graph, self._graph.values[vid]))

    # -- scopes -----------------------------------------------------------------------------------------------------

    def _scope(self, scope: Scope, other: Scope) -> Iterator[Change]:
        yield from self._fields(("scope", scope.id), scope.proto, other.proto, _OF_SCOPE)
        pairs = self._pairs
        for ident in list(scope.node_ids):
            if ident not in pairs or self._wanted.nodes[pairs[ident]].scope != other.id:
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
        kept = {ident: at for at, ident in enumerate(scope.node_ids)}
        order = list(other.node_ids)
        common = [kept[self._of[ident]] for ident in order if self._of.get(ident) in kept]
        stays = longest_increasing(common)
        before, met = -1, 0
        for ident in order:
            mine = self._of.get(ident)
            if mine not in kept:
                yield InsertNode(scope.id, before + 1, self._wanted.nodes[ident].proto)
                before += 1
                continue
            node = graph.nodes[mine]
            at = scope.position(node)
            if met not in stays:
                yield MoveNode(mine, before if at < before else before + 1)
                at = scope.position(node)
            met += 1
            before = at
            yield from self._node(mine, self._wanted.nodes[ident].proto)

    def _node(self, ident: int, wanted: onnx.NodeProto) -> Iterator[Change]:
        node = self._graph.nodes[ident]
        if node.proto.SerializeToString() == wanted.SerializeToString():
            return
        if list(node.proto.input) != list(wanted.input):
            yield SetInputs(ident, tuple(wanted.input))
        if list(node.proto.output) != list(wanted.output):
            yield SetOutputs(ident, tuple(wanted.output))
        yield from self._attributes(ident, wanted)
        yield from self._fields(("node", ident), node.proto, wanted, _OF_NODE)

    def _attributes(self, ident: int, wanted: onnx.NodeProto) -> Iterator[Change]:
        node = self._graph.nodes[ident]
        ours, theirs = [item.name for item in node.proto.attribute], [item.name for item in wanted.attribute]
        if ours != theirs or len(set(ours)) < len(ours):
            if all(one == other for one, other in zip(node.proto.attribute, wanted.attribute, strict=False)) and (
                len(ours) == len(theirs)
            ):
                return
            for at in range(len(ours) - 1, -1, -1):
                yield SetAttribute(ident, ours[at], None, at)
            for at, item in enumerate(wanted.attribute):
                yield SetAttribute(ident, item.name, item, at)
            return
        for at, item in enumerate(wanted.attribute):
            standing = node.proto.attribute[at]
            if standing != item and not self._is_followed(node.bodies.get(item.name, ()), standing, item):
                yield SetAttribute(ident, item.name, item)

    def _is_followed(self, bodies: Sequence[int], one: onnx.AttributeProto, other: onnx.AttributeProto) -> bool:
        """Whether attributes differ in their graphs alone, which are brought up to date by themselves."""
        if not bodies or one.type != other.type or one.type not in GRAPH_KINDS or len(one.graphs) != len(other.graphs):
            return False
        if any(body not in self._matching.scopes for body in bodies):
            return False
        shells = []
        for attribute in (one, other):
            shell = onnx.AttributeProto.FromString(attribute.SerializeToString())
            shell.ClearField("g")
            shell.ClearField("graphs")
            shells.append(shell)
        return bool(shells[0] == shells[1])

    # -- inputs, outputs and entries --------------------------------------------------------------------------------

    def _formals(self, scope: Scope, other: Scope, kind: Any) -> Iterator[Change]:
        present = getattr(scope.proto, kind)
        wanted = list(getattr(other.proto, kind))
        formals = scope.inputs if kind == "input" else scope.outputs
        plan = _Plan([formal_name(item) for item in present], [formal_name(item) for item in wanted])
        ids = {self._graph.values[vid].name: vid for vid in formals}
        for at in plan.removed:
            yield RemoveFormal(scope.id, kind, at)
        for at, is_new in plan.placed():
            if is_new:
                name = formal_name(wanted[at])
                yield InsertFormal(scope.id, kind, at, wanted[at], {name: ids[name]} if name in ids else None)
            elif not scope.is_function and getattr(scope.proto, kind)[at] != wanted[at]:
                yield SetFormal(scope.id, kind, at, wanted[at])

    def _entries(self, scope: Scope, other: Scope, field: EntryField) -> Iterator[Change]:
        present, wanted = getattr(scope.proto, field), getattr(other.proto, field)
        if not len(present) and not len(wanted):
            return
        names = [entry_name(field, item) for item in wanted]
        plan = _Plan([entry_name(field, item) for item in present], names)
        ids: Mapping[str, int] = dict(scope.names)
        for at in plan.removed:
            yield RemoveEntry(scope.id, field, at)
        for at, is_new in plan.placed():
            if is_new:
                known = {names[at]: ids[names[at]]} if names[at] in ids else None
                yield InsertEntry(scope.id, field, at, wanted[at], known)
            elif getattr(scope.proto, field)[at] != wanted[at]:
                yield ReplaceEntry(scope.id, field, at, wanted[at])


class _Plan:
    """What goes and what comes for one list of names to become another; names may stand in a list twice.

    Attributes:
        removed: positions that go, the last first.
    """

    def __init__(self, present: Sequence[str], wanted: Sequence[str]) -> None:
        mine, its = _numbered(present), _numbered(wanted)
        place = {key: at for at, key in enumerate(mine)}
        common = [key for key in its if key in place]
        stays = longest_increasing([place[key] for key in common])
        self._kept = {key for at, key in enumerate(common) if at in stays}
        self._wanted = its
        self.removed = [at for at in range(len(mine) - 1, -1, -1) if mine[at] not in self._kept]

    def placed(self) -> Iterator[tuple[int, bool]]:
        """(position, whether something is to be put there), from the first on."""
        for at, key in enumerate(self._wanted):
            yield at, key not in self._kept


def _unknown(node: onnx.NodeProto) -> list[tuple[int, int, str]]:
    fields: Any = UnknownFieldSet(node)
    return [(item.field_number, item.wire_type, repr(item.data)) for item in fields]


def _numbered(names: Sequence[str]) -> list[tuple[str, int]]:
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        found.append((name, seen[name]))
        seen[name] += 1
    return found
