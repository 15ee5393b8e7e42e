"""Groups: from names, from metadata, from cuts; no level too long, no cycle among boxes, ids that last."""

import graphlib
import time

import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper

import onnxlab
from onnxlab.graph.index.index import Index
from onnxlab.graph.index.name_scopes import MAX_DEPTH
from onnxlab.graph.query.hierarchy import LIMIT, Hierarchy
from tests.support.corpus import Corpus


def chain(names: list[str], op_type: str = "Relu") -> ModelProto:
    """A row of nodes, each reading the one before."""
    nodes = [helper.make_node(op_type, [f"v{i}"], [f"v{i + 1}"], name=name) for i, name in enumerate(names)]
    return model(helper.make_graph(nodes, "g", [], []))


def model(graph: GraphProto) -> ModelProto:
    return helper.make_model(graph)


def hierarchy(proto: ModelProto) -> Hierarchy:
    built = Hierarchy()
    built.refresh(Index(proto))
    return built


def shown(tree: Hierarchy) -> dict[str, int]:
    """{path: nodes in it} of every group."""
    return {tree.path(group.id): group.size for group in tree.groups.values()}


def test_groups_follow_slashes_in_names() -> None:
    names = ["/stem/Conv", "/stem/Relu", "/layer1/layer1.0/Conv", "/layer1/layer1.0/Add", "/layer1/Relu"]
    assert shown(hierarchy(chain(names))) == {"stem": 2, "layer1": 3, "layer1/layer1.0": 2}


def test_groups_around_one_box_dissolve() -> None:
    names = ["/net/a/conv/Conv", "/net/a/act/Relu", "/net/b/c/d/Add", "/net/b/c/d/Mul"]
    assert shown(hierarchy(chain(names))) == {"a": 2, "b/c/d": 2}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("pkg.torch.onnx.name_scopes", "['', 'm', 'm.layer.{}', 'relu_{}']"),
        ("namespace", ": W/m: Model/m.layer.{}: Layer/relu_{}: aten.relu.default"),
    ],
)
def test_groups_follow_the_metadata_of_torch(key: str, text: str) -> None:
    proto = chain(["n0", "n1", "n2", "n3"])
    for number, node in enumerate(proto.graph.node):
        node.metadata_props.add(key=key, value=text.format(number // 2, number))
    assert shown(hierarchy(proto)) == {"layer.0": 2, "layer.1": 2}


def test_a_constant_stands_with_its_reader() -> None:
    proto = chain(["/a/A", "/a/B", "/b/A", "/b/B"], "Add")
    constant = helper.make_node("Constant", [], ["c"], name="Constant_7", value_int=1)
    proto.graph.node.insert(0, constant)
    proto.graph.node[3].input.append("c")
    index = Index(proto)
    tree = Hierarchy()
    tree.refresh(index)
    first, third = index.main.node_ids[0], index.main.node_ids[3]
    assert tree.group_of[first] == tree.group_of[third] != 0


def test_a_scope_that_is_entered_twice_is_cut_in_two() -> None:
    names = ["/a/1", "/a/2", "/b/1", "/b/2", "/a/3", "/a/4"]
    assert shown(hierarchy(chain(names))) == {"a": 2, "b": 2, "a (2)": 2}


def test_a_model_without_names_is_cut_where_one_value_is_live() -> None:
    nodes = []
    for block in range(100):
        x, a, b, c = (f"{name}{block}" for name in "xabc")
        nodes += [
            helper.make_node("Conv", [x], [a]),
            helper.make_node("Relu", [a], [b]),
            helper.make_node("Conv", [b], [c]),
            helper.make_node("Add", [x, c], [f"x{block + 1}"]),
        ]
    index = Index(model(helper.make_graph(nodes, "g", [], [])))
    tree = Hierarchy()
    tree.refresh(index)
    for group in tree.groups.values():
        assert index.nodes[group.nodes[-1]].op_type == "Add"


@pytest.mark.parametrize("length", [LIMIT, LIMIT + 1, 5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_no_level_shows_more_boxes_than_the_limit(length: int) -> None:
    tree = hierarchy(chain(["" for _ in range(length)]))
    boxes: dict[int, int] = {}
    for group in tree.groups.values():
        boxes[group.parent] = boxes.get(group.parent, 0) + 1
    for node_group in tree.group_of.values():
        boxes[node_group] = boxes.get(node_group, 0) + 1
    assert max(boxes.values()) <= LIMIT
    assert (not tree.groups) == (length <= LIMIT)


def test_ids_and_cuts_last_through_an_insertion() -> None:
    index = Index(chain(["" for _ in range(1000)]))
    tree = Hierarchy()
    tree.refresh(index)
    before = dict(tree.group_of)
    proto = index.main.proto.node.add()
    proto.CopyFrom(helper.make_node("Relu", ["v1000"], ["w"]))
    added = index.add_node(index.main, 1000, proto).id
    assert tree.refresh(index)
    assert tree.group_of == before | {added: before[index.main.node_ids[999]]}


def test_units_and_stages_last_when_one_of_them_breaks(corpus: Corpus) -> None:
    """Without its convolution the first block is none any more; the others neither move nor get other ids."""
    model = onnxlab.load(corpus["mobilenet_fp16"])
    tree = Hierarchy()
    tree.refresh(model.graph.index)
    before, groups = dict(tree.group_of), dict(tree.groups)
    model.remove("/f/f.6/Conv", bypass=True)
    tree.refresh(model.graph.index)
    moved = [node for node, group in tree.group_of.items() if group != before[node]]
    assert len(moved) <= 10, "those of the block that broke"
    assert {ident for ident, group in groups.items() if group.kind == "stage"} <= tree.groups.keys()
    model.undo()
    tree.refresh(model.graph.index)
    assert tree.group_of == before


def test_a_small_edit_of_a_big_model_moves_no_other_node() -> None:
    index = Index(chain([f"/net/layer.{i // 50}/op_{i}" for i in range(3000)]))
    tree = Hierarchy()
    tree.refresh(index)
    before = dict(tree.group_of)
    proto = index.main.proto.node.add()
    proto.CopyFrom(helper.make_node("Relu", ["v120"], ["w"]))
    added = index.add_node(index.main, 3000, proto).id
    beside = index.main.node_ids[120]
    assert tree.follow(index, [added, beside], [])
    assert tree.group_of == before | {added: before[index.main.node_ids[119]]}
    assert tree.groups[before[beside]].size == 51
    index.remove_node(index.nodes[added])
    assert tree.follow(index, [beside], [added])
    assert tree.group_of == before
    assert tree.groups[before[beside]].size == 50
    assert not tree.follow(index, [beside], [])


def test_refresh_tells_whether_anything_changed() -> None:
    index = Index(chain(["/a/1", "/a/2", "/b/1", "/b/2"]))
    tree = Hierarchy()
    assert tree.refresh(index)
    assert not tree.refresh(index)
    index.main.proto.node[3].name = "/c/2"
    assert tree.refresh(index)
    assert "b" not in shown(tree)


def test_boxes_of_a_level_form_no_cycle(corpus: Corpus) -> None:
    for path in corpus.values():
        index = Index(onnx.load(path, load_external_data=False))
        tree = Hierarchy()
        tree.refresh(index)
        assert_acyclic(index, tree)


def assert_acyclic(index: Index, tree: Hierarchy) -> None:
    def boxes(node: int) -> list[int]:
        around, group = [~node], tree.group_of[node]
        while group:
            around.append(group)
            group = tree.groups[group].parent
        return around[::-1]

    levels: dict[tuple[int, int], dict[int, set[int]]] = {}
    for node in index.nodes.values():
        for consumer in index.consumers(node):
            left, right = boxes(node.id), boxes(consumer)
            level = 0
            while left[0] == right[0]:
                level = left[0]
                del left[0], right[0]
            levels.setdefault((node.scope, level), {}).setdefault(right[0], set()).add(left[0])
    for level in levels.values():
        graphlib.TopologicalSorter(level).prepare()  # type: ignore[call-overload]


@pytest.mark.slow
def test_ten_thousand_nodes_are_sorted_quickly() -> None:
    index = Index(chain([f"/net/layer.{i // 40}/block.{i // 10}/op_{i}" for i in range(10_000)]))
    seconds = []
    for _ in range(3):
        start = time.process_time()
        Hierarchy().refresh(index)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.25  # 50 ms on a quiet machine


def test_what_weights_alone_make_stands_with_its_reader() -> None:
    """Weights are often cast and scaled at the head of a file, far from the node that reads them."""
    weights = [TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[0]) for i in range(400)]
    nodes = [helper.make_node("Cast", [f"w{i}"], [f"c{i}"], to=TensorProto.FLOAT) for i in range(400)]
    nodes += [helper.make_node("Neg", [f"c{i}"], [f"n{i}"]) for i in range(400)]
    nodes += [helper.make_node("Add", [f"x{i}", f"n{i}"], [f"x{i + 1}"]) for i in range(400)]
    index = Index(model(helper.make_graph(nodes, "g", [], [], weights)))
    tree = Hierarchy()
    tree.refresh(index)
    ids = index.main.node_ids
    for i in range(400):
        assert tree.group_of[ids[i]] == tree.group_of[ids[400 + i]] == tree.group_of[ids[800 + i]] != 0


@pytest.mark.parametrize("parts", [1500, 100_000])
def test_names_of_very_many_parts_make_few_groups_within_each_other(parts: int) -> None:
    names = ["a/" * parts + "b", "a/" * parts + "c", "a/" * 30 + "d", "e"]
    tree = hierarchy(chain(names))
    assert max(tree.path(group).count("/") for group in tree.groups) == MAX_DEPTH - 1


@pytest.mark.parametrize("limit", [5, LIMIT])
def test_one_reader_of_many_sources_stays_with_them(limit: int) -> None:
    """A level of one box and what it reads cannot be cut into parts that form no cycle: it stays as it is."""
    count = limit + 3
    nodes = [helper.make_node("Neg", [f"w{i}"], [f"n{i}"], name=f"/a/Neg_{i}") for i in range(count)]
    nodes.append(helper.make_node("Concat", [f"n{i}" for i in range(count)], ["c"], name="/a/Concat", axis=0))
    nodes += [helper.make_node("Relu", [f"c{i or ''}"], [f"c{i + 1}"], name="/b/Relu") for i in range(3)]
    weights = [helper.make_tensor(f"w{i}", TensorProto.FLOAT, [1], [1.0]) for i in range(count)]
    tree = Hierarchy(limit)
    tree.refresh(Index(model(helper.make_graph(nodes, "g", [], [], weights))))
    assert max(group.size for group in tree.groups.values()) == count + 1
