"""The changes that a difference makes to a third model: what changed is changed there, what differs besides stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, zip_longest
from typing import Any

import onnx

from onnxlab.analysis.diff import contents
from onnxlab.analysis.diff.difference import Diff
from onnxlab.analysis.diff.listing import renamed_entry
from onnxlab.analysis.diff.matching import GraphMatching
from onnxlab.analysis.diff.orders import moved, numbered
from onnxlab.graph.edit import changes
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.constants import is_constant
from onnxlab.graph.index.named_entries import EntryField, entry_name, mentioned_names
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
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
        conflicts: labels of what the difference changes and this model has otherwise than both of its models; the
            difference wins there, but for names and documentation.
    """

    def __init__(self, diff: Diff, graph: ModelGraph, matching: GraphMatching, do: Do) -> None:
        self._diff, self._graph, self._matching, self._do = diff, graph, matching, do
        self._a, self._b, self._pairs = diff.a, diff.b, diff.matching
        self._back = {other: a_id for a_id, other in self._pairs.values.items()}
        self._node_back = {other: a_id for a_id, other in self._pairs.nodes.items()}
        self._made: dict[int, str] = {}  # names here of values that only the second model has
        self._placed: dict[int, int] = {}  # nodes here of nodes of the second model
        self.missing: list[str] = []
        self.conflicts: list[str] = []

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
        protos = header, other, graph.header
        for field in ("producer_name", "producer_version", "domain", "model_version"):
            if "producer" not in ignored:
                self._field(("model", 0), field, protos, f"{field} of the model")
        if "docs" not in ignored:
            self._field(("model", 0), "doc_string", protos)
        if other.ir_version > max(header.ir_version, graph.header.ir_version):
            self._do(changes.SetField(("model", 0), "ir_version", other.ir_version))
        self._keyed(("model", 0), protos, "the model")
        functions, its = ({function_key(entry): entry for entry in proto.functions} for proto in (header, other))
        present = {function_key(graph.scopes[ident].proto): ident for ident in graph.index.function_ids}
        for function in [key for key in its if key not in functions and key not in present]:
            self._do(changes.InsertFunction(len(graph.index.function_ids), its[function]))
        for function in [key for key in its if key not in functions and key in present]:
            if graph.scopes[present[function]].proto != its[function]:
                self.conflicts.append(f"function {'::'.join(filter(None, function))}")
                self._do(changes.RemoveFunction(present[function]))
                self._do(changes.InsertFunction(len(graph.index.function_ids), its[function]))
        for function in [key for key in functions if key not in its and key in present]:
            self._do(changes.RemoveFunction(present[function]))

    # -- scopes -----------------------------------------------------------------------------------------------------

    def _scope(self, before: Scope, after: Scope, target: Scope) -> None:
        label = self._graph.scope_path(target) or "the graph"
        self._fields(("scope", target.id), (before.proto, after.proto, target.proto), label)
        if "names" not in self._diff.ignored:
            self._rename(before)
        self._stored(after, target)
        for ident in before.node_ids:
            if ident not in self._pairs.nodes:
                self._remove(self._a.nodes[ident])
        self._nodes(before, after, target)
        kinds: tuple[Any, ...] = ("input", "output")
        for kind in kinds:
            self._formals(before, after, target, kind)
        self._entries(before, after, target, "value_info")
        if not target.is_function:
            self._entries(before, after, target, "quantization_annotation")
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
                self._do(changes.RenameValue(target_id, new))

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
                self._do(changes.SetInitializer(target.id, name, _called(value.initializer, name), sparse=sparse))
                continue
            if "weights" not in self._diff.ignored:
                self._renew(back, value.initializer, sparse)
            self._describe(self._a.values[back], value, self._graph.values.get(self._matching.values.get(back, 0)))

    def _describe(self, before: ValueRecord, after: ValueRecord, target: ValueRecord | None) -> None:
        """Make the changes of documentation and metadata of a stored tensor."""
        stored = before.initializer, after.initializer, target and target.initializer
        if target is not None and all(isinstance(tensor, onnx.TensorProto) for tensor in stored):
            if "docs" not in self._diff.ignored:
                self._field(("tensor", target.id), "doc_string", stored)
            self._keyed(("tensor", target.id), stored, target.name)

    def _renew(self, a_id: int, stored: Any, sparse: bool) -> None:
        was = contents.constant_of(self._a, self._a.values[a_id])
        before = None if was is None else contents.content(self._a, was)
        after = contents.content(self._b, stored)
        target = self._graph.values.get(self._matching.values.get(a_id, 0))
        if before == after:
            return
        if target is None or target.initializer is None:
            self.missing.append(self._a.values[a_id].name)
            return
        present = contents.content(self._graph, target.initializer)
        self._compare(before, after, present, f"the elements of {target.name}")
        if isinstance(target.initializer, onnx.SparseTensorProto) != sparse:
            self._do(changes.SetInitializer(target.scope, target.name, None, sparse=not sparse))
        self._do(changes.SetInitializer(target.scope, target.name, _called(stored, target.name), sparse=sparse))

    def _remove(self, node: NodeRecord) -> None:
        target = self._graph.nodes.get(self._matching.nodes.get(node.id, 0))
        if target is not None:
            reads = [self._matching.values.get(vid, 0) for vid in node.inputs]
            if contents.behavior(self._a, node) != contents.behavior(self._graph, target) or reads != target.inputs:
                self.conflicts.append(f"{self._graph.label(target)}, which goes")
            self._do(changes.RemoveNode(target.id))
        elif not is_constant(node):
            self.missing.append(self._a.label(node))

    def _nodes(self, scope: Scope, after: Scope, target: Scope) -> None:
        graph, before, elsewhere = self._graph, -1, set[int]()
        if "order" not in self._diff.ignored:
            elsewhere.update(moved([self._pairs.nodes.get(ident, 0) for ident in scope.node_ids], after.node_ids))
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
            at = target.position(graph.nodes[target_id])
            if ident in elsewhere and at != before + 1:
                at = before if at < before else before + 1
                self._do(changes.MoveNode(target_id, at))
            before = at if ident in elsewhere else max(before, at)
            self._change(self._a.nodes[back], self._b.nodes[ident], graph.nodes[target_id], target)

    def _insert(self, node: NodeRecord, target: Scope, position: int) -> None:
        values = self._b.values
        seen = dict.fromkeys([*node.inputs, *node.outputs, *self._b.index.captures(node)])
        names = {values[vid].name: self._name(vid, target) for vid in seen if vid}
        proto = Renaming(names).node(node.proto)
        if proto.name and self._graph.index.nodes_called(target, proto.name):
            proto.name = f"{proto.name}_{position}"
        self._do(changes.InsertNode(target.id, position, proto))

    def _is_unchanged(self, node: NodeRecord, other: NodeRecord) -> bool:
        reads = [self._pairs.values.get(vid, 0) for vid in node.inputs]
        return contents.behavior(self._a, node) == contents.behavior(self._b, other) and reads == other.inputs

    def _change(self, node: NodeRecord, other: NodeRecord, target_node: NodeRecord, target: Scope) -> None:
        protos, label = (node.proto, other.proto, target_node.proto), self._graph.label(target_node)
        self._fields(("node", target_node.id), protos, label)
        ours, theirs, present = ({item.name: item for item in proto.attribute} for proto in protos)
        for key in {**ours, **theirs} if "attributes" not in self._diff.ignored else ():
            bodies = len(node.bodies.get(key, ())), len(other.bodies.get(key, ()))
            if ours.get(key) != theirs.get(key) and not bodies[0] == bodies[1] > 0:
                if not any(bodies):  # names in bodies are this model's
                    self._compare(ours.get(key), theirs.get(key), present.get(key), f"attribute {key} of {label}")
                self._do(changes.SetAttribute(target_node.id, key, theirs.get(key)))
        inputs = self._rewired(target_node.inputs, (node.inputs, other.inputs), target, f"input {{}} of {label}")
        if inputs != list(target_node.proto.input):
            self._do(changes.SetInputs(target_node.id, tuple(inputs)))
        outputs = self._rewired(target_node.outputs, (node.outputs, other.outputs), target, f"output {{}} of {label}")
        if outputs != list(target_node.proto.output):
            self._do(changes.SetOutputs(target_node.id, tuple(outputs)))

    def _compare(self, before: Any, after: Any, present: Any, label: str) -> None:
        """Note a conflict where this model has neither what the first model has nor what the second one has."""
        if present not in (before, after):
            self.conflicts.append(label)

    def _fields(self, place: Target, protos: tuple[Any, Any, Any], label: str) -> None:
        """Make the changes of texts and of metadata."""
        for field in ("op_type", "domain", "overload", "doc_string", "name"):
            skipped = {"doc_string": "docs", "name": "names"}.get(field)
            if field in protos[1].DESCRIPTOR.fields_by_name and skipped not in self._diff.ignored:
                self._field(place, field, protos, "" if skipped else f"{field} of {label}")
        self._keyed(place, protos, label)

    def _field(self, place: Target, field: str, protos: tuple[Any, Any, Any], label: str = "") -> None:
        """Make the change of a text; where it has no label, a text that this model has of its own stays."""
        before, after, present = (getattr(proto, field) for proto in protos)
        if before == after or present == after or (not label and present != before):
            return
        self._compare(before, after, present, label)
        self._do(changes.SetField(place, field, changes.field_value(protos[1], field)))

    def _keyed(self, place: Target, protos: tuple[Any, Any, Any], label: str) -> None:
        """Make the changes of metadata and imports, entry by entry."""
        for field, key, skipped in (("metadata_props", "key", "metadata"), ("opset_import", "domain", "opsets")):
            if field not in protos[1].DESCRIPTOR.fields_by_name or skipped in self._diff.ignored:
                continue
            before, after, present = ({getattr(item, key): item for item in getattr(side, field)} for side in protos)
            changed = {name: after.get(name) for name in {**before, **after} if before.get(name) != after.get(name)}
            for name, entry in changed.items():
                self._compare(before.get(name), entry, present.get(name), f"{field} {name or 'ai.onnx'} of {label}")
            if changed:
                merged = [entry for entry in {**present, **changed}.values() if entry is not None]
                self._do(changes.SetField(place, field, tuple(merged)))

    def _rewired(self, ids: list[int], slots: tuple[list[int], list[int]], target: Scope, label: str) -> list[str]:
        """The names of a node's inputs or outputs here, with those changed that differ between the models."""
        names = [self._graph.values[vid].name if vid else "" for vid in ids]
        for slot, (vid, new) in enumerate(zip_longest(*slots, fillvalue=0)):
            if (self._pairs.values.get(vid, -1) if vid else 0) != new:
                names += [""] * (slot + 1 - len(names))
                name = self._name(new, target) if new else ""
                if (ids[slot] if slot < len(ids) else 0) != self._matching.values.get(vid, 0) and names[slot] != name:
                    self.conflicts.append(label.format(slot))
                names[slot] = name
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

    def _formals(self, before: Scope, after: Scope, target: Scope, kind: Any) -> None:
        """Bring inputs or outputs; a value may be an output twice."""
        ours, theirs = _listed(before, kind), _listed(after, kind)
        old, new = numbered([self._pairs.values.get(vid, 0) for vid in ours]), numbered(theirs)
        gone = [(vid, key[1]) for key, vid in zip(old, ours, strict=True) if key not in new]
        for vid, number in reversed(gone):
            places, place = numbered(_listed(target, kind)), (self._matching.values.get(vid, 0), number)
            if place in places:
                self._do(changes.RemoveFormal(target.id, kind, places.index(place)))
        for at, key in enumerate(new):
            formals, info = _listed(target, kind), getattr(after.proto, kind)[at]
            if key not in old:
                name = self._name(key[0], target)
                info = name if target.is_function else _called(info, name)
                self._do(changes.InsertFormal(target.id, kind, min(at, len(formals)), info))
            elif not target.is_function and (target_id := self._here(key[0], target)) in formals:
                declared = getattr(before.proto, kind)[old.index(key)]
                if declared.type != info.type:
                    self._declare(target, kind, formals.index(target_id), (declared, info))
        if "order" not in self._diff.ignored:
            self._reorder(old, new, target, kind)

    def _declare(self, target: Scope, kind: Any, place: int, infos: tuple[Any, Any]) -> None:
        """Give an input or output here the type that it has in the second model."""
        present = getattr(target.proto, kind)[place]
        self._compare(infos[0].type, infos[1].type, present.type, f"the type of {kind} {present.name}")
        self._do(changes.SetFormal(target.id, kind, place, _called(infos[1], present.name)))

    def _reorder(self, before: list[Any], after: list[Any], target: Scope, kind: Any) -> None:
        """Put inputs or outputs that the difference moves behind those that stand before them in the second model."""
        elsewhere = moved(before, after)
        standing = {key: (self._here(key[0], target), key[1]) for key in after}
        present = numbered(_listed(target, kind))
        if elsewhere and all(
            moved([standing[key] for key in order if key in standing], present) for order in (before, after)
        ):
            self.conflicts.append(f"the order of the {kind}s")
        for key in elsewhere:
            formals = numbered(_listed(target, kind))
            if standing[key] not in formals:
                continue
            at = formals.index(standing[key])
            info = getattr(target.proto, kind)[at]
            self._do(changes.RemoveFormal(target.id, kind, at))
            del formals[at]
            ahead = [
                formals.index(standing[other]) for other in after[: after.index(key)] if standing[other] in formals
            ]
            ids = {self._name(key[0], target): standing[key][0]}
            self._do(changes.InsertFormal(target.id, kind, ahead[-1] + 1 if ahead else 0, info, ids))

    def _here(self, vid: int, target: Scope) -> int:
        """The value here of a value of the second model, 0 where there is none."""
        return target.names.get(self._name(vid, target), 0)

    def _entries(self, before: Scope, after: Scope, target: Scope, field: EntryField) -> None:
        """Bring declarations of inner values, unless this model has its own, and quantization annotations."""
        ours, theirs, standing = (getattr(scope.proto, field) for scope in (before, after, target))
        if "declarations" in self._diff.ignored or not (len(ours) or len(theirs)):
            return
        pairs, mentioned = self._pairs.values, partial(mentioned_names, field)
        ids = {name: self._a.index.lookup(before, name) for name in chain.from_iterable(map(mentioned, ours))}
        names = {name: self._b.values[pairs[vid]].name for name, vid in ids.items() if vid in pairs}
        ids = {name: self._b.index.lookup(after, name) for name in chain(names.values(), *map(mentioned, theirs))}
        partners = {name: self._name(vid, target) for name, vid in ids.items() if vid}
        old = _by_name(field, ours, names)
        new = _by_name(field, theirs, {name: name for name in partners})
        entries = _by_name(field, standing, {other: name for name, other in partners.items()})
        for name in [name for name in {**old, **new} if old.get(name) != new.get(name) and name in partners]:
            entry, present = new.get(name), entries.get(name)
            if entry == present or not self._graph.index.lookup(target, partners[name]):
                continue
            if field == "quantization_annotation":
                self._compare(old.get(name), entry, present, f"the annotation of {partners[name]}")
            elif present != old.get(name):
                continue
            order = [entry_name(field, item) for item in standing]
            at = len(order) if present is None else order.index(partners[name])
            if present is not None:
                self._do(changes.RemoveEntry(target.id, field, at))
            if entry is not None:
                self._do(changes.InsertEntry(target.id, field, at, renamed_entry(entry, partners)))

    def _drop_unread(self, before: Scope) -> None:
        """Take away stored tensors that the second model does not have, unless something here reads them."""
        for vid in before.names.values():
            target = self._graph.values.get(self._matching.values.get(vid, 0))
            if self._a.values[vid].initializer is None or vid in self._pairs.values or target is None:
                continue
            if target.initializer is not None and not target.uses and not target.formal_outputs:
                sparse = isinstance(target.initializer, onnx.SparseTensorProto)
                self._do(changes.SetInitializer(target.scope, target.name, None, sparse=sparse))


def _listed(scope: Scope, kind: Any) -> list[int]:
    return list(scope.inputs if kind == "input" else scope.outputs)


def _by_name(field: EntryField, entries: Iterable[Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Entries under other names, but for those of values without one."""
    named = ((entry, entry_name(field, entry)) for entry in entries)
    return {names[name]: renamed_entry(entry, names) for entry, name in named if name in names}


def _called(message: Any, name: str) -> Any:
    """A copy of a tensor or declaration under another name."""
    copy = type(message)()
    copy.CopyFrom(message)
    (copy.values if isinstance(copy, onnx.SparseTensorProto) else copy).name = name
    return copy
