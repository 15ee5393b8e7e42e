import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onnxlab.errors import FeedError
from onnxlab.execution.base.provider import Provider, SubgraphClaim
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from tests.execution.support.models import graph, runner


class Taker(Provider):
    """Claims the nodes of some operators, and runs them by given NumPy kernels."""

    def __init__(self, *operators, name="taker"):
        self.name = name
        self.operators = operators
        self.ran = []

    def get_capability(self, view):
        chosen = [node.id for node in view.nodes if node.op_type in self.operators]
        return [SubgraphClaim((node,)) for node in chosen]

    def compile(self, part, view):
        functions = {"Relu": lambda x: np.maximum(x, 0), "Neg": np.negative, "Add": np.add, "Abs": np.abs}

        def call(context, *arrays):
            values = dict(zip(part.inputs, arrays, strict=True))
            for node in part.nodes:
                inputs = [values[name] if name in values else view.constant(name) for name in node.inputs]
                values[node.outputs[0]] = functions[node.op_type](*inputs)  # type: ignore[operator]
            self.ran.append([node.op_type for node in part.nodes])
            return [values[name] for name in part.outputs]

        return call


def plan(text, *providers):
    return Runner(graph(text), providers=(*providers, NumpyProvider())).partition()


def shape(partition):
    return [(part.provider, [node.op_type for node in part.nodes]) for part in partition.parts]


CHAIN = "g (float[8] x) => (float[8] y) { a = Relu (x) b = Neg (a) c = Exp (b) d = Abs (c) y = Relu (d) }"


def test_neighbors_become_one_part_and_the_last_provider_completes():
    partition = plan(CHAIN, Taker("Relu", "Neg"))
    assert shape(partition) == [("taker", ["Relu", "Neg"]), ("numpy", ["Exp", "Abs"]), ("taker", ["Relu"])]
    assert [(part.inputs, part.outputs) for part in partition.parts] == [
        (("x",), ("b",)),
        (("b",), ("d",)),
        (("d",), ("y",)),
    ]


def test_a_path_through_another_provider_keeps_parts_apart():
    text = "g (float[8] x) => (float[8] y) { a = Relu (x) b = Exp (a) y = Add (a, b) }"
    assert shape(plan(text, Taker("Relu", "Add"))) == [("taker", ["Relu"]), ("numpy", ["Exp"]), ("taker", ["Add"])]


def test_parallel_branches_are_joined():
    text = (
        "g (float[8] x) => (float[8] y, float[8] z) { a = Exp (x) b = Neg (a) c = Relu (x) y = Add (b, c) z = Exp (c) }"
    )
    partition = plan(text, Taker("Neg", "Relu", "Add"))
    assert shape(partition) == [("numpy", ["Exp"]), ("taker", ["Neg", "Relu", "Add"]), ("numpy", ["Exp"])]


def test_the_first_provider_wins():
    partition = plan(CHAIN, Taker("Relu", name="first"), Taker("Relu", "Exp", "Neg", name="second"))
    assert [name for name, _ in shape(partition)] == ["first", "second", "numpy", "first"]


def test_the_plan_says_what_crosses_and_why_nodes_were_left():
    partition = runner(CHAIN, providers=(Taker("Relu"), NumpyProvider())).partition()
    assert [(c.name, c.nbytes) for c in partition.crossings] == [("a", 32), ("d", 32)]
    text = str(partition)
    assert "2 values cross between parts: 64 B" in text
    assert "taker left Neg#1, Exp#2, Abs#3: not claimed" in text


def test_parts_run_and_give_what_numpy_gives():
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    taker = Taker("Relu", "Neg")
    mixed = Runner(graph(CHAIN), providers=(taker, NumpyProvider()))
    expected = Runner(graph(CHAIN)).run({"x": x})
    np.testing.assert_array_equal(mixed.run({"x": x}, keep=False)["y"], expected["y"])
    assert taker.ran == [["Relu", "Neg"], ["Relu"]]
    np.testing.assert_array_equal(mixed.run({"x": x})["y"], expected["y"])
    assert mixed.store.get(mixed.graph.main.names["a"]) is not None  # inside of a part, and still readable


def test_bodies_are_partitioned_too():
    taker = Taker("Neg")
    run = Runner(graph("""
    g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <
            then_branch = t () => (float[2] t2) { t1 = Neg (x) t2 = Exp (t1) },
            else_branch = e () => (float[2] e1) { e1 = Exp (x) }
        >
    }"""), providers=(taker, NumpyProvider()))  # fmt: skip
    np.testing.assert_allclose(run.run({"c": True, "x": [0.0, 1.0]})["y"], [1, np.exp(-1)], rtol=1e-6)
    assert taker.ran == [["Neg"]]


@st.composite
def random_graphs(draw):
    """(sources of each node, provider of each node)."""
    count = draw(st.integers(1, 14))
    sources = [draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else [] for i in range(count)]
    return sources, draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))


@settings(max_examples=150, deadline=None)
@given(random_graphs())
@example(([[], [0], [0, 1], [], [], [3, 0], [], [0, 1, 5]], [0, 2, 1, 1, 0, 1, 0, 1]))
@pytest.mark.slow
def test_parts_are_convex_in_order_and_cannot_be_joined(drawn):
    sources, owners = drawn
    partition = _partition(sources, owners)
    home = {int(node.name): number for number, part in enumerate(partition.parts) for node in part.nodes}
    assert sorted(home) == list(range(len(sources)))
    for reader, read in enumerate(sources):
        assert all(home[source] <= home[reader] for source in read)  # an order exists, so there is no cycle
    needs = [{home[s] for node in part.nodes for s in sources[int(node.name)]} for part in partition.parts]
    for late, part in enumerate(partition.parts):
        for early in range(late):
            if partition.parts[early].provider == part.provider:
                assert _path_through_others(needs, early, late), f"parts {early} and {late} could be one"


def _partition(sources, owners):
    operators = ["Relu", "Neg", "Abs"]
    nodes = [onnx.helper.make_node(operators[owner], ["x"], [f"v{i}"], name=str(i)) for i, owner in enumerate(owners)]
    for i, read in enumerate(sources):
        nodes[i].input[:] = [f"v{s}" for s in read] or ["x"]
    x = onnx.helper.make_tensor_value_info("x", 1, [1])
    last = onnx.helper.make_tensor_value_info(f"v{len(nodes) - 1}", 1, None)
    proto = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], [last]))
    providers = [Taker(operators[0], name="a"), Taker(operators[1], name="b"), NumpyProvider()]
    outputs = [f"v{i}" for i in range(len(nodes))]
    return Compiler(ModelGraph(proto).snapshot(), providers).main.partition(["x"], outputs)


def _path_through_others(needs, early, late):
    waiting, seen = [n for n in needs[late] if n not in (early, late)], set()
    while waiting:
        part = waiting.pop()
        if part == early:
            return True
        if part not in seen:
            seen.add(part)
            waiting += needs[part]
    return False


def test_no_provider_is_refused():
    from onnxlab.execution.planning.partition import partition

    with pytest.raises(ValueError, match="at least one provider"):
        partition(None, [])


def test_the_plan_holds_the_plans_of_bodies():
    partition = plan(
        """g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <
            then_branch = t () => (float[2] t2) { t1 = Neg (x) t2 = Exp (t1) },
            else_branch = e () => (float[2] e1) { e1 = Exp (x) }
        >
    }""",
        Taker("Neg"),
    )
    assert shape(partition) == [("numpy", ["If"])]
    inner = dict(partition.bodies)
    assert sorted(map(shape, inner.values())) == [[("numpy", ["Exp"])], [("taker", ["Neg"]), ("numpy", ["Exp"])]]
    assert "in If" in str(partition) or "then_branch" in str(partition)


def test_a_plan_for_other_providers_changes_nothing():
    run = Runner(graph(CHAIN))
    assert shape(run.partition(by=run.by((Taker("Relu"), NumpyProvider()))))[0] == ("taker", ["Relu"])
    assert shape(run.partition()) == [("numpy", ["Relu", "Neg", "Exp", "Abs", "Relu"])]


def test_a_cycle_is_told_of_where_a_provider_takes_part_of_it():
    text = "g (float[8] x) => (float[8] y) { b = Relu (c) c = Add (x, b) y = Exp (c) }"
    with pytest.raises(FeedError, match="reads 'c', which no node before it makes"):
        runner(text, providers=(Taker("Relu"), NumpyProvider())).run({"x": np.ones(8, np.float32)})
