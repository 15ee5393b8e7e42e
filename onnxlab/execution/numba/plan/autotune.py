"""Autotuning: the fastest of several ways to compute the same, measured once and remembered by the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from onnxlab.execution.base import background
from onnxlab.execution.numba.plan import engine
from onnxlab.execution.numba.plan.builder import PlanBuilder
from onnxlab.execution.numba.plan.plan import Plan

_REPEATS = 3
# Bytes that are written between repeats to evict constants from the cache, as other nodes of a network do.
_FLUSHED = 24 << 20

_found: dict[object, str] = {}


def remembered(key: object) -> str | None:
    """The fastest way for a key, None where nothing was measured."""
    return _found.get(key)


def fastest(key: object, ways: Mapping[str, Callable[[PlanBuilder], object]]) -> str:
    """The name of the way whose records run in the least time, on memory full of zeros.

    Args:
        key: what the answer depends on: shapes.
        ways: each appends records that read and write nothing but the arena and constants.
    """
    if key not in _found:
        engine.start()
        plans = {name: _plan(emit) for name, emit in ways.items()}
        best = dict.fromkeys(ways, float("inf"))
        flushed = np.empty(_FLUSHED, np.uint8)
        for repeat in range(_REPEATS):
            for name, plan in plans.items():
                background.rest()
                flushed.fill(repeat)
                best[name] = min(best[name], _seconds(plan))
        _found[key] = min(best, key=lambda name: best[name])
    return _found[key]


def _plan(emit: Callable[[PlanBuilder], object]) -> Plan:
    builder = PlanBuilder()
    emit(builder)
    plan = builder.finish(0, (), engine.address_of)
    plan.run((), 1, engine.interpret)  # so that all of its memory is mapped
    return plan


def _seconds(plan: Plan) -> float:
    start = time.perf_counter()
    plan.run((), 1, engine.interpret)
    return time.perf_counter() - start
