"""Runs that keep no more than their inputs and the borders of parts: noted for the store, and timed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from onnxlab.errors import LimitError
from onnxlab.execution.base.array_memory import copied, nbytes
from onnxlab.execution.base.last_run import LastRun
from onnxlab.execution.base.lru import Lru
from onnxlab.execution.base.value_store import ValueStore
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.program.call import PACE
from onnxlab.execution.program.program import Program

_TIMED = 64  # sets of feeds and outputs whose runs are timed
_BRIEF = 100e-6  # seconds of a run that nothing is added to
_RATE = 2e8  # bytes of outputs that are copied, by the second of a run: one hundredth of its time or two
_COPIED = 1 << 20  # largest bytes of an output that is copied although a run could make it again


class NotedRuns:
    """The runs of one runner over one store."""

    def __init__(self, store: ValueStore) -> None:
        self._store = store
        self._seconds: Lru[tuple[tuple[str, ...], tuple[str, ...]], float] = Lru("times of runs", _TIMED)

    def note(
        self, compiler: Compiler, program: Program, feeds: Iterable[Any], border: Sequence[Any],
        results: Mapping[str, Any], stored: Mapping[int, Any] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """Note a run: copies of its inputs, and of outputs where they are small or could not be made again.

        Args:
            stored: the store's arrays by value, which nothing changes: an input that is one of them is not copied.
        """
        outputs, once, arrays = program.outputs, not program.repeatable, list(feeds)
        if sum(map(nbytes, arrays)) > self._store.budget:  # too large to keep: no copies
            self._store.clear()
            return
        try:
            fed = [array if stored.get(compiler.ids[name]) is array else copied(array)
                   for name, array in zip(program.feeds, arrays, strict=True)]  # fmt: skip
            values = [copied(results[name]) if once or _is_small(results[name]) else None for name in outputs]
        except (LimitError, MemoryError):  # a broadcast view of few bytes may be larger than memory
            self._store.clear()
            return
        names = *program.border_names, *outputs
        self._store.note(LastRun(compiler.version, compiler.ids, program, fed, names, [*border, *values]))

    def note_short(
        self, compiler: Compiler, program: Program, feeds: Iterable[Any], border: Sequence[Any],
        results: Mapping[str, Any], seconds: float,
    ) -> None:  # fmt: skip
        """Note a run of `seconds` whose feeds are all arrays; outputs are copied where that adds next to nothing."""
        if seconds > _BRIEF and sum(map(nbytes, results.values())) <= seconds * _RATE:
            self.note(compiler, program, feeds, border, results)
            return
        fed = [array.copy() for array in feeds]
        self._store.note(LastRun(compiler.version, compiler.ids, program, fed, program.border_names, border))

    def ran(self, program: Program) -> None:
        """Note how long a program took."""
        if PACE in program.notes:
            self._seconds.keep((program.feeds, program.outputs), program.notes[PACE][1])

    def seconds(self, feeds: tuple[str, ...], outputs: tuple[str, ...]) -> float:
        """Seconds of the processor that the last run with these names took; 0 where there was none."""
        return self._seconds.get((feeds, outputs), 0.0)


def _is_small(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.nbytes <= _COPIED
