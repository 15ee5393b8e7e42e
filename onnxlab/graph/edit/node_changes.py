"""Primitive changes of nodes: in and out, their place, what they read and make, their attributes."""

from collections.abc import Iterable
from dataclasses import dataclass

import onnx

from onnxlab.graph.index.records import DEFAULT_DOMAINS, GRAPH_KINDS, NodeImage, ScopeImage
from onnxlab.graph.protos.long_lists import Items, overwrite
from onnxlab.graph.protos.name_bytes import set_strings
from onnxlab.graph.protos.renaming import graphs_of
from onnxlab.graph.state.graph_state import GraphState


@dataclass(frozen=True, slots=True)
class InsertNode:
    """Put a node at a position of a scope. `image` carries the ids it had if it stood in the model before."""

    scope: int
    position: int
    proto: onnx.NodeProto
    image: NodeImage | None = None

    def apply(self, graph: GraphState) -> "RemoveNode":
        """Make the change and return its inverse."""
        scope = graph.scopes[self.scope]
        if not 0 <= self.position <= len(scope.node_ids):
            raise IndexError(f"no position {self.position} for a node: there are {len(scope.node_ids)}")
        ident = self.image.id if self.image else graph.index.new_id()
        proto = graph.filing.insert(scope, self.position, self.proto, ident)
        node = graph.index.add_node(scope, self.position, proto, self.image, ident)
        graph.touch.whole(node)
        return RemoveNode(node.id)


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """Take a node out, with everything in its bodies."""

    node: int

    def apply(self, graph: GraphState) -> InsertNode:
        """Make the change and return its inverse."""
        node = graph.nodes[self.node]
        scope = graph.scopes[node.scope]
        position = scope.position(node)
        graph.touch.removal(node)
        image = graph.index.remove_node(node)
        graph.filing.remove(scope, position, node)
        return InsertNode(scope.id, position, image.proto, image)


@dataclass(frozen=True, slots=True)
class MoveNode:
    """Take a node to another position of its scope's file order (counted with the node taken out)."""

    node: int
    position: int

    def apply(self, graph: GraphState) -> "MoveNode":
        """Make the change and return its inverse."""
        node = graph.nodes[self.node]
        scope = graph.scopes[node.scope]
        old = scope.position(node)
        if not 0 <= self.position < len(scope.node_ids):
            raise IndexError(f"no position {self.position} for a node: there are {len(scope.node_ids)}")
        graph.filing.move(scope, old, self.position, node)
        graph.index.move_node(node, self.position)
        graph.touch.scopes(scope.id)
        graph.touch.moved(node)
        return MoveNode(node.id, old)


@dataclass(frozen=True, slots=True)
class SetInputs:
    """Let a node read the values of these names ("" leaves an optional input out)."""

    node: int
    names: tuple[str, ...]
    ids: dict[str, int] | None = None

    def apply(self, graph: GraphState) -> "SetInputs":
        """Make the change and return its inverse."""
        node = graph.nodes[self.node]
        before, names, touch = node.inputs, tuple(node.proto.input[:]), graph.touch
        set_strings(node.proto, "input", self.names)  # first, since it refuses what is no name
        (touch.wires if len(self.names) == len(before) else touch.content)(node)
        graph.index.set_inputs(node, self.names, self.ids)
        touch.read(before, node.inputs)
        return SetInputs(self.node, names, _ids_of_gone(graph, before) if graph.index.gone else None)


@dataclass(frozen=True, slots=True)
class SetOutputs:
    """Let a node make values of these names. A new name is a new value: to keep its identity use `RenameValue`."""

    node: int
    names: tuple[str, ...]
    ids: dict[str, int] | None = None

    def apply(self, graph: GraphState) -> "SetOutputs":
        """Make the change and return its inverse."""
        node = graph.nodes[self.node]
        names, ids = tuple(node.proto.output[:]), {graph.values[vid].name: vid for vid in node.outputs if vid}
        set_strings(node.proto, "output", self.names)  # first, since it refuses what is no name
        touch = graph.touch
        touch.content(node)
        touch.values(node.outputs)
        touch.users(node.outputs)
        graph.index.set_outputs(node, self.names, self.ids)
        touch.values(node.outputs)
        touch.users(node.outputs)
        return SetOutputs(node.id, names, ids)


def _ids_of_gone(graph: GraphState, values: Iterable[int]) -> dict[str, int] | None:
    """Ids by name of those values that went with their last reader; what is still there is found by its name."""
    gone = [graph.index.gone[vid] for vid in values if vid and vid not in graph.values]
    return {value.name: value.id for value in gone} if gone else None


@dataclass(frozen=True, slots=True)
class SetAttribute:
    """Set an attribute of a node, or take it away.

    Without a `position`, the first attribute of the name is replaced in its place or removed, and a new attribute goes
    to the end. With a `position`, an attribute is inserted or removed there: files can have several of one name.

    A long list of an operator outside of ONNX's own domain is overwritten in place: a LongList decoded before keeps the
    earlier items.
    """

    node: int
    name: str
    proto: onnx.AttributeProto | Items | None
    position: int = -1
    images: tuple[ScopeImage, ...] | None = None

    def keeps_wires(self, graph: GraphState) -> bool:
        """Whether there is a body neither in what goes nor in what comes, so that what each node reads stays."""
        node, proto = graph.nodes.get(self.node), self.proto
        is_body = isinstance(proto, onnx.AttributeProto) and proto.type in GRAPH_KINDS
        return node is not None and not node.bodies and not is_body

    def apply(self, graph: GraphState) -> "SetAttribute":
        """Make the change and return its inverse."""
        if not isinstance(self.proto, onnx.AttributeProto | Items | None):
            raise TypeError(f"an attribute is an AttributeProto, got {type(self.proto).__name__}")
        node = graph.nodes[self.node]
        attributes = node.proto.attribute
        graph.touch.content(node)
        if node.bodies:
            graph.touch.bodies(node, self.name)
        names = [attribute.name for attribute in attributes]
        standing = names.index(self.name) if self.name in names else -1
        if self.proto is None:
            position = standing if self.position < 0 else self.position
            if position < 0:
                return self
            old, images = self._remove(graph, position)
            return SetAttribute(node.id, self.name, old, position, images)
        if standing < 0 or self.position >= 0:
            position = len(attributes) if self.position < 0 else self.position
            self._insert(graph, position)
            return SetAttribute(node.id, self.name, None, position)
        is_own = node.proto.domain in DEFAULT_DOMAINS
        if not is_own and (held := overwrite(attributes[standing], self.proto)) is not None:
            return SetAttribute(node.id, self.name, held)
        old, images = self._remove(graph, standing)
        self._insert(graph, standing)
        return SetAttribute(node.id, self.name, old, -1, images)

    def _remove(self, graph: GraphState, position: int) -> tuple[onnx.AttributeProto, tuple[ScopeImage, ...] | None]:
        node = graph.nodes[self.node]
        old = node.proto.attribute[position]
        images = None
        if old.type in GRAPH_KINDS:
            images = tuple(graph.index.remove_bodies(node, self.name, *_bodies(node.proto, position)))
        del node.proto.attribute[position]
        return old, images

    def _insert(self, graph: GraphState, position: int) -> None:
        assert self.proto is not None
        proto = self.proto.message() if isinstance(self.proto, Items) else self.proto
        node = graph.nodes[self.node]
        node.proto.attribute.insert(position, onnx.AttributeProto())  # empty: `insert` serializes and parses
        attribute = node.proto.attribute[position]
        attribute.CopyFrom(proto)
        if proto.type in GRAPH_KINDS:
            start, _ = _bodies(node.proto, position)
            graph.index.add_bodies(node, attribute, list(self.images or ()), start)
            graph.touch.bodies(node, self.name)


def _bodies(node: onnx.NodeProto, position: int) -> tuple[int, int]:
    """(first, count) of an attribute's graphs among those of all attributes of its name."""
    counts = [
        len(graphs_of(attribute))
        for attribute in node.attribute[: position + 1]
        if attribute.name == node.attribute[position].name
    ]
    return sum(counts[:-1]), counts[-1]
