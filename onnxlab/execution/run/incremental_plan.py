"""Runs that keep their values: of a program of the whole graph, only the instructions run whose results are not there.

The program outlives edits: an edit of attributes or initializers replaces an instruction or a constant of the program,
and an edit of the graph's structure makes a new program. So the cost of a run after an edit depends on how much the
edit changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from math import inf
from typing import Any

from onnxlab.execution.base import border
from onnxlab.execution.base.provider import Part
from onnxlab.execution.base.value_store import StoreState
from onnxlab.execution.planning.carry import Carried, SnapshotDiff
from onnxlab.execution.planning.compiler import Compiler, ScopeCompiler
from onnxlab.execution.planning.scope_names import ScopeNames
from onnxlab.execution.program.program import Instruction, Program
from onnxlab.execution.program.run_observers import InstructionRows, StepRow, step_row
from onnxlab.graph.edit.snapshot import NodeView, Snapshot
from onnxlab.ops.base.prepared_constants import mark_constant


@dataclass(frozen=True, slots=True, eq=False)
class Worklist:
    """The part of a plan that has to run where some values are stale.

    Attributes:
        stale: ids of the stale values.
        steps: the steps to run.
        values: id of a value that each step makes; 0 for none.
        border: (slot, value id) of stored values that the steps or the caller read.
        made: `values` as a set.
        took: seconds of the last time that all steps ran, if they did.
    """

    stale: frozenset[int]
    steps: InstructionRows
    values: tuple[int, ...]
    border: tuple[tuple[int, int], ...]
    made: frozenset[int]
    took: list[float] = field(default_factory=list)

    def fill(self, frame: list[Any], arrays: Mapping[int, Any]) -> bool:
        """Put the stored values into a frame; False where one is not stored any more."""
        try:
            for slot, value in self.border:
                frame[slot] = arrays[value]
        except KeyError:
            return False
        return True

    def expected(self, seconds: Mapping[int, float]) -> float:
        """Seconds that the steps took when they last ran; infinite where one never did."""
        return self.took[0] if self.took else sum(map(seconds.get, self.values, repeat(inf)))

    def ran(self, seconds: Mapping[int, float]) -> None:
        """Note how long the steps took that were run."""
        if seconds.keys() == self.made:  # else some steps did not run, or make several values
            self.took[:] = [sum(seconds.values())]


@dataclass(frozen=True, slots=True, eq=False)
class IncrementalPlan(Carried["IncrementalPlan"]):
    """A program with every value visible, and where its values are.

    Attributes:
        snapshot: the snapshot that the plan was made for.
        program: from all fed values to all outputs that were asked for.
        values: value id by slot, 0 for none.
        initializers: {value id: slot} of constants that the model holds.
        constants: slots of what Constant nodes hold.
        maker: {slot: number of the instruction}.
        made: id of a value that an instruction makes, by its number; 0 for none.
        number: {node id: number of the instruction}, for steps of one node.
        parts: ids of values that steps of several nodes make.
        rows: the rows of the instructions.
        last: the last selection, if any: most edits are like the edit before.
    """

    snapshot: Snapshot
    program: Program
    values: tuple[int, ...]
    initializers: Mapping[int, int]
    constants: tuple[int, ...]
    maker: Mapping[int, int]
    made: tuple[int, ...]
    number: Mapping[int, int]
    parts: frozenset[int]
    rows: Sequence[StepRow]
    last: list[Worklist] = field(default_factory=list)

    def select(self, state: StoreState, stale: frozenset[int], frame: list[Any]) -> Worklist:
        """Select what must run for the outputs; stored values that it reads are put into the frame.

        The last selection is reused where the same values are stale: if the store now holds values that it would make,
        the run finds them.
        """
        for selection in self.last[:]:
            if (selection.stale is stale or selection.stale == stale) and selection.fill(frame, state.arrays):
                return selection
        worklist = self._walk(state, stale, frame)
        self.last[:] = [worklist]
        return worklist

    def _walk(self, state: StoreState, stale: frozenset[int], frame: list[Any]) -> Worklist:
        program, values, arrays, makers = self.program, self.values, state.arrays, self.maker
        chosen, border = set[int](), []
        waiting = [slot for slot in program.output_slots if frame[slot] is None]
        seen = set(waiting)
        while waiting:
            slot = waiting.pop()
            value = values[slot]
            if value in arrays and value not in stale:
                frame[slot] = arrays[value]
                border.append((slot, value))
                continue
            number = makers.get(slot)
            if number is None or number in chosen:
                continue
            chosen.add(number)
            for read in program.instructions[number].reads:
                if frame[read] is None and read not in seen:
                    seen.add(read)
                    waiting.append(read)
        numbers = sorted(chosen)
        steps = InstructionRows(
            [program.instructions[number] for number in numbers], [self.rows[number] for number in numbers]
        )
        parts = tuple([self.made[number] for number in numbers])
        return Worklist(stale, steps, parts, tuple(border), frozenset(parts))

    def after(self, diff: SnapshotDiff, scope: ScopeNames) -> IncrementalPlan | None:
        """The plan for a later snapshot; None where a change may be inside a part of several nodes."""
        if diff.old is diff.new:
            return self
        if len(scope.compiler.providers) > 1 or any(view.op_type == "Constant" for _, view in diff.nodes):
            return None
        program, template = self.program, self.program.template
        instructions, rows, step_rows = list(program.instructions), list(program.rows), list(self.rows)
        for _, view in diff.nodes:
            number = self.number.get(view.id)
            if number is not None:
                fresh = _recompiled(view, instructions[number], scope)
                if fresh is None:
                    return None
                instructions[number], rows[number] = fresh, fresh.row
                step_rows[number] = step_row(fresh, step_rows[number][-1])
        arrays = {
            self.initializers[value]: diff.new.array(value) for value in diff.tensors if value in self.initializers
        }
        if arrays:
            template = template.copy()
        for slot, array in arrays.items():
            template[slot] = array
            mark_constant(array)
        changed = replace(program, template=template, instructions=tuple(instructions), rows=tuple(rows), notes={})
        last = [] if diff.nodes else self.last
        return replace(self, snapshot=diff.new, program=changed, rows=tuple(step_rows), last=last)


def plan_of(compiler: Compiler, program: Program) -> IncrementalPlan:
    """The plan of a program in which every value stays readable."""
    ids = compiler.ids
    values = [0] * len(program.template)
    for name, slot in program.slots.items():
        values[slot] = ids.get(name, 0)
    held = compiler.main.scope.initializers
    constants = [(name, slot) for name, slot in program.slots.items() if program.template[slot] is not None]
    instructions = program.instructions
    return IncrementalPlan(
        compiler.snapshot,
        program,
        tuple(values),
        {held[name]: slot for name, slot in constants if name in held},
        tuple(slot for name, slot in constants if name not in held),
        {slot: number for number, i in enumerate(instructions) for slot in i.results if slot > 0},
        tuple(values[max(i.results, default=0)] for i in instructions),
        {i.step.node: number for number, i in enumerate(instructions) if i.step.node},
        frozenset([values[slot] for i in instructions if not i.step.node for slot in i.results if slot > 0]),
        tuple(step_row(i, values[i.result]) for i in instructions),
    )


def _recompiled(view: NodeView, before: Instruction, scope: ScopeNames) -> Instruction | None:
    """The instruction of a changed node by the only provider, None where its form differs from the one before."""
    assert isinstance(scope, ScopeCompiler)
    provider = scope.compiler.providers[0]
    part = Part(provider.name, (view,), scope.reads(view), tuple(filter(None, view.outputs)))
    compiled = border.compiled(provider, part, scope.view((), part.outputs, keep=True, nodes=(view,)))
    if not isinstance(compiled, list) or len(compiled) != 1 or compiled[0].constants is not None:
        return None
    (step,) = compiled
    places = step.inputs, step.captures, len(step.outputs)
    same = places == (before.step.inputs, before.step.captures, len(before.results))
    return replace(before, step=step, call=step.call) if same else None
