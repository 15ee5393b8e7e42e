"""Plans bound to arrays of their own: those of microseconds, and those that run in loops.

The way to the compiled code of a short plan would take longer than the code, so each frame has its own outputs, of
which the caller gets copies: copying small outputs is faster than filling addresses of new memory into the frame. In a
loop, all iterations, or some thousand of them, are one call of compiled code. Between two iterations, loop-carried
values are copied from outputs to inputs, and the addresses of scanned inputs and outputs advance by one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from onnxlab.execution.numba.machine.records import CALL, MOVE
from onnxlab.execution.numba.plan import engine
from onnxlab.execution.numba.plan.memory import address, allocated
from onnxlab.execution.numba.plan.plan import Plan
from onnxlab.execution.numba.plan.views import Array, plain
from onnxlab.limits import Repeated, Repetition

_LITTLE = 1 << 14  # bytes of all outputs of a short plan
_ALONE = 2e4  # nanoseconds of work that are not shared with other threads
_SHORT = 5e4  # nanoseconds of work for which the GIL is not given up
_AT_ONCE = 1e7  # nanoseconds of work between looks at the stop flag
_ITERATIONS = 1 << 12  # in one call
_COLLECTED = 1 << 15  # bytes of an output that are collected by one call
_SHARED = 1e6  # nanoseconds of an iteration that are worth sharing with another thread
_REPEATS, _DONE = CALL.index("repeats"), CALL.index("done")

_copy = methodcaller("copy")


class _Bound:
    """A frame of a plan with outputs, and some inputs, of its own.

    Args:
        inputs: {number: shape and dtype} of its own inputs.
    """

    def __init__(self, plan: Plan, inputs: Mapping[int, Any]) -> None:
        self.frame = frame = plan.frame()
        self.inputs = {place: np.empty(*about) for place, about in inputs.items()}
        self.outputs = [np.empty(*result) if isinstance(result, tuple) else result for result in plan.outputs]
        for ports, arrays in ((plan.reads, self.inputs), (plan.writes, dict(enumerate(self.outputs)))):
            for word, offset, place in ports:
                if place in arrays:
                    frame.words[word] = address(arrays[place]) + offset
        self.run: Callable[[], object] = engine.caller(frame, plan.records)
        # of a loop: the words of its call, and its moves
        self.call: Array = np.zeros(0, np.int64)
        self.moves: Array = self.call


def short_plan(plan: Plan, threads: int) -> Callable[..., Any] | None:
    """A plan whose frames are bound to outputs, None where it takes long, or has large or constant outputs.

    It may be called from many threads at once, and returns the only output, or a list of all; None where an index was
    beyond its axis.
    """
    is_brief = plan.nanoseconds <= (_SHORT if threads == 1 else _ALONE) and sum(map(allocated, plan.outputs)) <= _LITTLE
    if not is_brief or not all(isinstance(output, tuple) for output in plan.outputs):
        return None
    reads, fault, idle, single = plan.reads, plan.fault, list[_Bound](), len(plan.outputs) == 1

    def call(*arrays: Array) -> Any:
        try:
            bound = idle.pop()
        except IndexError:
            bound = _Bound(plan, {})
        words = bound.frame.words
        for array in arrays:
            if not array.flags.carray:
                arrays = tuple(plain(arrays))
                break
        for word, offset, number in reads:
            words[word] = address(arrays[number]) + offset
        if fault >= 0:
            bound.frame.arena[fault] = 0
        bound.run()
        result = bound.outputs[0].copy() if single else [*map(_copy, bound.outputs)]
        failed = fault >= 0 and bound.frame.arena[fault]
        idle.append(bound)
        return None if failed else result

    return call


class LoopPlan:
    """A plan in a loop; may be called from many threads at once. See `loop_plan`."""

    def __init__(self, plan: Plan, repetition: Repetition, inputs: Sequence[Array]) -> None:
        self._plan = plan
        self._repetition = repetition
        self._own = {place: (inputs[place].shape, inputs[place].dtype) for place, _ in repetition.carried}
        if repetition.counter >= 0:
            self._own[repetition.counter] = inputs[repetition.counter].shape, np.dtype(np.int64)
        self._sizes = {place: _nbytes(plan.outputs[place]) for place in repetition.collected}
        self._steps = {place: inputs[place].nbytes for place in repetition.sliced}
        self._ports = [port for port in plan.reads if port[2] not in self._own]
        self._work = plan.nanoseconds or 1.0
        largest = max(self._sizes.values(), default=1)
        self._most = max(1, min(_ITERATIONS, int(_AT_ONCE / self._work), _COLLECTED // max(1, largest)))
        self._idle: list[_Bound] = []

    def __call__(self, context: Any, most: int, arrays: Sequence[Array]) -> Repeated | None:
        """Run at most `most` iterations; None where an index was beyond its axis."""
        try:
            bound = self._idle.pop()
        except IndexError:
            bound = self._bound()
        arrays = plain(arrays)
        self._begin(bound, arrays)
        iterations, pieces = 0, list[dict[int, Array]]()
        while True:
            count = min(most - iterations, self._most)
            done = self._some(context, bound, count, pieces)
            iterations += done
            condition = self._repetition.condition
            if done < count or iterations >= most or (condition >= 0 and not bound.outputs[condition].item()):
                break
            context.check()
        self._idle.append(bound)
        if self._plan.fault >= 0 and bound.frame.arena[self._plan.fault]:
            return None
        return iterations, self._outputs(bound, pieces)

    def _begin(self, bound: _Bound, arrays: Sequence[Array]) -> None:
        """Fill in the inputs of the first iteration."""
        for place, array in bound.inputs.items():
            np.copyto(array, arrays[place])
        for word, offset, place in self._ports:
            bound.frame.words[word] = address(arrays[place]) + offset
        if self._plan.fault >= 0:
            bound.frame.arena[self._plan.fault] = 0

    def _some(self, context: Any, bound: _Bound, count: int, pieces: list[dict[int, Array]]) -> int:
        """Run at most `count` iterations, with new memory for collected outputs; returns how many ran."""
        collected = {}
        for place in self._repetition.collected:
            shape, dtype = self._plan.outputs[place]
            context.reserve(count * self._sizes[place], "the scan outputs of the loop")
            collected[place] = np.empty((count, *shape), dtype)
        for word, offset, place in self._plan.writes:
            if place in collected:
                bound.frame.words[word] = address(collected[place]) + offset
        for row, (_, place) in enumerate(self._repetition.carried):
            if place in collected:
                bound.moves[row, 2] = address(collected[place])
        bound.call[_REPEATS], bound.call[_DONE] = count, 0
        engine.caller(bound.frame, self._plan.records, count * self._work > _SHORT)()
        done = int(bound.call[_DONE])
        pieces.append({place: array if done == count else array[:done].copy() for place, array in collected.items()})
        return done

    def _outputs(self, bound: _Bound, pieces: list[dict[int, Array]]) -> list[Array]:
        """The last value of each output, or the values of all iterations."""
        collected = self._repetition.collected
        return [
            array.copy() if place not in collected
            else pieces[0][place] if len(pieces) == 1 else np.concatenate([piece[place] for piece in pieces])
            for place, array in enumerate(bound.outputs)
        ]  # fmt: skip

    def _bound(self) -> _Bound:
        repetition, bound = self._repetition, _Bound(self._plan, self._own)
        inputs, outputs = bound.inputs, bound.outputs
        rows = [(inputs[place].nbytes, address(inputs[place]), address(outputs[output]))
                for place, output in repetition.carried]  # fmt: skip
        moves = np.zeros((2 * len(rows) + len(self._plan.reads) + len(self._plan.writes) + 1, len(MOVE)), np.int64)
        if repetition.counter >= 0:
            rows.append((0, address(inputs[repetition.counter]), 1))
        table = address(bound.frame.table)
        rows += [(0, table + 8 * word, self._steps[place]) for word, _, place in self._ports if place in self._steps]
        for place in repetition.collected:
            step = self._sizes[place]
            rows += [(0, table + 8 * word, step) for word, _, other in self._plan.writes if other == place]
            rows += [(0, address(moves) + moves.strides[0] * row + 16, step)
                     for row, (_, output) in enumerate(repetition.carried) if output == place]  # fmt: skip
        moves[: len(rows)] = np.array(rows, np.int64).reshape(-1, len(MOVE))
        condition = 0 if repetition.condition < 0 else address(outputs[repetition.condition])
        bound.call, bound.moves = bound.frame.repeat(moves[: len(rows)], condition), moves
        return bound


def loop_plan(plan: Plan, repetition: Repetition, inputs: Sequence[Array], threads: int) -> LoopPlan | None:
    """A plan as a LoopPlan for such inputs; None where a carried value changes its shape, or the plan is long."""
    if not plan.short or (threads > 1 and plan.nanoseconds > _SHARED):
        return None
    conditions = [repetition.condition] if repetition.condition >= 0 else []
    written = {output for _, output in repetition.carried}.union(repetition.collected, conditions)
    if not all(isinstance(plan.outputs[place], tuple) for place in written):
        return None
    carried = [(inputs[place], plan.outputs[output]) for place, output in repetition.carried]
    same = all((array.shape, array.dtype) == (result[0], np.dtype(result[1])) for array, result in carried)
    fits = same and all(_nbytes(plan.outputs[place]) == 1 for place in conditions)
    return LoopPlan(plan, repetition, inputs) if fits else None


def _nbytes(result: Any) -> int:
    """Bytes of an output of one iteration."""
    return result.nbytes if isinstance(result, np.ndarray) else allocated(result)
