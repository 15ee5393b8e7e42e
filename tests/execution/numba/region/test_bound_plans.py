"""Loops whose body is one region: all iterations by one call, the same as one by one and as onnxruntime's."""

import numpy as np
import onnxruntime
import pytest

from onnxlab.errors import LimitError, RunError
from onnxlab.execution.numba.region.bound_plans import LoopPlan
from onnxlab.limits import Limits
from tests.execution.support.models import model
from tests.execution.support.regions import Both

STATE = """
g (float[2, 8] x, int64 most) => (float[2, 8] last, float[n, 2, 8] all) {
    yes = Constant <value: tensor = bool {1}> ()
    last, all = Loop (most, yes, x) <body: graph = b (int64 i, bool before, float[2, 8] s)
        => (bool going, float[2, 8] t, float[2, 8] u) {
        limit = Constant <value: tensor = float {3.0}> ()
        half = Constant <value: tensor = float {1.25}> ()
        t = Mul (s, half)
        u = Tanh (t)
        total = ReduceMax <keepdims: int = 0> (t)
        going = Less (total, limit)
    }>
}
"""

SAME_VALUE = """
g (float[8] x, int64 most) => (float[8] last, float[n, 8] all) {
    last, all = Loop (most, , x) <body: graph = b (int64 i, bool before, float[8] s)
        => (bool before, float[8] t, float[8] t) {
        half = Constant <value: tensor = float {0.5}> ()
        m = Mul (s, half)
        t = Sub (m, half)
    }>
}
"""

SWAP = """
g (float[8] x, float[8] y, int64 most) => (float[8] a, float[8] b, float[8] c) {
    yes = Constant <value: tensor = bool {1}> ()
    a, b, c = Loop (most, yes, x, y, x) <body: graph = b (int64 i, bool before, float[8] s, float[8] t, float[8] kept)
        => (bool going, float[8] u, float[8] v, float[8] kept) {
        going = Identity (before)
        u = Add (t, x)
        v = Sub (s, kept)
    }>
}
"""

COUNTER = """
g (float[8] x, int64 most) => (float[8] last, int64[n] numbers) {
    yes = Constant <value: tensor = bool {1}> ()
    last, numbers = Loop (most, yes, x) <body: graph = b (int64 i, bool before, float[8] s)
        => (bool going, float[8] t, int64 j) {
        going = Identity (before)
        two = Constant <value: tensor = int64 {2}> ()
        j = Mul (i, two)
        a = Relu (s)
        t = Sub (a, s)
    }>
}
"""

SCAN = """
g (float[3] x, float[n, 3] steps, float[3, n] others) => (float[3] last, float[n, 3] sums, float[3, n] both) {
    last, sums, both = Scan <num_scan_inputs: int = 2, scan_input_axes: ints = [0, 1],
        scan_input_directions: ints = [0, 1], scan_output_axes: ints = [0, 1], scan_output_directions: ints = [1, 0],
        body: graph = b (float[3] s, float[3] step, float[3] other) => (float[3] t, float[3] a, float[3] c) {
        t = Add (s, step)
        a = Tanh (t)
        c = Mul (t, other)
    }> (x, steps, others)
}
"""


@pytest.fixture
def calls(monkeypatch):
    """The number of iterations of each call of a repeated plan."""
    seen = []
    original = LoopPlan.__call__

    def counted(self, context, most, arrays):
        results = original(self, context, most, arrays)
        seen.append(None if results is None else results[0])
        return results

    monkeypatch.setattr(LoopPlan, "__call__", counted)
    return seen


def checked(text, feeds, calls, expected_calls=True):
    """Run three times by regions, once by NumPy and onnxruntime: all equal."""
    proto = model(text)
    both = Both(proto)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    reference = session.run(None, feeds)
    exact = both.cold.run(feeds)
    for _ in range(4):
        results = both.hot.run(feeds, keep=False)
        for name, expected in zip(exact, reference, strict=True):
            assert results[name].dtype == expected.dtype
            np.testing.assert_allclose(results[name], expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(exact[name], expected, rtol=1e-5, atol=1e-6)
            assert results[name].flags.writeable
    assert bool(calls) is expected_calls
    return both


X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)


@pytest.mark.parametrize("most", [0, 1, 2, 3, 4, 100])
def test_a_condition_that_is_computed_ends_it(most, calls):
    checked(STATE, {"x": X, "most": np.array(most)}, calls, most > 0)
    assert set(calls) <= {min(most, 5)}


def test_what_is_collected_by_several_calls_is_joined(calls, monkeypatch):
    monkeypatch.setattr("onnxlab.execution.numba.region.bound_plans._COLLECTED", 128)
    checked(STATE, {"x": X / 1000, "most": np.array(1 << 40)}, calls)
    assert set(calls) == {36}


@pytest.mark.parametrize("most", [1, 5])
def test_a_value_may_be_carried_and_collected(most, calls):
    checked(SAME_VALUE, {"x": X[0], "most": np.array(most)}, calls)


@pytest.mark.parametrize("most", [1, 2, 7])
def test_values_that_change_places_and_stay(most, calls):
    checked(SWAP, {"x": X[0], "y": X[1], "most": np.array(most)}, calls)


def test_the_number_of_the_iteration(calls):
    checked(COUNTER, {"x": X[0], "most": np.array(9)}, calls)


@pytest.mark.parametrize("length", [1, 6])
def test_scans_along_axes_and_backwards(length, calls):
    rng = np.random.default_rng(0)
    feeds = {"x": X[0, :3].copy(), "steps": rng.standard_normal((length, 3), dtype=np.float32),
             "others": rng.standard_normal((3, length), dtype=np.float32)}  # fmt: skip
    checked(SCAN, feeds, calls)


def test_what_grows_is_run_one_by_one(calls):
    text = """
    g (float[1] x, int64 most) => (float[n] all) {
        yes = Constant <value: tensor = bool {1}> ()
        all = Loop (most, yes, x) <body: graph = b (int64 i, bool before, float[m] s) => (bool going, float[k] t) {
            going = Identity (before)
            two = Constant <value: tensor = float {2.0}> ()
            r = Mul (s, two)
            e = Tanh (r)
            t = Concat <axis: int = 0> (s, e)
        }>
    }
    """
    checked(text, {"x": X[0, :1].copy(), "most": np.array(4)}, calls, expected_calls=False)


def test_an_index_beyond_its_axis_is_told_with_its_node(calls):
    text = """
    g (float[4] x, int64[1] first, int64 most) => (float[1] last) {
        yes = Constant <value: tensor = bool {1}> ()
        one = Constant <value: tensor = int64[1] {1}> ()
        zero = Constant <value: tensor = float[1] {0.0}> ()
        i, last = Loop (most, yes, first, zero) <body: graph = b (int64 n, bool before, int64[1] i, float[1] s)
            => (bool going, int64[1] j, float[1] t) {
            going = Identity (before)
            v = Gather (x, i)
            t = Add (v, s)
            j = Add (i, one)
        }>
    }
    """
    feeds = {"x": X[0, :4].copy(), "first": np.array([0]), "most": np.array(4)}
    both = checked(text, feeds, calls)
    with pytest.raises(RunError, match="Gather"):
        both.hot.run({**feeds, "most": np.array(5)}, keep=False)
    assert calls[-1] is None


def test_iterations_are_counted(calls):
    both = checked(SWAP, {"x": X[0], "y": X[1], "most": np.array(3)}, calls)
    feeds = {"x": X[0], "y": X[1], "most": np.array(30_000)}
    assert both.hot.run(feeds, keep=False)["a"].shape == (8,)
    with pytest.raises(LimitError, match="iterations"):
        both.hot.run(feeds, keep=False, limits=Limits(iterations=29_999))
    assert both.hot.run(feeds, keep=False, limits=Limits(iterations=30_000))["a"].shape == (8,)


def test_a_condition_from_outside_ends_it_after_one(calls):
    text = """
    g (float[8] x, bool more) => (float[8] last) {
        yes = Constant <value: tensor = bool {1}> ()
        most = Constant <value: tensor = int64 {7}> ()
        last = Loop (most, yes, x) <body: graph = b (int64 i, bool before, float[8] s) => (bool more, float[8] t) {
            a = Tanh (s)
            t = Add (a, s)
        }>
    }
    """
    for more in (True, False):
        proto = model(text)
        both = Both(proto)
        for _ in range(3):
            results = both.hot.run({"x": X[0], "more": np.array(more)}, keep=False)["last"]
            expected = both.cold.run({"x": X[0], "more": np.array(more)})["last"]
            np.testing.assert_allclose(results, expected, rtol=1e-5)
    assert set(calls) <= {1, 7}


def test_a_condition_that_is_collected_is_run_one_by_one(calls):
    text = """
    g (float[8] x) => (float[8] last, bool[n] goes) {
        yes = Constant <value: tensor = bool {1}> ()
        last, goes = Loop ( , yes, x) <body: graph = b (int64 i, bool before, float[8] s)
            => (bool going, float[8] t, bool going) {
            three = Constant <value: tensor = float {3.0}> ()
            t = Add (s, three)
            m = ReduceMax <keepdims: int = 0> (t)
            limit = Constant <value: tensor = float {30.0}> ()
            going = Less (m, limit)
        }>
    }
    """
    checked(text, {"x": X[0]}, calls, expected_calls=False)
