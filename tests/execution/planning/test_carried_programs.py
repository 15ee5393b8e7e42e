"""Programs after an edit: what is carried over gives what a fresh runner gives, and an edit costs what it changes."""

import sys
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.planning import cached_partition, carried_programs
from onnxlab.execution.run.runner import Runner
from onnxlab.graph import edits
from tests.execution.support.internals import programs_of
from tests.execution.support.regions import Eager, Recipe

X = np.linspace(-2, 2, 64, dtype=np.float32).reshape(4, 16)


def network(blocks=2):
    """Blocks of a product and two elementwise operators; in between a CumSum, which NumPy runs."""
    rng = np.random.default_rng(0)
    recipe = Recipe(18)
    x = recipe.input("x", X)
    for block in range(blocks):
        x = recipe.node("MatMul", x, recipe.constant(rng.standard_normal((16, 16), np.float32) / 4))
        x = recipe.node("LeakyRelu", recipe.node("Abs", x), alpha=0.1)
        if block % 8 == 0:
            x = recipe.node("CumSum", x, recipe.constant(np.array(1)), reverse=1)
    x = recipe.node("Add", x, recipe.node("Constant", value_floats=[1.0] * 16))
    return recipe.model(recipe.node("Tanh", x))


@pytest.fixture(params=["numba", "numpy"])
def make(request):
    providers = (Eager(), NumpyProvider()) if request.param == "numba" else (NumpyProvider(),)

    def made(model):
        runner = Runner(model.graph, model.inference.fact, providers, facts=model.inference.state)
        model.graph.followers.append(runner.invalidate)
        return runner

    return made


def node_of(model, op_type):
    return next(node for node in reversed(model.graph.nodes.values()) if node.op_type == op_type)


def weigh(model, factor):
    value = model.graph.values[node_of(model, "MatMul").inputs[1]]
    edits.set_initializer(model.graph, value, model.graph.array(value.id) * np.float32(factor))


EDITS: dict[str, Any] = {
    "a weight": lambda model: weigh(model, 0.5),
    "an attribute": lambda model: edits.set_attribute(model.graph, node_of(model, "LeakyRelu"), "alpha", 0.3),
    "an attribute of NumPy's node": lambda model: edits.set_attribute(
        model.graph, node_of(model, "CumSum"), "reverse", 0
    ),
    "a name": lambda model: edits.rename_node(model.graph, node_of(model, "Abs"), "other"),
    "undo": lambda model: (weigh(model, 3), model.graph.undo()),
    "a weight and a name": lambda model: (weigh(model, 2), EDITS["a name"](model)),
}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("kind", EDITS)
def test_programs_are_carried_over(make, kind, keep, monkeypatch):
    model = onnxlab.load(network())
    runner = make(model)
    runner.run({"x": X}, keep=keep)
    carried = []
    before = carried_programs.carried
    monkeypatch.setattr(cached_partition, "carried", lambda *args: carried.append(before(*args)) or carried[-1])
    for _ in range(2):
        EDITS[kind](model)
        ours, theirs = runner.run({"x": X}, keep=keep), make(model).run({"x": X}, keep=False)
        for name, array in theirs.items():
            np.testing.assert_allclose(ours[name], array, rtol=0, atol=1e-6 if keep else 0)
    if not keep:  # the first run after an edit that keeps all values begins at kept values
        assert len(carried) == 2
        assert None not in carried


def test_what_changes_more_is_made_anew(make):
    model = onnxlab.load(network())
    runner = make(model)
    runner.run({"x": X}, keep=False)
    constant = node_of(model, "Constant")
    edits.set_attribute(model.graph, constant, "value_floats", [5.0] * 16)
    np.testing.assert_array_equal(*[(*by.run({"x": X}, keep=False).values(),)[0] for by in (runner, make(model))])
    edits.set_initializer(model.graph, model.graph.values[node_of(model, "CumSum").inputs[1]], np.array(0))
    np.testing.assert_array_equal(*[(*by.run({"x": X}, keep=False).values(),)[0] for by in (runner, make(model))])


def test_a_fed_initializer_stays_fed(make):
    model = onnxlab.load(network())
    value = model.graph.values[node_of(model, "MatMul").inputs[1]]
    runner, feeds = make(model), {"x": X, value.name: np.eye(16, dtype=np.float32)}
    before = runner.run(feeds, keep=False)
    weigh(model, 7)
    for name, array in runner.run(feeds, keep=False).items():
        np.testing.assert_array_equal(before[name], array)


def test_untouched_parts_are_the_same_calls():
    model = onnxlab.load(network())
    runner = Runner(model.graph, model.inference.fact, (Eager(), NumpyProvider()), facts=model.inference.state)
    runner.run({"x": X}, keep=False)
    (before,) = programs_of(runner)
    weigh(model, 2)
    runner.run({"x": X}, keep=False)
    (after,) = programs_of(runner)
    same = [a.call is b.call for a, b in zip(before.instructions, after.instructions, strict=True)]
    assert same.count(False) == 1, "the part with the weight"


def calls_after_an_edit(blocks):
    """Calls of Python functions in a run after an edit of a weight at the end."""
    model = onnxlab.load(network(blocks))
    runner = Runner(model.graph, model.inference.fact, (Eager(), NumpyProvider()), facts=model.inference.state)
    programs, count = runner.by([Eager(), "numpy"]), 0
    for _ in range(4):
        runner.run({"x": X}, keep="border", by=programs)
        weigh(model, 0.99)

    def profile(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        runner.run({"x": X}, keep="border", by=programs)
    finally:
        sys.setprofile(None)
    return count


def test_an_edit_costs_what_it_changes():
    few, many = calls_after_an_edit(9), calls_after_an_edit(80)
    assert many < 2 * few, "of nine times as many nodes"
