"""Programs specialized for runs of one `RunKey`: the checks of an earlier run, and what shapes decide, hold again.

A budget counts only large arrays, and a run of microseconds does not look at the stop flag. So where values are not
kept node by node, a program that has run before on feeds of these dtypes and shapes is tried without budget and stop
flag, as long as all values that it makes are small. If a value is large, or a kernel raises, the attempt is dropped,
and the run with a budget makes the result or raises the error. Bodies run in the same way, specialized for the types
and shapes of the values they read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from onnxlab.errors import LimitError
from onnxlab.execution.base import blas
from onnxlab.execution.base.array_memory import buffers, own
from onnxlab.execution.base.lru import Lru
from onnxlab.execution.program import constant_folding, shape_specialization
from onnxlab.execution.program.constant_folding import FoldedProgram
from onnxlab.execution.program.executor import ProgramBody, StepContext, run_program
from onnxlab.execution.program.loop_body import loop_body, without
from onnxlab.execution.program.program import Instruction, Program
from onnxlab.execution.program.run_observers import BorderValues
from onnxlab.execution.program.run_state import SMALL, Run
from onnxlab.execution.program.straight_line import Function, Line, Output, small, straight_line
from onnxlab.limits import Limits, Repeated, Repetition
from onnxlab.ops import traits_of

_ARRAY = np.ndarray  # a global name is found faster than an attribute
_LONGEST_PAUSE = 10  # powers of two
_HELD = 1 << 20  # bytes of values decided by shapes that are kept for one signature
_BORDER = 1 << 26  # most bytes of the border values of such a run
_SIGNATURES = 64  # signatures of a body's reads that are kept
# Largest number of body runs in a run: a loop that may never end is left to runs that can be stopped.
_ITERATIONS = 1 << 14
# Steps of a program up to which it is tried without a budget: with more steps, a budget costs comparatively little.
_STEPS = 256
_BODIES = "bodies"  # note of a program: the bodies of its steps


class RunKey(NamedTuple):
    """The identity of a run by certain `Programs`, which are for certain providers and threads.

    Attributes:
        version: of the model.
        signature: name, dtype and shape of each feed.
        outputs: names that are asked for; None for the graph's.
    """

    version: int
    signature: tuple[Any, ...]
    outputs: tuple[str, ...] | None


def run_key(version: int, feeds: Mapping[str, Any], outputs: Sequence[str] | None) -> RunKey | None:
    """The key of a run, None where a feed is no array."""
    signature: list[Any] = []
    for name, array in feeds.items():
        if type(array) is not _ARRAY:
            return None
        signature += name, array.dtype, array.shape
    return tuple.__new__(RunKey, (version, (*signature,), None if outputs is None else (*outputs,)))


class Specialization:
    """A program that has run, for feeds of one signature, which needed no conversion.

    Args:
        threads: of BLAS.
        seconds: processor time that the run took.
        is_body: whether `values` is called instead of `run`.

    Attributes:
        seconds: processor time of the last run.
    """

    def __init__(self, program: Program, threads: int, seconds: float, is_body: bool = False) -> None:
        self.program = program
        self.seconds = seconds
        self._threads = threads if any(map(_uses_blas, program.instructions)) else 0
        self._run: Function | None = None
        self._missing: list[ProgramBody] = []  # these bodies
        self._most = blas.LITTLE  # bytes of a value in a short run
        self._is_body = is_body
        self._failures = self._pause = 0
        self._possible = 0 < len(program.instructions) <= _STEPS and all(
            _takes(instruction) for instruction in program.instructions if not instruction.constant
        )

    def run(self, feeds: Mapping[str, Any], is_kept: bool = False) -> tuple[dict[str, Any], Sequence[Any]]:
        """The outputs, as arrays that the caller may write to, and the border; raises what nodes raise.

        It is made in the caller's thread.

        Args:
            is_kept: whether the values of the program's border are asked for.
        """
        began = perf_counter()  # thread_time takes ten times as long; one delayed run counts little
        arrays = [*feeds.values()]
        results = (self._short(arrays) if self._possible else None) or self._counted(arrays, is_kept)
        self.seconds = min(perf_counter() - began, 2 * self.seconds)
        return results

    def _short(self, arrays: list[Any]) -> tuple[dict[str, Any], Sequence[Any]] | None:
        """The result of a short run, None where a value is not small, or it is not yet known what shapes decide."""
        if self._pause:
            self._pause -= 1
            return None
        if self._missing and any(body.made is not None for body in self._missing):
            self._run = None
        if (run := self._run or self._prepared(arrays)) is None:
            return None
        try:
            return run(arrays, [_ITERATIONS])  # type: ignore[no-any-return]
        except Exception:  # the run with a budget names the node
            self._failures = min(self._failures + 1, _LONGEST_PAUSE)
            self._run, self._pause, self._most = None, 1 << self._failures, SMALL
            return None

    def values(self, arrays: Sequence[Any], left: list[int]) -> Sequence[Any]:
        """The outputs of a body.

        Args:
            left: how often bodies may still run.

        Raises:
            LimitError: a value is not small, or not known yet; and the errors of kernels.
        """
        run = self._run or (self._prepared(arrays) if self._possible else None)
        if run is None:
            raise LimitError("this is not known to be a short run")
        return run(arrays, left)  # type: ignore[no-any-return]

    def _counted(self, arrays: list[Any], is_kept: bool) -> tuple[dict[str, Any], Sequence[Any]]:
        """The result of a run with a budget."""
        program = self.program
        border = BorderValues(program, _BORDER) if is_kept and program.border else None
        run = Run(Limits.usual())
        run.is_kept = is_kept
        with np.errstate(all="ignore"), blas.limited(self._threads) if self._threads else nullcontext():
            results = run_program(program, arrays, run, border=border)
        crossing = [] if border is None else border.in_order()
        return owned(results, program.outputs, (*arrays, *crossing)), crossing

    def _prepared(self, arrays: Sequence[Any]) -> Function | None:
        """The function of the steps left for feeds of these shapes, None before it is known what shapes decide."""
        program = self.program
        plain = constant_folding.known_fold(program)
        begin = shape_specialization.final(program, arrays, plain)
        if begin is None or plain is None:
            return None
        pairs = zip(begin.template, plain.template, strict=True)
        if sum(array.nbytes for array, other in pairs if array is not other) > _HELD:
            self._possible = False
            return None
        known = dict(zip(program.feed_slots, arrays, strict=True))  # values of which the signature decides the shape
        lines: list[Line] = []
        fresh: set[int] = set()
        same: dict[int, int] = {}  # the slots of arrays that are another slot's
        quiet = all(row[4] is not row[0].call or traits_of(row[0].step.op).quiet for row in begin.rows)
        limit = self._threads if self._shares(begin, arrays) else 0  # bodies that have not run cannot run
        most = self._most if self._threads and not limit else SMALL
        for instruction, _, _, _, call, _, _ in begin.rows:
            part, row, context = instruction.step.part, traits_of(instruction.step.op), None
            inputs = [known.get(slot, begin.template[slot]) for slot in instruction.reads]
            is_known = all(value is not None or not slot for slot, value in zip(instruction.reads, inputs, strict=True))
            bound = part.bind(*inputs) if is_known and part is not None and part.bind is not None else None
            if instruction.step.context:
                context = partial(_ShortContext, instruction, _short_bodies(program, instruction))
            if bound is not None or row.fresh:
                fresh.update(instruction.results)
            is_plain = instruction.step.pure and not instruction.step.context and (
                row.shape == "shapes" or (row.fresh and row.shape != "data") or (row.shape == "sizes"
                and all(begin.template[slot] is not None for slot in instruction.reads[1:] if slot)))  # fmt: skip
            is_known = is_known and not self._is_body and (bound is not None or is_plain)
            results = _results(instruction, bound or call, inputs, most) if is_known else {}
            known |= results
            same |= {slot: same.get(instruction.reads[0], instruction.reads[0])
                     for slot, value in results.items() if len(inputs) == 1 and value is inputs[0]}  # fmt: skip
            lines.append(Line(instruction, bound or call, context, bool(results)))
        slots, named = program.output_slots, None
        if not self._is_body:
            border = tuple([slot for _, slot in program.border])
            roots = [same.get(slot, slot) for slot in (*slots, *border)]
            alone = [root in fresh and roots.count(root) == 1 and fresh.issuperset(border) for root in roots]
            named, slots = [*map(Output, program.outputs, slots, alone)], border
        run = straight_line(lines, program.feed_slots, slots, begin.template, named, most)
        run = blas.limited(limit)(run) if limit else run  # decorated once: `with` takes twice as long
        # the run around a body ignores what NumPy warns of
        self._run = run if quiet or self._is_body else np.errstate(all="ignore")(run)
        return self._run

    def _shares(self, begin: FoldedProgram, arrays: Sequence[Any]) -> bool:
        """Whether a short run may leave work to threads of BLAS, whose number has to be set then."""
        self._missing = []
        used = [row[0] for row in begin.rows if _uses_blas(row[0], self._missing)]
        if self._most > blas.LITTLE or any(map(_bodies, used)):
            return bool(used)
        fed = [array for array in arrays if type(array) is np.ndarray]
        constants = {i: [value for slot in i.reads if (value := begin.template[slot]) is not None] for i in used}
        return any(array.nbytes > blas.LITTLE for array in fed) or any(
            blas.is_shared(instruction.step, constants[instruction]) for instruction in used
        )


def _results(
    instruction: Instruction, call: Callable[..., Any], inputs: Sequence[Any], most: int
) -> dict[int, Any]:  # fmt: skip
    """The results of a step by slot; none where it fails, or one has to be looked at before it is used."""
    with suppress(Exception), np.errstate(all="ignore"):
        results = call(*inputs)
        values = dict(zip(instruction.results, results if len(instruction.results) > 1 else [results], strict=True))
        # a tuple may hold the only output
        if min(values) > 0 and all(type(v) in (np.ndarray, list) and small(v, most) is v for v in values.values()):
            return values
    return {}


def _bodies(instruction: Instruction) -> list[ProgramBody]:
    """The bodies that a step runs."""
    call = instruction.step.call
    values = (*call.args, *call.keywords.values()) if isinstance(call, partial) else ()
    return [value for value in values if isinstance(value, ProgramBody)]


def _takes(instruction: Instruction) -> bool:
    """Whether a step may be called once more than is needed, its bodies included as far as they have run."""
    bodies, is_plain = _bodies(instruction), instruction.quick is not None or instruction.step.pure
    return is_plain or (
        bool(bodies) and all(body.made is None or all(map(_takes, body.made.instructions)) for body in bodies)
    )


def _uses_blas(instruction: Instruction, missing: list[ProgramBody] | None = None) -> bool:
    """Whether a step, or one in its bodies, may end up in BLAS; bodies that have not run go to `missing`, or may."""
    bodies = _bodies(instruction)
    if not bodies:
        return blas.used_by(instruction.step)
    programs = [body.made for body in bodies]
    if missing is not None:
        missing += [body for body in bodies if body.made is None]
    elif None in programs:
        return True
    return any([_uses_blas(inner, missing) for program in programs if program for inner in program.instructions])  # noqa: C419 - all are asked


class _ShortBody(Lru[Any, Specialization]):
    """A body's specializations by the types and shapes of what it reads.

    Args:
        places: indices of the body's captures among those of its step.
    """

    def __init__(self, body: ProgramBody, places: Sequence[int]) -> None:
        super().__init__("specializations of bodies", _SIGNATURES)
        self.body = body
        self._places = places

    def captured(self, values: tuple[Any, ...]) -> Sequence[Any]:
        """The values that the body captures, out of those that its step captures."""
        return [values[place] for place in self._places]

    def run(self, arrays: Sequence[Any], left: list[int]) -> Sequence[Any]:
        """The outputs of the body. Raises as `Specialization.values`."""
        left[0] -= 1
        key = tuple([(x.dtype, x.shape) if type(x) is np.ndarray else type(x) for x in arrays])
        specialization = self.get(key) or self._made(key)
        if left[0] < 0:
            raise LimitError("this is no short run")
        return specialization.values(arrays, left)

    def _made(self, key: tuple[Any, ...]) -> Specialization:
        program = self.body.made
        if program is None or len(key) != len(program.feed_slots):
            raise LimitError("this is not known to be a short run")
        return self.keep(key, Specialization(program, 0, 0.0, True))


class _ShortContext(StepContext):
    """The RunContext of one call in a short run."""

    __slots__ = ("_bodies", "_captured", "_left")

    def __init__(
        self, instruction: Instruction, bodies: dict[ProgramBody, _ShortBody], captured: tuple[Any, ...],
        left: list[int],
    ) -> None:  # fmt: skip
        self._instruction, self._bodies, self._captured, self._left = instruction, bodies, captured, left

    def reserve(self, nbytes: int, what: str = "") -> None:
        """Raise LimitError for a large reservation."""
        if nbytes > SMALL:
            self._left[0] = -1
            raise LimitError("this is no short run")

    def check(self) -> None:
        """Raise LimitError where a reservation was large: a short run has no other reason to stop."""
        if self._left[0] < 0:
            raise LimitError("this is no short run")

    def run(self, body: ProgramBody, feeds: Sequence[Any]) -> list[Any]:
        """Run a body once. Raises as `Specialization.values`."""
        short = self._bodies[body]
        results = [*short.run([*without(body.growth, feeds), *short.captured(self._captured)], self._left)]
        for item in body.growth:
            results[item.output] = item.append(feeds[item.place], results[item.output])
            self.reserve(results[item.output].nbytes)
        return results

    def call(self, body: ProgramBody, feeds: Sequence[Any]) -> list[Any]:
        """Run the program of a compiled part. Raises as `Specialization.values`."""
        short = self._bodies.get(body) or self._bodies.setdefault(body, _ShortBody(body, ()))
        return [*short.run(feeds, self._left)]

    def repeat(self, body: ProgramBody, repetition: Repetition, most: int, feeds: Sequence[Any]) -> Repeated | None:
        """Run a body in a loop, all at once; None where it has to be run iteration by iteration."""
        loop, left = loop_body(body.made, repetition, body.growth), self._left
        if loop is None:
            return None
        captured = self._bodies[body].captured(self._captured)
        results = loop.run(self, min(most, left[0]), feeds, captured)
        left[0] -= 0 if results is None else results[0]
        if left[0] <= 0:
            raise LimitError("this is no short run")
        return results


def _short_bodies(program: Program, instruction: Instruction) -> dict[ProgramBody, _ShortBody]:
    """The bodies of a step, the same for all signatures of its program."""
    known: dict[Instruction, dict[ProgramBody, _ShortBody]] = program.notes.setdefault(_BODIES, {})
    if instruction not in known:
        places = {name: place for place, (name, _) in enumerate(instruction.captures)}
        known[instruction] = {
            body: _ShortBody(body, [places[name] for name in body.captures]) for body in _bodies(instruction)
        }
    return known[instruction]


def owned(results: Sequence[Any], names: Sequence[str], fed: Sequence[Any]) -> dict[str, Any]:
    """Results of a run as arrays that the caller may write to: none shares memory with another, or with `fed`.

    Args:
        fed: what the run was fed, and what is kept of it.
    """
    shown = {*buffers(fed)}
    return {name: own(array, shown) for name, array in zip(names, results, strict=True)}
