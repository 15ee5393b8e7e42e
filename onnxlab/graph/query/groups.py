"""Groups of nodes; one that an edit leaves mostly as it was keeps its id, whatever node it begins with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

GroupKind = Literal["scope", "unit", "stage", "cut"]


@dataclass(frozen=True, slots=True)
class Group:
    """A group; `nodes` are its direct members, `size` counts those of inner groups too.

    Attributes:
        about: the usual term for the group's nodes, "residual block"; "" where the group's name says it.
        units: number of successive units in a stage; 0 for other groups.
    """

    id: int
    parent: int
    name: str
    kind: GroupKind
    scope: int
    nodes: tuple[int, ...]
    size: int
    about: str = ""
    units: int = 0


def lasting_ids(before: Mapping[int, Group], after: Mapping[int, Group]) -> dict[int, int]:
    """Former ids by the new ones of groups that share more than half of their nodes, and are of one kind.

    Args:
        before: groups by id, inner ones before those that hold them.
        after: those of today.
    """
    gone, fresh = before.keys() - after.keys(), after.keys() - before.keys()
    if not gone or not fresh:
        return {}
    former, today = _nodes_of(before), _nodes_of(after)
    around: dict[int, list[int]] = {}
    for ident in gone:
        for node in former[ident]:
            around.setdefault(node, []).append(ident)
    renames: dict[int, int] = {}
    for ident in (ident for ident in after if ident in fresh):
        shared: dict[int, int] = {}
        for node in today[ident]:
            for other in around.get(node, ()):
                shared[other] = shared.get(other, 0) + 1
        for other, count in shared.items():
            is_same = 2 * count > len(today[ident]) + len(former[other]) - count
            if is_same and before[other].kind == after[ident].kind and other not in renames.values():
                renames[ident] = other
                break
    return renames


def _nodes_of(groups: Mapping[int, Group]) -> dict[int, set[int]]:
    nodes: dict[int, set[int]] = {}
    for ident, group in groups.items():
        inside = nodes.setdefault(ident, set())
        inside.update(group.nodes)
        if group.parent:
            nodes.setdefault(group.parent, set()).update(inside)
    return nodes
