"""Groups made, renamed and dissolved by hand: metadata of nodes, with undo, saved with the model."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab import Model
from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph.index.name_scopes import BY_HAND
from onnxlab.graph.query.hierarchy import Hierarchy

DIGITS = Path(onnxlab.__file__).parent / "data" / "digits.onnx"
PAIR = ["/stem/bn/BatchNormalization", "/stem/relu/Relu"]


@pytest.fixture
def model() -> Model:
    return onnxlab.load(DIGITS)


def chain(length: int = 6) -> Model:
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(length)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("v0", f"v{length}")]
    return onnxlab.load(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:])))


def test_a_group_is_renamed_and_undone_to_the_same_bytes(model: Model) -> None:
    before, nodes = model.proto.SerializeToString(), model.groups["block1"].nodes
    assert model.groups["block1"].rename("first block") == "first block"
    assert model.groups["first block"].nodes == nodes
    assert "block1" not in model.groups
    assert model.groups["first block"].rename("one more") == "one more"
    model.undo()
    model.undo()
    assert model.proto.SerializeToString() == before


def test_a_group_by_hand_is_saved_and_read_again(model: Model, tmp_path: Path) -> None:
    model.group_nodes(PAIR, "norm and relu")
    model.save(tmp_path / "grouped.onnx")
    again = onnxlab.load(tmp_path / "grouped.onnx")
    assert [node.name for node in again.groups["stem/norm and relu"].nodes] == PAIR
    onnx.checker.check_model(again.proto)


def test_results_are_the_same(model: Model) -> None:
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    before = model.run({"image": image}, exact=True)
    model.group_nodes(PAIR, "pair")
    after = model.run({"image": image}, exact=True)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_group_dissolves_and_can_be_brought_back(model: Model) -> None:
    paths = list(model.groups)
    model.groups["block1"].dissolve()
    model.groups["block2"].dissolve()
    assert list(model.groups) == [path for path in paths if path not in ("block1", "block2")]
    assert model.clear_groups() == 15
    assert list(model.groups) == paths


def test_dissolving_a_group_by_hand_leaves_no_metadata() -> None:
    model = chain()
    model.groups.make(["n1", "n2"], "middle")
    model.groups["middle"].dissolve()
    assert not model.groups
    assert not any(node.metadata_props for node in model.proto.graph.node)


def test_groups_of_one_name_stay_apart_and_may_be_nested() -> None:
    model = chain(8)
    assert model.groups.make(["n0", "n1"], "pair") == "pair"
    model.groups.make(["n2", "n3"], "pair")
    assert list(model.groups) == ["pair", "pair (2)"]
    assert model.groups.make(["n0", "n1", "n2", "n3"], "both") == "both"
    assert {path: len(group.nodes) for path, group in model.groups.items()} == {
        "both": 4,
        "both/pair": 2,
        "both/pair (2)": 2,
    }
    model.groups["both"].dissolve()
    assert list(model.groups) == ["pair", "pair (2)"]


def test_a_selection_with_a_hole_is_refused(model: Model) -> None:
    with pytest.raises(EditError, match="select what is between too"):
        model.group_nodes([PAIR[0], "/block1/relu2/Relu"], "x")
    assert not model.history


def test_a_group_in_a_circle_with_another_is_refused() -> None:
    """Two groups, each of which reads the other, though no path leaves either of them and comes back."""
    nodes = [
        helper.make_node("Neg", ["x"], ["a"], name="a"),
        helper.make_node("Abs", ["x"], ["b"], name="b"),
        helper.make_node("Exp", ["a"], ["c"], name="c"),
        helper.make_node("Log", ["b"], ["d"], name="d"),
    ]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xcd"]
    model = onnxlab.load(helper.make_model(helper.make_graph(nodes, "g", infos[:1], infos[1:])))
    model.group_nodes(["a", "d"], "outer")
    with pytest.raises(EditError, match="'outer' reads some of them"):
        model.group_nodes(["b", "c"], "inner")
    assert list(model.groups) == ["outer"]


@pytest.mark.parametrize("name", ["", "a/b", "a#2", " ", "x" * 300])
def test_bad_names_are_refused(model: Model, name: str) -> None:
    with pytest.raises(EditError, match="a group's name"):
        model.group_nodes(PAIR, name)


def test_nodes_that_are_no_group_cannot_be_dissolved(model: Model) -> None:
    with pytest.raises(EditError, match="no group holds just these"):
        model.ungroup_nodes(PAIR)


def test_an_unknown_group_is_refused_with_what_is_near(model: Model) -> None:
    with pytest.raises(NameLookupError, match="'block1'"):
        model.groups["blok1"]


def test_any_text_in_the_metadata_of_a_file_leaves_groups_that_hold_each_node_once() -> None:
    for texts in ("/ // # a//b #2/#2 a", "a b a b a b", "a/b b/a a # b a/b"):
        model = chain()
        for node, text in zip(model.nodes, texts.split(), strict=True):
            node.metadata[BY_HAND] = text
        hierarchy = Hierarchy()
        hierarchy.refresh(model.graph.index)
        inside = [node for group in hierarchy.groups.values() for node in group.nodes]
        assert len(inside) == len(set(inside))
        assert set(hierarchy.group_of) == set(model.graph.nodes)


def test_groups_are_ids_for_life() -> None:
    model = chain(12)
    hierarchy = Hierarchy()
    hierarchy.refresh(model.graph.index)
    model.group_nodes(["n1", "n2"], "pair")
    changed = {node.id: node for node in model.graph.nodes.values()}
    assert hierarchy.is_stale(changed[model.nodes["n1"].id])
    hierarchy.refresh(model.graph.index)
    (before,) = [group.id for group in hierarchy.groups.values()]
    model.group_nodes(["n5", "n6"], "other")
    hierarchy.refresh(model.graph.index)
    assert before in hierarchy.groups
