"""Circles that a group of nodes would close among the boxes of a level."""

from collections.abc import Mapping

from onnxlab.graph.index.topology import is_acyclic
from onnxlab.graph.query.hierarchy_levels import Box, Level, members


def circle(level: Level, box: Box, chosen: set[int]) -> str | None:
    """The name of a box with which a group of chosen nodes would depend on itself; None where there is none."""
    group = -1
    boxes = dict(enumerate(box.children, start=len(level.sources)))
    unit_of = {node: node for node in box.nodes}
    for number, child in boxes.items():
        unit_of.update(dict.fromkeys(members(child), number))
    unit_of.update(dict.fromkeys(chosen, group))
    readers: dict[int, set[int]] = {}
    makers: dict[int, set[int]] = {}
    for node, unit in unit_of.items():
        for reader in level.consumers[node]:
            other = unit_of.get(reader, unit)
            if other != unit:
                readers.setdefault(unit, set()).add(other)
                makers.setdefault(other, set()).add(unit)
    if is_acyclic(readers):
        return None
    both = _reached(readers, group) & _reached(makers, group)
    return next((boxes[unit].name for unit in sorted(both) if unit in boxes), "")


def _reached(steps: Mapping[int, set[int]], start: int) -> set[int]:
    reached: set[int] = set()
    stack = [start]
    while stack:
        for unit in steps.get(stack.pop(), ()):
            if unit not in reached:
                reached.add(unit)
                stack.append(unit)
    return reached
