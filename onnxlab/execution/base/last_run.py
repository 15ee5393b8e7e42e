"""The last run that kept no more than its inputs and what crossed between the parts of its program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

_COMPUTED = "computed"  # note of a program, which holds after edits that leave its steps


@dataclass(eq=False)
class LastRun:
    """A run as it is noted when it ends, in next to no time; the value store evaluates it when a value is asked for.

    Attributes:
        version: of the graph.
        ids: {name: value id} of the main graph.
        program: that ran.
        fed: arrays that nothing else writes to, in the order of the names `program.feeds`.
        names, made: names of the values that the run made, and their arrays; None for a value that is not kept.
        looks: how often a value of this run was asked for that was not kept.
        held: bytes of the arrays that were added to `known` later.
    """

    version: int
    ids: Mapping[str, int]
    program: Any
    fed: Sequence[Any]
    names: Sequence[str]
    made: Sequence[Any]
    looks: int = field(default=0, init=False)  # the class's, until it is counted: runs of microseconds are noted too
    held: int = field(default=0, init=False)

    @cached_property
    def known(self) -> dict[str, Any]:
        """{name: array} of what was fed or is kept; replaced when values are computed from these later."""
        pairs = zip(self.names, self.made, strict=True)
        fed = dict(zip(self.program.feeds, self.fed, strict=True))
        return {name: array for name, array in pairs if array is not None and name in self.ids} | fed

    def inputs(self) -> dict[int, Any]:
        """{value id: array} of what was fed."""
        return {self.ids[name]: array for name, array in zip(self.program.feeds, self.fed, strict=True)}

    def computed(self) -> frozenset[int]:
        """Ids of all values that the run made, kept or not."""
        ids, notes = self.ids, self.program.notes
        if _COMPUTED not in notes or notes[_COMPUTED][0] is not ids:
            steps = [instruction.step for instruction in self.program.instructions]
            parts = [step.part.names for step in steps if step.part is not None]
            values = frozenset(ids[name] for names in (self.program.slots, *parts) for name in names if name in ids)
            notes[_COMPUTED] = ids, values
        return notes[_COMPUTED][1]  # type: ignore[no-any-return]

    def values(self) -> dict[int, Any]:
        """{value id: array} of what was made and kept."""
        fed = set(self.program.feeds)
        return {self.ids[name]: array for name, array in self.known.items() if name not in fed}
