"""Primitive changes of graphs and functions: their inputs and outputs, initializers and other entries."""

from dataclasses import dataclass
from typing import Any, Literal

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.index.named_entries import EntryField, entry_name
from onnxlab.graph.index.records import Scope, ScopeImage
from onnxlab.graph.protos import glow_dialect
from onnxlab.graph.protos.name_bytes import set_strings
from onnxlab.graph.protos.repeated_fields import insert_message
from onnxlab.graph.state.change import Change
from onnxlab.graph.state.graph_state import GraphState

FormalKind = Literal["input", "output"]


@dataclass(frozen=True, slots=True)
class InsertFormal:
    """Add an input or output to a graph (a ValueInfoProto) or function (a name)."""

    scope: int
    kind: FormalKind
    position: int
    info: Any
    ids: dict[str, int] | None = None

    def apply(self, graph: GraphState) -> "RemoveFormal":
        """Make the change and return its inverse."""
        scope = graph.scopes[self.scope]
        infos = getattr(scope.proto, self.kind)
        if scope.is_function:
            set_strings(scope.proto, self.kind, [*infos[: self.position], self.info, *infos[self.position :]])
        else:
            insert_message(infos, self.position, self.info)
        add = graph.index.add_input if self.kind == "input" else graph.index.add_output
        value = add(scope, self.position, infos[self.position], self.ids)
        graph.touch.formal(scope, value)
        return RemoveFormal(scope.id, self.kind, self.position)


@dataclass(frozen=True, slots=True)
class RemoveFormal:
    """Take an input or output of a graph or function away."""

    scope: int
    kind: FormalKind
    position: int

    def apply(self, graph: GraphState) -> InsertFormal:
        """Make the change and return its inverse."""
        scope = graph.scopes[self.scope]
        infos = getattr(scope.proto, self.kind)
        info = infos[self.position]
        value = graph.values[(scope.inputs if self.kind == "input" else scope.outputs)[self.position]]
        ids = {value.name: value.id}
        graph.touch.formal(scope, value)
        remove = graph.index.remove_input if self.kind == "input" else graph.index.remove_output
        remove(scope, self.position)
        del infos[self.position]
        if value.id in graph.values:
            graph.index.refresh_info(value)
        return InsertFormal(scope.id, self.kind, self.position, info, ids)


@dataclass(frozen=True, slots=True)
class SetFormal:
    """Change the declared type, documentation or metadata of a graph input or output, or of an entry of value_info."""

    scope: int
    kind: Literal["input", "output", "value_info"]
    position: int
    info: onnx.ValueInfoProto

    def apply(self, graph: GraphState) -> Change:
        """Make the change and return its inverse."""
        if self.kind == "value_info":
            return ReplaceEntry(self.scope, "value_info", self.position, self.info).apply(graph)
        scope = graph.scopes[self.scope]
        infos = getattr(scope.proto, self.kind)
        old = infos[self.position]
        if old.name != self.info.name:
            raise EditError(f"SetFormal keeps the name {old.name!r}; use RenameValue to make it {self.info.name!r}")
        insert_message(infos, self.position, self.info)  # first, since it refuses messages of another type
        del infos[self.position + 1]
        value = graph.values[(scope.inputs if self.kind == "input" else scope.outputs)[self.position]]
        graph.index.refresh_info(value)
        graph.touch.formal(scope, value)
        if glow_dialect.is_dialect(graph.header) and old.doc_string != self.info.doc_string:
            graph.touch.users([value.id])  # readers compute by the scale and offset in its doc string
        return SetFormal(scope.id, self.kind, self.position, old)


@dataclass(frozen=True, slots=True)
class SetTypes:
    """Let declarations state other types: those of many values in one change, and nothing else of their messages.

    Args:
        places: positions of inputs, outputs or entries of value_info.
        types: a serialized TypeProto for each place, None for no type.
    """

    scope: int
    kind: Literal["input", "output", "value_info"]
    places: tuple[Any, ...]
    types: tuple[bytes | None, ...]

    def apply(self, graph: GraphState) -> "SetTypes":
        """Make the change and return its inverse."""
        scope, values = graph.scopes[self.scope], graph.values
        messages = getattr(scope.proto, self.kind)
        infos: list[Any] = [messages[at] if isinstance(at, int) else values[scope.names[at]].info for at in self.places]
        for encoded in self.types:
            if encoded is not None:
                onnx.TypeProto.FromString(encoded)  # raises for an invalid type before anything is changed
        old = []
        for info, encoded in zip(infos, self.types, strict=True):
            old.append(info.type.SerializePartialToString() if info.HasField("type") else None)
            info.ClearField("type")
            if encoded is not None:
                info.type.SetInParent()
                info.type.MergeFromString(encoded)
        changed = self._values(scope, infos)
        if self.kind == "input" and not scope.parent:  # everything is inferred from what the model's inputs declare
            for vid in changed:
                graph.touch.formal(scope, values[vid])
        else:
            graph.touch.declared(changed)
        return SetTypes(self.scope, self.kind, self.places, tuple(old))

    def _values(self, scope: Scope, infos: list[Any]) -> list[int]:
        if self.kind == "value_info":
            ids = [scope.names.get(info.name, 0) for info in infos]
        else:
            formals = scope.inputs if self.kind == "input" else scope.outputs
            ids = [formals[at] for at in self.places]
        return [vid for vid in ids if vid]


@dataclass(frozen=True, slots=True)
class InsertEntry:
    """Add an initializer, dense or sparse, an entry of value_info or a quantization annotation to a graph.

    `ids` has the earlier id, by name, of a value that comes back with the entry.
    """

    scope: int
    field: EntryField
    position: int
    proto: Any
    ids: dict[str, int] | None = None

    def apply(self, graph: GraphState) -> "RemoveEntry":
        """Make the change and return its inverse."""
        scope = graph.scopes[self.scope]
        places = scope.places(self.field)
        messages = getattr(scope.proto, self.field)
        places.insert(self.position, insert_message(messages, self.position, self.proto))
        _follow_entry(graph, scope, self.field, entry_name(self.field, self.proto), self.ids)
        return RemoveEntry(scope.id, self.field, self.position)


@dataclass(frozen=True, slots=True)
class RemoveEntry:
    """Take an initializer, an entry of value_info or a quantization annotation away."""

    scope: int
    field: EntryField
    position: int

    def apply(self, graph: GraphState) -> InsertEntry:
        """Make the change and return its inverse."""
        scope = graph.scopes[self.scope]
        messages = getattr(scope.proto, self.field)
        old = messages[self.position]
        scope.places(self.field).remove(self.position, old)
        del messages[self.position]
        name = entry_name(self.field, old)
        vid = scope.names.get(name, 0)
        _follow_entry(graph, scope, self.field, name)
        return InsertEntry(scope.id, self.field, self.position, old, {name: vid} if vid else None)


@dataclass(frozen=True, slots=True)
class ReplaceEntry:
    """Put another message in the place of an entry; only an annotation may go by another name afterwards."""

    scope: int
    field: EntryField
    position: int
    proto: Any

    def apply(self, graph: GraphState) -> "ReplaceEntry":
        """Make the change and return its inverse."""
        scope = graph.scopes[self.scope]
        messages = getattr(scope.proto, self.field)
        old = messages[self.position]
        name, new = entry_name(self.field, old), entry_name(self.field, self.proto)
        if name != new and self.field != "quantization_annotation":
            raise EditError(f"an entry of {self.field} keeps the name {name!r}; use RenameValue to make it {new!r}")
        places = scope.places(self.field)
        entry = insert_message(messages, self.position, self.proto)  # first, since it refuses messages of another type
        del messages[self.position + 1]
        if self.field == "quantization_annotation":  # the annotation may mention other names now
            places.remove(self.position, old)
            places.insert(self.position, entry)
        value = graph.values.get(scope.names.get(name, 0))
        if self.field == "initializer" and value is not None and value.initializer is old:
            value.initializer = entry
            graph.touch.data(scope, value)
        else:
            _follow_entry(graph, scope, self.field, name)
        return ReplaceEntry(scope.id, self.field, self.position, old)


def _follow_entry(
    graph: GraphState, scope: Scope, field: EntryField, name: str, ids: dict[str, int] | None = None
) -> None:
    """Let the value of a name follow an entry that came, went or was replaced."""
    graph.touch.scopes(scope.id)
    before = graph.values.get(scope.names.get(name, 0))
    if field in ("initializer", "sparse_initializer"):
        value = graph.index.refresh_initializer(scope, name, (ids or {}).get(name, 0))
        for record in (before, value):
            if record is not None:
                graph.touch.initializer(scope, record)
    elif field == "value_info":
        value = before
    else:
        return
    if value is not None and value.id in graph.values:
        graph.index.refresh_info(value)
        if field == "value_info":
            graph.touch.declared([value.id])
        else:
            graph.touch.formal(scope, value)


@dataclass(frozen=True, slots=True)
class SetInitializer:
    """Add, replace (same name) or remove (`tensor` None) an initializer; the last one where a file has several.

    The name of a SparseTensorProto is that of its values. A new initializer goes to `position`, by default the end.
    """

    scope: int
    name: str
    tensor: Any
    position: int = -1
    sparse: bool = False
    ids: dict[str, int] | None = None

    def apply(self, graph: GraphState) -> Change:
        """Make the change and return its inverse."""
        scope = graph.scopes[self.scope]
        field: EntryField = "sparse_initializer" if self.sparse else "initializer"
        positions = scope.places(field).positions(self.name)
        if self.tensor is None:
            if not positions:
                raise EditError(f"{self.name!r} is no {'sparse ' * self.sparse}initializer of this graph")
            return RemoveEntry(scope.id, field, positions[-1]).apply(graph)
        if positions:
            return ReplaceEntry(scope.id, field, positions[-1], self.tensor).apply(graph)
        position = self.position if self.position >= 0 else len(getattr(scope.proto, field))
        return InsertEntry(scope.id, field, position, self.tensor, self.ids).apply(graph)


@dataclass(frozen=True, slots=True)
class InsertFunction:
    """Add a model-local function."""

    position: int
    proto: onnx.FunctionProto
    image: ScopeImage | None = None

    def apply(self, graph: GraphState) -> "RemoveFunction":
        """Make the change and return its inverse."""
        proto = insert_message(graph.header.functions, self.position, self.proto)
        scope = graph.index.add_function(self.position, proto, self.image)
        graph.touch.function(scope)
        return RemoveFunction(scope.id)


@dataclass(frozen=True, slots=True)
class RemoveFunction:
    """Take a model-local function away."""

    scope: int

    def apply(self, graph: GraphState) -> InsertFunction:
        """Make the change and return its inverse."""
        scope = graph.scopes[self.scope]
        position = graph.index.function_ids.index(scope.id)
        graph.touch.function(scope, removed=True)
        image = graph.index.remove_function(scope)
        proto = graph.header.functions[position]
        del graph.header.functions[position]
        return InsertFunction(position, proto, image)
