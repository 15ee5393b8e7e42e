"""Edits of groups, which the picture folds to one box: metadata of nodes, which change no result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.metadata import set_metadata
from onnxlab.graph.edits.nodes import in_file_order, scope_of
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.name_scopes import BY_HAND
from onnxlab.graph.index.records import NodeRecord
from onnxlab.graph.query.cones import hole
from onnxlab.graph.query.hierarchy_by_hand import MARK, shown_name

if TYPE_CHECKING:
    from onnxlab.graph.query.groups import Group
    from onnxlab.graph.query.hierarchy import Hierarchy

LONGEST = 200
"""Most characters of a group's name."""


@recorded
def group_nodes(graph: ModelGraph, nodes: Sequence[NodeRecord], name: str) -> str:
    """Make nodes a group of the picture, or rename the group whose nodes they all are; returns the group's path.

    The group is written to the metadata of the nodes, `onnxlab.group`: it is saved with the model and stays with each
    node.

    Raises:
        EditError: the name is no plain text, a path leaves the nodes and comes back, or the scopes differ.
    """
    scope = scope_of(graph, nodes)
    if not isinstance(name, str) or not name.strip() or {"/", MARK} & set(name) or len(name) > LONGEST:
        raise EditError(f"a group's name is up to {LONGEST} characters without / and {MARK}, got {name!r}")
    chosen = _with_constants(graph, in_file_order(nodes))
    if path := hole(graph, [node.id for node in chosen]):
        way = " → ".join(graph.label(graph.nodes[node]) for node in path)
        raise EditError(f"the nodes cannot be one box: {way} leaves them and comes back; select what is between too")
    paths = {node.id: _path(node) for node in chosen}
    part, depth = _free(graph, name.strip()), _depth(graph, chosen, paths)
    whole = depth >= 0
    at = depth if whole else len(_common(paths.values()))
    with graph.edit():
        for node in chosen:
            parts = paths[node.id]
            _write(graph, node, [*parts[:at], part, *parts[at + whole :]])
        return _made(graph, scope.id, "/".join([*paths[chosen[0].id][:at], part]))


@recorded
def ungroup_nodes(graph: ModelGraph, nodes: Sequence[NodeRecord]) -> None:
    """Dissolve the group whose nodes these are: what is in it stands in the one around it.

    Raises:
        EditError: there is no group of just these nodes.
    """
    scope_of(graph, nodes)
    chosen = in_file_order(nodes)
    if _group_of(graph, chosen) is None:
        raise EditError(
            f"no group holds just these {len(chosen)} nodes; name all nodes of one, or dissolve it in model.groups"
        )
    chosen = _with_constants(graph, chosen)
    paths = {node.id: _path(node) for node in chosen}
    depth = _depth(graph, chosen, paths)
    with graph.edit():
        if depth >= 0:
            for node in chosen:
                _write(graph, node, [*paths[node.id][:depth], *paths[node.id][depth + 1 :]])
        if _group_of(graph, chosen) is None:
            return
        paths = {node.id: _path(node) for node in chosen}
        at, part = len(_common(paths.values())), _free(graph, "")
        for node in chosen:
            _write(graph, node, [*paths[node.id][:at], part, *paths[node.id][at:]])


@recorded
def clear_groups(graph: ModelGraph) -> int:
    """Take away all that was grouped, renamed and dissolved by hand; returns from how many nodes."""
    grouped = [node for node in graph.nodes.values() if _path(node)]
    with graph.edit():
        for node in grouped:
            _write(graph, node, [])
    return len(grouped)


def _path(node: NodeRecord) -> list[str]:
    text = next((entry.value for entry in node.proto.metadata_props if entry.key == BY_HAND), "")
    return text.split("/") if text else []


def _write(graph: ModelGraph, node: NodeRecord, parts: Sequence[str]) -> None:
    if parts or _path(node):
        set_metadata(graph, node, {BY_HAND: "/".join(parts) if parts else None})


def _common(paths: Iterable[Sequence[str]]) -> list[str]:
    """The parts that all paths begin with."""
    common: list[str] = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return common


def _depth(graph: ModelGraph, chosen: Sequence[NodeRecord], paths: Mapping[int, Sequence[str]]) -> int:
    """The place in the paths of the innermost group made by hand that holds just the chosen nodes; -1: none does."""
    common = _common(paths.values())
    for depth in range(len(common) - 1, -1, -1):
        prefix = common[: depth + 1]
        if shown_name(prefix[-1]) and sum(_path(node)[: depth + 1] == prefix for node in graph.nodes.values()) == len(
            chosen
        ):
            return depth
    return -1


def _free(graph: ModelGraph, name: str) -> str:
    """The name as part of a path, with a number where another group has it."""
    used = {part for node in graph.nodes.values() for part in _path(node)}
    number = 1 + max(
        (int(part.rpartition(MARK)[2]) for part in used if MARK in part and part.rpartition(MARK)[2].isdecimal()),
        default=1,
    )
    return (
        f"{name}{MARK}{number}" if name in used or not name or any(shown_name(part) == name for part in used) else name
    )


def _with_constants(graph: ModelGraph, nodes: Sequence[NodeRecord]) -> list[NodeRecord]:
    """The nodes with those that make parameters for them alone."""
    chosen = {node.id: node for node in nodes}
    stack = list(nodes)
    while stack:
        node = stack.pop()
        for value in node.inputs:
            maker = graph.values[value].producer if value else None
            if maker is None or maker[0] in chosen:
                continue
            record = graph.nodes[maker[0]]
            readers = {use for output in record.outputs if output for use, _ in graph.values[output].uses}
            is_made_of_weights = all(
                graph.values[read].initializer is not None for read in record.inputs if read
            ) and not any(graph.values[output].formal_outputs for output in record.outputs if output)
            if record.scope == node.scope and is_made_of_weights and chosen.keys() >= readers:
                chosen[record.id] = record
                stack.append(record)
    return in_file_order(chosen.values())


def _groups(graph: ModelGraph) -> Hierarchy:
    from onnxlab.graph.query.hierarchy import Hierarchy

    hierarchy = Hierarchy()
    hierarchy.refresh(graph.index)
    return hierarchy


def _group_of(graph: ModelGraph, nodes: Sequence[NodeRecord]) -> Group | None:
    """The group that holds just these nodes, but for those that make parameters."""
    chosen = {node.id for node in _with_constants(graph, nodes)}
    hierarchy = _groups(graph)
    group = hierarchy.group_of.get(nodes[0].id, 0)
    while group:
        inside = nodes_inside(hierarchy, group)
        if {node.id for node in _with_constants(graph, [graph.nodes[node] for node in inside])} == chosen:
            return hierarchy.groups[group]
        group = hierarchy.groups[group].parent
    return None


def nodes_inside(hierarchy: Hierarchy, group: int) -> list[int]:
    """The nodes in a group and in those inside it."""
    inside = set[int]()
    stack = [group]
    below: dict[int, list[int]] = {}
    for other in hierarchy.groups.values():
        below.setdefault(other.parent, []).append(other.id)
    while stack:
        ident = stack.pop()
        inside.update(hierarchy.groups[ident].nodes)
        stack += below.get(ident, [])
    return sorted(inside)


def _made(graph: ModelGraph, scope: int, path: str) -> str:
    """The path of a group in the picture, as `Hierarchy.path` writes it; refuses one that is none."""
    hierarchy = _groups(graph)
    outcome = hierarchy.by_hand[scope]
    box = outcome.boxes.get(path)
    if box is None:
        other = outcome.refused.get(path, "")
        words = (
            f"{other!r} reads some of them and is read by others" if other else "they depend on what is between them"
        )
        raise EditError(f"the nodes cannot be one box: {words}; select all of it too, or dissolve it before")
    ident = hierarchy.id_of(scope, box)
    return hierarchy.path(ident) if ident else box.name
