"""Statistics over data sets: what counting costs beside the runs, memory, and a Dask cluster.

The cluster is two processes of this machine. A sample of 20 ms is one that waits that long, so that the figures are of
the scheduler and the merging, not of how many processors there are. 64 workers are simulated from what one task, one
submission and one merge were measured to take.
"""

import contextlib
import heapq
import importlib
import pickle
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

import onnxlab
from bench.measure import Figure, Line
from onnxlab.analysis.datasets import CHUNK
from onnxlab.analysis.datasets.jobs import StatisticsJob, run_chunk
from onnxlab.analysis.datasets.sessions import payload_of, session
from onnxlab.analysis.datasets.varying import varying_values
from tests.analysis.datasets.support import KillsOnce, counted, images, same, slow_top
from tests.support import corpus

SAMPLES = 256
MANY = 10_000
MODEL = "rapidocr_cls"
SECONDS = 0.02
WORKERS = 64


def rows() -> Iterator[Line]:
    """Time, merging, memory, cluster, simulation."""
    warnings.simplefilter("ignore")
    yield from time_of_counting()
    yield from memory()
    yield from cluster()
    yield from simulated()


def time_of_counting() -> Iterator[Line]:
    """All values of a model, counted and not counted, in turn; the processor's time."""
    path = corpus.path(MODEL)
    model = onnxlab.load(path)
    samples = [corpus.inputs(MODEL, path, seed) for seed in range(16)] * (SAMPLES // 16)
    payload = payload_of(model.graph, model.inference.policy)
    names = tuple(varying_values(model.graph))
    job, models = StatisticsJob(payload.digest, names), {payload.digest: payload}
    runner = session(payload, None)
    run_chunk(job, models, samples[:4])
    plain, counting = [], []
    for _ in range(3):
        for first in range(0, SAMPLES, CHUNK):
            some = samples[first : first + CHUNK]
            start = time.process_time()
            for feeds in some:
                runner.run(feeds, names)
            plain.append(time.process_time() - start)
            start = time.process_time()
            run_chunk(job, models, some)
            counting.append(time.process_time() - start)
    chunks = SAMPLES // CHUNK
    ours, theirs = (sum(min(times[place::chunks]) for place in range(chunks)) for times in (counting, plain))
    note = f"{len(names)} values, {SAMPLES} samples; {ours / SAMPLES * 1e3:.1f} against {theirs / SAMPLES * 1e3:.1f} ms"
    yield Figure("statistics of all values to runs that keep them", ours / theirs, at_most=1.5, note=note)
    parts = [run_chunk(job, models, samples[first : first + 8]) for first in range(0, 64, 8)]
    whole, merged = run_chunk(job, models, samples[:64]), job.start()
    for part in parts:
        merged.merge(part)
    total, other = whole.tallies["values"].state(), merged.tallies["values"].state()
    exact = [name for name in total if name not in ("mean", "m2") and not np.array_equal(total[name], other[name])]
    yield Figure("counts, ends and bins that differ after merging", len(exact), at_most=0, note="of 10 arrays")
    off = max(
        float(np.max(np.abs(total[name] - other[name]) / np.maximum(np.abs(total[name]), 1e-30)))
        for name in ("mean", "m2")
    )
    spread = np.sqrt(total["m2"] / np.maximum(total["count"], 1))
    mean = float(np.max(np.abs(total["mean"] - other["mean"]) / np.maximum(np.abs(total["mean"]), spread + 1e-30)))
    yield Figure("moments after merging, relative", min(off, mean), at_most=1e-12)


def memory() -> Iterator[Line]:
    """Resident memory after a thousand and after ten thousand samples of the small model."""
    process, image = psutil.Process(), images(1)[0]
    sizes: list[int] = []

    def told(done: int, total: int | None, note: str) -> None:
        if done in (32 * 32, 32 * 312):
            sizes.append(process.memory_info().rss)

    onnxlab.statistics(onnxlab.load(), (image for _ in range(MANY)), progress=told)
    yield Figure(
        "memory at 10,000 samples to that at 1,000", sizes[1] / sizes[0], at_most=1.02, note="resident, one process"
    )


class Costs(NamedTuple):
    """Seconds that were measured.

    Attributes:
        submit: to give a task out, in the client.
        merge: to take a part in and merge it, in the client.
        task: of the scheduler and worker around a task.
    """

    submit: float
    merge: float
    task: float


@contextlib.contextmanager
def two_processes() -> Iterator[Any]:
    """A client of two workers on this machine."""
    distributed: Any = importlib.import_module("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        yield client


def cluster() -> Iterator[Line]:
    """Two processes against this one."""
    with two_processes() as client, tempfile.TemporaryDirectory() as folder:
        samples = images(100)
        equal = same(counted(samples, chunk=8, client=client), counted(samples, chunk=8))
        yield Figure("two processes give the serial result", int(equal), at_least=1, note="1: to the bit")
        pairs = [({"image": image}, "kill" if place == 50 else "") for place, image in enumerate(samples)]
        metric = KillsOnce(Path(folder) / "killed")
        model = onnxlab.load()
        killed = onnxlab.evaluate(model, model, pairs, metric, chunk=8, client=client, progress=False)
        serial = onnxlab.evaluate(model, model, pairs, metric, chunk=8, progress=False)
        yield Figure(
            "a worker killed changes nothing", int(killed.as_dict() == serial.as_dict()), at_least=1, note="1: equal"
        )
        client.wait_for_workers(2)
        yield overhead(client)


def overhead(client: Any) -> Figure:
    """The time of workers beside their samples: sending, waiting, merging, and waiting for each other at the end."""
    model, tasks = onnxlab.load(), importlib.import_module("distributed").get_task_stream
    onnxlab.evaluate(model, model, images(64), slow_top, chunk=16, client=client, progress=False)
    many = images(512)
    start = time.perf_counter()
    with tasks(client=client) as stream:
        onnxlab.evaluate(model, model, many, slow_top, client=client, progress=False)
        seconds = time.perf_counter() - start
    spans = [span for task in stream.data for span in task["startstops"] if span["action"] == "compute"]
    busy = sum(span["stop"] - span["start"] for span in spans)
    note = f"512 samples of 20 ms: {seconds:.2f} s of two workers, who counted for {busy:.2f} s"
    return Figure("overhead of the scheduler", 2 * seconds / busy - 1, at_most=0.05, note=note)


def costs(client: Any, tasks: int = 200) -> Costs:
    """The costs of a task apart from its samples: of tasks that do nothing, and of parts of a real model."""
    start = time.perf_counter()
    futures = [client.submit(_nothing, place, pure=False) for place in range(tasks)]
    submit = (time.perf_counter() - start) / tasks
    client.gather(futures)
    whole = (time.perf_counter() - start) / tasks
    path = corpus.path(MODEL)
    model = onnxlab.load(path)
    payload = payload_of(model.graph, model.inference.policy)
    job = StatisticsJob(payload.digest, tuple(varying_values(model.graph)))
    part = run_chunk(job, {payload.digest: payload}, [corpus.inputs(MODEL, path, seed) for seed in range(4)])
    data, total = pickle.dumps(part), job.start()
    seconds = []
    for _ in range(10):
        start = time.perf_counter()
        total.merge(pickle.loads(data))
        seconds.append(time.perf_counter() - start)
    return Costs(submit, min(seconds), whole)


def _nothing(place: int) -> int:
    return place


def simulated() -> Iterator[Line]:
    """The efficiency of many workers, by what was measured."""
    with two_processes() as client:
        client.gather([client.submit(_nothing, place, pure=False) for place in range(50)])
        measured = costs(client)
    words = ", ".join(f"{name} {value * 1e3:.2f} ms" for name, value in measured._asdict().items())
    for workers in (8, WORKERS, 256):
        efficiency = simulate(measured, workers)
        least = 0.8 if workers == WORKERS else None
        yield Figure(f"efficiency of {workers} workers, simulated", efficiency, at_least=least, note=words)


def simulate(measured: Costs, workers: int, chunks: int = 4000, samples: int = CHUNK, ahead: int = 3) -> float:
    """Time of all samples one after the other ÷ (workers × time of the whole run).

    The scheduler handles one task after the other, and so does the client: it gives a task out, takes parts in by their
    order, and has at most `ahead` tasks for each worker out.
    """
    free = [0.0] * workers
    client = scheduler = 0.0
    waiting: list[float] = []
    for _ in range(chunks):
        if len(waiting) >= ahead * workers:
            client = max(client, waiting.pop(0)) + measured.merge
        client += measured.submit
        scheduler = max(scheduler, client) + measured.task
        begin = max(heapq.heappop(free), scheduler)
        end = begin + samples * SECONDS
        heapq.heappush(free, end)
        waiting.append(end)
    for end in waiting:
        client = max(client, end) + measured.merge
    return chunks * samples * SECONDS / (workers * client)
