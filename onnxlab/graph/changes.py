"""The primitive changes: everything that can happen to a model is a list of these.

Each changes the protos and the index together and returns its exact inverse, so that undoing gives the same bytes and
the same ids. They check nothing but what they need; `transaction.py` judges the result of a whole edit.

A message that is replaced is deleted and inserted anew, never overwritten: whoever still holds the old one (a snapshot
of a run, the inverse) keeps its content.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import onnx

from onnxlab.graph.index import GRAPH_KINDS, NodeImage, ScopeImage
from onnxlab.graph.mentions import Mention, mentions_by_name, rename_mentions

if TYPE_CHECKING:
    from onnxlab.graph.modelgraph import ModelGraph


class Change(Protocol):
    """One primitive change."""

    def apply(self, graph: "ModelGraph") -> "Change":
        """Make the change and return its inverse."""
        ...


@dataclass(frozen=True, slots=True)
class InsertNode:
    """Put a node at a position of a scope. `image` carries the ids it had if it stood in the model before."""

    scope: int
    position: int
    proto: onnx.NodeProto
    image: NodeImage | None = None

    def apply(self, graph: "ModelGraph") -> "RemoveNode":
        scope = graph.scopes[self.scope]
        scope.proto.node.insert(self.position, self.proto)
        node = graph.index.add_node(scope, self.position, scope.proto.node[self.position], self.image)
        graph.touch.node(node.id)
        graph.touch.values(node.outputs)
        graph.touch.values(node.inputs)
        graph.touch.tree(node)
        return RemoveNode(node.id)


@dataclass(frozen=True, slots=True)
class RemoveNode:
    node: int

    def apply(self, graph: "ModelGraph") -> InsertNode:
        node = graph.nodes[self.node]
        scope = graph.scopes[node.scope]
        position = scope.position(node)
        graph.touch.removal(node)
        image = graph.index.remove_node(node)
        del scope.proto.node[position]
        return InsertNode(scope.id, position, image.proto, image)


@dataclass(frozen=True, slots=True)
class MoveNode:
    """Take a node to another position of its scope's file order (counted with the node taken out)."""

    node: int
    position: int

    def apply(self, graph: "ModelGraph") -> "MoveNode":
        node = graph.nodes[self.node]
        scope = graph.scopes[node.scope]
        old = scope.position(node)
        nodes = scope.proto.node
        proto = nodes[old]
        del nodes[old]
        nodes.insert(self.position, proto)
        node.proto = nodes[self.position]
        graph.index.move_node(node, self.position)
        graph.refresh_bodies(node)
        graph.touch.scopes(scope.id)
        graph.touch.moved(node.id)
        return MoveNode(node.id, old)


@dataclass(frozen=True, slots=True)
class SetInputs:
    """Let a node read the values of these names ("" leaves an optional input out)."""

    node: int
    names: tuple[str, ...]
    ids: dict[str, int] | None = None

    def apply(self, graph: "ModelGraph") -> "SetInputs":
        node = graph.nodes[self.node]
        inverse = SetInputs(node.id, tuple(node.proto.input), graph.ids_by_name(node.inputs))
        graph.touch.node(node.id)
        graph.touch.values(node.inputs)
        graph.index.set_inputs(node, list(self.names), self.ids)
        node.proto.input[:] = self.names
        graph.touch.values(node.inputs)
        return inverse


@dataclass(frozen=True, slots=True)
class SetOutputs:
    """Let a node make values of these names. A new name is a new value: to keep its identity use `RenameValue`."""

    node: int
    names: tuple[str, ...]
    ids: dict[str, int] | None = None

    def apply(self, graph: "ModelGraph") -> "SetOutputs":
        node = graph.nodes[self.node]
        inverse = SetOutputs(node.id, tuple(node.proto.output), graph.ids_by_name(node.outputs))
        graph.touch.node(node.id)
        graph.touch.values(node.outputs)
        graph.touch.users(node.outputs)
        graph.index.set_outputs(node, list(self.names), self.ids)
        node.proto.output[:] = self.names
        graph.touch.values(node.outputs)
        graph.touch.users(node.outputs)
        return inverse


@dataclass(frozen=True, slots=True)
class SetAttribute:
    """Set an attribute of a node, or take it away.

    `position` is where it stands in the proto, -1 for where it is already, or else the end.
    """

    node: int
    name: str
    proto: onnx.AttributeProto | None
    position: int = -1
    images: tuple[ScopeImage, ...] | None = None

    def apply(self, graph: "ModelGraph") -> "SetAttribute":
        node = graph.nodes[self.node]
        attributes = node.proto.attribute
        old_position = next((index for index, attribute in enumerate(attributes) if attribute.name == self.name), -1)
        graph.touch.node(node.id)
        graph.touch.bodies(node, self.name)
        images = tuple(graph.index.remove_bodies(node, self.name))
        old = None
        if old_position >= 0:
            old = attributes[old_position]
            del attributes[old_position]
        if self.proto is not None:
            position = self.position if self.position >= 0 else old_position if old_position >= 0 else len(attributes)
            attributes.insert(position, self.proto)
            if self.proto.type in GRAPH_KINDS:
                graph.index.add_bodies(node, attributes[position], list(self.images) if self.images else None)
                graph.touch.bodies(node, self.name)
        return SetAttribute(node.id, self.name, old, old_position, images)


Target = tuple[Literal["model", "scope", "node"], int]
"""Whose field: ("model", 0), ("scope", scope id) or ("node", node id)."""


@dataclass(frozen=True, slots=True)
class SetField:
    """Set a plain field: a scalar (None for absent), or a repeated message field (a tuple of messages)."""

    target: Target
    field: str
    value: Any

    def apply(self, graph: "ModelGraph") -> "SetField":
        proto = graph.target(self.target)
        inverse = SetField(self.target, self.field, field_value(proto, self.field))
        if isinstance(self.value, tuple):
            repeated = getattr(proto, self.field)
            del repeated[:]
            repeated.extend(self.value)
        elif self.value is None:
            proto.ClearField(self.field)
        else:
            setattr(proto, self.field, self.value)
        graph.touch.field(self.target, self.field)
        return inverse


def field_value(proto: Any, field: str) -> Any:
    """The value that `SetField` would need to restore a field: None where it is absent, a tuple for repeated fields."""
    descriptor = proto.DESCRIPTOR.fields_by_name[field]
    if descriptor.is_repeated:
        return tuple(getattr(proto, field))
    return getattr(proto, field) if proto.HasField(field) else None


FormalKind = Literal["input", "output"]


@dataclass(frozen=True, slots=True)
class InsertFormal:
    """Add an input or output to a graph (a ValueInfoProto) or function (a name)."""

    scope: int
    kind: FormalKind
    position: int
    info: Any
    ids: dict[str, int] | None = None

    def apply(self, graph: "ModelGraph") -> "RemoveFormal":
        scope = graph.scopes[self.scope]
        infos = getattr(scope.proto, self.kind)
        infos.insert(self.position, self.info)
        add = graph.index.add_input if self.kind == "input" else graph.index.add_output
        value = add(scope, self.position, infos[self.position], self.ids)
        graph.touch.formal(scope, value)
        return RemoveFormal(scope.id, self.kind, self.position)


@dataclass(frozen=True, slots=True)
class RemoveFormal:
    scope: int
    kind: FormalKind
    position: int

    def apply(self, graph: "ModelGraph") -> InsertFormal:
        scope = graph.scopes[self.scope]
        infos = getattr(scope.proto, self.kind)
        info = infos[self.position]
        value = graph.values[(scope.inputs if self.kind == "input" else scope.outputs)[self.position]]
        ids = {value.name: value.id}
        graph.touch.formal(scope, value)
        remove = graph.index.remove_input if self.kind == "input" else graph.index.remove_output
        remove(scope, self.position)
        del infos[self.position]
        graph.refresh_info(scope, value.name)
        return InsertFormal(scope.id, self.kind, self.position, info, ids)


@dataclass(frozen=True, slots=True)
class SetFormal:
    """Change the declared type, documentation or metadata of a graph input or output, or of an entry of value_info."""

    scope: int
    kind: Literal["input", "output", "value_info"]
    position: int
    info: onnx.ValueInfoProto

    def apply(self, graph: "ModelGraph") -> "SetFormal":
        scope = graph.scopes[self.scope]
        infos = getattr(scope.proto, self.kind)
        old = infos[self.position]
        if old.name != self.info.name:
            raise ValueError(f"SetFormal keeps the name {old.name!r}; use RenameValue to make it {self.info.name!r}")
        del infos[self.position]
        infos.insert(self.position, self.info)
        value = graph.refresh_info(scope, old.name)
        if value is not None:
            graph.touch.formal(scope, value)
        return SetFormal(scope.id, self.kind, self.position, old)


@dataclass(frozen=True, slots=True)
class SetInitializer:
    """Add, replace (same name) or remove (`tensor` None) an initializer.

    A SparseTensorProto goes by the name of its values.
    """

    scope: int
    name: str
    tensor: Any
    position: int = -1
    sparse: bool = False
    ids: dict[str, int] | None = None

    def apply(self, graph: "ModelGraph") -> "SetInitializer":
        scope = graph.scopes[self.scope]
        tensors = scope.proto.sparse_initializer if self.sparse else scope.proto.initializer
        old_position = graph.initializer_position(scope, self.name, self.sparse)
        old = None
        if old_position >= 0:
            old = tensors[old_position]
            del tensors[old_position]
        live = None
        if self.tensor is not None:
            position = self.position if self.position >= 0 else old_position if old_position >= 0 else len(tensors)
            tensors.insert(position, self.tensor)
            live = tensors[position]
        existing = scope.names.get(self.name, 0)
        ids = {self.name: existing} if existing else None
        value = graph.index.set_initializer(scope, self.name, live, self.ids)
        graph.touch.initializer(scope, value)
        return SetInitializer(scope.id, self.name, old, old_position, self.sparse, ids)


@dataclass(frozen=True, slots=True)
class RenameValue:
    """Give a value another name, everywhere it is mentioned; it stays the same value."""

    value: int
    name: str
    mentions: tuple[Mention, ...] | None = None

    def apply(self, graph: "ModelGraph") -> "RenameValue":
        value = graph.values[self.value]
        old = value.name
        mentions = mentions_by_name(graph, value) if self.mentions is None else self.mentions
        rename_mentions(graph, value, self.name, mentions)
        names = graph.scopes[value.scope].names
        del names[old]
        names[self.name] = value.id
        value.name = self.name
        graph.refresh_info(graph.scopes[value.scope], self.name)
        graph.touch.values([value.id])
        graph.touch.users([value.id])
        graph.touch.renamed(value)
        return RenameValue(value.id, old, mentions)


@dataclass(frozen=True, slots=True)
class InsertFunction:
    """Add a model-local function."""

    position: int
    proto: onnx.FunctionProto
    image: ScopeImage | None = None

    def apply(self, graph: "ModelGraph") -> "RemoveFunction":
        graph.proto.functions.insert(self.position, self.proto)
        scope = graph.index.add_function(self.position, graph.proto.functions[self.position], self.image)
        graph.touch.function(scope)
        return RemoveFunction(scope.id)


@dataclass(frozen=True, slots=True)
class RemoveFunction:
    scope: int

    def apply(self, graph: "ModelGraph") -> InsertFunction:
        scope = graph.scopes[self.scope]
        position = graph.index.function_ids.index(scope.id)
        graph.touch.function(scope, removed=True)
        image = graph.index.remove_function(scope)
        proto = graph.proto.functions[position]
        del graph.proto.functions[position]
        return InsertFunction(position, proto, image)
