"""The fast path of small runs: the checks of an earlier run with the same signature are used again.

A run that keeps nothing and has no limits of its own needs checked feeds, a program and a budget. Where the model is
the same, the feeds are arrays of dtypes and shapes that were checked before, and the last such run was short, only
the budget is left to be made, and not even that where nothing is large (see `fast_loop`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np

from onnxlab.execution.base import blas
from onnxlab.execution.base.lru import Lru
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.program.border_values import BorderValues
from onnxlab.execution.program.call import PACE, QUICK
from onnxlab.execution.program.constant_folding import Folder
from onnxlab.execution.program.executor import run_program
from onnxlab.execution.program.program import Program
from onnxlab.execution.program.run_state import Run
from onnxlab.execution.run.fast_loop import FastLoop
from onnxlab.execution.run.incremental_runs import owned
from onnxlab.limits import SHARE_OF_MEMORY, Limits, available_memory

_SHAPES = 32  # sets of dtypes and shapes remembered of one program
_BORDER = 1 << 26  # bytes of border values of so short a run
_NEVER = Event()
"""The stop flag of runs too short to be stopped: making a flag takes longer than all the rest."""

Signature = tuple[Any, ...]


def signature(feeds: Mapping[str, Any]) -> Signature | None:
    """Dtype and shape of each, None where one is no array."""
    parts: list[Any] = []
    for array in feeds.values():
        if type(array) is not np.ndarray:
            return None
        parts += array.dtype, array.shape
    return tuple(parts)


@dataclass(slots=True)
class ReadyProgram:
    """A program that has run, and what its feeds looked like.

    Attributes:
        threads: of BLAS, 0 for a program that does not use it.
        compiled: whether nothing is left to NumPy.
        seconds: of the processor, for the last run.
        accepted: {signature: how to run} of feeds that were taken as they were.
    """

    program: Program
    folder: Folder
    threads: int
    compiled: bool = False
    seconds: float = 0.0
    accepted: Lru[Signature, FastLoop] = field(default_factory=lambda: Lru("signatures", _SHAPES))

    def __post_init__(self) -> None:
        if not any(blas.used_by(i.step) for i in self.program.instructions):
            self.threads = 0
        self.compiled = all(i.quick is not None for i in self.program.instructions)

    def accept(self, feeds: Mapping[str, Any], arrays: Mapping[str, Any], seconds: float) -> None:
        """Remember what fed arrays looked like, if they went in as they were."""
        key = signature(feeds)
        if key is not None and len(feeds) == len(arrays) and all(arrays[name] is feeds[name] for name in feeds):
            self.accepted.keep(key, FastLoop(self.program, self.threads))
        self.seconds = seconds

    def run(self, feeds: Mapping[str, Any], border: list[Any] | None = None) -> dict[str, Any] | None:
        """Run in the caller's thread; None for feeds of no accepted signature. Raises what the nodes raise.

        Args:
            border: takes the values of the program's border.
        """
        key = signature(feeds)
        loop = None if key is None else self.accepted.get(key)
        if loop is None:
            return None
        began = perf_counter()  # thread_time takes ten times as long; so one run that was held up counts little
        results = loop.run(feeds, border)
        if results is None:
            results = self._counted(feeds, border)
        self.seconds = min(perf_counter() - began, 2 * self.seconds)
        return results

    def _counted(self, feeds: Mapping[str, Any], border: list[Any] | None) -> dict[str, Any]:
        """A run with a budget."""
        leaving = BorderValues(self.program, _BORDER) if border is not None and self.program.border else None
        run = Run(Limits(int(SHARE_OF_MEMORY * available_memory()), stop=_NEVER))
        if self.compiled:
            results = run_program(self.program, list(feeds.values()), run, self.folder, border=leaving)
        else:
            with np.errstate(all="ignore"), blas.limited(self.threads) if self.threads else nullcontext():
                results = run_program(self.program, list(feeds.values()), run, self.folder, border=leaving)
        if border is not None and leaving is not None:
            border += leaving.in_order()
        return owned(results, self.program.outputs, feeds)


def ready_program(compiler: Compiler, feeds: Mapping[str, Any], outputs: Sequence[str] | None) -> ReadyProgram | None:
    """The program noted for these names of feeds and outputs, None where there is none or it takes long."""
    try:
        ready: ReadyProgram | None = compiler.ready.get((tuple(feeds), None if outputs is None else tuple(outputs)))
    except TypeError:  # these are no names, which is said where they are looked up
        return None
    return None if ready is None or ready.seconds > QUICK else ready


def note_run(
    compiler: Compiler,
    program: Program,
    feeds: tuple[Mapping[str, Any], Mapping[str, Any]],
    outputs: Sequence[str] | None,
    threads: int,
) -> None:
    """Note a run that kept nothing for `ready_program`; of its feeds, as they were given and as they were checked."""
    unchecked, checked = feeds
    key = (tuple(unchecked), None if outputs is None else tuple(outputs))
    ready = compiler.ready.get(key)
    if ready is None or ready.program is not program:
        ready = compiler.ready[key] = ReadyProgram(program, compiler.folder, threads)
    ready.accept(unchecked, checked, program.notes.get(PACE, (0, 0.0))[1])
