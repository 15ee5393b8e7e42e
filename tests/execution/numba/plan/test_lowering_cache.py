"""Plans made from what earlier plans had: after edits of any kind, bit by bit what a fresh provider gives."""

import contextlib
import os

import numpy as np
import pytest

import onnxlab
from onnxlab.errors import OnnxlabError
from onnxlab.execution.numba.plan import lowering_cache
from onnxlab.execution.numba.plan.builder import PlanBuilder
from onnxlab.execution.numba.plan.elementwise_chains import Chain, QuantizedView
from onnxlab.execution.numba.region import region as regions
from onnxlab.execution.numba.rules.fusion.fusions import Fused
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from onnxlab.graph import edits
from onnxlab.graph.edits.bypassing import bypass_node
from tests.execution.support.random_regions import Drawing
from tests.execution.support.regions import Eager, Recipe

LONG = bool(os.environ.get("ONNXLAB_LONG"))
SEEDS = 3000 if LONG else 30
PARAMETERS = {"LeakyRelu": "alpha", "Elu": "alpha", "HardSigmoid": "alpha", "LayerNormalization": "epsilon",
              "BatchNormalization": "epsilon"}  # fmt: skip
CURVES = ("Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Erf")


class Editor:
    """Edits a drawn model at random; an edit that the model refuses is left out."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.model = onnxlab.load(Drawing(seed, nodes=6 + seed % 14).model())
        self.graph = self.model.graph
        self.kinds = [self.constant, self.constant, self.attribute, self.swap, self.bypass, self.operator,
                      self.graph.undo, self.graph.redo]  # fmt: skip

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def edit(self):
        with contextlib.suppress(OnnxlabError):
            self.pick(self.kinds)()

    def constant(self):
        floats = [value for value in self.graph.values.values() if value.initializer is not None]
        value = self.pick(floats)
        array = self.graph.array(value.id)
        if array.dtype == np.float32:
            edits.set_initializer(self.graph, value, (array * self.rng.uniform(0.5, 1.5)).astype(np.float32))

    def attribute(self):
        nodes = [node for node in self.graph.nodes.values() if node.op_type in PARAMETERS]
        if nodes:
            node = self.pick(nodes)
            edits.set_attribute(self.graph, node, PARAMETERS[node.op_type], float(self.rng.uniform(0.01, 0.5)))

    def node(self):
        return self.pick(list(self.graph.nodes.values()))

    def swap(self):
        node = self.node()
        names = [self.graph.values[value].name if value else "" for value in node.inputs]
        position, other = self.rng.integers(len(names), size=2)
        names[position], names[other] = names[other], names[position]
        edits.set_inputs(self.graph, node, names)

    def bypass(self):
        with self.graph.edit("bypass"):
            bypass_node(self.graph, self.node())

    def operator(self):
        node = self.node()
        if node.op_type in CURVES:
            edits.set_operator(self.graph, node, self.pick(CURVES))

    def runner(self):
        return Runner(self.graph, self.model.inference.fact, [Eager(), NumpyProvider()])


def outcome(runner, feeds):
    """The outputs of a run, None where the model is wrong now."""
    try:
        return runner.run(feeds, keep=False)
    except OnnxlabError:
        return None


@pytest.mark.parametrize("chunk", range(3))
def test_after_random_edits_of_random_regions_a_plan_is_as_if_made_anew(chunk, monkeypatch):
    records, before = [], lowering_cache.LoweringMemo.begin
    monkeypatch.setattr(
        lowering_cache.LoweringMemo, "begin", lambda *step: (records.append(before(*step)), records[-1])[1]
    )
    for seed in range(chunk * SEEDS // 3, (chunk + 1) * SEEDS // 3):
        editor, feeds = Editor(seed), Drawing(seed, nodes=6 + seed % 14).feeds
        runner = editor.runner()
        for _ in range(6):
            ours, theirs = outcome(runner, feeds), outcome(editor.runner(), feeds)
            assert (ours is None) == (theirs is None), f"seed {seed}"
            for name in theirs or ():
                np.testing.assert_array_equal(ours[name], theirs[name], f"seed {seed}: {name}")
            editor.edit()
    assert sum(record is not None for record in records) > SEEDS, "steps are taken over"


def encoder(layers=3):
    """Norms, products with biases, attention and curves, one layer like the other."""
    rng, recipe = np.random.default_rng(0), Recipe()

    def constant(*shape):
        return recipe.constant(rng.standard_normal(shape).astype(np.float32) / shape[0] ** 0.5)

    def linear(x, columns=32):
        return recipe.node("Add", recipe.node("MatMul", x, constant(32, columns)), constant(columns))

    x = recipe.input("x", np.zeros((5, 32), np.float32), ["n", 32])
    for _ in range(layers):
        q, k, v = (linear(x) for _ in range(3))
        turned = recipe.node("Transpose", k, perm=[1, 0])
        scores = recipe.node("Mul", recipe.node("MatMul", q, turned), recipe.constant(np.array(0.2, np.float32)))
        mixed = recipe.node("MatMul", recipe.node("Softmax", scores), v)
        x = recipe.node("LayerNormalization", recipe.node("Add", linear(mixed), x), constant(32), constant(32))
        x = recipe.node("Add", recipe.node("Elu", linear(x), alpha=0.5), x)
    return recipe.model(x)


def names_of(step):
    return step.match.nodes if isinstance(step, Fused) else (step,)


@pytest.fixture
def lowered(monkeypatch):
    """The nodes of steps that are lowered, not taken over."""
    seen, before = [], regions.Binder.perform  # type: ignore[attr-defined]

    def perform(binder, name, step, lower):
        def noted():
            seen.extend(names_of(step) if not isinstance(step, tuple) else ())
            lower()

        before(binder, name, step, noted)

    monkeypatch.setattr(regions.Binder, "perform", perform)  # type: ignore[attr-defined]
    return seen


class Encoder:
    """An encoder and a runner that outlives its edits."""

    def __init__(self):
        self.model = onnxlab.load(encoder())
        self.graph = self.model.graph
        self.feeds = {"x": np.random.default_rng(1).standard_normal((5, 32), dtype=np.float32)}
        self.runner = self.fresh()
        self.run()

    def fresh(self):
        return Runner(self.graph, self.model.inference.fact, [Eager(), NumpyProvider()])

    def run(self):
        return self.runner.run(self.feeds, keep=False)

    def middle(self, op_type):
        nodes = [node for node in self.graph.nodes.values() if node.op_type == op_type]
        return nodes[len(nodes) // 2]

    def bypass(self, node):
        with self.graph.edit("bypass"):
            bypass_node(self.graph, node)

    def constant(self, node):
        value = next(self.graph.values[slot] for slot in node.inputs if self.graph.array(slot) is not None)
        edits.set_initializer(self.graph, value, self.graph.array(value.id) * np.float32(1.5))


EDITS = {
    "a bias": lambda edited: edited.constant(edited.middle("Add")),
    "a norm's scale": lambda edited: edited.constant(edited.middle("LayerNormalization")),
    "an attribute": lambda edited: edits.set_attribute(
        edited.graph, edited.middle("LayerNormalization"), "epsilon", 1e-3
    ),
    "an activation's attribute": lambda edited: edits.set_attribute(edited.graph, edited.middle("Elu"), "alpha", 0.7),
    "a factor of scores": lambda edited: edited.constant(edited.middle("Mul")),
    "a node less": lambda edited: edited.bypass(edited.middle("Elu")),
    "another operator": lambda edited: edits.set_operator(edited.graph, edited.middle("Elu"), "Tanh"),
}


@pytest.mark.parametrize("edit_name", EDITS)
def test_an_edit_lowers_what_it_touches_and_no_more(edit_name, lowered):
    edited = Encoder()
    total = len(lowered)
    EDITS[edit_name](edited)
    lowered.clear()
    ours = edited.run()
    assert 0 < len(lowered) <= total // 4
    edited.graph.undo()
    again = edited.run()
    edited.graph.redo()
    lowered.clear()
    theirs = edited.fresh().run(edited.feeds, keep=False)
    assert len(lowered) >= total - 1
    assert all(np.array_equal(ours[name], array) and not np.array_equal(again[name], array)
               for name, array in theirs.items())  # fmt: skip


def test_what_may_stand_for_what():
    builder = PlanBuilder()
    view, other = builder.allocate((2, 3), np.float32), builder.allocate((2, 3), np.float32)
    assert lowering_cache.alike(view, view.transposed([0, 1]))
    assert not lowering_cache.alike(view, view.transposed([1, 0]))
    assert not lowering_cache.alike(view, other)
    assert lowering_cache.alike(Chain("mul", (view, 2.0), (2, 3)), Chain("mul", (view, 2.0), (2, 3)))
    assert not lowering_cache.alike(Chain("mul", (view, 0.0), (2, 3)), Chain("mul", (view, -0.0), (2, 3)))
    assert lowering_cache.alike(
        QuantizedView(view, 3, 0.5), QuantizedView(view.at(0, view.shape, view.strides), 3, 0.5)
    )
    assert not lowering_cache.alike(QuantizedView(view, 3, 0.5), QuantizedView(view, 4, 0.5))
    assert lowering_cache.alike(np.arange(3), np.arange(3))
    assert not lowering_cache.alike(np.arange(3), np.arange(3, dtype=np.int32))
    assert not lowering_cache.alike(np.float32(0.0), 0.0)
