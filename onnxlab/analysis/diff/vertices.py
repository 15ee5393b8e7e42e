"""The nodes and values of a scope of each model as one set of numbered vertices, with the wires between them.

Vertices of the first model come first. A value that a Constant makes is stored like an initializer: two models that
differ in nothing else have equal vertices. Constant nodes themselves are no vertices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onnxlab.analysis.diff import contents
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import Scope

Numbers = np.ndarray[Any, np.dtype[np.uint64]]
Places = np.ndarray[Any, np.dtype[Any]]
"""Positions in arrays, or a mask of them."""

NODE, STORED, MADE, INPUT, OUTER = range(5)
"""Kinds of vertices: a node, and values by where they come from."""

_CAPTURE = 1 << 20
"""The slot of values that bodies capture."""

_NO_MAKER = (-1, 0)
_NO_WIRES: list[int] = []

_RETURNED = 5
"""The label of values that the scope returns."""


class Vertices:
    """Vertices of a pair of scopes.

    Attributes:
        ids: of the node or value in its model.
        kinds: NODE, STORED and so on.
        strict: what each is, with attributes and elements; 0 for values that nodes make.
        loose: the operator alone, the type alone.
        inputs, outputs: of a node, the vertices by slot, -1 for absent ones.
        maker: of a value, (node, slot) or (-1, 0).
        readers: of a value, (node, slot) of each reader in this scope.
        first: how many belong to the first model.
        index: by side, {id: vertex}.
    """

    def __init__(self, graphs: tuple[ModelGraph, ModelGraph], scopes: tuple[Scope, Scope]) -> None:
        self.ids: list[int] = []
        self.kinds: list[int] = []
        self.strict: list[int] = []
        self.loose: list[int] = []
        self.inputs: list[list[int]] = []
        self.outputs: list[list[int]] = []
        self.maker: list[tuple[int, int]] = []
        self.readers: list[list[tuple[int, int]]] = []
        self.index: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self._edges: list[tuple[int, int, int]] = []
        self._stored: dict[int, tuple[int, int]] = {}
        self._enter(graphs[0], scopes[0], self.index[0])
        self.first = len(self.ids)
        self._enter(graphs[1], scopes[1], self.index[1])
        self.formals = [
            [[index[vid] for vid in formals if vid in index] for formals in (scope.inputs, scope.outputs)]
            for index, scope in zip(self.index, scopes, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.ids)

    def edges(self) -> tuple[Places, Places, Numbers]:
        """(from, to, label) of every wire: value to reader, node to what it makes."""
        table = np.array(self._edges, np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2].astype(np.uint64)

    def _enter(self, graph: ModelGraph, scope: Scope, index: dict[int, int]) -> None:
        nodes, edges, inputs, outputs = graph.nodes, self._edges, self.inputs, self.outputs
        readers, maker, values = self.readers, self.maker, graph.values
        entry = self._value_entry(graph, scope, index)
        for vid in scope.inputs:
            entry(vid)
        for ident in scope.node_ids:
            node = nodes[ident]
            proto = node.proto
            stores = node.outputs[0] if proto.op_type == "Constant" and len(node.outputs) == 1 else 0
            if stores and contents.constant_of(graph, values[stores]) is not None:
                entry(stores)
                continue
            me = index[ident] = self._add(ident, NODE, contents.behavior(graph, node), contents.operator(node))
            reads = inputs[me] = []
            makes = outputs[me] = []
            for slot, vid in enumerate(node.inputs):
                if not vid:
                    reads.append(-1)
                    continue
                at = index.get(vid, -1)
                if at < 0:
                    at = entry(vid)
                reads.append(at)
                edges.append((at, me, slot))
                readers[at].append((me, slot))
            for slot, vid in enumerate(node.outputs):
                if not vid:
                    makes.append(-1)
                    continue
                at = index.get(vid, -1)
                if at < 0:
                    at = index[vid] = self._add(vid, MADE, 0, 1)
                makes.append(at)
                edges.append((me, at, slot))
                maker[at] = (me, slot)
            if node.bodies:
                edges += [(entry(vid), me, _CAPTURE) for vid in dict.fromkeys(graph.index.captures(node))]
        self._enter_rest(graph, scope, entry)

    def _enter_rest(self, graph: ModelGraph, scope: Scope, entry: Callable[[int], int]) -> None:
        """Enter the values that no node reads: stored ones and outputs."""
        for vid in scope.names.values():
            if graph.values[vid].initializer is not None:
                entry(vid)
        for vid in scope.outputs:
            at = entry(vid) if vid else -1
            if at >= 0 and not self.strict[at]:
                self.strict[at] = _RETURNED

    def _value_entry(self, graph: ModelGraph, scope: Scope, index: dict[int, int]) -> Callable[[int], int]:
        values, inputs = graph.values, set(scope.inputs)

        def entry(vid: int) -> int:
            at = index.get(vid, -1)
            if at >= 0:
                return at
            record = values[vid]
            strict, loose, kind = 0, 1, MADE
            if record.scope != scope.id:
                strict, loose, kind = 3, 3, OUTER
            elif (stored := contents.constant_of(graph, record)) is not None:
                (strict, loose), kind = contents.content(graph, stored), STORED
            elif vid in inputs:
                strict, loose, kind = 2, 2, INPUT
            at = index[vid] = self._add(vid, kind, strict, loose)
            return at

        return entry

    def _add(self, ident: int, kind: int, strict: int, loose: int) -> int:
        at = len(self.ids)
        self.ids.append(ident)
        self.kinds.append(kind)
        self.strict.append(strict)
        self.loose.append(loose)
        self.inputs.append(_NO_WIRES)
        self.outputs.append(_NO_WIRES)
        self.maker.append(_NO_MAKER)
        self.readers.append([])
        return at
