"""Groups in a row that are alike and counted up, "h.1" to "h.11", as one box of a picture."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from operator import itemgetter

from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.query.groups import Group
from onnxlab.graph.query.hierarchy import Hierarchy

LEAST = 3
"""Groups of the shortest repeat."""
_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)")


def repeats_of(
    hierarchy: Hierarchy, folded: Collection[int], looks: Callable[[Group], Hashable]
) -> dict[int, tuple[int, str]]:
    """Map each group of a repeat to its first group and its name: "h.1…11 ×11".

    Args:
        folded: groups that are drawn as boxes.
        looks: a key, equal for groups of equal content; computed only for groups whose names and sizes are alike.
    """
    alike: dict[Hashable, list[tuple[int, Group]]] = {}
    for ident in folded:
        group = hierarchy.groups[ident]
        if match := _NUMBERED.fullmatch(group.name):
            key = group.parent, match[1], match[3], group.size, group.about, group.units
            alike.setdefault(key, []).append((int(match[2]), group))
    result: dict[int, tuple[int, str]] = {}
    for same in alike.values():
        if len(same) >= LEAST:
            for run in _rows(sorted(same, key=itemgetter(0)), looks):
                match = _NUMBERED.fullmatch(run[0][1].name)
                assert match is not None  # each group of a row has a numbered name
                name = f"{match[1]}{run[0][0]}…{run[-1][0]}{match[3]} ×{len(run)}"
                result.update((group.id, (run[0][1].id, name)) for _, group in run)
    return result


def _rows(groups: list[tuple[int, Group]], looks: Callable[[Group], Hashable]) -> list[list[tuple[int, Group]]]:
    """Runs of groups with consecutive numbers and equal content, `LEAST` groups each at least."""
    rows: list[list[tuple[int, Group]]] = [[]]
    before: tuple[int, Hashable] = (-1, None)
    for number, group in groups:
        look = looks(group)
        if (number - 1, look) != before:
            rows.append([])
        rows[-1].append((number, group))
        before = number, look
    return [row for row in rows if len(row) >= LEAST]


def operators_of(
    hierarchy: Hierarchy, inner: Mapping[int, Sequence[int]], nodes: Mapping[int, NodeRecord]
) -> Callable[[Group], Hashable]:
    """A function that counts the operators in a group; `inner`: the groups directly in each."""

    def counted(group: Group) -> Counter[str]:
        count = Counter(nodes[node].op_type for node in group.nodes)
        for child in inner.get(group.id, ()):
            count += counted(hierarchy.groups[child])
        return count

    return lambda group: frozenset(counted(group).items())
