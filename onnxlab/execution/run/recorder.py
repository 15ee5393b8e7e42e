"""Runs that keep every value: each is compared with what it was, and no node is called whose inputs came out equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from onnxlab.execution.base.array_memory import buffers, differs, freeze, nbytes, same, total
from onnxlab.execution.base.output_sizes import fits
from onnxlab.execution.base.value_store import StoreState, new_stamp
from onnxlab.execution.program.executor import ask, call_step, spread
from onnxlab.execution.program.program import Instruction
from onnxlab.execution.program.run_errors import failure
from onnxlab.execution.program.run_observers import InstructionRows, Position
from onnxlab.execution.program.run_state import SMALL, Run

_GONE = object()  # in the place of an array that is not kept


class Recorder:
    """One run that keeps every value, and calls no node whose inputs are as they were.

    Args:
        state: what is known when the run begins.
        values: value id by slot of the program, 0 for none.
        constants: {value id: array} of what Constant nodes hold.
        fed: (array, stamp) of each value id that is given to the program.
        budget: bytes to keep; beyond it, values that no step needs any more are dropped, the oldest first.
        position: the progress of the run, which the recorder advances.
    """

    def __init__(
        self,
        state: StoreState,
        values: Sequence[int],
        constants: Mapping[int, Any],
        fed: Mapping[int, tuple[Any, int]],
        budget: int,
        position: Position,
    ) -> None:
        self._state = state
        self._known = state.arrays
        self.position = position
        self._budget = budget
        self._value = values
        self.arrays: dict[int, Any] = {}
        self.stamps = dict(state.stamps)
        self.sources: dict[int, Any] = {}  # sources of values that this run made
        self.seconds: dict[int, float] = {}
        self.fingerprints: dict[int, Any] = {}
        self.given: list[int] = []
        self._nbytes = 0  # of kept values; views count like arrays until the sum exceeds the budget
        self._held: dict[int, int] | None = None  # from then on: {id: bytes} of the kept buffers
        self._dead: list[int] = []  # slots that are needed no more, oldest first
        self._looked = 0  # how many steps have been examined for `_dead`
        self._log: list[
            tuple[int, int, Any, Any, Any, float]
        ] = []  # value, slot, array, stamps that it was made of, first element, seconds
        for value, (array, stamp) in fed.items():
            self._give(value, array, stamp)
        for value, array in constants.items():
            if value not in fed and (state.arrays.get(value) is not array or value in state.stale):
                self._give(value, array, state.stamps.get(value, 0))
        self._stamp_at = list(map(self.stamps.get, values))  # by slot, so that a step's taker gets them like inputs

    def _give(self, value: int, array: Any, stamp: int) -> None:
        self.stamps[value] = stamp
        self.given.append(value)
        freeze((array,))
        self.arrays[value] = array
        self._nbytes += total((array,))

    def execute(self, frame: list[Any], run: Run, steps: InstructionRows) -> None:
        """Run the instructions whose results are not known, on a frame that holds what they read.

        Raises:
            OnnxlabError: as `executor.execute` does.
        """
        self.position.instructions = steps.instructions
        try:
            used = self._loop(frame, run, steps)
        except Exception as error:
            raise failure(steps.instructions[self.position.done], frame, error) from error
        self._sort_in(used)
        self.position.done = self.position.total

    def _loop(self, frame: list[Any], run: Run, steps: InstructionRows) -> int:
        """Run the instructions; returns the bytes that they made and that are not counted yet.

        As in the executor's loop, the code uses local names and makes no avoidable call. Nor does it read memory that
        it does not need, since a kernel evicts from the processor's cache what was read before it. So results are
        appended to a list, which is processed when all steps are done.
        """
        limits, memory, position, key = run.limits, run.memory, self.position, id(frame)
        flagged, timed = limits.stop.is_set, limits.deadline is not None
        stamps, known, fingerprints, log = self._stamp_at, self._known.get, self._state.fingerprints.get, self._log
        sources, dirty = self._state.sources.get, self._state.dirty
        budget, array = 0 if limits.bytes is None else limits.bytes, np.ndarray
        used, room, began = 0, self._room(), perf_counter()
        for position.done, (size, single, take, call, slot, value) in enumerate(steps.rows):
            if timed or limits.interrupted or flagged():
                limits.check()
            if not value:
                used += self._execute(steps.instructions[position.done], frame, run)
                began = perf_counter()
            elif (
                sources(value) == (read := take(stamps))
                and (old := known(value, _GONE)) is not _GONE
                and value not in dirty
            ):
                frame[slot] = old
                used += self._keep(value, old, read)
            else:
                if size is None:
                    result = call(take(frame)) if single else call(*take(frame))
                elif size:
                    inputs = (take(frame),) if single else take(frame)
                    if single is not None or not fits(inputs, budget - limits.held):
                        ask(size, inputs, run)
                    result = call(*inputs)
                else:
                    result = call_step(steps.instructions[position.done], frame, run)
                if type(result) is array:
                    frame[slot] = result
                    result.setflags(write=False)
                    used += (size_of_result := result.nbytes)
                    if size_of_result > SMALL:
                        memory.hold(key, slot, result)
                else:
                    result = _placed(steps.instructions[position.done], frame, result, run)
                    used += nbytes(result)
                first = result.item(0) if type(result) is array and result.size else None
                if first != first:  # a NaN may be the same, though it equals nothing
                    first = None
                if (first is not None and first != fingerprints(value, first)) or self._is_another(value, result, read):
                    stamps[slot] = new_stamp()
                log.append((value, slot, result, read, first, -began + (began := perf_counter())))
            if used > room:
                self._sort_in(used)
                self._give_up(frame, run)
                used, room = 0, self._room()
        return used

    def _execute(self, instruction: Instruction, frame: list[Any], run: Run) -> int:
        """One step with several outputs, none, or bodies that read more than its inputs; returns bytes kept."""
        values, stamps, state = self._value, self._stamp_at, self._state
        read = tuple([stamps[slot] for slot in instruction.reads]) if instruction.captures else instruction.take(stamps)
        slots = [slot for slot in instruction.results if slot > 0]
        outputs = [values[slot] for slot in slots]
        first = values[max(instruction.results, default=0)]
        if state.sources.get(first) == read and all(v in self._known and v not in state.dirty for v in outputs):
            for slot, value in zip(slots, outputs, strict=True):
                frame[slot] = self._known[value]
            return sum([self._keep(value, self._known[value], read) for value in outputs])
        start = perf_counter()
        result = call_step(instruction, frame, run)
        seconds = perf_counter() - start
        spread(instruction, frame, result, run.memory)
        for slot, value in zip(slots, outputs, strict=True):
            if self._is_another(value, frame[slot], read):
                stamps[slot] = new_stamp()
            freeze((frame[slot],))
            self._log.append((value, slot, frame[slot], read, None, seconds))
        return sum([nbytes(frame[slot]) for slot in slots])

    def _sort_in(self, used: int) -> None:
        """Keep the values made since the last call, `used` bytes: all of the list at once, which is the fastest way."""
        if self._held is None:
            self._nbytes += used
        if not self._log:
            return
        values, slots, arrays, reads, fingerprints, seconds = zip(*self._log, strict=True)
        self._log.clear()
        self.stamps.update(zip(values, [self._stamp_at[slot] for slot in slots], strict=True))
        self.arrays.update(zip(values, arrays, strict=True))
        self.sources.update(zip(values, reads, strict=True))
        self.fingerprints.update(zip(values, fingerprints, strict=True))
        self.seconds.update(zip(values, seconds, strict=True))
        if self._held is not None:
            self._count(arrays)

    def _room(self) -> int:
        """Bytes that may be kept before buffers have to be counted; 0 once they are counted."""
        return self._budget - self._nbytes if self._held is None else 0

    def _is_another(self, value: int, array: Any, read: Any) -> bool:
        """Whether an array may differ from the value before."""
        old, state = self._known.get(value, _GONE), self._state
        if old is _GONE:  # evicted: it is the same where it is made from inputs with the same stamps as before
            return value not in state.stamps or state.sources.get(value) != read or value in state.dirty
        return differs(old, array) or not same(old, array)

    def _keep(self, value: int, array: Any, read: Any) -> int:
        """Keep a stored array that is unchanged; returns its bytes."""
        self.sources[value] = read
        self.arrays[value] = array
        if self._held is None:
            return nbytes(array)
        self._count((array,))
        return 0

    def _count(self, arrays: Iterable[Any]) -> None:
        """Count the buffers of what is kept, each once."""
        held = {} if self._held is None else self._held
        for key, size in buffers(arrays).items():
            if key not in held:
                held[key] = size
                self._nbytes += size
        self._held = held

    def _recount(self) -> None:
        self._held, self._nbytes = None, 0
        self._count(self.arrays.values())

    def _give_up(self, frame: list[Any], run: Run) -> None:
        """Give up values that no step needs any more, oldest first, until the rest fits."""
        if self._held is None:
            self._recount()
        done = self.position.done + 1
        for instruction in self.position.instructions[self._looked : done]:
            self._dead += instruction.drop
        self._looked, dropped = done, 0
        while self._dead and self._nbytes > self._budget:
            slot = self._dead.pop(0)
            frame[slot] = None
            run.memory.drop(id(frame), slot)
            self.arrays.pop(self._value[slot], None)
            dropped += 1
            if dropped % 16 == 0 or not self._dead:
                self._recount()

    def state(self, stale: frozenset[int]) -> StoreState:
        """The state after the run; `stale` are the values that were stale when it began, also by changed inputs."""
        old = self._state
        computed = {*self.sources, *self.given}
        arrays = {**old.arrays, **self.arrays}
        for value in computed.difference(self.arrays):  # values that were dropped for the budget
            arrays.pop(value, None)
        seconds = {**old.seconds, **self.seconds}
        held = old.held + self._nbytes
        if held > self._budget:
            arrays = evicted(arrays, seconds, self._budget)
            held = total(arrays.values())
        return StoreState(
            arrays,
            self.stamps,
            {**old.sources, **self.sources},
            seconds,
            old.dirty - computed,
            stale - computed,
            old.generation + 1,
            held,
            {**old.fingerprints, **self.fingerprints},
        )


def _placed(instruction: Instruction, frame: list[Any], result: Any, run: Run) -> Any:
    """The only output of an instruction, read-only and in the frame, from a result that is no plain array."""
    spread(instruction, frame, result, run.memory)
    freeze((frame[instruction.result],))
    return frame[instruction.result]


def evicted(arrays: dict[int, Any], seconds: Mapping[int, float], budget: int) -> dict[int, Any]:
    """The arrays that fit the budget: those that take the least time per byte to make again are evicted first."""
    excess = total(arrays.values()) - budget
    if excess <= 0:
        return arrays
    sizes = {value: total((array,)) for value, array in arrays.items()}
    worth = sorted(
        (value for value in arrays if sizes[value] and value in seconds),
        key=lambda value: seconds[value] / sizes[value],
    )
    for value in worth:
        if excess <= 0:
            break
        excess -= sizes[value]
        del arrays[value]
    return arrays
