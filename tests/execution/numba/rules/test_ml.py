"""Tree ensembles and linear models of ai.onnx.ml against NumPy's and onnxruntime's."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

from onnxlab.errors import RunError
from tests.execution.support.integer_operands import normal, oracle
from tests.execution.support.regions import Recipe, assert_close, check

ML = "ai.onnx.ml"
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def forest(rng, trees, depth, features, targets, votes, modes=MODES[:1], missing=False):
    """Attributes of an ensemble of complete trees whose leaves give to random targets."""
    lists = {
        name: [] for name in ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    }
    ballots = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    inner, total = 2**depth - 1, 2 ** (depth + 1) - 1
    for tree in range(trees):
        for node in range(total):
            leaf = node >= inner
            row = (tree, node, "LEAF" if leaf else str(rng.choice(modes)), int(rng.integers(features)),
                   float(rng.integers(-2, 3)), 0 if leaf else 2 * node + 1, 0 if leaf else 2 * node + 2)  # fmt: skip
            for name, value in zip(lists, row, strict=True):
                lists[name].append(value)
            for target in range(targets) if leaf else ():
                if targets == 1 or rng.random() < 0.7:
                    for name, value in zip(ballots, (tree, node, target, float(rng.standard_normal())), strict=True):
                        ballots[name].append(value)
    attributes = {f"nodes_{name}": values for name, values in lists.items()}
    if missing:
        attributes["nodes_missing_value_tracks_true"] = [int(rng.integers(2)) for _ in lists["modes"]]
    return attributes | {f"{votes}_{name}": values for name, values in ballots.items()}


def made(op_type, feeds, outputs, **attributes):
    recipe = Recipe()
    recipe.node(op_type, recipe.input("x", feeds["x"], ["n", feeds["x"].shape[1]]), domain=ML, **attributes)
    names = ["v0", "scores"][:outputs]
    recipe.nodes[-1].output.extend(names[1:])
    return recipe.model(*names)


def features(rng, rows, columns):
    return {"x": np.round(normal(rng, rows, columns) * 2)}


def both(model, feeds, **options):
    ours = check(model, feeds, 2e-6, **options)
    for name, expected in oracle(model, feeds).items():
        assert_close(ours[name], expected, 2e-6, name)


@pytest.mark.parametrize("mode", MODES)
def test_every_comparison(rng, mode):
    feeds = features(rng, 37, 5)
    both(made("TreeEnsembleRegressor", feeds, 1, n_targets=1, **forest(rng, 3, 4, 5, 1, "target", (mode,))), feeds)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
def test_regression(rng, aggregate, targets):
    feeds = features(rng, 65, 5)
    trees = forest(rng, 7, 3, 5, targets, "target", MODES)
    for base in ({}, {"base_values": [0.5, -1.0, 2.0][:targets]}):
        model = made(
            "TreeEnsembleRegressor", feeds, 1, n_targets=targets, aggregate_function=aggregate, **trees, **base
        )
        both(model, feeds, threads=2)


def test_missing_values(rng):
    feeds = features(rng, 33, 5)
    feeds["x"][rng.random((33, 5)) < 0.3] = np.nan
    trees = forest(rng, 5, 4, 5, 1, "target", MODES[:4], missing=True)
    both(made("TreeEnsembleRegressor", feeds, 1, n_targets=1, **trees), feeds)


def test_numbers_that_are_compared_with_nan(rng):
    feeds = features(rng, 33, 5)
    feeds["x"][rng.random((33, 5)) < 0.3] = np.nan
    for missing in (False, True):
        trees = forest(rng, 6, 4, 5, 1, "target", MODES, missing=missing)
        trees["nodes_values"][::3] = [np.nan] * len(trees["nodes_values"][::3])
        both(made("TreeEnsembleRegressor", feeds, 1, n_targets=1, **trees), feeds)


@pytest.mark.parametrize("trees", [1, 4, 6])
@pytest.mark.parametrize("modes", [MODES[:1], MODES[1:2], MODES])
def test_leaves_that_give_to_every_class(rng, trees, modes):
    feeds = features(rng, 33, 5)
    attributes = forest(rng, trees, 5, 5, 1, "class", modes)
    attributes = {name: values * 3 if name.startswith("class_") else values for name, values in attributes.items()}
    attributes["class_ids"] = np.repeat([0, 1, 2], trees * 2**5).tolist()
    attributes["class_weights"] = normal(rng, 3 * trees * 2**5).tolist()
    both(made("TreeEnsembleClassifier", feeds, 2, classlabels_int64s=[3, 1, 2], **attributes), feeds)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("classes", [2, 5])
def test_classification(rng, transform, classes):
    feeds = features(rng, 65, 5)
    trees = forest(rng, 7, 3, 5, classes, "class")
    labels = [7, 3, 11, 2, 5][:classes]
    model = made("TreeEnsembleClassifier", feeds, 2, classlabels_int64s=labels, post_transform=transform, **trees)
    both(model, feeds, compiled=classes > 2)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("positive", [False, True])
def test_votes_for_one_of_two_classes(rng, transform, which, positive):
    feeds = features(rng, 65, 5)
    trees = forest(rng, 7, 3, 5, 1, "class")
    trees["class_ids"] = [which] * len(trees["class_ids"])
    if positive:
        trees["class_weights"] = [abs(weight) / 5 for weight in trees["class_weights"]]
    both(made("TreeEnsembleClassifier", feeds, 2, classlabels_int64s=[4, 9], post_transform=transform, **trees), feeds)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("count", [1, 3])
def test_linear_models(rng, transform, count):
    feeds = {"x": normal(rng, 33, 5)}
    coefficients, intercepts = normal(rng, count * 5).tolist(), normal(rng, count).tolist()
    attributes = {"coefficients": coefficients, "intercepts": intercepts, "post_transform": transform}
    both(made("LinearRegressor", feeds, 1, targets=count, **attributes), feeds)
    labels = [7, 3, 11][: max(2, count)]
    both(made("LinearClassifier", feeds, 2, classlabels_ints=labels, **attributes), feeds)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_features(rng, norm):
    feeds = {"x": np.abs(normal(rng, 33, 5))}
    feeds["x"][3] = 0
    both(made("Normalizer", feeds, 1, norm=norm), feeds)
    offset, scale = normal(rng, 5).tolist(), normal(rng, 5).tolist()
    both(made("Scaler", feeds, 1, offset=offset, scale=scale), feeds)
    both(made("Scaler", feeds, 1, offset=[0.5], scale=[2.0]), feeds)


@pytest.mark.parametrize("old", [np.nan, 0.0, 0.1])
@pytest.mark.parametrize("new", [[0.5], [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0]])
def test_imputed_features(rng, old, new):
    feeds = {"x": normal(rng, 33, 5)}
    feeds["x"][rng.random((33, 5)) < 0.3] = np.nan
    feeds["x"][rng.random((33, 5)) < 0.3] = old
    both(made("Imputer", feeds, 1, imputed_value_floats=new, replaced_value_float=old), feeds)


@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
@pytest.mark.parametrize(("transform", "number"), [(0, np.float32), (1, np.float32), (2, np.float32), (0, np.float64)])
def test_tree_ensemble_of_version_5(aggregate, transform, number):
    rng = np.random.default_rng(3)
    recipe = Recipe(21)
    x = rng.standard_normal((33, 3)).astype(number)
    x[7, 0], x[8, 0] = 0.1, np.nextafter(0.1, 1)  # as float32 both are above the split, as float64 one
    x[4, 1] = np.nan
    split = numpy_helper.from_array(np.array([0.1, -0.3, 0.5, 0.0], number), "splits")
    y = recipe.node(
        "TreeEnsemble", recipe.input("x", x), domain="ai.onnx.ml", n_targets=2, aggregate_function=aggregate,
        post_transform=transform, tree_roots=[0, 3], nodes_featureids=[0, 1, 2, 1],
        nodes_splits=split, nodes_modes=numpy_helper.from_array(np.array([0, 1, 2, 3], np.uint8), "modes"),
        nodes_truenodeids=[1, 0, 2, 4], nodes_trueleafs=[0, 1, 1, 1],
        nodes_falsenodeids=[2, 1, 3, 5], nodes_falseleafs=[0, 1, 1, 1],
        nodes_missing_value_tracks_true=[0, 1, 0, 0],
        leaf_targetids=[0, 1, 0, 1, 1, 0],
        leaf_weights=numpy_helper.from_array(rng.standard_normal(6).astype(number), "weights"),
    )  # fmt: skip
    model = recipe.model(y)
    del model.opset_import[2]
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 5))
    check(model, {"x": x}, 1e-6 if number == np.float32 else 1e-15)


def test_an_unknown_comparison_is_refused():
    x, recipe = np.float32([[0.0], [1.0]]), Recipe(21)
    y = recipe.node(
        "TreeEnsemble", recipe.input("x", x), domain="ai.onnx.ml", n_targets=1, tree_roots=[0], nodes_featureids=[0],
        nodes_splits=numpy_helper.from_array(np.float32([0.5]), "splits"),
        nodes_modes=numpy_helper.from_array(np.array([200], np.uint8), "modes"),
        nodes_truenodeids=[0], nodes_trueleafs=[1], nodes_falsenodeids=[1], nodes_falseleafs=[1],
        leaf_targetids=[0, 0], leaf_weights=numpy_helper.from_array(np.float32([1, 2]), "weights"),
    )  # fmt: skip
    model = recipe.model(y)
    del model.opset_import[2]
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 5))
    with pytest.raises(RunError, match="the mode of a node is 200"):
        check(model, {"x": x}, compiled=False)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("probable", [False, True])
def test_support_vector_machines(rng, kernel, classes, probable):
    counts, columns = rng.integers(1, 23, classes).tolist(), 7
    total, pairs = sum(counts), classes * (classes - 1) // 2
    attributes = {
        "coefficients": normal(rng, (classes - 1) * total).tolist(), "vectors_per_class": counts,
        "support_vectors": normal(rng, total * columns).tolist(), "rho": normal(rng, pairs).tolist(),
        "kernel_type": kernel, "kernel_params": [0.1, 0.2, 3.0], "classlabels_ints": [7, 3, 11, 2, 5][:classes],
    }  # fmt: skip
    if probable:
        attributes |= {"prob_a": normal(rng, pairs).tolist(), "prob_b": normal(rng, pairs).tolist()}
    for rows in (1, 70):
        feeds = {"x": normal(rng, rows, columns)}
        both(made("SVMClassifier", feeds, 2, **attributes), feeds, threads=2)
    feeds["x"][::9, 2] = np.nan
    check(made("SVMClassifier", feeds, 2, **attributes), feeds, 2e-6)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_support_vector_regression(rng, kernel, one_class):
    attributes = {
        "coefficients": normal(rng, 33).tolist(), "support_vectors": normal(rng, 33 * 7).tolist(), "rho": [0.3],
        "kernel_type": kernel, "kernel_params": [0.1, 0.2, 2.0], "n_supports": 33, "one_class": one_class,
    }  # fmt: skip
    feeds = {"x": normal(rng, 40, 7)}
    both(made("SVMRegressor", feeds, 1, **attributes), feeds)


def test_machines_that_numpy_runs(rng):
    """Powers that are not whole."""
    feeds = {"x": normal(rng, 4, 3)}
    attributes = {"coefficients": [1.0, -0.5], "support_vectors": normal(rng, 6).tolist(), "rho": [0.1],
                  "kernel_type": "POLY", "kernel_params": [0.3, 4.0, 2.5], "n_supports": 2}  # fmt: skip
    check(made("SVMRegressor", feeds, 1, **attributes), feeds, 2e-6, compiled=False)
