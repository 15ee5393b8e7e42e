"""Steps, partitions and programs of earlier snapshots: after an edit only what it touched is compiled and judged again.

An edit of attributes or of the data of initializers mostly leaves the provider of every node as it was. A
`CachedPartition` holds what a partition was made from. A later snapshot takes the partition over where nodes, names and
facts are the same, changed initializers have the same shape and dtype as before, and each provider, asked by its method
`still`, would claim the changed nodes as before.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Any

from onnxlab.execution.base.lru import Lru
from onnxlab.execution.base.provider import PartitionView, Step
from onnxlab.execution.planning.carry import Carried, SnapshotDiff, carry
from onnxlab.execution.planning.inlining import Flattened
from onnxlab.execution.planning.partition import Partition
from onnxlab.execution.planning.scope_names import ScopeNames
from onnxlab.graph.edit.snapshot import NodeView, Snapshot

_KEPT = 4  # partitions remembered per graph; each holds the constants of its snapshot


class StepCache:
    """Steps, partitions and programs of earlier snapshots of a graph, so that a plan after an edit costs little.

    Attributes:
        programs: the newest programs of the main graph (see `carried_programs`).
    """

    def __init__(self) -> None:
        self._steps: dict[int, tuple[NodeView, Step]] = {}
        self._partitions: Lru[Any, CachedPartition] = Lru("partitions", _KEPT)
        self.programs: Lru[Any, Any] = Lru("programs of earlier versions", _KEPT)

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
        self.programs.clear()

    def partition(self, scope: ScopeNames, key: Any) -> tuple[PartitionView, Partition] | None:
        """The view and partition of an earlier snapshot of the main graph where they still hold, else None."""
        before = self._partitions.get(key)
        result = None if before is None else carry(before, scope)
        if before is not None and result is not None:
            self.keep(scope, key, *result, before.readers)
        return result

    def keep(
        self, scope: ScopeNames, key: Any, view: PartitionView, parts: Partition, readers: dict[str, list[int]]
    ) -> None:
        """Keep the partition of a run of the main graph, whose key is (feeds, outputs, providers)."""
        compiler, written = scope.compiler, view.written
        if written is not None and not compiler.stored:
            self._partitions.keep(key, CachedPartition(
                compiler.snapshot, compiler.facts, written.of(None), view.nodes, view.visible, dict(view.refusals),
                dict(view.notes), parts, readers,
            ))  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class CachedPartition(Carried[tuple[PartitionView, Partition]]):
    """A partition and what it was made from, without the compiler, which refers to it.

    Attributes:
        state: differs wherever a fact does.
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
    readers: dict[str, list[int]]

    def after(self, diff: SnapshotDiff, scope: ScopeNames) -> tuple[PartitionView, Partition] | None:
        """The same for a later snapshot."""
        others, before, written = self._other_nodes(diff), self.written, self.written.of(scope)
        same = self.state is not None and self.state == scope.compiler.facts
        if not same:
            written.facts.clear()
        if others is None or not (same or all(written.fact(name) == known for name, known in before.facts.items())):
            return None
        names = self._other_constants(diff, scope)
        if names is None:
            return None
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
        same = all(provider.still(view, touched) for provider in scope.compiler.providers[:-1])
        return (view, parts) if same else None

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

    def _other_constants(self, diff: SnapshotDiff, scope: ScopeNames) -> set[str] | None:
        """Names of initializers whose data changed; None where one is not of the main graph."""
        names, known = scope.initializers_of(diff.tensors), self.written.constants.keys()
        return None if len(names) < len({*diff.tensors}) else (names | self.written.repeating(names)) & known


def _kind(node: NodeView) -> tuple[str, str, str, int]:
    return node.op_type, node.domain, node.overload, node.since_version
