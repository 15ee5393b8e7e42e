"""The Numba provider against onnxruntime: networks in full width, the corpus, correctness at random, cold starts.

Both sides run in turn in one process with the same threads, and the fastest of each counts. onnxruntime is taken at its
better of all optimizations and none. Lines are printed with the models first where we lose most.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import cycle
from math import exp, log
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

import onnxlab
from bench import edits, first_contact, looks_at_values, networks, regions, small_models
from bench.measure import Figure, Line, Row, one_processor, timed, with_bytecode
from onnxlab.execution.base import background
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.run.provider_names import named
from onnxlab.execution.run.runner import Runner
from tests.support.corpus import NAMES, inputs, path

Feeds = dict[str, Any]
_REPEATS = 12
_CALLS = 6
_SPIN = 0.06
"""Seconds after which workers of onnxruntime's sessions sleep: for 33 ms after a run they take a processor, waiting."""
_BANDS = (
    (1e-3, 0.95, 1.3, "1 ms or more"),
    (50e-6, 1.3, 3.0, "50 µs to 1 ms"),
    (0.0, 2.0, None, "below 50 µs"),
)
"""Seconds of onnxruntime from which a model is of the band, what its mean and its worst may be, and its name."""


def rows() -> Iterator[Line]:
    """Every figure of the table."""
    threads = 1
    yield against("ResNet-50, full width", networks.resnet50(), networks.picture(), threads, 0.95)
    yield against("BERT-base, 128 words", networks.bert_base(), networks.words(), threads, 0.95)
    measured = []
    for row in (*corpus(threads), *small(threads)):
        print(" | ".join(row.cells()), file=sys.stderr, flush=True)  # the table has them by what we lose
        measured.append(row)
    yield from sorted(measured, key=lambda row: -row.ratio)
    yield from means(measured, threads)
    yield against("ResNet-50, full width, 2 threads", networks.resnet50(), networks.picture(), 2, 1.15)
    yield against("BERT-base, 128 words, 2 threads", networks.bert_base(), networks.words(), 2, 1.15)
    yield from two_threads(measured)
    with one_processor():
        yield from edits.rows(session)
        yield from looks_at_values.rows(others)
    yield from cold_start()
    yield from first_contact.rows()
    yield from regions.rows()


def corpus(threads: int) -> Iterator[Row]:
    """A line for each model of the corpus that onnxruntime runs."""
    for name in NAMES:
        try:
            yield against(name, path(name), inputs(name, path(name)), threads, None)
        except Exception as error:  # a model that onnxruntime's Python interface does not take
            print(f"left out {name}: {error}", file=sys.stderr)


def small(threads: int) -> Iterator[Row]:
    """A line for each of the small models on which onnxruntime was once ahead."""
    for name, make in small_models.CASES.items():
        yield against(name, *make(), threads, None)


def two_threads(measured: list[Row]) -> Iterator[Line]:
    """The models that take onnxruntime 1 ms or more on one thread, and the small ones, on two."""
    rows = []
    for name in [row.what for row in measured if row.theirs >= _BANDS[0][0] or row.what in small_models.CASES]:
        make = small_models.CASES.get(name)
        model, feeds = make() if make is not None else (path(name), inputs(name, path(name)))
        row = against(name, model, feeds, 2, None)
        yield Row(f"{name}, 2 threads", row.ours, row.theirs, row.against)
        rows.append(row)
    yield from summary(rows, "models, 2 threads", 1.0, 1.3)


def means(measured: list[Row], threads: int) -> Iterator[Line]:
    """Geometric means of the models by how long onnxruntime takes, and the worst of each band."""
    above = float("inf")
    for least, mean, worst, words in _BANDS:
        rows = [row for row in measured if least <= row.theirs < above]
        above = least
        yield from summary(rows, f"models that take {words}, {threads} thread", mean, worst)


def summary(rows: list[Row], label: str, mean: float, worst: float | None) -> Iterator[Line]:
    """The geometric mean and the worst of some ratios, and what they may be."""
    if not rows:
        return
    note = "of onnxruntime's time"
    average = exp(sum(log(row.ratio) for row in rows) / len(rows))
    yield Figure(f"geometric mean of {len(rows)} {label}", average, at_most=mean, note=note)
    last = max(rows, key=lambda row: row.ratio)
    yield Figure(f"worst of {label}", last.ratio, at_most=worst, note=f"{last.what}, {note}")


def against(
    label: str,
    model: onnx.ModelProto | Path,
    feeds: Feeds,
    threads: int,
    promise: float | None,
    repeats: int = _REPEATS,
    plain: bool = True,
) -> Row:
    """Our run and onnxruntime's better one, in turn.

    Args:
        plain: ours is `model.run(feeds)`, of other inputs at each call; otherwise a runner that keeps nothing.
    """
    opened = onnxlab.load(model if isinstance(model, Path) else onnx.ModelProto.FromString(model.SerializeToString()))
    provider = NumbaProvider(threads, background=False)
    runner = Runner(opened.graph, opened.inference.fact, named([provider, "numpy"]), threads=threads)
    inputs_in_turn = cycle(others(feeds))
    data: Any = str(model) if isinstance(model, Path) else model.SerializeToString()
    sessions = [session(data, level, threads) for level in ("ORT_ENABLE_ALL", "ORT_DISABLE_ALL")]
    sides: list[Callable[[], Any]] = [lambda: runner.run(feeds, keep=False)]
    if plain:
        settle(opened, feeds, threads)
        sides = [lambda: opened.run(next(inputs_in_turn), threads=threads)]
    sides += [lambda reference=reference: reference.run(None, feeds) for reference in sessions]  # type: ignore[misc]
    with one_processor() if threads == 1 else nullcontext():
        best = fastest(sides, threads, repeats)
    return Row(label, best[0], min(best[1:]), "onnxruntime, its better one", promise)


def others(feeds: Feeds) -> list[Feeds]:
    """The feeds, and two more of the same shapes whose first elements are others, where they are floats."""
    variants = [feeds]
    for step in (1, 2):
        variants.append({name: array.copy() for name, array in feeds.items()})
        for array in variants[-1].values():
            if array.dtype.kind == "f" and array.size:
                array.flat[0] *= 1 + step / 8
    return variants


def settle(model: Any, feeds: Feeds, threads: int = 1) -> None:
    """Run until nothing is left to be compiled in the background."""
    for _ in range(6):
        model.run(feeds, threads=threads)
        background.wait()


def fastest(sides: list[Callable[[], Any]], threads: int, repeats: int) -> list[float]:
    """Seconds of the fastest call of each side, in turn."""
    for side in sides:
        side()
    inner = [max(1, min(200, round(2e-3 / min(timed(side) for _ in range(3))))) for side in sides]
    best = [float("inf")] * len(sides)
    for _ in range(repeats):
        for number, side in enumerate(sides):
            inner[number] = max(inner[number], min(200, round(2e-3 / min(best[number], 1.0))))
            best[number] = min(best[number], spent(side, inner[number], threads))
    return best


def spent(side: Callable[[], Any], inner: int, threads: int) -> float:
    """Seconds of one call: the processor's, where one thread does the work, so that a busy machine adds nothing.

    A call is made before: the first after a collection of garbage finds caches of the processor full of other things,
    which costs 0.3 to 0.7 ms.
    """
    gc.collect()
    if threads > 1:
        time.sleep(_SPIN)
    side()
    if threads > 1:
        return timed(side, inner)
    start = time.process_time()
    for _ in range(inner):
        side()
    return (time.process_time() - start) / inner


def session(data: Any, level: str, threads: int) -> Any:
    """A session of onnxruntime on the CPU."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


_INSTALLED = """
import compileall, onnxlab
compileall.compile_dir(onnxlab.__path__[0], quiet=2)
from onnxlab.execution.numba.machine import object_cache as cache
cache.version("copy")  # imports what others have installed
"""
_TIMED = """
import sys, time
import onnxlab
from onnxlab.execution.base import background
from tests.support.corpus import inputs, path
name = sys.argv[1]
feeds = inputs(name, path(name))
def timed(model, provider):
    start = time.perf_counter()
    model.run(feeds, providers=[provider])
    return time.perf_counter() - start
timed(onnxlab.load(path(name)), "numpy")  # what is imported on the way
models = [onnxlab.load(path(name)) for _ in range(2)]
"""
_FIRST = f"""{_TIMED}
print(timed(models[0], "numpy"), timed(models[1], "numba"))
"""
_WAITS = f"""{_TIMED}
timed(models[0], "numpy")  # the first of a model takes longer
plain = max(timed(models[0], "numpy") for _ in range(10))
timed(models[1], "numba")
begun = quiet_at = time.perf_counter()
waits, quiet = [0.0], 0
while quiet < 5:  # a run asks for what the one before could not have
    waits.append(timed(models[1], "numba"))
    if background.wait(0):
        quiet += 1
    else:
        quiet, quiet_at = 0, time.perf_counter()
alone = [timed(models[0], "numpy") for _ in waits]  # what a busy machine does to as many runs where nothing compiles
print(quiet_at - begun, max(waits) - plain, max(alone) - plain)
"""
_HELD = """
import sys, threading, time
import onnxlab
from onnxlab.execution.base import background
from tests.support.corpus import inputs, path
feeds, model = inputs(sys.argv[1], path(sys.argv[1])), onnxlab.load(path(sys.argv[1]))
def spent():  # by the background thread
    thread = background._thread
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident)) if thread is not None else 0.0
def beat():  # wants to go on all the time
    last, before = time.perf_counter(), spent()
    while not ended.is_set():
        if time.perf_counter() - last > 2e-3:
            held.append(spent() - before)
        before, last = spent(), time.perf_counter()
held, ended, quiet = [0.0], threading.Event(), 0
model.run(feeds, providers=["numba"])
threading.Thread(target=beat).start()
while quiet < 3:
    background.wait()
    model.run(feeds, providers=["numba"])
    quiet = quiet + 1 if background.wait(0) else 0
ended.set()
print(max(held))
"""
_WARM = """
import sys
from tests.support.corpus import inputs, path
feeds = inputs(sys.argv[1], path(sys.argv[1]))
import time; start = time.perf_counter()
import onnxlab
model = onnxlab.load(path(sys.argv[1]))
model.run(feeds, providers=["numba"])
print(time.perf_counter() - start)
"""


def cold_start() -> Iterator[Line]:
    """The first call without a cache, the longest wait while kernels compile, and a process with a warm cache.

    A wait is what a run takes beyond the slowest of ten on NumPy alone; the first calls are of models just loaded. The
    second model is the corpus's largest by nodes.
    """
    with tempfile.TemporaryDirectory() as folder:
        _fresh(_INSTALLED, folder)
        for name in ("resnet50", "swin_s"):
            yield from first_runs(name, folder)
        warm = float(_fresh(_WARM, folder, "resnet50", "resnet50"))
        yield Figure("import and first run of resnet50, warm cache", warm, "s", at_most=1.5)


def first_runs(name: str, folder: str) -> Iterator[Line]:
    """From the first call of a model of the corpus until kernels run, with a cache of its own."""
    calls = [_fresh(_FIRST, folder, f"{name} {number}", name).split() for number in range(_CALLS)]
    plain, first = (min(map(float, times)) for times in zip(*calls, strict=True))
    yield Row(f"{name}, first call on a cold cache", first, plain, "NumPy's", 1.3)
    compiling, stall, alone = map(float, _fresh(_WAITS, folder, name, name).split())
    note = f"beyond NumPy's run; {alone * 1e3:.0f} in as many runs where nothing compiles"
    yield Figure(f"{name}, longest wait while kernels compile", stall * 1e3, "ms", at_most=50, note=note)
    if hasattr(time, "pthread_getcpuclockid"):
        held = float(_fresh(_HELD, folder, "others", name)) * 1e3
        label = f"{name}, longest that the background thread holds the interpreter"
        yield Figure(label, held, "ms", at_most=50, note="CPU")
    yield Figure(f"{name}, kernels compile", compiling, "s", note="in the background, once per machine")


def _fresh(script: str, folder: str, cache: str = "", *arguments: str) -> str:
    """The output of a script in an interpreter of its own, with that cache of kernels in the folder."""
    environment = with_bytecode() | {"ONNXLAB_CACHE": f"{folder}/{cache}"}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
