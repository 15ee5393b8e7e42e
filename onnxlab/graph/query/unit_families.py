"""Groups side by side that are called alike but for a number, "up_blocks.0" to "up_blocks.3", as one group."""

import re
from collections.abc import Container

from onnxlab.graph.query.group_cycles import circle
from onnxlab.graph.query.hierarchy_levels import Box, Level, members, size_of

MOST_BESIDE = 12
"""Boxes of a level up to which all of them can be seen at once."""
LEAST_MEMBERS, MOST_SHARE = 3, 0.7
"""Least number of groups in a family, and its largest share of a level's nodes: a family of nearly all is of no use."""
_NUMBERED = re.compile(r"(.*[A-Za-z])[._]?\d+")


def gather_families(level: Level, box: Box, known: Container[object]) -> None:
    """Put the families among the groups of a level that shows many boxes into groups of their own.

    Args:
        known: keys of the earlier boxes: a family remains when an edit leaves fewer boxes beside it.
    """
    is_wide = level.count(box) > MOST_BESIDE
    families: dict[str, list[Box]] = {}
    for child in box.children:
        if child.kind == "scope" and (match := _NUMBERED.fullmatch(child.name)):
            families.setdefault(match[1], []).append(child)
    most = MOST_SHARE * size_of(box)
    for name, family in families.items():
        key = (box.key, "family", name)
        if len(family) < LEAST_MEMBERS or sum(map(size_of, family)) > most or not (is_wide or key in known):
            continue
        if circle(level, box, {node for member in family for node in members(member)}) is None:
            others = [child for child in box.children if child not in family]
            group = Box(key, name, [], family, units=len(family))
            box.children = [*others, group]
