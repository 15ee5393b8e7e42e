"""Groups made by hand, put into the boxes of a scope: what `onnxlab.group` in the metadata of nodes says.

The metadata is the path of the groups made by hand around a node, "backbone/head#2", the innermost last. Groups of one
name carry numbers, which are not displayed. The nodes of one path form a group in the innermost box around all of them.
Where they are all the nodes of a box, that box gets the group's name instead; a path without a name ("#3") dissolves
the box.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from onnxlab.graph.query.group_cycles import circle
from onnxlab.graph.query.hierarchy_levels import Box, Level, members

MARK = "#"
"""Separator between a group's name and its number among groups of that name."""


def shown_name(part: str) -> str:
    """The name of a group without its number."""
    return part.rpartition(MARK)[0] if MARK in part else part


@dataclass(slots=True)
class ByHand:
    """The state of groups made by hand.

    Attributes:
        boxes: boxes by path, without the paths that dissolve a box.
        refused: by the path of a group that would close a cycle, the name of a box on the cycle; "" for a node.
    """

    boxes: dict[str, Box] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def arrange(level: Level, top: Box, paths: Mapping[int, str]) -> ByHand:
    """Put groups made by hand into the boxes of a scope, outer ones first.

    Args:
        level: the nodes of the scope.
        top: the box of the whole scope; changed in place.
        paths: paths of groups made by hand, by the position of a node.
    """
    inside: dict[str, list[int]] = {}
    for place, path in sorted(paths.items()):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            inside.setdefault("/".join(parts[:depth]), []).append(place)
    outcome = ByHand()
    for path in sorted(inside, key=lambda path: path.count("/")):
        _settle(level, top, path, inside[path], outcome)
    return outcome


def _settle(level: Level, top: Box, path: str, places: list[int], outcome: ByHand) -> None:
    chosen, name = set(places), shown_name(path.rpartition("/")[2])
    around: Box | None = None
    box, inner = top, _around(top, chosen)
    while inner is not None:
        around, box, inner = box, inner, _around(inner, chosen)
    if around is not None and _drawn(level, chosen) == _drawn(level, members(box)):
        if name:
            box.name, box.about = name, box.about or box.name
            outcome.boxes[path] = box
        else:
            around.children.remove(box)
            around.children += box.children
            around.nodes = sorted([*around.nodes, *box.nodes])
    elif name:
        if (other := circle(level, box, chosen)) is not None:
            outcome.refused[path] = other
            return
        group = Box(("hand", path), name)
        group.nodes, group.children = _take(box, chosen)
        box.children.append(group)
        outcome.boxes[path] = group


def _around(box: Box, chosen: Collection[int]) -> Box | None:
    """The group directly in a box that holds all chosen nodes."""
    first = next(iter(chosen))
    for child in box.children:
        inside = set(members(child))
        if first in inside:
            return child if inside.issuperset(chosen) else None
    return None


def _drawn(level: Level, nodes: Iterable[int]) -> set[int]:
    """The nodes without those that stand with their readers."""
    return {node for node in nodes if not level.sources[node]}


def _take(box: Box, chosen: set[int]) -> tuple[list[int], list[Box]]:
    """Take nodes out of a box, with the groups that hold nothing else; returns both."""
    nodes = [node for node in box.nodes if node in chosen]
    box.nodes = [node for node in box.nodes if node not in chosen]
    removed: list[Box] = []
    staying: list[Box] = []
    for child in box.children:
        if chosen.issuperset(members(child)):
            removed.append(child)
            continue
        more, inner = _take(child, chosen)
        nodes += more
        removed += inner
        staying += [child] if child.nodes or child.children else []
    box.children = staying
    return sorted(nodes), removed
