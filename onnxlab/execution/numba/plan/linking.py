"""Linking of plans: the addresses of constants go into the words, those known in a run only become patches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from onnxlab.execution.base.background import paced
from onnxlab.execution.numba.plan.memory import address
from onnxlab.execution.numba.plan.pieces import Words
from onnxlab.execution.numba.plan.views import ArenaBuffer, Array

Patches: TypeAlias = Mapping[tuple[str, int], tuple[Array, Array]]
"""{(kind, number) of a buffer: (words of the plan's table, offsets to add to its address)}."""


class Linker:
    """Fills the addresses of constants into a plan's table, and collects the words of addresses known only in a run.

    Attributes:
        constants: {address: words that are addresses in it}; `arrays` are their arrays.
    """

    def __init__(self, template: Array, fault: ArenaBuffer) -> None:
        self._template = template
        self._fault = fault
        self._patches: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
        self.constants: dict[int, list[int]] = {}
        self.arrays: list[Array] = []

    def add(self, words: Sequence[Words]) -> None:
        """Link these blocks of words, which follow each other in the table."""
        base = 0
        for item in paced(words):
            if item.buffer is not None:
                item.buffer.offset = 8 * base
            base += len(item.numbers)
        base = 0
        for item in paced(words):
            for at, buffer, offset in item.addresses:
                if buffer.kind == "constant":
                    self._constant(base + at, buffer, offset)
                elif buffer.kind == "fault":
                    self._later("arena", 0, base + at, self._fault.offset)
                elif buffer.kind in ("arena", "table"):
                    self._later(buffer.kind, 0, base + at, buffer.offset + offset)
                else:
                    self._later(buffer.kind, buffer.index, base + at, offset)
            base += len(item.numbers)

    def _constant(self, index: int, buffer: ArenaBuffer, offset: int) -> None:
        assert buffer.array is not None
        start = address(buffer.array)
        self._template[index] = start + offset
        self.arrays.append(buffer.array)
        self.constants.setdefault(start, []).append(index)

    def _later(self, kind: str, number: int, index: int, offset: int) -> None:
        patch = self._patches.get((kind, number))
        if patch is None:
            patch = self._patches[kind, number] = [], []
        patch[0].append(index)
        patch[1].append(offset)

    def patches(self) -> Patches:
        """{(kind, number): (words, offsets to add to what is known then)}."""
        return {key: (np.array(where), np.array(offsets)) for key, (where, offsets) in self._patches.items()}
