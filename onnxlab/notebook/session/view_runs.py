"""Runs that a view asked for: each on a thread of its own, with a stop flag and throttled progress."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxlab import threads
from onnxlab.analysis.statistics import Statistics, statistics
from onnxlab.limits import Limits

if TYPE_CHECKING:
    from onnxlab.model import Model

PROGRESS_EVERY = 0.1
"""Seconds between two reports of progress."""

DEADLINE = 60.0
"""Seconds that a run from the page may take by default."""

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Made:
    """Results of a run: statistics and arrays by value id."""

    summaries: Mapping[int, Statistics]
    arrays: Mapping[int, Any]


Finish = Callable[[float, Made | None, Exception | None], None]
"""A function called with the start of the run (perf_counter), and its results or the error that ended it."""
Feeds = Callable[[], dict[str, Any]]
"""A function that makes an array for every input."""


class Runs:
    """The runs of one view, by the id of the request that asked for each."""

    def __init__(self, model: "Model") -> None:
        self._model = model
        self._limits: dict[int, Limits] = {}
        self._lock = threading.Lock()

    def start(
        self, ident: int, nodes: list[int] | None, seed: int, feeds: Feeds, progress: Progress, finish: Finish,
        deadline: float | None = DEADLINE,
    ) -> None:  # fmt: skip
        """Run some nodes of the model (None: all of the main graph) and compute statistics of their results.

        The run may take `deadline` seconds (None: no limit), and 80 % of the free memory.
        """
        limits = Limits(deadline=deadline)
        with self._lock:
            self._limits[ident] = limits

        def work() -> None:
            started = time.perf_counter()
            try:
                results = self._run(nodes, seed, feeds, limits, _throttled(progress))
            except Exception as error:
                self._end(ident)
                finish(started, None, error)
            else:
                self._end(ident)
                finish(started, results, None)

        threads.spawn(work, f"onnxlab run {ident}")

    def stop(self, ident: int) -> bool:
        """Raise the stop flag of a run; False where it has ended already."""
        with self._lock:
            limits = self._limits.get(ident)
        if limits is not None:
            limits.stop.set()
        return limits is not None

    def stop_all(self) -> None:
        """Raise every stop flag."""
        with self._lock:
            running = list(self._limits.values())
        for limits in running:
            limits.stop.set()

    def _end(self, ident: int) -> None:
        with self._lock:
            self._limits.pop(ident, None)

    def _run(self, nodes: list[int] | None, seed: int, feeds: Feeds, limits: Limits, progress: Progress) -> Made:
        graph, runner = self._model.graph, self._model.runner
        with graph.lock:
            chosen = list(graph.main.node_ids) if nodes is None else nodes
            value_of = {
                graph.values[value].name: value
                for node in chosen
                if node in graph.nodes
                for value in graph.nodes[node].outputs
                if value
            }
        if nodes is None:  # the model keeps the results of a run of the whole
            arrays = runner.run(feeds(), list(value_of), limits=limits, progress=progress, seed=seed)
        else:
            arrays = runner.run_nodes(chosen, self._read(chosen, feeds()), limits=limits, progress=progress,
                                      seed=seed or None)  # fmt: skip  # 0: random values of the last run stay
        summaries = {}
        for name, array in arrays.items():
            limits.check()
            if name in value_of:
                summaries[value_of[name]] = statistics(array)
        return Made(summaries, {value_of[name]: array for name, array in arrays.items() if name in value_of})

    def _read(self, nodes: list[int], feeds: dict[str, Any]) -> dict[str, Any]:
        """Arrays of the graph's inputs that some nodes read; none where the last run had the same inputs."""
        graph, last = self._model.graph, self._model.runner.last_inputs()
        if feeds.keys() <= last.keys() and all(feeds[name] is last[name] for name in feeds):
            return {}
        read = {value for node in nodes if node in graph.nodes for value in graph.nodes[node].inputs}
        return {value.name: feeds[value.name] for value in self._model.inputs if value.id in read}


def _throttled(progress: Progress) -> Progress:
    """A function that passes on the first report, the last, and one every PROGRESS_EVERY seconds."""
    last = float("-inf")

    def report(done: int, total: int, node: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_EVERY or done == total:
            last = now
            progress(done, total, node)

    return report
