"""Ifs that the shapes of the feeds decide: the branch that is taken is compiled with what is around it."""

import numpy as np
import onnx
import onnxruntime
import pytest

from onnxlab.errors import RunError
from onnxlab.graph import edits
from tests.execution.support.internals import compiler_of, compilers_for_shapes
from tests.execution.support.regions import Both, assert_close

# values after the outer If have no known rank; t is in both branches of the inner one, c an initializer of a branch
TEXT = """
<ir_version: 10, opset_import: ["" : 21]>
g (float["n", "k", 8] x, bool flag) => (float["?"] y)
<float[8, 8] w = {WEIGHTS}, int64[1] zero = {0}, int64[1] one = {1}>
{
    dims = Shape (x)
    first = Gather (dims, zero)
    single = Equal (first, one)
    h = If (single) <
        then_branch = b1 () => (p) <int64[1] c = {0}> { s = Squeeze (x, c)  p = Tanh (s) },
        else_branch = b2 () => (q) {
            second = Gather (dims, one)
            narrow = Equal (second, one)
            q = If (narrow) <
                then_branch = b3 () => (t) { t = Squeeze (x, one) },
                else_branch = b4 () => (r) { t = Neg (x)  r = Sigmoid (t) }
            >
        }
    >
    m = MatMul (h, w)
    y = If (flag) <then_branch = b5 () => (u) { u = Relu (m) }, else_branch = b6 () => (v) { v = Abs (m) }>
}
"""


def model(text=TEXT):
    weights = np.random.default_rng(0).integers(-9, 9, 64) / 8
    return onnx.parser.parse_model(text.replace("WEIGHTS", ",".join(map(str, weights))))


def feeds(*shape, flag=True):
    return {"x": np.random.default_rng(1).standard_normal(shape, dtype=np.float32), "flag": np.array(flag)}


def parts(runner):
    """[(provider, operators)] of the newest compiler for certain shapes."""
    *_, compiler = compilers_for_shapes(runner)
    plan = compiler.main.partition(("x", "flag"), ("y",))
    return [(part.provider, [node.op_type for node in part.nodes]) for part in plan.parts]


@pytest.mark.parametrize("shape", [(1, 3, 8), (2, 1, 8), (2, 3, 8), (1, 1, 8)])
def test_values_are_those_of_onnxruntime_whatever_shapes_decide(shape):
    both = Both(model())
    session = onnxruntime.InferenceSession(model().SerializeToString(), providers=["CPUExecutionProvider"])
    for flag in (True, False, True):
        for fed_shape in (shape, shape, (3, 4, 8), shape):
            fed = feeds(*fed_shape, flag=flag)
            actual = both.hot.run(fed, keep=False)["y"]
            assert_close(actual, session.run(None, fed)[0], 2e-6, f"{fed_shape}, {flag}")
    opened = parts(both.hot)
    assert not any("If" in operators for _, operators in opened)
    assert sum(operators.count("Where") for _, operators in opened) == 1, "the one about elements is a choice"
    assert ("numba", True) in [(provider, "MatMul" in operators) for provider, operators in opened]


def test_what_elements_decide_stays_an_if_and_is_not_asked_again():
    text = TEXT.replace("single = Equal (first, one)", "single = Identity (flag)")
    both = Both(model(text.replace("narrow = Equal (second, one)", "narrow = Identity (flag)")))
    for _ in range(4):
        both.hot.run(feeds(1, 3, 8), keep=False)
    branches = compiler_of(both.hot).notes["branches"]
    assert not branches._open
    assert not compilers_for_shapes(both.hot)


def test_a_name_that_means_something_else_outside_keeps_the_if():
    proto = model(TEXT.replace("y = If (flag)", "t = Neg (m)\n y = If (flag)"))
    both = Both(proto)
    fed = feeds(2, 1, 8)  # t of the branch and t of the graph
    for _ in range(3):
        results = both.hot.run(fed, outputs=["y", "t"], keep=False)
    expected = both.cold.run(fed, outputs=["y", "t"], keep=False)
    for name in expected:
        assert_close(results[name], expected[name], 2e-6, name)
    assert sum(operators.count("If") for _, operators in parts(both.hot)) == 1


def test_what_is_fed_behind_an_if_is_not_made():
    both = Both(model())
    fed = feeds(1, 3, 8) | {"h": np.ones((3, 8), np.float32)}
    for _ in range(3):
        actual = both.hot.run(fed, keep=False)["y"]
    assert_close(actual, both.cold.run(fed, keep=False)["y"], 2e-6)


def test_edits_are_followed():
    both = Both(model())
    graph, fed = both.hot.graph, feeds(1, 3, 8)
    for _ in range(3):
        before = both.hot.run(fed, keep=False)["y"]
    value = graph.values[graph.main.names["w"]]
    edits.set_initializer(graph, value, graph.array(value.id) * np.float32(2))
    assert_close(both.hot.run(fed, keep=False)["y"], 2 * before, 2e-6)


def test_an_error_names_the_node_and_the_branch():
    both = Both(model(TEXT.replace("s = Squeeze (x, c)", "s = Expand (x, dims)  bad = Reshape (s, one)")
                      .replace("p = Tanh (s)", "p = Tanh (bad)")))  # fmt: skip
    for _ in range(3):
        with pytest.raises(RunError, match="Reshape") as raised:
            both.hot.run(feeds(1, 3, 8), keep=False)
        assert "If" in str(raised.value)
