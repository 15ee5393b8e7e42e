"""Runs that keep their values: of a program of the whole graph, only the instructions run whose results are not there.

The program outlives edits: an edit of attributes or initializers replaces an instruction or a constant in it, one of
the graph's structure makes a new one. So the cost of a run after an edit is that of what the edit changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from math import inf
from typing import Any

from onnxlab.execution.compiler import Compiler
from onnxlab.execution.program import Instruction, Program
from onnxlab.execution.provider import Part, Step
from onnxlab.execution.store import State
from onnxlab.graph.snapshot import NodeView, Snapshot
from onnxlab.ops.prepared import mark_constant


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

    def select(self, state: State, stale: frozenset[int], frame: list[Any]) -> list[int]:
        """Numbers of the instructions that must run for the outputs; what they read and the store has is put into the
        frame."""
        program, values, arrays, makers = self.program, self.values, state.arrays, self.maker
        chosen: set[int] = set()
        waiting = [slot for slot in program.output_slots if frame[slot] is None]
        seen = set(waiting)
        while waiting:
            slot = waiting.pop()
            value = values[slot]
            if value in arrays and value not in stale:
                frame[slot] = arrays[value]
                continue
            number = makers.get(slot)
            if number is None or number in chosen:
                continue
            chosen.add(number)
            for read in program.instructions[number].reads:
                if frame[read] is None and read not in seen:
                    seen.add(read)
                    waiting.append(read)
        return sorted(chosen)

    def expected(self, numbers: Sequence[int], seconds: Mapping[int, float]) -> float:
        """Seconds that these instructions took when they last ran; infinite where one never did."""
        made = map(self.made.__getitem__, numbers)
        return sum(map(seconds.get, made, repeat(inf)))


def plan_of(compiler: Compiler, program: Program) -> Plan:
    """The plan of a program in which every value stays readable."""
    ids = compiler.main.ids
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
    )


def adapted(plan: Plan, compiler: Compiler) -> Plan | None:
    """The plan for a later snapshot, None where a new one has to be made: the structure is not the same, or the node
    or initializer that changed may be in a part of several nodes."""
    old, new = plan.snapshot, compiler.snapshot
    if old is new:
        return plan
    if len(compiler.providers) > 1 or not _alike(old, new):
        return None
    program = plan.program
    template, instructions, rows = program.template, program.instructions, program.rows
    changed = _changed(old.main.nodes, new.main.nodes)
    if changed is None:
        return None
    for view in changed:
        number = plan.number.get(view.id)
        if view.op_type == "Constant":
            return None
        if number is None:
            continue
        step = _recompiled(view, compiler)
        if step is None:
            return None
        if instructions is program.instructions:
            instructions, rows = list(instructions), list(rows)  # type: ignore[assignment]
        before: Instruction = instructions[number]
        if (step.inputs, step.captures, len(step.outputs)) != (
            before.step.inputs, before.step.captures, len(before.results)
        ):  # fmt: skip
            return None
        fresh = replace(before, step=step, call=step.call)
        instructions[number], rows[number] = fresh, fresh.row  # type: ignore[index]
    for value in new.other_tensors(old):
        slot = plan.initializers.get(value)
        if slot is None:
            continue
        template = program.template.copy() if template is program.template else template
        template[slot] = array = new.array(value)
        mark_constant(array)
    made = replace(program, template=template, instructions=tuple(instructions), rows=tuple(rows), notes={})
    return replace(plan, snapshot=new, program=made)


def same_names(old: Snapshot, new: Snapshot) -> bool:
    """Whether every value of the main graph has the name and id that it had."""
    return _alike(old, new) and _changed(old.main.nodes, new.main.nodes) is not None


def _alike(old: Snapshot, new: Snapshot) -> bool:
    """Whether everything but nodes and tensors is the same."""
    a, b = old.main, new.main
    return (
        a.inputs == b.inputs
        and a.input_ids == b.input_ids
        and a.opsets == b.opsets
        and a.initializers == b.initializers
        and _same_scopes(old, new, a.id)
    )


def _same_scopes(old: Snapshot, new: Snapshot, main: int) -> bool:
    """Whether bodies and functions are untouched."""
    if len(old.scopes) != len(new.scopes):
        return False
    for ident, view in old.scopes.items():
        if ident == main:
            continue
        if new.scopes.get(ident) is not view:
            return False
        if any(old.tensor(value) is not new.tensor(value) for value in view.initializers.values()):
            return False
    return True


def _changed(old: Sequence[NodeView], new: Sequence[NodeView]) -> list[NodeView] | None:
    """Nodes that differ in no more than attributes, operator and name; None where others do."""
    if old == new:  # views are equal where they are the same
        return []
    if len(old) != len(new):
        return None
    pairs = [(a, b) for a, b in zip(old, new, strict=True) if a is not b]
    for a, b in pairs:
        if a.id != b.id or a.input_ids != b.input_ids or a.output_ids != b.output_ids or a.inputs != b.inputs:
            return None
        if a.outputs != b.outputs or a.attributes.bodies or b.attributes.bodies:
            return None
    return [b for _, b in pairs]


def _recompiled(view: NodeView, compiler: Compiler) -> Step | None:
    """The step of one node, by the only provider."""
    provider = compiler.providers[0]
    inputs = compiler.main.reads(view)
    part = Part(provider.name, (view,), inputs, tuple(filter(None, view.outputs)))
    compiled = provider.compile(part, compiler.main.view((), part.outputs, keep=True, nodes=(view,)))
    if isinstance(compiled, list) and len(compiled) == 1 and compiled[0].constants is None:
        return compiled[0]
    return None

