"""Programs: what is run. Steps over numbered slots, with the moment at which each slot's array can be let go.

A program is immutable once made and holds no array of any run, so that many threads may run it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from onnxlab.errors import FeedError
from onnxlab.execution.base.background import paced
from onnxlab.execution.base.provider import Step
from onnxlab.execution.program.buffer_reuse import slots_to_reuse
from onnxlab.ops.base.prepared_constants import mark_constant

Taker: TypeAlias = Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """A step with its names turned into slots.

    Attributes:
        take: gets the argument tuple out of a frame; for one input, the array itself.
        arity: number of inputs.
        result: slot of the only output, -1 where there are several or none.
        results: slots of all outputs, -1 for those without a name.
        captures: (name, slot) of the outer values that bodies read.
        reads: slots of all values that the step reads, captures included.
        drop: slots that this step is the last to read.
        constant: whether the results are the same in every run: the step is pure and reads constants alone.
        reuse: slots of inputs whose buffers the step may write into if they are free in that run.
    """

    step: Step
    call: Callable[..., Any]
    take: Taker
    arity: int
    result: int
    results: tuple[int, ...]
    captures: tuple[tuple[str, int], ...]
    reads: tuple[int, ...]
    drop: tuple[int, ...]
    constant: bool = False
    reuse: tuple[int, ...] = ()

    @property
    def quick(self) -> Callable[..., Any] | None:
        """The call without a context of a part that has one."""
        return None if self.step.part is None else self.step.part.quick

    @property
    def row(self) -> Row:
        """The fields that the executor's loop needs, flat."""
        quick = self.quick
        plain: bool | None = quick is not None or (not self.step.context and self.step.size is None)
        if plain and self.reuse:
            plain = None
        return self, plain, self.arity == 1, self.take, quick or self.call, self.result, self.drop


Row: TypeAlias = tuple[Instruction, bool | None, bool, Taker, Callable[..., Any], int, tuple[int, ...]]
"""(instruction, whether there is no context and no size to ask, whether there is one input, take, call, result, drop).

The second field is None instead of True where a buffer may be free for reuse, which is asked only while large arrays
are held.

The call of a compiled part may be its `quick`, which takes no context and returns None where it needs one."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Instructions and the frame they work on.

    Attributes:
        template: a frame before the run: constants in their slots, None elsewhere. Slot 0 is the absent input.
        slots: {name: slot} of every value.
        rows: of the instructions.
        feeds, outputs: names, in the caller's order.
        feed_slots, output_slots: the same as slots.
        border: (name, slot) of values that are worth keeping: they cross between parts, or cannot be made again.
        repeatable: whether equal feeds always make equal outputs.
        foldable: whether some instructions are constant.
        notes: results of earlier runs, as the folded program and the time of a run. Threads may add and remove entries,
            but do not change an entry in place.
    """

    template: list[Any]
    slots: Mapping[str, int]
    instructions: tuple[Instruction, ...]
    rows: tuple[Row, ...]
    feeds: tuple[str, ...]
    outputs: tuple[str, ...]
    feed_slots: tuple[int, ...]
    output_slots: tuple[int, ...]
    border: tuple[tuple[str, int], ...] = ()
    repeatable: bool = True
    foldable: bool = False
    notes: dict[str, Any] = field(default_factory=dict)
    border_names: tuple[str, ...] = ()

    def frame(self, feeds: Iterable[Any], template: list[Any] | None = None) -> list[Any]:
        """A new frame for one run, with the fed arrays in place; `template` may hold more constants than its own."""
        frame = (self.template if template is None else template).copy()
        for slot, array in zip(self.feed_slots, feeds, strict=True):
            frame[slot] = array
        return frame

    def results(self, frame: list[Any]) -> list[Any]:
        """The outputs out of a frame, in order."""
        return [frame[slot] for slot in self.output_slots]


def assemble(
    steps: Sequence[Step],
    feeds: Sequence[str],
    outputs: Sequence[str],
    constant: Callable[[str], Any],
    where: str = "the graph",
    border: Collection[str] = (),
) -> Program:
    """Make a program of steps in an order in which they can run.

    Args:
        steps: what to run.
        feeds: names given by the caller at each run.
        outputs: names asked for.
        constant: array of an initializer, None for any other name.
        where: scope, for the error.
        border: names of values that are worth keeping.

    Raises:
        FeedError: a step or output reads a name that no step makes and that is not fed.
    """
    template: list[Any] = [None]
    slots: dict[str, int] = {}

    def define(name: str, array: Any = None) -> int:
        slots[name] = len(template)
        template.append(array)
        return slots[name]

    def find(name: str, reader: str) -> int:
        if not name:
            return 0
        slot = slots.get(name)
        if slot is None:
            array = constant(name)
            if array is None:
                raise FeedError(
                    f"{reader} reads {name!r}, which no node before it makes and no input feeds; "
                    f"feed it, or ask for outputs of {where} that do not need it",
                    node=reader,
                )
            mark_constant(array)
            slot = define(name, array)
        return slot

    for name in feeds:
        define(name)
    rows: list[tuple[Step, tuple[int, ...], tuple[tuple[str, int], ...], tuple[int, ...]]] = []
    for step in paced(steps):
        if step.constants is not None:
            for name, array in zip(step.outputs, step.constants, strict=False):
                if name:
                    define(name, array)
                    if isinstance(array, np.ndarray):
                        mark_constant(array)
            continue
        inputs = tuple(find(name, step.label) for name in step.inputs)
        captures = tuple((name, find(name, step.label)) for name in step.captures)
        rows.append((step, inputs, captures, tuple(define(name) if name else -1 for name in step.outputs)))
    output_slots = tuple(find(name, where) for name in outputs)
    slots_made = {slot for *_, results in rows for slot in results if slot > 0}.difference(output_slots)
    worth_keeping = tuple((name, slots[name]) for name in border if slots.get(name) in slots_made)
    barred = [slots[name] for name in feeds] + [slot for _, slot in worth_keeping]
    instructions = _with_lifetimes(rows, template, set(output_slots), barred)
    return Program(
        template, slots, instructions, tuple(i.row for i in paced(instructions)), tuple(feeds), tuple(outputs),
        tuple(slots[name] for name in feeds), output_slots, worth_keeping,
        all(step.pure or step.part is not None for step, *_ in rows), any(i.constant for i in instructions),
        border_names=tuple(name for name, _ in worth_keeping),
    )  # fmt: skip


def _with_lifetimes(
    rows: Sequence[tuple[Step, tuple[int, ...], tuple[tuple[str, int], ...], tuple[int, ...]]],
    template: Sequence[Any],
    outputs: set[int],
    barred_slots: Sequence[int],
) -> tuple[Instruction, ...]:
    """Walk backward: the last reader of a slot drops it; an instruction drops its own results that are never read.

    The buffers of `barred_slots` are never reused.
    """
    constants = {0, *(slot for slot, array in enumerate(template) if array is not None)}
    alive = constants | outputs
    fixed, barred = _constant_steps(rows, set(constants)), constants.union(barred_slots)
    instructions = []
    for number in paced(range(len(rows) - 1, -1, -1)):
        step, inputs, captures, results = rows[number]
        reads = (*inputs, *(slot for _, slot in captures))
        touched = dict.fromkeys((*reads, *(slot for slot in results if slot > 0)))
        drop = tuple(slot for slot in touched if slot not in alive)
        alive.update(touched)
        instructions.append(
            Instruction(
                step,
                step.call,
                itemgetter(*inputs) if inputs else lambda frame: (),  # the fastest for list items; it needs one
                len(inputs),
                results[0] if len(results) == 1 else -1,
                results,
                captures,
                reads,
                drop,
                number in fixed,
                slots_to_reuse(step, inputs, drop, barred),
            )
        )
    instructions.reverse()
    return tuple(instructions)


def _constant_steps(rows: Sequence[Any], known: set[int]) -> set[int]:
    """Numbers of the steps with the same results in every run; `known` are the slots that hold constants."""
    numbers = set()
    for number, (step, inputs, captures, results) in enumerate(paced(rows)):
        if step.pure and known.issuperset(inputs) and not captures:
            numbers.add(number)
            known.update(slot for slot in results if slot > 0)
    return numbers
