"""The graph as networkx sees it, kept in step with the index from the moment somebody first asks for it.

Nodes of the MultiDiGraph are node ids, with `op_type`, `domain` and `name` looked up live through the record in
attribute `record`. Every (producer, consumer, slots) is an edge of its own with `value`, `kind` ("data" or
"capture"), so that Add(x, x) has two. A value that a body of an If, Loop or Scan node captures is an edge to that node.
"""

from typing import TYPE_CHECKING, Any

from onnxlab.graph.records import NodeRecord, Scope, ValueRecord

if TYPE_CHECKING:
    from onnxlab.graph.index import Index


class Networks:
    """A MultiDiGraph per scope. networkx is imported at the first request (it costs about 100 ms)."""

    def __init__(self, index: "Index") -> None:
        self._index = index
        self._graphs: dict[int, Any] = {}

    def view(self, scope: Scope) -> Any:
        """A frozen view that follows later edits."""
        import networkx as nx

        graph = self._graphs.get(scope.id)
        if graph is None:
            graph = self._graphs[scope.id] = self._build(scope)
            if self not in self._index.watchers:
                self._index.watchers.append(self)
        return nx.graphviews.generic_graph_view(graph)

    def _build(self, scope: Scope) -> Any:
        import networkx as nx

        index = self._index
        graph = nx.MultiDiGraph()
        graph.add_nodes_from((node, {"record": index.nodes[node]}) for node in scope.node_ids)
        edges = []
        for maker in scope.node_ids:
            for out_slot, vid in enumerate(index.nodes[maker].outputs):
                if vid and index.values[vid].producer == (maker, out_slot):
                    for user, in_slot in index.values[vid].uses:
                        if edge := self._edge(scope.id, vid, (maker, out_slot), user, in_slot):
                            edges.append(edge)
        graph.add_edges_from(edges)
        return graph

    def _edge(
        self, scope: int, value: int, producer: tuple[int, int], user: int, in_slot: int
    ) -> tuple[int, int, Any, dict[str, Any]] | None:
        """(producer, consumer, key, data) of one use, None where the reader is not below the producer's scope."""
        node = self._index.nodes[user]
        if node.scope == scope:
            return producer[0], user, (producer[1], in_slot), {"value": value, "kind": "data"}
        consumer = self._index.owner_in(node, scope)
        if not consumer:
            return None
        return producer[0], consumer, (producer[1], (user, in_slot)), {"value": value, "kind": "capture"}

    # -- what the index reports -------------------------------------------------------------------------------------

    def node_added(self, node: NodeRecord) -> None:
        if node.scope in self._graphs:
            self._graphs[node.scope].add_node(node.id, record=node)

    def node_removed(self, node: NodeRecord) -> None:
        if node.scope in self._graphs:
            self._graphs[node.scope].remove_node(node.id)

    def edge_added(self, value: ValueRecord, producer: tuple[int, int], user: int, slot: int) -> None:
        scope = self._index.nodes[producer[0]].scope
        if scope in self._graphs and (edge := self._edge(scope, value.id, producer, user, slot)):
            self._graphs[scope].add_edges_from([edge])

    def edge_removed(self, value: ValueRecord, producer: tuple[int, int], user: int, slot: int) -> None:
        scope = self._index.nodes[producer[0]].scope
        if scope in self._graphs and (edge := self._edge(scope, value.id, producer, user, slot)):
            self._graphs[scope].remove_edge(edge[0], edge[1], edge[2])
