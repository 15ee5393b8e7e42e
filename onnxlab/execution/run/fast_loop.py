"""Short runs without a budget: one step after the other, as long as all that they make is small.

A budget counts large arrays alone, and a run of microseconds looks at no stop flag. So a program that has run before on
feeds of the same dtypes and shapes is tried without either: where something large turns up, or anything else that an
ordinary run would have to see to, it is given up, and the ordinary run makes the answer or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

import numpy as np

from onnxlab.execution.base import blas
from onnxlab.execution.base.kept_arrays import copied
from onnxlab.execution.program import constant_folding, shape_specialization
from onnxlab.execution.program.program import Instruction, Program, Taker
from onnxlab.execution.program.run_state import SMALL, is_small
from onnxlab.ops import traits_of

_LONGEST_PAUSE = 10  # powers of two
_HELD = 1 << 20  # bytes made by shapes that are kept alive for one signature

_Size: TypeAlias = "Callable[..., int] | None"
_Row: TypeAlias = "tuple[bool, Taker, Callable[..., Any], _Size, int, tuple[int, ...], tuple[int, ...]]"
"""(one input, take, call, size, result, results, drop), as in an Instruction."""


class FastLoop:
    """A program for feeds of one signature.

    Args:
        program: what ran on such feeds.
        threads: of BLAS, 0 for a program that does not use it.
    """

    def __init__(self, program: Program, threads: int) -> None:
        self._program = program
        self._threads = threads
        self._template: list[Any] = []
        self._rows: list[_Row] | None = None
        self._outputs: list[tuple[str, int, bool]] = []  # name, slot, whether nothing else can show its array
        self._quiet = False
        self._border = [slot for _, slot in program.border]
        self._failures = self._pause = 0
        possible = all(_takes(instruction) for instruction in program.instructions if not instruction.constant)
        self._possible = possible and bool(program.instructions)

    def run(self, feeds: Mapping[str, Any], border: list[Any] | None = None) -> dict[str, Any] | None:
        """The outputs, as arrays that the caller may write to; None where an ordinary run has to be made.

        Args:
            border: takes the values of the program's border.
        """
        if not self._possible:
            return None
        if self._pause:
            self._pause -= 1
            return None
        arrays = list(feeds.values())
        rows = self._rows
        if rows is None:
            rows = self._prepared(arrays)
            if rows is None:
                return None
        try:
            if self._quiet:
                frame = self._made(arrays, rows)
            else:
                with np.errstate(all="ignore"), blas.limited(self._threads) if self._threads else nullcontext():
                    frame = self._made(arrays, rows)
        except Exception:  # the ordinary run says which node it is
            frame = None
        if frame is None:
            self._failures = min(self._failures + 1, _LONGEST_PAUSE)
            self._rows, self._pause = None, 1 << self._failures
            return None
        if border is not None and self._border:
            border += [frame[slot] for slot in self._border]
        return self._owned(frame, arrays)

    def _made(self, arrays: Sequence[Any], rows: Sequence[_Row]) -> list[Any] | None:
        """The frame after all steps, None where something is not small."""
        frame = self._template.copy()
        for slot, array in zip(self._program.feed_slots, arrays, strict=True):
            frame[slot] = array
        for single, take, call, size, slot, slots, drop in rows:
            arguments = take(frame)
            if size is not None and (size(arguments) if single else size(*arguments)) > SMALL:
                return None
            result = call(arguments) if single else call(*arguments)
            if slot > 0 and type(result) is np.ndarray:
                if result.nbytes > SMALL:
                    return None
                frame[slot] = result
            elif not _spread(frame, slots, result):
                return None
            for slot in drop:
                frame[slot] = None
        return frame

    def _owned(self, frame: list[Any], arrays: Sequence[Any]) -> dict[str, Any]:
        results = {}
        shown = {*map(id, arrays)}
        for name, slot, fresh in self._outputs:
            value = frame[slot]
            if not fresh:
                array = type(value) is np.ndarray
                writable = array and value.base is None and value.flags.writeable and id(value) not in shown
                shown.add(id(value))
                value = value if writable else copied(value)
            results[name] = value
        return results

    def _prepared(self, arrays: Sequence[Any]) -> list[_Row] | None:
        """The rows that are left for feeds of these shapes, None before it is known what shapes decide."""
        program = self._program
        plain = constant_folding.known_fold(program)
        begin = shape_specialization.final(program, arrays, plain)
        if begin is None or plain is None:
            return None
        made_by_shapes = [
            array for array, other in zip(begin.template, plain.template, strict=True) if array is not other
        ]
        if sum(array.nbytes for array in made_by_shapes) > _HELD:
            self._possible = False
            return None
        fed = dict(zip(program.feed_slots, arrays, strict=True))
        rows: list[_Row] = []
        fresh: list[int] = []
        self._quiet = True
        for instruction, _, single, take, call, slot, drop in begin.rows:
            bound, part = None, instruction.step.part
            if part is not None and part.bind is not None and all(read in fed for read in instruction.reads):
                bound = part.bind(*(fed[read] for read in instruction.reads))
            row = traits_of(instruction.step.op)
            if bound is not None or row.fresh:
                fresh.extend(instruction.results)
            self._quiet = self._quiet and (call is not instruction.call or row.quiet)
            drop = tuple([slot for slot in drop if slot not in self._border]) if self._border else drop
            rows.append((single, take, bound or call, instruction.step.size, slot, instruction.results, drop))
        slots = program.output_slots
        self._outputs = [(name, slot, slot in fresh and slots.count(slot) == 1)
                         for name, slot in zip(program.outputs, slots, strict=True)]  # fmt: skip
        self._template, self._rows = begin.template, rows
        return rows


def _takes(instruction: Instruction) -> bool:
    """Whether a step needs no context, and may be called once more than is needed."""
    if instruction.quick is not None:
        return True
    return instruction.step.pure and not instruction.step.context


def _spread(frame: list[Any], slots: Sequence[int], result: Any) -> bool:
    """Put what is no plain array, or several outputs, into their slots; False where they are not small."""
    several = len(slots) > 1 and isinstance(result, (tuple, list))
    results = result if several or isinstance(result, tuple) else (result,)
    if result is None or len(results) < len(slots):
        return False
    for slot, value in zip(slots, results, strict=False):
        if slot > 0:
            if isinstance(value, np.generic):  # what NumPy makes of arrays without axes
                value = np.asarray(value)
            if not is_small(value):
                return False
            frame[slot] = value
    return True
