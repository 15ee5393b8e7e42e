from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from tests.ops.support.random_ml import check_everywhere, node_model
from tests.ops.support.single_node import agree, floats, run

ML = {"opset": 1, "domain": "ai.onnx.ml"}


def forest(draw_seed, trees, depth, features):
    """Node attributes of random full trees, and the (tree, node) of every leaf."""
    rng = np.random.default_rng(draw_seed)
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    nodes = {name: [] for name in names}
    leaves = []
    for tree in range(trees):
        inner = 2**depth - 1
        for node in range(2 * inner + 1):
            leaf = node >= inner
            row = (tree, node, int(rng.integers(features)), float(np.float32(rng.normal())),
                   "LEAF" if leaf else "BRANCH_LEQ", *((0, 0) if leaf else (2 * node + 1, 2 * node + 2)))  # fmt: skip
            for column, item in zip(nodes.values(), row, strict=True):
                column.append(item)
            if leaf:
                leaves.append((tree, node))
    return {f"nodes_{name}": items for name, items in nodes.items()}, leaves


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 99), classes=st.integers(2, 4), positive=st.booleans(),
       transform=st.sampled_from(["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]))  # fmt: skip
def test_tree_classifiers(seed, classes, positive, transform):
    nodes, leaves = forest(seed, trees=3, depth=3, features=4)
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=len(leaves))
    ids = rng.integers(classes, size=len(leaves)) if classes > 2 else np.full(len(leaves), seed % 2)
    agree("TreeEnsembleClassifier", floats(20, 4, seed=seed), outputs=2, **nodes, post_transform=transform, rtol=1e-4,
          class_treeids=[t for t, _ in leaves], class_nodeids=[n for _, n in leaves], class_ids=ids.tolist(),
          class_weights=(np.abs(weights) if positive else weights).tolist(),
          classlabels_int64s=list(range(10, 10 + classes)), **ML)  # fmt: skip


@pytest.mark.parametrize("rows", [1, 7, 600])
@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"])
def test_leaves_of_few_rows_and_of_many(rows, mode):
    """Few rows meet all nodes at once, many go down step by step; what feature a leaf names does not matter to few."""
    nodes, leaves = forest(rows, trees=3, depth=4, features=4)
    nodes["nodes_modes"] = [mode if kind != "LEAF" else kind for kind in nodes["nodes_modes"]]
    nodes["nodes_values"] = [float(round(value)) for value in nodes["nodes_values"]]
    nodes["nodes_featureids"] = [99 if kind == "LEAF" and rows < 9 else feature for kind, feature in zip(
        nodes["nodes_modes"], nodes["nodes_featureids"], strict=True)]  # fmt: skip
    trees, numbers = zip(*leaves, strict=True)
    targets, weights = zip(*((number % 2, 0.5 * number) for number in range(len(leaves))), strict=True)
    x = np.round(floats(rows, 4))
    agree("TreeEnsembleRegressor", x, **nodes, n_targets=2, target_treeids=list(trees), target_nodeids=list(numbers),
          target_ids=list(targets), target_weights=list(weights), rtol=1e-4, **ML)  # fmt: skip


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressors(aggregate):
    nodes, leaves = forest(1, trees=4, depth=3, features=3)
    agree("TreeEnsembleRegressor", floats(20, 3), **nodes, n_targets=2, aggregate_function=aggregate, rtol=1e-4,
          base_values=[0.5, -1.0], target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves],
          target_ids=[place % 2 for place in range(len(leaves))], target_weights=floats(len(leaves)).tolist(),
          **ML)  # fmt: skip


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_linear_classifiers(transform, classes):
    agree("LinearClassifier", floats(6, 4), outputs=2, coefficients=floats(classes * 4, seed=1).tolist(), rtol=1e-4,
          intercepts=floats(classes).tolist(), classlabels_ints=list(range(max(2, classes))), post_transform=transform,
          **ML)  # fmt: skip


def test_linear_regressor():
    agree(
        "LinearRegressor", floats(6, 4), coefficients=floats(8, seed=1).tolist(), intercepts=[1.0, 2.0], targets=2, **ML
    )


@pytest.mark.parametrize("kernel_type", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel_type):
    parameters = {"kernel_type": kernel_type, "kernel_params": [0.3, 0.2, 2.0]}
    agree("SVMRegressor", floats(5, 3), coefficients=floats(4).tolist(), support_vectors=floats(12, seed=1).tolist(),
          n_supports=4, rho=[0.3], rtol=1e-4, **parameters, **ML)  # fmt: skip
    machine = {"coefficients": floats(12).tolist(), "support_vectors": floats(18, seed=1).tolist()}
    (labels, _) = agree("SVMClassifier", floats(9, 3), outputs=2, rho=[0.1, -0.2, 0.3], vectors_per_class=[2, 2, 2],
                        classlabels_ints=[4, 5, 6], rtol=1e-4, **machine, **parameters, **ML)  # fmt: skip
    assert set(labels.tolist()) <= {4, 5, 6}


@pytest.mark.parametrize(("kernel_type", "gamma"), [("SIGMOID", 0.3), ("RBF", 0.3), ("RBF", -0.3)])
def test_infinite_rows_are_decided_by_the_vectors_of_each_pair(kernel_type, gamma):
    """Products with 0 that are NaN, or infinite ones, are of some vectors alone."""
    vectors = np.array([[0, 1], [1, 2], [2, 1], [1, 3], [2, 2], [3, 1]], np.float32)
    x = np.array([[np.inf, 1], [1, 1], [4, 1], [np.nan, 1], [1, np.inf]], np.float32)
    with np.errstate(all="ignore"):
        labels, scores = agree(
            "SVMClassifier", x, outputs=2, rho=[0.1, -0.2, 0.3], vectors_per_class=[2, 2, 2], rtol=1e-4,
            coefficients=floats(12).tolist(), support_vectors=vectors.ravel().tolist(), classlabels_ints=[4, 5, 6],
            kernel_type=kernel_type, kernel_params=[gamma, 0.2, 2.0], **ML,
        )  # fmt: skip
    assert labels[0] in (4, 5, 6)
    assert kernel_type == "RBF" or np.isnan(scores[0]).tolist() == [True, True, False]


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_features(norm):
    x = np.abs(floats(4, 3))
    agree("Normalizer", x, norm=norm, **ML)
    agree("Scaler", x, offset=[0.1, 0.2, 0.3], scale=[2.0, 3.0, 4.0], **ML)
    agree("Binarizer", x, threshold=0.5, **ML)
    agree("Imputer", np.float32([[1, np.nan, 3]]), imputed_value_floats=[9.0], replaced_value_float=float("nan"), **ML)
    agree("OneHotEncoder", np.array([[1, 3]], np.int64), cats_int64s=[1, 2, 3], **ML)
    for count in (64, 65):
        agree("OneHotEncoder", np.array([[0, 70], [5, 63]], np.int64), cats_int64s=[*range(count)], **ML)


def test_encoders_and_maps():
    words = np.array(["a", "c", "x"], object)
    agree("LabelEncoder", words, opset=2, domain="ai.onnx.ml", keys_strings=["a", "b", "c"], values_int64s=[1, 2, 3])
    agree("CategoryMapper", words, cats_strings=["a", "c"], cats_int64s=[7, 8], **ML)
    (maps,) = run("ZipMap", np.float32([[0.25, 0.75]]), classlabels_strings=["no", "yes"], **ML)
    assert maps == [{"no": 0.25, "yes": 0.75}]
    with pytest.raises(ValueError, match="3 class labels need as many columns"):
        run("ZipMap", np.float32([[0.25, 0.75]]), classlabels_int64s=[1, 2, 3], **ML)


@pytest.mark.parametrize("labels", [1, 2, 3, 4])
def test_maps_of_few_and_more_classes(labels: int) -> None:
    scores = np.random.default_rng(labels).random((5, labels)).astype(np.float32)
    names = [f"class {number % 3}" for number in range(labels)]  # of one that is listed twice, the last score
    (maps,) = run("ZipMap", scores, classlabels_strings=names, **ML)
    assert maps == [dict(zip(names, row, strict=True)) for row in scores.tolist()]


@pytest.mark.parametrize("shape", [(0,), (7,), (2, 0), (3, 4), ()])
@pytest.mark.parametrize("kind", ["strings", "floats", "int64s"])
def test_numbers_of_labels_are_those_of_onnxruntime(kind: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(kind))
    keys: dict[str, list[Any]] = {
        "strings": ["a", "b", "é", ""], "floats": [0.5, float("nan"), -1.0, 1e30],
        "int64s": [1, -(1 << 62), 7, 1 << 40],
    }  # fmt: skip
    others = {"strings": "none", "floats": 2.5, "int64s": 3}
    pool = np.array([*keys[kind], others[kind]], {"strings": object, "floats": np.float32, "int64s": np.int64}[kind])
    x = np.asarray(pool[rng.integers(0, len(pool), shape)], pool.dtype)
    for values in ({"values_floats": [0.1, float("nan"), -0.0, 3e38], "default_float": -7.5},
                   {"values_int64s": [1 << 62, -1, 0, -(1 << 63)], "default_int64": 5}):  # fmt: skip
        if kind != next(iter(values)).removeprefix("values_"):
            check_everywhere(node_model("LabelEncoder", x, {f"keys_{kind}": keys[kind]} | values, 1, 4), {"x": x})


LABELS = """
    <ir_version: 10, opset_import: ["ai.onnx.ml" : VERSION, "" : 21]>
    g (TYPE[3] x) => (y) { y = ai.onnx.ml.LabelEncoder <LISTS> (x) }
"""


@pytest.mark.parametrize(
    ("dtype", "lists", "code", "actual"),
    [
        ("int64", "keys_int64s = [1, 2], values_floats = [0.5, 1.5]", "", ""),
        ("float", "keys_tensor = float[2] {1, 2}, values_tensor = int64[2] {3, 4}", "", ""),
        ("float", "keys_int64s = [1, 2], values_floats = [0.5, 1.5]", "type-mismatch", "float32"),
        ("int64", "keys_int64s = [1, 2], values_floats = [0.5]", "bad-attribute", "1"),
        ("int64", "keys_tensor = int64[3] {1, 2, 3}, values_int64s = [1, 2]", "bad-attribute", "2"),
        ("int64", "values_int64s = [1, 2]", "bad-attribute", "none"),
        ("int64", "keys_int64s = [1, 2]", "bad-attribute", "none"),
        ("int64", "keys_int64s = [1], keys_floats = [1.5], values_int64s = [1]", "bad-attribute",
         "keys_int64s, keys_floats"),
    ],
)  # fmt: skip
def test_a_label_encoder_has_one_list_of_keys_and_one_as_long_of_values(
    dtype: str, lists: str, code: str, actual: str
) -> None:
    """The rule of onnx and onnxruntime from version 4 on."""
    text = LABELS.replace("TYPE", dtype).replace("LISTS", lists)
    problems = Inference(ModelGraph(onnx.parser.parse_model(text.replace("VERSION", "4")))).diagnostics
    assert [(problem.code, problem.found) for problem in problems] == ([(code, actual)] if code else [])
    if "tensor" not in lists:
        assert not Inference(ModelGraph(onnx.parser.parse_model(text.replace("VERSION", "2")))).diagnostics


@pytest.mark.parametrize(("name", "entries"), [("nodes_trueleafs", 1), ("nodes_splits", 4), ("leaf_weights", 1)])
def test_lists_of_a_tree_ensemble_are_of_one_length(name: str, entries: int) -> None:
    lists: dict[str, Any] = {
        "nodes_featureids": [0, 1, 0], "nodes_truenodeids": [1, 0, 2], "nodes_falsenodeids": [2, 1, 3],
        "nodes_trueleafs": [0, 1, 1], "nodes_falseleafs": [0, 1, 1], "leaf_targetids": [0, 0, 0, 0],
        "tree_roots": [0], "n_targets": 1,
    }  # fmt: skip
    sizes = {"nodes_modes": 3, "nodes_splits": 3, "leaf_weights": 4}
    lists |= {name: [0] * entries} if name in lists else {}
    sizes |= {name: entries} if name in sizes else {}
    kinds = {"nodes_modes": np.uint8, "nodes_splits": np.float32, "leaf_weights": np.float32}
    lists |= {key: onnx.numpy_helper.from_array(np.zeros(size, kinds[key]), key) for key, size in sizes.items()}
    node = onnx.helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **lists)
    x, y = (onnx.helper.make_tensor_value_info(value, 1, ["n", 2 if value == "x" else 1]) for value in "xy")
    imports = [onnx.helper.make_opsetid("ai.onnx.ml", 5)]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y]), opset_imports=imports)
    problems = Inference(ModelGraph(model)).diagnostics
    assert [(problem.code, problem.found) for problem in problems] == [("bad-attribute", str(entries))]


def test_a_machine_that_decides_between_one_class_is_refused():
    machine = {"coefficients": [1.0], "support_vectors": [1.0, 2.0], "vectors_per_class": [1], "rho": [0.0]}
    with pytest.raises(ValueError, match="lists 1 class: expected two or more"):
        run("SVMClassifier", np.float32([[1, 2]]), outputs=2, classlabels_ints=[7], **machine, **ML)


@pytest.mark.parametrize("low", [0, -3, 7, 10**12, -(10**12)])
@pytest.mark.parametrize("kind", [str, int, float])
def test_many_numbers_are_looked_up_in_an_array_as_a_few_are(low: int, kind: Any) -> None:
    keys = [low + step for step in (0, 2, 3, 9)]
    name = {str: "strings", int: "int64s", float: "floats"}[kind]
    attributes = {"keys_int64s": keys, f"values_{name}": [kind(place) for place in range(4)]} | ML | {"opset": 2}
    extremes = [np.iinfo(np.int64).min, np.iinfo(np.int64).max, low - 1, low + 10]
    many = np.array([*range(low - 20, low + 20), *extremes]).reshape(4, 11)
    (together,) = run("LabelEncoder", many, **attributes)
    alone = [run("LabelEncoder", many[row : row + 1, column], **attributes)[0] for row in range(4)
             for column in range(11)]  # fmt: skip
    assert together.shape == many.shape
    assert together.dtype == alone[0].dtype
    assert together.reshape(-1).tolist() == [item.tolist()[0] for item in alone]
    assert together.reshape(-1).tolist().count(alone[20].tolist()[0]) >= 1
