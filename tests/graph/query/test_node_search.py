"""Finding nodes and values, and what depends on what: networkx and brute force as oracles."""

import networkx as nx
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import onnxlab
from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.query import cones
from onnxlab.graph.query.node_search import fits_shape
from onnxlab.model import Model
from tests.graph.support.models import branches, tensor


def names(matches: list[object]) -> list[str]:
    return [item.name for item in matches]  # type: ignore[attr-defined]


def test_find_by_everything() -> None:
    model = onnxlab.load()
    assert len(model.find("Conv")) == sum(node.op_type == "Conv" for node in model.proto.graph.node)
    assert names(model.find("Conv", name="/block2/conv*")) == ["/block2/conv1/Conv", "/block2/conv2/Conv"]
    assert set(names(model.find(["Conv", "Gemm"]))) > set(names(model.find("Gemm")))
    conv = model.find("Conv", strides=[2, 2])
    assert all(node.attributes["strides"] == [2, 2] for node in conv)
    assert model.find("Conv", group=1) == model.find("Conv"), "the default counts"
    assert len(model.find("Conv", group=None)) + len(model.find("Conv", group=...)) == len(model.find("Conv"))
    assert model.find(dtype="float32", shape=("batch", 10)) == model.find(shape=(None, 10))
    assert model.find(shape=(..., 8, 8), dtype=np.float32)
    assert not model.find(dtype="int64", shape=(..., 8, 8))
    assert model.find("Relu", where=lambda node: node.position < 5) == model.find("Relu")[:1]
    assert model.find(domain="ai.onnx") == model.find()
    assert names(model.find_values(kind="input")) == ["image"]
    assert len(model.find_values(kind="initializer")) == len(model.proto.graph.initializer)
    with pytest.raises(NameLookupError, match=r"not 'inputs'. Did you mean 'input'"):
        model.find_values(kind="inputs")


def test_find_reaches_into_bodies_and_functions() -> None:
    model = Model(branches())
    assert (
        names(model.find(["Neg", "Abs", "Exp", "Add"])) == ["add", "neg", "abs", "exp"] or len(model.find("Neg")) == 1
    )
    assert not model.find("Neg", scope="")
    assert names(model.find("Neg", scope="if/then/inner/then")) == ["neg"]
    assert names(model.find("Twice", domain="local")) == ["t1", "t2"]
    with pytest.raises(NameLookupError, match="no body or function is called 'nowhere'; there are"):
        model.find(scope="nowhere")


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [((2, "n", 4), True), ((2, None, 4), True), ((...,), True), ((2, ...), True), ((..., 4), True),
     ((2, ..., "n", 4), True), ((2, ..., 2, "n", 4), False),
     ((2, "m", 4), False), ((), False), ((2, "n"), False), ((..., 2), False)],
)  # fmt: skip
def test_shape_patterns(pattern: tuple[object, ...], fits: bool) -> None:
    assert fits_shape((2, "n", 4), pattern) is fits


def random_graph(edges: list[tuple[int, int]], shuffle: int) -> ModelGraph:
    """Twelve nodes, each reading what the edges say from nodes with smaller numbers, in any file order."""
    nodes = []
    for number in range(12):
        read = sorted({f"v{min(a, b)}" for a, b in edges if a != b and max(a, b) == number}) or ["x"]
        nodes.append(helper.make_node("Sum", read, [f"v{number}"], name=f"n{number}"))
    if shuffle:
        nodes = nodes[shuffle:] + nodes[:shuffle]
    return ModelGraph(helper.make_model(helper.make_graph(nodes, "g", [tensor("x")], [tensor("v11")])))


EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=24)


@settings(max_examples=60, deadline=None)
@given(edges=EDGES, shuffle=st.integers(0, 3), chosen=st.sets(st.integers(0, 11), min_size=1, max_size=5))
def test_cones_are_those_of_networkx(edges: list[tuple[int, int]], shuffle: int, chosen: set[int]) -> None:
    graph = random_graph(edges, shuffle)
    view = graph.nx()
    some = [graph.resolve_node(f"n{number}") for number in chosen]
    for node in some:
        assert cones.ancestors(graph, [node]) == nx.ancestors(view, node)
        assert cones.descendants(graph, [node]) == nx.descendants(view, node)
    assert cones.cone(graph, some) == set(some).union(*(nx.ancestors(view, node) for node in some))
    start, end = some[0], some[-1]
    assert cones.connected(graph, start, end) == (end in nx.descendants(view, start))
    simple = {tuple(path) for path in nx.all_simple_paths(nx.DiGraph(view), start, end)} if start != end else {(start,)}
    assert set(cones.paths(graph, start, end)) == simple
    ahead, behind = nx.descendants(view, start) | {start}, nx.ancestors(view, end) | {end}
    assert cones.between(graph, [start], [end]) == (ahead & behind)
    inside = set(some)
    convex = all(cones.between(graph, [a], [b]) <= inside for a in some for b in some)
    path = cones.hole(graph, some)
    assert bool(path) != convex
    if path:
        assert path[0] in inside
        assert path[-1] in inside
        assert not inside & set(path[1:-1])
        assert nx.is_path(view, path)


def test_boundary_and_captures() -> None:
    model = Model(branches())
    sides = model.structure.boundary(["t1", "if"])
    assert names(sides.inputs) == ["x", "flag"]
    assert (names(sides.outputs), names(sides.internal), sides.unused) == (["chosen"], ["h"], ())
    assert names(model.structure.boundary("if").captures) == ["h"]
    assert names(model.structure.ancestors("t2")) == ["t1", "if"]
    assert names(model.structure.ancestors("t2", via="data")) == ["if"]
    assert names(model.structure.descendants("t1", via="capture")) == ["if"]
    assert names(model.structure.descendants("t1", via="data")) == []
    assert model.structure.connected("t1", "t2")
    assert not model.structure.connected("t1", "if", via="data")
    assert [names(list(path)) for path in model.structure.paths("t1", "t2")] == [["t1", "if", "t2"]]
    assert names(model.structure.between("t1", "t2")) == ["t1", "if", "t2"]
    assert model.structure.is_convex(["t1", "if"])
    assert not model.structure.is_convex(["t1", "t2"])
    assert names(model.structure.cone("if")) == ["t1", "if"]
    with pytest.raises(EditError, match="are in different graphs"):
        model.duplicate(["t1", "if/else/exp"])


def test_what_depends_on_a_value() -> None:
    model = Model(branches())
    assert (
        names(model.structure.descendants(model.value("h"))) == names(model.structure.descendants("t1")) == ["if", "t2"]
    )
    assert names(model.structure.descendants(model.value("h"), via="data")) == []
    assert names(model.structure.descendants(model.value("h"), via="capture")) == ["if"]
    assert names(model.structure.descendants([model.value("flag"), "t1"])) == ["if", "t2"]
    assert (
        names(model.structure.ancestors(model.value("chosen")))
        == names(model.structure.cone(model.value("chosen")))
        == ["t1", "if"]
    )
    assert names(model.structure.ancestors(model.value("x"))) == []
    assert names(model.structure.descendants(model.value("if/then/inner_out"))) == []
    with pytest.raises(NameLookupError, match="is a value, not a node"):
        model.structure.connected(model.value("x"), "t2")


def test_a_body_that_returns_an_outer_value_captures_it() -> None:
    then = helper.make_graph([], "t", [], [tensor("a")])
    other = helper.make_graph([helper.make_node("Neg", ["a"], ["n"])], "e", [], [tensor("n")])
    nodes = [
        helper.make_node("Abs", ["x"], ["a"], name="abs"),
        helper.make_node("If", ["flag"], ["y"], name="if", then_branch=then, else_branch=other),
    ]
    flag = helper.make_tensor_value_info("flag", onnx.TensorProto.BOOL, [])
    model = Model(helper.make_model(helper.make_graph(nodes, "g", [tensor("x"), flag], [tensor("y")])))
    assert names(model.structure.descendants("abs", via="capture")) == ["if"]
    assert names(model.structure.boundary("abs").outputs) == ["a"]
    assert names(model.structure.boundary(["abs", "if"]).internal) == ["a"]


def test_networkx_algorithms_run_on_the_live_view() -> None:
    model = onnxlab.load()
    view = model.nx
    assert nx.is_directed_acyclic_graph(view)
    assert len(list(nx.topological_sort(view))) == len(model.nodes)
    assert nx.number_weakly_connected_components(view) == 1
    assert nx.dag_longest_path_length(nx.DiGraph(view)) > 5
    assert nx.immediate_dominators(view, model.nodes[0].id)
    assert max(nx.betweenness_centrality(nx.DiGraph(view)).values()) > 0
    assert len(list(nx.generate_gml(nx.relabel_nodes(nx.MultiDiGraph(nx.DiGraph(view).edges), str)))) > len(model.nodes)
    convs = [node for node, data in view.nodes(data=True) if data["op_type"] == "Conv"]
    assert convs == [node.id for node in model.find("Conv")]
    first, second, data = next(iter(view.edges(data=True)))
    assert (data["name"], data["kind"]) == (model.node(first).outputs[0].name, "data")
    copied = nx.MultiDiGraph(view)
    copied.remove_node(second)
    assert second in view
    with pytest.raises(nx.NetworkXError):
        view.remove_node(second)
    model.nodes["/stem/relu/Relu"].remove(bypass=True)
    assert view.number_of_nodes() == len(model.nodes), "it follows"
