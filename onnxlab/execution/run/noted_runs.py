"""Runs that keep no more than their inputs and the borders of parts: noted for the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from onnxlab.errors import LimitError
from onnxlab.execution.base.array_memory import copied, freeze, nbytes, same
from onnxlab.execution.base.last_run import LastRun
from onnxlab.execution.base.value_store import ValueStore
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.program.program import Program

_BRIEF = 100e-6  # seconds of a run that nothing is added to
_RATE = 2e8  # bytes of outputs that are copied, by the second of a run: one hundredth of its time or two
_COPIED = 1 << 20  # largest bytes of an output that is copied although a run could make it again


def held(store: ValueStore, known: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The inputs of a run as the store keeps them: its own arrays, `known`, where equal, else read-only copies.

    None where they are too large to keep; then the store is cleared.
    """
    fed = None
    if sum(map(nbytes, inputs.values())) <= store.budget:
        with suppress(LimitError, MemoryError):  # a broadcast view of few bytes may be larger than memory
            fed = {name: old if same(old := known.get(name), new) else copied(new) for name, new in inputs.items()}
    if fed is None:
        store.clear()
    else:
        freeze(fed.values())
    return fed


def note(
    store: ValueStore, compiler: Compiler, program: Program, fed: Sequence[Any], border: Sequence[Any],
    results: Mapping[str, Any],
) -> None:  # fmt: skip
    """Note a run on inputs that are `held`, with copies of outputs where they are small or cannot be made again."""
    outputs, once = program.outputs, not program.repeatable
    try:
        values = [copied(results[name]) if once or _is_small(results[name]) else None for name in outputs]
    except (LimitError, MemoryError):  # a broadcast view of few bytes may be larger than memory
        store.clear()
        return
    names, arrays = (*program.border_names, *outputs), [*border, *values]
    store.note(LastRun(compiler.version, compiler.ids, program, fed, names, arrays))


def note_short(
    store: ValueStore, compiler: Compiler, program: Program, fed: Sequence[Any], border: Sequence[Any],
    results: Mapping[str, Any], seconds: float,
) -> None:  # fmt: skip
    """Note a run of `seconds` on arrays of its own; outputs are copied as in `note` where that adds next to nothing."""
    if not program.repeatable or (seconds > _BRIEF and sum(map(nbytes, results.values())) <= seconds * _RATE):
        note(store, compiler, program, fed, border, results)
    else:
        store.note(LastRun(compiler.version, compiler.ids, program, fed, program.border_names, border))


def _is_small(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.nbytes <= _COPIED
