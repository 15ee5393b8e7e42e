"""Programs after an edit: of an earlier program, only the steps and parts that the edit touched are compiled anew."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from onnxlab.execution.base import border
from onnxlab.execution.base.provider import Part, PartitionView, Step
from onnxlab.execution.planning.carry import SnapshotDiff
from onnxlab.execution.planning.scope_names import ScopeNames
from onnxlab.execution.program import constant_folding
from onnxlab.execution.program.call import PACE
from onnxlab.execution.program.program import Instruction, Program
from onnxlab.graph.edit.snapshot import NodeView
from onnxlab.ops.base.prepared_constants import mark_constant

_PLACES = "places"  # note of a program: ({id of the node of a step: number}, numbers of the steps of parts)
_LASTING = {_PLACES, PACE, "computed"}  # notes that hold for the program after an edit, too


def carried(
    program: Program, scope: ScopeNames, view: PartitionView, parts: Sequence[Part], diff: SnapshotDiff,
    names: Collection[str],
) -> Program | None:  # fmt: skip
    """The program after an edit; None where a step depends on more than its node and its part.

    Args:
        scope, view, parts: of the main graph after the edit.
        names: of initializers with other data, and of what repeats them.
    """
    places = _places(program, scope)
    if places is None:
        return None
    instructions, rows, template = list(program.instructions), list(program.rows), program.template.copy()
    nodes = {places[0][node.id]: node for _, node in diff.nodes if node.id in places[0]}
    firsts = {part.nodes[0].id: part for part in parts}
    for number in (*nodes, *places[1]):
        before = instructions[number]
        node, part = nodes.get(number), before.step.part
        step = _compiled(node, scope, view) if part is None else _again(before.step, firsts, view, names)
        if step is None or not _is_alike(before, step):
            return None
        if step is not before.step:
            instructions[number] = replace(before, step=step, call=step.call)
            rows[number] = instructions[number].row
    for name in names:
        slot = program.slots.get(name, 0)
        if template[slot] is not None:  # else it is fed
            template[slot] = view.constant(name)
            mark_constant(template[slot])
    notes = {key: note for key, note in program.notes.items() if key in _LASTING}
    after = replace(program, template=template, instructions=tuple(instructions), rows=tuple(rows), notes=notes)
    if program.foldable:
        constant_folding.carry(program, after)
    return after


def _places(program: Program, scope: ScopeNames) -> tuple[Mapping[int, int], Sequence[int]] | None:
    """The places of a program; None where a step is no part that can be made again and depends on a body."""
    places: tuple[Mapping[int, int], Sequence[int]] | None = program.notes.get(_PLACES)
    if places is None:
        numbered = [(number, instruction.step) for number, instruction in enumerate(program.instructions)]
        nodes = {step.node: number for number, step in numbered if step.part is None}
        parts = [(number, step.part) for number, step in numbered if step.part is not None]
        if not scope.compiler.steps.holds(nodes.keys()) or not all(part.again for _, part in parts):
            return None
        places = program.notes[_PLACES] = nodes, [number for number, _ in parts]
    return places


def _compiled(node: NodeView | None, scope: ScopeNames, view: PartitionView) -> Step | None:
    """The step of a changed node by the last provider; None where it depends on more than the node."""
    assert node is not None
    compiler, outputs = scope.compiler, tuple(filter(None, node.outputs))
    provider = compiler.providers[-1]
    steps = border.compiled(provider, Part(provider.name, (node,), scope.reads(node), outputs), view)
    is_alone = isinstance(steps, list) and len(steps) == 1 and compiler.steps.get(node) is not None
    return steps[0] if is_alone and isinstance(steps, list) else None


def _again(step: Step, parts: Mapping[int, Part], view: PartitionView, names: Collection[str]) -> Step | None:
    """The step of a part; None where the part has to be compiled anew."""
    before = step.part
    part = None if before is None else parts.get(before.nodes[0])
    if before is None or before.again is None or part is None:
        return None
    compiled = before.again(part, view, names)
    if compiled is None or compiled.call is step.call:
        return None if compiled is None else step
    return replace(step, call=compiled.call, part=replace(compiled, nodes=before.nodes, names=before.names))


def _is_alike(before: Instruction, step: Step) -> bool:
    """Whether a step reads and makes what the step of an instruction does, as the model declares it."""
    places = before.step.inputs, before.step.captures, len(before.results)
    plain = step.constants is None and before.step.shown is None
    return plain and places == (step.inputs, step.captures, len(step.outputs))
