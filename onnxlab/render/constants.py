"""Nodes that read nothing but weights, and make what is read: their reader's own business, not drawn."""

from typing import Any

import numpy as np

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.query.wires import Wires

Flags = np.ndarray[Any, np.dtype[np.bool]]


class Constants:
    """The constants of a graph, and of the bodies in it that are asked about.

    Args:
        scope: the graph.
        wires: the wires of the graph's nodes.
        weights: ids of the graph's inputs that are constant where the graph is called.
        none: whether no node counts as a constant, as in a GE dump, whose inputs and weights are nodes.

    Attributes:
        in_scope: whether each node of the graph is a constant, by place in topological order.
    """

    def __init__(
        self, graph: ModelGraph, scope: Scope, wires: Wires, weights: frozenset[int] = frozenset(), none: bool = False
    ) -> None:
        self._graph = graph
        self._scope = scope
        self._wires = wires
        self._weights = weights
        self._none = none
        self._made: set[int] = set()
        self.in_scope: Flags = np.zeros(len(wires.order), bool) if none else self._find()

    def _find(self) -> Flags:
        graph, wires, scope = self._graph, self._wires, self._scope
        outputs = [value for other in graph.scopes.values() for value in other.outputs]
        drawn = {*wires.owners, *wires.made_by(np.array(outputs, np.int64)).tolist()}
        names = [] if scope.is_function else [
            *scope.proto.initializer, *(sparse.values for sparse in scope.proto.sparse_initializer)
        ]  # fmt: skip
        stored = np.array([scope.names.get(tensor.name, 0) for tensor in names], np.int64)

        def may(place: int) -> bool:
            return place not in drawn and not graph.nodes[int(wires.order[place])].bodies

        made_too = stored[wires.made_by(stored) >= 0].tolist()
        is_fed = wires.fed_by(self._is_stored, may, made_too)
        return np.frombuffer(is_fed, bool)

    def _is_stored(self, value: int) -> bool:
        return self._graph.values[value].initializer is not None or value in self._weights

    def is_constant(self, value: int) -> bool:
        """Whether a value of the graph is stored, passed to the graph as a weight, or made by a constant node."""
        return self._is_stored(value) or self._is_of_scope(value)

    def __contains__(self, node: NodeRecord) -> bool:
        """Whether a node of a body is a constant; producers have to be asked about before their readers."""
        if self._none:
            return False
        values = self._graph.values
        for value in node.inputs:
            if value and not self._is_stored(value) and value not in self._made and not self._is_of_scope(value):
                return False
        outputs = [value for value in node.outputs if value]
        if node.bodies or any(values[value].is_output for value in outputs):
            return False
        self._made.update(outputs)
        return True

    def _is_of_scope(self, value: int) -> bool:
        """Whether a constant node of the graph makes a value."""
        maker = int(self._wires.made_by(np.array([value], np.int64))[0])
        return maker >= 0 and bool(self.in_scope[maker])
