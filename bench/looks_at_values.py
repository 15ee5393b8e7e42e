"""Values that are looked at after a plain run: any one against the run, all of them against NumPy alone.

Processor time of one thread. Each look follows a run of other inputs than the one before, so that none of it is kept;
the first look at a model, which finds out where its values are, is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from typing import Any

import onnxlab
from bench.measure import Figure, Line, timed
from onnxlab.execution.base import background
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.execution.run.runner import Runner
from tests.support.corpus import inputs, path

Feeds = dict[str, Any]
_NAMES = ("resnet50", "light_densenet121", "bert_base", "rapidocr_det", "gpt2_kv", "swin_s")
_LOOKS, _REPEATS, _MOST = 8, 3, 40
_ENOUGH = 0.05  # seconds of repeated runs: the shortest of three runs of microseconds tells of the machine's other work
_clock = partial(timed, clock=time.process_time)


def rows(others: Callable[[Feeds], list[Feeds]]) -> Iterator[Line]:
    """A line for one value and one for all, of some models.

    Args:
        others: makes feeds of the same shapes.
    """
    for name in _NAMES:
        yield from _of(name, cycle(others(inputs(name, path(name)))))


def _of(name: str, feeds: Iterator[Feeds]) -> Iterator[Line]:
    model = onnxlab.load(path(name))
    for _ in range(5):
        model.run(next(feeds))
        background.wait()
    run = min(_clock(lambda: model.run(next(feeds))) for _ in range(_REPEATS))
    repeats = max(_REPEATS, min(_MOST, int(_ENOUGH / run)))
    run = min(run, *(_clock(lambda: model.run(next(feeds))) for _ in range(repeats)))
    names = [value for value in model.values if value not in model.runner.last_inputs()]
    slowest, which = 0.0, ""
    for value in names[:: max(1, len(names) // _LOOKS)]:
        look = partial(model.values.__getitem__, value)
        spent = []
        for _ in range(repeats):
            model.run(next(feeds))
            spent.append(_clock(look))
        if min(spent) > slowest:
            slowest, which = min(spent), value
    note = f"of a run of {run * 1e3:.3g} ms; the slowest of {_LOOKS}, {which}"
    yield Figure(f"{name}, look at one value", slowest / run, at_most=1.0, note=note)
    alone = Runner(model.graph, model.inference.fact, (NumpyProvider(),))
    alone.run(next(feeds), keep=False)
    numpy = min(_clock(lambda: alone.run(next(feeds), keep=False)) for _ in range(repeats))
    spent = []
    for _ in range(repeats):
        model.run(next(feeds))
        spent.append(_clock(model.runner.on_demand.keep_all))
    note = f"of a run of NumPy alone, {numpy * 1e3:.3g} ms"
    yield Figure(f"{name}, look at all {len(names)} values", min(spent) / numpy, at_most=1.5, note=note)
