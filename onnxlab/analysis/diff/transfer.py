"""The changes that a difference makes to a third model: what changed is changed there, what differs besides stays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import onnx

from onnxlab.analysis.diff import contents
from onnxlab.analysis.diff.difference import Diff
from onnxlab.analysis.diff.matching import GraphMatching
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import (
    InsertFormal,
    InsertFunction,
    InsertNode,
    RemoveFormal,
    RemoveFunction,
    RemoveNode,
    RenameValue,
    SetAttribute,
    SetField,
    SetFormal,
    SetInitializer,
    SetInputs,
    SetOutputs,
)
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.constants import is_constant
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.index.tables import function_key
from onnxlab.graph.protos.renaming import Renaming
from onnxlab.graph.state.change import Change
from onnxlab.graph.state.change_tracker import Target

Do = Callable[[Change], Any]


class Transfer:
    """One application of a difference to a model that is not the first one.

    Args:
        matching: from the first model of the difference to this one.
        do: makes a change as a part of the edit.

    Attributes:
        missing: labels of what was to be changed and is not in this model.
    """

    def __init__(self, diff: Diff, graph: ModelGraph, matching: GraphMatching, do: Do) -> None:
        self._diff, self._graph, self._matching, self._do = diff, graph, matching, do
        self._a, self._b, self._pairs = diff.a, diff.b, diff.matching
        self._back = {other: a_id for a_id, other in self._pairs.values.items()}
        self._node_back = {other: a_id for a_id, other in self._pairs.nodes.items()}
        self._made: dict[int, str] = {}  # names here of values that only the second model has
        self._placed: dict[int, int] = {}  # nodes here of nodes of the second model
        self.missing: list[str] = []

    def run(self) -> None:
        """Make all changes; the edit around them judges the result."""
        self._model()
        for a_id, other in self._pairs.scopes.items():
            target_id = self._matching.scopes.get(a_id, 0)
            if target_id in self._graph.scopes:
                self._scope(self._a.scopes[a_id], self._b.scopes[other], self._graph.scopes[target_id])

    # -- the model --------------------------------------------------------------------------------------------------

    def _model(self) -> None:
        graph, header, other = self._graph, self._a.header, self._b.header
        ignored = self._diff.ignored
        for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
            skipped = "docs" if field == "doc_string" else "producer"
            if getattr(header, field) != getattr(other, field) and skipped not in ignored:
                self._do(SetField(("model", 0), field, getattr(other, field)))
        if other.ir_version > max(header.ir_version, graph.header.ir_version):
            self._do(SetField(("model", 0), "ir_version", other.ir_version))
        self._keyed(("model", 0), header, other, graph.header)
        functions, its = ({function_key(entry): entry for entry in proto.functions} for proto in (header, other))
        present = {function_key(graph.scopes[ident].proto): ident for ident in graph.index.function_ids}
        for function in [key for key in its if key not in functions and key not in present]:
            self._do(InsertFunction(len(graph.index.function_ids), its[function]))
        for function in [key for key in functions if key not in its and key in present]:
            self._do(RemoveFunction(present[function]))

    # -- scopes -----------------------------------------------------------------------------------------------------

    def _scope(self, before: Scope, after: Scope, target: Scope) -> None:
        self._fields(("scope", target.id), before.proto, after.proto, target.proto)
        if "names" not in self._diff.ignored:
            self._rename(before)
        self._stored(after, target)
        for ident in before.node_ids:
            if ident not in self._pairs.nodes:
                self._remove(self._a.nodes[ident])
        self._nodes(after, target)
        self._formals(before, after, target)
        self._drop_unread(before)
        if "names" not in self._diff.ignored:
            self._rename(before)  # to names that were in use until here

    def _rename(self, before: Scope) -> None:
        graph = self._graph
        for vid in before.names.values():
            other, target_id = self._pairs.values.get(vid), self._matching.values.get(vid, 0)
            if other is None or target_id not in graph.values:
                continue
            value, old, new = graph.values[target_id], self._a.values[vid].name, self._b.values[other].name
            if new != old == value.name and not graph.index.lookup(graph.scopes[value.scope], new):
                self._do(RenameValue(target_id, new))

    def _stored(self, after: Scope, target: Scope) -> None:
        """Bring stored tensors: new ones, and new elements of old ones."""
        for vid in after.names.values():
            value = self._b.values[vid]
            if value.initializer is None:
                continue
            sparse = isinstance(value.initializer, onnx.SparseTensorProto)
            back = self._back.get(vid)
            if back is None:
                name = self._name(vid, target)
                self._do(SetInitializer(target.id, name, _called(value.initializer, name), sparse=sparse))
            elif "weights" not in self._diff.ignored:
                self._renew(back, value.initializer, sparse)

    def _renew(self, a_id: int, stored: Any, sparse: bool) -> None:
        was = contents.constant_of(self._a, self._a.values[a_id])
        target = self._graph.values.get(self._matching.values.get(a_id, 0))
        if was is not None and contents.content(self._a, was) == contents.content(self._b, stored):
            return
        if target is None or target.initializer is None:
            self.missing.append(self._a.values[a_id].name)
            return
        if isinstance(target.initializer, onnx.SparseTensorProto) != sparse:
            self._do(SetInitializer(target.scope, target.name, None, sparse=not sparse))
        self._do(SetInitializer(target.scope, target.name, _called(stored, target.name), sparse=sparse))

    def _remove(self, node: NodeRecord) -> None:
        target_id = self._matching.nodes.get(node.id, 0)
        if target_id in self._graph.nodes:
            self._do(RemoveNode(target_id))
        elif not is_constant(node):
            self.missing.append(self._a.label(node))

    def _nodes(self, after: Scope, target: Scope) -> None:
        graph, before = self._graph, -1
        for ident in after.node_ids:
            back = self._node_back.get(ident)
            if back is None:
                self._insert(self._b.nodes[ident], target, before + 1)
                before += 1
                continue
            target_id = self._matching.nodes.get(back, 0)
            if target_id not in graph.nodes or graph.nodes[target_id].scope != target.id:
                if not self._is_unchanged(self._a.nodes[back], self._b.nodes[ident]):
                    self.missing.append(self._a.label(self._a.nodes[back]))
                continue
            before = max(before, target.position(graph.nodes[target_id]))
            self._change(self._a.nodes[back], self._b.nodes[ident], graph.nodes[target_id], target)

    def _insert(self, node: NodeRecord, target: Scope, position: int) -> None:
        values = self._b.values
        seen = dict.fromkeys([*node.inputs, *node.outputs, *self._b.index.captures(node)])
        names = {values[vid].name: self._name(vid, target) for vid in seen if vid}
        proto = Renaming(names).node(node.proto)
        if proto.name and self._graph.index.nodes_called(target, proto.name):
            proto.name = f"{proto.name}_{position}"
        self._do(InsertNode(target.id, position, proto))

    def _is_unchanged(self, node: NodeRecord, other: NodeRecord) -> bool:
        reads = [self._pairs.values.get(vid, 0) for vid in node.inputs]
        return contents.behavior(self._a, node) == contents.behavior(self._b, other) and reads == other.inputs

    def _change(self, node: NodeRecord, other: NodeRecord, target_node: NodeRecord, target: Scope) -> None:
        before, after = node.proto, other.proto
        self._fields(("node", target_node.id), before, after, target_node.proto)
        ours, theirs = ({item.name: item for item in proto.attribute} for proto in (before, after))
        for key in {**ours, **theirs} if "attributes" not in self._diff.ignored else ():
            bodies = len(node.bodies.get(key, ())), len(other.bodies.get(key, ()))
            if ours.get(key) != theirs.get(key) and not bodies[0] == bodies[1] > 0:
                self._do(SetAttribute(target_node.id, key, theirs.get(key)))
        inputs = self._rewired(list(target_node.proto.input), (node.inputs, other.inputs), target)
        if inputs != list(target_node.proto.input):
            self._do(SetInputs(target_node.id, tuple(inputs)))
        outputs = self._rewired(list(target_node.proto.output), (node.outputs, other.outputs), target)
        if outputs != list(target_node.proto.output):
            self._do(SetOutputs(target_node.id, tuple(outputs)))

    def _fields(self, place: Target, before: Any, after: Any, target: Any) -> None:
        """Make the changes of texts that stand here as they stood, and of metadata."""
        for field in ("op_type", "domain", "overload", "doc_string", "name"):
            if field not in after.DESCRIPTOR.fields_by_name:
                continue
            new = getattr(after, field)
            is_ignored = {"doc_string": "docs", "name": "names"}.get(field) in self._diff.ignored
            if not is_ignored and getattr(target, field) == getattr(before, field) != new:
                self._do(SetField(place, field, new))
        self._keyed(place, before, after, target)

    def _keyed(self, place: Target, before: Any, after: Any, target: Any) -> None:
        """Make the changes of metadata and imports, entry by entry."""
        for field, key, skipped in (("metadata_props", "key", "metadata"), ("opset_import", "domain", "opsets")):
            if field in after.DESCRIPTOR.fields_by_name and skipped not in self._diff.ignored:
                merged = _merged(getattr(before, field), getattr(after, field), getattr(target, field), key)
                if merged is not None:
                    self._do(SetField(place, field, merged))

    def _rewired(self, names: list[str], slots: tuple[list[int], list[int]], target: Scope) -> list[str]:
        """The names of a node's inputs or outputs here, with those changed that differ between the models."""
        for slot, (vid, new) in enumerate(zip_longest(*slots, fillvalue=0)):
            if (self._pairs.values.get(vid, -1) if vid else 0) != new:
                names += [""] * (slot + 1 - len(names))
                names[slot] = self._name(new, target) if new else ""
        return names[: len(slots[1])] if len(slots[0]) != len(slots[1]) else names

    def _name(self, vid: int, target: Scope) -> str:
        """The name here of a value of the second model; a new one gets a name that is free."""
        back = self._back.get(vid)
        target_id = self._matching.values.get(back, 0) if back is not None else 0
        if target_id in self._graph.values:
            return self._graph.values[target_id].name
        if vid not in self._made:
            name = base = self._b.values[vid].name
            number, names = 0, set(self._made.values())
            while name in names or self._graph.index.lookup(target, name):
                number += 1
                name = f"{base}_{number}"
            self._made[vid] = name
        return self._made[vid]

    # -- inputs and outputs -----------------------------------------------------------------------------------------

    def _formals(self, before: Scope, after: Scope, target: Scope) -> None:
        kinds: tuple[Any, ...] = ("input", "output")
        for kind in kinds:
            ours, theirs, present = (
                list(scope.inputs if kind == "input" else scope.outputs) for scope in (before, after, target)
            )
            for vid in ours:
                target_id = self._matching.values.get(vid, 0)
                if self._pairs.values.get(vid) not in theirs and target_id in present:
                    formals = target.inputs if kind == "input" else target.outputs
                    self._do(RemoveFormal(target.id, kind, formals.index(target_id)))
            for at, vid in enumerate(theirs):
                back = self._back.get(vid)
                formals = target.inputs if kind == "input" else target.outputs
                if back not in ours:
                    name = self._name(vid, target)
                    info = name if target.is_function else _called(getattr(after.proto, kind)[at], name)
                    self._do(InsertFormal(target.id, kind, min(at, len(formals)), info))
                elif not target.is_function and (target_id := self._matching.values.get(back, 0)) in formals:
                    infos = getattr(before.proto, kind)[ours.index(back)], getattr(after.proto, kind)[at]
                    if infos[0].type != infos[1].type:
                        place = formals.index(target_id)
                        self._do(
                            SetFormal(target.id, kind, place, _called(infos[1], self._graph.values[target_id].name))
                        )

    def _drop_unread(self, before: Scope) -> None:
        """Take away stored tensors that the second model does not have, unless something here reads them."""
        for vid in before.names.values():
            target = self._graph.values.get(self._matching.values.get(vid, 0))
            if self._a.values[vid].initializer is None or vid in self._pairs.values or target is None:
                continue
            if target.initializer is not None and not target.uses and not target.formal_outputs:
                sparse = isinstance(target.initializer, onnx.SparseTensorProto)
                self._do(SetInitializer(target.scope, target.name, None, sparse=sparse))


def _called(message: Any, name: str) -> Any:
    """A copy of a tensor or declaration under another name."""
    copy = type(message)()
    copy.CopyFrom(message)
    (copy.values if isinstance(copy, onnx.SparseTensorProto) else copy).name = name
    return copy


def _merged(before: Any, after: Any, target: Any, key: str) -> tuple[Any, ...] | None:
    """The entries here with what changed from one to the other; None where nothing did."""
    old, new, present = ({getattr(entry, key): entry for entry in entries} for entries in (before, after, target))
    changed = {name: new.get(name) for name in {**old, **new} if old.get(name) != new.get(name)}
    if not changed:
        return None
    result = {name: changed.get(name, entry) for name, entry in present.items()}
    result.update({name: entry for name, entry in changed.items() if name not in present})
    return tuple(entry for entry in result.values() if entry is not None)


def refuse_missing(missing: list[str]) -> None:
    """Raise EditError where a difference changes what is not there."""
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise EditError(
            f"the difference changes what this model does not have: {shown}; "
            "patch(strict=False) makes the other changes"
        )
