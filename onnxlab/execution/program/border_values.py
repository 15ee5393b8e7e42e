"""Values that a run leaves behind: those that cross between the parts of its program, as far as a budget allows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from onnxlab.execution.base.kept_arrays import buffers
from onnxlab.execution.program.program import Program


class BorderValues:
    """The values of one run of a program that are kept when no step needs them any more.

    Args:
        program: what is run.
        budget: bytes; where they are more, those that were made first go.

    Attributes:
        values: {slot: value}.
    """

    def __init__(self, program: Program, budget: int) -> None:
        self._slots: Collection[int] = frozenset(slot for _, slot in program.border)
        self._border = program.border
        self._budget = budget
        self._sizes: dict[int, int] = {}
        self.values: dict[int, Any] = {}

    def take(self, frame: Sequence[Any], dropped: Iterable[int]) -> None:
        """Keep what is in these slots of a frame, which are about to be dropped, if it is of the border."""
        for slot in dropped:
            if slot in self._slots:
                self._keep(slot, frame[slot])

    def _keep(self, slot: int, value: Any) -> None:
        nbytes = sum(buffers((value,)).values())
        if nbytes > self._budget:
            return
        self.values[slot], self._sizes[slot] = value, nbytes
        while sum(self._sizes.values()) > self._budget:
            first = next(iter(self.values))
            del self.values[first], self._sizes[first]

    def in_order(self) -> list[Any]:
        """The values that are kept, in the order of the program's border; None for the others."""
        return [self.values.get(slot) for _, slot in self._border]
