"""One run: its limits, its progress, its seed, and the thread it runs in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from onnxlab.execution.base import background, blas, worker
from onnxlab.execution.program.executor import Observer, run_program
from onnxlab.execution.program.program import Program
from onnxlab.execution.program.run_observers import BorderValues, Position, StepCounter
from onnxlab.execution.program.run_state import Run
from onnxlab.limits import Limits, Loading
from onnxlab.threads import thread_time

Progress = Callable[[int, int, str], None]
"""progress(steps done, steps in all, label of the node under way), called in the caller's thread."""

QUICK = 50e-3
"""Seconds that a run may take for the next one to be in the caller's thread: a worker costs 0.2 ms, and up to a tenth
of the time of kernels, since the cache of another core is cold.

A kernel in the caller's thread cannot be interrupted, which does not matter for so short a run.
"""

PACE = "pace"  # note of a program: (bytes fed, seconds of the processor) of its last run


class Call:
    """One run.

    Args:
        limits: limits of the run; default: 80 % of the free memory, and no other limit.
        progress: called with the progress of the run, which then needs an observer.
        seed: of random operators.
        threads: of BLAS during the run.
        after: called at the end with the seconds that the run took.
    """

    def __init__(
        self, limits: Limits | None, progress: Progress | None, seed: int | None, threads: int,
        after: Callable[[float], None] = lambda seconds: None,
    ) -> None:  # fmt: skip
        self.after = after
        self.progress = progress
        self.threads = threads
        self.position = Position(0)
        self.limits = limits.begin() if limits is not None else Limits.usual()
        self.run = Run(self.limits, seed)

    def __call__(
        self, program: Program, feeds: Sequence[Any], border: BorderValues | None = None, watch: Observer | None = None
    ) -> list[Any]:
        """Run a whole program and return its outputs; `border` receives dropped values, `watch` observes the steps."""
        if not program.instructions:
            self.limits.check()
            return program.results(program.frame(feeds))
        self.run.is_kept = border is not None
        observer = StepCounter(self.position) if self.progress is not None else watch
        nbytes = sum(array.nbytes for array in feeds if isinstance(array, np.ndarray))
        fed, seconds = program.notes.get(PACE, (0, 1.0))

        def work() -> list[Any]:
            began = thread_time()
            outputs = run_program(program, feeds, self.run, observer, self.position.expect, border)
            if not self.run.is_resumed:
                program.notes[PACE] = nbytes, thread_time() - began
            return outputs

        return self._made(work, seconds if nbytes <= 2 * fed else 1.0)  # type: ignore[no-any-return]

    def part(self, work: Callable[[], None], steps: int, expected: float) -> None:
        """Do the work of `steps` steps, which is expected to take `expected` seconds."""
        self.position.total = steps
        if steps:
            self._made(work, expected)

    def _made(self, work: Callable[[], Any], expected: float) -> Any:
        """Do the work, in a worker unless it is expected to take next to nothing."""
        self.limits.check()
        began = perf_counter()
        threads, progress, position = self.threads, self.progress, self.position

        def limited() -> Any:
            with Loading(self.limits), background.run(), np.errstate(all="ignore"), blas.limited(threads):
                return work()

        if expected < QUICK and progress is None:
            results = limited()
            self.after(perf_counter() - began)
            return results

        def tick() -> None:
            if progress is not None:
                progress(position.done, position.total, position.label)

        results = worker.call(limited, self.limits, tick)
        self.after(perf_counter() - began)
        if progress is not None:
            progress(position.total, position.total, "")
        return results
