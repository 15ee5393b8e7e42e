"""Matches across a node that only one of two models has, or that became another operator."""

from __future__ import annotations

from collections.abc import Iterator

from onnxlab.analysis.diff.growing import Growth
from onnxlab.analysis.diff.vertices import NODE, STORED, Vertices

_MANY = 8
"""The most readers of a value that are looked at one by one."""

_FAR = 4
"""Nodes that are looked at behind a stored value."""


def bridge(vertices: Vertices, growth: Growth) -> int:
    """Go on behind nodes that came, went or changed their operator, on both sides of what is matched; count matches."""
    matches, partner = 0, growth.partner
    for vertex in range(vertices.first):
        other = partner[vertex]
        if other < 0:
            continue
        if vertices.kinds[vertex] == NODE:
            matches += _before(vertices, growth, vertex, other)
        elif vertices.readers[vertex] and vertices.readers[other]:
            matches += _behind(vertices, growth, vertex, other)
    return matches


def follow_stored(vertices: Vertices, growth: Growth) -> int:
    """Go on behind different readers of one stored value, as where MatMul and Add became Gemm; count matches.

    The first nodes with equal operators on the way behind both readers are matched.
    """
    matches, labels = 0, vertices.loose
    for vertex in range(vertices.first):
        other = growth.partner[vertex]
        if other < 0 or vertices.kinds[vertex] != STORED:
            continue
        theirs = {labels[node]: node for node in reversed(_way(vertices, growth, other))}
        pairs = ((node, theirs[labels[node]]) for node in _way(vertices, growth, vertex) if labels[node] in theirs)
        for node, like in pairs:
            matches += growth.force(node, like)
            break
    return matches


def _way(vertices: Vertices, growth: Growth, value: int) -> list[int]:
    """The unmatched nodes behind a value, as long as each is the only reader of what the one before makes."""
    way: list[int] = []
    while len(way) < _FAR and value >= 0 and len(vertices.readers[value]) == 1:
        node = vertices.readers[value][0][0]
        if growth.partner[node] >= 0:
            break
        way.append(node)
        outputs = [output for output in vertices.outputs[node] if output >= 0]
        value = outputs[0] if len(outputs) == 1 else -1
    return way


def _behind(vertices: Vertices, growth: Growth, vertex: int, other: int) -> int:
    """Match readers of a matched pair of values; ambiguous readers stay unmatched. Count matches."""
    partner = growth.partner
    ours = [use for use in vertices.readers[vertex] if partner[use[0]] < 0]
    theirs = [use for use in vertices.readers[other] if partner[use[0]] < 0]
    if not ours or not theirs or len(ours) > _MANY or len(theirs) > _MANY:
        return 0
    for follows in (_is_like, _came, _went, _became):
        pairs = [pair for use in ours for like in theirs if (pair := follows(vertices, growth, use, like))]
        entered = 0
        for node, like in pairs:
            alone = sum(node == entry[0] for entry in pairs) == 1 == sum(like == entry[1] for entry in pairs)
            if alone:
                entered += growth.force(node, like)
        if entered:
            return entered
    return 0


Use = tuple[int, int]


def _is_like(vertices: Vertices, growth: Growth, use: Use, like: Use) -> Use | None:
    """Two readers with the same operator."""
    return (use[0], like[0]) if _equal(vertices, use, like) else None


def _equal(vertices: Vertices, use: Use, like: Use) -> bool:
    return use[1] == like[1] and vertices.loose[use[0]] == vertices.loose[like[0]]


def _came(vertices: Vertices, growth: Growth, use: Use, like: Use) -> Use | None:
    """A node of the second model stands between the value and its reader."""
    behind = [onward for onward in _onward(vertices, like[0]) if _equal(vertices, use, onward)]
    return (use[0], behind[0][0]) if len(behind) == 1 and growth.partner[behind[0][0]] < 0 else None


def _went(vertices: Vertices, growth: Growth, use: Use, like: Use) -> Use | None:
    """A node of the first model stands between the value and its reader."""
    behind = [onward for onward in _onward(vertices, use[0]) if _equal(vertices, onward, like)]
    return (behind[0][0], like[0]) if len(behind) == 1 and growth.partner[behind[0][0]] < 0 else None


def _onward(vertices: Vertices, node: int) -> Iterator[tuple[int, int]]:
    """The readers of the values that a node makes."""
    for value in vertices.outputs[node]:
        if value >= 0:
            yield from vertices.readers[value]


def _became(vertices: Vertices, growth: Growth, use: Use, like: Use) -> Use | None:
    """One node became the other: what they make goes to the same place."""
    (node, slot), (other, other_slot) = use, like
    labels, partner = vertices.loose, growth.partner
    if slot != other_slot or len(vertices.outputs[node]) != len(vertices.outputs[other]):
        return None
    after, its = list(_onward(vertices, node)), list(_onward(vertices, other))
    same = any(
        partner[reader] == counterpart and at == to for reader, at in after[:_MANY] for counterpart, to in its[:_MANY]
    )
    if not same:
        same = {(labels[reader], at) for reader, at in after} == {(labels[reader], at) for reader, at in its}
    return (node, other) if same else None


def _before(vertices: Vertices, growth: Growth, node: int, like: int) -> int:
    """The makers of the inputs of a matched pair of nodes, past one node that came or went."""
    matches = 0
    partner, labels = growth.partner, vertices.loose
    for ours, theirs in zip(vertices.inputs[node], vertices.inputs[like], strict=False):
        if ours < 0 or theirs < 0 or (partner[ours] >= 0 and partner[theirs] >= 0):
            continue
        maker, its = vertices.maker[ours][0], vertices.maker[theirs][0]
        if maker < 0 or its < 0:
            continue
        if labels[maker] == labels[its]:
            matches += growth.force(maker, its)
            continue
        above, beyond = _above(vertices, maker), _above(vertices, its)
        if beyond >= 0 and labels[maker] == labels[beyond]:
            matches += growth.force(maker, beyond)
        elif above >= 0 and labels[above] == labels[its]:
            matches += growth.force(above, its)
    return matches


def _above(vertices: Vertices, node: int) -> int:
    """The node that makes the first input of one, -1 where none does."""
    inputs = vertices.inputs[node]
    return vertices.maker[inputs[0]][0] if inputs and inputs[0] >= 0 else -1
