"""Trees of an ensemble in Python and for the page, against trees that are known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.analysis.tree_ensembles import trees_of
from onnxlab.errors import EditError, RunError
from onnxlab.notebook.panels import ensembles
from onnxlab.notebook.protocol.messages import ProtocolError
from onnxlab.notebook.protocol.methods import METHODS
from onnxlab.notebook.protocol.schema import mismatch

# tree 0: x2 ≤ 0.5 ? 1 : (x0 ≤ 3 ? 2 : 3); tree 1: 4
REGRESSOR: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"],
    "nodes_featureids": [2, 0, 0, 0, 0, 0],
    "nodes_values": [0.5, 0.0, 3.0, 0.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 3, 0, 0, 0],
    "nodes_falsenodeids": [2, 0, 4, 0, 0, 0],
    "target_treeids": [0, 0, 0, 1],
    "target_nodeids": [1, 3, 4, 0],
    "target_ids": [0, 0, 0, 0],
    "target_weights": [1.0, 2.0, 3.0, 4.0],
}
TEXT = """feature 2 ≤ 0.5
  leaf 0: 1
  feature 0 ≤ 3
    leaf 0: 2
    leaf 0: 3"""


def regressor(**changed: Any) -> onnxlab.Model:
    attributes = {"n_targets": 1, **REGRESSOR, **changed}
    nodes = [helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], "forest", domain="ai.onnx.ml", **attributes)]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width]) for name, width in (("x", 3), ("y", 1))
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return onnxlab.load(
        helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=opsets, ir_version=9)
    )


def test_trees_are_measured_and_written() -> None:
    trees = regressor().trees("forest")
    assert (len(trees), trees.depths, trees.splits, trees.leaves) == (2, (2, 0), (2, 0), (3, 1))
    assert [(use.feature, use.splits, use.low, use.high) for use in trees.features] == [(0, 1, 3, 3), (2, 1, 0.5, 0.5)]
    assert (trees.text(0), trees.text(1)) == (TEXT, "leaf 0: 4")
    assert str(trees).startswith("2 trees, 2 splits, 4 leaves, depth 0 to 2\n  feature 0: 1 splits")


def test_the_newest_operator_has_the_same_trees() -> None:
    tensor = onnx.numpy_helper.to_array
    newest = trees_of(
        "TreeEnsemble",
        {
            "tree_roots": [0], "nodes_featureids": [2, 0], "nodes_trueleafs": [1, 1], "nodes_falseleafs": [0, 1],
            "nodes_truenodeids": [0, 1], "nodes_falsenodeids": [1, 2], "leaf_targetids": [0, 0, 0],
            "nodes_modes": tensor(helper.make_tensor("", TensorProto.UINT8, [2], [0, 0])),
            "nodes_splits": tensor(helper.make_tensor("", TensorProto.FLOAT, [2], [0.5, 3])),
            "leaf_weights": tensor(helper.make_tensor("", TensorProto.FLOAT, [3], [1, 2, 3])),
        },
    )  # fmt: skip
    assert (newest.depths, newest.text()) == ((2,), TEXT)


def test_the_page_gets_sizes_features_and_a_tree() -> None:
    model = regressor()
    node = model.nodes["forest"].id
    answer = ensembles.trees(model, node, None)
    assert mismatch(METHODS["trees"].answer, answer, "trees") == ""
    assert (answer["count"], answer["depth"], answer["text"]) == (2, [0, 2], TEXT)
    assert ensembles.trees(model, node, 1)["text"] == "leaf 0: 4"
    with pytest.raises(ProtocolError, match="no tree 2"):
        ensembles.trees(model, node, 2)


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes_falsenodeids": [0, 0, 4, 0, 0, 0]},
        {"nodes_truenodeids": [2, 0, 3, 0, 0, 0]},
        {"nodes_modes": ["LEAF"]},
        {"nodes_featureids": [2]},
        {"target_ids": [-9, 0, 0, 0]},
    ],
    ids=["a cycle", "a node in two places", "few modes", "few features", "a target below zero"],
)
def test_attributes_that_hold_no_trees_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(EditError, match="hold no trees"):
        regressor(**changed).trees("forest")


def _changed(name: str, change: Callable[[list[Any]], Any]) -> dict[str, Any]:
    entries = list(REGRESSOR[name])
    change(entries)
    return {name: entries}


def _set(position: int, entry: Any) -> Callable[[list[Any]], Any]:
    return lambda entries: entries.__setitem__(position, entry)


NO_TREES = [
    *(_changed(name, list.pop) for name in REGRESSOR),
    *(_changed(name, lambda entries: entries.append(entries[0])) for name in REGRESSOR),
    _changed("nodes_truenodeids", _set(0, 0)),
    _changed("nodes_truenodeids", _set(0, 7)),
    _changed("nodes_falsenodeids", _set(0, -1)),
    _changed("nodes_treeids", _set(2, 9)),
    _changed("nodes_nodeids", _set(2, 1)),
    _changed("nodes_featureids", _set(0, -1)),
    _changed("nodes_modes", _set(0, "BRANCH_X")),
    _changed("target_nodeids", _set(0, 7)),
    _changed("target_treeids", _set(0, 7)),
    _changed("target_ids", _set(0, 1)),
    _changed("target_ids", _set(0, -1)),
]  # fmt: skip


@pytest.mark.parametrize("changed", NO_TREES, ids=lambda changed: f"{next(iter(changed))}-{len(*changed.values())}")
def test_check_and_run_refuse_lists_that_onnxruntime_refuses(changed: dict[str, Any], ort_run: Any) -> None:
    model, rows = regressor(**changed), {"x": np.zeros((2, 3), np.float32)}
    with pytest.raises(Exception, match=r"(?i)tree|node|target"):
        ort_run(model.to_bytes(), rows)
    (problem,) = model.check()
    assert (problem.code, problem.severity, problem.node) == ("tree-ensemble", "error", model.nodes["forest"].id)
    for providers in (None, ["numpy"]):
        with pytest.raises(RunError):
            model.run(rows, providers=providers)


def test_a_cycle_of_several_nodes_is_told_and_a_leaf_of_two_parents_is_none() -> None:
    cycle, shared = {"nodes_falsenodeids": [2, 0, 0, 0, 0, 0]}, {"nodes_falsenodeids": [2, 0, 1, 0, 0, 0]}
    (problem,) = regressor(**cycle).check()
    assert "the trees have a cycle: some row never reaches a leaf" in problem.message
    assert regressor(**shared).check() == []
    both_ways = {"nodes_truenodeids": [2, 0, 3, 0, 0, 0]}
    assert regressor(**both_ways).check() == []


def test_what_is_no_tree_in_the_newest_operator_is_told() -> None:
    lists: dict[str, Any] = {
        "tree_roots": [0], "nodes_featureids": [2, 0], "nodes_trueleafs": [1, 1], "nodes_falseleafs": [0, 1],
        "nodes_truenodeids": [0, 1], "nodes_falsenodeids": [1, 2], "leaf_targetids": [0, 0, 0],
        "nodes_modes": helper.make_tensor("", TensorProto.UINT8, [2], [0, 0]),
        "nodes_splits": helper.make_tensor("", TensorProto.FLOAT, [2], [0.5, 3]),
        "leaf_weights": helper.make_tensor("", TensorProto.FLOAT, [3], [1, 2, 3]), "n_targets": 1,
    }  # fmt: skip
    for changed, words in (
        ({}, ""),
        ({"nodes_falsenodeids": [0, 2]}, "have a cycle"),
        ({"nodes_falsenodeids": [1, 3]}, "nodes_falsenodeids of a leaf is 3: expected 0 to 2"),
        ({"tree_roots": [2]}, "the root of a tree is 2"),
        ({"leaf_targetids": [0, 0, -1]}, "the target of a leaf is -1"),
        ({"n_targets": 0}, "n_targets is 0"),
        ({"nodes_modes": helper.make_tensor("", TensorProto.UINT8, [2], [0, 8])}, "a node is 8: expected 0 to 6"),
    ):
        node = helper.make_node("TreeEnsemble", ["x"], ["y"], "forest", domain="ai.onnx.ml", **{**lists, **changed})
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width]) for name, width in (("x", 3), ("y", 1))
        ]
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 5)]
        graph = helper.make_graph([node], "g", ends[:1], ends[1:])
        problems = onnxlab.load(helper.make_model(graph, opset_imports=opsets)).check()
        assert [problem.code for problem in problems] == (["tree-ensemble"] if words else [])
        assert all(words in problem.message for problem in problems)
