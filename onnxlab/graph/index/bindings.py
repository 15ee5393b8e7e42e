"""Name resolution: values are found by name from their scope outwards, and readers follow their definition."""

from collections.abc import Iterator
from typing import Any

import onnx

from onnxlab.graph.index.edges import Edges
from onnxlab.graph.index.records import Scope, ValueRecord

Ids = dict[str, int]
"""Ids that values had before and get again, by name."""


class Bindings(Edges):
    """Names and definitions: what comes of readers when a name is defined nearer to them, or no longer."""

    value_type: type[ValueRecord] = ValueRecord

    def lookup(self, scope: Scope | None, name: str) -> int:
        """Id of the value that `name` means in a scope, 0 if none."""
        while scope is not None:
            if vid := scope.names.get(name):
                return vid
            scope = self.scopes.get(scope.parent)
        return 0

    def declare(self, scope: Scope, name: str, known_id: int = 0) -> ValueRecord:
        """The record of a name that is about to be defined in `scope`; readers inside it follow."""
        if vid := scope.names.get(name):
            self.undefined.discard(vid)
            return self.values[vid]
        outer = self.lookup(self.parent_of(scope), name) if scope.parent else 0
        if outer and (outer == known_id or not known_id) and self._only_read_inside(outer, scope):
            self.undefined.discard(outer)
            return self._rehome(self.values[outer], scope)
        value = self._new_value(scope, name, known_id)
        if outer:
            self._move_readers(self.values[outer], value)
            self.settle(self.values[outer])
        return value

    def value_for_reading(self, scope: Scope, name: str, ids: Ids | None) -> ValueRecord:
        """The record that `name` means in a scope; that of an undefined value where it means nothing."""
        if vid := scope.names.get(name) or self.lookup(self.parent_of(scope), name):
            return self.values[vid]
        value = self._new_value(self.root_of(scope), name, ids.get(name, 0) if ids else 0)
        self.undefined.add(value.id)
        return value

    def _new_value(self, scope: Scope, name: str, known_id: int) -> ValueRecord:
        values = self.values
        vid = known_id if known_id and known_id not in values else self.new_id()
        value = values[vid] = self.value_type(vid, name, scope.id, [], self._unread())
        scope.names[name] = vid
        return value

    def _unread(self) -> Any:
        """The uses of a value without any yet."""
        return {}

    def _only_read_inside(self, value: int, scope: Scope) -> bool:
        """Whether an undefined value is read in this scope alone, so that its record may move there."""
        record = self.values[value]
        return value in self.undefined and all(self.is_inside(where, scope.id) for where in self._reading(record))

    def _reading(self, value: ValueRecord) -> Iterator[int]:
        """Ids of the scopes that a value is read in; may repeat."""
        for node, _ in value.uses:
            yield self.nodes[node].scope
        for scope, _ in value.formal_outputs:
            yield scope

    def _rehome(self, value: ValueRecord, scope: Scope) -> ValueRecord:
        del self.scopes[value.scope].names[value.name]
        value.scope = scope.id
        scope.names[value.name] = value.id
        return value

    def _move_readers(self, source: ValueRecord, target: ValueRecord) -> None:
        """Let every reader of `source` inside target's scope read `target`."""
        for node_id, slot in [use for use in source.uses if self.is_inside(self.nodes[use[0]].scope, target.scope)]:
            self._disconnect(source, node_id, slot)
            self.nodes[node_id].inputs[slot] = target.id
            self._connect(target, node_id, slot)
        returning: dict[int, list[int]] = {}
        for scope_id, position in source.formal_outputs:
            if self.is_inside(scope_id, target.scope):
                returning.setdefault(scope_id, []).append(position)
        for scope_id, positions in returning.items():
            for position in positions:
                self.scopes[scope_id].outputs[position] = target.id
            self._returned(source, scope_id, ())
            self._returned(target, scope_id, tuple(positions))

    def settle(self, value: ValueRecord) -> None:
        """Decide what becomes of a value that lost a definition or a reader."""
        if value.producers or value.is_input or value.initializer is not None:  # the value is defined
            return
        scope = self.scopes[value.scope]
        if not value.uses and not value.formal_outputs:
            self.undefined.discard(value.id)
            del scope.names[value.name]
            self.gone[value.id] = self.values.pop(value.id)
            return
        outer = self.lookup(self.parent_of(scope), value.name)
        if outer:
            self._move_readers_out(value, self.values[outer])
            self.settle(value)
            return
        self.undefined.add(value.id)
        value.info = None
        if scope.parent:
            self._rehome(value, self.root_of(scope))

    def _move_readers_out(self, value: ValueRecord, outer: ValueRecord) -> None:
        """Let all readers of a value that is defined no longer read what its name means outside."""
        for node_id, slot in list(value.uses):
            self._disconnect(value, node_id, slot)
            self.nodes[node_id].inputs[slot] = outer.id
            self._connect(outer, node_id, slot)
        for scope_id in dict.fromkeys(scope for scope, _ in value.formal_outputs):
            outputs = self.scopes[scope_id].outputs
            positions = tuple(position for position, vid in enumerate(outputs) if vid == value.id)
            for position in positions:
                outputs[position] = outer.id
            self._returned(value, scope_id, ())
            self._returned(outer, scope_id, positions)

    # -- declarations -----------------------------------------------------------------------------------------------

    def refresh_info(self, value: ValueRecord) -> None:
        """Find the declaration of a value again after one was added, removed or replaced, or the value renamed."""
        value.info = self._declaration(value) if value.producers or value.defined else None

    def _declaration(self, value: ValueRecord) -> onnx.ValueInfoProto | None:
        """The declaration of a value's type: its graph input, else its graph output, else the first value_info."""
        scope = self.scopes[value.scope]
        info: Any = None
        if scope.kind != "function" and (value.is_input or value.formal_outputs):
            if value.is_input:
                return scope.proto.input[scope.inputs.index(value.id)]  # type: ignore[no-any-return]
            if returned := [position for scope_id, position in value.formal_outputs if scope_id == scope.id]:
                return scope.proto.output[min(returned)]  # type: ignore[no-any-return]
        if len(scope.proto.value_info):
            positions = scope.places("value_info").positions(value.name)
            info = scope.proto.value_info[positions[0]] if positions else None
        return info  # type: ignore[no-any-return]

    def refresh_initializer(self, scope: Scope, name: str, known_id: int = 0) -> ValueRecord | None:
        """Find the tensor of a name again after one came, went or was replaced; the last of several counts.

        Returns the value, None where no value has this name.
        """
        tensor: Any = None
        for field in ("sparse_initializer", "initializer"):
            positions = scope.places(field).positions(name)
            if positions:
                tensor = getattr(scope.proto, field)[positions[-1]]
                break
        if tensor is None and name not in scope.names:
            return None
        value = self.declare(scope, name, known_id)
        value.initializer = tensor
        self.settle(value)
        return value
