"""The changes that a difference makes to a third model: what changed is changed there, what differs besides stays."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import onnx

from onnxlab.analysis.diff import contents
from onnxlab.analysis.diff.difference import Diff
from onnxlab.analysis.diff.matching import Matching
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

Do = Callable[[Change], Any]


class Transfer:
    """One application of a difference to a model that is not the first one.

    Args:
        matching: from the first model of the difference to this one.
        do: makes a change as a part of the edit.

    Attributes:
        missing: labels of what was to be changed and is not in this model.
    """

    def __init__(self, diff: Diff, graph: ModelGraph, matching: Matching, do: Do) -> None:
        self._diff, self._graph, self._matching, self._do = diff, graph, matching, do
        self._a, self._b, self._pairs = diff.a, diff.b, diff.matching
        self._back = {other: one for one, other in self._pairs.values.items()}
        self._node_back = {other: one for one, other in self._pairs.nodes.items()}
        self._made: dict[int, str] = {}  # names here of values that only the second model has
        self._placed: dict[int, int] = {}  # nodes here of nodes of the second model
        self.missing: list[str] = []

    def run(self) -> None:
        """Make all changes; what they leave is judged by the edit that they are a part of."""
        self._model()
        for one, other in self._pairs.scopes.items():
            here = self._matching.scopes.get(one, 0)
            if here in self._graph.scopes:
                self._scope(self._a.scopes[one], self._b.scopes[other], self._graph.scopes[here])

    # -- the model --------------------------------------------------------------------------------------------------

    def _model(self) -> None:
        graph, one, other = self._graph, self._a.header, self._b.header
        ignored = self._diff.ignored
        for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
            skipped = "docs" if field == "doc_string" else "producer"
            if getattr(one, field) != getattr(other, field) and skipped not in ignored:
                self._do(SetField(("model", 0), field, getattr(other, field)))
        if other.ir_version > max(one.ir_version, graph.header.ir_version):
            self._do(SetField(("model", 0), "ir_version", other.ir_version))
        for field, key, skipped in (("metadata_props", "key", "metadata"), ("opset_import", "domain", "opsets")):
            merged = _merged(getattr(one, field), getattr(other, field), getattr(graph.header, field), key)
            if merged is not None and skipped not in ignored:
                self._do(SetField(("model", 0), field, merged))
        mine, its = ({function_key(each): each for each in proto.functions} for proto in (one, other))
        here = {function_key(graph.scopes[ident].proto): ident for ident in graph.index.function_ids}
        for function in its.keys() - mine.keys() - here.keys():
            self._do(InsertFunction(len(graph.index.function_ids), its[function]))
        for function in (mine.keys() - its.keys()) & here.keys():
            self._do(RemoveFunction(here[function]))

    # -- scopes -----------------------------------------------------------------------------------------------------

    def _scope(self, mine: Scope, its: Scope, here: Scope) -> None:
        if "names" not in self._diff.ignored:
            self._rename(mine)
        self._stored(its, here)
        for ident in mine.node_ids:
            if ident not in self._pairs.nodes:
                self._remove(self._a.nodes[ident])
        self._nodes(its, here)
        self._formals(mine, its, here)
        self._drop_unread(mine)

    def _rename(self, mine: Scope) -> None:
        graph = self._graph
        for vid in mine.names.values():
            other, there = self._pairs.values.get(vid), self._matching.values.get(vid, 0)
            if other is None or there not in graph.values:
                continue
            value, old, new = graph.values[there], self._a.values[vid].name, self._b.values[other].name
            if new != old == value.name and not graph.index.lookup(graph.scopes[value.scope], new):
                self._do(RenameValue(there, new))

    def _stored(self, its: Scope, here: Scope) -> None:
        """Bring stored tensors: new ones, and new elements of old ones."""
        for vid in its.names.values():
            value = self._b.values[vid]
            if value.initializer is None:
                continue
            sparse = isinstance(value.initializer, onnx.SparseTensorProto)
            back = self._back.get(vid)
            if back is None:
                name = self._name(vid, here)
                self._do(SetInitializer(here.id, name, _called(value.initializer, name), sparse=sparse))
            elif "weights" not in self._diff.ignored:
                self._renew(back, value.initializer, sparse)

    def _renew(self, one: int, wanted: Any, sparse: bool) -> None:
        was = contents.constant_of(self._a, self._a.values[one])
        there = self._graph.values.get(self._matching.values.get(one, 0))
        if was is not None and contents.content(self._a, was) == contents.content(self._b, wanted):
            return
        if there is None or there.initializer is None:
            self.missing.append(self._a.values[one].name)
            return
        if isinstance(there.initializer, onnx.SparseTensorProto) != sparse:
            self._do(SetInitializer(there.scope, there.name, None, sparse=not sparse))
        self._do(SetInitializer(there.scope, there.name, _called(wanted, there.name), sparse=sparse))

    def _remove(self, node: NodeRecord) -> None:
        there = self._matching.nodes.get(node.id, 0)
        if there in self._graph.nodes:
            self._do(RemoveNode(there))
        elif not is_constant(node):
            self.missing.append(self._a.label(node))

    def _nodes(self, its: Scope, here: Scope) -> None:
        graph, before = self._graph, -1
        for ident in its.node_ids:
            back = self._node_back.get(ident)
            if back is None:
                self._insert(self._b.nodes[ident], here, before + 1)
                before += 1
                continue
            there = self._matching.nodes.get(back, 0)
            if there not in graph.nodes or graph.nodes[there].scope != here.id:
                if not self._is_unchanged(self._a.nodes[back], self._b.nodes[ident]):
                    self.missing.append(self._a.label(self._a.nodes[back]))
                continue
            before = max(before, here.position(graph.nodes[there]))
            self._change(self._a.nodes[back], self._b.nodes[ident], graph.nodes[there], here)

    def _insert(self, node: NodeRecord, here: Scope, position: int) -> None:
        values = self._b.values
        seen = dict.fromkeys([*node.inputs, *node.outputs, *self._b.index.captures(node)])
        names = {values[vid].name: self._name(vid, here) for vid in seen if vid}
        proto = Renaming(names).node(node.proto)
        if proto.name and self._graph.index.nodes_called(here, proto.name):
            proto.name = f"{proto.name}_{position}"
        self._do(InsertNode(here.id, position, proto))

    def _is_unchanged(self, one: NodeRecord, other: NodeRecord) -> bool:
        reads = [self._pairs.values.get(vid, 0) for vid in one.inputs]
        return contents.behavior(self._a, one) == contents.behavior(self._b, other) and reads == other.inputs

    def _change(self, one: NodeRecord, other: NodeRecord, there: NodeRecord, here: Scope) -> None:
        mine, its = one.proto, other.proto
        for field in ("op_type", "domain", "overload", "doc_string", "name"):
            new = getattr(its, field)
            is_ignored = {"doc_string": "docs", "name": "names"}.get(field) in self._diff.ignored
            if not is_ignored and getattr(there.proto, field) == getattr(mine, field) != new:
                self._do(SetField(("node", there.id), field, new))
        ours, theirs = ({item.name: item for item in proto.attribute} for proto in (mine, its))
        for key in {**ours, **theirs} if "attributes" not in self._diff.ignored else ():
            bodies = len(one.bodies.get(key, ())), len(other.bodies.get(key, ()))
            if ours.get(key) != theirs.get(key) and not bodies[0] == bodies[1] > 0:
                self._do(SetAttribute(there.id, key, theirs.get(key)))
        inputs = self._rewired(list(there.proto.input), (one.inputs, other.inputs), here)
        if inputs != list(there.proto.input):
            self._do(SetInputs(there.id, tuple(inputs)))
        outputs = self._rewired(list(there.proto.output), (one.outputs, other.outputs), here)
        if outputs != list(there.proto.output):
            self._do(SetOutputs(there.id, tuple(outputs)))

    def _rewired(self, names: list[str], slots: tuple[list[int], list[int]], here: Scope) -> list[str]:
        """The names of a node's inputs or outputs here, with those changed that differ between the models."""
        for slot, (vid, new) in enumerate(zip_longest(*slots, fillvalue=0)):
            if (self._pairs.values.get(vid, -1) if vid else 0) != new:
                names += [""] * (slot + 1 - len(names))
                names[slot] = self._name(new, here) if new else ""
        return names[: len(slots[1])] if len(slots[0]) != len(slots[1]) else names

    def _name(self, vid: int, here: Scope) -> str:
        """The name here of a value of the second model; a new one gets a name that is free."""
        back = self._back.get(vid)
        there = self._matching.values.get(back, 0) if back is not None else 0
        if there in self._graph.values:
            return self._graph.values[there].name
        if vid not in self._made:
            name = wanted = self._b.values[vid].name
            number, taken = 0, set(self._made.values())
            while name in taken or self._graph.index.lookup(here, name):
                number += 1
                name = f"{wanted}_{number}"
            self._made[vid] = name
        return self._made[vid]

    # -- inputs and outputs -----------------------------------------------------------------------------------------

    def _formals(self, mine: Scope, its: Scope, here: Scope) -> None:
        kinds: tuple[Any, ...] = ("input", "output")
        for kind in kinds:
            ours, theirs, present = (
                list(scope.inputs if kind == "input" else scope.outputs) for scope in (mine, its, here)
            )
            for vid in ours:
                there = self._matching.values.get(vid, 0)
                if self._pairs.values.get(vid) not in theirs and there in present:
                    formals = here.inputs if kind == "input" else here.outputs
                    self._do(RemoveFormal(here.id, kind, formals.index(there)))
            for at, vid in enumerate(theirs):
                back = self._back.get(vid)
                formals = here.inputs if kind == "input" else here.outputs
                if back not in ours:
                    name = self._name(vid, here)
                    info = name if here.is_function else _called(getattr(its.proto, kind)[at], name)
                    self._do(InsertFormal(here.id, kind, min(at, len(formals)), info))
                elif not here.is_function and (there := self._matching.values.get(back, 0)) in formals:
                    infos = getattr(mine.proto, kind)[ours.index(back)], getattr(its.proto, kind)[at]
                    if infos[0].type != infos[1].type:
                        place = formals.index(there)
                        self._do(SetFormal(here.id, kind, place, _called(infos[1], self._graph.values[there].name)))

    def _drop_unread(self, mine: Scope) -> None:
        """Take away stored tensors that the second model does not have, unless something here reads them."""
        for vid in mine.names.values():
            there = self._graph.values.get(self._matching.values.get(vid, 0))
            if self._a.values[vid].initializer is None or vid in self._pairs.values or there is None:
                continue
            if there.initializer is not None and not there.uses and not there.formal_outputs:
                sparse = isinstance(there.initializer, onnx.SparseTensorProto)
                self._do(SetInitializer(there.scope, there.name, None, sparse=sparse))


def _called(message: Any, name: str) -> Any:
    """A copy of a tensor or declaration under another name."""
    copy = type(message)()
    copy.CopyFrom(message)
    (copy.values if isinstance(copy, onnx.SparseTensorProto) else copy).name = name
    return copy


def _merged(one: Any, other: Any, here: Any, key: str) -> tuple[Any, ...] | None:
    """The entries here with what changed from one to the other; None where nothing did."""
    mine, its, found = ({getattr(each, key): each for each in entries} for entries in (one, other, here))
    changed = {name: its.get(name) for name in {**mine, **its} if mine.get(name) != its.get(name)}
    if not changed:
        return None
    result = {name: changed.get(name, each) for name, each in found.items()}
    result.update({name: each for name, each in changed.items() if name not in found})
    return tuple(each for each in result.values() if each is not None)


def refuse_missing(missing: list[str]) -> None:
    """Raise EditError where a difference changes what is not there."""
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise EditError(
            f"the difference changes what this model does not have: {shown}; "
            "patch(strict=False) makes the other changes"
        )
