"""Live inference: facts beside the graph that follow every commit.

`Inference(graph)` infers everything once. After a commit, `follow` puts the touched nodes on a heap ordered by rank,
infers them from the facts of their inputs alone, and goes on to their readers only where a fact changed: hence
facts can retract, and an edit costs what it reaches. Nothing is ever written into the protos, and nothing raises:
what cannot be inferred is UNKNOWN, and a diagnostic says why.
"""

from __future__ import annotations

import heapq
import itertools
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import onnx

from onnxlab import schemas
from onnxlab.errors import Diagnostic
from onnxlab.garbage_collection import no_collection
from onnxlab.graph.edit.commits import GraphCommit
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.state.change_tracker import Touched
from onnxlab.infer.facts.fact_join import join
from onnxlab.infer.facts.policy import DEFAULT_POLICY, Policy
from onnxlab.infer.facts.type_protos import type_of_fact
from onnxlab.infer.live.declared_conflicts import Conflicts
from onnxlab.infer.live.invalidation import Invalidation
from onnxlab.infer.live.new_errors import Refusals
from onnxlab.infer.questions.dim_explanation import Explainer, Explanation
from onnxlab.infer.questions.what_if import Sized, with_dims
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.walk.walker import Walker
from onnxlab.shapes import UNKNOWN, Fact

Changes = dict[int, tuple[Fact, Fact]]

_MAX_VISITS = 3
"""How often one node is inferred for one commit: more than once only in a file whose edges form a cycle."""


class Inference:
    """Facts of every value of a graph, kept up to date by `follow`."""

    def __init__(self, graph: ModelGraph, policy: Policy = DEFAULT_POLICY) -> None:
        self._graph = graph
        self._policy = policy
        self._edits: dict[int, list[str]] = {}
        self._changes = 0
        # of a foreseen edit: the version that it will make, the facts before it, and the changes
        self._foreseen: tuple[int, dict[int, Fact], Changes] | None = None
        with graph.lock:
            self._start()
            self._refusals = Refusals(graph)
            self._refusals.look(self._walker, self._frames())

    @property
    def facts(self) -> Mapping[int, Fact]:
        """{value id: fact}, live and read-only. Values inside functions have what is true of all their calls."""
        self._notice_operators()
        return self._view

    def state(self) -> object:
        """A token that differs wherever a fact does."""
        return self._changes

    @property
    def evaluated(self) -> int:
        """The number of nodes of the model's graphs inferred so far: the cost of an edit, as a count."""
        return self._frame.evaluated

    def all_facts(self) -> Iterator[tuple[int, Fact]]:
        """The facts of all values, by id: those inside functions once for each call that differs."""
        return itertools.chain.from_iterable(frame.facts.items() for frame in self._frames())

    def fact(self, value: int) -> Fact:
        """The fact of a value id; UNKNOWN for a value that nothing is known of."""
        self._notice_operators()
        return self._frame.facts.get(value, UNKNOWN)

    @property
    def policy(self) -> Policy:
        """The policy about declared and inferred facts; setting it infers everything again.

        Raises:
            TypeError: what is set is no Policy.
        """
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"a policy is a Policy, such as Policy(prefer='refine'); given {policy!r}")
        with self._graph.lock:
            self._policy = policy
            self._start()

    def declaration(self, value: int) -> onnx.ValueInfoProto:
        """The ValueInfoProto that declares what is known of a value."""
        info = onnx.ValueInfoProto(name=self._graph.values[value].name)
        fact = self.fact(value)
        if fact is not UNKNOWN:
            info.type.CopyFrom(type_of_fact(fact))
        return info

    def explain(self, value: int, axis: int | None = None) -> Explanation:
        """Explain why a value's dim (all of them where `axis` is None) is what it is: the way back to its sources.

        Raises:
            NameLookupError: the value has no such axis.
        """
        with self._graph.lock:
            return Explainer(self._graph, self._walker, self._frame, self._edits).explain(value, axis)

    def with_dims(self, dims: Mapping[str, int]) -> Sized:
        """All shapes, and the memory of each value, with numbers for symbols of the inputs; see `what_if.with_dims`."""
        return with_dims(self._graph, self._policy, dims)

    @property
    def first_error(self) -> Diagnostic | None:
        """The first node, in topological order, that refuses since the last commit what it took before."""
        return self._refusals.first

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Every problem, by node: refused inputs, unknown operators, unreadable tensors; then conflicts of types."""
        self._notice_operators()
        with self._graph.lock:
            if self._graph.is_ge_dump:  # what the nodes of a dump say is not checked
                return []
            known = ChainMap(self._walker.overruled, self._frame.facts)
            return list(dict.fromkeys([*self.problems, *self._conflicts.diagnostics(known)]))

    @property
    def output_conflicts(self) -> list[Diagnostic]:
        """Outputs of the model whose declared types contradict what is inferred: a few of `diagnostics`."""
        with self._graph.lock:
            return self._conflicts.of_outputs(ChainMap(self._walker.overruled, self._frame.facts))

    @property
    def problems(self) -> list[Diagnostic]:
        """The diagnostics but for conflicts of types."""
        with self._graph.lock:
            diagnostics = itertools.chain.from_iterable(map(self._walker.diagnostics, self._frames()))
            return list(dict.fromkeys([*diagnostics, *self._walker.sources.problems.values()]))

    def _notice_operators(self) -> None:
        """Infer again from scratch where custom operators came or went since."""
        if self._generation != schemas.registry.generation:
            with self._graph.lock:
                self._start()

    def _frames(self) -> list[FactFrame]:
        """The frame of the model, and that of each call that it makes."""
        calls = self._walker.calls.alive(self._frame) if self._graph.index.function_ids else {}
        return [self._frame, *(call.frame for call in calls.values())]

    def onnx_agrees(self, conflict: Diagnostic) -> bool:
        """Whether onnx too finds that a declared type is wrong, where a diagnostic says that; see `Walker`."""
        scope = self._graph.scopes.get(conflict.scope)
        return (
            scope is None
            or self._invalidation.is_in_function(scope)
            or self._walker.onnx_agrees(self._frame, conflict.value)
        )

    def believes(self, node: int) -> bool:
        """Whether the facts of a node's outputs come from what the model declares: nothing else is known of them."""
        return self._invalidation.believes(node)

    # -- from scratch -----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._generation = schemas.registry.generation
        self._changes += 1
        with no_collection():
            self._infer_all()

    def _infer_all(self) -> None:
        self._walker = Walker(self._graph, self._policy)
        self._walker.catalogue.identify_read()
        self._frame = FactFrame()
        self._view = MappingProxyType(self._frame.facts)
        self._conflicts = Conflicts(self._graph, self._walker.sources)
        self._invalidation = Invalidation(self._graph, self._walker, self._frame, self._conflicts, self._policy.prefer)
        for scope in self._roots():
            self._walk_root(scope)
        self._publish_functions()
        self._conflicts.unchecked.update(self._graph.values)

    def _roots(self) -> list[Scope]:
        scopes = self._graph.scopes.values()
        return [self._graph.main, *(scope for scope in scopes if scope.kind == "training")]

    def _walk_root(self, scope: Scope) -> None:
        for vid in scope.inputs:
            self._frame.set(vid, self._walker.sources.fact(self._graph.values[vid]))
        self._walker.walk_scope(self._frame, scope)

    def _publish_functions(self) -> None:
        """Give values inside functions the join of what their calls found."""
        self._walker.calls.changed = False
        alive = self._walker.calls.alive(self._frame).values()
        joined: dict[int, Fact] = {}
        for call in alive:
            for vid, fact in call.frame.facts.items():
                joined[vid] = join(joined[vid], fact, vid, self._walker.token) if vid in joined else fact
        for scope in self._graph.index.function_ids:
            for vid in self._values_in(self._graph.scopes[scope]):
                fact = joined.get(vid, UNKNOWN)
                if fact is UNKNOWN:
                    self._frame.drop(vid)
                else:
                    self._frame.set(vid, fact)

    def _values_in(self, scope: Scope) -> Iterable[int]:
        yield from scope.names.values()
        for node in scope.node_ids:
            for bodies in self._graph.nodes[node].bodies.values():
                for body in bodies:
                    yield from self._values_in(self._graph.scopes[body])

    # -- after a commit ---------------------------------------------------------------------------------------------

    def follow(self, commit: GraphCommit) -> Changes:
        """Bring the facts up to date; return {value id: (old, new)} for those that changed, gone values left out.

        The changes are in topological order: what follows from a changed value comes after it.

        `follow` never raises: where the incremental update fails, everything is inferred from scratch.
        """
        with self._graph.lock:
            self._note(commit)
            foreseen, self._foreseen = self._foreseen, None
            try:
                if commit.touched.described:
                    return {}
                if foreseen is None or (commit.version, commit.kind) != (foreseen[0], "edit"):
                    return self._advance(commit.touched, {})
                declared = commit.touched.declared
                if not (declared and self._invalidation.of_declarations(declared)):
                    return foreseen[2]
                return self._advance(_only_declared(declared), foreseen[1])
            finally:
                if self._frame.problems or self._refusals.known or self._graph.index.function_ids:
                    self._refusals.look(self._walker, self._frames())

    def foresee(self, touched: Touched) -> Changes:
        """Bring the facts up to date for an edit that is about to be committed: `follow` goes on from there.

        Until its commit, the edit may still change declarations of values, and nothing else.
        """
        with self._graph.lock:
            before: dict[int, Fact] = {}
            changed = self._advance(touched, before)
            self._foreseen = (self._graph.version + 1, before, changed)
            return changed

    def forget_foreseen(self) -> None:
        """Infer from scratch where an edit was foreseen: it was taken back."""
        with self._graph.lock:
            if self._foreseen is not None:
                self._foreseen = None
                self._start()

    def _advance(self, touched: Touched, before: dict[int, Fact]) -> Changes:
        """Bring the facts up to date; `before` has the old facts of what changed earlier in the edit, and gets more.

        The changes returned are those of the whole edit, in topological order.
        """
        old = self._frame.facts
        self._frame.changed = before
        self._walker.begins = True
        try:
            if touched.opsets or touched.functions or self._generation != schemas.registry.generation:
                return self._restart(old, before)
            self._update(touched)
        except Exception:  # a defect in onnxlab must not stop an edit, and a fresh start repairs the facts
            return self._restart(old, before)
        finally:
            self._frame.changed = None
        self._changes += bool(before)
        return self._delta(before, self._frame.facts)

    def _note(self, commit: GraphCommit) -> None:
        """Keep which edits made each node and value what it is, for `explain`; an edit undone made nothing."""
        for ident in itertools.chain(commit.touched.nodes, commit.touched.values):
            if commit.kind != "undo":
                self._edits.setdefault(ident, []).append(commit.label)
            elif labels := self._edits.get(ident):
                labels.pop()

    def _restart(self, old: Mapping[int, Fact], before: dict[int, Fact] | None = None) -> Changes:
        before = {} if before is None else before
        known = {**old, **before}
        self._start()
        facts = self._frame.facts
        candidates = {vid: known.get(vid, UNKNOWN) for vid in {*known, *facts}}
        before.clear()
        before.update((vid, candidates[vid]) for vid in self._in_order(candidates))
        return self._delta(before, facts)

    def _in_order(self, values: Iterable[int]) -> list[int]:
        """Values as they follow from each other: those that no node makes, then the others by their nodes' order."""
        places: dict[int, tuple[int, int]] = {}
        for number, scope in enumerate(self._graph.scopes.values()):
            ranks = {node: rank for rank, node in enumerate(self._graph.index.topological(scope))}
            for vid in scope.names.values():
                producers = self._graph.values[vid].producers
                places[vid] = (number, ranks.get(producers[0][0], 0) + 1) if producers else (-1, 0)
        return sorted(values, key=lambda vid: places.get(vid, (-1, 0)))

    def _delta(self, before: Mapping[int, Fact], facts: Mapping[int, Fact]) -> Changes:
        return {
            vid: (old, new)
            for vid, old in before.items()
            if vid in self._graph.values and (new := facts.get(vid, UNKNOWN)) is not old
        }

    def _update(self, touched: Touched) -> None:
        dirty = self._invalidation.of_commit(touched)
        propagate(self._graph, self._walker, self._frame, dirty)
        if self._walker.calls.changed:
            self._publish_functions()
        conflicts = self._conflicts  # texts of earlier ones may have old names of unknown dims
        conflicts.unchecked.update(self._frame.changed or (), touched.values, self._walker.overruled, conflicts.found)


def _only_declared(values: frozenset[int]) -> Touched:
    """The rest of a commit whose facts were foreseen."""
    none: frozenset[int] = frozenset()
    return Touched(none, none, none, none, none, none, False, False, False, False, values)


def propagate(graph: ModelGraph, walker: Walker, frame: FactFrame, dirty: Iterable[int]) -> None:
    """Infer dirty nodes in topological order, and the readers of every value whose fact changes."""
    nodes, values, scopes = graph.nodes, graph.values, graph.scopes
    heap: list[tuple[int, int, int]] = []
    waiting: set[int] = set()
    visits: dict[int, int] = {}

    def push(node_id: int) -> None:
        node = nodes[node_id]
        scope = scopes[node.scope]
        if scope.owner or scope.is_function:
            if (top := _top(graph, node)) is None:
                return
            node, scope = top, scopes[top.scope]
        if node.id not in waiting and visits.get(node.id, 0) < _MAX_VISITS:
            waiting.add(node.id)
            rank = graph.index.rank(node) if scope.backward else node.label
            heapq.heappush(heap, (node.scope, rank, node.id))

    for node_id in dirty:
        push(node_id)
    while heap:
        node = nodes[heapq.heappop(heap)[2]]
        waiting.discard(node.id)
        visits[node.id] = visits.get(node.id, 0) + 1
        for vid in walker.infer_node(frame, node):
            for reader, _ in values[vid].uses:
                push(reader)


def _top(graph: ModelGraph, node: NodeRecord) -> NodeRecord | None:
    """The node of a root scope that is `node` or holds it; None for a node inside a function."""
    scope = graph.scopes[node.scope]
    while scope.owner:
        node = graph.nodes[scope.owner]
        scope = graph.scopes[node.scope]
    return None if scope.is_function else node
