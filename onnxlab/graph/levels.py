"""The nodes of one scope sorted into boxes within boxes: what `hierarchy.py` publishes, without ids.

Nodes are positions in the scope's topological order. A source (a node that reads only weights) stands with
what reads it; a constant (a source that is drawn in its reader) never counts as
a box of its own: it stands with the nodes that read it.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from onnxlab.graph.cuts import Span
from onnxlab.graph.name_scopes import ROOT, NameScopes
from onnxlab.graph.topology import topological_order


@dataclass(slots=True, eq=False)
class Box:
    """A group in the making: `key` names it for good, `nodes` and `children` are its direct members."""

    key: object
    name: str
    nodes: list[int] = field(default_factory=list)
    children: list["Box"] = field(default_factory=list)
    kind: Literal["scope", "cut"] = "scope"


@dataclass(slots=True, eq=False)
class Piece:
    """One box of an open level: a node with the sources that feed it, or an inner group."""

    head: int
    nodes: list[int]
    boxes: list[Box]


class Level:
    """The nodes of a scope: who reads whom and which path each belongs to.

    Args:
        consumers: positions of the readers of each node, by position; may repeat.
        sources: whether a node reads nothing but initializers and other sources, by position.
        constants: whether it is a source without a box of its own, by position.
        paths: the path that each node claims, by position.
    """

    def __init__(
        self,
        consumers: Sequence[Sequence[int]],
        sources: Sequence[bool],
        constants: Sequence[bool],
        paths: list[int],
        names: NameScopes,
    ) -> None:
        self.consumers = consumers
        self.sources = sources
        self.constants = constants
        self.paths = paths
        self.names = names
        if any(paths):
            self._adopt()

    def build(self) -> Box:
        """Return the top of the scope as a box, with the groups of the name scopes in it."""
        top = Box(ROOT, "", list(range(len(self.paths))))
        if any(self.paths):
            cyclic = self._cyclic_paths()
            top = self._fill(top, ROOT, cyclic)
            while not any(not self.constants[node] for node in top.nodes) and len(top.children) == 1:
                only = top.children[0]
                top = Box(ROOT, "", [*top.nodes, *only.nodes], only.children)
        return top

    # -- paths -----------------------------------------------------------------------------------------------

    def _adopt(self) -> None:
        """Move constants, and nodes that claim no path, to where their neighbours are."""
        paths, common = self.paths, self.names.common
        for node in range(len(paths) - 1, -1, -1):
            if self.consumers[node] and (self.constants[node] or paths[node] == ROOT):
                readers = {paths[reader] for reader in self.consumers[node]}
                path = readers.pop()
                for other in readers:
                    path = common(path, other)
                paths[node] = path

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
                found = memo.get((path, other))
                if found is None:
                    found = memo[path, other] = self._split(path, other)
                level, source, target = found
                # a node that stands directly in the level is a box of its own, numbered below the paths
                boxes = edges.setdefault(level, {})
                boxes.setdefault(source or ~node, set()).add(target or ~reader)
        for node, readers in enumerate(self.consumers):
            if (boxes_of := edges.get(self.paths[node])) is not None:
                direct = [~reader for reader in readers if self.paths[reader] == self.paths[node]]
                if direct:
                    boxes_of.setdefault(~node, set()).update(direct)
        return {level for level, boxes in edges.items() if not _is_acyclic(boxes)}

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

    def _fill(self, box: Box, path: int, cyclic: set[int]) -> Box:
        """Sort the nodes of a box, all below `path`, into groups; groups of a single box dissolve."""
        direct: list[int] = []
        inner: dict[int, list[int]] = {}
        lists = {path: direct}  # by path, however deep: the list that its nodes go to
        for node in box.nodes:
            claimed = self.paths[node]
            nodes = lists.get(claimed)
            if nodes is None:
                nodes = lists[claimed] = inner.setdefault(self._split(path, claimed)[2], [])
            nodes.append(node)
        box.nodes = direct
        parts = list(inner.items())
        if path in cyclic:
            parts = self._untangle(direct, inner)
        seen: dict[int, int] = {}
        for below, nodes in parts:
            seen[below] = number = seen.get(below, 0) + 1
            name = self.names.names[below] + (f" ({number})" if number > 1 else "")
            group = self._fill(Box((box.key, below, number), name, nodes), below, cyclic)
            self._place(box, group)
        return box

    def _place(self, box: Box, group: Box) -> None:
        """Put a group into a box, or what is in it where it would be a box around a single box."""
        shown = self.count(group)
        if shown > 1:
            box.children.append(group)
            return
        for child in group.children:
            child.name = f"{group.name}/{child.name}"
        box.children.extend(group.children)
        box.nodes.extend(group.nodes)
        box.nodes.sort()

    def _untangle(self, direct: list[int], inner: dict[int, list[int]]) -> list[tuple[int, list[int]]]:
        """Cut groups into parts that do not depend on each other in a circle.

        Boxes whose inputs are all there are taken whole. When none is, the group that waits for the fewest
        gives up what it can: those nodes become a part, and the rest goes on waiting.
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
                taken = members.pop(box)
            else:
                box = min(
                    (box for box, nodes in members.items() if any(not waits[node] for node in nodes)),
                    key=lambda box: outside[box],
                    default=0,
                )
                if not box:  # the file itself has a cycle: leave the rest as it is
                    parts.extend((box, nodes) for box, nodes in members.items() if box > 0)
                    break
                taken = self._drain(members[box], dict(waits))
                left = set(taken)
                members[box] = [node for node in members[box] if node not in left]
            for node in taken:
                for reader in self.consumers[node]:
                    if reader in box_of:
                        waits[reader] -= 1
                        other = box_of[reader]
                        if other != box:
                            outside[other] -= 1
                            if not outside[other] and other in members:
                                ready.append(other)
            if box > 0:
                parts.append((box, sorted(taken)))
        return parts

    def _drain(self, nodes: list[int], waits: dict[int, int]) -> list[int]:
        """The nodes of a group that can stand before everything that the group still waits for."""
        inside = set(nodes)
        taken = []
        for node in nodes:  # in topological order
            if not waits[node]:
                taken.append(node)
                for reader in self.consumers[node]:
                    if reader in inside:
                        waits[reader] -= 1
        return taken

    # -- rows ------------------------------------------------------------------------------------------------

    def count(self, box: Box) -> int:
        """Number of boxes that a box shows when it is open."""
        return len(box.children) + sum(not self.constants[node] for node in box.nodes)

    def row(self, box: Box) -> list[Piece]:
        """The boxes of an open box in topological order, sources with their first reader."""
        pieces = [Piece(min(members(child)), [], [child]) for child in box.children]
        inside = set(members(box))
        sources, consumers = self.sources, self.consumers
        loose = {node for node in box.nodes if sources[node] and not inside.isdisjoint(consumers[node])}
        pieces += [Piece(node, [node], []) for node in box.nodes if node not in loose]
        pieces.sort(key=lambda piece: piece.head)
        if box.children:  # nodes alone are in order already
            pieces = self._in_order(pieces)
        piece_of = _piece_of(pieces)
        for node in sorted(loose, reverse=True):  # what a source reads are sources too, further to the front
            first = min(piece_of[reader] for reader in self.consumers[node] if reader in piece_of)
            piece_of[node] = first
            pieces[first].nodes.append(node)
        return pieces

    def _in_order(self, pieces: list[Piece]) -> list[Piece]:
        piece_of = _piece_of(pieces)
        producers: list[list[int]] = [[] for _ in pieces]
        for node, number in piece_of.items():
            for reader in self.consumers[node]:
                other = piece_of.get(reader, number)
                if other != number:
                    producers[other].append(number)
        return [pieces[number] for number in topological_order(range(len(pieces)), producers.__getitem__)]

    def spans(self, pieces: Sequence[Piece]) -> Iterator[Span]:
        """From where to where each node's values live along a row."""
        piece_of = _piece_of(pieces)
        for node, made in piece_of.items():
            if not self.sources[node]:
                yield made, max([piece_of.get(reader, made) for reader in self.consumers[node]], default=made)


def members(box: Box) -> Iterator[int]:
    """The nodes in a box and in every box inside it."""
    stack = [box]
    while stack:
        box = stack.pop()
        yield from box.nodes
        stack.extend(box.children)


def _piece_of(pieces: Sequence[Piece]) -> dict[int, int]:
    found: dict[int, int] = {}
    for number, piece in enumerate(pieces):
        for node in piece.nodes:
            found[node] = number
        for box in piece.boxes:
            found.update(dict.fromkeys(members(box), number))
    return found


def _is_acyclic(edges: dict[int, set[int]]) -> bool:
    boxes: set[int] = set(edges).union(*edges.values())
    waits = dict.fromkeys(boxes, 0)
    for targets in edges.values():
        for target in targets:
            waits[target] += 1
    ready = [box for box, count in waits.items() if not count]
    done = 0
    empty: Iterable[int] = ()
    while ready:
        done += 1
        for target in edges.get(ready.pop(), empty):
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    return done == len(boxes)
