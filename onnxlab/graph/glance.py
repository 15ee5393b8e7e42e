"""A graph for a single look, such as inference from scratch: what only edits and people ask for is made when asked for.

Uses of values are noted when somebody first wants one. The model is serialised once and read there (`wire.py`): what is
left of a node without names says whether it may have bodies, and serves inference (`signatures`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import onnx

from onnxlab.graph import wire
from onnxlab.graph.file_order import FileOrder
from onnxlab.graph.index import Index
from onnxlab.graph.labels import spread
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.graph.records import GRAPH_KINDS, NO_BODIES, NodeRecord, Scope, ScopeImage, ValueRecord
from onnxlab.graph.transaction import Transaction

MAX_SIGNATURE = 4096
"""Bytes up to which a signature is kept."""

_GRAPH = wire.tag(onnx.ModelProto, "graph")
_NODES = {False: wire.tag(onnx.GraphProto, "node"), True: wire.tag(onnx.FunctionProto, "node")}
"""Where nodes stand, by whether it is a function that has them."""


class UnreadValue(ValueRecord):
    """A value whose `uses` are noted, with those of all others, when somebody first asks for one's."""

    __slots__ = ("_index",)

    def __init__(
        self, ident: int, name: str, scope: int, producers: list[tuple[int, int]], index: GlanceIndex,
        formal_outputs: tuple[tuple[int, int], ...] = (), is_input: bool = False, initializer: Any = None,
    ) -> None:  # fmt: skip
        self.id, self.name, self.scope, self.producers = ident, name, scope, producers
        self.formal_outputs, self.is_input, self.initializer, self.info = formal_outputs, is_input, initializer, None
        self._index = index

    def __getattr__(self, name: str) -> Any:  # asked only for what has no value yet
        if name != "uses":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._index.note_uses()
        return self.uses


class GlanceIndex(Index):
    """An index that notes who reads a value when somebody first wants to know.

    Args:
        data: the model as protobuf writes it, where somebody has that already.

    Attributes:
        size: bytes of the serialised model.
        signatures: by node id, of nodes that read something, with notes; not of large ones.
        constants: by id of a Constant that has a tensor and nothing else, its beginning; see `wire.constant`.
        attributes: by node id, of other nodes that read nothing. As the nodes were met, all three.
    """

    value_type: type[ValueRecord] = UnreadValue

    def __init__(self, proto: onnx.ModelProto, data: bytes | None = None) -> None:
        self._model = proto.SerializeToString() if data is None else data
        self.size = len(self._model)
        self.signatures: dict[int, bytes] = {}
        self.constants: dict[int, re.Match[bytes]] = {}
        self.attributes: dict[int, list[onnx.AttributeProto]] = {}
        self._bodiless: set[bytes] = set()
        self._bodies: dict[int, Iterator[tuple[bytes, int, int]]] = {}
        self._left: list[tuple[NodeRecord, bool]] = []
        self._noting = threading.RLock()
        self._noted = False
        super().__init__(proto)
        self._model = b""
        self._bodies.clear()

    def note_uses(self) -> None:
        """Note every use, in the order in which reading the file meets them."""
        with self._noting:
            if self._noted:
                return
            self._noted = True
            self.value_type = ValueRecord
            for value in self.values.values():
                value.uses = {}
            for scope in self.scopes.values():
                if not scope.owner:
                    self._note_uses_in(scope)

    def _note_uses_in(self, scope: Scope) -> None:
        values = self.values
        for ident in scope.node_ids:
            node = self.nodes[ident]
            for slot, vid in enumerate(node.inputs):
                if vid:
                    values[vid].uses[ident, slot] = None
            for bodies in node.bodies.values():
                for body in bodies:
                    self._note_uses_in(self.scopes[body])

    def _connect(self, value: ValueRecord, node_id: int, slot: int) -> None:
        if self._noted:
            value.uses[node_id, slot] = None
        if value.producers:
            self._edge_added(value, node_id, slot)

    def _unread(self) -> Any:
        return {} if self._noted else self

    def _declare_nodes(self, scope: Scope, image: ScopeImage | None, ids: dict[str, int]) -> list[NodeRecord]:
        """Everything in one pass, while a message is at hand, but what has to wait for others: `_left`."""
        if self._noted or image:
            return super()._declare_nodes(scope, image, ids)
        protos = scope.proto.node[:]
        labels = spread(len(protos))
        values, names, scope_id, last = self.values, scope.names, scope.id, self._last_id
        made, left, value_of, read, given = {}, [], names.get, self._read, self._serialised(scope)
        for proto, label, (reads, makes, at, end) in zip(protos, labels, wire.heads(*given), strict=True):
            last = ident = last + 1
            inputs: list[Any] = list(map(value_of, reads))  # None: absent, from outside, or made later
            outputs: list[int] = []
            for slot, name in enumerate(makes):
                vid = value_of(name, 0) if name else 0
                if vid:
                    values[vid].producers.append((ident, slot))
                elif name:
                    last = names[name] = vid = last + 1
                    values[vid] = UnreadValue(vid, name, scope_id, [(ident, slot)], self)
                outputs.append(vid)
            node = made[ident] = NodeRecord(ident, scope_id, proto, label, inputs, outputs, NO_BODIES)
            may_have_bodies = read(node, given[0], at, end)
            if may_have_bodies:
                self._bodies[ident] = wire.bodies(given[0], at, end, [a.type for a in proto.attribute[:]])
            if may_have_bodies or None in inputs:
                left.append((node, may_have_bodies))
        self._last_id, self._left = last, left
        scope.node_ids = FileOrder(made, labels)
        self.nodes.update(made)
        return list(made.values())

    def _serialised(self, scope: Scope) -> tuple[bytes, int, int, int]:
        """Bytes with the nodes of a scope, where the first one begins, where the scope ends, and the nodes' tag."""
        tag = _NODES[scope.is_function]
        if scope.kind == "subgraph":
            data, start, end = next(self._bodies[scope.owner])  # which come in the order of the attributes
        else:
            data = self._model if scope.kind == "graph" else scope.proto.SerializeToString()
            start, end = 0, len(data)
        if scope.kind == "graph" and (at := wire.find(data, 0, end, _GRAPH)) < end:
            start, end = wire.extent(data, at)
        return data, wire.find(data, start, end, tag), end, tag

    def _read(self, node: NodeRecord, data: bytes, at: int, end: int) -> bool:
        """Read what a new node does, from its signature; True where it may have bodies."""
        if not node.inputs:
            if (constant := wire.constant(data, at, end)) is not None:
                self.constants[node.id] = constant
                return False
            found = self.attributes[node.id] = node.proto.attribute[:]
            return not _have_no_graphs(found)
        if end - at > MAX_SIGNATURE:
            return not _have_no_graphs(node.proto.attribute[:])
        given = data[at:end]
        if given not in self._bodiless:
            if not _have_no_graphs(node.proto.attribute[:]):
                return True
            self._bodiless.add(given)
        self.signatures[node.id] = given
        return False

    def _bind_nodes(self, scope: Scope, nodes: list[NodeRecord], ids: dict[str, int], image: ScopeImage | None) -> None:
        if self._noted or image:
            super()._bind_nodes(scope, nodes, ids, image)
            return
        left, self._left = self._left, []
        for node, may_have_bodies in left:
            if None in node.inputs:
                self._bind_inputs(scope, node, ids)
            if may_have_bodies:
                self._bind_bodies(node, None)

    def _bind_inputs(self, scope: Scope, node: NodeRecord, ids: dict[str, int]) -> None:
        inputs = node.inputs
        for slot, name in enumerate(node.proto.input[:]):
            value = self.value_for_reading(scope, name, ids) if name else None
            inputs[slot] = value.id if value else 0
            if value and (value.id > node.id or value.scope != scope.id):
                self._connect(value, node.id, slot)


def _have_no_graphs(attributes: list[onnx.AttributeProto]) -> bool:
    if len(attributes) == 1:  # as of nearly all Constants
        return attributes[0].type not in GRAPH_KINDS
    return GRAPH_KINDS.isdisjoint([attribute.type for attribute in attributes])


class Glance(ModelGraph):
    """A ModelGraph that is likely to be looked at once and dropped; all that a ModelGraph can do, it can."""

    def __init__(self, proto: onnx.ModelProto, data: bytes | None = None) -> None:
        self.index_type = partial(GlanceIndex, data=data)
        super().__init__(proto)
        assert isinstance(self.index, GlanceIndex)
        self.met = self.index

    def edit(self, label: str, origin: Any = None) -> Transaction:
        with self.lock:
            self.met.note_uses()
            self.met.signatures.clear()
            self.met.constants.clear()
            self.met.attributes.clear()
        return super().edit(label, origin)

    def take_apart(self) -> None:
        """Let go of everything at once, the message included; nothing can be asked any more."""
        vars(self.index).clear()
        vars(self).clear()
