"""Dependents of a value of the main graph, remembered from edit to edit while no node reads anything else."""

from __future__ import annotations

from collections.abc import Iterable

from onnxlab.execution.base.lru import Lru
from onnxlab.graph.edit.commits import GraphCommit
from onnxlab.graph.edit.model_graph import ModelGraph

_FEW = 8  # sets of values whose dependents are remembered


class Dependents:
    """Walks from values to what is made of them. The graph's lock must be held."""

    def __init__(self, graph: ModelGraph) -> None:
        self._graph = graph
        self._version = graph.version
        self._made: dict[int, tuple[int, ...]] = {}  # {value id: outputs of the nodes that read it}
        self._found: Lru[frozenset[int], frozenset[int]] = Lru("dependents", _FEW)

    def follow(self, commit: GraphCommit) -> None:
        """Keep what is remembered over a commit after which every node reads and makes what it did."""
        touched, main = commit.touched, self._graph.main.id
        wires = touched.nodes or touched.removed_nodes or touched.removed_scopes or touched.functions
        if self._version == commit.version - 1 and not wires and touched.scopes <= {main}:
            self._version = commit.version

    def of(self, values: Iterable[int]) -> frozenset[int]:
        """Ids of the values of the main graph that depend on any of `values`, through bodies too."""
        if self._version != self._graph.version:
            self._version = self._graph.version
            self._made.clear()
            self._found.clear()
        key = frozenset(values)
        dependents = self._found.get(key)
        return self._found.keep(key, frozenset(self._walk(key))) if dependents is None else dependents

    def _walk(self, values: Iterable[int]) -> set[int]:
        dependents = set[int]()
        waiting = [value for value in values if value in self._graph.values]
        while waiting:
            fresh = {*self._read(waiting.pop())} - dependents
            dependents |= fresh
            waiting += fresh
        return dependents

    def _read(self, value: int) -> tuple[int, ...]:
        """Outputs of the nodes that read a value, looked up once."""
        return self._made[value] if value in self._made else self._made.setdefault(value, self._made_of(value))

    def _made_of(self, value: int) -> tuple[int, ...]:
        """Outputs of the nodes of the main graph that read a value, themselves or in their bodies."""
        graph, main = self._graph, self._graph.main.id
        record = graph.values[value]
        readers = [node for node, _ in record.uses]
        readers += [graph.scopes[scope].owner for scope, _ in record.formal_outputs if scope != main]
        outputs: dict[int, None] = {}
        for reader in readers:
            node = graph.nodes.get(reader)
            if node is not None and node.scope != main:
                node = graph.nodes.get(graph.index.owner_in(node, main))
            outputs.update((output, None) for output in (() if node is None else node.outputs) if output)
        return tuple(outputs)
