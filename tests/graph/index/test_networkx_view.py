"""The networkx view: parallel edges, captures, what is known of values, and every edit followed."""

import copy
import json
import pickle
from pathlib import Path

import networkx as nx
import pytest

import onnxlab
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.handles import Nodes
from onnxlab.model import Model
from tests.graph.support.models import branches, chain


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


def test_edges_say_what_is_known_of_their_values() -> None:
    model = Model(chain())
    first, second, data = next(iter(model.nx.edges(data=True)))
    assert (model.node(first).name, model.node(second).name) == ("c", "r")
    assert dict(data) == {
        "value": model.value("c_out").id, "name": "c_out", "kind": "data", "dtype": "float32", "shape": "N,4,4,4",
        "bytes": 4 * 64,
    }  # fmt: skip
    model.value("x").set_shape([2, 3, 16, 16])
    assert (data["shape"], data["bytes"]) == ("2,4,8,8", 2 * 4 * 64 * 4), "by inference, as it is now"
    alone = Model(chain()).nx
    assert next(iter(alone.edges(data=True)))[2]["dtype"] == "float32", "without holding the model"
    assert dict(next(iter(ModelGraph(chain()).nx().edges(data=True)))[2])["dtype"] == "", "it is unknown there"


def test_algorithms_that_weigh_edges() -> None:
    model = onnxlab.load()
    view = model.nx
    start, end = model.nodes[0].id, model.nodes["/head/fc/Gemm"].id
    assert nx.dag_longest_path_length(view, weight="bytes") > nx.dag_longest_path_length(view)
    capacity, (upper, lower) = nx.minimum_cut(nx.DiGraph(view), start, end, capacity="bytes")
    crossing = {data["name"]: data["bytes"] for a, b, data in view.edges(data=True) if a in upper and b in lower}
    assert capacity == sum(crossing.values()) == 256, "64 numbers go into the Gemm"


def test_every_scope_has_one() -> None:
    model = Model(branches())
    assert [data["op_type"] for _, data in model.nx_of("if/then/inner/else").nodes(data=True)] == ["Abs"]
    assert model.nx_of("local::Twice").number_of_nodes() == 1
    assert nx.utils.graphs_equal(nx.DiGraph(model.nx_of("")), nx.DiGraph(model.nx))


def test_the_view_is_written_copied_and_pickled(tmp_path: Path) -> None:
    view = onnxlab.load().nx
    count = view.number_of_nodes(), view.number_of_edges()
    nx.write_graphml(view, tmp_path / "model.graphml")
    again = nx.read_graphml(tmp_path / "model.graphml", force_multigraph=True)
    assert (again.number_of_nodes(), again.number_of_edges()) == count
    nx.write_gml(view, tmp_path / "model.gml")
    json.dumps([nx.node_link_data(view), nx.cytoscape_data(view), nx.adjacency_data(view)])
    for other in (copy.deepcopy(view.copy()), pickle.loads(pickle.dumps(view.copy())), nx.relabel_nodes(view, str)):
        assert (other.number_of_nodes(), other.number_of_edges()) == count
    nx.set_node_attributes(changeable := view.copy(), 1, "seen")
    assert all(data["seen"] for _, data in changeable.nodes(data=True))
