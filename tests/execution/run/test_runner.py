import numpy as np
import onnx
import pytest
from onnx import helper

import onnxlab
from onnxlab import ops
from onnxlab.errors import FeedError, NameLookupError, RunError, UnsupportedOperatorError
from onnxlab.execution.run.runner import Runner
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.schemas import Schema
from tests.execution.support.models import CHAIN, graph, model, node, runner

X = np.array([[-1, 2, 3, -4], [5, -6, 7, 8]], np.float32)


@pytest.mark.parametrize("keep", [True, False])
def test_default_outputs_are_those_of_the_graph(keep):
    results = runner(CHAIN).run({"x": X}, keep=keep)
    relu = np.maximum(X, 0)
    np.testing.assert_array_equal(results["d"], -(relu + X) * relu)
    assert list(results) == ["d"]


@pytest.mark.parametrize("keep", [True, False])
def test_any_value_may_be_asked_for(keep):
    results = runner(CHAIN).run({"x": X}, ["b", "x", "a"], keep=keep)
    assert list(results) == ["b", "x", "a"]
    np.testing.assert_array_equal(results["b"], np.maximum(X, 0) + X)


def test_any_value_may_be_fed_and_its_producer_is_not_run():
    results = runner(CHAIN).run({"b": X, "a": X})
    np.testing.assert_array_equal(results["d"], -X * X)


def test_results_belong_to_the_caller():
    run = runner("g (float[4] x) => (float[4] y, float[2,2] z) { y = Identity (x) s = Constant <value_ints=[2,2]> () "
                 "z = Reshape (y, s) }")  # fmt: skip
    x = np.arange(4, dtype=np.float32)
    for keep in (False, True):
        results = run.run({"x": x}, keep=keep)
        results["y"][:] = 7
        results["z"][:] = 8
        np.testing.assert_array_equal(x, [0, 1, 2, 3])
        np.testing.assert_array_equal(run.run({"x": x}, keep=keep)["z"], [[0, 1], [2, 3]])


def test_initializers_are_defaults_that_a_feed_replaces():
    run = runner("g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {2, 3}> { y = Mul (x, w) }")
    ones = np.ones(2, np.float32)
    assert run.run({"x": ones})["y"].tolist() == [2, 3]
    assert run.run({"x": ones, "w": ones})["y"].tolist() == [1, 1]
    assert run.run({"x": ones})["y"].tolist() == [2, 3]


def test_branches_capture_and_only_the_taken_one_must_be_supported():
    run = runner("""
    g (bool c, float[2] x) => (float[2] y) {
        d = Add (x, x)
        y = If (c) <
            then_branch = t () => (float[2] t1) { t1 = Mul (d, x) },
            else_branch = e () => (float[2] e1) { e1 = local.Unknown (d) }
        >
    }""")
    x = np.array([1, 2], np.float32)
    assert run.run({"c": True, "x": x})["y"].tolist() == [2, 8]
    with pytest.raises(UnsupportedOperatorError, match=r"local::Unknown.*inside .*If"):
        run.run({"c": False, "x": x})


def test_functions_bind_attributes_and_call_each_other():
    run = runner("""
    g (float[2] x) => (float[2] y) { y = local.Twice <by = 3.0> (x) }
    <domain: "local", opset_import: ["" : 21, "local" : 1]>
    Twice <by: float = 2.0> (a) => (c) { b = local.Times <factor: float = @by> (a) c = local.Times (b) }
    <domain: "local", opset_import: ["" : 21]>
    Times <factor: float = 10.0> (a) => (c) { k = Constant <value_float: float = @factor> () c = Mul (a, k) }
    """)
    assert run.run({"x": [1.0, 2.0]})["y"].tolist() == [30, 60]


def test_a_function_that_calls_itself_is_refused():
    run = Runner(
        graph("""
    g (float[2] x) => (y) { y = local.Loop (x) }
    <domain: "local", opset_import: ["local" : 1]>
    Loop (a) => (b) { b = local.Loop (a) }
    """)
    )
    with pytest.raises(RunError, match="calls itself"):
        run.run({"x": [1.0, 2.0]})


def test_an_operator_without_kernel_is_named_and_the_rest_runs():
    run = Runner(graph("g (float[2] x) => (y, z) { y = Relu (x) z = local.Unknown (y) }"))
    with pytest.raises(UnsupportedOperatorError, match=r"no provider implements local::Unknown \(opset 1\)") as caught:
        run.run({"x": [1.0, -2.0]})
    assert "Unknown" in caught.value.node
    assert run.run({"x": [1.0, -2.0]}, ["y"])["y"].tolist() == [1, 0]


def test_an_error_names_node_operator_inputs_and_rule():
    run = runner("g (float[a, b] x, float[c, d] y) => (z) { z = MatMul (x, y) }")
    with pytest.raises(RunError) as caught:
        run.run({"x": np.ones((2, 3), np.float32), "y": np.ones((4, 5), np.float32)})
    assert caught.value.node == "MatMul#0"
    for part in ("MatMul", "x float32[2,3]", "y float32[4,5]"):
        assert part in str(caught.value)


def test_an_unknown_output_offers_near_ones():
    with pytest.raises(NameLookupError, match="did you mean 'd'"):
        runner(CHAIN).run({"x": X}, ["dd"])


def test_missing_inputs_are_listed_with_their_types():
    with pytest.raises(FeedError, match=r"needed and not fed: 'x' float32\[n,4\]"):
        runner(CHAIN).run({})


def test_progress_ends_at_the_total():
    seen = []
    runner(CHAIN).run({"x": X}, progress=lambda *arguments: seen.append(arguments))
    assert seen[-1] == (4, 4, "")


def test_random_operators_follow_the_seed():
    run = runner("g () => (float[8] y) { y = RandomNormal <shape = [8]> () }")
    first, again, other = (run.run({}, seed=seed, keep=False)["y"].tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_a_selection_after_a_run_whose_inputs_are_not_kept_has_to_be_fed():
    run = runner(CHAIN, keep_bytes=X.nbytes - 1)
    run.run({"x": X}, keep="border")
    with pytest.raises(FeedError, match="the inputs of the last run took too much memory to be kept: feed 'b'"):
        run.run_nodes([node(run, "c")])
    np.testing.assert_array_equal(run.run_nodes([node(run, "c")], {"b": X})["c"], -X)
    run.run({"x": X[:1]}, keep="border")
    np.testing.assert_array_equal(run.run_nodes([node(run, "c")])["c"], -(np.maximum(X[:1], 0) + X[:1]))


def test_a_run_without_feeds_does_not_bring_lost_inputs_back():
    run = runner("g (float[n, 4] x) => (float[n, 4] y) { c = Constant <value_int = 3> () y = Relu (x) }",
                 keep_bytes=X.nbytes - 1)  # fmt: skip
    run.run({"x": X}, keep="border")
    assert run.run(None, ["c"], keep="border")["c"] == 3
    (relu,) = [ident for ident, node in run.graph.nodes.items() if node.op_type == "Relu"]
    with pytest.raises(FeedError, match="the inputs of the last run took too much memory to be kept: feed 'x'"):
        run.run_nodes([relu])


@pytest.mark.parametrize("keep", [True, "border"])
def test_a_selection_after_an_edit_reads_what_the_last_run_still_gives(keep):
    run = runner("""g (float[2, 4] x, float[2, 4] w) => (float[2, 4] y, float[2, 4] z) {
        a = Neg (x)  b = Exp (a)  y = Relu (b)  z = Abs (w)  q = Add (a, w) }""")
    run.run({"x": X, "w": X}, keep=keep)
    edits.add_input(run.graph, helper.make_tensor_value_info("u", onnx.TensorProto.FLOAT, [2, 4]))
    reader = run.graph.nodes[node(run, "z")]
    edits.set_input(run.graph, reader, 0, "u")
    chosen = [node(run, "b"), node(run, "y")]
    np.testing.assert_array_equal(run.run_nodes(chosen)["y"], np.exp(-X))
    results = run.run_nodes([*chosen, reader.id])  # `u` is made up, `a` is not
    np.testing.assert_array_equal(results["y"], np.exp(-X))
    assert results["z"].shape == (2, 4)
    np.testing.assert_array_equal(run.run_nodes([node(run, "q")], {"w": 2 * X})["q"], X)


def test_a_selection_uses_fresh_values_and_makes_up_the_rest():
    run = runner(CHAIN)
    made_up = run.run_nodes([node(run, "c")])
    assert made_up["c"].shape == (2, 4)
    np.testing.assert_array_equal(made_up["c"], run.run_nodes([node(run, "c")])["c"])
    run.run({"x": X})
    np.testing.assert_array_equal(run.run_nodes([node(run, "c")])["c"], -(np.maximum(X, 0) + X))
    results = run.run_nodes([node(run, "b"), node(run, "d")], {"x": 2 * X})
    assert list(results) == ["b", "d"]
    np.testing.assert_array_equal(results["b"], np.maximum(X, 0) + 2 * X)


def test_a_custom_kernel_that_is_replaced_takes_effect_at_once():
    run = Runner(graph("g (float[2] x) => (float[2] y) { a = Neg (x) y = Abs (a) }"))
    assert run.run({"x": [1.0, -2.0]})["y"].tolist() == [1, 2]
    for factor in (10, 20):
        ops.register(Schema("", "Abs", 13), kernel=lambda x, factor=factor: x * factor)
        try:
            for keep in (True, False):
                assert run.run({"x": [1.0, -2.0]}, keep=keep)["y"].tolist() == [-factor, 2 * factor]
        finally:
            ops.unregister("", "Abs")
    assert run.run({"x": [1.0, -2.0]})["y"].tolist() == [1, 2]


def test_an_output_without_a_name_is_refused() -> None:
    proto = model(CHAIN)
    proto.graph.output[0].name = ""
    run = Runner(ModelGraph(proto))
    for keep in (True, False):
        with pytest.raises(FeedError, match="an output of the graph has no name; give it one"):
            run.run({"x": X}, keep=keep)


def test_an_output_that_nothing_makes_is_told_again_and_again():
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["z"])], "g", ends[:1], ends[1:])
    model = onnxlab.load(helper.make_model(graph))
    for feeds in ({"x": np.ones(2, np.float32)}, None) * 2:
        with pytest.raises(FeedError, match="no node before it makes" if feeds else "not fed: 'x'"):
            model.run(feeds)
