"""Programs specialized for runs of one `RunKey`: the checks of an earlier run, and what shapes decide, hold again.

A budget counts large arrays alone, and a run of microseconds looks at no stop flag. So where nothing is kept node by
node, a program that has run on feeds of these dtypes and shapes is tried without either, as long as all that it makes
is small. Where something large turns up, or anything else that an ordinary run would have to see to, that is given up,
and the run with a budget makes the answer or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from threading import Event
from time import perf_counter
from typing import Any, NamedTuple, NoReturn

import numpy as np

from onnxlab.errors import LimitError
from onnxlab.execution.base import blas
from onnxlab.execution.base.kept_arrays import copied
from onnxlab.execution.program import constant_folding, shape_specialization
from onnxlab.execution.program.border_values import BorderValues
from onnxlab.execution.program.constant_folding import Folder
from onnxlab.execution.program.executor import execute, run_program
from onnxlab.execution.program.program import Instruction, Program, Row
from onnxlab.execution.program.run_state import Memory, Run, is_small
from onnxlab.limits import SHARE_OF_MEMORY, Limits, available_memory
from onnxlab.ops import traits_of

_LONGEST_PAUSE = 10  # powers of two
_HELD = 1 << 20  # bytes made by shapes that are kept alive for one signature
_BORDER = 1 << 26  # bytes of border values of so short a run
_NEVER = Event()
"""The stop flag of runs too short to be stopped: making a flag takes longer than all the rest."""


class RunKey(NamedTuple):
    """What a run by certain providers on so many threads, of which `Programs` are, is told from others by.

    Attributes:
        version: of the model.
        feeds, signature: names, and dtype and shape of each.
        outputs: names that are asked for; None for the graph's.
    """

    version: int
    feeds: tuple[str, ...]
    signature: tuple[Any, ...]
    outputs: tuple[str, ...] | None


def run_key(version: int, feeds: Mapping[str, Any], outputs: Sequence[str] | None) -> RunKey | None:
    """The key of a run, None where a feed is no array."""
    signature: list[Any] = []
    for array in feeds.values():
        if type(array) is not np.ndarray:
            return None
        signature += array.dtype, array.shape
    return RunKey._make((version, (*feeds,), tuple(signature), None if outputs is None else (*outputs,)))


class _Short(Limits):
    """The budget of a run without one: whatever asks for memory, or whether to go on, ends it."""

    def check(self) -> NoReturn:
        """Raise LimitError."""
        raise LimitError("this is no short run")


class _Nothing(Memory):
    """The memory of such a run."""

    def hold(self, frame: int, slot: int, value: Any) -> None:
        """Raise LimitError for what is large."""
        if not is_small(value):
            raise LimitError("this is no small value")


_SHORT_RUN = Run(_Short(0, stop=_NEVER))
_SHORT_RUN.memory, _SHORT_RUN.stoppable = _Nothing(_SHORT_RUN.limits), False


class Specialization:
    """A program that has run, for feeds of one signature, which were taken as they are.

    Args:
        folder: of what constants made.
        threads: of BLAS.
        seconds: of the processor, that the run took.

    Attributes:
        seconds: of the last run.
    """

    def __init__(self, program: Program, folder: Folder, threads: int, seconds: float) -> None:
        self.program = program
        self.seconds = seconds
        self._folder = folder
        instructions = program.instructions
        self._threads = threads if any(blas.used_by(i.step) for i in instructions) else 0
        self._template: list[Any] = []
        self._rows: list[Row] | None = None
        self._outputs: list[tuple[str, int, bool]] = []  # name, slot, whether nothing else can show its array
        self._quiet = False
        self._border = [slot for _, slot in program.border]
        self._failures = self._pause = 0
        self._possible = bool(instructions) and all(_takes(i) for i in instructions if not i.constant)

    def run(self, feeds: Mapping[str, Any], border: list[Any] | None = None) -> dict[str, Any]:
        """The outputs, as arrays that the caller may write to, made in the caller's thread. Raises what nodes raise.

        Args:
            border: takes the values of the program's border.
        """
        began = perf_counter()  # thread_time takes ten times as long; so one run that was held up counts little
        arrays = list(feeds.values())
        frame = self._frame(arrays) if self._possible else None
        if frame is None:
            results = self._counted(feeds, border)
        else:
            if border is not None and self._border:
                border += [frame[slot] for slot in self._border]
            results = self._owned(frame, arrays)
        self.seconds = min(perf_counter() - began, 2 * self.seconds)
        return results

    def _frame(self, arrays: list[Any]) -> list[Any] | None:
        """The frame after all steps, None where something is not small, or it is not known what shapes decide."""
        if self._pause:
            self._pause -= 1
            return None
        rows = self._prepared(arrays) if self._rows is None else self._rows
        if rows is None:
            return None
        frame = self._template.copy()
        for slot, array in zip(self.program.feed_slots, arrays, strict=True):
            frame[slot] = array
        try:
            if self._quiet:
                execute(self.program, frame, _SHORT_RUN, None, rows)
            else:
                with np.errstate(all="ignore"), blas.limited(self._threads) if self._threads else nullcontext():
                    execute(self.program, frame, _SHORT_RUN, None, rows)
        except Exception:  # the run with a budget says which node it is
            self._failures = min(self._failures + 1, _LONGEST_PAUSE)
            self._rows, self._pause = None, 1 << self._failures
            return None
        return frame

    def _counted(self, feeds: Mapping[str, Any], border: list[Any] | None) -> dict[str, Any]:
        """A run with a budget."""
        program, arrays = self.program, list(feeds.values())
        leaving = BorderValues(program, _BORDER) if border is not None and program.border else None
        run = Run(Limits(int(SHARE_OF_MEMORY * available_memory()), stop=_NEVER))
        with np.errstate(all="ignore"), blas.limited(self._threads) if self._threads else nullcontext():
            results = run_program(program, arrays, run, self._folder, border=leaving)
        if border is not None and leaving is not None:
            border += leaving.in_order()
        return owned(results, program.outputs, arrays)

    def _owned(self, frame: list[Any], arrays: Sequence[Any]) -> dict[str, Any]:
        results = {}
        shown = {*map(id, arrays)}
        for name, slot, fresh in self._outputs:
            results[name] = frame[slot] if fresh else _own(frame[slot], shown)
        return results

    def _prepared(self, arrays: Sequence[Any]) -> list[Row] | None:
        """The rows that are left for feeds of these shapes, None before it is known what shapes decide."""
        program = self.program
        plain = constant_folding.known_fold(program)
        begin = shape_specialization.final(program, arrays, plain)
        if begin is None or plain is None:
            return None
        pairs = zip(begin.template, plain.template, strict=True)
        if sum(array.nbytes for array, other in pairs if array is not other) > _HELD:
            self._possible = False
            return None
        fed = dict(zip(program.feed_slots, arrays, strict=True))
        rows: list[Row] = []
        fresh: list[int] = []
        self._quiet = True
        for instruction, plain_call, single, take, call, slot, drop in begin.rows:
            bound, part = None, instruction.step.part
            if part is not None and part.bind is not None and all(read in fed for read in instruction.reads):
                bound = part.bind(*(fed[read] for read in instruction.reads))
            row = traits_of(instruction.step.op)
            if bound is not None or row.fresh:
                fresh.extend(instruction.results)
            self._quiet = self._quiet and (call is not instruction.call or row.quiet)
            drop = tuple([slot for slot in drop if slot not in self._border]) if self._border else drop
            rows.append((instruction, plain_call, single, take, bound or call, slot, drop))
        slots = program.output_slots
        self._outputs = [(name, slot, slot in fresh and slots.count(slot) == 1)
                         for name, slot in zip(program.outputs, slots, strict=True)]  # fmt: skip
        self._template, self._rows = begin.template, rows
        return rows


def _takes(instruction: Instruction) -> bool:
    """Whether a step needs no context, and may be called once more than is needed."""
    return instruction.quick is not None or (instruction.step.pure and not instruction.step.context)


def owned(results: Sequence[Any], names: Sequence[str], fed: Sequence[Any]) -> dict[str, Any]:
    """Results of a run that kept nothing, as arrays that the caller may write to: nothing else shows them."""
    shown = {*map(id, fed)}
    return {name: _own(array, shown) for name, array in zip(names, results, strict=True)}


def _own(value: Any, shown: set[int]) -> Any:
    """A value, or a copy of one that something else may show; `shown` are the ids of what is shown by now."""
    writable = type(value) is np.ndarray and value.base is None and value.flags.writeable and id(value) not in shown
    shown.add(id(value))
    return value if writable else copied(value)
