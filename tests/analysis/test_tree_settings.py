"""Settings of tree ensembles for which ONNX Runtime refuses a model are told by `check` and refused by `run`."""

from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.errors import RunError
from tests.support.oracle import new_session

X = np.float32([[0, 0], [1, 1]])


def tensor(values: Any, dtype: Any = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype), "t")


NODES = {
    "nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_featureids": [0] * 3, "nodes_values": [0.5, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
}  # fmt: skip
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "TreeEnsembleRegressor": NODES | {
        "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0],
        "n_targets": 1,
    },
    "TreeEnsembleClassifier": NODES | {
        "class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 1], "class_weights": [1.0, 2.0],
        "classlabels_int64s": [0, 1],
    },
    "TreeEnsemble": {
        "n_targets": 1, "tree_roots": [0], "nodes_featureids": [0], "nodes_splits": tensor([0.5]),
        "nodes_modes": tensor([0], np.uint8), "nodes_truenodeids": [0], "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1], "nodes_falseleafs": [1], "leaf_targetids": [0, 0], "leaf_weights": tensor([1, 2]),
    },
}  # fmt: skip
REGRESSOR, CLASSIFIER, NEWEST = ATTRIBUTES
THREE = {"classlabels_int64s": [0, 1, 2]}
MEMBER = {"nodes_modes": tensor([6], np.uint8)}
TWO = {"n_targets": 2, "target_ids": [0, 1]}


def made(op_type: str, changed: dict[str, Any]) -> bytes:
    """A model of a node with these attributes besides its own; None takes one away."""
    attributes = {name: value for name, value in (ATTRIBUTES[op_type] | changed).items() if value is not None}
    names = ["y", "scores"] if op_type == CLASSIFIER else ["y"]
    node = helper.make_node(op_type, ["x"], names, domain="ai.onnx.ml", **attributes)
    return model_of(node, 5 if op_type == NEWEST else 3)


def model_of(node: NodeProto, version: int) -> bytes:
    """A model of this node, on x [n, 2]."""
    labels = [helper.make_tensor_value_info(name, TensorProto.INT64, [None]) for name in node.output[:-1]]
    scores = helper.make_tensor_value_info(node.output[-1], TensorProto.FLOAT, [None, None])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    graph = helper.make_graph([node], "g", [x], [*labels, scores])
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


@pytest.mark.parametrize(("op_type", "changed", "words"), [
    (REGRESSOR, {"nodes_values_as_tensor": tensor([0.5, 0, 0])}, "both nodes_values and nodes_values_as_tensor"),
    (REGRESSOR, {"target_weights_as_tensor": tensor([1, 2])}, "both target_weights and"),
    (REGRESSOR, {"base_values": [1.0], "base_values_as_tensor": tensor([1])}, "both base_values and"),
    (REGRESSOR, {"nodes_hitrates": [1.0] * 3, "nodes_hitrates_as_tensor": tensor([1, 1, 1])}, "both nodes_hitrates"),
    (CLASSIFIER, {"class_weights_as_tensor": tensor([1, 2])}, "both class_weights and"),
    (CLASSIFIER, {"nodes_values_as_tensor": tensor([0.5, 0, 0])}, "both nodes_values and"),
    (REGRESSOR, {"nodes_values": None, "nodes_values_as_tensor": tensor([0.5, 0, 0], np.float64)}, "element type"),
    (REGRESSOR, {"base_values": [1.0, 2.0]}, "2 base_values; expected 0 or 1"),
    (REGRESSOR, TWO | {"base_values": [1.0]}, "1 base_values; expected 0 or 2"),
    (REGRESSOR, TWO | {"base_values_as_tensor": tensor([1, 2, 3])}, "3 base_values_as_tensor; expected 0 or 2"),
    (CLASSIFIER, {"base_values": [1.0] * 3}, "3 base_values; expected 0, 1 or 2"),
    (CLASSIFIER, THREE | {"base_values": [1.0]}, "1 base_values; expected 0 or 3"),
    (CLASSIFIER, THREE | {"base_values": [1.0] * 4}, "4 base_values; expected 0 or 3"),
    (REGRESSOR, {"aggregate_function": "MEAN"}, "aggregate_function is 'MEAN'"),
    (REGRESSOR, {"aggregate_function": "sum"}, "expected one of AVERAGE, SUM, MIN, MAX"),
    (REGRESSOR, {"post_transform": "TANH"}, "post_transform is 'TANH'"),
    (CLASSIFIER, {"post_transform": ""}, "post_transform is ''"),
    (REGRESSOR, {"n_targets": None}, "n_targets is not set"),
    (REGRESSOR, {"n_targets": 0}, "n_targets is 0"),
    (NEWEST, {"n_targets": None}, "n_targets is not set"),
    (NEWEST, {"aggregate_function": 7}, "aggregate_function is 7"),
    (NEWEST, {"aggregate_function": -1}, "aggregate_function is -1"),
    (NEWEST, {"post_transform": 5}, "post_transform is 5"),
    (NEWEST, {"post_transform": -1}, "post_transform is -1"),
    (NEWEST, MEMBER, "no values for it"),
    (NEWEST, MEMBER | {"membership_values": tensor([])}, "no values for it"),
    (NEWEST, MEMBER | {"membership_values": tensor([np.nan, 1, np.nan])}, "no values for it"),
    (NEWEST, {"nodes_modes": tensor([9], np.uint8)}, "the mode of a node is 9"),
])  # fmt: skip
def test_refused_settings(op_type: str, changed: dict[str, Any], words: str) -> None:
    data = made(op_type, changed)
    with pytest.raises(Exception, match=r"ONNXRuntimeError"):
        new_session(data, None)
    model = onnxlab.load(data)
    (problem,) = [problem for problem in model.check() if problem.severity == "error"]
    assert problem.code == "tree-ensemble"
    assert words in str(problem)
    for options in ({}, {"providers": ["numpy"]}, {"exact": True}):
        with pytest.raises(RunError, match=op_type):
            model.run({"x": X}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("op_type", "changed"), [
    *[(op_type, {}) for op_type in ATTRIBUTES],
    (REGRESSOR, {"base_values": [1.0]}),
    (REGRESSOR, TWO | {"base_values": [1.0, 2.0], "aggregate_function": "MAX", "post_transform": "LOGISTIC"}),
    (REGRESSOR, {"nodes_values": None, "nodes_values_as_tensor": tensor([0.5, 0, 0])}),
    (CLASSIFIER, {"base_values": [1.0, 2.0]}),
    (CLASSIFIER, THREE | {"base_values": [1.0] * 3, "class_ids": [0, 2]}),
    (NEWEST, {"aggregate_function": 3}),
    (NEWEST, MEMBER | {"membership_values": tensor([1, 2])}),
    (NEWEST, MEMBER | {"membership_values": tensor([0, np.nan, 2, np.nan])}),
])  # fmt: skip
def test_settings_that_run(op_type: str, changed: dict[str, Any]) -> None:
    data = made(op_type, changed)
    expected, model = new_session(data, None).run(None, {"x": X}), onnxlab.load(data)
    assert model.check() == []
    for theirs, ours in zip(expected, model.run({"x": X}).values(), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-6)


@pytest.mark.parametrize("op_type", ["LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor"])
def test_unknown_transforms_of_other_models(op_type: str) -> None:
    attributes: dict[str, Any] = {"coefficients": [1.0, 2.0], "post_transform": "TANH"}
    if op_type.startswith("SVM"):
        attributes |= {
            "support_vectors": [1.0, 0, 0, 1],
            "rho": [0.0],
            "kernel_type": "LINEAR",
            "kernel_params": [1.0, 0.0, 3.0],
        }
        attributes |= {"vectors_per_class": [1, 1]} if "Class" in op_type else {"n_supports": 2}
    names = ["y", "scores"] if "Classifier" in op_type else ["y"]
    attributes |= {"classlabels_ints": [0, 1]} if len(names) > 1 else {}
    node = helper.make_node(op_type, ["x"], names, domain="ai.onnx.ml", **attributes)
    data = model_of(node, 3)
    with pytest.raises(Exception, match=r"post_eval_transform"):
        new_session(data, None)
    (problem,) = onnxlab.load(data).check()
    assert (problem.code, problem.severity) == ("bad-attribute", "error")
    assert "post_transform is 'TANH'" in problem.message
