"""The effects of a commit: facts and operators that are forgotten, and the nodes to infer again."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import Scope, ValueRecord
from onnxlab.graph.state.change_tracker import Touched
from onnxlab.infer.live.declared_conflicts import Conflicts
from onnxlab.infer.rules.fact_frame import FactFrame
from onnxlab.infer.rules.operators import Operator
from onnxlab.infer.walk.walker import Walker


class Invalidation:
    """Forgets what commits make stale, of one walker and its frame of the model."""

    def __init__(self, graph: ModelGraph, walker: Walker, frame: FactFrame, conflicts: Conflicts, prefer: str) -> None:
        self._graph = graph
        self._walker = walker
        self._frame = frame
        self._conflicts = conflicts
        self._prefer = prefer

    def of_commit(self, touched: Touched) -> set[int]:
        """Forget what a commit made stale; return the ids of the nodes to infer."""
        graph, walker, frame = self._graph, self._walker, self._frame
        for vid in touched.removed_values:
            frame.drop(vid)
            walker.sources.forget(vid)
        for node in touched.removed_nodes:
            self._forget_node(node)
        dirty = self.of_declarations(touched.declared) if touched.declared else set()
        for node in touched.nodes:
            self._forget_node(node)
        dirty.update(touched.nodes)
        for scope_id in touched.scopes:
            if owner := graph.scopes[scope_id].owner:
                self._forget_node(owner)
                dirty.add(owner)
        for vid in touched.values:
            walker.sources.forget(vid)
            value = graph.values[vid]
            self._set_source(value)
            for node, _ in value.uses:
                dirty.add(node)
            for node, _ in value.producers:
                dirty.add(node)
        if graph.index.function_ids and self._is_in_functions(touched):
            walker.calls.forget()
            dirty.update(walker.catalogue.call_nodes & graph.nodes.keys())
        return dirty

    def of_declarations(self, values: Iterable[int]) -> set[int]:
        """Forget what was declared of values; return the nodes to infer, which are those that believe declarations."""
        graph, dirty = self._graph, set[int]()
        for vid in values:
            value = graph.values[vid]
            self._walker.sources.forget_declared(value)
            dirty.update(graph.scopes[scope].owner for scope, _ in value.formal_outputs)
            if value.is_input:
                dirty.add(graph.scopes[value.scope].owner)
            dirty.update(node for node, _ in value.producers if self.believes(node))
        dirty.discard(0)
        for node in dirty:
            self._forget_node(node)
        if any(self.is_in_function(graph.scopes[graph.nodes[node].scope]) for node in dirty):
            self._walker.calls.forget()
            dirty.update(self._walker.catalogue.call_nodes & graph.nodes.keys())
        self._conflicts.unchecked.update(values)
        return dirty

    def believes(self, node: int) -> bool:
        """Whether the facts of a node's outputs come from what the model declares: nothing else is known of them."""
        if self._prefer != "inferred":
            return True
        operator = self._walker.catalogue.any_of(self._graph.nodes[node])
        return isinstance(operator, Operator) and not (operator.schema or operator.rule or operator.function)

    def _forget_node(self, node: int) -> None:
        self._walker.catalogue.forget_node(node)
        if self._walker.calls.made:
            self._walker.calls.forget_node(node)
        self._frame.problems.pop(node, None)

    def _set_source(self, value: ValueRecord) -> None:
        """Set the fact of a touched value that no node makes; those inside bodies come with their owner."""
        if value.producers or self._graph.scopes[value.scope].kind in ("subgraph", "function"):
            return
        if value.is_input or value.initializer is not None:
            self._frame.set(value.id, self._walker.sources.fact(value))
        else:
            self._frame.drop(value.id)

    def _is_in_functions(self, touched: Touched) -> bool:
        """Whether an edit touched a part of a function."""
        graph = self._graph
        places = (
            touched.scopes,
            [graph.nodes[node].scope for node in touched.nodes],
            [graph.values[value].scope for value in touched.values],
        )
        return any(self.is_in_function(graph.scopes[scope]) for scope in {*itertools.chain(*places)})

    def is_in_function(self, scope: Scope) -> bool:
        """Whether a scope is a function or inside of one."""
        return bool(self._graph.index.function_ids) and self._graph.root(scope).is_function
