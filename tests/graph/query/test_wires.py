"""Arrays of wires say what loops over the records say, on graphs with all that is odd about files."""

import random
from collections.abc import Iterator

import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.graph.index.index import Index
from onnxlab.graph.index.name_scopes import NameScopes
from onnxlab.graph.index.readonly_index import GlanceIndex
from onnxlab.graph.index.rows import Rows
from onnxlab.graph.query import sources
from onnxlab.graph.query.hierarchy import Hierarchy
from onnxlab.graph.query.hierarchy_levels import BoxRow, Level
from onnxlab.graph.query.wires import Readers, Wires
from onnxlab.render import picture
from tests.support.corpus import Corpus


def random_model(seed: int, count: int = 40) -> onnx.ModelProto:
    """Nodes in any order, with constants, weights, absent inputs, equal outputs, values made twice, and bodies."""
    rng = random.Random(seed)
    values = ["x", "w0", "w1", "w2"]
    nodes = []
    for number in range(count):
        output = rng.choice(values) if rng.random() < 0.03 else f"v{number}"
        read = rng.choices([*values[-6:], "w0", "w1", ""], k=rng.randrange(4))
        kind = rng.choice(["Constant", "Add", "Relu"])
        outputs = [output, "", f"u{number}"][: rng.choice([1, 1, 1, 2, 3])]
        node = helper.make_node(kind, [] if kind == "Constant" else read, outputs, name=f"n{number}")
        if rng.random() < 0.1:
            inner = [
                helper.make_node("Relu", [rng.choice(values)], ["i"]),
                helper.make_node("Neg", ["i"], [f"o{number}"]),
            ]
            body = helper.make_graph(inner, "b", [], [helper.make_tensor_value_info(f"o{number}", 1, None)])
            node = helper.make_node("If", ["x"], outputs, name=f"n{number}", then_branch=body, else_branch=body)
        nodes.append(node)
        values.append(output)
    if seed % 2:
        for _ in range(6):
            nodes.insert(rng.randrange(len(nodes)), nodes.pop(rng.randrange(len(nodes))))
    weights = [helper.make_tensor(f"w{at}", TensorProto.FLOAT, [1], [1.0]) for at in range(3)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", values[-1]))
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights))


def indexes(proto: onnx.ModelProto) -> Iterator[Index]:
    yield GlanceIndex(proto)
    index = GlanceIndex(proto)
    index.before_rewiring()  # from now on the columns are not read
    yield index


@pytest.mark.parametrize("seed", range(40))
def test_wires_say_what_loops_say(seed: int) -> None:
    for index in indexes(random_model(seed)):
        for scope in index.scopes.values():
            loops, few = sources.sources_of(index, scope, None)
            arrays, many = sources.sources_of(index, scope, Wires(index, scope))
            assert arrays.lists == loops.lists
            assert [part.tolist() for part in arrays.columns] == [part.tolist() for part in loops.columns]
            assert many == few


@pytest.mark.parametrize("seed", range(20))
def test_columns_have_the_rows_of_the_records(seed: int) -> None:
    index = GlanceIndex(random_model(seed))
    for scope in index.scopes.values():
        read, expected = index.rows(scope), Rows.of([index.nodes[node] for node in scope.node_ids])
        assert [part.tolist() for part in read] == [part.tolist() for part in expected]


def test_columns_have_the_rows_of_the_records_of_the_corpus(corpus: Corpus) -> None:
    for path in corpus.values():
        index = GlanceIndex(onnx.load(path, load_external_data=False))
        for scope in index.scopes.values():
            read, expected = index.rows(scope), Rows.of([index.nodes[node] for node in scope.node_ids])
            assert [part.tolist() for part in read] == [part.tolist() for part in expected]


@pytest.mark.parametrize("seed", range(20))
def test_spans_of_a_piece_are_those_of_its_nodes(seed: int) -> None:
    rng = random.Random(seed)
    readers = Readers([sorted(rng.choices(range(at + 1, 61), k=rng.randrange(3))) for at in range(60)] + [[]])
    level = Level(readers, bytearray(61), bytearray(61), None, NameScopes())
    for _ in range(10):
        low = rng.randrange(60)
        high = rng.randrange(low + 1, 62)
        quick = level.spans(BoxRow(range(low, high), {}))
        plain = level.spans(BoxRow(list(range(low, high)), {}))
        assert [part.tolist() for part in quick] == [part.tolist() for part in plain]


@pytest.mark.parametrize("most", [3, 20, 120])
@pytest.mark.parametrize("scoped", [False, True])
def test_groups_that_are_cut_when_asked_for_make_the_same_picture(
    most: int, scoped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"/layer.{at // 900}/step_{at}" if scoped else f"step_{at}" for at in range(5000)]
    nodes = [helper.make_node("Relu", [f"v{at}"], [f"v{at + 1}"], name) for at, name in enumerate(names)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("v0", "v5000"))
    model = onnxlab.load(helper.make_model(helper.make_graph(nodes, "g", [x], [y])))
    lazy = picture.picture(model, most)
    refresh = Hierarchy.refresh
    monkeypatch.setattr(Hierarchy, "refresh", lambda self, graph, lazily: refresh(self, graph))
    assert picture.picture(model, most) == lazy
    assert len(lazy.boxes) > 3


def test_names_say_paths_where_one_was_read_or_given() -> None:
    def says(name: str, note: str = "") -> bool:
        node = helper.make_node("Relu", ["x"], ["y"], name)
        if note:
            node.metadata_props.add(key="namespace", value=note)
        return GlanceIndex(helper.make_model(helper.make_graph([node], "g", [], []))).may_say_paths

    assert not says("plain")
    assert says("a/b")
    assert says("plain", ": M/m: N/r: aten.relu")
    chain = [helper.make_node("Relu", [f"v{at}"], [f"v{at + 1}"], f"n{at}") for at in range(20)]
    model = onnxlab.load(helper.make_model(helper.make_graph(chain, "g", [], [])))
    for at in range(10):
        model.nodes[at].name = f"inner/n{at}"
    assert "inner" in model.to_svg(boxes=12)


def test_homes_follow_an_edit() -> None:
    chain = [helper.make_node("Relu", [f"v{at}"], [f"v{at + 1}"], f"n{at}") for at in range(3000)]
    index = GlanceIndex(helper.make_model(helper.make_graph(chain, "g", [], [])))
    hierarchy = Hierarchy()
    hierarchy.refresh(index)
    order = index.rows(index.main).nodes
    homes = hierarchy.homes(index.main.id, order)
    assert homes.tolist() == [hierarchy.group_of[node] for node in order.tolist()]
    gone = int(order[7])
    assert hierarchy.follow(index, [], [gone])
    expected = [0 if at == 7 else home for at, home in enumerate(homes.tolist())]
    assert hierarchy.homes(index.main.id, order).tolist() == expected
    assert hierarchy.homes(index.main.id, order[::-1]).tolist() == expected[::-1]
