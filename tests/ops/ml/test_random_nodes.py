"""Random nodes of every operator of ai.onnx.ml and every post_transform agree with ONNX Runtime, labels included."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import onnxlab
from tests.ops.support.random_ml import (
    TRANSFORMS,
    Trees,
    as_tensors,
    check_everywhere,
    check_node,
    floats,
    node_model,
    samples,
)
from tests.support.oracle import new_session

NAN = float("nan")


@pytest.fixture
def rng(request):
    return np.random.default_rng(sum(request.node.name.encode()))


def labels(classes, strings, name):
    return {"classlabels_strings": ["a", "b", "c", "d"][:classes]} if strings else {name: [10, 7, 8, 2][:classes]}


def machine(rng, classes, probable):
    """Attributes of random one-against-one machines on three features."""
    counts = rng.integers(1, 4, classes).tolist()
    total, pairs = sum(counts), classes * (classes - 1) // 2
    attributes = {"coefficients": floats(rng, (classes - 1) * total), "support_vectors": floats(rng, total * 3),
                  "rho": floats(rng, pairs)}  # fmt: skip
    if probable:
        attributes |= {"prob_a": floats(rng, pairs), "prob_b": floats(rng, pairs)}
    return {name: values.tolist() for name, values in attributes.items()} | {"vectors_per_class": counts}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vector_machines(rng, kernel, transform):
    common = {"kernel_type": kernel, "kernel_params": [0.3, 0.2, 2.0], "post_transform": transform}
    for classes in (2, 3, 4):
        for probable in (False, True):
            attributes = machine(rng, classes, probable) | labels(classes, rng.integers(2), "classlabels_ints")
            # of one decision alone ONNX Runtime's PROBIT leaves a score to chance; near 0 and 1 it magnifies rounding
            compared = (0,) if transform == "PROBIT" and (classes == 2 or probable) else None
            check_node("SVMClassifier", floats(rng, 20, 3), common | attributes, 2, compared=compared)
        linear = {"coefficients": floats(rng, classes * 3).tolist(), "rho": [0.3]}
        linear |= common | labels(classes, 0, "classlabels_ints")
        check_node("SVMClassifier", floats(rng, 20, 3), linear, 2)
    for one_class in (0, 1):
        attributes = {"coefficients": floats(rng, 4).tolist(), "support_vectors": floats(rng, 12).tolist(),
                      "n_supports": 4, "rho": [0.2], "one_class": one_class}  # fmt: skip
        check_node("SVMRegressor", floats(rng, 9, 3), common | attributes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("classes", [2, 3])
def test_support_vector_machines_of_odd_inputs(rng, classes, dtype):
    for probable in (False, True):
        attributes = machine(rng, classes, probable) | labels(classes, 0, "classlabels_ints")
        attributes |= {"kernel_type": "RBF", "kernel_params": [0.3, 0.2, 2.0]}
        x = (floats(rng, 9, 3) * 2).astype(dtype)
        check_node("SVMClassifier", x, attributes, 2)
        check_node("SVMClassifier", x[0], attributes, 2)
        if dtype == np.float32:
            x[::2, 1], x[1, 0], x[3, 2] = np.nan, np.inf, 1e30
            check_node("SVMClassifier", x, attributes, 2)
            check_node("SVMClassifier", x, attributes | {"coefficients": [0.0] * len(attributes["coefficients"]),
                                                         "rho": [0.0] * len(attributes["rho"])}, 2)  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_linear_models(rng, count, transform):
    attributes = {"coefficients": floats(rng, count * 4).tolist(), "intercepts": floats(rng, count).tolist(),
                  "post_transform": transform}  # fmt: skip
    compared = (0,) if count == 1 and transform == "PROBIT" else None
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        for strings in (0, 1):
            classes = attributes | labels(max(2, count), strings, "classlabels_ints")
            x = (floats(rng, 7, 4) * 2).astype(dtype)
            check_node("LinearClassifier", x, classes, 2, compared=compared)
            check_node("LinearClassifier", x[0], classes, 2, compared=compared)
    x = samples(rng, 4, special=True)
    x[3] = 0
    check_node("LinearClassifier", x, classes, 2, compared=compared)
    for matrix in (x, floats(rng, 7, 4), floats(rng, 4)):
        check_node("LinearRegressor", matrix, attributes | {"targets": count})


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_scores_of_zero(transform):
    x = np.float32([[1, 0, 0], [0, 1, 0], [0, 0, 0], [-1, 0, 0], [200, 0, 0], [0, 200, 0], [-200, -300, 0]])
    for classes in (2, 3):
        rows = [1.0, 0, 0] * (classes - 1) + [0, 1.0, 0]
        check_node("LinearClassifier", x, {"coefficients": rows, "intercepts": [0.0] * classes, **labels(classes, 0,
                   "classlabels_ints"), "post_transform": transform}, 2)  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("which", [0, 1, "all", "some"])
@pytest.mark.parametrize("classes", [2, 3])
def test_tree_classifiers(rng, classes, which, transform):
    for base in (0, 1, classes) if classes == 2 else (0, classes):
        for special in (False, True):
            trees = Trees(rng, 3, missing=rng.integers(2))
            attributes = trees.nodes | trees.votes("class", classes, which) | {"post_transform": transform}
            attributes |= labels(classes, rng.integers(2), "classlabels_int64s")
            if base:
                attributes["base_values"] = np.round(floats(rng, base), 2).tolist()
            # ONNX Runtime leaves the second score to chance here
            chance = classes == 2 and ((base < 2 and transform == "PROBIT") or (base == 1 and which in ("all", "some")))
            compared = (0,) if chance else None
            check_node("TreeEnsembleClassifier", samples(rng, 3, special), attributes, 2, compared=compared)
    wide = as_tensors(attributes, ("class_weights", "nodes_values", "base_values"))
    check_node("TreeEnsembleClassifier", samples(rng, 3, dtype=np.float64), wide, 2, 3, compared)
    for dtype in (np.float64, np.int32, np.int64):
        check_node("TreeEnsembleClassifier", samples(rng, 3, dtype=dtype), attributes, 2, 3, compared)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressors(rng, aggregate, targets, transform):
    common = {"post_transform": transform, "aggregate_function": aggregate, "n_targets": targets}
    for base in (0, targets):
        for which in ("all", "some"):
            trees = Trees(rng, 3, missing=rng.integers(2))
            attributes = trees.nodes | trees.votes("target", targets, which) | common
            if base:
                attributes["base_values"] = np.round(floats(rng, base), 2).tolist()
            check_node("TreeEnsembleRegressor", samples(rng, 3, True), attributes)
    wide = as_tensors(attributes, ("target_weights", "nodes_values", "base_values"))
    check_node("TreeEnsembleRegressor", samples(rng, 3, dtype=np.float64), wide, 1, 3)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("votes", [[(1, 0.5), (1, 0.25), (2, 3.0)], [(1, 0.5)], [(2, 0.5)]])
def test_leaves_of_one_target_with_several_votes_or_none(votes, aggregate):
    attributes = {
        "nodes_treeids": [0, 0, 0, 1], "nodes_nodeids": [0, 1, 2, 0], "nodes_featureids": [0] * 4,
        "nodes_values": [0.0, 7, 8, 9], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0, 0], "nodes_falsenodeids": [2, 0, 0, 0],
        "target_treeids": [0] * len(votes), "target_nodeids": [node for node, _ in votes],
        "target_ids": [0] * len(votes), "target_weights": [weight for _, weight in votes],
        "aggregate_function": aggregate, "n_targets": 1,
    }  # fmt: skip
    check_node("TreeEnsembleRegressor", np.float32([[-1], [1]]), attributes)


def planted(rng, targets, member, dtype):
    """Attributes of TreeEnsemble-5: random trees whose inner nodes and leaves are numbered apart."""
    names = ("featureids", "modes", "splits", "truenodeids", "trueleafs", "falsenodeids", "falseleafs")
    nodes, leaves, roots, members = {name: [] for name in names}, [], [], []

    def grow(depth):
        if not depth:
            leaves.append((int(rng.integers(targets)), round(rng.normal(), 2)))
            return len(leaves) - 1, 1
        at, mode = len(nodes["modes"]), int(rng.integers(7 if member else 6))
        for column, item in zip(nodes.values(), (int(rng.integers(3)), mode, round(rng.normal(), 1)), strict=False):
            column.append(item)
        for side in ("true", "false"):
            nodes[f"{side}nodeids"].append(0)
            nodes[f"{side}leafs"].append(0)
        for side in ("true", "false"):
            nodes[f"{side}nodeids"][at], nodes[f"{side}leafs"][at] = grow(depth - 1)
        return at, 0

    for _ in range(3):
        roots.append(len(nodes["modes"]))
        grow(int(rng.integers(1, 4)))
    for mode in nodes["modes"]:
        members += [*rng.integers(-2, 3, 2).tolist(), NAN] if mode == 6 else []
    attributes = {f"nodes_{name}": values for name, values in nodes.items()} | {
        "tree_roots": roots,
        "n_targets": targets,
    }
    attributes["leaf_targetids"] = [target for target, _ in leaves]
    for name, values, kind in (
        ("nodes_modes", nodes["modes"], np.uint8),
        ("nodes_splits", nodes["splits"], dtype),
        ("leaf_weights", [w for _, w in leaves], dtype),
        ("membership_values", members, dtype),
    ):
        attributes[name] = numpy_helper.from_array(np.array(values, kind))  # fmt: skip
    if not members:
        del attributes["membership_values"]
    return attributes


@pytest.mark.parametrize("transform", range(5))
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tree_ensembles_of_version_5(rng, dtype, targets, transform):
    for aggregate in range(4):
        for member in (False, True):
            attributes = planted(rng, targets, member, dtype) | {"aggregate_function": aggregate}
            if rng.integers(2):
                count = len(attributes["nodes_featureids"])
                attributes["nodes_missing_value_tracks_true"] = rng.integers(0, 2, count).tolist()
            x = np.round(samples(rng, 3, True, dtype), 0 if member else 1)
            # the operator's page says 1 is SOFTMAX and 2 LOGISTIC, ONNX Runtime has it the other way round
            theirs = node_model("TreeEnsemble", x, attributes | {"post_transform": (0, 2, 1, 3, 4)[transform]}, 1, 5)
            ours = node_model("TreeEnsemble", x, attributes | {"post_transform": transform}, 1, 5)
            check_everywhere(ours, {"x": x}, new_session(theirs, None).run(None, {"x": x}))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_features(rng, dtype):
    for shape in ((5, 3), (3,), (0, 3)):
        x = (floats(rng, *shape) * 3).astype(dtype)
        if dtype == np.float32 and x.size > 4:
            x.reshape(-1)[:4] = np.nan, np.inf, -np.inf, 0
        for offset, scale in (([0.5], [2.0]), ([0.1, 0.2, 0.3], [1.0, 2.0, 3.0])):
            check_node("Scaler", x, {"offset": offset, "scale": scale})
        for norm in ("MAX", "L1", "L2"):
            check_node("Normalizer", x, {"norm": norm})
            check_node("Normalizer", -np.abs(x), {"norm": norm})
        for width in (2, 3, 5):
            check_node("FeatureVectorizer", x, {"inputdimensions": [width]})
        known = np.nan_to_num(x.astype(np.float32)).clip(-3, 3).astype(dtype)
        if dtype != np.int32:
            check_node("OneHotEncoder", known, {"cats_int64s": [0, 1, 0, 2]})
        if dtype == np.float32:
            check_node("Binarizer", known, {"threshold": 0.5})
        kind = "float" if dtype in (np.float32, np.float64) else "int64"
        for values in ([7], [1, 2, 3]):
            if dtype in (np.float32, np.int64):
                imputed = [*map(float, values)] if kind == "float" else values
                check_node(
                    "Imputer", x, {f"imputed_value_{kind}s": imputed, f"replaced_value_{kind}": type(imputed[0])(0)}
                )


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("twice", [False, True])
def test_label_encoders(version, twice):
    kinds = {
        "strings": (["a", "b", ""], np.array(["a", "b", "", "zz"], object)),
        "int64s": ([1, 2, -3], np.array([1, 2, -3, 9])),
        "floats": ([1.0, NAN, -0.0], np.float32([1, NAN, 0, -0.0, 0.1])),
    }
    for key, (keys, x) in kinds.items():
        for value, (values, _) in kinds.items():
            extra = 1 if twice else 0  # a key that is listed twice stands for its first value
            attributes = {f"keys_{key}": keys + keys[:extra], f"values_{value}": values + values[1 : 1 + extra]}  # type: ignore[index]
            check_node("LabelEncoder", x, attributes, version=version)
            defaults = {"default_string": "D", "default_int64": 7, "default_float": 7.5}
            check_node("LabelEncoder", x, attributes | defaults, version=version)


def test_categories():
    x = np.array([["a"], ["b"], ["x"]], object)
    check_node("OneHotEncoder", x, {"cats_strings": ["a", "b", "a"]})
    check_node("CategoryMapper", x, {"cats_strings": ["a", "b", "a"], "cats_int64s": [3, 4, 5], "default_int64": -7})
    check_node("CategoryMapper", np.array([3, 4, 5]), {"cats_strings": ["a", "b", "c"], "cats_int64s": [3, 4, 3]})


def map_model(op_type, key, value, attributes):
    kind = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    node = helper.make_node(op_type, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], "g", [helper.make_value_info("x", kind)], [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


@pytest.mark.parametrize("cast", ["TO_FLOAT", "TO_INT64", "TO_STRING"])
@pytest.mark.parametrize(("form", "size"), [("DENSE", 1), ("SPARSE", 4), ("SPARSE", 8)])
def test_maps_become_arrays(cast, form, size):
    data = map_model("CastMap", 7, 1, {"cast_to": cast, "map_form": form, "max_map": size})
    check_everywhere(data, {"x": {0: 1.5, 2: -2.0, 5: 3.25}})


def test_maps_with_vocabularies():
    words = map_model("DictVectorizer", 8, 1, {"string_vocabulary": ["b", "c", "a"]})
    check_everywhere(words, {"x": {"a": 1.5, "b": 2.0}})
    numbers = map_model("DictVectorizer", 7, 1, {"int64_vocabulary": [2, 3, 1]})
    check_everywhere(numbers, {"x": {1: 1.5, 2: 2.0}})
    wide = map_model("DictVectorizer", 7, 11, {"int64_vocabulary": [2, 3, 1]})
    (output,) = onnxlab.load(wide).run({"x": {1: 0.1}}).values()
    assert output.dtype == np.float64
    assert output[0, 2] == 0.1
