"""Calls of functions seen through by partitions: the same values, in fewer parts."""

import numpy as np
import onnx
import pytest

from onnxlab.execution.planning import inlining
from onnxlab.execution.planning.inlining import Flattened
from tests.execution.support.internals import compiler_of
from tests.execution.support.regions import Both, assert_close

TEXT = """
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[2, "n"] x, float[4] w) => (float[2, "m"] y, float z)
{
    a = local.Twice <slope = 0.5> (x)
    y = local.Outer <slope = 2.0> (a, w)
    s = ReduceSum <keepdims = 0> (y)
    z, unused = local.Both (s, )
}
<domain: "local", opset_import: ["" : OPSET]>
Twice <slope> (x) => (y) { t = LeakyRelu <alpha: float = @slope> (x)  y = Add (t, x) }
<domain: "local", opset_import: ["" : 21, "local" : 1]>
Outer <slope, high: int = 1> (x, w) => (y) {
    u = local.Twice <slope: float = @slope> (x)
    y = Softmax <axis: int = @high> (u)
}
<domain: "local", opset_import: ["" : 21]>
Both (x, absent) => (a, b) { a = Neg (x)  b = Abs (a) }
"""


def model(opset=21):
    return onnx.parser.parse_model(TEXT.replace("OPSET", str(opset)))


@pytest.mark.parametrize(("opset", "calls"), [(21, 0), (15, 2)])
def test_values_are_those_of_calls(opset, calls):
    """A function at another opset stays a call, within others too."""
    both = Both(model(opset))
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 5), dtype=np.float32), "w": np.ones(4, np.float32)}
    ours, theirs = both.run(feeds)
    for name, expected in theirs.items():
        assert_close(ours[name], expected, 2e-6, name)
    scope = compiler_of(both.hot).main
    flat = Flattened(scope, scope.scope.nodes)
    nodes = scope.needed(flat.nodes, ["y", "z"], {"x", "w"})
    assert sum(node.op_type == "Twice" for node in nodes) == calls
    assert "Abs" not in [node.op_type for node in nodes], "what only an unused output needs is left out"
    assert len({node.id for node in nodes}) == len(nodes)
    if not calls:
        assert len(both.hot.partition().parts) == 1


def test_a_function_that_passes_an_input_on_stays_a_call():
    text = """
    <ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (float[2] x) => (float[2] y, float[2] z) { y, z = local.F (x) }
    <domain: "local", opset_import: ["" : 21]>
    F (x) => (x, b) { b = Neg (x) }
    """
    both = Both(onnx.parser.parse_model(text))
    ours, _ = both.run({"x": np.ones(2, np.float32)})
    assert ours["y"].tolist() == [1, 1]
    assert ours["z"].tolist() == [-1, -1]


def test_constants_do_not_cross_between_parts():
    """Values of Constant nodes and copies by Identity nodes are constants of every part that reads them."""
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2, 3] x) => (float[2, 3] y, float[1] k) <float[1] w = {3}>
    {
        c = Constant <value = float[1] {2}> ()
        v = Identity (w)
        k = Identity (v)
        a = Mul (x, c)
        b = CumSum (a, n)
        n = Constant <value_int = 1> ()
        d = Add (b, v)
        e = Mul (d, c)
        y = Softmax (e)
    }
    """
    both = Both(onnx.parser.parse_model(text))
    ours, theirs = both.run({"x": np.ones((2, 3), np.float32)})
    for name, expected in theirs.items():
        assert_close(ours[name], expected, 1e-6, name)
    assert ours["k"].tolist() == [3]
    assert {name for region in both.regions() for name in region.part.inputs} == {"x", "b"}
    assert both.hot.run({"x": np.ones((2, 3), np.float32), "c": np.zeros(1, np.float32)}, keep=False)["y"][0, 0] < 0.4


def test_what_follows_from_shapes_may_come_from_another_part():
    """Integers that a part before it made are plain numbers while a region is bound, and part of what it is for."""
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[n, 3] x) => (float[m, k] y) {
        s = Shape (x)
        r = Reshape (x, m)
        m = Constant <value_ints = [-1]> ()
        z = CumSum (r, o)
        o = Constant <value_int = 0> ()
        t = Shape <start = 0, end = 1> (r)
        one = Constant <value_ints = [1]> ()
        u = Add (t, one)
        v = Sub (u, one)
        w = Concat <axis = 0> (one, v)
        e = Exp (z)
        y = Reshape (e, w)
    }
    """
    both = Both(onnx.parser.parse_model(text))
    for rows in (2, 3, 2):
        ours, theirs = both.run({"x": np.full((rows, 3), 0.1, np.float32)})
        assert_close(ours["y"], theirs["y"], 1e-6)
    assert not any(region.reason for region in both.regions())


CAPTURING = """
<ir_version: 10, opset_import: ["" : 21]>
g (bool c, float[2, 4] x) => (float[2, 4] y) <float[4, 4] w = {1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 4}>
{
    y = If (c) <
        then_branch = t () => (float[2, 4] p) { a = MatMul (x, w)  p = Tanh (a) },
        else_branch = e () => (float[2, 4] q) { q = Add (x, x) }
    >
}
"""


def test_bodies_hold_on_to_outer_initializers():
    """A weight that a body captures is a constant there; not where it is fed, nor after an edit."""
    both = Both(onnx.parser.parse_model(CAPTURING))
    feeds = {"c": np.array(True), "x": np.full((2, 4), 0.1, np.float32)}
    ours, theirs = both.run(feeds)
    assert_close(ours["y"], theirs["y"], 1e-6)
    assert "weights" not in str(both.hot.partition())
    for run in (both.hot, both.cold):
        fed = run.run(feeds | {"w": np.zeros((4, 4), np.float32)}, keep=False)
        assert not fed["y"].any()
    results = both.cold.run(feeds)
    np.testing.assert_array_equal(results["y"], theirs["y"])


def doubling(levels):
    """A model of functions that each call the one below twice."""
    imports = '["" : 21, "local" : 1]'
    text = f"<ir_version: 10, opset_import: {imports}> g (float[2] x) => (float[2] y) {{ y = local.F{levels} (x) }}"
    text += f'<domain: "local", opset_import: {imports}> F0 (x) => (y) {{ y = Neg (x) }}'
    for level in range(levels):
        calls = f"t = local.F{level} (x)  y = local.F{level} (t)"
        text += f'<domain: "local", opset_import: {imports}> F{level + 1} (x) => (y) {{ {calls} }}'
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize(("levels", "nodes"), [(4, 16), (28, 1)])
def test_calls_that_become_too_many_nodes_stay_calls(levels, nodes):
    both = Both(doubling(levels))
    parts = both.hot.partition().parts
    assert sum(len(part.nodes) for part in parts) == nodes
    if levels < 10:
        ours, _ = both.run({"x": np.ones(2, np.float32)})
        assert ours["y"].tolist() == [1, 1]


def test_a_budget_of_nodes_is_for_all_calls_of_a_scope(monkeypatch):
    """Calls are written out as long as there is room; the others stay, and the values are the same."""
    monkeypatch.setattr(inlining, "_MOST", 50)
    model = doubling(3)  # 8 nodes and 15 calls each
    for step in range(4):
        model.graph.node.add(op_type="F3", domain="local", input=[f"y{step}" if step else "y"], output=[f"y{step + 1}"])
    model.graph.output[0].name = "y4"
    both = Both(model)
    ours, _ = both.run({"x": np.ones(2, np.float32)})
    assert ours["y4"].tolist() == [1, 1]
    flat = Flattened(scope := compiler_of(both.hot).main, scope.scope.nodes)
    assert [node.op_type for node in flat.nodes].count("F3") == 3


CHOICE = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[2, 3] x, bool c) => (float[2, 3] y, float[2, 3] z)
{
    a = Exp (x)
    y, z = If (c) <
        then_branch = t () => (float[2, 3] ty, float[2, 3] tz)
            <float[3, 3] tw = {1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 3.0}> { ty = MatMul (a, tw)  tz = THEN (ty) }
        , else_branch = e () => (float[2, 3] ey, float[2, 3] ez) { ey = Log (x)  ez = Neg (a) }
    >
}
"""


def test_both_branches_of_an_if_are_computed_where_they_are_short_and_cannot_fail(ort_run):
    proto = onnx.parser.parse_model(CHOICE.replace("THEN", "Tanh"))
    both = Both(proto)
    x = np.array([[-1, 0, 1], [np.inf, np.nan, 90]], np.float32)
    for condition in (True, False, True):
        feeds = {"x": x, "c": np.array(condition)}
        expected = ort_run(proto.SerializeToString(), feeds)
        for results in both.run(feeds):
            for name in expected:
                np.testing.assert_allclose(results[name], expected[name], rtol=2e-6)
    assert len(both.hot.partition().parts) == 1
    assert [part.nodes[0].op_type for part in both.cold.partition(["y"]).parts] == ["Exp"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tz = THEN (ty)", "two = Constant <value_ints: ints = [3, 2]> ()  tr = Reshape (ty, two)  "
                           "three = Constant <value_ints: ints = [2, 3]> ()  tz = Reshape (tr, three)"),
        ("tz = THEN (ty)", "i = Cast <to: int = 7> (c)  tg = Gather <axis = 0> (ty, i)  tz = Add (ty, tg)"),
        ("tz = THEN (ty)", "tz = RandomNormalLike (ty)"),
        ("float[2, 3] x", "float[1500, 3] x"),
        ("float[2, 3] x", "float[n, 3] x"),
        ("bool c)", "bool[1] c)"),
    ],
    ids=["Reshape", "Gather", "random", "large", "unknown", "not a scalar"],
)  # fmt: skip
def test_other_ifs_run_the_branch_that_is_taken(old, new):
    text = CHOICE.replace(old, new).replace("THEN", "Tanh")
    text = text.replace("[2, 3]", new[5:].removesuffix(" x")) if new.endswith(" x") else text
    run = Both(onnx.parser.parse_model(text)).hot
    run.partition()
    scope = compiler_of(run).main
    operators = [node.op_type for node in Flattened(scope, scope.scope.nodes).nodes]
    assert "If" in operators
    assert "Where" not in operators
