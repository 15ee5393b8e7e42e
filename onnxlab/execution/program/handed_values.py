"""Values of a run that are handed over one by one when they are made, and let go after their last reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnxlab.execution.program.program import Instruction, Program

Take: TypeAlias = Callable[[int, Any], None]
"""take(place among the outputs, value). A value is only to be read, and may be gone after the next one."""

_NOTE = "handed values"


@dataclass(frozen=True, slots=True)
class _Handing:
    """The values that are handed over, and the steps at which.

    Attributes:
        steps: for each instruction, (slot, place) of what it makes, and the slots that can be let go after it.
        rest: places of outputs that no such instruction makes: fed ones, and those that constants make.
    """

    steps: dict[Instruction, tuple[tuple[tuple[int, int], ...], tuple[int, ...]]]
    rest: tuple[int, ...]


class HandedValues:
    """An observer that hands the outputs of a program over, and lets each go after its last reader.

    Args:
        program: whose outputs are handed over.
        take: told each of them.
    """

    def __init__(self, program: Program, take: Take) -> None:
        handing = program.notes.get(_NOTE)
        if handing is None:
            handing = program.notes[_NOTE] = _handing(program)
        self._steps, self._rest, self._take = handing.steps, handing.rest, take

    def reuse(self, instruction: Instruction, frame: list[Any]) -> None:
        """Reuse nothing."""

    def done(self, instruction: Instruction, frame: list[Any], reused: bool, seconds: float) -> Iterable[int]:
        """Hand over what a step made, and name the slots that nothing reads any more."""
        outputs, drop = self._steps[instruction]
        for slot, place in outputs:
            self._take(place, frame[slot])
        return drop

    def finish(self, results: Sequence[Any]) -> None:
        """Hand over what no step made, of the results of the run."""
        for place in self._rest:
            self._take(place, results[place])


def _handing(program: Program) -> _Handing:
    """Walk backward: the last reader of an output drops it, or what makes it where none reads."""
    places: dict[int, list[int]] = {}
    for place, slot in enumerate(program.output_slots):
        places.setdefault(slot, []).append(place)
    instructions = program.instructions
    handed = {slot for step in instructions if not step.constant for slot in step.results if slot in places}
    alive: set[int] = set()
    steps = {}
    for step in reversed(instructions):
        touched = {slot for slot in (*step.reads, *step.results) if slot in handed}
        drop = (*step.drop, *(touched - alive))
        alive |= touched
        outputs = tuple((slot, place) for slot in step.results if slot in handed for place in places[slot])
        steps[step] = outputs, drop
    rest = tuple(place for place, slot in enumerate(program.output_slots) if slot not in handed)
    return _Handing(steps, rest)
