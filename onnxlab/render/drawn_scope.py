"""The graph that a picture is of: the main graph, or the function that it does nothing but call."""

from dataclasses import dataclass

import numpy as np

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.query.wires import Wires
from onnxlab.render.constants import Constants

_DEEPEST = 16
"""Functions within functions that are entered."""


@dataclass(frozen=True, slots=True)
class DrawnScope:
    """A graph with what is known of all its nodes.

    Attributes:
        weights: ids of the graph's inputs that are weights where the graph is called.
        wires: the wires of its nodes.
        constants: the nodes that get no boxes.
    """

    scope: Scope
    weights: frozenset[int]
    wires: Wires
    constants: Constants


def drawn_scope(graph: ModelGraph) -> DrawnScope:
    """Return the outermost graph that is more than one call of a function: one box for a whole model shows nothing."""
    drawn = _looked_at(graph, graph.main, frozenset())
    for _ in range(_DEEPEST if graph.index.functions else 0):
        call = _only_call(graph, drawn)
        if call is None:
            break
        function = graph.scopes[graph.index.functions[function_key(call.proto)]]
        handed = zip(function.inputs, call.inputs, strict=False)
        drawn = _looked_at(graph, function, frozenset(formal for formal, value in handed if _is_weight(drawn, value)))
    return drawn


def _looked_at(graph: ModelGraph, scope: Scope, weights: frozenset[int]) -> DrawnScope:
    wires = Wires(graph.index, scope)
    return DrawnScope(scope, weights, wires, Constants(graph, scope, wires, weights, graph.is_ge_dump))


def _only_call(graph: ModelGraph, drawn: DrawnScope) -> NodeRecord | None:
    """The one node with a box, where it calls a function."""
    places = np.flatnonzero(~drawn.constants.in_scope)
    node = graph.nodes[int(drawn.wires.order[places[0]])] if len(places) == 1 else None
    return node if node is not None and function_key(node.proto) in graph.index.functions else None


def _is_weight(drawn: DrawnScope, value: int) -> bool:
    return bool(value) and drawn.constants.is_constant(value)
