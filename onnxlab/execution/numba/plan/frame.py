"""Frames: what one run of a plan writes to."""

from __future__ import annotations

import numpy as np

from onnxlab.execution.numba.machine.records import CALL
from onnxlab.execution.numba.plan import memory as run_memory
from onnxlab.execution.numba.plan.linking import Patches
from onnxlab.execution.numba.plan.memory import address
from onnxlab.execution.numba.plan.views import Array

SCRATCH = 1 << 18
"""Bytes of scratch memory of a thread."""


class PlanFrame:
    """Memory of one run: arena, table with its addresses filled in, counters, stop flag and scratch of each thread.

    Args:
        template, patches: the table of the plan, and the words to fill with addresses.
        records: number of records of the plan; `arena` is the bytes of its arena.
    """

    def __init__(self, template: Array, patches: Patches, records: int, arena: int) -> None:
        self.arena = run_memory.aligned(arena)
        self.table = template.copy()
        self.words = self.table.data
        for key, base in ((("arena", 0), address(self.arena)), (("table", 0), address(self.table))):
            if key in patches:
                where, offsets = patches[key]
                self.table[where] = offsets + base
        self.shared = np.zeros(records + 1, np.int64)
        self._stop = np.zeros(1, np.int64)
        self._scratch: list[Array] = []
        self._called: list[Array] = []
        self._calls: dict[int, list[int]] = {}

    def halt(self) -> None:
        """End the run before its next unit of work; the frame is not used again."""
        self._stop[0] = 1

    @property
    def halted(self) -> bool:
        """Whether the run has been asked to stop."""
        return bool(self._stop[0])

    def calls(self, threads: int) -> list[int]:
        """The addresses of the words with which each of `threads` threads calls the interpreter."""
        calls = self._calls.get(threads)
        return self._new_calls(threads) if calls is None else calls

    def repeat(self, moves: Array, condition: int) -> Array:
        """Have calls of one thread run a loop (see `records.CALL`); returns the words of the call, with its repeats."""
        self.calls(1)
        self._called[0][[CALL.index(name) for name in ("moves", "moved", "condition")]] = (
            address(moves), len(moves), condition,
        )  # fmt: skip
        return self._called[0]

    def _new_calls(self, threads: int) -> list[int]:
        while len(self._scratch) < threads:
            self._scratch.append(run_memory.aligned(SCRATCH))
        common = {"table": address(self.table), "threads": threads, "shared": address(self.shared),
                  "stop": address(self._stop)}  # fmt: skip
        rows = [common | {"scratch": address(memory)} for memory in self._scratch[:threads]]
        words = [np.array([row.get(name, 0) for name in CALL], np.int64) for row in rows]
        self._called += words
        self._calls[threads] = [address(row) for row in words]
        return self._calls[threads]
