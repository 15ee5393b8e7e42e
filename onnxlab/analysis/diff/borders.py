"""Matches of values by who reads them: what is left where nodes were fused, split or became others."""

from __future__ import annotations

from collections.abc import Mapping

from onnxlab.analysis.diff.growing import Growth
from onnxlab.analysis.diff.vertices import MADE, STORED, Vertices


def borders(vertices: Vertices, growth: Growth) -> None:
    """Match what is left of values by who reads them, and the nodes of other operators that make them."""
    partner = growth.partner
    for _ in range(2):
        for vertex in range(vertices.first):
            if (
                vertices.kinds[vertex] == MADE
                and partner[vertex] < 0
                and (other := _by_readers(vertices, growth, vertex)) >= 0
            ):
                growth.force(vertex, other)
    for ours, theirs in zip(*(side[1] for side in vertices.formals), strict=False):
        if vertices.kinds[ours] == vertices.kinds[theirs] == MADE:
            growth.force(ours, theirs)
    for vertex in range(vertices.first):
        other = partner[vertex]
        if other < 0 or vertices.kinds[vertex] != MADE:
            continue
        (maker, slot), (its, where) = vertices.maker[vertex], vertices.maker[other]
        alone = maker >= 0 and its >= 0 and slot == where and partner[maker] < 0 and partner[its] < 0
        if alone and any(
            ours >= 0 and partner[ours] == theirs
            for ours, theirs in zip(vertices.inputs[maker], vertices.inputs[its], strict=False)
        ):
            growth.force(maker, its)


def settle_fused(vertices: Vertices, growth: Growth, named: Mapping[int, int]) -> None:
    """Match the value of a node that stands for several with that of the last of these.

    A Conv that absorbed the BatchNormalization behind it makes the value that the BatchNormalization made. A node that
    does the same as before makes the same value as before, whatever was removed behind it.

    Args:
        named: by value of either model, the value of the other one with the same name, where names are kept.
    """
    partner = growth.partner
    for vertex in range(len(partner)):
        if vertices.kinds[vertex] != MADE or partner[vertex] >= 0 or vertices.maker[vertex][0] < 0:
            continue
        other = _read_instead(vertices, growth, vertex)
        if other < 0:
            other = named.get(vertex, -1)
        before = partner[other] if other >= 0 else -1
        if before < 0 or vertices.kinds[before] != MADE or _agrees(vertices, growth, before, other):
            continue
        maker, its = vertices.maker[before][0], vertices.maker[other][0]
        changed = maker >= 0 and its >= 0 and not _does_the_same(vertices, growth, maker, its)
        if changed and _is_above(vertices, maker, vertices.maker[vertex][0]):
            partner[before] = -1
            partner[vertex], partner[other] = other, vertex


def _read_instead(vertices: Vertices, growth: Growth, vertex: int) -> int:
    """The value that the partners of all readers of a value read in its place, matched or not; -1 for several."""
    candidate = -1
    for node, slot in vertices.readers[vertex]:
        like = growth.partner[node]
        if like < 0 or slot >= len(vertices.inputs[like]):
            return -1
        value = vertices.inputs[like][slot]
        if value < 0 or candidate not in (-1, value):
            return -1
        candidate = value
    if candidate < 0:
        ours, theirs = (side[1] for side in vertices.formals)
        for side, other in ((ours, theirs), (theirs, ours)):
            if vertex in side and len(ours) == len(theirs):
                return other[side.index(vertex)]
    return candidate


def _agrees(vertices: Vertices, growth: Growth, vertex: int, other: int) -> bool:
    """Whether a reader of a value is the partner of a reader of its partner."""
    uses = set(vertices.readers[other])
    return any((growth.partner[node], slot) in uses for node, slot in vertices.readers[vertex])


def _does_the_same(vertices: Vertices, growth: Growth, node: int, other: int) -> bool:
    """Whether two nodes have one operator and read equal stored values."""
    if vertices.loose[node] != vertices.loose[other] or len(vertices.inputs[node]) != len(vertices.inputs[other]):
        return False
    for ours, theirs in zip(vertices.inputs[node], vertices.inputs[other], strict=True):
        if (ours < 0) != (theirs < 0):
            return False
        is_stored = ours >= 0 and STORED in (vertices.kinds[ours], vertices.kinds[theirs])
        if is_stored and vertices.strict[ours] != vertices.strict[theirs]:
            return False
    return True


def _is_above(vertices: Vertices, above: int, node: int, steps: int = 8) -> bool:
    """Whether a node is reached from another one upwards, within some steps."""
    around = {node}
    for _ in range(steps):
        if above in around:
            return True
        around = {
            vertices.maker[value][0] for reached in around for value in vertices.inputs[reached] if value >= 0
        } - {-1}
        if not around or len(around) > 64:
            return False
    return False


def _by_readers(vertices: Vertices, growth: Growth, vertex: int) -> int:
    """The value that the partners of all readers of a value read in its place, -1 where they disagree."""
    candidate = -1
    for node, slot in vertices.readers[vertex]:
        like = growth.partner[node]
        if like < 0 or slot >= len(vertices.inputs[like]):
            continue
        value = vertices.inputs[like][slot]
        if value < 0 or growth.partner[value] >= 0 or vertices.kinds[value] != MADE or candidate not in (-1, value):
            return -1
        candidate = value
    return candidate
