"""Values that a run left unkept, computed when they are looked at: by the part that makes them, from what was kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxlab.execution.base.last_run import LastRun
from onnxlab.execution.base.provider import CompiledPart
from onnxlab.execution.base.value_store import State, ValueStore
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.program.call import Call
from onnxlab.execution.program.executor import NodeContext
from onnxlab.execution.program.program import Instruction
from onnxlab.shapes import TensorFact

_FEW = 2
"""Looks at one run after which all values of a part are computed at once: it takes no longer than one more."""

_SHARE = 4
"""What all values of a part may take of the store's budget, as a divisor."""


@dataclass(frozen=True, slots=True)
class _Inside:
    """A part of the last run that can tell values inside, with the arrays that it was given."""

    instruction: Instruction
    part: CompiledPart
    arrays: Sequence[Any]
    names: Collection[str]


def looked_into(store: ValueStore, state: State, compiler: Compiler, names: Sequence[str], call: Call) -> State:
    """The state with as much as the parts of the last run tell of these values, and of what they are made of.

    Args:
        state, compiler: of the store and the model at the same moment.
        names: of values of the main graph that are not kept.

    Raises:
        LimitError, RunStopped: the run that computes them is ended.
    """
    run = store.recent(state)
    insides = [] if run is None else _insides(run, state, compiler)
    if run is None or not insides:
        return state
    run.looks += 1
    inside = {name for part in insides for name in part.names}
    nearest = set(_frontier(compiler, state, names, inside))
    for part in insides:
        chosen = [name for name in part.names if name in nearest]
        if chosen and run.looks > _FEW:
            chosen = _all(part, compiler, store.budget // _SHARE) or chosen
        if chosen:
            values = _read(part, compiler, [name for name in chosen if not state.fresh(compiler.ids[name])], call)
            state = store.add(state, values)
    return state


def _frontier(compiler: Compiler, state: State, names: Sequence[str], inside: Collection[str]) -> list[str]:
    """The values nearest to those asked for that a part tells, where nothing that is kept is nearer."""
    ids = compiler.ids
    reached: Callable[[str], bool] = lambda name: state.fresh(ids.get(name, 0)) or name in inside  # noqa: E731
    return [name for name in compiler.main.border(names, reached) if name in inside and not state.fresh(ids[name])]


def _insides(run: LastRun, state: State, compiler: Compiler) -> list[_Inside]:
    insides = []
    ids, program = compiler.ids, run.program
    for instruction in program.instructions:
        step = instruction.step
        if step.part is None or step.part.places is None or step.part.look is None:
            continue
        values = [ids.get(name, 0) for name in step.inputs]
        if all(map(state.fresh, values)):
            arrays = [state.arrays[value] for value in values]
            names = _declared(run, compiler, frozenset(step.part.places(*arrays)))
            stale = {name for name in names if ids[name] in state.stale} if state.stale else ()
            insides.append(_Inside(instruction, step.part, arrays, names.difference(stale)))
    return insides


def _declared(run: LastRun, compiler: Compiler, names: frozenset[str]) -> frozenset[str]:
    """Those names of the main graph of whose values the dtype is known; found out once for the program of a run."""
    notes: dict[Any, Any] = run.program.notes
    key = "declared", names
    if key not in notes:
        ids = compiler.ids
        facts = {name: compiler.fact(ids[name]) for name in names if name in ids}
        typed = [name for name, fact in facts.items() if isinstance(fact, TensorFact) and fact.dtype is not None]
        notes[key] = frozenset(typed)
    declared: frozenset[str] = notes[key]
    return declared


def _all(part: _Inside, compiler: Compiler, room: int) -> list[str]:
    """All values inside of a part, none where they are known to be more than the room."""
    sizes = [compiler.main.nbytes(name) for name in part.names]
    known = [size for size in sizes if size is not None]
    return list(part.names) if len(known) == len(sizes) and sum(known) <= room else []


def _read(part: _Inside, compiler: Compiler, names: Sequence[str], call: Call) -> dict[int, Any]:
    """{value id: array} of values inside of a part, in the dtypes of the model."""
    values: dict[int, Any] = {}
    ids = {name: compiler.ids[name] for name in names}
    facts: dict[str, Any] = {name: compiler.fact(value) for name, value in ids.items()}  # a worker waits for no lock

    def work() -> None:
        assert part.part.look is not None
        context = NodeContext(call.run, part.instruction, [])
        try:
            for name, array in part.part.look(context, names, *part.arrays).items():
                dtype = facts[name].dtype
                if array.dtype != dtype:
                    if array.dtype != np.float32 or dtype.itemsize != 2 or dtype.kind not in "fV":
                        continue  # it is no half that is widened inside
                    array = array.astype(dtype)
                values[ids[name]] = array
        finally:
            context.release()

    call.part(work, 1, float("inf"))
    return values
