"""Keep a sorted file sorted: the fewest moves that put producers before consumers again after a rewire."""

from collections.abc import Mapping

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import MoveNode
from onnxlab.graph.edit.commits import OpenEdit
from onnxlab.graph.index.records import Scope
from onnxlab.graph.index.topology import reachable
from onnxlab.graph.state.graph_state import GraphState


def restore_order(graph: GraphState, transaction: OpenEdit, backward: Mapping[int, frozenset[tuple[int, int]]]) -> None:
    """Mend edges that the transaction turned against the file order; refuse those that close a cycle.

    Only the nodes between the two ends of such an edge are searched, and the smaller side of them is moved. A scope
    that was unsorted before, with edges that ran `backward`, stays as it is, and only its new edges are checked for
    cycles.

    Raises:
        EditError: a new edge closes a cycle; the message names it.
    """
    for scope in [graph.scopes[ident] for ident in sorted(graph.index.unsorted)]:
        before = backward.get(scope.id, frozenset())
        # in an unsorted scope, any new edge can close a cycle; in a sorted one, only an edge that runs backward
        for pair in sorted(_new_edges(graph, scope) if before else scope.backward):
            if before or pair in scope.backward:
                _mend(graph, transaction, scope, pair, move=not before)


def _new_edges(graph: GraphState, scope: Scope) -> set[tuple[int, int]]:
    """Edges of a scope that came with the transaction and are still there."""
    nodes = graph.nodes
    return {
        (maker, consumer) for maker, consumer in graph.index.new_edges
        if maker in nodes and nodes[maker].scope == scope.id and consumer in graph.index.consumers(nodes[maker])
    }  # fmt: skip


def _mend(graph: GraphState, transaction: OpenEdit, scope: Scope, pair: tuple[int, int], move: bool) -> None:
    index = graph.index
    producer, consumer = (graph.nodes[node] for node in pair)
    low, high = consumer.label, producer.label
    if not move:
        low, high = 0, graph.nodes[scope.node_ids[-1]].label

    def between(node: int) -> bool:
        return low <= graph.nodes[node].label <= high

    behind = reachable([consumer.id], lambda node: index.consumers(graph.nodes[node]), between)
    if producer.id in behind:
        raise EditError(
            f"{transaction.label}: refused. {graph.label(consumer)} would depend on itself: it would read what "
            f"{graph.label(producer)} makes, which depends on {graph.label(consumer)}. "
            "Choose a value that does not depend on the node."
        )
    if not move:
        return
    ahead = reachable([producer.id], lambda node: index.producers(graph.nodes[node]), between)
    if len(ahead) <= len(behind):
        # every node of `ahead` goes right before the consumer, in their present order
        for node_id in sorted(ahead, key=lambda node: graph.nodes[node].label):
            transaction.apply(MoveNode(node_id, scope.position(consumer)))
    else:
        # every node of `behind` goes right behind the producer
        for node_id in sorted(behind, key=lambda node: -graph.nodes[node].label):
            transaction.apply(MoveNode(node_id, scope.position(producer)))
