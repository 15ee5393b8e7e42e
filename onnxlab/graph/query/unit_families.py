"""Groups side by side that are called alike but for a number, "up_blocks.0" to "up_blocks.3", as one group."""

import re

from onnxlab.graph.query.circles import circle
from onnxlab.graph.query.hierarchy_levels import Box, Level, members, size_of

MOST_BESIDE = 12
"""Boxes of a level up to which all of them can be seen at once."""
LEAST_MEMBERS, MOST_SHARE = 3, 0.7
"""Groups of a family at least; share of the nodes of a level at most: what nearly all is in tells nothing apart."""
_NUMBERED = re.compile(r"(.*[A-Za-z])[._]?\d+")


def gather_families(level: Level, box: Box) -> None:
    """Put the families among the groups of a level that shows many boxes into groups of their own."""
    if level.count(box) <= MOST_BESIDE:
        return
    families: dict[str, list[Box]] = {}
    for child in box.children:
        if child.kind == "scope" and (match := _NUMBERED.fullmatch(child.name)):
            families.setdefault(match[1], []).append(child)
    most = MOST_SHARE * size_of(box)
    for name, family in families.items():
        if len(family) < LEAST_MEMBERS or sum(map(size_of, family)) > most:
            continue
        if circle(level, box, {node for member in family for node in members(member)}) is None:
            others = [child for child in box.children if child not in family]
            group = Box((box.key, "family", name), name, [], family, units=len(family))
            box.children = [*others, group]
