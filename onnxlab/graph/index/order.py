"""The order of nodes in each scope: positions in the file, and a topological order where the file has none.

Both make checks for cycles cheap: an edge that runs with the file order needs no search, and the index keeps the
edges that run against it.
"""

from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.index.rows import Rows
from onnxlab.graph.index.tables import Tables
from onnxlab.graph.index.topology import topological_order


class Order(Tables):
    """File order and ranks.

    Attributes:
        unsorted: ids of the scopes with an edge that runs against the file order.
        new_edges: (producer, consumer) node ids of edges added since the list was last cleared.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unsorted: set[int] = set()
        self.new_edges: list[tuple[int, int]] = []

    def _place(self, scope: Scope, position: int, node: NodeRecord) -> None:
        """Give a node a label between those of its new neighbors."""
        label = scope.node_ids.insert(position, node.id)
        if not label:
            for other, fresh in scope.node_ids.spread():
                self.nodes[other].label = fresh
            label = scope.node_ids.insert(position, node.id)
        node.label = label
        scope.ranks = None

    def _take_out(self, scope: Scope, node: NodeRecord) -> None:
        scope.node_ids.remove(node.label)
        scope.ranks = None

    # -- edges against the order ------------------------------------------------------------------------------------

    def _note_edge(self, maker: NodeRecord, consumer: NodeRecord) -> None:
        """See whether a new edge between two nodes of a scope runs against the file order."""
        scope, pair = self.scopes[maker.scope], (maker.id, consumer.id)
        self.new_edges.append(pair)
        if consumer.label <= maker.label:
            scope.backward.add(pair)
            self.unsorted.add(scope.id)
        scope.ranks = None

    def _forget_edge(self, scope: Scope, pair: tuple[int, int]) -> None:
        scope.backward.discard(pair)
        if not scope.backward:
            self.unsorted.discard(scope.id)

    def _refresh_backward(self, scope: Scope, node: NodeRecord) -> None:
        """Look again at the edges of a node that was moved, or that makes other values."""
        scope.ranks = None
        if scope.backward:
            scope.backward = {pair for pair in scope.backward if node.id not in pair}
        for consumer in self.consumers(node):
            if self.nodes[consumer].label <= node.label:
                scope.backward.add((node.id, consumer))
        for maker in self.producers(node):
            if node.label <= self.nodes[maker].label:
                scope.backward.add((maker, node.id))
        (self.unsorted.add if scope.backward else self.unsorted.discard)(scope.id)

    # -- ranks ------------------------------------------------------------------------------------------------------

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

    def rows(self, scope: Scope) -> Rows:
        """The inputs and outputs of the nodes of a scope, in the order of the file."""
        return Rows.of(list(map(self.nodes.__getitem__, scope.node_ids)))
