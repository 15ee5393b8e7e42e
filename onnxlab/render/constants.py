"""Nodes that read nothing but weights, and make what is read: their reader's own business, not drawn."""

from typing import Any

import numpy as np

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.query.wires import Wires

Flags = np.ndarray[Any, np.dtype[np.bool]]


class Constants:
    """The constants of the main graph, and of bodies that are asked for.

    Args:
        wires: those of the main graph.
        none: whether nothing counts as one: in a GE dump, whose inputs and weights are nodes.

    Attributes:
        in_main: whether each node of the main graph is one, by place in topological order.
    """

    def __init__(self, graph: ModelGraph, wires: Wires, none: bool) -> None:
        self._graph = graph
        self._wires = wires
        self._none = none
        self._made: set[int] = set()
        self.in_main: Flags = np.zeros(len(wires.order), bool) if none else self._find()

    def _find(self) -> Flags:
        graph, wires, main = self._graph, self._wires, self._graph.main
        outputs = [value for scope in graph.scopes.values() for value in scope.outputs]
        drawn = {*wires.owners, *wires.made_by(np.array(outputs, np.int64)).tolist()}
        names = [*main.proto.initializer, *(sparse.values for sparse in main.proto.sparse_initializer)]
        stored = np.array([main.names.get(tensor.name, 0) for tensor in names], np.int64)

        def may(place: int) -> bool:
            return place not in drawn and not graph.nodes[int(wires.order[place])].bodies

        made_too = stored[wires.made_by(stored) >= 0].tolist()
        is_fed = wires.fed_by(lambda value: graph.values[value].initializer is not None, may, made_too)
        return np.frombuffer(is_fed, bool)

    def __contains__(self, node: NodeRecord) -> bool:
        """Whether a node of a body is one; producers are asked for before their readers."""
        if self._none:
            return False
        values = self._graph.values
        for value in node.inputs:
            if value and values[value].initializer is None and value not in self._made and not self._is_of_main(value):
                return False
        outputs = [value for value in node.outputs if value]
        if node.bodies or any(values[value].is_output for value in outputs):
            return False
        self._made.update(outputs)
        return True

    def _is_of_main(self, value: int) -> bool:
        """Whether a constant of the main graph makes a value."""
        maker = int(self._wires.made_by(np.array([value], np.int64))[0])
        return maker >= 0 and bool(self.in_main[maker])
