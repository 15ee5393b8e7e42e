"""Steps, partitions and programs of earlier snapshots: after an edit only what it touched is compiled and judged again.

An edit of attributes or of the data of initializers mostly leaves the provider of every node as it was. A
`CachedPartition` holds what a partition was made from. A later snapshot takes the partition over where nodes, names and
facts are the same, changed initializers have the same shape and dtype as before, and each provider, asked by its method
`still`, would claim the changed nodes as before.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from onnxlab.execution.base.lru import Lru
from onnxlab.execution.base.provider import PartitionView, Step
from onnxlab.execution.planning.carried_programs import carried
from onnxlab.execution.planning.carry import SnapshotDiff, difference
from onnxlab.execution.planning.inlining import Flattened
from onnxlab.execution.planning.partition import Partition
from onnxlab.execution.planning.scope_names import ScopeNames
from onnxlab.execution.program.program import Program
from onnxlab.graph.edit.snapshot import NodeView, Snapshot

_KEPT = 4  # partitions remembered per graph; each holds the constants of its snapshot


class StepCache:
    """Steps, partitions and programs of earlier snapshots of a graph, so that a plan after an edit costs little."""

    def __init__(self) -> None:
        self._steps: dict[int, tuple[NodeView, Step]] = {}
        self._partitions: Lru[Any, CachedPartition] = Lru("partitions", _KEPT)

    def get(self, node: NodeView) -> Step | None:
        """The step compiled for this very view of a node, None where there is none."""
        view, step = self._steps.get(node.id, (None, None))
        return step if view is node else None

    def put(self, node: NodeView, step: Step) -> None:
        """Keep the step of a node without bodies that calls no function, so that the step depends on the node alone."""
        self._steps[node.id] = (node, step)

    def holds(self, nodes: Set[int]) -> bool:
        """Whether the steps of all these nodes depend on their nodes alone."""
        return nodes <= self._steps.keys()

    def forget(self) -> None:
        """Drop programs, whose parts refer to a compiler, when none will be asked for any more."""
        for partition in list(self._partitions.values()):
            partition.program = None

    def drop(self, key: Any) -> None:
        """Drop a partition and its program."""
        self._partitions.pop(key, None)

    def partition(self, scope: ScopeNames, key: Any) -> tuple[PartitionView, Partition, Program | None] | None:
        """The view, partition and program of an earlier snapshot where they still hold, changed by an edit, else None.

        The key is (feeds, outputs, providers).
        """
        before, compiler = self._partitions.get(key), scope.compiler
        diff = None if before is None or compiler.stored else difference(before.snapshot, compiler.snapshot)
        result = None if before is None or diff is None else before.after(diff, scope)
        if before is not None and result is not None:
            self.keep(scope, key, *result, before.readers)
        return result

    def view(self, scope: ScopeNames, feeds: Sequence[str], outputs: Sequence[str]) -> PartitionView | None:
        """The view of a run that was partitioned for other providers, of the same snapshot and facts, else None."""
        compiler, run = scope.compiler, (tuple(feeds), tuple(outputs))
        known = list(self._partitions.items()) if compiler.facts is not None else ()
        return next((
            partition.written.of(scope).view(scope, partition.nodes, partition.visible) for key, partition in known
            if key[:2] == run and partition.snapshot is compiler.snapshot and partition.state == compiler.facts
        ), None)  # fmt: skip

    def keep(
        self, scope: ScopeNames, key: Any, view: PartitionView, parts: Partition, program: Program | None = None,
        readers: dict[str, list[int]] | None = None,
    ) -> None:  # fmt: skip
        """Keep the partition and the program of a run of the main graph."""
        compiler, written = scope.compiler, view.written
        if written is not None and not compiler.stored:
            self._partitions.keep(key, CachedPartition(
                compiler.snapshot, compiler.facts, written.of(None), view.nodes, view.visible, dict(view.refusals),
                dict(view.notes), parts, program, readers or {},
            ))  # fmt: skip

    def add(self, key: Any, nodes: Sequence[NodeView], program: Program) -> None:
        """Keep the program that was made of the partition of these nodes."""
        partition = self._partitions.get(key)
        if partition is not None and partition.nodes is nodes:
            partition.program = program


@dataclass(slots=True, eq=False)
class CachedPartition:
    """A partition and what it was made from, without the compiler, which refers to it.

    Attributes:
        state: differs wherever a fact does.
        program: what was made of the partition.
        readers: {name: places of the nodes that read it}, made when it is first needed.
    """

    snapshot: Snapshot
    state: object
    written: Flattened
    nodes: tuple[NodeView, ...]
    visible: frozenset[str]
    refusals: dict[int, str]
    notes: dict[Any, Any]
    parts: Partition
    program: Program | None
    readers: dict[str, list[int]]

    def after(self, diff: SnapshotDiff, scope: ScopeNames) -> tuple[PartitionView, Partition, Program | None] | None:
        """The same for a later snapshot."""
        others, before, written = self._other_nodes(diff), self.written, self.written.of(scope)
        same = self.state is not None and self.state == scope.compiler.facts
        if not same:
            written.facts.clear()
        if others is None or not (same or all(written.fact(name) == known for name, known in before.facts.items())):
            return None
        initializers = scope.initializers_of(diff.tensors)
        if len(initializers) < len({*diff.tensors}):  # one is not of the main graph
            return None
        changed = initializers | written.repeating(initializers)
        names = changed & before.constants.keys()
        for name in names:
            old, new = written.constants.pop(name), written.constant(name)
            if (old is None) != (new is None) or (old is not None and (old.shape, old.dtype) != (new.shape, new.dtype)):
                return None
        nodes, parts = self.nodes, self.parts
        if others:
            nodes = tuple([others.get(node, node) for node in nodes])
            parts = replace(parts, parts=tuple([
                replace(part, nodes=tuple([others.get(node, node) for node in part.nodes])) for part in parts.parts
            ]))  # fmt: skip
        view = written.view(scope, nodes, self.visible)
        view.refusals.update(self.refusals)
        view.notes.update(self.notes)
        touched = {*others.values(), *(nodes[place] for name in names for place in self._readers().get(name, ()))}
        if not all(provider.still(view, touched) for provider in scope.compiler.providers[:-1]):
            return None
        program = self.program and carried(self.program, scope, view, parts.parts, diff, changed)
        return view, parts, program

    def _readers(self) -> dict[str, list[int]]:
        """{name: places of the nodes that read it}."""
        if not self.readers:
            for place, node in enumerate(self.nodes):
                for name in node.inputs:
                    self.readers.setdefault(name, []).append(place)
        return self.readers

    def _other_nodes(self, diff: SnapshotDiff) -> dict[NodeView, NodeView] | None:
        """{old node: new node} of changed nodes; None where one was inlined or now has another operator."""
        present = set(self.nodes) if diff.nodes else ()
        return dict(diff.nodes) if all(old in present and _kind(old) == _kind(new) for old, new in diff.nodes) else None


def _kind(node: NodeView) -> tuple[str, str, str, int]:
    return node.op_type, node.domain, node.overload, node.since_version
