"""Values that are looked at after a plain run: any one against the run, all of them against NumPy alone.

Processor time of one thread. Each look follows a run of other inputs than the one before, so that none of it is kept;
the first look at a model, which finds out where its values are, is not counted. Garbage is collected before each
timing, and a run and a look are made between: the first calls after it find the caches full of other things.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import onnxlab
from bench.measure import Figure, Line
from onnxlab.execution.base import background
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from tests.support.corpus import inputs, path

Feeds = dict[str, Any]
_NAMES = ("resnet50", "light_densenet121", "bert_base", "rapidocr_det", "gpt2_kv", "swin_s")
_LOOKS, _REPEATS, _MOST = 8, 3, 40
_ENOUGH = 0.05  # seconds of repeated runs: the shortest of three runs of microseconds tells of the machine's other work


def rows(others: Callable[[Feeds], list[Feeds]]) -> Iterator[Line]:
    """A line for one value and one for all, of some models.

    Args:
        others: makes feeds of the same shapes.
    """
    for name in _NAMES:
        yield from _of(name, cycle(others(inputs(name, path(name)))))


def _of(name: str, feeds: Iterator[Feeds]) -> Iterator[Line]:
    model = onnxlab.load(path(name))

    def run() -> None:
        model.run(next(feeds))

    for _ in range(5):
        run()
        background.wait()
    fastest = min(_spent(run) for _ in range(_REPEATS))
    repeats = max(_REPEATS, min(_MOST, int(_ENOUGH / fastest)))
    fastest = min(fastest, *(_spent(run) for _ in range(repeats)))
    names = [value for value in model.values if value not in model.runner.last_inputs()]
    slowest, which = 0.0, ""
    for value in names[:: max(1, len(names) // _LOOKS)]:
        spent = min(_spent(lambda value=value: model.values[value], run) for _ in range(repeats))  # type: ignore[misc]
        if spent > slowest:
            slowest, which = spent, value
    note = f"of a run of {fastest * 1e3:.3g} ms; the slowest of {_LOOKS}, {which}"
    yield Figure(f"{name}, look at one value", slowest / fastest, at_most=1.0, note=note)
    alone = Runner(model.graph, model.inference.fact, (NumpyProvider(),))
    numpy = min(_spent(lambda: alone.run(next(feeds), keep=False)) for _ in range(repeats))
    spent = min(_spent(model.runner.on_demand.keep_all, run) for _ in range(repeats))
    note = f"of a run of NumPy alone, {numpy * 1e3:.3g} ms"
    yield Figure(f"{name}, look at all {len(names)} values", spent / numpy, at_most=1.5, note=note)


def _spent(action: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """Seconds of the processor that an action takes, made once more than is timed, each time after another one."""
    gc.collect()
    before()
    action()
    before()
    start = time.process_time()
    action()
    return time.process_time() - start
