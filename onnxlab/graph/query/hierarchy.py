"""Groups of nodes that fold to one box each, so that at most about 300 boxes stand side by side anywhere.

Groups come from name scopes (see `name_scopes.py`); a level that still holds too many boxes is cut where
few values are live (`hierarchy_cuts.py`). The functions and bodies of a model are scopes of their own, each with its
groups. Within any level the boxes form no cycle: a scope that is left and entered again becomes several
groups, "attn" and "attn (2)".

A Hierarchy keeps the ids of its groups while the model is edited. It is derived from names and connections
alone.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from onnxlab.garbage_collection import AGED, PATIENCE, no_collection
from onnxlab.graph.index.name_scopes import NameScopes
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.query.hierarchy_cuts import cut
from onnxlab.graph.query.hierarchy_levels import Box, Level, size_of
from onnxlab.graph.query.parameter_scopes import parameter_paths
from onnxlab.graph.query.units import UnitFinder

LIMIT = 300
"""Most boxes that a level shows side by side in the widget."""

SMALL_MODEL, SMALL_EDIT = 2000, 50
"""Models of more nodes are not sorted anew after an edit that adds and removes no more than so many."""

GroupKind = Literal["scope", "unit", "stage", "cut"]


class Connections(Protocol):
    """The members of a model that are read here: a ModelGraph or its Index has them."""

    nodes: dict[int, NodeRecord]
    values: dict[int, ValueRecord]
    scopes: dict[int, Scope]

    def topological(self, scope: Scope) -> list[int]:
        """The ids of a scope's nodes in topological order."""

    def owner_in(self, node: NodeRecord, scope_id: int) -> int:
        """The id of the node of a scope in whose bodies `node` is, its own where it is there itself."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group; `nodes` are its direct members, `size` counts those of inner groups too.

    Attributes:
        about: what it is in the words of the field, "residual block"; "" where its name says it.
        units: of a stage, how many units follow one another in it; else 0.
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


class Hierarchy:
    """The groups of a model.

    Args:
        limit: most boxes that a level shows side by side.

    Attributes:
        groups: by id, inner groups before those that hold them.
        group_of: id of the innermost group around each node, by node id; 0 at the top of its scope.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit_of_level = limit
        self.groups: dict[int, Group] = {}
        self.group_of: dict[int, int] = {}
        self._names = NameScopes()
        self._ids: dict[object, int] = {}
        self._starts: dict[object, set[int]] = {}
        self._claims: dict[int, int] = {}
        self._top: dict[int, int] = {}
        self._former: dict[int, int] = {}

    @no_collection(most=PATIENCE * AGED)
    def refresh(self, graph: Connections) -> bool:
        """Bring the groups up to date; tell whether anything is different. Linear in nodes and edges."""
        groups: list[Group] = []
        group_of: dict[int, int] = {}
        self._claims.clear()
        self._top.clear()
        for scope in graph.scopes.values():
            order = graph.topological(scope)
            records = list(map(graph.nodes.__getitem__, order))
            claims = self._names.paths(records)
            self._claims.update(zip(order, claims, strict=True))
            level = _level(graph, scope, order, list(claims), self._names)
            top = level.build()
            UnitFinder(level, records, graph.nodes, graph.values).group(top)
            self._limit(level, top, records, scope.id)
            self._publish(top, order, scope.id, groups, group_of)
        found = {group.id: group for group in reversed(groups)}
        changed = found != self.groups or group_of != self.group_of
        self.groups, self.group_of = found, group_of
        self._former.clear()
        return changed

    def follow(self, graph: Connections, nodes: Collection[int], removed: Collection[int]) -> bool:
        """Bring the groups up to date after an edit of `nodes` (added or changed) and `removed` ones.

        In a big model a small edit leaves the groups as they are: what is new stands with its neighbors, what comes
        back by undo where it was, and time does not hang on the size of the model. Lines between groups may then run
        in a circle, which the next `refresh` undoes.
        """
        fresh = [node for node in nodes if node not in self.group_of]
        small = len(self.group_of) > SMALL_MODEL and len(fresh) + len(removed) <= SMALL_EDIT
        small = small and self._top.keys() == graph.scopes.keys()
        if not small or any(self.is_stale(graph.nodes[node]) for node in nodes if node in self.group_of):
            return self.refresh(graph)
        gone: dict[int, set[int]] = {}
        for node in removed:
            if node in self.group_of:
                self._former[node] = group = self.group_of.pop(node)
                gone.setdefault(group, set()).add(node)
                self._claims.pop(node, None)
        come: dict[int, list[int]] = {}
        for node in fresh:
            home = self._former.get(node, 0)
            home = home if home in self.groups else self._home(graph, graph.nodes[node])
            self.group_of[node] = home
            self._claims[node] = self._names.path(graph.nodes[node])
            come.setdefault(home, []).append(node)
            self._top[graph.nodes[node].scope] += not home
        for group in gone.keys() | come.keys():
            self._resize(group, gone.get(group, set()), come.get(group, []))
        return bool(gone or come)

    def _home(self, graph: Connections, node: NodeRecord) -> int:
        """The innermost group around all neighbors of a node that are in its scope."""
        values = graph.values
        makers = [values[value].producer for value in node.inputs if value]
        around = [maker[0] for maker in makers if maker]
        around += [use for value in node.outputs if value for use, _ in values[value].uses]
        homes = [
            self.group_of[other]
            for other in around
            if graph.nodes[other].scope == node.scope and other in self.group_of
        ]
        paths = [self._above(home) for home in homes]
        common = [level[0] for level in zip(*paths, strict=False) if len(set(level)) == 1]
        return common[-1] if common else 0

    def _above(self, group: int) -> list[int]:
        """The groups from the outermost one to this one."""
        path = []
        while group:
            path.append(group)
            group = self.groups[group].parent
        return path[::-1]

    def _resize(self, group: int, gone: set[int], come: list[int]) -> None:
        """Take nodes out of a group and put others in; a group that holds nothing any more goes."""
        by = len(come) - len(gone)
        if not group:
            return
        found = self.groups[group]
        nodes = tuple(node for node in found.nodes if node not in gone) + tuple(come)
        self.groups[group] = replace(found, nodes=nodes, size=found.size + by)
        for outer in self._above(found.parent):
            self.groups[outer] = replace(self.groups[outer], size=self.groups[outer].size + by)
        for empty in [ident for ident in reversed(self._above(group)) if not self.groups[ident].size]:
            del self.groups[empty]

    def width(self, scope: int) -> int:
        """Number of boxes at the top of a scope, constants included."""
        groups = sum(group.scope == scope and not group.parent for group in self.groups.values())
        return groups + self._top.get(scope, 0)

    def is_stale(self, node: NodeRecord) -> bool:
        """Whether a node was renamed into another scope since the last refresh."""
        return self._claims.get(node.id) != self._names.path(node)

    def path(self, group: int) -> str:
        """Names from the outermost group to this one, "encoder/layer.5"."""
        parts = []
        while group:
            parts.append(self.groups[group].name)
            group = self.groups[group].parent
        return "/".join(reversed(parts))

    def _limit(self, level: Level, top: Box, order: list[NodeRecord], scope: int) -> None:
        """Cut every level that shows too many boxes, from the top down."""
        stack = [top]
        while stack:
            box = stack.pop()
            if level.count(box) > self._limit_of_level:
                self._cut(level, box, order, scope)
            stack.extend(box.children)

    def _cut(self, level: Level, box: Box, order: list[NodeRecord], scope: int) -> None:
        row = level.row(box)
        heads = row.heads
        starts = self._starts.setdefault((scope, box.key), set())
        former = [place for place, head in enumerate(heads) if order[head].id in starts] if starts else []
        bounds = cut(len(heads), level.spans(row), former, len(starts), self._limit_of_level)
        starts.clear()
        if len(bounds) < 2:  # a box and the sources that stand with it stay together, however many these are
            return
        starts.update(order[heads[bound]].id for bound in bounds)
        box.nodes, box.children = [], []
        for low, high in zip(bounds, [*bounds[1:], len(heads)], strict=True):
            first, last = order[heads[low]], order[heads[high - 1]]
            name = f"{first.name or first.op_type} … {last.name or last.op_type}"
            part = Box((box.key, "cut", first.id), name, kind="cut")
            part.nodes = row.between(low, high)
            if row.boxes:
                part.children = [row.boxes[place] for place in range(low, high) if place in row.boxes]
            box.children.append(part)

    def _publish(self, top: Box, order: list[int], scope: int, groups: list[Group], group_of: dict[int, int]) -> None:
        """Give the boxes of a scope their ids; a group comes before the groups in it."""
        group_of.update((order[node], 0) for node in top.nodes)
        self._top[scope] = len(top.nodes)
        row = [(child, 0) for child in top.children]
        for box, parent in row:
            gid = self._ids.setdefault((scope, box.key), len(self._ids) + 1)
            nodes = tuple(map(order.__getitem__, box.nodes))
            size = size_of(box)
            groups.append(Group(gid, parent, box.name, box.kind, scope, nodes, size, box.about, box.units))
            group_of.update(dict.fromkeys(nodes, gid))
            row.extend((child, gid) for child in box.children)


def _level(graph: Connections, scope: Scope, order: list[int], claims: list[int], names: NameScopes) -> Level:
    """The nodes of a scope by position in `order`; a body's reads of outer values count as its owner's."""
    nodes, values = graph.nodes, graph.values
    makers = _makers(nodes, order)
    consumers = _consumers(graph, scope, order, makers)
    sources = [False] * len(order)
    constants = [False] * len(order)
    for number, node_id in enumerate(order):
        node = nodes[node_id]
        if consumers[number] and not node.bodies and _is_source(node, values, makers, sources):
            sources[number] = True
            constants[number] = node.op_type == "Constant"
    if not any(claims):
        records = list(map(nodes.__getitem__, order))
        said = parameter_paths(records, values, sources, names)
        return Level(consumers, sources, constants, said or claims, names, certain=False)
    return Level(consumers, sources, constants, claims, names)


def _makers(nodes: Mapping[int, NodeRecord], order: list[int]) -> dict[int, int]:
    """{value id: position in `order` of the first node that makes it}."""
    return {vid: number for number in range(len(order) - 1, -1, -1) for vid in nodes[order[number]].outputs if vid}


def _consumers(graph: Connections, scope: Scope, order: list[int], makers: Mapping[int, int]) -> list[list[int]]:
    """Positions of the readers of each node, in the order of the file; from the inputs, of which there are few."""
    nodes, maker_of = graph.nodes, makers.get
    found: list[list[int]] = [[] for _ in order]
    position = _in_file_order(scope, order) if scope.backward else enumerate(order)
    for number, ident in position:
        node = nodes[ident]
        for vid in node.inputs:
            if (maker := maker_of(vid)) is not None:
                found[maker].append(number)
        if node.bodies:
            for vid in _read_inside(graph, node):
                if (maker := maker_of(vid)) is not None:
                    found[maker].append(number)
    return found


def _in_file_order(scope: Scope, order: list[int]) -> Iterator[tuple[int, int]]:
    place = {node: number for number, node in enumerate(order)}
    return ((place[node], node) for node in scope.node_ids)


def _read_inside(graph: Connections, node: NodeRecord) -> Iterator[int]:
    """The values that the nodes in the bodies of a node read."""
    waiting = [body for bodies in node.bodies.values() for body in bodies]
    while waiting:
        for ident in graph.scopes[waiting.pop(0)].node_ids:
            inner = graph.nodes[ident]
            yield from inner.inputs
            waiting += [body for bodies in inner.bodies.values() for body in bodies]


def _is_source(
    node: NodeRecord, values: Mapping[int, ValueRecord], makers: Mapping[int, int], sources: list[bool]
) -> bool:
    """Whether a node reads nothing but initializers, and what comes of nothing else."""
    for ident in node.inputs:
        if ident:
            maker = makers.get(ident)
            if maker is None:
                value = values[ident]
                if value.initializer is None or value.producers:
                    return False
            elif not sources[maker]:
                return False
    return True
