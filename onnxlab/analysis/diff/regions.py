"""Regions of nodes of one model that others of the other model stand for: "these five became that one"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onnxlab.analysis.diff.matching import GraphMatching
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.constants import is_constant


@dataclass(frozen=True, slots=True)
class ChangedRegion:
    """Nodes of the first model and what computes the same values in the second one.

    Attributes:
        before, after: ids of the nodes in their models, in file order; `after` is empty where only constants are left.
        text: both sides by their operators, with the first name of each.
        values: pairs of ids of the values that both sides make.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    values: tuple[tuple[int, int], ...]
    text: str


def regions(a: ModelGraph, b: ModelGraph, matching: GraphMatching) -> list[ChangedRegion]:
    """Regions whose sides have different numbers of nodes, larger first.

    A region begins with nodes without partners that are connected by values without partners. The pair of nodes that
    makes the same value as the region joins it.
    """
    inverse = {other: a_id for a_id, other in matching.nodes.items()}
    back = {other: a_id for a_id, other in matching.values.items()}
    parts = _Parts()
    _join(parts, a, 0, matching.nodes, matching.values)
    _join(parts, b, 1, inverse, back)
    for a_id, other in matching.values.items():
        producer, its = a.values[a_id].producer, b.values[other].producer
        if producer is None or its is None or matching.nodes.get(producer[0]) == its[0]:
            continue
        ours, theirs = (0, producer[0]), (1, its[0])
        parts.join(ours, theirs)
        for side, ident, pairs in ((0, producer[0], matching.nodes), (1, its[0], inverse)):
            if ident in pairs:
                parts.join((side, ident), (1 - side, pairs[ident]))
    result = [region for members in parts.all() if (region := _region(a, b, matching, members)) is not None]
    return sorted(result, key=lambda region: (-len(region.before), region.before))


class _Parts:
    """Disjoint sets of (side, node id)."""

    def __init__(self) -> None:
        self._above: dict[tuple[int, int], tuple[int, int]] = {}

    def _top(self, item: tuple[int, int]) -> tuple[int, int]:
        above = self._above
        above.setdefault(item, item)
        while above[item] != item:
            above[item] = above[above[item]]
            item = above[item]
        return item

    def join(self, item: tuple[int, int], other: tuple[int, int]) -> None:
        """Put two items into one set."""
        self._above[self._top(item)] = self._top(other)

    def all(self) -> Iterable[list[tuple[int, int]]]:
        """The sets."""
        sets: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for item in self._above:
            sets.setdefault(self._top(item), []).append(item)
        return sets.values()


def _join(parts: _Parts, graph: ModelGraph, side: int, nodes: Mapping[int, int], values: Mapping[int, int]) -> None:
    """Join makers and readers of values without partners, where either has none."""
    for vid, value in graph.values.items():
        if vid in values or not value.producers:
            continue
        maker = value.producers[0][0]
        if is_constant(graph.nodes[maker]):
            continue
        for reader, _ in value.uses:
            if graph.nodes[reader].scope == value.scope and (maker not in nodes or reader not in nodes):
                parts.join((side, maker), (side, reader))


def _region(
    a: ModelGraph, b: ModelGraph, matching: GraphMatching, members: list[tuple[int, int]]
) -> ChangedRegion | None:
    before = sorted((ident for side, ident in members if not side), key=lambda ident: a.nodes[ident].label)
    after = sorted((ident for side, ident in members if side), key=lambda ident: b.nodes[ident].label)
    if not before or not after or len(before) == len(after) == 1:
        return None
    inside = set(after)
    outputs = [vid for ident in before for vid in a.nodes[ident].outputs if vid in matching.values]
    shared = []
    for vid in outputs:
        maker = b.values[matching.values[vid]].producer
        if maker is not None and maker[0] in inside:
            shared.append((vid, matching.values[vid]))
    if not shared:
        return None
    return ChangedRegion(tuple(before), tuple(after), tuple(shared), f"{_words(a, before)} became {_words(b, after)}")


def _words(graph: ModelGraph, nodes: list[int]) -> str:
    """'Conv, BatchNormalization (at /stem/conv)'."""
    operators = [graph.nodes[ident].op_type for ident in nodes]
    listed = ", ".join(operators[:6]) + (f" and {len(operators) - 6} more" if len(operators) > 6 else "")
    return f"{listed} (at {graph.label(graph.nodes[nodes[0]])})"
