"""Values that a run left unkept, computed when they are looked at.

A `Look` first has the nearest parts compute values inside of them, as the parts computed them in the run. From these
values it goes on node by node. The way to a value is determined once per program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from onnxlab.execution.base import blas
from onnxlab.execution.base.last_run import LastRun
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.program.call import PACE, QUICK, Call
from onnxlab.execution.program.executor import NodeContext, run_program
from onnxlab.execution.program.program import Instruction, Program
from onnxlab.shapes import TensorFact

ProgramOf = Callable[[tuple[str, ...], tuple[str, ...]], Program]
"""The program from some values to others, node by node."""


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """The way to compute a value from what a run kept.

    Attributes:
        inner: parts, and {name: dtype in the model} of the values inside of each that are computed first.
        program: from these and the known values to the value; None where it is one of these.
        begins: names of the known values that the look begins with.
        multiplies: whether the program may end up in BLAS; parts have threads of their own.
    """

    inner: tuple[tuple[Instruction, Mapping[str, Any]], ...]
    program: Program | None
    begins: tuple[str, ...]
    multiplies: bool


def looked_at(
    run: LastRun, compiler: Compiler, name: str, program_of: ProgramOf, call: Call, room: int
) -> dict[str, Any]:
    """Values that are computed on the way to one value, with that value itself unless it cannot be computed so.

    Args:
        compiler: of the model as it was run.
        room: bytes that all values of a part may take; 0 where only those on the way are computed.

    Raises:
        FeedError: the value needs an input that was not fed.
        LimitError, RunStopped, RunError: the run that computes the values is ended, or fails.
    """
    notes: dict[Any, Any] = run.program.notes
    look: Look | None = notes.get(("look", name))
    if look is None or not all(map(run.known.__contains__, look.begins)):
        look = notes["look", name] = _look(run, compiler, name, program_of)
    values, expected = dict[str, Any](), notes.get(PACE, (0, inf))[1]
    # facts are inferred here, as a worker may not do it
    parts = [(instruction, (room and _all(instruction, compiler, room)) or dtypes)
             for instruction, dtypes in look.inner]  # fmt: skip

    def work() -> None:
        for instruction, dtypes in parts:
            values.update(_read(run, instruction, dtypes, call))
        known, program = {**run.known, **values}, look.program
        # where it is not repeatable, a run of the graph computes the value, which keeps what it draws on the way
        if program is not None and program.repeatable and all(map(known.__contains__, program.feeds)):
            feeds = [known[read] for read in program.feeds]
            (values[name],) = run_program(program, feeds, call.run)

    if look.program is None and expected < QUICK:
        with np.errstate(all="ignore"):  # compiled code alone: there are no threads of BLAS to limit
            work()
    else:
        call.threads *= look.multiplies
        call.part(work, 1, expected)
    return values


def _look(run: LastRun, compiler: Compiler, name: str, program_of: ProgramOf) -> Look:
    known, inside = run.known, dict[str, tuple[Instruction, Any]]()
    for instruction in run.program.instructions:
        dtypes = places(run, instruction, compiler)
        inside.update({read: (instruction, dtypes[read]) for read in dtypes if read not in known})
    nearest = compiler.main.border([name], lambda read: read in known or read in inside)
    chosen: dict[int, tuple[Instruction, dict[str, Any]]] = {}
    for read in filter(inside.__contains__, nearest):
        instruction, dtype = inside[read]
        chosen.setdefault(id(instruction), (instruction, {}))[1][read] = dtype
    begins = [read for read in nearest if read not in inside]
    begins += [read for instruction, _ in chosen.values() for read in instruction.step.inputs]
    program = None if name in inside else program_of(tuple(nearest), (name,))
    multiplies = program is not None and any(blas.used_by(instruction.step) for instruction in program.instructions)
    return Look((*chosen.values(),), program, tuple(begins), multiplies)


def places(run: LastRun, instruction: Instruction, compiler: Compiler) -> dict[str, Any]:
    """{name: dtype} of the values of the main graph that a part can compute."""
    step, known = instruction.step, run.known
    if step.part is None or step.part.places is None or step.part.look is None or not known.keys() >= {*step.inputs}:
        return {}
    return typed(compiler, step.part.places(*map(known.__getitem__, step.inputs)))


def typed(compiler: Compiler, names: Iterable[str]) -> dict[str, Any]:
    """{name: dtype in the model} of those values of the main graph whose dtype is known."""
    facts = {name: compiler.fact(compiler.ids[name]) for name in names if name in compiler.ids}
    return {name: fact.dtype for name, fact in facts.items() if isinstance(fact, TensorFact) and fact.dtype is not None}


def _all(instruction: Instruction, compiler: Compiler, room: int) -> dict[str, Any]:
    """{name: dtype} of all values inside of a part, none where they are known to take more than `room` bytes."""
    names = instruction.step.part.names if instruction.step.part is not None else ()
    sizes = [compiler.fact(compiler.ids[name]).nbytes() for name in names if name in compiler.ids]
    return typed(compiler, names) if sum(size if isinstance(size, int) else inf for size in sizes) <= room else {}


def _read(run: LastRun, instruction: Instruction, dtypes: Mapping[str, Any], call: Call) -> dict[str, Any]:
    """{name: array} of values inside of a part, in these dtypes, those of the model."""
    part, values = instruction.step.part, dict[str, Any]()
    assert part is not None
    assert part.look is not None
    context = NodeContext(call.run, instruction, [])
    try:
        missing = [name for name in dtypes if name not in run.known]
        for name, array in part.look(context, missing, *[run.known[name] for name in instruction.step.inputs]).items():
            dtype = dtypes[name]
            # a half is widened inside
            if array.dtype == dtype or (array.dtype == np.float32 and dtype.itemsize == 2 and dtype.kind in "fV"):
                values[name] = array.astype(dtype, copy=False)
    finally:
        context.release()
    return values
