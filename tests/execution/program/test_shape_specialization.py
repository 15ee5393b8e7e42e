"""Results that shapes alone decide are made once for each set of them, and never mistaken for others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from onnxlab.execution.program import shape_specialization
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from tests.execution.support.internals import programs_of
from tests.execution.support.models import graph

HEADS = """g (float[b,s,d] x) => (float[b,k,s,e] y, int64[1] last) {
    shape = Shape (x)  zero = Constant <value_ints=[0]> ()  one = Constant <value_ints=[1]> ()
    two = Constant <value_ints=[2]> ()  heads = Constant <value_ints=[2]> ()
    b = Gather (shape, zero)  s = Gather (shape, one)  d = Gather (shape, two)  e = Div (d, heads)
    to = Concat <axis=0> (b, s, heads, e)  twice = Add (x, x)  split = Reshape (twice, to)
    y = Transpose <perm=[0,2,1,3]> (split)  last = Add (s, e)
}"""


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def rows(run: Runner, **feeds: np.ndarray) -> int:
    """The number of instructions with which a run of these feeds begins."""
    *_, program = programs_of(run)
    specialized = program.notes["shaped"].known.get(tuple(array.shape for array in feeds.values()))
    return len(program.instructions if specialized is None else specialized.rows)


def test_arithmetic_of_sizes_is_left_out_from_the_third_run_on():
    run = Runner(graph(HEADS))
    x, other = floats(2, 3, 8), floats(1, 5, 4)
    expected, different = run.run({"x": x}), run.run({"x": other})
    for turn in range(4):
        results = run.run({"x": x}, keep=False)
        np.testing.assert_array_equal(results["y"], expected["y"])
        np.testing.assert_array_equal(results["last"], expected["last"])
        results["last"][:] = -1  # results belong to the caller even where a copy is kept
        if turn > 0:
            assert rows(run, x=x) == (10 if turn < 2 else 3)
        np.testing.assert_array_equal(run.run({"x": other}, keep=False)["y"], different["y"])


def test_random_numbers_are_those_of_a_run_that_leaves_nothing_out():
    run = Runner(
        graph("""g (float[n] x) => (float[m] y, float[n] z) {
        r = RandomNormalLike (x)  s = Shape (r)  y = Reshape (x, s)  z = RandomUniformLike (x) }""")
    )
    x = floats(7)
    first = run.run({"x": x}, keep=False, seed=3)
    for _ in range(4):
        results = run.run({"x": x}, keep=False, seed=3)
        np.testing.assert_array_equal(results["z"], first["z"])


def test_a_loop_whose_values_grow():
    run = Runner(
        graph("""g (int64 n, float[1] x) => (float[m] y) {
        yes = Constant <value = bool {1}> ()
        y = Loop (n, yes, x) <body = b (int64 i, bool c, float[k] v) => (bool go, float[j] w) {
            go = Identity (c)  s = Shape (v)  f = Cast <to=1> (s)  w = Concat <axis=0> (v, f) }>
    }""")
    )
    for _ in range(3):
        for count in (3, 5):
            results = run.run({"n": np.array(count), "x": np.zeros(1, np.float32)}, keep=False)
            assert results["y"].tolist() == [0, *range(1, count + 1)]


@st.composite
def sizing_models(draw):
    """Nodes over floats and over shapes, some of which feed each other."""
    nodes, floats_, sizes, tensors = [], ["x"], [], []
    for number in range(draw(st.integers(2, 14))):
        name, source = f"v{number}", draw(st.sampled_from(floats_))
        kind = draw(st.sampled_from(["shape", "shape", "unary", "reshape", "expand", "slice", "nonzero", "size"]))
        if kind == "shape":
            nodes.append(helper.make_node("Shape", [source], [name]))
            sizes.append(name)
        elif kind == "size" and sizes:  # reversed: a permutation of a shape has as many elements
            nodes.append(helper.make_node("Slice", [draw(st.sampled_from(sizes)), "m1", "mbig", "zero", "m1"], [name]))
            sizes.append(name)
        elif kind == "reshape" and sizes:
            shape_name = f"s{number}"
            nodes.append(helper.make_node("Shape", [source], [shape_name]))
            nodes.append(helper.make_node("Slice", [shape_name, "m1", "mbig", "zero", "m1"], [shape_name + "r"]))
            nodes.append(helper.make_node("Reshape", [source, shape_name + "r"], [name], allowzero=1))
            floats_.append(name)
        elif kind == "expand" and sizes:
            nodes.append(helper.make_node("ConstantOfShape", [draw(st.sampled_from(sizes))], [name]))
            floats_.append(name)
        elif kind == "slice" and sizes:
            nodes.append(helper.make_node("Flatten", [source], [name + "f"], axis=0))
            nodes.append(helper.make_node("Slice", [name + "f", "zero", "one", "one"], [name]))
            floats_.append(name)
        elif kind == "nonzero":  # a shape that elements decide
            nodes.append(helper.make_node("NonZero", [source], [name + "n"]))
            nodes.append(helper.make_node("Cast", [name + "n"], [name], to=TensorProto.FLOAT))
            floats_.append(name)
        else:
            nodes.append(helper.make_node("Sign", [source], [name]))
            floats_.append(name)
    for name, value in (("m1", -1), ("mbig", -(2**31)), ("zero", 0), ("one", 1)):
        tensors.append(numpy_helper.from_array(np.array([value], np.int64), name))
    outputs = draw(st.lists(st.sampled_from([*floats_[1:], *sizes] or ["x"]), min_size=1, max_size=3, unique=True))
    infos = [helper.make_tensor_value_info(name, 7 if name in sizes else 1, None) for name in outputs]
    proto = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["a", "b"])], infos, tensors)
    return helper.make_model(proto, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@settings(max_examples=60, deadline=None)
@given(model=sizing_models(), turns=st.lists(st.sampled_from([(2, 3), (3, 2), (1, 4)]), min_size=6, max_size=10))
@pytest.mark.slow
def test_any_model_makes_the_same_as_one_that_runs_for_the_first_time(model, turns):
    run = Runner(ModelGraph(model))
    for number, shape in enumerate(turns):
        x = np.random.default_rng(number).integers(-1, 2, shape).astype(np.float32)
        actual, expected = run.run({"x": x}, keep=False), Runner(ModelGraph(model)).run({"x": x}, keep=False)
        for name, array in expected.items():
            np.testing.assert_array_equal(actual[name], array)


@pytest.mark.parametrize("limit", ["LARGEST", "_ROOM"])
def test_large_arrays_are_made_anew(monkeypatch, limit):
    monkeypatch.setattr(shape_specialization, limit, 64)
    run = Runner(
        graph("""g (float[n,m] x) => (float[n,m] y) {
        s = Shape (x)  ones = ConstantOfShape <value = float[1] {1.0}> (s)  y = Add (x, ones) }""")
    )
    small, large = floats(2, 3), floats(20, 30)
    for _ in range(3):
        for x in (small, large):
            np.testing.assert_array_equal(run.run({"x": x}, keep=False)["y"], x + 1)
    assert (rows(run, x=small), rows(run, x=large)) == (1, 3)
