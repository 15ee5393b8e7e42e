"""Steps, partitions and programs of earlier snapshots: after an edit only what it touched is compiled and judged again.

An edit of attributes or of the data of initializers mostly leaves the provider of every node as it was. A
`CachedPartition` holds what a partition was made from. A later snapshot takes the partition over where nodes, names and
facts are the same, changed initializers have the same shape and dtype as before, and each provider, asked by its method
`still`, would claim the changed nodes as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from onnxlab.execution.base.lru import Lru
from onnxlab.execution.base.provider import PartitionView, Step
from onnxlab.execution.planning.carry import Carried, SnapshotDiff, carry
from onnxlab.execution.planning.inlining import Flattened
from onnxlab.execution.planning.partition import Partition, partition
from onnxlab.execution.planning.scope_names import ScopeNames, SnapshotReader
from onnxlab.graph.edit.snapshot import NodeView, Snapshot

T = TypeVar("T")
_KEPT = 4  # partitions remembered per graph; each holds the constants of its snapshot


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
    """A scope with its calls inlined: its nodes, and the answers to views' questions so far."""

    nodes: Flattened
    constants: MemoDict[Any]
    facts: MemoDict[Any]

    def view(self, scope: ScopeNames, nodes: tuple[NodeView, ...], visible: frozenset[str]) -> PartitionView:
        """The view of nodes whose calls are inlined."""
        constant, fact = self.constants.__getitem__, self.facts.__getitem__
        return PartitionView(nodes, visible, scope.scope.opsets, constant, scope.reads, fact, scope=scope, written=self)


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

    def partition(
        self,
        scope: ScopeNames,
        feeds: Sequence[str],
        outputs: Sequence[str],
        make: Callable[[Sequence[str], Sequence[str]], PartitionView],
    ) -> tuple[PartitionView, Partition]:
        """The view of a run that keeps nothing, which `make` makes, and the provider of each of its nodes."""
        result = self.carried(scope, feeds, outputs)
        if result is None:
            view = make(feeds, outputs)
            result = view, partition(view, scope.compiler.providers)
            self._keep(scope, feeds, outputs, result, {})
        return result

    def carried(
        self, scope: ScopeNames, feeds: Sequence[str], outputs: Sequence[str]
    ) -> tuple[PartitionView, Partition] | None:
        """The view and partition of an earlier snapshot where they still hold, else None."""
        before = self._partitions.get(_key(scope, feeds, outputs)) if _is_main(scope) else None
        result = None if before is None else carry(before, scope)
        if before is not None and result is not None:
            self._keep(scope, feeds, outputs, result, before.readers)
        return result

    def _keep(
        self, scope: ScopeNames, feeds: Sequence[str], outputs: Sequence[str],
        result: tuple[PartitionView, Partition], readers: dict[str, list[int]],
    ) -> None:  # fmt: skip
        compiler = scope.compiler
        if _is_main(scope) and result[0].written is not None and not compiler.stored:
            cached = CachedPartition.of(compiler, *result, readers)
            self._partitions.keep(_key(scope, feeds, outputs), cached)


def _is_main(scope: ScopeNames) -> bool:
    return scope.scope is scope.compiler.snapshot.main


def _key(scope: ScopeNames, feeds: Sequence[str], outputs: Sequence[str]) -> Any:
    return tuple(feeds), tuple(outputs), scope.compiler.providers


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
    constants: dict[str, Any]
    facts: dict[str, Any]
    nodes: tuple[NodeView, ...]
    visible: frozenset[str]
    refusals: dict[int, str]
    notes: dict[Any, Any]
    parts: Partition
    readers: dict[str, list[int]]

    @staticmethod
    def of(
        compiler: SnapshotReader, view: PartitionView, parts: Partition, readers: dict[str, list[int]]
    ) -> CachedPartition:
        """The cached form of a view whose calls are inlined."""
        written = view.written
        return CachedPartition(
            compiler.snapshot,
            compiler.facts,
            written.nodes.of(None),
            dict(written.constants),
            dict(written.facts),
            view.nodes,
            view.visible,
            dict(view.refusals),
            dict(view.notes),
            parts,
            readers,
        )

    def after(self, diff: SnapshotDiff, scope: ScopeNames) -> tuple[PartitionView, Partition] | None:
        """The same for a later snapshot."""
        others = self._other_nodes(diff)
        if others is None:
            return None
        written = self.written.of(scope)
        fact = written.fact
        same = self.state is not None and self.state == scope.compiler.facts
        if not (same or all(fact(name) is known or fact(name) == known for name, known in self.facts.items())):
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
        ids = set(diff.tensors)
        if not ids:
            return set()
        names = scope.initializers_of(ids)
        return None if len(names) < len(ids) else (names | self.written.repeating(names)) & self.constants.keys()


def _kind(node: NodeView) -> tuple[str, str, str, int]:
    return node.op_type, node.domain, node.overload, node.since_version
