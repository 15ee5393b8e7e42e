"""Node messages on their way into the main graph's message and out of it.

Every insertion into a repeated field, and every removal, shifts the pointers behind it: 30 µs among 100,000 nodes,
three times that in a busy process, and again when the edit is undone. So where the graph's message is not shared,
insertions and removals are deferred until the message is read; those undone before that are never made. Nothing is
deferred in bodies and functions, which have few nodes and whose messages are read in many places.
"""

from collections import deque
from typing import Any, NamedTuple

import onnx

from onnxlab.graph.index.deferred_interrupt import UNINTERRUPTED
from onnxlab.graph.index.index import Index
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.protos.renaming import graphs_of
from onnxlab.graph.protos.repeated_fields import insert_message


class Shift(NamedTuple):
    """One node that left a position, came to one, or both: positions as they were after the shifts before it."""

    source: int | None
    target: int | None
    node: int
    proto: onnx.NodeProto


class NodeWriteBuffer:
    """Puts node messages where the file order of their scope has them.

    Args:
        lock: held while deferred shifts are written into the message.
        at_once: whether nothing is deferred, since other code may read the message at any time.
    """

    def __init__(self, index: Index, lock: Any, at_once: bool) -> None:
        self._index = index
        self._lock = lock
        self._at_once = at_once
        self._waiting: deque[Shift] = deque()

    def insert(self, scope: Scope, position: int, proto: onnx.NodeProto, node: int) -> onnx.NodeProto:
        """Put a copy of a message at a position, or the message that was taken from there; returns the live one."""
        if self._at_once or scope.kind != "graph":
            return insert_message(scope.proto.node, position, proto)  # type: ignore[no-any-return]
        if self._takes_back(None, position, proto):
            return proto
        copy = onnx.NodeProto()
        copy.CopyFrom(proto)
        self._waiting.append(Shift(None, position, node, copy))
        return copy

    def remove(self, scope: Scope, position: int, node: NodeRecord) -> None:
        """Take the message of a node from a position; holders of it keep its content."""
        if self._at_once or scope.kind != "graph":
            del scope.proto.node[position]
        elif not self._takes_back(position, None, node.proto):
            self._waiting.append(Shift(position, None, node.id, node.proto))

    def move(self, scope: Scope, position: int, target: int, node: NodeRecord) -> None:
        """Take the message of a node from a position to another one, counted without it."""
        shift = Shift(position, target, node.id, node.proto)
        if self._at_once or scope.kind != "graph":
            self._carry_out(scope, shift)
        elif not self._takes_back(position, target, node.proto):
            self._waiting.append(shift)

    def settle(self, at_once: bool = False) -> None:
        """Bring the message into line; with `at_once` it stays so from now on, since the caller may keep it."""
        if not self._waiting and self._at_once >= at_once:
            return
        with self._lock, UNINTERRUPTED:
            self._at_once |= at_once
            while self._waiting:
                self._carry_out(self._index.main, self._waiting[0])
                self._waiting.popleft()

    def _takes_back(self, source: int | None, target: int | None, proto: onnx.NodeProto) -> bool:
        """Whether a shift is the inverse of the one before it, which then need not be made either."""
        last = self._waiting[-1] if self._waiting else None
        if last is None or last.proto is not proto or (last.target, last.source) != (source, target):
            return False
        self._waiting.pop()
        return True

    def _carry_out(self, scope: Scope, shift: Shift) -> None:
        nodes, proto = scope.proto.node, shift.proto
        if shift.source is not None:
            proto = nodes[shift.source]
            del nodes[shift.source]
        if shift.target is None:
            return
        live = insert_message(nodes, shift.target, proto)
        node = self._index.nodes.get(shift.node)
        if node is not None and node.proto is proto:  # else a later shift has another message for the node
            node.proto = live
            refresh_bodies(self._index, node)


def refresh_bodies(index: Index, node: NodeRecord) -> None:
    """Point the records of a node's bodies into its proto again, after the proto was copied."""
    if not node.bodies:
        return
    bodies = {name: iter(scopes) for name, scopes in node.bodies.items()}
    for attribute in node.proto.attribute:
        if attribute.name in bodies:
            for proto in graphs_of(attribute):
                _refresh_scope(index, index.scopes[next(bodies[attribute.name])], proto)


def _refresh_scope(index: Index, scope: Scope, proto: onnx.GraphProto) -> None:
    scope.proto = proto
    for node_id, node_proto in zip(scope.node_ids, proto.node, strict=True):
        node = index.nodes[node_id]
        node.proto = node_proto
        refresh_bodies(index, node)
    for tensor in proto.initializer:
        index.values[scope.names[tensor.name]].initializer = tensor
    for sparse in proto.sparse_initializer:
        index.values[scope.names[sparse.values.name]].initializer = sparse
    for vid in scope.names.values():
        index.refresh_info(index.values[vid])
