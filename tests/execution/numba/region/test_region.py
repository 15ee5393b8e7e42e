"""Regions as wholes: shapes that change, stopping, threads, the background, the cache, other vector widths."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from queue import SimpleQueue
from types import SimpleNamespace

import numpy as np
import pytest

from onnxlab.errors import RunStopped
from onnxlab.execution.base import background, worker
from onnxlab.execution.base.worker import together
from onnxlab.execution.numba.machine import compiler_process, object_cache
from onnxlab.execution.numba.machine.host import HOSTS, host
from onnxlab.execution.numba.plan import engine, plan
from onnxlab.execution.numba.region.region import Region
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.live.live_inference import Inference
from onnxlab.limits import Limits
from tests.execution.support.internals import plans_of, programs_of
from tests.execution.support.regions import Both, Eager, Recipe, assert_close, check

_PATIENCE = 900
"""Seconds for a process that may have to compile kernels, on a machine that has other things to do."""


def perceptron(rng, opset=21):
    """Two layers with a residual and a softmax, batch and length left open."""
    recipe = Recipe(opset)
    x = rng.standard_normal((2, 5, 32), dtype=np.float32)
    source = recipe.input("x", x, ["batch", "length", 32])
    w = [recipe.constant(rng.standard_normal((32, 32), dtype=np.float32) / 6) for _ in range(2)]
    shape = recipe.node("Concat", recipe.node("Shape", source, end=2), recipe.constant(np.array([4, 8])), axis=0)
    hidden = recipe.node("Gelu", recipe.node("MatMul", source, w[0]))
    out = recipe.node("Add", recipe.node("MatMul", hidden, w[1]), source)
    return recipe.model(recipe.node("Softmax", recipe.node("Reshape", out, shape))), x


def test_open_dims_make_a_plan_each():
    rng = np.random.default_rng(0)
    model, _ = perceptron(rng)
    both = Both(model)
    for batch, length in ((1, 1), (3, 7), (1, 1), (2, 0), (0, 4)):
        feeds = {"x": rng.standard_normal((batch, length, 32), dtype=np.float32)}
        ours, theirs = both.run(feeds)
        (name,) = theirs
        assert_close(ours[name], theirs[name], 2e-6)
    (region,) = both.regions()
    assert [plan is not None for plan in plans_of(region).values()] == [True, True]


def test_integers_from_outside_are_part_of_the_key():
    recipe = Recipe()
    feeds = {"x": np.arange(12, dtype=np.float32), "shape": np.array([3, 4])}
    x, shape = (recipe.input(name, array) for name, array in feeds.items())
    y = recipe.node("Softmax", recipe.node("Reshape", recipe.node("Exp", x), shape))
    both = Both(recipe.model(y))
    for target_shape in ([3, 4], [2, -1], [3, 4]):
        ours, theirs = both.run(feeds | {"shape": np.array(target_shape)})
        assert_close(ours[y], theirs[y], 1e-6)


def test_numpy_answers_while_kernels_compile():
    model, x = perceptron(np.random.default_rng(1))
    both = Both(model, background=True)
    for _ in range(2):  # NumPy alone; the plan
        ours, theirs = both.run({"x": x})
        for name in theirs:
            assert_close(ours[name], theirs[name], 2e-6)
        assert background.wait(120)
        (region,) = both.regions()
        assert [type(plan).__name__ for plan in plans_of(region).values()] == ["Plan"]
        assert region._fallback.made is None  # NumPy's steps are not needed


def test_no_run_waits_for_a_plan_that_takes_longer_than_numpy(monkeypatch):
    model, x = perceptron(np.random.default_rng(2))
    both, threads, bind = Both(model, background=True), [], Region._bind
    monkeypatch.setattr(
        Region, "_bind", lambda *arguments: threads.append(threading.current_thread()) or bind(*arguments)
    )
    for took, batch in ((0.0, 1), (0.0, 2), (100.0, 3), (0.0, 4)):
        for region in both.regions() if batch > 1 else ():
            region._tier.took[None] = took
        for _ in range(3 if batch == 1 else 1):
            ours, theirs = both.run({"x": x[:1].repeat(batch, 0)})
            assert background.wait(120)
            for name in theirs:
                assert_close(ours[name], theirs[name], 2e-6)
    this_thread = threading.current_thread()
    assert [thread is this_thread for thread in threads] == [False, True, False, True]
    assert [type(plan).__name__ for plan in plans_of(both.regions()[0]).values()] == ["Plan"] * 4


@pytest.mark.parametrize("in_background", [True, False])
def test_numpy_answers_where_the_process_is_about_to_end(monkeypatch, in_background):
    """A kernel that is missing is not compiled any more, which is no fault to tell of."""
    assert background.wait(120)
    model, x = perceptron(np.random.default_rng(3))
    both, ending = Both(model, background=in_background), threading.Event()
    ending.set()
    monkeypatch.setattr(compiler_process, "_ending", ending)
    monkeypatch.setattr(engine, "_process", None)
    monkeypatch.setattr(engine, "_addresses", {})
    monkeypatch.setattr(object_cache, "read", lambda name: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for interpreter in (engine._interpret, None):
            monkeypatch.setattr(engine, "_interpret", interpreter)
            ours, theirs = both.run({"x": x})
            assert background.wait(120)
            for name in theirs:
                np.testing.assert_array_equal(ours[name], theirs[name])
        background.do(Eager().prepare)
        assert background.wait(120)
    assert not caught


@pytest.mark.slow
def test_claiming_imports_no_numba():
    script = (
        "import sys, numpy as np\n"
        "from tests.execution.numba.region.test_region import perceptron\n"
        "from tests.execution.support.regions import Both\n"
        "model, x = perceptron(np.random.default_rng(0))\n"
        "print(Both(model).hot.partition())\n"
        "sys.exit('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=_PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "numba" in done.stdout


_RUN = """
import sys, numpy as np
from tests.execution.support.regions import Both, Recipe
recipe, x = Recipe(), np.arange(12, dtype=np.float32).reshape(3, 4)
both = Both(recipe.model(recipe.node("Transpose", recipe.input("x", x))))
ours, theirs = both.run({"x": x})
assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
(region,) = both.regions()
assert not region.reason, region.reason
print("numba" in sys.modules)
"""


@pytest.mark.slow
def test_a_process_that_runs_compiled_kernels_imports_no_numba():
    done = subprocess.run([sys.executable, "-c", _RUN], capture_output=True, text=True, timeout=_PATIENCE)
    assert done.stdout == "False\n", done.stdout + done.stderr


@pytest.mark.slow
def test_without_a_process_that_compiles_this_one_does(tmp_path):
    """Nowhere to start a process, and nowhere to keep what was compiled."""
    script = "import sys; sys.executable = None\n" + _RUN
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    environment = os.environ | {"ONNXLAB_CACHE": str(blocked)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=_PATIENCE, env=environment
    )
    assert done.stdout == "True\n", done.stdout + done.stderr
    assert "kernels are compiled in this process" in done.stderr


def test_threads_share_a_plan():
    """Eight Python threads, each with two of ours, on one region at once."""
    rng = np.random.default_rng(2)
    model, _ = perceptron(rng)
    both = Both(model, threads=2)
    batches = [rng.standard_normal((3, 17, 32), dtype=np.float32) for _ in range(8)]
    expected = [both.run({"x": x})[1] for x in batches]
    wrong = []

    def work(number):
        for _ in range(150):
            results = both.hot.run({"x": batches[number]}, keep=False)
            for name, array in results.items():
                if not np.allclose(array, expected[number][name], atol=1e-6):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_an_interrupt_waits_for_threads_that_use_the_memory():
    halted, ended, begun = threading.Event(), [], threading.Barrier(3)

    def job(number):
        begun.wait(60)
        if number == 0:
            raise KeyboardInterrupt
        assert halted.wait(60)
        time.sleep(0.05)
        ended.append(number)

    with pytest.raises(KeyboardInterrupt):
        together(job, 3, halted.set)
    assert sorted(ended) == [1, 2]


def test_threads_without_a_processor_are_not_waited_for(monkeypatch):
    busy, called = SimpleNamespace(thread=threading.current_thread(), calls=SimpleQueue()), []
    monkeypatch.setattr(worker, "_taken", lambda: busy)
    together(called.append, 3, lambda: None)
    assert called == [0]
    for _ in range(2):
        assert busy.calls.get()[0]() is None, "too late"
    assert called == [0]


def test_a_thread_that_comes_late_finds_all_units_done(monkeypatch):
    model, x = perceptron(np.random.default_rng(7))
    units = []

    def one_after_the_other(frame, first, last, threads):
        frame.shared[:] = 0
        for call in frame.calls(2):
            assert engine._interpret(call, first, last) == 0
            units.append(frame.shared[1::2].tolist())

    with monkeypatch.context() as patch:
        patch.setattr(engine, "interpret", one_after_the_other)
        ours = Both(model).hot.run({"x": x}, keep=False)
    assert units[0] == units[1]
    assert min(units[0]) > 0
    for name, array in Both(model).hot.run({"x": x}, keep=False).items():
        np.testing.assert_array_equal(ours[name], array)


def test_two_threads_give_what_one_gives():
    rng = np.random.default_rng(3)
    recipe = Recipe()
    x = rng.standard_normal((1, 16, 30, 30), dtype=np.float32)
    y = recipe.node(
        "Conv", recipe.input("x", x), recipe.constant(rng.standard_normal((64, 16, 3, 3), dtype=np.float32))
    )
    y = recipe.node("MaxPool", recipe.node("HardSwish", y), kernel_shape=[2, 2], strides=[2, 2])
    model = recipe.model(y)
    single, two = check(model, {"x": x}, 1e-5), check(model, {"x": x}, 1e-5, threads=2)
    np.testing.assert_array_equal(single[y], two[y])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_runs():
    model, x = perceptron(np.random.default_rng(4))
    both = Both(model, threads=2)
    both.run({"x": x})
    child = os.fork()
    if child == 0:
        try:
            ours, theirs = both.run({"x": x})
            os._exit(0 if all(np.allclose(ours[n], theirs[n], atol=1e-6) for n in theirs) else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_binds_what_its_parent_was_binding(monkeypatch):
    """The parent held the region's lock, and the graph's, in a thread that the child does not have."""
    model, x = perceptron(np.random.default_rng(6))
    graph = ModelGraph(model)
    runner = Runner(graph, Inference(graph).fact, [Eager(background=True), NumpyProvider()])
    begun, may_go_on, bind = threading.Event(), threading.Event(), Region._bind

    def held(*arguments):
        with graph.lock:
            begun.set()
            assert may_go_on.wait(100)
            return bind(*arguments)

    def runs_compiled():
        runner.run({"x": x}, keep=False)
        calls = [instruction.call for program in programs_of(runner) for instruction in program.instructions]
        return any(isinstance(call, Region) and plans_of(call) for call in calls)

    monkeypatch.setattr(Region, "_bind", held)
    assert not runs_compiled()  # requests the program, which is compiled with its plans
    assert begun.wait(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the test needs other threads
        child = os.fork()
    if child == 0:
        monkeypatch.undo()
        signal.alarm(100)  # ends a wait that would last for ever
        while not runs_compiled():
            background.wait()
        os._exit(0)
    may_go_on.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert background.wait(100)


def test_the_budget_is_kept():
    model, _ = perceptron(np.random.default_rng(5))
    both = Both(model)
    x = np.ones((100, 7, 32), np.float32)
    both.run({"x": x})
    with pytest.raises(Exception, match="the limit is"):
        both.hot.run({"x": x}, keep=False, limits=Limits(bytes=1000))


def test_what_fits_into_the_budget_node_by_node_runs_so():
    recipe = Recipe()
    x = np.ones((100, 1000), np.float32)
    y = recipe.input("x", x)
    for _ in range(3):
        y = recipe.node("Pad", y, recipe.constant(np.array([1000, 0, 0, 1])), mode="wrap")
        y = recipe.node("Slice", y, *(recipe.constant(np.array([number])) for number in (0, 100, 0)))
    both = Both(recipe.model(y))
    expected, _ = both.run({"x": x})
    (region,) = both.regions()
    (plan,) = region._plans.values()
    budget = Limits(bytes=plan.nbytes - 1)
    np.testing.assert_array_equal(both.cold.run({"x": x}, keep=False, limits=budget)["v5"], expected["v5"])
    np.testing.assert_array_equal(both.hot.run({"x": x}, keep=False, limits=budget)["v5"], expected["v5"])


def test_who_is_stopped_too_late_leaves_nothing_behind(monkeypatch):
    """A run stopped after its last result: the next run, in the same memory, is complete."""
    monkeypatch.setattr(plan, "_STAGE", 0.0)  # the server listens
    recipe = Recipe()
    x = np.arange(4096, dtype=np.float32).reshape(64, 64)
    y = recipe.node("MatMul", recipe.input("x", x), recipe.constant(np.eye(64, dtype=np.float32)))
    both = Both(recipe.model(recipe.node("Exp", recipe.node("Neg", y))))
    both.hot.run({"x": x}, keep=False)
    (only_plan,) = plans_of(both.regions()[0]).values()
    assert not only_plan.short

    @contextmanager
    def listening(stop):
        yield
        stop()

    for _ in range(3):
        (output,) = only_plan.run([x], 1, engine.interpret, lambda: None, listening)
        np.testing.assert_allclose(output, np.exp(-x), rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_product_of_seconds_stops_between_its_tiles(threads):
    recipe = Recipe()
    x = np.ones((1536, 1536), np.float32)
    weight = recipe.constant(x)
    y = recipe.node("MatMul", recipe.input("x", x), weight)
    for _ in range(150):
        y = recipe.node("MatMul", y, weight)
    both = Both(recipe.model(y), threads=threads)
    both.hot.run({"x": x[:1536]}, outputs=["v0"], keep=False)  # packs the weights
    limits = Limits()
    threading.Timer(0.3, limits.stop.set).start()
    start = time.perf_counter()
    with pytest.raises(RunStopped):
        both.hot.run({"x": x}, limits=limits, keep=False)
    assert time.perf_counter() - start < 10, "all of it takes longer"


def test_the_cache_is_ours_alone(tmp_path, monkeypatch):
    from onnxlab.execution.numba.machine import object_cache

    monkeypatch.setenv(object_cache.FOLDER_VARIABLE, str(tmp_path / "cache"))
    (tmp_path / "cache" / "kernels").mkdir(parents=True, mode=0o755)
    folder = object_cache.folder.__wrapped__()
    assert folder.is_relative_to(tmp_path)
    assert stat.S_IMODE((tmp_path / "cache" / "kernels").stat().st_mode) == 0o700
    (tmp_path / "other").symlink_to(tmp_path / "cache")
    monkeypatch.setenv(object_cache.FOLDER_VARIABLE, str(tmp_path / "linked"))
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "kernels").symlink_to(tmp_path / "cache" / "kernels")
    assert not object_cache.folder.__wrapped__().is_relative_to(tmp_path)


@pytest.mark.parametrize("width", sorted(HOSTS.keys() - {host().name}))
@pytest.mark.slow
def test_other_widths_of_vectors(width):
    """Instructions that this processor lacks are right all the same: LLVM splits the vectors."""
    tests = ["test_product_with_constant", "test_grouped_convolution", "test_rows", "test_masks"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", " or ".join(tests),
               "tests/execution/numba/rules/test_kernels.py",
               "tests/execution/numba/rules/test_attention.py"]  # fmt: skip
    done = subprocess.run(
        command, env=os.environ | {"ONNXLAB_SIMD": width}, capture_output=True, text=True, timeout=_PATIENCE
    )
    assert done.returncode == 0, done.stdout[-3000:]
