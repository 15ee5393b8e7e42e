"""Values of a side that may fail on the way: what can be made all the same, and where it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnxlab.analysis.compare.sides import RunSide
from onnxlab.errors import FeedError, LimitError, NameLookupError, RunError, RunStopped
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.query.cones import descendants

_FAILURES = 8
"""Nodes that may fail one after the other before the remaining values are given up."""


class Failed(dict[str, str]):
    """By name, why a value was not made."""


def collected(side: RunSide, feeds: Mapping[str, Any], names: Sequence[str]) -> tuple[dict[str, Any], Failed]:
    """The values that a side can make, and why it cannot make the others.

    A node that fails is left out with all that depends on it, and the rest is made in another run.

    Raises:
        LimitError, MemoryError: the values do not fit into memory together.
        FeedError, RunStopped: as of a run.
    """
    failed, left = Failed(), list(names)
    for _ in range(_FAILURES):
        try:
            return side.values(feeds, left), failed
        except (FeedError, LimitError, RunStopped):
            raise
        except RunError as problem:
            gone = _downstream(side.graph, problem.node)
            lost = [name for name in left if gone is None or _maker(side.graph, name) in gone]
            if not lost:
                raise
            failed.update(dict.fromkeys(lost, str(problem).splitlines()[0]))
            left = [name for name in left if name not in failed]
    return {}, Failed({**failed, **dict.fromkeys(left, "not run, since too many nodes failed")})


def _downstream(graph: ModelGraph, label: str | None) -> set[int] | None:
    """A node with all that depends on it; None where the failing node is not known."""
    try:
        node = graph.resolve_node(label) if label else 0
    except NameLookupError:
        return None
    while node and graph.nodes[node].scope != graph.main.id:
        node = graph.scopes[graph.nodes[node].scope].owner or 0
    return {node, *descendants(graph, [node])} if node else None


def _maker(graph: ModelGraph, name: str) -> int:
    producer = graph.values[graph.main.names[name]].producer
    return producer[0] if producer else 0
