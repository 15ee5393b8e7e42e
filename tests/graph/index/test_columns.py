"""Names and readers are found in the columns of a model as it was read, whatever was edited meanwhile."""

import random
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph import edits
from onnxlab.graph.edit import model_graph
from onnxlab.graph.index.columns import Search
from onnxlab.graph.index.readonly_index import GlanceIndex
from onnxlab.graph.index.records import ValueRecord


@pytest.fixture(autouse=True)
def columns_of_small_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the columns of small models too, as those of many nodes are."""
    monkeypatch.setattr(model_graph, "_MANY", 0)


def load(folder: Path, names: list[str], outputs: list[str] | None = None) -> onnxlab.Model:
    """A chain of nodes with these names."""
    values = outputs or [f"v{number}" for number in range(len(names))]
    read = ["x", *values]
    nodes = [
        helper.make_node("Transpose", [source], [value], name, perm=[1, 0])
        for source, value, name in zip(read, values, names, strict=False)
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 4]) for name in ("x", values[-1]))
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]))
    path = folder / "chain.onnx"
    onnx.save(model, path)
    return onnxlab.load(path)


def table(model: onnxlab.Model) -> dict[str, list[int]]:
    idents: dict[str, list[int]] = {}
    for ident in model.graph.main.node_ids:
        idents.setdefault(model.graph.nodes[ident].name, []).append(ident)
    return idents


def readers(model: onnxlab.Model, value: str) -> list[str]:
    graph = model.graph
    return sorted(graph.nodes[node].name for node, _ in graph.values[graph.resolve_value(value)].uses)


def has_uses(value: ValueRecord) -> bool:
    try:
        object.__getattribute__(value, "uses")
    except AttributeError:
        return False
    return True


def has_table(model: onnxlab.Model) -> bool:
    return bool(model.graph.names._by_name)


def test_a_first_rename_and_attribute_make_no_table_and_note_no_readers(tmp_path: Path) -> None:
    model = load(tmp_path, [f"n{number}" for number in range(40)])
    graph = model.graph
    edits.rename_node(graph, graph.nodes[graph.resolve_node("n7")], "other")
    assert not has_table(model)
    assert not any(has_uses(value) for value in graph.values.values())
    with pytest.raises(EditError, match="called 'n8' already"):
        edits.rename_node(graph, graph.nodes[graph.resolve_node("other")], "n8")
    edits.rename_node(graph, graph.nodes[graph.resolve_node("n8")], "n7")  # the name is free by now
    assert table(model)["n7"] == [graph.resolve_node("n7")]
    model.undo(to=0)
    assert table(model)["n7"] == [graph.resolve_node("n7")]


def test_readers_are_those_of_before_the_first_rewiring(tmp_path: Path) -> None:
    model = load(tmp_path, [f"n{number}" for number in range(9)])
    graph = model.graph
    edits.rename_node(graph, graph.nodes[graph.main.node_ids[0]], "first")
    model.value("v3").replace_uses("v1")
    assert readers(model, "v3") == []
    assert readers(model, "v1") == ["n2", "n4"]
    model.undo()
    assert readers(model, "v3") == ["n4"]


def test_equal_names_and_names_that_look_like_fields(tmp_path: Path) -> None:
    tricky = "a\x12\x02v1"  # before the next name, it ends like an output called "v1"
    model = load(tmp_path, ["twin", "n1", tricky, "twin", "", "n5", "é" * 70])
    for name, ids in table(model).items():
        assert model.graph.names.nodes_called(model.graph.main, name) == (ids if name else [])
        assert model.graph.names.tells(model.graph.main, name) == (len(ids) == 1 and bool(name))
    with pytest.raises(NameLookupError, match="2 nodes are called 'twin'"):
        model.graph.resolve_node("twin")


def test_an_output_that_ends_like_another_one_hides_no_equal_name(tmp_path: Path) -> None:
    model = load(tmp_path, ["a", "same", "same"], ["v", "w", "q\x12\x01w"])
    assert len(model.graph.names.nodes_called(model.graph.main, "same")) == 2


@pytest.mark.parametrize("seed", range(12))
def test_after_any_edits_the_search_says_what_a_table_would(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    pool = [f"n{number}" for number in range(14)] + ["twin", "twin", "free", "x/y"]
    model = load(tmp_path, rng.sample(pool, 16))
    graph = model.graph
    for _ in range(8):
        node = graph.nodes[rng.choice(list(graph.main.node_ids))]
        deed = rng.randrange(4)
        if deed == 0:
            name = rng.choice(pool)
            if not table(model).get(name):
                edits.rename_node(graph, node, name)
        elif deed == 1:
            model.node(node.id).remove(bypass=True)
        elif deed == 2:
            model.undo()
        else:
            edits.set_attribute(graph, node, "perm", [0, 1])
        name = rng.choice(pool)
        assert graph.names.nodes_called(graph.main, name) == table(model).get(name, [])


def test_readers_are_the_same_before_and_after_they_are_sorted(tmp_path: Path) -> None:
    model = load(tmp_path, [f"n{number}" for number in range(200)])
    index = GlanceIndex(model.proto)
    search = Search(index.columns)
    for _ in range(2):  # the second time they are sorted
        for value in index.values.values():
            reads = [(node.id, slot, vid) for node in index.nodes.values() for slot, vid in enumerate(node.inputs)]
            assert search.readers(value.id) == [read[:2] for read in reads if read[2] == value.id]


def test_columns_say_what_the_nodes_read_and_make(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Clip", ["x", "", "late"], ["a"], "n"),  # reads what is made later
        helper.make_node("Split", ["a"], ["b", "c", "d"], "n"),
        helper.make_node("Dropout", ["b"], ["", "late"]),
        helper.make_node("Relu", ["nothing"], ["x"]),  # makes what is an input
        helper.make_node("Relu", ["e"], ["f"]),
        helper.make_node("Identity", [], ["e", "e"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    index = GlanceIndex(helper.make_model(helper.make_graph(nodes, "g", [x], [])))
    columns = index.columns
    assert columns.nodes.tolist() == list(index.nodes)
    assert columns.rows == {index.main.id: (0, len(nodes))}
    bounds = columns.starts.tolist()
    plain = []
    for row, node in enumerate(index.nodes.values()):
        assert columns.inputs[bounds[row] : bounds[row + 1]].tolist() == node.inputs
        outputs = columns.odd.get(node.id, list(range(node.id + 1, node.id + 1 + columns.makes[row])))
        assert outputs == node.outputs
        plain.append(node.id not in columns.odd and 0 not in node.inputs)
    assert plain == [False, True, False, False, True, False]
    assert (columns.arities() >= 0).tolist() == plain
    assert len(set(columns.arities()[[1, 4]].tolist())) == 2


def test_many_lookups_make_a_table(tmp_path: Path) -> None:
    model = load(tmp_path, ["a", "b", "a"])
    main = model.graph.main
    for _ in range(2000):
        assert model.graph.names.nodes_called(main, "a") == [main.node_ids[0], main.node_ids[2]]
    assert has_table(model)
    assert model.graph.names.nodes_called(main, "half \ud800") == []
