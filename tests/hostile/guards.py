"""Kernels with a page that must not be touched behind or before each array: one element too far is a crash.

Inputs, outputs, constants and scratch of compiled regions lie so (`tests/execution/support/guard_pages.py`); for
kernels of NumPy, which is sure of its own bounds, the inputs do.
"""

import numpy as np

from onnxlab.errors import OnnxlabError
from tests.execution.support.guard_pages import Guards
from tests.hostile.bases import plain_cases
from tests.hostile.feeds import extreme, special
from tests.hostile.trial import limits

WEIGHT = 8


def preload():
    from onnxlab.execution.numba.rules.loading import load

    plain_cases()
    load()


def trial(case):
    side = case.pick(("end", "start"))
    guards = Guards(side)
    guards.install()
    if case.chance(0.6):
        drawing(case, side)
    else:
        of_operator(case, guards, side)


def drawing(case, side):
    """A random region; what it gets wrong without going too far is for `numbers` to tell."""
    from tests.execution.numba.region.test_random_regions import check_drawing

    seed = case.upto(2**31)
    case.step(f"python -m tests.execution.support.guard_pages {side} {seed} {seed + 1}")
    try:
        check_drawing(seed)
    except AssertionError as error:
        case.lines.append(f"# {str(error)[:100]}")


def of_operator(case, guards, side):
    """One of onnx's cases, its inputs with numbers that they should not have."""
    from onnxlab.execution.numpy.provider import NumpyProvider
    from onnxlab.execution.run.runner import Runner
    from onnxlab.graph.edit.model_graph import ModelGraph
    from onnxlab.infer.live.live_inference import Inference
    from tests.execution.support.regions import Eager
    from tests.hostile.trial import parsed

    base = case.pick(plain_cases())
    graph = ModelGraph(parsed(base.data))
    runner = Runner(graph, Inference(graph).fact, [Eager(1 + case.upto(1)), NumpyProvider()])
    feeds = {name: guards.copied(np.array(change(case, array), order="C")) for name, array in base.feeds.items()}
    case.step(f"run {base.name} by numba, guarded at the {side}")
    try:
        for _ in range(2):
            runner.run(feeds, keep=False, limits=limits())
    except OnnxlabError as error:
        case.lines.append(f"# {type(error).__name__}")


def change(case, array):
    way = case.upto(3)
    return special(case, array) if way == 0 else extreme(case, array) if way == 1 else array
