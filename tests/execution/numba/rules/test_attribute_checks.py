"""Attributes that mean nothing, or something that kernels are not for: compiled and NumPy say and make the same."""

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from onnxlab.errors import RunError
from tests.execution.support.regions import Both, Recipe, assert_close

NAN = float("nan")
IMAGE, KERNEL = np.ones((1, 2, 5, 5), np.float32), np.ones((2, 2, 3, 3), np.float32)
HEADS = np.ones((1, 2, 3, 4), np.float32)
ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)
NODES = [
    *[("Conv", (IMAGE, KERNEL), {name: value}) for name, value in (
        ("pads", [-1] * 4), ("pads", [-1, 0, 0, -1]), ("dilations", [-1, -1]), ("strides", [0, 0]), ("group", 0))],
    *[("ConvTranspose", (IMAGE, KERNEL), {name: value}) for name, value in (
        ("pads", [-1, 0, 0, -1]), ("dilations", [-1, -1]), ("strides", [-1, -1]), ("output_padding", [-1, -1]))],
    ("AveragePool", (IMAGE,), {"kernel_shape": [2, 2], "pads": [9] * 4}),
    ("AveragePool", (IMAGE,), {"kernel_shape": [2, 2], "dilations": [0, 0]}),
    ("LayerNormalization", (ROWS, ROWS[0]), {"stash_type": 0}),
    ("LayerNormalization", (ROWS, ROWS[0]), {"axis": 5}),
    ("Softmax", (ROWS,), {"axis": -3}),
    ("Gather", (ROWS, np.array([0, 1])), {"axis": -3}),
    ("Flatten", (ROWS,), {"axis": 2}),
    ("Flatten", (ROWS,), {"axis": 3}),
    ("Transpose", (ROWS,), {"perm": [1, 1]}),
    ("Split", (ROWS,), {"axis": 2}),
    ("Concat", (ROWS, ROWS), {"axis": 2}),
    ("QuantizeLinear", (ROWS, np.ones(4, np.float32)), {"axis": 0}),
    ("Attention", (HEADS, HEADS, HEADS), {"softcap": -1.0}),
    ("Attention", (HEADS, HEADS, HEADS), {"qk_matmul_output_mode": 9}),
    ("RotaryEmbedding", (HEADS, np.ones((1, 3, 2), np.float32), np.ones((1, 3, 2), np.float32)),
     {"rotary_embedding_dim": 3}),
    ("RotaryEmbedding", (np.ones((1, 3, 8), np.float32), *[np.ones((1, 3, 2), np.float32)] * 2), {}),
    ("Resize", (IMAGE, np.zeros(0, np.float32), np.array([2.0, 2.0], np.float32)), {"axes": [2, 2]}),
    ("Resize", (IMAGE, np.zeros(0, np.float32), np.array([2.0] * 4, np.float32)), {"mode": "nonsense"}),
    ("Elu", (ROWS - 5,), {"alpha": NAN}),
]  # fmt: skip


def check_same(model, output, x):
    """The same values, or the same words about the same node."""
    both, results = Both(model), []
    for runner in (both.hot, both.cold):
        try:
            results.append(runner.run({"x": x}, keep=False)[output])
        except RunError as error:
            results.append(str(error).split("; inside numba part")[0])
    ours, theirs = results
    if isinstance(theirs, str) or isinstance(ours, str) or theirs.dtype.kind != "f":
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert_close(ours, theirs, 1e-5)


@pytest.mark.parametrize(
    ("op_type", "arrays", "attributes"), NODES, ids=lambda parameter: parameter if type(parameter) is str else ""
)
def test_both_say_and_make_the_same(op_type, arrays, attributes):
    recipe = Recipe(23)
    x = recipe.input("x", arrays[0])
    output = recipe.node(op_type, x, *map(recipe.constant, arrays[1:]), **attributes)
    check_same(recipe.model(output, infer=False), output, arrays[0])


@pytest.mark.parametrize("change", [{"tree_roots": [-1]}, {"nodes_featureids": [-1, 0, 0]}, {}])
def test_a_forest_leads_nowhere_but_to_its_own_nodes(change):
    attributes = {
        "nodes_splits": np.array([3.14, 1.2, 4.2], np.float32), "nodes_featureids": [0, 1, 0],
        "nodes_modes": np.array([0, 0, 0], np.uint8), "nodes_truenodeids": [1, 0, 1], "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 2, 3], "nodes_falseleafs": [0, 1, 1], "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": np.array([5.23, 12.12, -12.23, 7.21], np.float32), "tree_roots": [0], "n_targets": 2,
    }  # fmt: skip
    recipe = Recipe()
    node_attributes = attributes | change
    node_attributes |= {
        name: numpy_helper.from_array(v, name) for name, v in node_attributes.items() if isinstance(v, np.ndarray)
    }
    output = recipe.node("TreeEnsemble", recipe.input("x", ROWS), domain="ai.onnx.ml", **node_attributes)
    model = recipe.model(output, infer=False)
    model.opset_import[2].version = 5
    check_same(model, output, ROWS)


def test_text_is_not_made_of_shapes_while_binding():
    recipe = Recipe()
    output = recipe.node("Cast", recipe.node("Shape", recipe.input("x", ROWS)), to=TensorProto.STRING)
    check_same(recipe.model(output), output, ROWS)
