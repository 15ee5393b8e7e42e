"""Runs that would take too much memory, too many iterations or too long."""

import contextlib
import gc
import threading
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxlab.errors import LimitError, RunError, RunStopped
from onnxlab.execution.base import background, blas
from onnxlab.execution.base.provider import Provider, SubgraphClaim
from onnxlab.execution.program import call, run_state
from onnxlab.limits import Limits
from onnxlab.ops.onnx.control.sequence import sequence_insert
from tests.execution.support.models import fastest, runner

TERA = 10**12
GREEDY = {
    "Range": ("int64 n", "y = Range (zero, n, one)", {"n": TERA}),
    "Expand": ("int64[1] n", "y = Expand (one, n)", {"n": [TERA]}),
    "Tile": ("int64[1] n", "k = Constant <value_ints = [1]> () y = Tile (k, n)", {"n": [TERA]}),
    "ConstantOfShape": ("int64[1] n", "y = ConstantOfShape (n)", {"n": [TERA]}),
    "OneHot": ("int64 n", "k = Constant <value_ints = [1]> () v = Constant <value_floats = [0.0, 1.0]> () "
               "y = OneHot (k, n, v)", {"n": TERA}),
    "Pad": ("int64[2] n", "k = Constant <value_ints = [1]> () y = Pad (k, n)", {"n": [0, TERA]}),
    "Resize": ("float[2] n", "k = Constant <value_floats = [1.0, 2.0]> () "
               "r = Unsqueeze (k, zero1) y = Resize (r, , n)", {"n": [1.0, 1e12]}),
    "Add": ("float[a, 1] n, float[1, b] m", "y = Add (n, m)",
            {"n": np.ones((10**6, 1), "f"), "m": np.ones((1, 10**6), "f")}),
    "MatMul": ("float[a, 1] n, float[1, b] m", "y = MatMul (n, m)",
               {"n": np.ones((10**6, 1), "f"), "m": np.ones((1, 10**6), "f")}),
    "Gather": ("float[1, b] n, int64[i] m", "y = Gather (n, m)",
               {"n": np.ones((1, 10**6), "f"), "m": np.zeros(10**6, "i8")}),
    "GridSample": ("float[1, c, 1, 1] n, float[1, h, 1, 2] m", "y = GridSample (n, m)",
                   {"n": np.ones((1, 10**6, 1, 1), "f"), "m": np.ones((1, 10**6, 1, 2), "f")}),
    "StringConcat": ("string[a, 1] n, string[1, b] m", "y = StringConcat (n, m)",
                     {"n": np.full((10**6, 1), "a", object), "m": np.full((1, 10**6), "b", object)}),
    "StringSplit": ("string[a] n", "y, z = StringSplit (n)",
                    {"n": np.array(["a " * 2 * 10**6, *["b"] * 10**6], object)}),
    "STFT": ("float[1, t, 1] n, int64 s, float[w] m", "y = STFT (n, s, m)",
             {"n": np.ones((1, 2 * 10**6, 1), "f"), "s": 1, "m": np.ones(10**6, "f")}),
    "LSTM": ("float[t, b, i] n, float[1, 4, i] w, float[1, 4, 1] m", "y = LSTM <hidden_size = 1> (n, w, m)",
             {"n": np.zeros((10**6, 10**6, 0), "f"), "w": np.zeros((1, 4, 0), "f"), "m": np.zeros((1, 4, 1), "f")}),
    "Einsum": ("float[a] n, float[b] m", 'y = Einsum <equation = "i,j->ij"> (n, m)',
               {"n": np.ones(10**6, "f"), "m": np.ones(10**6, "f")}),
}  # fmt: skip


@contextlib.contextmanager
def peak():
    """Yields a function that says, afterwards, how many bytes were in use at once meanwhile."""
    peaks = []
    assert background.wait(60)  # what is compiled beside the run takes memory, too
    tracemalloc.start()
    try:
        yield peaks.pop
    finally:
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("operator", GREEDY)
def test_ten_to_the_twelve_elements_are_refused_before_they_are_made(operator):
    inputs, nodes, feeds = GREEDY[operator]
    run = runner(f"g ({inputs}) => (y) <int64 zero = {{0}}, int64 one = {{1}}, int64[1] zero1 = {{0}}> {{ {nodes} }}")
    refused = pytest.raises(LimitError, match=rf"{operator}.*needs [\d.]+ TB.*limit is .*\(Limits.bytes\)")
    with peak() as peak_bytes, refused as caught:
        run.run(feeds)
    assert peak_bytes() < 50e6
    assert caught.value.node.startswith(operator)


def test_many_live_values_count_together():
    nodes = "\n".join(f"v{i + 1} = Exp (v{i})" for i in range(6))
    text = f"g (float[n] v0) => (y) {{ {nodes} y = Sum ({', '.join(f'v{i}' for i in range(7))}) }}"
    x = np.zeros(250_000, np.float32)  # 1 MB each
    with pytest.raises(LimitError, match=r"Exp#4.*on top of the 4\.0 MB that the run holds"):
        runner(text).run({"v0": x}, keep=False, limits=Limits(bytes=4_500_000))
    runner(text).run({"v0": x}, keep=False, limits=Limits(bytes=8_000_000))


def test_values_that_die_make_room():
    nodes = "\n".join(f"v{i + 1} = Exp (v{i})" for i in range(20))
    x = np.zeros(250_000, np.float32)
    text = f"g (float[n] v0) => (v20) {{ {nodes} }}"
    runner(text).run({"v0": x}, keep=False, limits=Limits(bytes=3_500_000))
    small = runner(text, keep_bytes=2_000_000)
    small.run({"v0": x}, limits=Limits(bytes=5_000_000))
    assert small.store.nbytes <= 2_000_000


ENDLESS = """
g (float[2] x) => (float[2] y) {
    y = Loop (, yes, x) <
        body = b (int64 i, bool c, float[2] v) => (bool c1, float[2] w) { c1 = Identity (c) w = Neg (v) }
    >
}"""
FEEDS = {"x": [1.0, 2.0]}


def endless():
    return runner(ENDLESS.replace("=> (float[2] y) {", "=> (float[2] y) <bool yes = {1}> {", 1))


def test_an_endless_loop_ends_at_its_iterations():
    with pytest.raises(LimitError, match=r"Loop.*more than 1,000 iterations"):
        endless().run(FEEDS, limits=Limits(iterations=1000))


def test_an_endless_loop_ends_at_its_deadline():
    def attempt():
        with pytest.raises(LimitError, match=r"longer than its limit of 0\.2 s"):
            endless().run(FEEDS, limits=Limits(deadline=0.2))

    assert fastest(attempt) < 1.0


def test_stop_from_another_thread():
    def attempt():
        limits = Limits()
        threading.Timer(0.1, limits.stop.set).start()
        with pytest.raises(RunStopped, match="the run was stopped"):
            endless().run(FEEDS, limits=limits)

    assert fastest(attempt) < 1.0


def test_a_stop_that_is_set_already_starts_nothing():
    limits = Limits()
    limits.stop.set()
    with pytest.raises(RunStopped):
        endless().run(FEEDS, limits=limits)


def test_a_loop_that_grows_a_sequence_stays_within_its_memory():
    run = runner("""
    g (float[n] x) => (y) <bool yes = {1}> {
        s = SequenceConstruct (x)
        y = Loop (, yes, s) <
            body = b (int64 i, bool c, seq(float[n]) v) => (bool c1, seq(float[n]) w) {
                c1 = Identity (c)
                e = SequenceAt (v, i)
                n = Neg (e)
                w = SequenceInsert (v, n)
            }
        >
    }""")
    with pytest.raises(LimitError, match=r"Limits\.bytes"):
        run.run({"x": np.ones(100_000, np.float32)}, limits=Limits(bytes=50_000_000, deadline=20))


@pytest.mark.parametrize("operator", ["Concat <axis = 0> (v, v)", "Tile (v, two)"])
def test_a_tensor_that_a_loop_carries_counts(operator):
    run = runner(f"""
    g (float[n] x) => (y) <bool yes = {{1}}, int64[1] two = {{2}}> {{
        y = Loop (, yes, x) <
            body = b (int64 i, bool c, float[m] v) => (bool c1, float[k] w) {{
                c1 = Identity (c)
                w = {operator}
            }}
        >
    }}""")
    with peak() as peak_bytes, pytest.raises(LimitError, match=r"on top of .* that the run holds.*Limits\.bytes"):
        run.run({"x": np.ones(100_000, np.float32)}, limits=Limits(bytes=40_000_000, deadline=20))
    assert peak_bytes() < 42e6


def test_one_tensor_many_times_is_refused_before_it_is_joined():
    run = runner(f"g (float[n] x) => (y) {{ y = Concat <axis = 0> ({', '.join(['x'] * 500)}) }}")
    x = np.ones(10**5, np.float32)
    with peak() as peak_bytes, pytest.raises(LimitError, match=r"Concat.*needs 200\.0 MB"):
        run.run({"x": x}, limits=Limits(bytes=10**8))
    assert peak_bytes() < 10e6


def test_indices_of_what_is_not_zero_are_refused_before_they_are_made():
    run = runner("g (bool[a, b, c, d] x) => (y) { y = NonZero (x) }")
    x = np.ones((10, 10, 10, 10_000), bool)
    with peak() as peak_bytes, pytest.raises(LimitError, match=r"NonZero.*needs 320\.0 MB"):
        run.run({"x": x}, limits=Limits(bytes=10**8))
    assert peak_bytes() < 40e6
    assert run.run({"x": x > 1}, limits=Limits(bytes=10**8))["y"].shape == (4, 0)


@pytest.mark.slow
@pytest.mark.parametrize("quick", [True, False], ids=["in the caller's thread", "in a worker"])
def test_a_run_that_fails_leaves_nothing_in_memory(monkeypatch, quick):
    monkeypatch.setattr(call, "QUICK", 60.0 if quick else 0.0)
    run = runner("g (float[n] x, int64[k] shape) => (y) { e = Exp (x) y = Reshape (e, shape) }")
    feeds = {"x": np.ones(10**6, np.float32)}
    run.run({**feeds, "shape": [1000, 1000]})
    wrong = {**feeds, "shape": [3, 3]}
    for limit in (None, 2e6):  # the first failure imports the diagnosis
        gc.collect()
        gc.disable()
        with peak() as _:
            with pytest.raises(RunError):
                run.run(wrong, keep=False)
            left, _ = tracemalloc.get_traced_memory()
        gc.enable()
        assert limit is None or left < limit


def test_items_of_a_sequence_that_grows_are_counted_once(monkeypatch):
    counted = []
    count = run_state._bytes_of_items
    monkeypatch.setattr(run_state, "_bytes_of_items", lambda items: counted.append(len(items)) or count(items))
    run = runner("""
    g (int64 many, float[n] x) => (y) <bool yes = {1}> {
        s = SequenceConstruct (x)
        z = Loop (many, yes, s) <
            body = b (int64 i, bool c, seq(float[n]) v) => (bool c1, seq(float[n]) w) {
                c1 = Identity (c)
                e = SequenceAt (v, i)
                n = Neg (e)
                w = SequenceInsert (v, n)
            }
        >
        y = SequenceLength (z)
    }""")
    results = run.run({"many": np.array(300), "x": np.ones(10, np.float32)}, keep=False)
    assert results["y"] == 301
    assert sum(counted) < 900


@pytest.mark.slow
@given(st.data())
def test_a_sequence_knows_the_memory_behind_its_items(data):
    base = np.zeros(8, np.float32)
    sequence, known = [base], [base, base[2:], *(np.zeros(size, np.float32) for size in range(3))]
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(-len(sequence), len(sequence)))
        sequence = sequence_insert(sequence, data.draw(st.sampled_from(known)), np.array(place))
        assert dict(run_state._buffers(sequence)) == {id(sequence): run_state._buffers(list(sequence))[0][1]}


def test_what_cannot_be_interrupted_is_left_alone():
    over = threading.Event()

    class Sleeper(Provider):
        name = "sleeper"

        def get_capability(self, view):
            return [SubgraphClaim(tuple(node.id for node in view.nodes if node.op_type == "Neg"))]

        def compile(self, part, view):
            def call(context, *arrays):
                assert over.wait(30)
                return list(arrays)

            return call

    from onnxlab.execution.numpy.provider import NumpyProvider

    run = runner("g (float[2] x) => (float[2] y) { a = Relu (x) y = Neg (a) }", providers=(Sleeper(), NumpyProvider()))

    def attempt():
        limits = Limits()
        threading.Timer(0.1, limits.stop.set).start()
        with pytest.raises(RunStopped):
            run.run(FEEDS, limits=limits)

    try:
        assert fastest(attempt) < 1.0
        assert run.run(FEEDS, ["a"])["a"].tolist() == [1, 2]
    finally:  # what goes on holds the number of BLAS threads, of which other tests speak
        over.set()
        while blas._active:
            time.sleep(0.01)
