"""Groups of nodes that fold to one box each, so that at most about 300 boxes stand side by side anywhere.

Groups come from name scopes (see `name_scopes.py`); a level that still has too many boxes is cut where few values are
live (`hierarchy_cuts.py`). The functions and bodies of a model are scopes with groups of their own. The boxes of a
level form no cycle: a name scope that the topological order leaves and enters again becomes several groups, "attn" and
"attn (2)".

A Hierarchy keeps the ids of its groups while the model is edited, and depends on names and connections alone.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from types import MappingProxyType

import numpy as np

from onnxlab.garbage_collection import AGED, PATIENCE, no_collection
from onnxlab.graph.index.name_scopes import NameScopes
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.index.rows import Numbers
from onnxlab.graph.query.groups import Group, lasting_ids
from onnxlab.graph.query.hierarchy_by_hand import ByHand, arrange
from onnxlab.graph.query.hierarchy_cuts import cut
from onnxlab.graph.query.hierarchy_levels import Box, Level, members, size_of
from onnxlab.graph.query.parameter_scopes import parameter_paths
from onnxlab.graph.query.sources import FEW, sources_of
from onnxlab.graph.query.units import LARGEST_SCOPE, UnitFinder
from onnxlab.graph.query.wires import Connections, Wires

LIMIT = 300
"""Most boxes that a level shows side by side in the widget."""

SMALL_MODEL, SMALL_EDIT = 2000, 50
"""Models of more than SMALL_MODEL nodes are not sorted anew after an edit of at most SMALL_EDIT nodes."""


@dataclass(slots=True)
class _Sorted:
    """A scope whose nodes were put into boxes.

    Attributes:
        order: ids of the nodes in topological order.
        homes: id of the innermost group around each node, by place.
        is_lazy: whether groups are cut only when `divide` asks for it.
    """

    scope: int
    level: Level
    nodes: Mapping[int, NodeRecord]
    order: list[int] | Numbers
    homes: Numbers
    is_lazy: bool = False

    def settle(self, places: Sequence[int], group: int) -> tuple[int, ...]:
        """Let nodes have their home in a group; returns their ids where these are not put off."""
        at = slice(places.start, places.stop) if isinstance(places, range) else places
        self.homes[at] = group
        return () if self.is_lazy else tuple(self.ids(places))

    def ids(self, places: Sequence[int]) -> Sequence[int]:
        """The ids of nodes."""
        order = self.order
        if isinstance(order, list):
            if isinstance(places, range):
                return order[places.start : places.stop]
            return list(map(order.__getitem__, places))
        nodes = order[places.start : places.stop] if isinstance(places, range) else order[places]
        return nodes.tolist()  # type: ignore[no-any-return]

    def node(self, place: int) -> NodeRecord:
        """A node by its place."""
        return self.nodes[int(self.order[place])]


class Hierarchy:
    """The groups of a model.

    Args:
        limit: most boxes that a level shows side by side.

    Attributes:
        groups: groups by id, inner groups before the groups around them.
        by_hand: the state of groups made by hand, by scope.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit_of_level = limit
        self.groups: dict[int, Group] = {}
        self._members: list[tuple[Sequence[int], int]] = []
        self._homes: dict[int, tuple[list[int] | Numbers, Numbers]] = {}
        self._waiting: dict[int, tuple[_Sorted, Box]] = {}
        self._names = NameScopes()
        self._ids: dict[object, int] = {}
        self._starts: dict[object, set[int]] = {}
        self._claims: dict[int, int] = {}
        self._claimed_by_hand: dict[int, str] = {}
        self.by_hand: dict[int, ByHand] = {}
        self._top: dict[int, int] = {}
        self._former: dict[int, int] = {}

    @cached_property
    def group_of(self) -> dict[int, int]:
        """Id of the innermost group around each node, by node id; 0 at the top of its scope. Not of lazy scopes."""
        return _by_node(self._members)

    @no_collection(most=PATIENCE * AGED)
    def refresh(self, graph: Connections, lazily: Mapping[int, Wires] = MappingProxyType({})) -> bool:
        """Bring the groups up to date; tell whether anything is different. Linear in nodes and edges.

        Args:
            lazily: wires, by scope id, of scopes whose groups are cut only when `divide` asks for it: for a single
                picture, which shows few groups. Until then, all nodes in a group count as direct members.
        """
        groups, members_of, group_of = self.groups, self._members, self.__dict__.pop("group_of", None)
        self._claims, self._waiting, self._members = {}, {}, []
        self.by_hand, self._claimed_by_hand = {}, {}
        self._names.by_hand.clear()
        for table in (self._top, self._homes, self._former):
            table.clear()
        published: list[Group] = []
        for scope in graph.scopes.values():
            published += self._publish(*self._sort(graph, scope, lazily.get(scope.id)))
        self.groups = {group.id: group for group in reversed(published)}
        self._keep_ids(groups)
        return self.groups != groups or self.group_of != (_by_node(members_of) if group_of is None else group_of)

    def _keep_ids(self, before: Mapping[int, Group]) -> None:
        """Give groups that are mostly what others were the ids of these."""
        renames = lasting_ids(before, self.groups)
        if not renames:
            return
        keys = {ident: key for key, ident in self._ids.items()}
        for fresh, former in renames.items():  # exchanged: should both keys be there one day, they are two groups
            self._ids[keys[fresh]], self._ids[keys[former]] = former, fresh
        groups = (
            replace(group, id=renames.get(group.id, group.id), parent=renames.get(group.parent, group.parent))
            for group in self.groups.values()
        )
        self.groups = {group.id: group for group in groups}
        self._members = [(nodes, renames.get(group, group)) for nodes, group in self._members]
        renamed = np.arange(max(self._ids.values()) + 1)
        renamed[list(renames)] = list(renames.values())
        self._homes = {scope: (order, renamed[homes]) for scope, (order, homes) in self._homes.items()}

    def _sort(self, graph: Connections, scope: Scope, wires: Wires | None) -> tuple[Box, _Sorted]:
        """The nodes of a scope in boxes, none of them cut yet."""
        is_lazy = wires is not None
        if wires is None and len(scope.node_ids) > FEW:
            wires = Wires(graph, scope)
        order = wires.order if wires and is_lazy else graph.topological(scope)
        claims = None
        if graph.may_say_paths or len(order) <= LARGEST_SCOPE:
            ids = order if isinstance(order, list) else order.tolist()
            records = list(map(graph.nodes.__getitem__, ids))
        if graph.may_say_paths:
            claims = self._names.paths(records)
            self._claims.update(zip(ids, claims, strict=True))
        level = _level(graph, scope, wires, claims, self._names)
        top = level.build()
        if len(order) <= LARGEST_SCOPE:
            known = {key[1] for key in self._ids if isinstance(key, tuple) and key[0] == scope.id}
            UnitFinder(level, records, graph.nodes, graph.values, known).group(top)
        if hand := self._names.by_hand:
            self._claimed_by_hand |= hand
            paths = {place: hand[ident] for place, ident in enumerate(ids) if ident in hand}
            self.by_hand[scope.id] = arrange(level, top, paths)
        homes = np.zeros(len(order), np.int64)
        self._homes[scope.id] = wires.order if wires else order, homes
        return top, _Sorted(scope.id, level, graph.nodes, order, homes, is_lazy)

    def homes(self, scope: int, order: Sequence[int] | Numbers) -> Numbers:
        """The same as `group_of` for the nodes of a scope, in an order; quick for the topological one."""
        known, homes = self._homes.get(scope, ((), None))
        if homes is not None and np.array_equal(known, order):
            return homes
        of = self.group_of
        return np.fromiter((of.get(int(node), 0) for node in order), np.int64, len(order))

    def divide(self, groups: Iterable[int]) -> bool:
        """Cut those of some groups that waited for it; tell whether any did."""
        waiting = [(group, *self._waiting.pop(group)) for group in groups if group in self._waiting]
        for group, sort, box in waiting:
            published = self._publish(box, sort, group)
            self.groups = {**{inner.id: inner for inner in reversed(published)}, **self.groups}
        return bool(waiting)

    def follow(self, graph: Connections, nodes: Collection[int], removed: Collection[int]) -> bool:
        """Bring the groups up to date after an edit of `nodes` (added or changed) and `removed` ones.

        In a big model, a small edit keeps the groups: new nodes join the group of their neighbors, nodes that undo
        restores join their former group, and the time does not depend on the size of the model. Groups may then depend
        on each other in a cycle, until the next `refresh`.
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
        self._homes.clear()
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
        record = self.groups[group]
        nodes = tuple(node for node in record.nodes if node not in gone) + tuple(come)
        self.groups[group] = replace(record, nodes=nodes, size=record.size + by)
        for outer in self._above(record.parent):
            self.groups[outer] = replace(self.groups[outer], size=self.groups[outer].size + by)
        for empty in [ident for ident in reversed(self._above(group)) if not self.groups[ident].size]:
            del self.groups[empty]

    def width(self, scope: int) -> int:
        """Number of boxes at the top of a scope, constants included."""
        groups = sum(group.scope == scope and not group.parent for group in self.groups.values())
        return groups + self._top.get(scope, 0)

    def is_stale(self, node: NodeRecord) -> bool:
        """Whether a node was renamed into another scope, or put into another group, since the last refresh."""
        path, hand = self._names.path(node), self._names.by_hand.get(node.id)
        return self._claims.get(node.id) != path or self._claimed_by_hand.get(node.id) != hand

    def path(self, group: int) -> str:
        """Names from the outermost group to this one, "encoder/layer.5"."""
        parts = []
        while group:
            parts.append(self.groups[group].name)
            group = self.groups[group].parent
        return "/".join(reversed(parts))

    def id_of(self, scope: int, box: Box) -> int:
        """The id of the group that a box became; 0 where it is none."""
        ident = self._ids.get((scope, box.key), 0)
        return ident if ident in self.groups else 0

    def _cut(self, box: Box, sort: _Sorted) -> None:
        """Cut a box that shows too many boxes."""
        if sort.level.count(box) <= self._limit_of_level:
            return
        row = sort.level.row(box)
        heads = row.heads
        starts = self._starts.setdefault((sort.scope, box.key), set())
        former = [place for place, head in enumerate(sort.ids(heads)) if head in starts] if starts else []
        bounds = cut(len(heads), sort.level.spans(row), former, len(starts), self._limit_of_level)
        starts.clear()
        if len(bounds) < 2:  # a box and its sources are never separated, however many they are
            return
        box.nodes, box.children = [], []
        for low, high in zip(bounds, [*bounds[1:], len(heads)], strict=True):
            first, last = sort.node(heads[low]), sort.node(heads[high - 1])
            starts.add(first.id)
            name = f"{first.name or first.op_type} … {last.name or last.op_type}"
            part = Box((box.key, "cut", first.id), name, kind="cut")
            part.nodes = row.between(low, high)
            if row.boxes:
                part.children = [row.boxes[place] for place in range(low, high) if place in row.boxes]
            box.children.append(part)

    def _publish(self, top: Box, sort: _Sorted, around: int = 0) -> list[Group]:
        """Cut the boxes in a scope or group from the top down and give them ids; a group comes before those in it.

        In a lazy scope, this is done for the first level only.
        """
        self._cut(top, sort)
        direct = sort.settle(top.nodes, around)
        if not around:
            self._top[sort.scope] = len(top.nodes)
            self._members.append((direct, 0))
        row = [(child, around) for child in top.children]
        published: list[Group] = []
        for box, parent in row:
            gid = self._ids.setdefault((sort.scope, box.key), len(self._ids) + 1)
            size = size_of(box)
            if sort.is_lazy:
                self._waiting[gid] = sort, box
                nodes = sort.settle(box.nodes if len(box.nodes) == size else sorted(members(box)), gid)
            else:
                self._cut(box, sort)
                nodes = sort.settle(box.nodes, gid)
                self._members.append((nodes, gid))
                row.extend((child, gid) for child in box.children)
            published.append(Group(gid, parent, box.name, box.kind, sort.scope, nodes, size, box.about, box.units))
        return published


def _by_node(members_of: Iterable[tuple[Sequence[int], int]]) -> dict[int, int]:
    group_of: dict[int, int] = {}
    for nodes, group in members_of:
        group_of.update(dict.fromkeys(nodes, group))
    return group_of


def _level(graph: Connections, scope: Scope, wires: Wires | None, claims: list[int] | None, names: NameScopes) -> Level:
    """The nodes of a scope by place in topological order; a body's reads of outer values count as its owner's."""
    readers, sources = sources_of(graph, scope, wires)
    constants = bytearray(len(sources))
    needs_records = 1 in sources or any(map(_stores, graph.scopes.values()))
    records = [graph.nodes[node] for node in graph.topological(scope)] if needs_records else []
    for place in compress(range(len(records)), sources):
        constants[place] = records[place].op_type == "Constant"
    if claims is not None and any(claims):
        return Level(readers, sources, constants, claims, names)
    claimed = parameter_paths(records, graph.values, sources, names) if records else None
    return Level(readers, sources, constants, claimed, names, certain=False)


def _stores(scope: Scope) -> bool:
    """Whether a graph has initializers."""
    return not scope.is_function and bool(len(scope.proto.initializer) or len(scope.proto.sparse_initializer))
