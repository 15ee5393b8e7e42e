"""Uses of values, the edges that they make between nodes, and the followers of edges.

A value that a body reads from outside, or returns as it is, is an edge to the node that owns the body.
"""

from collections.abc import Iterator
from typing import Protocol

from onnxlab.graph.index.order import Order
from onnxlab.graph.index.records import NodeRecord, ValueRecord

Slot = int | tuple[int, int]
"""Where a node reads a value: an input slot, or (body's scope id, position) where its body returns the value."""


class Watcher(Protocol):
    """Hears of nodes and edges as they come and go."""

    def node_added(self, node: NodeRecord) -> None:
        """Take note of a new node."""

    def node_removed(self, node: NodeRecord) -> None:
        """Take note of a removed node."""

    def scope_removed(self, scope: int) -> None:
        """Take note of a removed scope."""

    def edge_added(self, value: ValueRecord, producer: tuple[int, int], node_id: int, slot: Slot) -> None:
        """Take note of a new edge from an output to a reader's slot."""

    def edge_removed(self, value: ValueRecord, producer: tuple[int, int], node_id: int, slot: Slot) -> None:
        """Take note of a removed edge."""


class Edges(Order):
    """Uses and edges, with everything that follows from one that comes or goes."""

    def __init__(self) -> None:
        super().__init__()
        self.watchers: list[Watcher] = []

    def readers(self, value: ValueRecord) -> Iterator[tuple[int, Slot]]:
        """(node id, slot) of everything that reads a value, bodies that return it included."""
        yield from value.uses
        for scope_id, position in value.formal_outputs:
            if owner := self.scopes[scope_id].owner:
                yield owner, (scope_id, position)

    def _connect(self, value: ValueRecord, node_id: int, slot: int) -> None:
        value.uses[node_id, slot] = None
        if value.producers:
            self._edge_added(value, node_id, slot)

    def _disconnect(self, value: ValueRecord, node_id: int, slot: int) -> None:
        del value.uses[node_id, slot]
        if value.producers:
            self._edge_removed(value, node_id, slot)

    def _returned(self, value: ValueRecord, scope_id: int, positions: tuple[int, ...]) -> None:
        """Say at which positions a graph or function returns a value."""
        before = [place for place in value.formal_outputs if place[0] == scope_id]
        elsewhere = tuple(place for place in value.formal_outputs if place[0] != scope_id)
        owner = self.scopes[scope_id].owner if value.producers else 0
        value.formal_outputs = elsewhere
        if owner:
            for place in before:
                self._edge_removed(value, owner, place)
        value.formal_outputs = (*elsewhere, *((scope_id, position) for position in positions))
        if owner:
            for position in positions:
                self._edge_added(value, owner, (scope_id, position))

    def _set_producers(self, value: ValueRecord, producers: list[tuple[int, int]]) -> None:
        """Set the producer of a value. Where a file has it made twice, edges run from the first in file order."""
        before = value.producers
        is_read = value.uses or value.formal_outputs
        if before and is_read and self.watchers:
            for node_id, slot in self.readers(value):
                for watcher in self.watchers:
                    watcher.edge_removed(value, before[0], node_id, slot)
        if len(producers) > 1:
            producers.sort(key=lambda producer: (self.nodes[producer[0]].label, producer[1]))
        value.producers = producers
        if producers and is_read:
            for node_id, slot in self.readers(value):
                self._edge_added(value, node_id, slot)
        if before:
            maker = self.nodes[before[0][0]]
            scope = self.scopes[maker.scope]
            scope.ranks = None
            if scope.backward:
                self._refresh_backward(scope, maker)

    def move_node(self, node: NodeRecord, position: int) -> None:
        """Follow a node to another position of its scope (counted with the node taken out)."""
        scope = self.scopes[node.scope]
        self._take_out(scope, node)
        self._place(scope, position, node)
        for vid in node.outputs:
            if vid and len(self.values[vid].producers) > 1:
                self._set_producers(self.values[vid], list(self.values[vid].producers))
        self._refresh_backward(scope, node)

    def _edge_added(self, value: ValueRecord, node_id: int, slot: Slot) -> None:
        nodes, producer = self.nodes, value.producers[0]
        maker, consumer = nodes[producer[0]], nodes[node_id]
        if consumer.scope == maker.scope:
            self._note_edge(maker, consumer)
        elif owner := self.owner_in(consumer, maker.scope):
            self._note_edge(maker, nodes[owner])
        if self.watchers:
            for watcher in self.watchers:
                watcher.edge_added(value, producer, node_id, slot)

    def _edge_removed(self, value: ValueRecord, node_id: int, slot: Slot) -> None:
        maker = self.nodes[value.producers[0][0]]
        scope = self.scopes[maker.scope]
        scope.ranks = None
        if self.watchers:
            for watcher in self.watchers:
                watcher.edge_removed(value, value.producers[0], node_id, slot)
        if scope.backward:
            pair = (maker.id, self.owner_in(self.nodes[node_id], scope.id))
            if pair in scope.backward and not any(consumer == pair[1] for consumer in self.consumers(maker)):
                self._forget_edge(scope, pair)
