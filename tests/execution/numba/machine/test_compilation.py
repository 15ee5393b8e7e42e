"""Object code: made by another process, kept in files, loaded anew."""

import importlib
import os
import subprocess
import sys
import threading
import time
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from onnxlab.execution.base import background
from onnxlab.execution.numba.machine import compilation, compiler_process, object_cache, object_loading
from onnxlab.execution.numba.machine.compiler_process import CompilerProcess, NoCompilerError
from onnxlab.execution.numba.machine.records import INTERPRETER, MODULES
from onnxlab.execution.numba.plan import engine
from onnxlab.execution.numba.region.region import Region
from onnxlab.execution.numba.rules.fusion import fusions
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer.live.live_inference import Inference
from onnxlab.threads import waiting
from tests.execution.support.internals import plans_of, programs_of
from tests.execution.support.regions import Eager, Recipe


@pytest.fixture
def process():
    """One of this test alone: between tests it might be idle for so long that it ends."""
    compiler = CompilerProcess(0)
    yield compiler
    compiler.end()


@pytest.mark.slow
def test_what_cannot_be_compiled_says_so_and_the_next_is_well(process):
    with pytest.raises(RuntimeError, match="kernel nonsense: KeyError"):
        process.compile("nonsense")
    code = process.compile(INTERPRETER)
    assert object_loading.load(INTERPRETER, code)
    for name in (b"numba_", b"NRT_", b"PyErr_"):  # the loading process has none of these symbols
        assert name not in code


def test_it_ends_with_us():
    script = (
        "from onnxlab.execution.numba.machine.compiler_process import CompilerProcess as C; print(C(True)._process.pid)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=280, check=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


def alone(monkeypatch):
    """Leave out what other tests have left: jobs, and runs that never end in threads that nothing waits for."""
    assert background.wait(60)
    monkeypatch.setattr(background, "_runs", set())


@pytest.mark.parametrize("held_up", [True, False])
def test_the_background_thread_rests_longer_than_it_works_once_it_has_held_up_a_run(monkeypatch, held_up):
    rests, spells = [], []
    alone(monkeypatch)
    monkeypatch.setattr(background, "_HOLDING_UP", 10e-3)
    monkeypatch.setattr(background.time, "sleep", rests.append)  # type: ignore[attr-defined]

    def job():
        for _ in range(9):
            began = time.thread_time()
            while time.thread_time() - began < 2e-3:
                pass
            spells.append(time.thread_time() - began)
            background.rest()

    with background.run() if held_up else nullcontext():
        background.do(job)
        assert background.wait(60)
        late = spells[-len(rests) :]
        assert (3 <= len(rests) < 9) if held_up else not rests
        assert all(
            rest >= min(10 * spell, background._LONGEST_REST) for rest, spell in zip(rests, late, strict=held_up)
        )
        rests.clear()
        job()  # a caller that waits for a plan is not delayed further
        assert not rests


@pytest.mark.parametrize("waited", [0.0, 1.0])
def test_the_background_thread_works_on_beside_a_run_that_does_not_wait(monkeypatch, waited):
    """NumPy works for long without the interpreter."""
    rests = []
    alone(monkeypatch)
    monkeypatch.setattr(background, "_HOLDING_UP", 10e-3)
    monkeypatch.setattr(background.time, "sleep", rests.append)  # type: ignore[attr-defined]
    monkeypatch.setattr(background.threads, "waiting", lambda: lambda: waited)  # type: ignore[attr-defined]

    def job():
        began = time.thread_time()
        while time.thread_time() - began < 30e-3:
            background.rest()

    with background.run():
        background.do(job)
        assert background.wait(60)
    assert bool(rests) == bool(waited)


def test_a_stopwatch_counts_the_seconds_in_which_its_thread_has_no_processor(monkeypatch):
    stopwatches, done = [], threading.Event()

    def wait():
        stopwatches.append(waiting())
        done.wait(60)

    def idle():
        return time.perf_counter() - time.thread_time()

    thread = threading.Thread(target=wait)
    thread.start()
    while not stopwatches or stopwatches[0]() < 0.05:
        time.sleep(0.01)
    done.set()
    thread.join()
    assert stopwatches[0]() >= 0.0  # it may be asked where there is no such thread any more
    stopwatch, before = waiting(), idle()
    spin(0.2)
    assert abs(stopwatch() - (idle() - before)) < 0.1
    monkeypatch.delattr(time, "pthread_getcpuclockid", raising=False)  # as on Windows
    stopwatch = waiting()
    spin(0.05)
    assert stopwatch() >= 0.05


def spin(seconds):
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


def test_the_background_thread_rests_before_each_module(tmp_path, monkeypatch):
    spin = "import time\nbegan = time.thread_time()\nwhile time.thread_time() - began < 2e-3: pass\n"
    names = ["rests_outer", "rests_first", "rests_second"]
    for name, inner in zip(names, ("import rests_first, rests_second\n", "", ""), strict=True):
        (tmp_path / f"{name}.py").write_text(spin + inner)
    monkeypatch.syspath_prepend(tmp_path)
    seen = []
    known = lambda _: seen.append(sum(name in sys.modules for name in names))  # noqa: E731
    alone(monkeypatch)
    monkeypatch.setattr(background, "_HOLDING_UP", 0.0)
    monkeypatch.setattr(background.time, "sleep", known)  # type: ignore[attr-defined]
    with background.run():
        background.do(lambda: importlib.import_module("rests_outer"))
        assert background.wait(60)
    assert seen[-2:] == [1, 2]  # the outer one, then the first in it
    before = len(seen)
    for name in names:
        del sys.modules[name]
    importlib.import_module("rests_outer")
    assert len(seen) == before  # other threads do not pause


def test_the_background_thread_rests_within_loops_and_during_runs_and_makes_no_garbage_to_look_through(monkeypatch):
    rests, ages = [], []

    alone(monkeypatch)
    monkeypatch.setattr(background, "_HOLDING_UP", 0.0)
    monkeypatch.setattr(background.time, "sleep", rests.append)  # type: ignore[attr-defined]
    monkeypatch.setattr(background, "count_as_old", lambda: ages.append(0))
    loop = lambda: [spin(2e-4) for _ in background.paced(range(64))]  # noqa: E731
    background.do(loop)
    assert background.wait(60)
    assert len(ages) >= 3
    assert not rests  # no run is delayed
    with background.run():
        background.do(loop)
        assert background.wait(60)
    assert len(rests) >= 3
    rests.clear()
    items = range(64)
    assert background.paced(items) is items  # other threads do not pause
    assert rests == []


@pytest.mark.slow
def test_no_piece_of_work_between_two_rests_grows_with_the_model(monkeypatch):
    """Counted in lines of Python: the longest piece of 1,000 nodes is no longer than that of 16 nodes."""
    recipe, row = Recipe(), np.ones((2, 4), np.float32)
    name, weight, bias = recipe.input("x", row), recipe.constant(np.eye(4, dtype=np.float32)), recipe.constant(row[0])
    for _ in range(200):
        for op_type, *others in (("MatMul", weight), ("Add", bias), ("Relu",), ("Sigmoid",), ("Softmax",)):
            name = recipe.node(op_type, name, *others)
    graph = ModelGraph(recipe.model(name))
    runner = Runner(graph, Inference(graph).fact, [Eager(background=True), NumpyProvider()])
    jobs, pieces = [], [0]

    def count(frame, event, argument):
        pieces[-1] += 1
        return count

    def rest():
        pieces.append(0)

    engine.load()
    fusions._table()  # made once, as these
    fusions._joined_terms()
    monkeypatch.setattr(background, "do", jobs.append)
    monkeypatch.setattr(background, "is_here", lambda: True)
    monkeypatch.setattr(background, "rest", rest)
    regions = []
    while not regions:
        runner.run({"x": row}, keep=False)
        while jobs:
            job = jobs.pop(0)
            before = sys.gettrace()
            sys.settrace(count)
            try:
                job()
            finally:
                sys.settrace(before)
            rest()
        calls = [instruction.call for program in programs_of(runner) for instruction in program.instructions]
        regions = [call for call in calls if isinstance(call, Region) and plans_of(call)]
    assert len(pieces) > 1000
    assert max(pieces) < 10_000


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel what is mapped")
def test_the_library_of_llvm_is_open_before_python_opens_it():
    script = """
import sys
from onnxlab.execution.numba.machine import object_loading as loading
def heard(event, arguments):
    if event == "ctypes.dlopen" and arguments[0] and "llvmlite" in str(arguments[0]):
        print("llvmlite" in open("/proc/self/maps").read())
sys.addaudithook(heard)
loading.open_library()
import llvmlite.binding
llvmlite.binding.get_host_cpu_name()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=280, check=True)
    assert done.stdout.split() == ["True"]


@pytest.mark.slow
def test_one_that_ended_is_started_anew(monkeypatch):
    process = CompilerProcess(0)
    process._process.kill()
    process._process.wait()
    with pytest.raises(NoCompilerError, match="without a word"):
        process.compile(INTERPRETER)
    monkeypatch.setattr(engine, "_process", process)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine._compiled(INTERPRETER)
    engine._process.end()


@pytest.mark.slow
def test_sources_that_changed_meanwhile_are_not_loaded(process, monkeypatch):
    monkeypatch.setattr(compiler_process.object_cache, "version", lambda name: "another")  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="start it again"):
        process.compile(INTERPRETER)


def test_a_compiler_that_is_not_asked_ends_silently(monkeypatch):
    script = compiler_process._SCRIPT.replace("serve()", "serve.__globals__.update(_IDLE=0.1); serve()", 1)
    monkeypatch.setattr(compiler_process, "_SCRIPT", script)
    compiler = CompilerProcess(0)
    compiler._process.wait(60)
    with pytest.raises(NoCompilerError, match="has ended: without a word"):
        compiler.compile(INTERPRETER)


def test_a_file_that_is_broken_is_made_anew(tmp_path, monkeypatch):
    good = object_cache.read(INTERPRETER) or compilation.compile_kernel(INTERPRETER)
    monkeypatch.setattr(object_cache, "folder", lambda: tmp_path)
    monkeypatch.setattr(engine, "_compiled", lambda name: good)
    object_cache.write(INTERPRETER, good)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for broken in (b"", b"nonsense", whole[: len(whole) // 2], whole[:-1] + b"x"):
        file.write_bytes(broken)
        assert engine._loaded(INTERPRETER)
        assert object_cache.read(INTERPRETER) == good
        assert len(list(tmp_path.iterdir())) == 1


def test_without_a_thread_nothing_is_lost(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(background, "_thread", None)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.warns(UserWarning, match="nothing is compiled, NumPy goes on: no thread can be started"):
        background.do(lambda: None)
    assert background.wait(0)


def test_a_kernel_depends_on_the_files_that_it_is_made_of():
    names = {file.name for file in object_cache._sources("elementwise")}
    assert {"elementwise.py", "operations.py", "lanes.py", "vector_math.py", "host.py", "compilation.py"} <= names
    assert not names & {"gemm.py", "rows.py", "recurrent.py"}
    assert len({object_cache.version(name) for name in (*MODULES, INTERPRETER)}) == len(MODULES) + 1


def test_a_folder_of_the_process_goes_with_it(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the cache should be")
    code = "from onnxlab.execution.numba.machine.object_cache import folder; assert folder().is_dir(); print(folder())"
    environment = {**os.environ, "ONNXLAB_CACHE": str(tmp_path / "taken"), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).parent == tmp_path
    assert not Path(done.stdout.strip()).exists()
