"""The networkx view: parallel edges, captures, and every edit followed."""

import networkx as nx
import pytest

from onnxlab.graph.handles import Nodes
from onnxlab.graph.modelgraph import ModelGraph
from tests.graph.models import branches, chain


def edges(graph: ModelGraph) -> list[tuple[str, str, str]]:
    label = {node: graph.label(record) for node, record in graph.nodes.items()}
    return sorted((label[a], label[b], data["kind"]) for a, b, data in graph.nx().edges(data=True))


def test_parallel_edges_and_captures() -> None:
    graph = ModelGraph(branches())
    assert edges(graph).count(("t1", "if", "capture")) == 3, "h is captured by neg, abs and exp"
    Nodes(graph)["t2"].set_input(0, "h")
    assert ("t1", "t2", "data") in edges(graph)


def test_the_view_follows_edits_and_undo() -> None:
    graph = ModelGraph(chain())
    view = graph.nx()
    before = edges(graph)
    Nodes(graph)["r"].remove(bypass=True)
    assert edges(graph) == [("c", "a", "data"), ("c", "a", "data")]
    assert view.number_of_nodes() == 2
    graph.undo()
    assert edges(graph) == before
    assert nx.is_directed_acyclic_graph(view)


def test_the_view_is_read_only() -> None:
    with pytest.raises(nx.NetworkXError):
        ModelGraph(chain()).nx().add_node(99)
