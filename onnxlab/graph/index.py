"""The index over the protos: who makes, who reads, what a name means where.

It is built once from the messages and kept in step by the primitives of `changes.py`; it never changes a message.
The order of `uses` and the ids of nameless things are the only state that a rebuild would not reproduce.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import onnx

from onnxlab.graph.records import GAP, NodeRecord, Scope, ScopeKind, ValueRecord
from onnxlab.graph.topology import topological_order

FunctionKey = tuple[str, str, str]
"""(domain, name, overload), with "" for ai.onnx."""


@dataclass(slots=True)
class NodeImage:
    """A node taken out of the model, with the ids that it and everything in it had."""

    proto: onnx.NodeProto
    id: int
    values: dict[str, int]
    bodies: dict[str, list["ScopeImage"]] = field(default_factory=dict)


@dataclass(slots=True)
class ScopeImage:
    """Ids of a scope taken out of the model: of itself, its values by name and its nodes in file order."""

    id: int
    values: dict[str, int]
    nodes: list[NodeImage]


class Index:
    """Nodes, values and scopes by id.

    Attributes:
        main: the scope of the model's graph.
        functions: scope ids of the model-local functions by what calls them (the first of equal ones).
        function_ids: scope ids of all of them in file order.
        undefined: ids of values that are read but that nobody makes.
    """

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.nodes: dict[int, NodeRecord] = {}
        self.values: dict[int, ValueRecord] = {}
        self.scopes: dict[int, Scope] = {}
        self.functions: dict[FunctionKey, int] = {}
        self.function_ids: list[int] = []
        self.undefined: set[int] = set()
        self.watchers: list[Any] = []
        self._last_id = 0
        self._building = 0
        self.main = self.add_scope("graph", proto.graph)
        for position, function in enumerate(proto.functions):
            self.add_function(position, function)
        for training in proto.training_info:
            for name in ("initialization", "algorithm"):
                if training.HasField(name):
                    self.add_scope("training", getattr(training, name), attribute=name, parent=self.main.id)

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    # -- scopes -----------------------------------------------------------------------------------------------------

    def add_function(self, position: int, proto: onnx.FunctionProto, image: ScopeImage | None = None) -> Scope:
        scope = self.add_scope("function", proto, image=image)
        self.function_ids.insert(position, scope.id)
        self._name_functions()
        return scope

    def remove_function(self, scope: Scope) -> ScopeImage:
        image = self.remove_scope(scope)
        self.function_ids.remove(scope.id)
        self._name_functions()
        return image

    def _name_functions(self) -> None:
        self.functions.clear()
        for scope in self.function_ids:
            self.functions.setdefault(function_key(self.scopes[scope].proto), scope)

    def add_scope(
        self, kind: ScopeKind, proto: Any, owner: int = 0, attribute: str = "", parent: int = 0,
        image: ScopeImage | None = None,
    ) -> Scope:  # fmt: skip
        """Index a graph or function and all that is in it."""
        scope = Scope(image.id if image else self.new_id(), kind, proto, owner, attribute, parent)
        self.scopes[scope.id] = scope
        self._building += 1
        ids = image.values if image else {}
        for info in proto.input:
            self.add_input(scope, len(scope.inputs), info, ids)
        if not scope.is_function:
            for tensor in proto.initializer:
                self.set_initializer(scope, tensor.name, tensor, ids)
            for sparse in proto.sparse_initializer:
                self.set_initializer(scope, sparse.values.name, sparse, ids)
        records = self._declare_nodes(scope, image, ids)
        for info in proto.value_info:
            if vid := scope.names.get(info.name):
                value = self.values[vid]
                if value.info is None:
                    value.info = info
        for number, node in enumerate(records):
            self._bind_node(scope, node, image.nodes[number] if image else None)
        for position, info in enumerate(proto.output):
            self.add_output(scope, position, info, ids)
        self._building -= 1
        return scope

    def _declare_nodes(self, scope: Scope, image: ScopeImage | None, ids: dict[str, int]) -> list[NodeRecord]:
        """First pass: every node and the names it makes, so that the second can resolve names in any order."""
        records = []
        label = 0
        for number, proto in enumerate(scope.proto.node):
            label += GAP
            node = NodeRecord(image.nodes[number].id if image else self.new_id(), scope.id, proto, label)
            self.nodes[node.id] = node
            scope.labels.append(label)
            scope.node_ids.append(node.id)
            records.append(node)
            self._add_outputs(scope, node, ids)
        return records

    def remove_scope(self, scope: Scope) -> ScopeImage:
        """Take a scope and all that is in it out of the index."""
        nodes = [self.remove_node(self.nodes[node]) for node in reversed(scope.node_ids)]
        nodes.reverse()
        ids = dict(scope.names)
        for position in reversed(range(len(scope.outputs))):
            self.remove_output(scope, position)
        for position in reversed(range(len(scope.inputs))):
            self.remove_input(scope, position)
        for vid in list(scope.names.values()):
            if self.values[vid].initializer is not None:
                self.values[vid].initializer = None
                self.settle(self.values[vid])
        del self.scopes[scope.id]
        return ScopeImage(scope.id, {**_image_values(nodes), **ids}, nodes)

    def parent_of(self, scope: Scope) -> Scope | None:
        return self.scopes.get(scope.parent)

    def root_of(self, scope: Scope) -> Scope:
        while scope.parent:
            scope = self.scopes[scope.parent]
        return scope

    def is_inside(self, scope_id: int, outer: int) -> bool:
        """Whether a scope is `outer` or nested in it."""
        while scope_id and scope_id != outer:
            scope_id = self.scopes[scope_id].parent
        return scope_id == outer

    def owner_in(self, node: NodeRecord, scope_id: int) -> int:
        """Id of the node of `scope_id` that is `node` or holds it in a body; 0 where none does."""
        while node.scope != scope_id:
            owner = self.scopes[node.scope].owner
            if not owner:
                return 0
            node = self.nodes[owner]
        return node.id

    # -- names ------------------------------------------------------------------------------------------------------

    def lookup(self, scope: Scope | None, name: str) -> int:
        """Id of the value that `name` means in a scope, 0 if none."""
        while scope is not None:
            if vid := scope.names.get(name):
                return vid
            scope = self.scopes.get(scope.parent)
        return 0

    def declare(self, scope: Scope, name: str, wanted: int = 0) -> ValueRecord:
        """The record of a name that is about to be defined in `scope`; readers inside it follow."""
        if vid := scope.names.get(name):
            self.undefined.discard(vid)
            value = self.values[vid]
        else:
            value = self._declare_new(scope, name, wanted)
        if value.info is None and not self._building:
            value.info = self.infos(scope).get(name)
        return value

    def _declare_new(self, scope: Scope, name: str, wanted: int) -> ValueRecord:
        outer = self.lookup(self.parent_of(scope), name)
        if outer and (outer == wanted or not wanted) and self._only_read_inside(outer, scope):
            self.undefined.discard(outer)
            return self._rehome(self.values[outer], scope)
        vid = wanted if wanted and wanted not in self.values else self.new_id()
        value = self.values[vid] = ValueRecord(vid, name, scope.id)
        scope.names[name] = vid
        if outer:
            self._move_readers(self.values[outer], value)
            self.settle(self.values[outer])
        return value

    def infos(self, scope: Scope) -> dict[str, onnx.ValueInfoProto]:
        """Declarations by name, the binding ones first: inputs, outputs, then value_info."""
        if scope.infos is None:
            scope.infos = {info.name: info for info in reversed(scope.proto.value_info)}
            if not scope.is_function:
                for formals in (scope.proto.output, scope.proto.input):
                    scope.infos.update((info.name, info) for info in reversed(formals))
        return scope.infos

    def _only_read_inside(self, value: int, scope: Scope) -> bool:
        """Whether an undefined value is read in this scope alone, so that its record may move there."""
        record = self.values[value]
        return value in self.undefined and all(self.is_inside(where, scope.id) for where in self._readers(record))

    def _readers(self, value: ValueRecord) -> Iterator[int]:
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
        for scope_id, position in [out for out in source.formal_outputs if self.is_inside(out[0], target.scope)]:
            del source.formal_outputs[scope_id, position]
            self.scopes[scope_id].outputs[position] = target.id
            target.formal_outputs[scope_id, position] = None

    def settle(self, value: ValueRecord) -> None:
        """Decide what becomes of a value that lost a definition or a reader."""
        if value.defined:
            return
        scope = self.scopes[value.scope]
        if not value.uses and not value.formal_outputs:
            self.undefined.discard(value.id)
            del scope.names[value.name]
            del self.values[value.id]
            return
        outer = self.lookup(self.parent_of(scope), value.name)
        if outer:
            root = self.values[outer]
            for node_id, slot in list(value.uses):
                self._disconnect(value, node_id, slot)
                self.nodes[node_id].inputs[slot] = outer
                self._connect(root, node_id, slot)
            for scope_id, position in value.formal_outputs:
                self.scopes[scope_id].outputs[position] = outer
                root.formal_outputs[scope_id, position] = None
            value.formal_outputs.clear()
            self.settle(value)
            return
        self.undefined.add(value.id)
        value.info = None
        if scope.parent:
            self._rehome(value, self.root_of(scope))

    def _value_for_reading(self, scope: Scope, name: str, ids: dict[str, int]) -> ValueRecord:
        vid = self.lookup(scope, name)
        if vid:
            return self.values[vid]
        root = self.root_of(scope)
        wanted = ids.get(name, 0)
        vid = wanted if wanted and wanted not in self.values else self.new_id()
        self.values[vid] = value = ValueRecord(vid, name, root.id)
        root.names[name] = vid
        self.undefined.add(vid)
        return value

    # -- nodes ------------------------------------------------------------------------------------------------------

    def add_node(
        self, scope: Scope, position: int, proto: onnx.NodeProto, image: NodeImage | None = None
    ) -> NodeRecord:
        """Index a node that now stands at `position` of the scope's proto."""
        node = NodeRecord(image.id if image else self.new_id(), scope.id, proto)
        self.nodes[node.id] = node
        self._place(scope, position, node)
        self._add_outputs(scope, node, image.values if image else {})
        self._bind_node(scope, node, image)
        for watcher in self.watchers:
            watcher.node_added(node)
        return node

    def remove_node(self, node: NodeRecord) -> NodeImage:
        scope = self.scopes[node.scope]
        image = NodeImage(node.proto, node.id, self._names_of(node))
        for name, bodies in node.bodies.items():
            image.bodies[name] = [self.remove_scope(self.scopes[body]) for body in bodies]
        self.set_inputs(node, [])
        self.set_outputs(node, [])
        position = scope.position(node)
        del scope.labels[position], scope.node_ids[position]
        if scope.ranks is not None:
            scope.ranks = None
        del self.nodes[node.id]
        for watcher in self.watchers:
            watcher.node_removed(node)
        return image

    def move_node(self, node: NodeRecord, position: int) -> None:
        scope = self.scopes[node.scope]
        old = scope.position(node)
        del scope.labels[old], scope.node_ids[old]
        self._place(scope, position, node)
        self._refresh_backward(scope, node)

    def set_inputs(self, node: NodeRecord, names: list[str], ids: dict[str, int] | None = None) -> None:
        """Let a node read the values that `names` mean in its scope."""
        scope = self.scopes[node.scope]
        old = [(vid, slot) for slot, vid in enumerate(node.inputs) if vid]
        for vid, slot in old:
            self._disconnect(self.values[vid], node.id, slot)
        node.inputs = [0] * len(names)
        for slot, name in enumerate(names):
            if name:
                value = self._value_for_reading(scope, name, ids or {})
                node.inputs[slot] = value.id
                self._connect(value, node.id, slot)
        for vid, _ in old:
            if vid in self.values:
                self.settle(self.values[vid])

    def set_outputs(self, node: NodeRecord, names: list[str], ids: dict[str, int] | None = None) -> None:
        """Let a node make the values called `names` in its scope."""
        scope = self.scopes[node.scope]
        old = [vid for vid in node.outputs if vid]
        for value in {vid: self.values[vid] for vid in old}.values():
            first = value.producers[0][0] == node.id
            if first:
                self._drop_edges(value)
            value.producers = [made for made in value.producers if made[0] != node.id]
            if first:
                self._add_edges(value)
        node.outputs = []
        for slot, name in enumerate(names):
            node.outputs.append(self._make(scope, node, slot, name, ids or {}) if name else 0)
        for vid in old:
            if vid in self.values:
                self.settle(self.values[vid])
        if scope.backward:
            self._refresh_backward(scope, node)

    def _make(self, scope: Scope, node: NodeRecord, slot: int, name: str, ids: dict[str, int]) -> int:
        value = self.declare(scope, name, ids.get(name, 0))
        value.producers.append((node.id, slot))
        if len(value.producers) == 1 and value.uses:
            self._add_edges(value)
        return value.id

    def _add_outputs(self, scope: Scope, node: NodeRecord, ids: dict[str, int]) -> None:
        outputs = node.outputs
        for slot, name in enumerate(node.proto.output):
            outputs.append(self._make(scope, node, slot, name, ids) if name else 0)

    def _bind_node(self, scope: Scope, node: NodeRecord, image: NodeImage | None) -> None:
        ids = image.values if image else {}
        for slot, name in enumerate(node.proto.input):
            if not name:
                node.inputs.append(0)
                continue
            value = self._value_for_reading(scope, name, ids)
            node.inputs.append(value.id)
            self._connect(value, node.id, slot)
        for attribute in node.proto.attribute:
            if attribute.type in GRAPH_KINDS:
                self.add_bodies(node, attribute, image.bodies.get(attribute.name) if image else None)

    def add_bodies(
        self, node: NodeRecord, attribute: onnx.AttributeProto, images: list[ScopeImage] | None = None
    ) -> None:
        """Index the graphs of a GRAPH or GRAPHS attribute that the node now has."""
        graphs = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else list(attribute.graphs)
        node.bodies.setdefault(attribute.name, []).extend(
            self.add_scope(
                "subgraph", graph, node.id, attribute.name, node.scope, images[number] if images else None
            ).id
            for number, graph in enumerate(graphs)
        )

    def remove_bodies(self, node: NodeRecord, attribute: str) -> list[ScopeImage]:
        """Take the graphs of an attribute out of the index."""
        return [self.remove_scope(self.scopes[body]) for body in node.bodies.pop(attribute, [])]

    def _names_of(self, node: NodeRecord) -> dict[str, int]:
        ids = {self.values[vid].name: vid for vid in node.inputs if vid}
        ids.update((self.values[vid].name, vid) for vid in node.outputs if vid)
        return ids

    # -- formal inputs and outputs, initializers --------------------------------------------------------------------

    def add_input(self, scope: Scope, position: int, info: Any, ids: dict[str, int] | None = None) -> ValueRecord:
        name = info if isinstance(info, str) else info.name
        value = self.declare(scope, name, (ids or {}).get(name, 0))
        value.is_input = True
        if not isinstance(info, str):
            value.info = info
        scope.inputs.insert(position, value.id)
        scope.infos = None
        return value

    def remove_input(self, scope: Scope, position: int) -> ValueRecord:
        value = self.values[scope.inputs.pop(position)]
        scope.infos = None
        if value.id not in scope.inputs:
            value.is_input = False
            value.info = None
            self.settle(value)
        return value

    def add_output(self, scope: Scope, position: int, info: Any, ids: dict[str, int] | None = None) -> ValueRecord:
        name = info if isinstance(info, str) else info.name
        value = self._value_for_reading(scope, name, ids or {})
        self._shift_outputs(scope, position, 1)
        scope.outputs.insert(position, value.id)
        scope.infos = None
        value.formal_outputs[scope.id, position] = None
        if not isinstance(info, str) and value.scope == scope.id and not value.is_input:
            value.info = info
        return value

    def remove_output(self, scope: Scope, position: int) -> ValueRecord:
        value = self.values[scope.outputs.pop(position)]
        scope.infos = None
        del value.formal_outputs[scope.id, position]
        self._shift_outputs(scope, position, -1)
        self.settle(value)
        return value

    def _shift_outputs(self, scope: Scope, position: int, by: int) -> None:
        """Renumber the formal outputs behind `position` before an insertion or after a removal."""
        behind = list(enumerate(scope.outputs))[position:]
        for index, vid in behind:
            del self.values[vid].formal_outputs[scope.id, index if by > 0 else index + 1]
        for index, vid in behind:
            self.values[vid].formal_outputs[scope.id, index + max(by, 0)] = None

    def set_initializer(self, scope: Scope, name: str, tensor: Any, ids: dict[str, int] | None = None) -> ValueRecord:
        """Say that a tensor defines `name`; None takes the definition away."""
        value = self.declare(scope, name, (ids or {}).get(name, 0))
        value.initializer = tensor
        self.settle(value)
        return value

    # -- edges ------------------------------------------------------------------------------------------------------

    def _connect(self, value: ValueRecord, node_id: int, slot: int) -> None:
        value.uses[node_id, slot] = None
        if value.producers:
            self._edge_added(value, value.producers[0], node_id, slot)

    def _disconnect(self, value: ValueRecord, node_id: int, slot: int) -> None:
        del value.uses[node_id, slot]
        if not value.producers:
            return
        maker = value.producers[0][0]
        self._edge_removed(value, value.producers[0], node_id, slot)
        scope = self.scopes[self.nodes[maker].scope]
        if scope.backward:
            pair = (maker, self.owner_in(self.nodes[node_id], scope.id))
            if pair in scope.backward and not self._are_connected(*pair):
                scope.backward.discard(pair)

    def _add_edges(self, value: ValueRecord) -> None:
        if value.producers:
            for node_id, slot in value.uses:
                self._edge_added(value, value.producers[0], node_id, slot)

    def _drop_edges(self, value: ValueRecord) -> None:
        if value.producers:
            for node_id, slot in value.uses:
                self._edge_removed(value, value.producers[0], node_id, slot)

    def _edge_added(self, value: ValueRecord, producer: tuple[int, int], node_id: int, slot: int) -> None:
        maker, reader = self.nodes[producer[0]], self.nodes[node_id]
        consumer = node_id if reader.scope == maker.scope else self.owner_in(reader, maker.scope)
        if consumer and self.nodes[consumer].label <= maker.label:
            scope = self.scopes[maker.scope]
            scope.backward.add((maker.id, consumer))
            scope.ranks = None
        elif self.scopes[maker.scope].backward:
            self.scopes[maker.scope].ranks = None
        for watcher in self.watchers:
            watcher.edge_added(value, producer, node_id, slot)

    def _edge_removed(self, value: ValueRecord, producer: tuple[int, int], node_id: int, slot: int) -> None:
        self.scopes[self.nodes[producer[0]].scope].ranks = None
        for watcher in self.watchers:
            watcher.edge_removed(value, producer, node_id, slot)

    def _are_connected(self, maker: int, consumer: int) -> bool:
        """Whether an edge (or a capture from a body) still runs from one node to another of the same scope."""
        scope = self.nodes[maker].scope
        return any(
            self.owner_in(self.nodes[use], scope) == consumer
            for vid in self.nodes[maker].outputs
            if vid
            for use, _ in self.values[vid].uses
        )

    def consumers(self, node: NodeRecord) -> Iterator[int]:
        """Ids of the nodes of the same scope that read what `node` makes, themselves or in a body; may repeat."""
        for vid in node.outputs:
            if vid:
                for use, _ in self.values[vid].uses:
                    reader = self.nodes[use]
                    consumer = use if reader.scope == node.scope else self.owner_in(reader, node.scope)
                    if consumer:
                        yield consumer

    def producers(self, node: NodeRecord) -> Iterator[int]:
        """Ids of the nodes of the same scope that make what `node` or a body of it reads; may repeat."""
        for vid in [*node.inputs, *self.captures(node)]:
            if vid and (made := self.values[vid].producer):
                maker = self.nodes[made[0]]
                if maker.scope == node.scope:
                    yield maker.id

    def captures(self, node: NodeRecord) -> list[int]:
        """Ids of the values that the bodies of a node read from outside of them; may repeat."""
        found: list[int] = []
        for bodies in node.bodies.values():
            for body in bodies:
                for inner_id in self.scopes[body].node_ids:
                    inner = self.nodes[inner_id]
                    found.extend(
                        vid for vid in [*inner.inputs, *self.captures(inner)]
                        if vid and not self.is_inside(self.values[vid].scope, body)
                    )  # fmt: skip
                found.extend(
                    vid for vid in self.scopes[body].outputs if not self.is_inside(self.values[vid].scope, body)
                )
        return found

    # -- order ------------------------------------------------------------------------------------------------------

    def _place(self, scope: Scope, position: int, node: NodeRecord) -> None:
        """Give a node a label between those of its new neighbours."""
        low = scope.labels[position - 1] if position else 0
        high = scope.labels[position] if position < len(scope.labels) else low + 2 * GAP
        if high - low < 2:
            scope.labels = [GAP * (number + 1 + (number >= position)) for number in range(len(scope.labels))]
            for label, node_id in zip(scope.labels, scope.node_ids, strict=True):
                self.nodes[node_id].label = label
            low, high = GAP * position, GAP * (position + 2)
        node.label = (low + high) // 2
        scope.labels.insert(position, node.label)
        scope.node_ids.insert(position, node.id)

    def _refresh_backward(self, scope: Scope, node: NodeRecord) -> None:
        scope.ranks = None
        scope.backward = {pair for pair in scope.backward if node.id not in pair}
        for consumer in self.consumers(node):
            if self.nodes[consumer].label <= node.label:
                scope.backward.add((node.id, consumer))
        for maker in self.producers(node):
            if node.label <= self.nodes[maker].label:
                scope.backward.add((maker, node.id))

    def ranks(self, scope: Scope) -> dict[int, int]:
        """Positions in a topological order of a scope that is not sorted; nodes on a cycle come last."""
        if scope.ranks is None:
            order = topological_order(scope.node_ids, lambda node: self.producers(self.nodes[node]))
            scope.ranks = {node: rank for rank, node in enumerate(order)}
        return scope.ranks

    def rank(self, node: NodeRecord) -> int:
        """A number that is greater than that of every producer in the same scope (order labels while it is sorted)."""
        scope = self.scopes[node.scope]
        return self.ranks(scope)[node.id] if scope.backward else node.label

    def topological(self, scope: Scope) -> list[int]:
        """Node ids with producers first: the file's order where it is sorted."""
        return list(self.ranks(scope)) if scope.backward else list(scope.node_ids)


GRAPH_KINDS = frozenset((onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS))


def function_key(proto: onnx.FunctionProto | onnx.NodeProto) -> FunctionKey:
    """What a node must name to call a function: works for the function and for the node."""
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    name = proto.op_type if isinstance(proto, onnx.NodeProto) else proto.name
    return (domain, name, proto.overload)


def _image_values(nodes: list[NodeImage]) -> dict[str, int]:
    ids: dict[str, int] = {}
    for node in nodes:
        ids.update(node.values)
    return ids
