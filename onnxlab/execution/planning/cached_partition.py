"""Steps and partitions of earlier snapshots: after an edit only what it touched is compiled and judged again.

An edit of attributes or of the data of initializers mostly changes nothing about who runs what. A `CachedPartition`
holds what a partition was made of. A later snapshot takes it over where nodes, names and facts are the same,
initializers that are others have the shape and dtype that they had, and each provider (its method `still`) says
that it would claim the nodes of which something is different as it did before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from onnxlab.execution.base.lru import Lru
from onnxlab.execution.base.provider import PartitionView, Step
from onnxlab.execution.planning.carry import Carried, SnapshotDiff, carry
from onnxlab.execution.planning.inlining import Flattened
from onnxlab.execution.planning.partition import Partition, partition
from onnxlab.execution.planning.scope_names import ScopeNames
from onnxlab.graph.edit.snapshot import NodeView, Snapshot

T = TypeVar("T")
_KEPT = 4
"""Partitions remembered per graph; each holds the constants of its snapshot."""


class MemoDict(dict[str, T], Generic[T]):
    """Answers to a question by name, each computed when it is first asked for."""

    def __init__(self, ask: Callable[[str], T], known: Mapping[str, T] | None = None) -> None:
        super().__init__(known or {})
        self._ask = ask

    def __missing__(self, name: str) -> T:
        answer = self[name] = self._ask(name)
        return answer


@dataclass(frozen=True, slots=True)
class FlattenedScope:
    """A scope with its calls written out: its nodes, and the answers to views' questions so far."""

    nodes: Flattened
    constants: MemoDict[Any]
    facts: MemoDict[Any]

    def view(self, scope: ScopeNames, nodes: tuple[NodeView, ...], visible: frozenset[str]) -> PartitionView:
        """The view of nodes whose calls are written out."""
        constant, fact = self.constants.__getitem__, self.facts.__getitem__
        return PartitionView(nodes, visible, scope.scope.opsets, constant, scope.reads, fact, scope=scope, written=self)


class StepCache:
    """Steps and partitions of earlier snapshots of a graph, so that a plan after an edit costs little."""

    def __init__(self) -> None:
        self._steps: dict[int, tuple[NodeView, Step]] = {}
        self._partitions: Lru[Any, CachedPartition] = Lru("partitions", _KEPT)

    def get(self, node: NodeView) -> Step | None:
        """The step compiled for this very view of a node, None where there is none."""
        view, step = self._steps.get(node.id, (None, None))
        return step if view is node else None

    def put(self, node: NodeView, step: Step) -> None:
        """Keep the step of a node, which depends on that alone: it has no bodies, and calls no function."""
        self._steps[node.id] = (node, step)

    def partition(
        self,
        scope: ScopeNames,
        feeds: Sequence[str],
        outputs: Sequence[str],
        make: Callable[[Sequence[str], Sequence[str]], PartitionView],
    ) -> tuple[PartitionView, Partition]:
        """The view of a run that keeps nothing, which `make` makes, and the provider of each of its nodes."""
        compiler = scope.compiler
        key = tuple(feeds), tuple(outputs), compiler.providers
        main = scope.scope is compiler.snapshot.main
        before = self._partitions.pop(key, None) if main else None
        result = None if before is None else carry(before, scope)
        if result is None:
            view = make(feeds, outputs)
            result = view, partition(view, compiler.providers)
        if main and result[0].written is not None and not compiler.stored:
            self._partitions.keep(key, CachedPartition.of(compiler.snapshot, *result))
        return result


@dataclass(frozen=True, slots=True, eq=False)
class CachedPartition(Carried[tuple[PartitionView, Partition]]):
    """A partition and what it was made of, without the compiler that it was made for and that leads to it."""

    snapshot: Snapshot
    written: Flattened
    constants: dict[str, Any]
    facts: dict[str, Any]
    nodes: tuple[NodeView, ...]
    visible: frozenset[str]
    refusals: dict[int, str]
    notes: dict[Any, Any]
    parts: Partition

    @staticmethod
    def of(snapshot: Snapshot, view: PartitionView, parts: Partition) -> CachedPartition:
        """The cached form of a view whose calls are written out."""
        written = view.written
        return CachedPartition(
            snapshot,
            written.nodes.of(None),
            dict(written.constants),
            dict(written.facts),
            view.nodes,
            view.visible,
            dict(view.refusals),
            dict(view.notes),
            parts,
        )

    def after(self, diff: SnapshotDiff, scope: ScopeNames) -> tuple[PartitionView, Partition] | None:
        """The same for a later snapshot."""
        others = self._other_nodes(diff)
        if others is None:
            return None
        written = self.written.of(scope)
        fact = written.fact
        if not all(fact(name) is known or fact(name) == known for name, known in self.facts.items()):
            return None
        names = self._other_constants(diff, scope)
        if names is None:
            return None
        known = dict(self.constants)
        for name in names:
            old, new = known[name], written.constant(name)
            if old is None and new is None:  # it is fed
                continue
            if old is None or new is None or (old.shape, old.dtype) != (new.shape, new.dtype):
                return None
            known[name] = new
        nodes, parts = self.nodes, self.parts
        if others:
            nodes = tuple([others.get(node, node) for node in nodes])
            parts = replace(parts, parts=tuple([
                replace(part, nodes=tuple([others.get(node, node) for node in part.nodes])) for part in parts.parts
            ]))  # fmt: skip
        flattened = FlattenedScope(written, MemoDict(written.constant, known), MemoDict(fact, self.facts))
        view = flattened.view(scope, nodes, self.visible)
        view.refusals.update(self.refusals)
        view.notes.update(self.notes)
        touched = {*others.values(), *(node for node in nodes if names and not names.isdisjoint(node.inputs))}
        for provider in scope.compiler.providers[:-1]:
            if not provider.still(view, touched):
                return None
        return view, parts

    def _other_nodes(self, diff: SnapshotDiff) -> dict[NodeView, NodeView] | None:
        """Nodes in the place of others; None where one was written as something else, or becomes another operator."""
        present = set(self.nodes) if diff.nodes else ()
        return dict(diff.nodes) if all(old in present and _kind(old) == _kind(new) for old, new in diff.nodes) else None

    def _other_constants(self, diff: SnapshotDiff, scope: ScopeNames) -> set[str] | None:
        """Names that stand for an initializer with other data; None where it is none of the main graph."""
        ids = set(diff.tensors)
        if not ids:
            return set()
        names = {name for name, value in scope.scope.initializers.items() if value in ids}
        if len(names) < len(ids):
            return None
        return (names | self.written.repeating(names)) & self.constants.keys()


def _kind(node: NodeView) -> tuple[str, str, str, int]:
    return node.op_type, node.domain, node.overload, node.since_version
