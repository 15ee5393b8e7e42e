"""Groups of nodes that fold to one box each, so that at most about 300 boxes stand side by side anywhere.

Groups come from name scopes (see `name_scopes.py`); a level that still holds too many boxes is cut where
few values are live (`cuts.py`). The functions and bodies of a model are scopes of their own, each with its
groups. Within any level the boxes form no cycle: a scope that is left and entered again becomes several
groups, "attn" and "attn (2)".

A Hierarchy keeps the ids of its groups while the model is edited. It is derived from names and connections
alone.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from onnxlab.graph.cuts import cut
from onnxlab.graph.levels import Box, Level, members
from onnxlab.graph.name_scopes import NameScopes
from onnxlab.graph.records import NodeRecord, Scope, ValueRecord

LIMIT = 300
"""Most boxes that a level shows side by side in the widget."""

GroupKind = Literal["scope", "cut"]


class Connections(Protocol):
    """What is read of a model: a ModelGraph or its Index."""

    nodes: dict[int, NodeRecord]
    values: dict[int, ValueRecord]
    scopes: dict[int, Scope]

    def topological(self, scope: Scope) -> list[int]: ...

    def owner_in(self, node: NodeRecord, scope_id: int) -> int: ...


@dataclass(frozen=True, slots=True)
class Group:
    """A group; `nodes` are its direct members `size` counts those of inner groups too."""

    id: int
    parent: int
    name: str
    kind: GroupKind
    scope: int
    nodes: tuple[int, ...]
    size: int


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

    def refresh(self, graph: Connections) -> bool:
        """Bring the groups up to date; tell whether anything is different. Linear in nodes and edges."""
        groups: list[Group] = []
        group_of: dict[int, int] = {}
        self._claims.clear()
        self._top.clear()
        for scope in graph.scopes.values():
            order = graph.topological(scope)
            claims = [self._names.path(graph.nodes[node]) for node in order]
            self._claims.update(zip(order, claims, strict=True))
            level = _level(graph, scope, order, claims, self._names)
            top = level.build()
            self._limit(level, top, order, scope.id)
            self._publish(top, order, scope.id, groups, group_of)
        found = {group.id: group for group in reversed(groups)}
        changed = found != self.groups or group_of != self.group_of
        self.groups, self.group_of = found, group_of
        return changed

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

    def _limit(self, level: Level, top: Box, order: list[int], scope: int) -> None:
        """Cut every level that shows too many boxes, from the top down."""
        stack = [top]
        while stack:
            box = stack.pop()
            if level.count(box) > self._limit_of_level:
                self._cut(level, box, order, scope)
            stack.extend(box.children)

    def _cut(self, level: Level, box: Box, order: list[int], scope: int) -> None:
        row = level.row(box)
        heads = [order[piece.head] for piece in row]
        starts = self._starts.setdefault((scope, box.key), set())
        bounds = cut(heads, level.spans(row), starts, self._limit_of_level)
        starts.clear()
        starts.update(heads[bound] for bound in bounds)
        box.nodes, box.children = [], []
        for number, (low, high) in enumerate(zip(bounds, [*bounds[1:], len(row)], strict=True), start=1):
            part = Box((box.key, "cut", heads[low]), f"part {number}", kind="cut")
            for piece in row[low:high]:
                part.nodes += piece.nodes
                part.children += piece.boxes
            part.nodes.sort()
            box.children.append(part)

    def _publish(self, top: Box, order: list[int], scope: int, groups: list[Group], group_of: dict[int, int]) -> None:
        """Give the boxes of a scope their ids; a group comes before the groups in it."""
        group_of.update((order[node], 0) for node in top.nodes)
        self._top[scope] = len(top.nodes)
        row = [(child, 0) for child in top.children]
        for box, parent in row:
            gid = self._ids.setdefault((scope, box.key), len(self._ids) + 1)
            nodes = tuple([order[node] for node in box.nodes])
            size = sum(1 for _ in members(box))
            groups.append(Group(gid, parent, box.name, box.kind, scope, nodes, size))
            group_of.update(dict.fromkeys(nodes, gid))
            row.extend((child, gid) for child in box.children)


def _level(graph: Connections, scope: Scope, order: list[int], claims: list[int], names: NameScopes) -> Level:
    """The nodes of a scope by position in `order`; a body's reads of outer values count as its owner's."""
    position = {node: number for number, node in enumerate(order)}
    nodes, values = graph.nodes, graph.values
    consumers: list[list[int]] = []
    sources = [False] * len(order)
    for node_id in order:
        node = nodes[node_id]
        readers = []
        for value in node.outputs:
            if value:
                for use, _ in values[value].uses:
                    reader = position.get(use)
                    if reader is None:
                        reader = position.get(graph.owner_in(nodes[use], scope.id))
                    if reader is not None:
                        readers.append(reader)
        consumers.append(readers)
        if readers and not node.bodies:
            sources[position[node_id]] = all(
                _is_fixed(values[value], position, sources) for value in node.inputs if value
            )
    constants = [
        is_source and nodes[node].op_type == "Constant" for node, is_source in zip(order, sources, strict=True)
    ]
    return Level(consumers, sources, constants, claims, names)


def _is_fixed(value: ValueRecord, position: dict[int, int], sources: list[bool]) -> bool:
    """Whether a value is an initializer, or comes of nothing else."""
    if producer := value.producer:
        maker = position.get(producer[0])
        return maker is not None and sources[maker]
    return value.initializer is not None
