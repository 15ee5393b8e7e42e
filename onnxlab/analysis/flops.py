"""Floating-point operations (FLOPs) of a node: of one call by its arrays, of every node by facts alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.snapshot import SnapshotAttributes
from onnxlab.ops import traits_of
from onnxlab.shapes import Dim, Expr, Fact, replace_symbols
from onnxlab.shapes.expressions import Atom

_NONE: Mapping[str, Any] = {}
FREE = 1
"""The size that counts for an unknown dim, so that the numbers are those of one image, one sentence, one token."""


def flops(op: str, inputs: Sequence[Any], outputs: Sequence[Any], attributes: Mapping[str, Any] = _NONE) -> int:
    """Floating-point operations of one call, by operator ("com.microsoft::Gelu") and real arrays; 0 for moving data.

    Args:
        attributes: of the node, which tell how much a pooling, a tree ensemble or a support vector machine computes.
    """
    count = traits_of(op).flops
    arrays = [value for value in outputs if isinstance(value, np.ndarray)]
    if not count or not arrays:
        return 0
    if callable(count):
        try:
            return int(count(attributes, inputs, arrays))
        except (LookupError, TypeError, AttributeError, ValueError, OverflowError):  # the node lacks what it must have
            count = 1
    return int(count * max(arrays[0].size, inputs[0].size if _is_array(inputs) else 0))


def _is_array(inputs: Sequence[Any]) -> bool:
    return bool(inputs) and isinstance(inputs[0], np.ndarray)


def flops_by_node(graph: ModelGraph, fact: Callable[[int], Fact]) -> Mapping[int, int]:
    """{node id: operations} as `flops` counts them, for the nodes that have any, bodies and functions included.

    A node of a body or function counts once, however often it runs; a call of a function counts nothing itself.

    Args:
        fact: what inference knows of a value id. Nodes with values of unknown rank are left out.
    """
    known: dict[Fact, Any] = {}
    sizes: dict[Atom, Dim] = {}

    def stand_in(value: int) -> Any:
        if not value:
            return None
        value_fact = fact(value)
        if value_fact not in known:
            known[value_fact] = _array(value_fact, sizes)
        return known[value_fact]

    counted = {}
    for ident, node in graph.nodes.items():
        if node.bodies:
            continue
        name = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        inputs, outputs = ([stand_in(value) for value in side] for side in (node.inputs, node.outputs))
        count = flops(name, inputs, outputs, SnapshotAttributes(node))
        if count:
            counted[ident] = count
    return counted


def _array(fact: Fact, sizes: dict[Atom, Dim]) -> "np.ndarray[Any, Any] | None":
    """An array of the shape of a fact that takes no memory."""
    if fact.shape is None:
        return None
    try:
        return np.broadcast_to(np.zeros((), np.bool_), tuple([_size(dim, sizes) for dim in fact.shape]))
    except (ValueError, OverflowError):  # more dims, or larger ones, than NumPy has
        return None


def _size(dim: Dim, sizes: dict[Atom, Dim]) -> int:
    """A dim with FREE for each symbol; `sizes` are those of the atoms met so far."""
    if not isinstance(dim, Expr):
        return dim
    size = replace_symbols(dim, lambda _: FREE, sizes)
    return max(0, size) if isinstance(size, int) else FREE
