"""A graph for a single look, such as inference from scratch: what only edits and people ask for is made when asked for.

Uses of values are noted when somebody first wants one. Each node is serialised once: what is left of it without names
says whether it may have bodies, and serves inference (`signatures`).
"""

from __future__ import annotations

import threading
from typing import Any

import onnx

from onnxlab.graph.index import Index
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.graph.records import NodeRecord, Scope, ScopeImage, ValueRecord
from onnxlab.graph.signature import signature
from onnxlab.graph.transaction import Transaction

MAX_SIGNATURE = 4096
"""Bytes up to which a signature is kept."""

_LARGE = frozenset(("If", "Loop", "Scan"))
"""Operators not to be serialised for nothing; like Constants, which read no inputs."""


class Signatures(dict[int, bytes]):
    """{node id: its signature, with notes} of nodes that nobody edited; one of the things that a graph keeps."""

    def forget_node(self, node: int) -> None:
        self.pop(node, None)

    def forget_scope(self, scope: int) -> None:
        """What is in a scope has no part in signatures."""

    def forget_value(self, value: int) -> None:
        """Nor have initializers."""


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
    """An index that notes who reads a value when somebody first wants to know."""

    value_type: type[ValueRecord] = UnreadValue

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.signatures = Signatures()
        self._bodiless: set[bytes] = set()
        self._noting = threading.RLock()
        self._noted = False
        super().__init__(proto)

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

    def _bind_nodes(self, scope: Scope, nodes: list[NodeRecord], ids: dict[str, int], image: ScopeImage | None) -> None:
        if self._noted or image:
            super()._bind_nodes(scope, nodes, ids, image)
            return
        value_of, bodiless, signatures = scope.names.get, self._bodiless, self.signatures
        for node in nodes:
            proto, ident = node.proto, node.id
            inputs: list[Any] = list(map(value_of, proto.input[:]))
            node.inputs = inputs
            if None in inputs or (inputs and max(inputs) > ident):  # absent, from outside, or made later
                self._bind_inputs(scope, node, ids)
            if not inputs or proto.op_type in _LARGE:
                self._bind_bodies(node, None)
                continue
            given = signature(proto.SerializeToString(), False)
            if given not in bodiless:
                self._bind_bodies(node, None)
                if node.bodies or len(given) > MAX_SIGNATURE:
                    continue
                bodiless.add(given)
            signatures[ident] = given

    def _bind_inputs(self, scope: Scope, node: NodeRecord, ids: dict[str, int]) -> None:
        inputs = node.inputs
        for slot, name in enumerate(node.proto.input[:]):
            value = self.value_for_reading(scope, name, ids) if name else None
            inputs[slot] = value.id if value else 0
            if value and (value.id > node.id or value.scope != scope.id):
                self._connect(value, node.id, slot)


class Glance(ModelGraph):
    """A ModelGraph that is likely to be looked at once and dropped; all that a ModelGraph can do, it can."""

    index_type = GlanceIndex

    def __init__(self, proto: onnx.ModelProto) -> None:
        super().__init__(proto)
        assert isinstance(self.index, GlanceIndex)
        self.keep(Signatures, self.index.signatures)
        self._note_uses = self.index.note_uses

    def edit(self, label: str, origin: Any = None) -> Transaction:
        with self.lock:
            self._note_uses()
        return super().edit(label, origin)
