"""Plans of microseconds, for which the way to the compiled code would take longer than the code.

Each frame of a short plan has its own outputs, of which the caller gets copies: copying small outputs is faster than
filling addresses of new memory into the frame.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np

from onnxlab.execution.numba.plan import engine
from onnxlab.execution.numba.plan.memory import address, allocated
from onnxlab.execution.numba.plan.plan import Plan, PlanFrame
from onnxlab.execution.numba.plan.views import Array, plain

_LITTLE = 1 << 14  # bytes of all outputs
_SHORT = 5e4  # nanoseconds of work for which the GIL is not given up
_ALONE = 2e4  # nanoseconds of work that are not shared with other threads

_copy = methodcaller("copy")


class _Bound(NamedTuple):
    """A frame, its outputs, and the call that runs it."""

    words: Any
    outputs: list[Array]
    call: Callable[[], object]
    frame: PlanFrame


class ShortPlan:
    """A plan whose frames are bound to outputs; may be called from many threads at once. See `short_plan`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._inputs = plan.reads
        self._fault = plan.fault
        self._idle: list[_Bound] = []

    def __call__(self, *arrays: Array) -> Any:
        """The only output, or a list of all; None where an index was beyond its axis."""
        try:
            bound = self._idle.pop()
        except IndexError:
            bound = self._bound()
        words, outputs, call, frame = bound
        for array in arrays:
            if not array.flags.carray:
                arrays = tuple(plain(arrays))
                break
        for place, offset, number in self._inputs:
            words[place] = address(arrays[number]) + offset
        if self._fault >= 0:
            frame.arena[self._fault] = 0
        call()
        result = outputs[0].copy() if len(outputs) == 1 else [*map(_copy, outputs)]
        failed = self._fault >= 0 and frame.arena[self._fault]
        self._idle.append(bound)
        return None if failed else result

    def _bound(self) -> _Bound:
        frame = self._plan.frame()
        outputs: list[Array] = [np.empty(*result) for result in self._plan.outputs]
        for place, offset, number in self._plan.writes:
            frame.words[place] = address(outputs[number]) + offset
        return _Bound(frame.words, outputs, engine.caller(frame, self._plan.records), frame)


def short_plan(plan: Plan, threads: int) -> ShortPlan | None:
    """A plan as a ShortPlan, None where it takes long, or has large or constant outputs."""
    if float(plan.work.sum()) > (_SHORT if threads == 1 else _ALONE):
        return None
    if sum(map(allocated, plan.outputs)) > _LITTLE or not all(isinstance(output, tuple) for output in plan.outputs):
        return None
    return ShortPlan(plan)
