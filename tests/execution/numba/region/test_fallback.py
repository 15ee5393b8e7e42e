"""Nodes that cannot be bound go to NumPy, one at a time, and never fail a run that NumPy makes."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import onnxlab
from onnxlab.errors import RunError
from onnxlab.execution.numba.lowering.region_values import UnbindableError
from onnxlab.execution.numba.rules import registry
from onnxlab.execution.numba.rules.onnx import elementwise
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from tests.execution.support.internals import plans_of
from tests.execution.support.regions import Both, Eager, Recipe, assert_close
from tests.support.corpus import inputs, path
from tests.support.oracle import oracle


def chain():
    """Two products with a Tanh in between."""
    rng = np.random.default_rng(0)
    recipe = Recipe()
    x = rng.standard_normal((3, 8), dtype=np.float32)
    weights = [recipe.constant(rng.standard_normal((8, columns), dtype=np.float32)) for columns in (8, 5)]
    y = recipe.node("MatMul", recipe.input("x", x, ["rows", 8]), weights[0])
    y = recipe.node("Tanh", y)
    y = recipe.node("Softmax", recipe.node("MatMul", y, weights[1]))
    return recipe.model(y), x, y


@pytest.mark.parametrize("fault", [UnbindableError("not today"), ZeroDivisionError("ours")])
def test_one_node_is_left_out_and_the_reason_kept(monkeypatch, fault):
    def fail(binder, node):
        raise fault

    model, x, y = chain()
    assert elementwise.unary
    rule = registry.RULES["", "Tanh"]
    monkeypatch.setitem(registry.RULES, ("", "Tanh"), replace(rule, lower=fail))
    both = Both(model)
    assert len(both.hot.partition().parts) == 1
    for rows in (3, 3, 1):
        ours, theirs = both.run({"x": x[:rows]})
        assert_close(ours[y], theirs[y], 2e-6)
    (region,) = both.regions()
    body, same = (plan.body for plan in plans_of(region).values())
    assert body is same
    kinds = [type(instruction.call).__name__ for instruction in body.program.instructions]
    assert kinds.count("Region") == 2
    assert len(kinds) == 3
    plan = both.hot.partition()
    assert [part.provider for part in plan.parts] == ["numba", "numpy", "numba"]
    assert str(fault) in str(plan)


@pytest.mark.parametrize("name", ["lac_bigru", "lstm_gru", "resnet50"])
def test_nothing_of_a_network_is_left_out(name):
    model = onnxlab.load(path(name))
    runner = Runner(model.graph, model.inference.fact, [Eager(), NumpyProvider()])
    runner.run(inputs(name, path(name)), keep=False)
    plan = runner.partition()
    assert "binding failed" not in str(plan)
    assert [part.provider for part in plan.parts] == ["numba"]


def test_a_wrong_model_gives_its_own_error():
    recipe = Recipe()
    x = np.ones((2, 3), np.float32)
    y = recipe.node("Tanh", recipe.input("x", x, ["a", "b"]))
    y = recipe.node("MatMul", recipe.node("Exp", y), recipe.constant(np.ones((4, 5), np.float32)))
    both = Both(recipe.model(recipe.node("Softmax", y)))
    with pytest.raises(RunError, match="MatMul"):
        both.hot.run({"x": x}, keep=False)
    assert len(both.hot.partition().parts) == 1, "the feed was wrong, not the rule"
    results = both.hot.run({"x": np.ones((2, 4), np.float32)}, keep=False)
    assert [array.shape for array in results.values()] == [(2, 5)]


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose", "ConvInteger", "QLinearConv"])
def test_a_kernel_shape_that_the_weights_do_not_have_is_refused_as_by_onnxruntime(op_type):
    integers = op_type not in ("Conv", "ConvTranspose")
    recipe, rng = Recipe(), np.random.default_rng(0)
    x = rng.integers(0, 9, (1, 16, 12, 12)).astype(np.uint8 if integers else np.float32)
    w = recipe.constant(rng.integers(0, 9, (16, 16, 3, 3)).astype(x.dtype))
    scale, zero = recipe.constant(np.float32(0.5)), recipe.constant(np.uint8(3))
    source = recipe.input("x", x)
    inputs = (source, scale, zero, w, scale, zero, scale, zero) if op_type == "QLinearConv" else (source, w)
    model = recipe.model(recipe.node(op_type, *inputs, kernel_shape=[3, 2]))
    with pytest.raises(Exception, match="kernel_shape"):
        oracle()(model.SerializeToString(), {"x": x})
    both = Both(model)
    for runner in (both.hot, both.cold):
        with pytest.raises(RunError, match=r"kernel_shape is \[3, 2\]: W has shape \(16, 16, 3, 3\)"):
            runner.run({"x": x}, keep=False)


def test_a_gemm_of_a_vector_is_refused():
    recipe = Recipe()
    x = np.ones(8, np.float32)
    weights = recipe.constant(np.ones((8, 5), np.float32))
    model = recipe.model(recipe.node("Tanh", recipe.node("Gemm", recipe.input("x", x), weights)))
    both = Both(model)
    for runner in (both.hot, both.cold):
        with pytest.raises(RunError, match="Gemm"):
            runner.run({"x": x}, keep=False)


def wrong_gemm(recipe, x):
    return recipe.node("Gemm", x, recipe.constant(np.ones((9, 5), np.float32)))


def wrong_transpose(recipe, x):
    return recipe.node("Transpose", x, perm=[1, 1])


def wrong_bias(recipe, x):
    image = recipe.node("Reshape", x, recipe.constant(np.array([1, 4, 4, 4], np.int64)))
    weights = recipe.constant(np.ones((6, 4, 3, 3), np.float32)), recipe.constant(np.ones(3, np.float32))
    return recipe.node("Conv", image, *weights)


def wrong_layer(recipe, x, depth=8, hidden=4, state=(1, 8, 4), kind="GRU"):
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[kind]
    steps = recipe.node("Reshape", x, recipe.constant(np.array([1, 8, 8], np.int64)))
    w, r = ((1, gates * 4, depth), (1, gates * 4, hidden))
    weights = (recipe.constant(np.ones(shape, np.float32)) for shape in (w, r))
    nothing = recipe.constant(np.zeros((1, 2 * gates * 4), np.float32))
    first = recipe.constant(np.zeros(state, np.float32))
    return recipe.node(kind, steps, *weights, nothing, "", first, hidden_size=4)


WRONG = {
    "gemm": wrong_gemm, "transpose": wrong_transpose, "bias": wrong_bias,
    "w": partial(wrong_layer, depth=4), "r": partial(wrong_layer, hidden=2),
    "state": partial(wrong_layer, kind="LSTM", state=(1, 2, 4)),
    "directions": partial(wrong_layer, kind="RNN", state=(2, 8, 4)),
}  # fmt: skip


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_shapes_that_do_not_fit_read_no_memory_that_is_not_theirs(make):
    """Each is refused in NumPy's words, which is nothing that a compiled kernel could say afterwards."""
    recipe = Recipe()
    x = np.ones((8, 8), np.float32)
    y = make(recipe, recipe.node("Tanh", recipe.input("x", x)))
    both = Both(recipe.model(recipe.node("Exp", y)))
    with pytest.raises(RunError) as theirs:
        both.cold.run({"x": x}, keep=False)
    with pytest.raises(RunError) as ours:
        both.hot.run({"x": x}, keep=False)
    assert str(ours.value).split(";")[0] == str(theirs.value).split(";")[0]


def test_a_constant_that_cannot_be_made_is_told_by_its_own_node():
    recipe = Recipe()
    x = np.ones((8, 8), np.float32)
    vector, place = recipe.constant(np.ones(8, np.float32)), recipe.constant(np.array([3], np.int64))
    product = recipe.node("MatMul", recipe.input("x", x), recipe.constant(np.ones((8, 8), np.float32)))
    model = recipe.model(recipe.node("Add", product, recipe.node("Unsqueeze", vector, place)))
    both = Both(model)
    for runner in (both.hot, both.cold):
        with pytest.raises(RunError, match=r"Unsqueeze.*axis 3 is out of range for rank 2"):
            runner.run({"x": x}, keep=False)
