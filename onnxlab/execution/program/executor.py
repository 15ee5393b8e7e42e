"""The loop that runs a program, and what kernels may ask of it.

The loop is stateless: the state of a run is in its `Run` and its frame, so that many threads may run one program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from onnxlab.errors import RunError
from onnxlab.execution.base.output_sizes import UNFIT
from onnxlab.execution.program import constant_folding, shape_specialization
from onnxlab.execution.program.buffer_reuse import spare
from onnxlab.execution.program.constant_folding import FoldedProgram
from onnxlab.execution.program.loop_body import LoopGrowth, loop_body, without
from onnxlab.execution.program.program import Instruction, Program, Row
from onnxlab.execution.program.run_errors import failure
from onnxlab.execution.program.run_observers import BorderValues
from onnxlab.execution.program.run_state import SMALL, Run, RunMemory
from onnxlab.limits import Body, Repeated, Repetition
from onnxlab.shapes import Fact


class Observer(Protocol):
    """An observer of the steps of a run."""

    def begins(self, instruction: Instruction) -> None:
        """Called before each step."""

    def done(self, instruction: Instruction, frame: list[Any], seconds: float) -> Iterable[int]:
        """Called after each step; returns the slots that may be let go."""


class StepContext:
    """The part of a RunContext that belongs to a step."""

    __slots__ = ("_instruction",)

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction

    @property
    def node(self) -> str:
        """The label of the node, for messages."""
        return self._instruction.step.label

    @property
    def outputs(self) -> tuple[bool, ...]:
        """Whether each output is read."""
        return tuple(slot >= 0 for slot in self._instruction.results)

    def opset_version(self, domain: str = "") -> int:
        """The imported version of a domain, 0 where it is not imported."""
        return self._instruction.step.opsets.get(domain, 0)


class NodeContext(StepContext):
    """The RunContext of one call of one node."""

    __slots__ = ("_captured", "_reserved", "_run")

    def __init__(self, run: Run, instruction: Instruction, frame: list[Any]) -> None:
        super().__init__(instruction)
        self._run = run
        self._captured = {name: frame[slot] for name, slot in instruction.captures}
        self._reserved = 0

    @property
    def is_kept(self) -> bool:
        """Whether values of the run may be asked for afterwards, or reused after an edit."""
        return self._run.is_kept

    def begins_at(self, record: int) -> None:
        """Note where the call of a part begins: not with its first record where an earlier run did these."""
        self._run.is_resumed |= record > 0

    @property
    def rng(self) -> np.random.Generator:
        """The run's generator of random numbers."""
        return self._run.rng

    def reserve(self, nbytes: int, what: str = "") -> None:
        """Reserve memory of the run's budget before it is allocated."""
        self._run.limits.reserve(nbytes, what or f"the output of {self.node}")
        self._reserved += nbytes

    def check(self) -> None:
        """Raise where the run has to stop."""
        self._run.limits.check()

    def run(self, body: Body, feeds: Sequence[Any]) -> list[Any]:
        """Run a body once, in the same run."""
        assert isinstance(body, ProgramBody)
        run, key = self._run, id(feeds)
        run.limits.iterate()
        for place, value in enumerate(feeds):  # loop-carried values are in no frame
            if type(value) is not np.ndarray or value.nbytes > SMALL or value.base is not None:
                run.memory.hold(key, place, value)
        try:
            return body.run(run, feeds, self._captured)
        finally:
            if run.memory.held:
                for place in range(len(feeds)):
                    run.memory.drop(key, place)

    def repeat(self, body: Body, repetition: Repetition, most: int, feeds: Sequence[Any]) -> Repeated | None:
        """Run a body in a loop, all at once; None where it has to be run iteration by iteration."""
        assert isinstance(body, ProgramBody)
        loop, limits = loop_body(body.made, repetition, body.growth), self._run.limits
        if loop is None:
            return None
        if limits.iterations is not None:  # the limit refuses one more
            most = min(most, limits.iterations + 1)
        results = loop.run(self, most, feeds, [self._captured[name] for name in body.captures])
        if results is not None:
            limits.iterate(results[0])
        return results

    def call(self, body: ProgramBody, feeds: Sequence[Any]) -> list[Any]:
        """Run the program of a compiled part, which does not count as an iteration of a loop."""
        return body.run(self._run, feeds, self._captured)

    def listening(self, stop: Callable[[], None]) -> AbstractContextManager[None]:
        """`with context.listening(stop): …`: another thread calls `stop` if the run has to end inside the block."""
        return self._run.limits.listening(stop)

    def release(self) -> None:
        """Give back the memory that the node reserved: from now on its outputs are counted instead."""
        self._run.limits.release(self._reserved)


class ProgramBody:
    """A subgraph or function as a kernel's Body; its program is made when it is first run.

    Attributes:
        inputs: names of the formal inputs.
        outputs: names of the outputs.
        captures: names of the outer values that it reads.
        output_facts: inferred types of the outputs, with what the file declares of them where inference knows less.
        growth: the inputs that the program does not take, since it makes the items that are appended to them.

    The program makes the values with the ids `watched` as additional outputs; the run notes them.
    """

    def __init__(
        self,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        captures: tuple[str, ...],
        output_facts: tuple[Fact, ...],
        make: Callable[[], Program],
        watched: Sequence[int] = (),
        growth: Sequence[LoopGrowth] = (),
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.captures = captures
        self.output_facts = output_facts
        self._make = make
        self.growth = growth
        self._watched = watched
        self._program: Program | None = None

    @property
    def program(self) -> Program:
        """The body's program, compiled when it is first needed."""
        if self._program is None:  # two threads may make equal programs, which does no harm
            self._program = self._make()
        return self._program

    @property
    def made(self) -> Program | None:
        """The body's program, None before it has run, and where it also makes watched values."""
        return None if self._watched else self._program

    def run(self, run: Run, feeds: Sequence[Any], captured: Mapping[str, Any]) -> list[Any]:
        """Run once. Raises ValueError for a wrong number of feeds."""
        if len(feeds) != len(self.inputs):
            takes = ", ".join(self.inputs) or "none"
            raise ValueError(f"the body takes {len(self.inputs)} inputs ({takes}), given {len(feeds)}")
        arguments = [*without(self.growth, feeds), *(captured[name] for name in self.captures)]
        results = run_program(self.program, arguments, run)
        for item in self.growth:
            results[item.output] = item.append(feeds[item.place], results[item.output])
        for value in reversed(self._watched):
            run.seen.setdefault(value, []).append(results.pop())
        return results


def run_program(
    program: Program,
    feeds: Sequence[Any],
    run: Run,
    observer: Observer | None = None,
    count: Callable[[int], None] | None = None,
    border: BorderValues | None = None,
) -> list[Any]:
    """Run a whole program and return its outputs, without instructions whose results constants or shapes decide.

    Args:
        count: called with the number of instructions to run.
        border: receives the values that are dropped.

    Raises:
        as `execute`.
    """
    known, finish = constant_folding.known_fold(program), None
    begin = known or FoldedProgram(program.template, program.rows)
    if observer is None:
        begin, finish = shape_specialization.specialized(program, feeds, begin)
        if known is None:
            begin, finish = constant_folding.first(program, begin, finish)
    if count is not None:
        count(len(begin.rows))
    frame = program.frame(feeds, begin.template)
    try:
        execute(program, frame, run, observer, begin.rows, border)
    finally:
        if run.memory.held:
            run.memory.leave(id(frame))
    results = program.results(frame)
    if finish is not None:
        finish(frame)
    return results


def execute(
    program: Program,
    frame: list[Any],
    run: Run,
    observer: Observer | None = None,
    rows: Iterable[Row] | None = None,
    border: BorderValues | None = None,
) -> None:
    """Run the instructions of a program on a frame, all of them or those of `rows`.

    Arrays are dropped after their last reader; with an observer, when the observer names their slots.

    Raises:
        RunError: a kernel failed; the message names node, operator and inputs.
        LimitError, RunStopped: the budget is used up, or the run was told to stop.
    """
    limits, memory = run.limits, run.memory
    flagged, held, key, array, scalar = limits.stop.is_set, memory.held, id(frame), np.ndarray, np.generic
    timed = limits.deadline is not None
    instruction = None
    drop: Iterable[int]
    try:
        # The code below runs once per node: local names, one tuple to unpack, no avoidable call.
        for instruction, plain, single, take, call, slot, dead in program.rows if rows is None else rows:
            if timed or limits.interrupted or flagged():
                limits.check()
            if observer is not None:
                drop = _observed(instruction, frame, run, observer)
            else:
                drop = dead
                if plain or (plain is None and not held):
                    result = call(take(frame)) if single else call(*take(frame))
                else:
                    result = None  # drops a reference to the previous result, which may be overwritten now
                    result = call_step(instruction, frame, run, dead)
                if slot > 0 and type(result) is array:
                    frame[slot] = result
                    if result.nbytes > SMALL:
                        memory.hold(key, slot, result)
                elif slot > 0 and isinstance(result, scalar):  # NumPy's result for arrays of rank 0
                    frame[slot] = np.asarray(result)
                else:
                    if result is None and call is not instruction.call:  # a part that needs a context in this run
                        result = call_step(instruction, frame, run)
                    spread(instruction, frame, result, memory)
            if border is not None:
                border.take(frame, drop)
            for slot in drop:
                frame[slot] = None
                if held:
                    memory.drop(key, slot)
    except Exception as error:
        raise failure(instruction, frame, error) from error


def call_step(instruction: Instruction, frame: list[Any], run: Run, dead: Collection[int] = ()) -> Any:
    """Call a step on its inputs; inputs in the slots `dead` may be overwritten where nothing else refers to them."""
    step, single = instruction.step, instruction.arity == 1
    inputs = instruction.take(frame)
    if instruction.reuse and dead and step.into is not None:
        out = spare(instruction.reuse, frame, dead)
        if out is not None:
            return step.into(out, inputs) if single else step.into(out, *inputs)
    if step.size is not None:
        ask(step.size, (inputs,) if single else inputs, run)
    if not step.context:
        return instruction.call(inputs) if single else instruction.call(*inputs)
    context = NodeContext(run, instruction, frame)
    try:
        return instruction.call(context, inputs) if single else instruction.call(context, *inputs)
    finally:
        context.release()


def _observed(instruction: Instruction, frame: list[Any], run: Run, observer: Observer) -> Iterable[int]:
    """Run one step with an observer; returns the slots that may be dropped."""
    observer.begins(instruction)
    start = perf_counter()
    result = call_step(instruction, frame, run)
    seconds = perf_counter() - start
    spread(instruction, frame, result, run.memory)
    return observer.done(instruction, frame, seconds)


def ask(size: Callable[..., int], inputs: tuple[Any, ...], run: Run) -> None:
    """Refuse a call whose outputs alone would break the budget."""
    try:
        nbytes = size(*inputs)
    except UNFIT:  # malformed inputs: the kernel raises the error
        return
    if nbytes > SMALL:
        run.limits.reserve(nbytes, "its output")
        run.limits.release(nbytes)


def spread(instruction: Instruction, frame: list[Any], result: Any, memory: RunMemory) -> None:
    """Put several outputs, or one that is not a plain array, into their slots."""
    slots = instruction.results
    if isinstance(result, tuple):
        results: Sequence[Any] = result
    elif instruction.step.node == 0 and isinstance(result, list):  # of a compiled part
        results = result
    else:
        results = (result,)
    if len(results) < len(slots):
        raise RunError(f"{len(slots)} outputs are listed, but the kernel made {len(results)}")
    for slot, value in zip(slots, results, strict=False):
        if slot > 0:
            if type(value) is np.ndarray and value.base is None and value.nbytes <= SMALL:
                frame[slot] = value
                continue
            frame[slot] = value = np.asarray(value) if isinstance(value, np.generic) else value
            memory.hold(id(frame), slot, value)
