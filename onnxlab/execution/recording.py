"""Watching a run: counting how far it got."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from onnxlab.execution.program import Instruction


@dataclass(slots=True)
class Position:
    """How far a run is; written by the run's thread, read by the caller's."""

    total: int
    done: int = 0
    label: str = ""

    def expect(self, total: int) -> None:
        """So many steps are to come."""
        self.total = total


class Counter:
    """An observer that only counts steps and lets arrays go as usual."""

    def __init__(self, position: Position) -> None:
        self._position = position

    def reuse(self, instruction: Instruction, frame: list[Any]) -> None:
        self._position.label = instruction.step.label

    def done(self, instruction: Instruction, frame: list[Any], reused: bool, seconds: float) -> Iterable[int]:
        self._position.done += 1
        return instruction.drop
