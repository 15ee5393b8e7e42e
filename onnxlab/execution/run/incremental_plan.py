"""Runs that keep their values: of a program of the whole graph, only the instructions run whose results are not there.

The program outlives edits: an edit of attributes or initializers replaces an instruction or a constant in it, one of
the graph's structure makes a new one. So the cost of a run after an edit is that of what the edit changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from math import inf
from typing import Any

from onnxlab.execution.base import border
from onnxlab.execution.base.provider import Part, Step
from onnxlab.execution.base.value_store import State
from onnxlab.execution.planning.compiler import Compiler
from onnxlab.execution.planning.snapshot_diff import changed_nodes, same_structure
from onnxlab.execution.program.program import Instruction, Program
from onnxlab.execution.program.run_observers import StepRow, Steps, step_row
from onnxlab.graph.edit.snapshot import NodeView, Snapshot
from onnxlab.ops.base.prepared_constants import mark_constant


@dataclass(frozen=True, slots=True, eq=False)
class Worklist:
    """The part of a plan that has to run where some values are stale.

    Attributes:
        stale: value ids.
        steps: to run.
        values: id of a value that each of them makes; 0 for none.
        border: (slot, value id) of stored values that they or the caller read.
        made: the same as a set.
        took: seconds of the last time that all of them ran, if they did.
    """

    stale: frozenset[int]
    steps: Steps
    values: tuple[int, ...]
    border: tuple[tuple[int, int], ...]
    made: frozenset[int]
    took: list[float] = field(default_factory=list)

    def fill(self, frame: list[Any], arrays: Mapping[int, Any]) -> bool:
        """Put what is kept into a frame; False where something is not there any more."""
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
        if seconds.keys() == self.made:  # else some were spared, or make several values
            self.took[:] = [sum(seconds.values())]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A program with every value visible, and where its values are.

    Attributes:
        snapshot: that it was made for.
        program: from all that is fed to all that was asked for.
        values: value id by slot, 0 for none.
        initializers: {value id: slot} of constants that the model holds.
        constants: slots of what Constant nodes hold.
        maker: {slot: number of the instruction}.
        made: id of a value that an instruction makes, by its number; 0 for none.
        number: {node id: number of the instruction}, for steps of one node.
        parts: ids of values that steps of several nodes make.
        rows: of the instructions.
        last: the last selection, if any: most edits are like the one before.
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

    def select(self, state: State, stale: frozenset[int], frame: list[Any]) -> Worklist:
        """Select what must run for the outputs; stored values that it reads are put into the frame.

        The last selection does where the same is stale: should something be there by now that it makes, the run finds
        that out.
        """
        for selection in self.last[:]:
            if (selection.stale is stale or selection.stale == stale) and selection.fill(frame, state.arrays):
                return selection
        worklist = self._walk(state, stale, frame)
        self.last[:] = [worklist]
        return worklist

    def _walk(self, state: State, stale: frozenset[int], frame: list[Any]) -> Worklist:
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
        steps = Steps([program.instructions[number] for number in numbers], [self.rows[number] for number in numbers])
        parts = tuple([self.made[number] for number in numbers])
        return Worklist(stale, steps, parts, tuple(border), frozenset(parts))


def plan_of(compiler: Compiler, program: Program) -> Plan:
    """The plan of a program in which every value stays readable."""
    ids = compiler.ids
    values = [0] * len(program.template)
    for name, slot in program.slots.items():
        values[slot] = ids.get(name, 0)
    held = compiler.main.scope.initializers
    constants = [(name, slot) for name, slot in program.slots.items() if program.template[slot] is not None]
    instructions = program.instructions
    return Plan(
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


def adapted(plan: Plan, compiler: Compiler) -> Plan | None:
    """Adapt a plan to a later snapshot.

    Returns:
        The plan, or None where a new one has to be made: the structure is not the same, or the node or initializer
        that changed may be in a part of several nodes.
    """
    old, new = plan.snapshot, compiler.snapshot
    if old is new:
        return plan
    if len(compiler.providers) > 1 or not same_structure(old, new):
        return None
    program = plan.program
    template, instructions, rows, step_rows = program.template, program.instructions, program.rows, plan.rows
    changed = changed_nodes(old.main.nodes, new.main.nodes)
    if changed is None:
        return None
    for _, view in changed:
        number = plan.number.get(view.id)
        if view.op_type == "Constant":
            return None
        if number is None:
            continue
        step = _recompiled(view, compiler)
        if step is None:
            return None
        if instructions is program.instructions:
            instructions, rows, step_rows = list(instructions), list(rows), list(step_rows)  # type: ignore[assignment]
        before: Instruction = instructions[number]
        if (step.inputs, step.captures, len(step.outputs)) != (
            before.step.inputs, before.step.captures, len(before.results)
        ):  # fmt: skip
            return None
        fresh = replace(before, step=step, call=step.call)
        instructions[number], rows[number] = fresh, fresh.row  # type: ignore[index]
        step_rows[number] = step_row(fresh, step_rows[number][-1])  # type: ignore[index]
    for value in new.other_tensors(old):
        slot = plan.initializers.get(value)
        if slot is None:
            continue
        template = program.template.copy() if template is program.template else template
        template[slot] = array = new.array(value)
        mark_constant(array)
    changed_program = replace(program, template=template, instructions=tuple(instructions), rows=tuple(rows), notes={})
    last = plan.last if step_rows is plan.rows else []
    return replace(plan, snapshot=new, program=changed_program, rows=tuple(step_rows), last=last)


def _recompiled(view: NodeView, compiler: Compiler) -> Step | None:
    """The step of one node, by the only provider."""
    provider = compiler.providers[0]
    inputs = compiler.main.reads(view)
    part = Part(provider.name, (view,), inputs, tuple(filter(None, view.outputs)))
    compiled = border.compiled(provider, part, compiler.main.view((), part.outputs, keep=True, nodes=(view,)))
    if isinstance(compiled, list) and len(compiled) == 1 and compiled[0].constants is None:
        return compiled[0]
    return None
