"""The nodes of one scope sorted into boxes within boxes: what `hierarchy.py` publishes, without ids.

Nodes are positions in the scope's topological order. A source (a node that reads only weights) stands with its first
reader. A constant (a source that is drawn inside its reader) never counts as a box.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, compress
from typing import Any, Literal

import numpy as np

from onnxlab.graph.index.name_scopes import ROOT, NameScopes
from onnxlab.graph.index.topology import is_acyclic, topological_order
from onnxlab.graph.query.hierarchy_cuts import Spans
from onnxlab.graph.query.wires import Readers

Claims = dict[int, list[int]]
"""Nodes in topological order by the path that they claim; the paths are in the order of their first nodes."""


@dataclass(slots=True, eq=False)
class Box:
    """A group in the making: `key` names it for good, `nodes` and `children` are its direct members.

    Attributes:
        nodes: nodes in topological order; a range where they are consecutive.
        about: the usual term for the box's nodes, "" where the box's name says it.
        units: number of successive, equal or similar units in a stage.
    """

    key: object
    name: str
    nodes: Sequence[int] = field(default_factory=list)
    children: list["Box"] = field(default_factory=list)
    kind: Literal["scope", "unit", "stage", "cut"] = "scope"
    about: str = ""
    units: int = 0


class BoxRow:
    """The boxes of an open level side by side: nodes with the sources that feed them, and inner groups.

    Attributes:
        heads: the first node of each box.
        boxes: the inner groups by place.
        fed: the sources that stand with a box, by the box's place.
    """

    def __init__(self, heads: Sequence[int], boxes: dict[int, Box]) -> None:
        self.heads = heads
        self.boxes = {place: boxes[head] for place, head in enumerate(heads) if head in boxes} if boxes else {}
        self.fed: dict[int, list[int]] = {}

    @cached_property
    def nodes(self) -> list[tuple[int, ...]]:
        """The nodes of each box but inner groups."""
        boxes, fed = self.boxes, self.fed
        return [(*(() if place in boxes else (head,)), *fed.get(place, ())) for place, head in enumerate(self.heads)]

    def between(self, low: int, high: int) -> Sequence[int]:
        """The nodes from one place to before another one, but inner groups, in order."""
        if not (self.boxes or self.fed):
            return self.heads[low:high]
        direct = [self.heads[place] for place in range(low, high) if place not in self.boxes]
        return sorted(chain(direct, *(nodes for place, nodes in self.fed.items() if low <= place < high)))

    def places(self) -> dict[int, int]:
        """The place of each node, those of inner groups included."""
        place_of = {head: place for place, head in enumerate(self.heads) if place not in self.boxes}
        for place, box in self.boxes.items():
            place_of.update(dict.fromkeys(members(box), place))
        for place, nodes in self.fed.items():
            place_of.update(dict.fromkeys(nodes, place))
        return place_of


class Level:
    """The nodes of a scope: their readers, and the path that each belongs to.

    Args:
        readers: positions of the readers of each node.
        sources: whether a node reads nothing but initializers and other sources, by position.
        constants: whether a node is a source without a box of its own, by position.
        paths: the path that each node claims, by position; None where no node claims one.
        certain: whether the paths are claims of the nodes themselves; else only sources move to their readers.
    """

    def __init__(
        self,
        readers: Readers,
        sources: bytearray,
        constants: bytearray,
        paths: list[int] | None,
        names: NameScopes,
        certain: bool = True,
    ) -> None:
        self._readers = readers
        self.sources = sources
        self._has_sources = 1 in sources
        self.constants = constants
        self.paths = paths or []
        self.names = names
        self.certain = certain
        if paths:
            self._adopt()

    @property
    def consumers(self) -> list[list[int]]:
        """Positions of the readers of each node, by position; may repeat."""
        return self._readers.lists

    def build(self) -> Box:
        """Return the top of the scope as a box, with the groups of the name scopes in it."""
        top = Box(ROOT, "")
        if not any(self.paths):
            top.nodes = range(len(self.sources))
        else:
            self._fill(top, ROOT, self._claims(range(len(self.paths))), self._cyclic_paths())
            while not any(not self.constants[node] for node in top.nodes) and len(top.children) == 1:
                only = top.children[0]
                top = Box(ROOT, "", [*top.nodes, *only.nodes], only.children)
        return top

    # -- paths -----------------------------------------------------------------------------------------------

    def _adopt(self) -> None:
        """Move constants, and nodes that claim no path, to where their neighbors are."""
        paths, common, consumers = self.paths, self.names.common, self.consumers
        for node in range(len(paths) - 1, -1, -1):
            if consumers[node] and (self.constants[node] or (paths[node] == ROOT and self._adopts(node))):
                readers = {paths[reader] for reader in consumers[node]}
                path = readers.pop()
                for other in readers:
                    path = common(path, other)
                paths[node] = path

    def _adopts(self, node: int) -> bool:
        return self.certain or bool(self.sources[node])

    def _cyclic_paths(self) -> set[int]:
        """Paths whose boxes depend on each other in a circle."""
        edges: dict[int, dict[int, set[int]]] = {}
        memo: dict[tuple[int, int], tuple[int, int, int]] = {}
        for node, readers in enumerate(self.consumers):
            path = self.paths[node]
            for reader in readers:
                other = self.paths[reader]
                if other == path:
                    continue
                edge = memo.get((path, other))
                if edge is None:
                    edge = memo[path, other] = self._split(path, other)
                level, source, target = edge
                # a node directly in the level is a box of its own, numbered below the paths
                boxes = edges.setdefault(level, {})
                boxes.setdefault(source or ~node, set()).add(target or ~reader)
        for node, readers in enumerate(self.consumers):
            if (boxes_of := edges.get(self.paths[node])) is not None:
                direct = [~reader for reader in readers if self.paths[reader] == self.paths[node]]
                if direct:
                    boxes_of.setdefault(~node, set()).update(direct)
        return {level for level, boxes in edges.items() if not is_acyclic(boxes)}

    def _split(self, left: int, right: int) -> tuple[int, int, int]:
        """(common path, next path towards left, and right); 0 where a side is the common path."""
        parents, depths = self.names.parents, self.names.depths
        below_left = below_right = ROOT
        while left != right:
            if depths[left] >= depths[right]:
                below_left, left = left, parents[left]
            else:
                below_right, right = right, parents[right]
        return left, below_left, below_right

    # -- boxes -----------------------------------------------------------------------------------------------

    def _fill(self, box: Box, path: int, claimed: Claims, cyclic: set[int]) -> Box:
        """Sort nodes, all of them below `path`, into a box and its groups; groups of a single box dissolve."""
        box.nodes = claimed.pop(path, [])
        inner: dict[int, Claims] = {}
        for other, nodes in claimed.items():
            inner.setdefault(self._split(path, other)[2], {})[other] = nodes
        parts = list(inner.items())
        if path in cyclic:
            gathered = {below: sorted(chain.from_iterable(claims.values())) for below, claims in inner.items()}
            parts = [(below, self._claims(nodes)) for below, nodes in self._untangle(box.nodes, gathered)]
        seen: dict[int, int] = {}
        for below, claims in parts:
            seen[below] = number = seen.get(below, 0) + 1
            name = self.names.names[below] + (f" ({number})" if number > 1 else "")
            group = self._fill(Box((box.key, below, number), name), below, claims, cyclic)
            self._place(box, group)
        return box

    def _claims(self, nodes: Iterable[int]) -> Claims:
        claims: Claims = {}
        paths = self.paths
        for node in nodes:
            path = paths[node]
            if path in claims:
                claims[path].append(node)
            else:
                claims[path] = [node]
        return claims

    def _place(self, box: Box, group: Box) -> None:
        """Put a group into a box, or what is in it where it would be a box around a single box."""
        shown = self.count(group)
        if shown > 1:
            box.children.append(group)
            return
        for child in group.children:
            child.name = f"{group.name}/{child.name}"
        box.children.extend(group.children)
        box.nodes = sorted([*box.nodes, *group.nodes])

    def _untangle(self, direct: list[int], inner: dict[int, list[int]]) -> list[tuple[int, list[int]]]:
        """Cut groups into parts that do not depend on each other in a circle.

        Boxes whose producers are all placed are placed whole. Where there is none, the group that waits for the fewest
        boxes is split: its nodes that wait for nothing become a part, and the others wait on.
        """
        box_of = {node: below for below, nodes in inner.items() for node in nodes}
        box_of.update({node: ~node for node in direct})
        waits = dict.fromkeys(box_of, 0)
        outside = dict.fromkeys(box_of.values(), 0)
        members = {**inner, **{~node: [node] for node in direct}}
        for node, box in box_of.items():
            for reader in self.consumers[node]:
                if reader in box_of:
                    waits[reader] += 1
                    outside[box_of[reader]] += box_of[reader] != box
        parts: list[tuple[int, list[int]]] = []
        ready = deque(box for box, count in outside.items() if not count)
        while members:
            if ready:
                box = ready.popleft()
                drained = members.pop(box)
            else:
                box = min(
                    (box for box, nodes in members.items() if any(not waits[node] for node in nodes)),
                    key=lambda box: outside[box],
                    default=0,
                )
                if not box:  # the file itself has a cycle: the rest stays as it is
                    parts.extend((box, nodes) for box, nodes in members.items() if box > 0)
                    break
                drained = self._drain(members[box], dict(waits))
                left = set(drained)
                members[box] = [node for node in members[box] if node not in left]
            for node in drained:
                for reader in self.consumers[node]:
                    if reader in box_of:
                        waits[reader] -= 1
                        other = box_of[reader]
                        if other != box:
                            outside[other] -= 1
                            if not outside[other] and other in members:
                                ready.append(other)
            if box > 0:
                parts.append((box, sorted(drained)))
        return parts

    def _drain(self, nodes: list[int], waits: dict[int, int]) -> list[int]:
        """The nodes of a group that can stand before everything that the group still waits for."""
        inside = set(nodes)
        drained = []
        for node in nodes:  # in topological order
            if not waits[node]:
                drained.append(node)
                for reader in self.consumers[node]:
                    if reader in inside:
                        waits[reader] -= 1
        return drained

    # -- rows ------------------------------------------------------------------------------------------------

    def count(self, box: Box) -> int:
        """Number of boxes that a box shows when it is open."""
        nodes, hidden = box.nodes, 0
        if self._has_sources:
            marks = self.constants
            hidden = sum(marks[nodes.start : nodes.stop] if isinstance(nodes, range) else map(marks.__getitem__, nodes))
        return len(box.children) + len(nodes) - hidden

    def row(self, box: Box) -> BoxRow:
        """The boxes of an open box in topological order, sources with their first reader."""
        sources = self.sources
        loose = set(compress(box.nodes, map(sources.__getitem__, box.nodes))) if self._has_sources else set[int]()
        if loose:
            consumers = self.consumers
            inside = set(members(box))
            loose = {node for node in loose if not inside.isdisjoint(consumers[node])}
        boxes = {min(members(child)): child for child in box.children}
        heads = [node for node in box.nodes if node not in loose] if loose else box.nodes
        if boxes:  # without inner groups, the nodes are in order already
            heads = self._in_order(sorted([*heads, *boxes]), boxes)
        row = BoxRow(heads, boxes)
        place_of = row.places() if loose else {}
        for node in sorted(loose, reverse=True):  # producers of a source are sources too, at lower positions
            first = min(place_of[reader] for reader in consumers[node] if reader in place_of)
            place_of[node] = first
            row.fed.setdefault(first, []).append(node)
        return row

    def _in_order(self, heads: list[int], boxes: dict[int, Box]) -> list[int]:
        place_of = {head: place for place, head in enumerate(heads)}
        for head, box in boxes.items():
            place_of.update(dict.fromkeys(members(box), place_of[head]))
        producers: list[list[int]] = [[] for _ in heads]
        for node, place in place_of.items():
            for reader in self.consumers[node]:
                other = place_of.get(reader, place)
                if other != place:
                    producers[other].append(place)
        return [heads[place] for place in topological_order(range(len(heads)), producers.__getitem__)]

    def spans(self, row: BoxRow) -> Spans:
        """From where to where each node's values live along a row, where they live at all."""
        if isinstance(row.heads, range) and not (row.boxes or row.fed or self._has_sources):
            return self._spans_between(row.heads.start, row.heads.stop)
        place = self._room
        places = self._places(row)
        for nodes, where in places:
            place[nodes] = where
        inside = np.concatenate([nodes for nodes, _ in places])  # each node once, in any order
        defined = place[inside]
        first, count, readers = self._reads
        count = count[inside]
        edges = np.repeat(first[inside] - (np.cumsum(count) - count), count) + np.arange(count.sum())
        read_at = place[readers[edges]]
        last = defined.copy()
        is_read = count > 0
        begins = (np.cumsum(count) - count)[is_read]
        if begins.size:
            last[is_read] = np.maximum(defined[is_read], np.maximum.reduceat(read_at, begins))
        place[inside] = -1
        lives = last > defined
        return defined[lives], last[lives]

    def _spans_between(self, low: int, high: int) -> Spans:
        """The same for the nodes from one to before another: what they read is in one piece."""
        begins, counts, readers = self._readers.columns
        first = begins[low]
        read_at = readers[first : begins[high - 1] + counts[high - 1]] - low
        read_at[read_at >= high - low] = -1
        defined = np.flatnonzero(counts[low:high])
        if not defined.size:
            return defined, defined
        last = np.maximum.reduceat(read_at, begins[low:high][defined] - first)
        lives = last > defined
        return defined[lives], last[lives]

    def _places(self, row: BoxRow) -> list[tuple[np.ndarray[Any, Any], Any]]:
        """The nodes of a row with where they stand along it."""
        heads, where = np.array(row.heads, np.int64), np.arange(len(row.heads))
        if row.boxes:
            is_node = np.ones(len(heads), bool)
            is_node[list(row.boxes)] = False
            heads, where = heads[is_node], where[is_node]
        inside = chain(row.fed.items(), ((place, list(members(box))) for place, box in row.boxes.items()))
        parts: list[tuple[np.ndarray[Any, Any], Any]] = [(heads, where)]
        parts += [(np.array(nodes, np.int64), place) for place, nodes in inside]
        return parts

    @cached_property
    def _room(self) -> np.ndarray[Any, Any]:
        """Room for where each node stands along a row, -1 everywhere between two rows."""
        return np.full(len(self.sources), -1)

    @cached_property
    def _reads(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """By position: where a node's readers begin among all, how many there are (of sources none); all readers."""
        begins, counts, readers = self._readers.columns
        return begins, np.where(np.frombuffer(self.sources, bool), 0, counts), readers


def members(box: Box) -> Iterator[int]:
    """The nodes in a box and in every box inside it."""
    stack = [box]
    while stack:
        yield from (box := stack.pop()).nodes
        stack.extend(box.children)


def inner_first(top: Box) -> list[Box]:
    """All boxes below one, inner ones before those that hold them."""
    for box in (order := [top]):
        order.extend(box.children)
    return order[:0:-1]


def size_of(box: Box) -> int:
    """The number of nodes in a box and in every box inside it."""
    return len(box.nodes) + sum(len(inner.nodes) for inner in inner_first(box))
