"""Values that a run left unkept, computed when they are looked at.

A `Look` first has the nearest parts compute values inside of them, as the parts computed them in the run. From these
values it goes on node by node. The way to a value is determined once per program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from onnxlab.execution.base.last_run import LastRun
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.program.call import PACE, Call
from onnxlab.execution.program.executor import NodeContext
from onnxlab.execution.program.program import Instruction, Program
from onnxlab.shapes import TensorFact

ProgramOf = Callable[[tuple[str, ...], tuple[str, ...]], Program]
"""The program from some values to others, node by node."""

# Looks at one run after which all values of a part are computed at once, which takes no longer than one more look.
_FEW = 2

_SHARE = 4  # divisor of the store's budget: all values of a part may take budget / `_SHARE`


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """The way to compute a value from what a run kept.

    Attributes:
        inner: parts, and the values inside of each that are computed first.
        program: from these and the known values to the value; None where it is one of these.
    """

    inner: tuple[tuple[Instruction, tuple[str, ...]], ...]
    program: Program | None

    def serves(self, known: Mapping[str, Any]) -> bool:
        """Whether all values that the look begins with are known."""
        reads = [name for instruction, _ in self.inner for name in instruction.step.inputs]
        inside = {name for _, names in self.inner for name in names}
        reads += [] if self.program is None else [name for name in self.program.feeds if name not in inside]
        return all(map(known.__contains__, reads))


def looked_at(
    run: LastRun, compiler: Compiler, name: str, program_of: ProgramOf, call: Call, budget: int
) -> dict[str, Any]:
    """Values that are computed on the way to one value, with that value itself unless it cannot be computed so.

    Args:
        compiler: of the model as it was run.
        budget: bytes of a store.

    Raises:
        FeedError: the value needs an input that was not fed.
        LimitError, RunStopped, RunError: the run that computes the values is ended, or fails.
    """
    run.looks += 1
    notes: dict[Any, Any] = run.program.notes
    look: Look | None = notes.get(("look", name))
    if look is None or not look.serves(run.known):
        look = notes["look", name] = _look(run, compiler, name, program_of)
    values: dict[str, Any] = {}
    parts = [(instruction, _dtypes(run, instruction, compiler, names, budget)) for instruction, names in look.inner]

    def work() -> None:
        for instruction, dtypes in parts:
            values.update(_read(run, instruction, dtypes, call))

    if parts:
        call.part(work, 1, run.program.notes.get(PACE, (0, inf))[1])
    known = {**run.known, **values}
    if look.program is not None and all(map(known.__contains__, look.program.feeds)):
        (values[name],) = call(look.program, [known[read] for read in look.program.feeds], compiler.folder)
    return values


def _dtypes(
    run: LastRun, instruction: Instruction, compiler: Compiler, names: Sequence[str], budget: int
) -> dict[str, Any]:
    """{name: dtype in the model} of the values of a part to compute, gathered here as a worker may not infer facts."""
    chosen = names if run.looks <= _FEW else _all(instruction, compiler, budget // _SHARE) or names
    facts = {name: compiler.fact(compiler.ids[name]) for name in chosen if name not in run.known}
    typed = {name: fact.dtype for name, fact in facts.items() if isinstance(fact, TensorFact)}
    return {name: dtype for name, dtype in typed.items() if dtype is not None}


def _look(run: LastRun, compiler: Compiler, name: str, program_of: ProgramOf) -> Look:
    known, inside = run.known, dict[str, Instruction]()
    for instruction in run.program.instructions:
        inside.update(dict.fromkeys(places(run, instruction, compiler).difference(known), instruction))
    nearest = compiler.main.border([name], lambda read: read in known or read in inside)
    chosen: dict[int, tuple[Instruction, list[str]]] = {}
    for read in nearest:
        if read in inside:
            chosen.setdefault(id(inside[read]), (inside[read], []))[1].append(read)
    inner = tuple([(instruction, tuple(names)) for instruction, names in chosen.values()])
    return Look(inner, None if name in inside else program_of(tuple(nearest), (name,)))


def places(run: LastRun, instruction: Instruction, compiler: Compiler) -> frozenset[str]:
    """Names of the main graph whose values a part can compute and whose dtype is known."""
    step, known = instruction.step, run.known
    if step.part is None or step.part.places is None or step.part.look is None:
        return frozenset()
    if not all(map(known.__contains__, step.inputs)):
        return frozenset()
    names = step.part.places(*map(known.__getitem__, step.inputs))
    facts = {name: compiler.fact(compiler.ids[name]) for name in names if name in compiler.ids}
    return frozenset(
        name for name, fact in facts.items() if isinstance(fact, TensorFact) and fact.dtype is not None
    )  # fmt: skip


def _all(instruction: Instruction, compiler: Compiler, room: int) -> Sequence[str]:
    """All values inside of a part, none where they are known to take more than `room` bytes."""
    part = instruction.step.part
    assert part is not None
    names = [name for name in part.names if name in compiler.ids]
    sizes = [compiler.fact(compiler.ids[name]).nbytes() for name in names]
    known = [size for size in sizes if isinstance(size, int)]
    return names if len(known) == len(sizes) and sum(known) <= room else []


def _read(run: LastRun, instruction: Instruction, dtypes: Mapping[str, Any], call: Call) -> dict[str, Any]:
    """{name: array} of values inside of a part, in these dtypes, those of the model."""
    part, values = instruction.step.part, dict[str, Any]()
    assert part is not None
    assert part.look is not None
    context = NodeContext(call.run, instruction, [])
    try:
        arrays = [run.known[name] for name in instruction.step.inputs]
        for name, array in part.look(context, dtypes, *arrays).items():
            dtype = dtypes[name]
            if array.dtype == dtype:
                values[name] = array
            elif array.dtype == np.float32 and dtype.itemsize == 2 and dtype.kind in "fV":  # a half, widened inside
                values[name] = array.astype(dtype)
    finally:
        context.release()
    return values
