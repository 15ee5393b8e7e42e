"""Partitions that are taken over after an edit: the same as those that are made anew, and made anew where they must."""

import numpy as np
import pytest

import onnxlab
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.planning import compiler
from onnxlab.execution.run.runner import Runner
from onnxlab.graph import edits
from onnxlab.graph.edits import bypassing
from tests.execution.support.internals import programs_of
from tests.execution.support.regions import Eager, Recipe


def network():
    """A product, a power whose exponent decides who runs it, a constant that is repeated, a Reshape."""
    rng = np.random.default_rng(0)
    recipe = Recipe(18)

    def constant(name, array):
        recipe.constant(array)
        recipe.constants[-1].name = name
        return name

    x = recipe.input("x", np.zeros((4, 16), np.float32))
    x = recipe.node("MatMul", x, constant("weight", rng.standard_normal((16, 16), np.float32)))
    x = recipe.node("Pow", recipe.node("Abs", x), constant("power", np.float32(2.0)))
    again = recipe.node("Identity", constant("bias", rng.standard_normal(16, np.float32)))
    x = recipe.node("LeakyRelu", recipe.node("Add", x, again), alpha=0.1)
    x = recipe.node("Reshape", x, constant("shape", np.array([8, 8])))
    return recipe.model(recipe.node("Softmax", x, axis=-1))


class Edited:
    """A model whose runner outlives edits, and how many partitions it made anew."""

    def __init__(self, monkeypatch):
        self.model = onnxlab.load(network())
        self.graph = self.model.graph
        self.runner = self.fresh()
        self.made = 0
        before = compiler.partition  # type: ignore[attr-defined]

        def counted(view, providers):
            self.made += any(node.op_type == "MatMul" for node in view.nodes)
            return before(view, providers)

        monkeypatch.setattr(compiler, "partition", counted)
        self.check()

    def fresh(self):
        return Runner(self.graph, self.model.inference.fact, (Eager(), NumpyProvider()))

    def check(self):
        """The number of partitions of a run, whose result is that of a runner that has seen nothing before."""
        before, feeds = self.made, {"x": np.linspace(-2, 2, 64, dtype=np.float32).reshape(4, 16)}
        ours = self.runner.run(feeds, keep=False)
        partitions_made = self.made - before
        fresh = self.fresh()
        theirs = fresh.run(feeds, keep=False)
        for name, array in theirs.items():
            np.testing.assert_array_equal(ours[name], array)
        parts = [[(s.op, s.inputs) for s in steps(runner)] for runner in (self.runner, fresh)]
        assert parts[0] == parts[1]
        return partitions_made

    def set(self, name, array):
        value = next(value for value in self.graph.values.values() if value.name == name)
        edits.set_initializer(self.graph, value, array)

    def node(self, op_type):
        return next(node for node in self.graph.nodes.values() if node.op_type == op_type)


def steps(runner):
    (program,) = programs_of(runner)
    return [instruction.step for instruction in program.instructions]


@pytest.fixture
def edited(monkeypatch):
    return Edited(monkeypatch)


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_data_that_decides_nothing_leaves_the_partition(edited, name):
    value = next(value for value in edited.graph.values.values() if value.name == name)
    for factor in (2, 3):
        edited.set(name, np.asarray(edited.graph.array(value.id) * np.float32(factor)))
        assert edited.check() == 0
    edited.graph.undo()
    assert edited.check() == 0


def test_attributes_leave_the_partition(edited):
    for alpha in (0.2, 0.3):
        edits.set_attribute(edited.graph, edited.node("LeakyRelu"), "alpha", alpha)
        assert edited.check() == 0


def test_other_facts_make_another(edited):
    edited.set("shape", np.array([4, 16]))
    assert edited.check() == 1


def test_another_shape_or_dtype_makes_another(edited):
    edited.set("bias", np.ones((4, 16), np.float32))
    assert edited.check() == 1
    edited.set("bias", np.ones((1, 16), np.float32))
    assert edited.check() == 1


def test_other_wires_make_another(edited):
    bypassing.bypass_node(edited.graph, edited.node("Abs"))
    assert edited.check() == 1
    edited.graph.undo()
    assert edited.check() == 1


def test_a_node_that_is_judged_otherwise_makes_another(edited):
    for power, expected in ((3.0, 0), (2.5, 1), (0.3, 0), (2.0, 1)):
        edited.set("power", np.float32(power))
        assert edited.check() == expected
