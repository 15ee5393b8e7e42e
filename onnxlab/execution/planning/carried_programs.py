"""Programs after an edit: of an earlier program, only the steps and parts that the edit touched are compiled anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from onnxlab.execution.base import border
from onnxlab.execution.base.provider import Part, PartitionView, Step
from onnxlab.execution.planning.carry import Carried, SnapshotDiff, carry
from onnxlab.execution.planning.compiler import Compiler, Key, ScopeCompiler
from onnxlab.execution.planning.scope_names import ScopeNames
from onnxlab.execution.program.call import PACE
from onnxlab.execution.program.program import Instruction, Program
from onnxlab.graph.edit.snapshot import NodeView, Snapshot
from onnxlab.ops.base.prepared_constants import mark_constant

_PLACES = "places"  # note of a program: `_Places`
_LASTING = {_PLACES, PACE, "computed", "incremental"}  # notes that hold for the program after an edit, too


@dataclass(frozen=True, slots=True)
class _Places:
    """Numbers of the instructions of a program: {node id: number} for steps of one node, and those of parts."""

    nodes: Mapping[int, int]
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EarlierProgram(Carried[Program]):
    """A program of an earlier snapshot.

    Attributes:
        facts: the state of all facts that it was made by.
    """

    snapshot: Snapshot
    facts: object
    key: Key
    program: Program

    def after(self, diff: SnapshotDiff, scope: ScopeNames) -> Program | None:
        """The program for a later snapshot."""
        assert isinstance(scope, ScopeCompiler)
        compiler, view, parts = scope.compiler, None, dict[int, Part]()
        feeds, outputs, keep = self.key
        if compiler.inlines and not keep:
            scope = scope.fed(feeds)
            view, plan = compiler.steps.partition(scope, (feeds, outputs, compiler.providers)) or (None, None)
            parts = {} if plan is None else {part.nodes[0].id: part for part in plan.parts}
        if view is None and not keep and (compiler.facts is None or compiler.facts != self.facts):
            return None
        others = [(then.op_type, now.op_type) for then, now in diff.nodes]
        if view is None and (len(compiler.providers) > 1 or any(a != b or b == "Constant" for a, b in others)):
            return None
        return _Carry(scope, view, keep, parts, diff, _arrays(scope, diff, view)).of(self.program)


def remember(compiler: Compiler, key: Key, program: Program) -> None:
    """Remember a program of a compiler for `carried`."""
    if not compiler.stored:
        earlier = EarlierProgram(compiler.snapshot, compiler.facts, key, program)
        compiler.steps.programs.keep((compiler.providers, key), earlier)


def carried(compiler: Compiler, key: Key) -> Program | None:
    """The program that an earlier one becomes, where an edit of nodes and data left all else as it was; else None."""
    before = None if compiler.stored else compiler.steps.programs.get((compiler.providers, key))
    program = None if before is None else carry(before, compiler.main)
    if program is not None:
        remember(compiler, key, program)
    return program


def _arrays(scope: ScopeCompiler, diff: SnapshotDiff, view: PartitionView | None) -> dict[str, Any]:
    """{name: array} of the initializers with other data, and of the names that repeat them."""
    if not diff.tensors:
        return {}
    names = scope.initializers_of(diff.tensors)
    if view is None:
        return {name: scope.constant(name) for name in names}
    return {name: view.constant(name) for name in names | view.written.repeating(names)}


@dataclass(frozen=True, slots=True)
class _Carry:
    """One edit, as programs see it.

    Attributes:
        scope, view: of the main graph after the edit; `view` where calls are inlined.
        keep: whether every value stays readable; then bodies read initializers when they run.
        parts: {id of the first node: part}.
        arrays: initializers with other data.
    """

    scope: ScopeCompiler
    view: PartitionView | None
    keep: bool
    parts: Mapping[int, Part]
    diff: SnapshotDiff
    arrays: Mapping[str, Any]

    def of(self, program: Program) -> Program | None:
        """The program after the edit; None where a step depends on more than its node and its part."""
        places = self._places(program)
        if places is None:
            return None
        instructions, rows = list(program.instructions), list(program.rows)
        changed = {places.nodes[node.id]: node for _, node in self.diff.nodes if node.id in places.nodes}
        for number in (*changed, *places.parts):
            before = instructions[number]
            step = self._compiled(changed[number], before.step) if number in changed else self._again(before.step)
            if step is None or not _is_alike(before, step):
                return None
            if step is not before.step:
                instructions[number] = replace(before, step=step, call=step.call)
                rows[number] = instructions[number].row
        template = program.template.copy()
        for name, array in self.arrays.items():
            slot = program.slots.get(name, 0)
            if template[slot] is not None:  # else it is fed
                template[slot] = array
                mark_constant(array)
        notes = {key: note for key, note in program.notes.items() if key in _LASTING}
        return replace(program, template=template, instructions=tuple(instructions), rows=tuple(rows), notes=notes)

    def _places(self, program: Program) -> _Places | None:
        """The places of a program; None where a step is no part that can be made again and depends on a body."""
        places: _Places | None = program.notes.get(_PLACES)
        if places is None:
            numbered = [(number, instruction.step) for number, instruction in enumerate(program.instructions)]
            nodes = {step.node: number for number, step in numbered if step.part is None}
            parts = [(number, step.part) for number, step in numbered if step.part is not None]
            alone = self.keep or self.scope.compiler.steps.holds(nodes.keys())
            if not alone or not all(part.again for _, part in parts):
                return None
            places = program.notes[_PLACES] = _Places(nodes, tuple([number for number, _ in parts]))
        return places

    def _compiled(self, node: NodeView, before: Step) -> Step | None:
        """The step of a changed node by the last provider; None where it depends on more than the node."""
        compiler = self.scope.compiler
        provider, outputs = compiler.providers[-1], tuple(filter(None, node.outputs))
        part = Part(provider.name, (node,), self.scope.reads(node), outputs)
        view = self.view or self.scope.view((), outputs, keep=True, nodes=(node,))
        steps = border.compiled(provider, part, view)
        if not isinstance(steps, list) or len(steps) != 1 or before.shown is not None:
            return None
        return steps[0] if self.keep or compiler.steps.get(node) is not None else None

    def _again(self, step: Step) -> Step | None:
        """The step of a part; None where the part has to be compiled anew."""
        before = step.part
        part = None if before is None else self.parts.get(before.nodes[0])
        if before is None or before.again is None or part is None or self.view is None:
            return None
        compiled = before.again(part, self.view, self.arrays.keys())
        if compiled is None or compiled.call is step.call:
            return None if compiled is None else step
        return replace(step, call=compiled.call, part=replace(compiled, nodes=before.nodes, names=before.names))


def _is_alike(before: Instruction, step: Step) -> bool:
    """Whether a step reads and makes what the step of an instruction does."""
    places = before.step.inputs, before.step.captures, len(before.results)
    return step.constants is None and places == (step.inputs, step.captures, len(step.outputs))
