"""Runs by specialized programs: the same answers, refusals and freshness as others, and none too large or unknown."""

import threading
import warnings

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.errors import FeedError, RunError
from onnxlab.execution.numba.region import bound_plans
from onnxlab.graph.edit.changes import SetField
from onnxlab.ops.onnx.tensor.string import string_concat
from tests.execution.support.internals import specialized_of
from tests.execution.support.models import model, node, runner
from tests.execution.support.regions import Both, Recipe

TEXT = """
g (float["n", 2] x, float["n", 2] w) => (float["n", 2] y, float["n", 2] z) {
    y = Add (x, w)
    z = Mul (y, y)
}
"""
LOG = "g (float[n] x) => (float[n] y, float[n] z) { y = Log (x)  z = Identity (y) }"


def straight(run):
    """The fast path of the only feeds that were seen, and the number of times that it was given up of late."""
    (specialization,) = specialized_of(run).values()
    return specialization


def perceptron():
    recipe = Recipe()
    rng = np.random.default_rng(3)
    x = recipe.input("x", np.zeros((3, 4), np.float32))
    hidden = recipe.node(
        "Relu", recipe.node("MatMul", x, recipe.constant(rng.standard_normal((4, 8), dtype=np.float32)))
    )
    other = recipe.node("MatMul", hidden, recipe.constant(rng.standard_normal((8, 2), dtype=np.float32)))
    return Both(recipe.model(hidden, other)), (hidden, other)


def test_what_is_small_needs_no_budget_and_warns_of_nothing():
    run = runner(LOG)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in (1, 0, 1, 0, 1, 0):
            results = run.run({"x": np.array([number], np.float32)}, keep=False)
            assert results["y"].tolist() == results["z"].tolist() == [0.0 if number else -np.inf]
            results["y"][:] = results["z"][:] = 7  # they are the caller's
    assert straight(run)._run is not None


def test_what_turns_out_to_be_large_is_left_to_an_ordinary_run():
    run = runner(
        "g (string[n] x) => (string[n, k] y, int64[n] z) { y, z = StringSplit <delimiter=','> (x) }".replace("'", '"')
    )
    few, many = np.array(["a,b"], object), np.array([",".join("ab" * 20_000)], object)
    for text in (few, few, few, few, many, few):
        results = run.run({"x": text}, keep=False)
        assert results["y"].shape == (1, results["z"][0])
    assert straight(run)._failures == 1
    for _ in range(4):
        run.run({"x": few}, keep=False)
    assert straight(run)._run is not None, "tried again"


def test_what_fails_is_told_as_ever():
    run = runner("g (float[3] x, int64[n] i) => (float[n] y) { y = Gather (x, i) }")
    for place in (0, 1, 2, 1, 2):
        x = np.arange(3, dtype=np.float32)
        assert run.run({"x": x, "i": np.array([place])}, keep=False)["y"].tolist() == [place]
    with pytest.raises(RunError, match="Gather"):
        run.run({"x": x, "i": np.array([5])}, keep=False)


def test_what_differs_from_run_to_run_is_never_called_twice():
    run = runner("g (float[n] x) => (float[n] y) { y = RandomUniformLike (x) }")
    for _ in range(5):
        run.run({"x": np.ones(3, np.float32)}, keep=False)
    assert not straight(run)._possible


def test_a_bound_plan_takes_any_arrays_and_gives_away_its_own_copies():
    both, names = perceptron()
    rng = np.random.default_rng(5)
    pairs = []
    for number in range(8):
        x = (
            rng.standard_normal((4, 3), dtype=np.float32).T
            if number % 2
            else rng.standard_normal((3, 4), dtype=np.float32)
        )
        x.flags.writeable = number % 3 > 0
        ours, theirs = both.run({"x": x})
        pairs.append((ours, theirs))
        for name in names:
            assert ours[name].base is None
            assert ours[name].flags.writeable
    for ours, theirs in pairs:
        for name in names:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, atol=1e-6)
    calls = straight(both.hot)._run.__globals__
    modules = {getattr(call, "__module__", "") for call in calls.values()}
    assert bound_plans.__name__ in modules, "the region was bound"


def test_bound_plans_run_in_many_threads():
    both, names = perceptron()
    feeds = [np.random.default_rng(seed).standard_normal((3, 4), dtype=np.float32) for seed in range(8)]
    right = [both.run({"x": x})[1] for x in feeds]
    wrong = []

    def work(number):
        for _ in range(200):
            results = both.hot.run({"x": feeds[number]}, keep=False)
            wrong.extend(name for name in names if not np.allclose(results[name], right[number][name], atol=1e-5))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("zeros", [0, 1])
def test_a_region_behind_words_is_bound_and_its_maps_are_fresh(zeros):
    words = ["red", "green", "blue"]
    recipe, rng = Recipe(), np.random.default_rng(6)
    hot = recipe.node("OneHotEncoder", recipe.input("x", np.array(["red"] * 3, object)), domain="ai.onnx.ml",
                      cats_strings=words, zeros=zeros)  # fmt: skip
    scores = recipe.node("MatMul", hot, recipe.constant(rng.standard_normal((3, 2), dtype=np.float32)))
    maps = recipe.node("ZipMap", recipe.node("Exp", scores), domain="ai.onnx.ml", classlabels_strings=["no", "yes"])
    both = Both(recipe.model(hot, maps, infer=False))
    results = [both.run({"x": np.array(words, object)[rng.integers(0, 3, 3)]}) for _ in range(6)]
    for ours, theirs in results:
        assert ours[hot].tolist() == theirs[hot].tolist()
        for got, expected in zip(ours[maps], theirs[maps], strict=True):
            assert got == pytest.approx(expected, rel=1e-5)
            got.clear()
    calls = straight(both.hot)._run.__globals__.values()
    assert bound_plans.__name__ in {getattr(call, "__module__", "") for call in calls}, "the region was bound"
    feeds = {"x": np.array(["red", "pink", "blue"], object)}
    if zeros:
        assert both.hot.run(feeds, keep=False)[hot].sum() == 2
    else:
        with pytest.raises(RunError, match="a category that is in no list"):
            both.hot.run(feeds, keep=False)


def test_the_first_of_several_outputs_stays_the_only_one():
    run = runner("g (float[2, 4] x, float[4] w) => (float[2, 4] y) { y = LayerNormalization (x, w) }")
    for number in range(1, 6):
        results = run.run({"x": np.eye(2, 4, dtype=np.float32) * number, "w": np.ones(4, np.float32)}, keep=False)
        assert results["y"].shape == (2, 4)
    assert straight(run)._run is not None


def test_indices_beyond_an_axis_are_left_to_numpy():
    recipe = Recipe()
    x, i = recipe.input("x", np.zeros((4, 3), np.float32)), recipe.input("i", np.zeros((2, 2), np.int64))
    y = recipe.node("Exp", recipe.node("Gather", x, recipe.node("Add", i, i), axis=0))
    both = Both(recipe.model(y))
    data = np.arange(12, dtype=np.float32).reshape(4, 3) / 9
    for indices in ([[0, 1], [1, 0]],) * 5 + ([[-1, 1], [0, 1]],):
        ours, theirs = both.run({"x": data, "i": np.array(indices)})
        np.testing.assert_allclose(ours[y], theirs[y], rtol=1e-6)
    with pytest.raises(RunError, match="Gather"):
        both.hot.run({"x": data, "i": np.array([[0, 9], [0, 0]])}, keep=False)


def test_words_are_joined_whatever_their_shapes():
    x = np.array([["a", "b"], ["c", "d"]], object)
    for y in (x, np.array(["1", "2"], object), np.array([["!"], ["?"]], object), np.array("?", object)):
        joined = string_concat(x, y)
        assert joined.tolist() == (x + y).tolist()
        assert string_concat(y, x).tolist() == (y + x).tolist()
        assert joined.dtype == object


def rows_of_two(rows):
    return {name: np.full((rows, 2), number, np.float32) for number, name in enumerate("xw", 1)}


def test_the_second_run_is_ready():
    run = runner(TEXT)
    for rows in (3, 3, 1, 0):
        results = run.run(rows_of_two(rows), keep=False)
        assert results["z"].tolist() == [[9, 9]] * rows
    assert run.run(rows_of_two(3), ["y"], keep=False).keys() == {"y"}
    keys = {(key.signature[2][0], key.outputs) for key in specialized_of(run)}
    assert keys == {(3, None), (1, None), (0, None), (3, ("y",))}


def test_what_does_not_fit_is_refused_as_ever():
    run = runner(TEXT)
    for _ in range(2):
        run.run(rows_of_two(3), keep=False)
        for wrong in (
            rows_of_two(3) | {"w": np.ones((2, 2), np.float32)},
            rows_of_two(3) | {"w": np.ones((3, 2))},
            {"x": None},
        ):
            with pytest.raises((FeedError, RunError)):
                run.run(wrong, keep=False)


def test_lists_are_converted_each_time():
    run = runner(TEXT)
    for number in range(3):
        assert run.run({"x": [[number, 0]], "w": [[0, 0]]}, keep=False)["y"].tolist() == [[number, 0]]
    assert not specialized_of(run)


def test_results_belong_to_the_caller():
    run = runner("g (float[n] x) => (float[n] y, float[n] z) { y = Identity (x)  z = Identity (y) }")
    x = np.ones(4, np.float32)
    for _ in range(3):
        results = run.run({"x": x}, keep=False)
        for array in results.values():
            array += 1
    assert x.tolist() == [1] * 4


def test_pins_and_edits_are_seen():
    run = runner(TEXT)
    for _ in range(2):
        run.run(rows_of_two(1), keep=False)
    run.pin("y", np.zeros((1, 2), np.float32))
    assert run.run(rows_of_two(1), keep=False)["z"].tolist() == [[0, 0]]
    run.unpin()
    assert run.run(rows_of_two(1), keep=False)["z"].tolist() == [[9, 9]]
    run.graph.apply(SetField(("node", node(run, "z")), "op_type", "Sub"))
    assert run.run(rows_of_two(1), keep=False)["z"].tolist() == [[0, 0]]


def test_a_run_inside_an_edit_tells_what_is_there_at_that_moment():
    run = runner(TEXT)
    z = []

    def note():
        z.extend(run.run(rows_of_two(1), keep=False)["z"].flat[:1].tolist())

    for _ in range(3):
        note()
    with run.graph.edit("trial") as edit:
        note()
        edit.apply(SetField(("node", node(run, "z")), "op_type", "Sub"))
        note()
        note()
        edit.take_back()
    note()
    with run.graph.edit("subtract") as edit:
        edit.apply(SetField(("node", node(run, "z")), "op_type", "Sub"))
    note()
    assert z == [9, 9, 9, 9, 0, 0, 9, 0]


BODIES = """
g (float[2, 3] x, int64 most) => (float[2, 3] y, float[k, 2, 3] all, float[n] sums, int64 length) {
    yes = Constant <value: tensor = bool {1}> ()
    none = Constant <value_floats: floats = []> ()
    empty = SequenceEmpty ()
    y, sums, sequence, all = Loop (most, yes, x, none, empty) <body: graph = b
        (int64 i, bool before, float[2, 3] s, float[m] before_sums, seq(float[2, 3]) q)
        => (bool going, float[2, 3] t, float[l] now_sums, seq(float[2, 3]) r, float[2, 3] u) {
        going = Identity (before)
        total = ReduceSum <keepdims: int = 0> (s)
        zero = Constant <value: tensor = float {0.0}> ()
        axis = Constant <value: tensor = int64[1] {0}> ()
        positive = Greater (total, zero)
        t = If (positive) <
            then_branch: graph = p () => (float[2, 3] a) { e = Sin (s)  a = Sub (e, x) },
            else_branch: graph = q () => (float[2, 3] b) { f = Cos (s)  b = Add (f, x) }>
        one = Unsqueeze (total, axis)
        now_sums = Concat <axis: int = 0> (before_sums, one)
        r = SequenceInsert (q, t)
        u = local.half (t)
    }>
    length = SequenceLength (sequence)
}
<domain: "local", opset_import: ["" : 21]>
half (a) => (b) { two = Constant <value: tensor = float {2.0}> ()  b = Div (a, two) }
"""


def test_bodies_run_without_a_budget_too(ort_run):
    run = runner(BODIES)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    for most in (4, 4, 4, 4, 2, 0, 4, 3, 4, 4, 4):
        feeds = {"x": x + np.float32(most / 8), "most": np.array(most)}
        results = run.run(feeds, keep=False)
        for name, expected in ort_run(model(BODIES).SerializeToString(), feeds).items():
            np.testing.assert_allclose(results[name], expected, rtol=1e-5, atol=1e-6)
        for array in results.values():
            array[...] = 7  # they are the caller's
    assert straight(run)._run is not None


def test_a_loop_without_an_end_is_left_to_a_run_that_can_be_stopped():
    run = runner("""
    g (float[1] x, int64 most) => (float[1] y) {
        yes = Constant <value: tensor = bool {1}> ()
        y = Loop (most, yes, x) <body: graph = b (int64 i, bool before, float[1] s) => (bool going, float[1] t) {
            going = Identity (before)
            half = Constant <value: tensor = float {0.5}> ()
            m = Mul (s, half)
            t = Add (m, half)
        }>
    }
    """)
    for most in (3, 3, 3, 3, 20_000, 3, 3, 3, 3):
        x = np.zeros(1, np.float32)
        assert run.run({"x": x, "most": np.array(most)}, keep=False)["y"] == np.float32(1 - 0.5 ** min(most, 30))
    assert straight(run)._failures == 1


def test_what_differs_from_run_to_run_is_not_called_twice_in_a_body():
    run = runner("""
    g (float[1] x, bool way) => (float[1] y) {
        y = If (way) <
            then_branch: graph = p () => (float[1] a) { a = RandomUniformLike (x) },
            else_branch: graph = q () => (float[1] b) { b = Neg (x) }>
    }
    """)
    for way in (False, False, False, True, True, False):
        run.run({"x": np.ones(1, np.float32), "way": np.array(way)}, keep=False)
    assert not any(body._possible and body._run for body in specialized_of(run).values())


SHARED = """
<ir_version: 9, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
g (int64[n] x) => (ORDER) {
    a = ai.onnx.ml.LabelEncoder <keys_int64s = [1, 2], values_strings = ["a", "b"]> (x)
    b = Identity (a)
    c = Identity (b)
}
"""


@pytest.mark.parametrize("order", ["abc", "cba", "bc", "c", "ac"])
def test_outputs_that_are_one_value_are_arrays_of_their_own(order: str) -> None:
    text = SHARED.replace("ORDER", ", ".join(f"string[n] {name}" for name in order))
    loaded = onnxlab.load(onnx.parser.parse_model(text))
    for _ in range(5):
        results = loaded.run({"x": np.array([2, 1, 0])})
        for name in order:
            assert results[name].tolist() == ["b", "a", "_Unused"]
            results[name][:] = name
        assert [results[name][0] for name in order] == [*order]
        assert loaded.values["a"].tolist() == ["b", "a", "_Unused"]


VIEWS = """
<ir_version: 9, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
g (int64[n,2] x, int64[k] shape) => (string[m,j] a, string[m] b, string[k1,k2] c, string[k3] d) <int64[1] flat = {-1}> {
    a0 = Reshape (x, shape)
    a = ai.onnx.ml.LabelEncoder <keys_int64s = [1, 2], values_strings = ["a", "b"]> (a0)
    b = Reshape (a, flat)
    c = Reshape (b, shape)
    e = Identity (b)
    d = Reshape (e, flat)
}
"""


def test_shapes_that_values_decide_are_asked_again_and_views_are_copied() -> None:
    loaded = onnxlab.load(onnx.parser.parse_model(VIEWS))
    x = np.array([[1, 2], [2, 1], [3, 3]])
    for shape in [(3, 2)] * 4 + [(2, 3), (6, 1), (3, 2)]:
        results = loaded.run({"x": x, "shape": np.array(shape)})
        flat = ["a", "b", "b", "a", "_Unused", "_Unused"]
        assert results["a"].shape == results["c"].shape == shape
        assert all(array.ravel().tolist() == flat for array in results.values())
        for name, array in results.items():
            array[...] = name
        assert [array.flat[0] for array in results.values()] == [*"abcd"]
