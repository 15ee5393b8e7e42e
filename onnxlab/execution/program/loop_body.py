"""Loops over a body that is one compiled part, or carries nothing: all iterations run at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple, cast

import numpy as np

from onnxlab.execution.base.provider import CompiledPart
from onnxlab.execution.program import constant_folding
from onnxlab.execution.program.constant_folding import FoldedProgram
from onnxlab.execution.program.program import Program
from onnxlab.execution.program.run_errors import failure
from onnxlab.limits import Repeated, Repetition
from onnxlab.ops.onnx.control.mapped_body import BodyStep, MappedBody, mapped_body

_NOTE = "repeated"


class LoopGrowth(NamedTuple):
    """A loop-carried value to which each iteration appends an item, which the program of the body makes instead of it.

    Attributes:
        place, output: of the value among the inputs and the outputs of the body.
        axis: along which the item is appended.
        program: the only step is the Concat of the value and the item.
    """

    place: int
    output: int
    axis: int
    program: Program

    def append(self, value: Any, items: Any, first: Any = None) -> Any:
        """The value with an item, or several of them, at its end.

        Raises:
            RunError: of the Concat; where the first of several is given, as it refuses that one.
        """
        instruction = self.program.instructions[0]
        try:
            return instruction.call(value, items)
        except Exception as error:
            if first is not None:
                self.append(value, first)
            raise failure(instruction, self.program.frame((value, items)), error) from error

    def joined(self, items: Any) -> Any:
        """Stacked items one behind the other along the axis."""
        shape = items.shape[1:]
        axis = self.axis % max(1, len(shape))  # `append` refuses an axis that is none
        return np.moveaxis(items, 0, axis).reshape(
            *shape[:axis], len(items) * prod(shape[axis : axis + 1]), *shape[axis + 1 :]
        )


def without(growth: Sequence[LoopGrowth], feeds: Sequence[Any]) -> list[Any]:
    """The feeds that the program of a body takes."""
    return [*feeds] if not (places := {item.place for item in growth}) else [
        feed for place, feed in enumerate(feeds) if place not in places
    ]  # fmt: skip


def _shortened(repetition: Repetition, growth: Sequence[LoopGrowth]) -> Repetition:
    """The repetition of a body by the places of its program, which collects the items."""
    grown = {item.place for item in growth}
    places = {place: place - sum(other < place for other in grown) for pair in repetition.carried for place in pair[:1]}
    return replace(
        repetition,
        carried=tuple([(places[place], output) for place, output in repetition.carried if place not in grown]),
        collected=(*repetition.collected, *[item.output for item in growth]),
    )


@dataclass(frozen=True, slots=True)
class LoopBody:
    """A body whose loop its part can run.

    Attributes:
        part: the only part of the body.
        repetition: the repetition, with the indices of the part's inputs and outputs.
        inputs: for each input of the part, the index of the body's input, or an array.
        outputs: for each output of the body, the index of the part's output, or -1 - i for input i; 0 for a constant.
        lasts: outputs of the body that are not collected, where the part's are.
        going: the input, or the array, of a condition that is the same in every iteration; None for any other.
        growth: the values to which iterations append.
    """

    part: CompiledPart
    repetition: Repetition
    inputs: tuple[Any, ...]
    outputs: tuple[int, ...]
    lasts: tuple[int, ...]
    going: Any
    growth: Sequence[LoopGrowth]

    def run(self, context: Any, most: int, feeds: Sequence[Any], captured: Iterable[Any]) -> Repeated | None:
        """Run the loop on the body's inputs and captures; None where it has to be run iteration by iteration."""
        arrays = [*without(self.growth, feeds), *captured]
        inputs = [arrays[place] if type(place) is int else place for place in self.inputs]
        if self.going is not None:
            going = arrays[self.going] if type(self.going) is int else self.going
            most = most if going.all() else min(most, 1)
        results = None if self.part.repeat is None else self.part.repeat(context, self.repetition, most, *inputs)
        if results is None:
            return None
        iterations, results_of_part = results
        outputs = [results_of_part[place] if place >= 0 else arrays[-1 - place] for place in self.outputs]
        for place in self.lasts:
            outputs[place] = outputs[place][-1].copy()
        for item in self.growth:
            value, stacked = feeds[item.place], outputs[item.output]
            outputs[item.output] = items = item.joined(stacked)
            # What is appended to an empty value is all that there is, and takes no second array.
            only = not value.size and value.dtype == items.dtype
            if not (only and item.append(value, stacked[0]).shape == stacked.shape[1:]):
                context.reserve(items.nbytes + value.nbytes, "the values that the loop carries")
                outputs[item.output] = item.append(value, items, stacked[0])
        return iterations, outputs


def loop_body(
    program: Program | None, repetition: Repetition, growth: Sequence[LoopGrowth]
) -> LoopBody | MappedBody | None:  # fmt: skip
    """The loop over a body's program, None where it has not run, and is neither one part nor a map of its inputs."""
    if program is None or (folded := constant_folding.known_fold(program)) is None:
        return None
    notes = program.notes.setdefault(_NOTE, {})
    if repetition not in notes:
        notes[repetition] = _matched(program, folded, _shortened(repetition, growth), growth) or (
            mapped_body([BodyStep(step.op, step.call, row[0].reads, row[0].results) for row in folded.rows
                         if (step := row[0].step)], program.feed_slots, program.output_slots, folded.template,
                        repetition) if not growth and all(row[0].step.pure and not row[0].step.context
                                                          for row in folded.rows) else None
        )  # fmt: skip
    return cast("LoopBody | MappedBody | None", notes[repetition])


def _matched(
    program: Program, folded: FoldedProgram, repetition: Repetition, growth: Sequence[LoopGrowth]
) -> LoopBody | None:
    if len(folded.rows) != 1 or (part := (instruction := folded.rows[0][0]).step.part) is None or part.repeat is None:
        return None
    fed = {slot: place for place, slot in enumerate(program.feed_slots)}
    results = {slot: place for place, slot in enumerate(instruction.results)}
    inputs = tuple([fed.get(slot, folded.template[slot]) for slot in instruction.reads])
    read = {place: number for number, place in enumerate(inputs) if type(place) is int}
    outputs: list[int | None] = [
        results.get(slot, -1 - fed[slot] if slot in fed else None) for slot in program.output_slots
    ]
    stays = all(_is_made(outputs[output]) or outputs[output] == -1 - place for place, output in repetition.carried)
    collected = [outputs[place] or 0 for place in repetition.collected if _is_made(outputs[place])]
    if not stays or len(collected) < len(repetition.collected):
        return None
    condition, going = repetition.condition, None
    if condition >= 0 and not _is_made(outputs[condition]):
        going = _fixed(program, folded, repetition, outputs[condition])
        if going is None:
            return None
    elif condition >= 0 and outputs[condition] in collected:
        return None
    pairs = [(read[place], outputs[output] or 0) for place, output in repetition.carried if place in read]
    loop = Repetition(
        tuple([(place, output) for place, output in pairs if output >= 0]),
        tuple([read[place] for place in repetition.sliced if place in read]),
        tuple(collected),
        read.get(repetition.counter, -1),
        -1 if condition < 0 or going is not None else outputs[condition] or 0,
    )
    lasts = tuple([output for _, output in repetition.carried if outputs[output] in collected])
    return LoopBody(part, loop, inputs, tuple([place or 0 for place in outputs]), lasts, going, growth)


def _is_made(place: int | None) -> bool:
    """Whether an output is one of the part's."""
    return place is not None and place >= 0


def _fixed(program: Program, folded: FoldedProgram, repetition: Repetition, place: int | None) -> Any:
    """The input, or the array, that is a condition which is the same in every iteration; None where there is none."""
    if place is None:
        return folded.template[program.output_slots[repetition.condition]]
    changing = {repetition.counter, *repetition.sliced, *(read for read, _ in repetition.carried)}
    return None if -1 - place in changing else -1 - place
