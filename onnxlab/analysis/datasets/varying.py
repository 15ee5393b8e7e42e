"""The choice of values that are worth counting over samples, and their channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnxlab.analysis.compare.sides import graph_reads, made_values
from onnxlab.errors import NameLookupError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.ops import find_traits
from onnxlab.shapes import Fact

_AXIS = 1


def varying_values(graph: ModelGraph) -> list[str]:
    """Names of what nodes of the main graph make of inputs, or at random, in an order in which they can be made."""
    values = graph.values
    varying = {vid for vid in graph.main.inputs if values[vid].initializer is None}
    for vid in made_values(graph):
        producer = values[vid].producer
        node = graph.nodes[producer[0]] if producer else None
        if node is None or not graph_reads(graph, node.id).isdisjoint(varying) or _is_random(node.domain, node.op_type):
            varying.add(vid)
    return [values[vid].name for vid in made_values(graph) if vid in varying]


def _is_random(domain: str, op_type: str) -> bool:
    return find_traits(domain, op_type).random


def channels_of(graph: ModelGraph, fact: Callable[[int], Fact], names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The axis and number of channels of values.

    Raises:
        NameLookupError: a value has no axis 1 of known size.
    """
    channels = {}
    for name in names:
        shape = fact(graph.resolve_value(name)).shape
        size = shape[_AXIS] if shape is not None and len(shape) > _AXIS else None
        if not isinstance(size, int):
            raise NameLookupError(f"{name!r} has no axis {_AXIS} of known size: its channels cannot be counted")
        channels[name] = _AXIS, size
    return channels
