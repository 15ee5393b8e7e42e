"""Edits of nodes in regions: a plan carried over gives the same bits as a new one."""

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import onnxlab
from onnxlab.execution.base import background
from onnxlab.execution.numba.lowering import matrix_products
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.numba.region import region as regions
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from onnxlab.graph import edits
from tests.execution.support.regions import Eager, Recipe

WEIGHTS = ("deep", "square", "turned", "q", "k", "narrow", "wide", "looked", "half")


def network(rng):
    """Products of every kind whose weights may change: deep, joined, turned, grouped, by Winograd, scaled, read."""

    def weight(name, *shape, dtype=np.float32):
        recipe.constant((rng.standard_normal(shape) / shape[-1] ** 0.5).astype(dtype))
        recipe.constants[-1].name = name
        return name

    recipe = Recipe(21)
    image = recipe.input("image", np.zeros((1, 16, 14, 14), np.float32), ["n", 16, 14, 14])
    x = recipe.node("Conv", image, weight("wide", 16, 16, 3, 3), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    scale, shift = weight("scale", 16), weight("shift", 16)
    spread = recipe.constant(np.full(16, 1.5, np.float32))
    x = recipe.node("Relu", recipe.node("BatchNormalization", x, scale, shift, shift, spread))
    x = recipe.node("Conv", x, weight("narrow", 16, 8, 3, 3), kernel_shape=[3, 3], strides=[2, 2], group=2)
    x = recipe.node("Flatten", x)
    x = recipe.node("MatMul", x, weight("deep", 576 * 1, 40))
    x = recipe.node("LeakyRelu", recipe.node("Add", x, weight("bias", 40)), alpha=0.1, name="leaky")
    x = recipe.node("Gemm", x, weight("turned", 24, 40), transB=1, alpha=0.5, name="gemm")
    x = recipe.node("MatMul", x, recipe.node("Transpose", weight("square", 24, 24), perm=[1, 0]))
    both = [recipe.node("MatMul", x, weight(name, 24, 24)) for name in ("q", "k")]
    x = recipe.node("Mul", *both, name="met")
    half = recipe.node("Cast", weight("half", 24, 24, dtype=np.float16), to=onnx.TensorProto.FLOAT)
    x = recipe.node("Add", recipe.node("MatMul", x, half), weight("row", 24))
    looked = weight("looked", 24, 24)  # packed, and read as it is
    return recipe.model(recipe.node("Add", recipe.node("MatMul", x, looked), recipe.node("ReduceSum", looked)))


class Edited:
    """A model whose runner outlives edits."""

    def __init__(self, seed=0, background=False):
        self.background = background
        self.rng = np.random.default_rng(seed)
        self.model = onnxlab.load(network(self.rng))
        self.graph = self.model.graph
        self.runner = self.fresh()
        self.check(1)

    def fresh(self):
        return Runner(self.graph, self.model.inference.fact, (NumbaProvider(1, self.background), NumpyProvider()))

    def check(self, batch):
        feeds = {"image": self.rng.standard_normal((batch, 16, 14, 14), dtype=np.float32)}
        ours, theirs = (runner.run(feeds, keep=False) for runner in (self.runner, self.fresh()))
        for name, array in theirs.items():
            np.testing.assert_array_equal(ours[name], array)

    def value(self, name):
        return next(value for value in self.graph.values.values() if value.name == name)

    def weigh(self, name, array=None):
        before = self.graph.array(self.value(name).id)
        if array is None:
            array = self.rng.standard_normal(before.shape).astype(before.dtype)
        edits.set_initializer(self.graph, self.value(name), array)

    def node(self, op_type):
        return next(node for node in self.graph.nodes.values() if node.op_type == op_type)


@pytest.fixture
def lowered(monkeypatch):
    """The operators of nodes that are lowered one by one, as they are."""
    seen, before = [], regions.lower
    monkeypatch.setattr(regions, "lower", lambda binder, node: (seen.append(node.op_type), before(binder, node))[1])
    return seen


@pytest.mark.parametrize("name", ["wide", "narrow", "deep", "turned", "q"])
def test_weights_that_are_only_packed_lower_nothing(name, lowered):
    edited = Edited()
    feeds = {"image": edited.rng.standard_normal((1, 16, 14, 14), dtype=np.float32)}
    for _ in range(3):
        edited.weigh(name)
        lowered.clear()
        ours = edited.runner.run(feeds, keep=False)
        assert not lowered
        theirs = edited.fresh().run(feeds, keep=False)
        assert lowered
        assert all(np.array_equal(ours[key], theirs[key]) for key in theirs)


def test_weights_of_one_row_are_read_where_they_are(monkeypatch, lowered):
    """Neither packed nor copied: the plan after an edit reads the array of the new initializer itself."""
    monkeypatch.setattr(matrix_products, "_UNPACKED", range(1 << 30))
    recipe, rng = Recipe(21), np.random.default_rng(0)
    hidden = recipe.node("Relu", recipe.node("MatMul", recipe.input("x", np.zeros((1, 8), np.float32), ["n", 8]),
                                             recipe.constant(np.ones((8, 40), np.float32))))  # fmt: skip
    last = recipe.constant(np.ones((24, 40), np.float32))
    model = onnxlab.load(recipe.model(recipe.node("Gemm", hidden, last, transB=1)))
    packed, pack = [], matrix_products.pack
    monkeypatch.setattr(matrix_products, "pack", lambda weights: packed.append(weights.shape) or pack(weights))
    provider = NumbaProvider(1, False, least=0)
    runner = Runner(model.graph, model.inference.fact, (provider, NumpyProvider()))
    value = next(value for value in model.graph.values.values() if value.name == last)
    for turn in range(3):
        edits.set_initializer(model.graph, value, rng.standard_normal((24, 40), dtype=np.float32))
        lowered.clear()
        x = rng.standard_normal((1, 8), dtype=np.float32)
        ours = runner.run({"x": x}, keep=False)
        assert bool(lowered) == (turn == 0)
        expected = Runner(model.graph, model.inference.fact, (NumpyProvider(),)).run({"x": x}, keep=False)
        for name, array in expected.items():
            np.testing.assert_allclose(ours[name], array, rtol=1e-5, atol=1e-5)
    assert packed == [(1, 8, 40)]
    views = provider._constants.views
    stored = model.graph.array(value.id)
    assert any(view.buffer.array is stored for key, view in views.items() if key[0] == "stored")


@pytest.mark.parametrize("name", ["bias", "scale", "square", "looked", "half"])
def test_elements_read_while_binding_make_another_plan(name, lowered):
    edited = Edited()
    edited.weigh(name)
    lowered.clear()
    edited.runner.run({"image": np.ones((1, 16, 14, 14), np.float32)}, keep=False)
    assert lowered
    edited.check(1)


def test_old_weights_are_not_kept_packed():
    edited = Edited()
    shared = edited.runner.programs.providers[0]._constants
    for _ in range(3):
        edited.weigh("deep")
        edited.check(1)
    before, packed = len(shared._recent), len(shared.views)
    for _ in range(3):
        edited.weigh("deep")
        edited.check(1)
    assert (len(shared._recent), len(shared.views)) == (before, packed)


def test_numpy_answers_with_the_new_weights_too(monkeypatch):
    edited = Edited(background=True)
    feeds = {"image": np.ones((1, 16, 14, 14), np.float32)}
    for _ in range(3):
        edited.runner.run(feeds, keep=False)
        assert background.wait(120)
    monkeypatch.setattr(regions.Region, "_bound_now", lambda self, arrays: None)
    edited.weigh("q")
    ours = edited.runner.run(feeds, keep=False)
    theirs = Runner(edited.graph, edited.model.inference.fact).run(feeds, keep=False)
    assert background.wait(120)
    assert all(np.array_equal(ours[key], theirs[key]) for key in theirs)


EDITS = st.one_of(
    st.tuples(st.just("weigh"), st.sampled_from((*WEIGHTS, "bias", "scale", "shift", "row"))),
    st.tuples(st.just("alpha"), st.sampled_from(("LeakyRelu", "Gemm"))),
    st.tuples(st.just("rewire"), st.sampled_from(("image", "turns"))),
    st.tuples(st.just("undo"), st.just("")),
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.lists(EDITS, min_size=1, max_size=3), st.sampled_from((1, 2))), min_size=2, max_size=5))
def test_edits_of_any_kind_give_what_a_fresh_provider_gives(rounds):
    edited = Edited()
    for steps, batch in rounds:
        for kind, target in steps:
            if kind == "weigh":
                edited.weigh(target)
            elif kind == "alpha":
                edits.set_attribute(edited.graph, edited.node(target), "alpha", float(edited.rng.uniform(0.1, 0.9)))
            elif kind == "rewire":  # the joined products change places
                met = edited.node("Mul")
                names = [edited.graph.values[value].name for value in reversed(met.inputs)]
                edits.set_inputs(edited.graph, met, names)
            else:
                edited.graph.undo()
        edited.check(batch)


@pytest.mark.parametrize("edited", ["weights", "perm"])
def test_edits_of_what_another_part_makes_from_constants_reach_the_reader(edited):
    """The node that turns the weights reads constants alone: it is in the first part, and its reader in the second."""
    rng = np.random.default_rng(0)
    recipe = Recipe()
    x = rng.standard_normal((8, 16), dtype=np.float32)
    weights = [rng.standard_normal((16, 16), dtype=np.float32) / 4 for _ in range(2)]
    first, second = map(recipe.constant, weights)
    y = recipe.node("Softplus", recipe.node("MatMul", recipe.input("x", x), first))
    total = recipe.node("ReduceSum", recipe.node("Unique", y), keepdims=0)  # Unique has no rule
    turned = recipe.node("Transpose", second, perm=[1, 0])
    y = recipe.node("MatMul", recipe.node("Add", y, total), turned)
    model = onnxlab.load(recipe.model(recipe.node("Softmax", y)))
    graph = model.graph
    runner = Runner(graph, model.inference.fact, [Eager(), NumpyProvider()])
    assert [part.provider for part in runner.partition().parts] == ["numba", "numpy", "numba"]
    for _ in range(2):
        runner.run({"x": x}, keep=False)
    if edited == "perm":
        (node,) = (node for node in graph.nodes.values() if node.op_type == "Transpose")
        edits.set_attribute(graph, node, "perm", [0, 1])
    else:
        value = next(value for value in graph.values.values() if value.name == second)
        edits.set_initializer(graph, value, weights[1][::-1].copy())
    (ours,) = runner.run({"x": x}, keep=False).values()
    (theirs,) = Runner(graph, model.inference.fact).run({"x": x}, keep=False).values()
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
