"""Trees of an ensemble in Python and for the page, against trees that are known."""

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.analysis.tree_ensembles import trees_of
from onnxlab.errors import EditError
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
    attributes = {**REGRESSOR, **changed}
    nodes = [helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], "forest", domain="ai.onnx.ml", **attributes)]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width]) for name, width in (("x", 3), ("y", 1))
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return onnxlab.load(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=opsets))


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
