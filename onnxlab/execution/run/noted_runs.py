"""Runs that keep no more than their inputs and the borders of parts: noted for the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from onnxlab.errors import LimitError
from onnxlab.execution.base.array_memory import copied, nbytes
from onnxlab.execution.base.last_run import LastRun
from onnxlab.execution.base.value_store import ValueStore
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.program.program import Program

_BRIEF = 100e-6  # seconds of a run that nothing is added to
_RATE = 2e8  # bytes of outputs that are copied, by the second of a run: one hundredth of its time or two
_COPIED = 1 << 20  # largest bytes of an output that is copied although a run could make it again


def note(
    store: ValueStore, compiler: Compiler, program: Program, feeds: Iterable[Any], border: Sequence[Any],
    results: Mapping[str, Any], stored: Mapping[int, Any] = MappingProxyType({}),
) -> None:  # fmt: skip
    """Note a run: copies of its inputs, and of outputs where they are small or could not be made again.

    Args:
        stored: the store's arrays by value, which nothing changes: an input that is one of them is not copied.
    """
    outputs, once, arrays = program.outputs, not program.repeatable, list(feeds)
    if sum(map(nbytes, arrays)) > store.budget:  # too large to keep: no copies
        store.clear()
        return
    try:
        fed = [array if stored.get(compiler.ids[name]) is array else copied(array)
               for name, array in zip(program.feeds, arrays, strict=True)]  # fmt: skip
        values = [copied(results[name]) if once or _is_small(results[name]) else None for name in outputs]
    except (LimitError, MemoryError):  # a broadcast view of few bytes may be larger than memory
        store.clear()
        return
    names = *program.border_names, *outputs
    store.note(LastRun(compiler.version, compiler.ids, program, fed, names, [*border, *values]))


def note_short(
    store: ValueStore, compiler: Compiler, program: Program, feeds: Iterable[Any], border: Sequence[Any],
    results: Mapping[str, Any], seconds: float,
) -> None:  # fmt: skip
    """Note a run of `seconds` whose feeds are all arrays; outputs are copied where that adds next to nothing."""
    if seconds > _BRIEF and sum(map(nbytes, results.values())) <= seconds * _RATE:
        note(store, compiler, program, feeds, border, results)
        return
    fed = [array.copy() for array in feeds]
    store.note(LastRun(compiler.version, compiler.ids, program, fed, program.border_names, border))


def _is_small(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.nbytes <= _COPIED
