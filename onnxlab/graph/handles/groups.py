"""The groups that a picture of a model folds, by path, and their edits by hand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from onnxlab.errors import NameLookupError
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.grouping import nodes_inside
from onnxlab.graph.handles.handles import Node
from onnxlab.graph.handles.model_lookup import Lookup, NodeKeys


@dataclass(frozen=True)
class NodeGroup:
    """A group of nodes that a picture folds to one box, as it was when it was looked up.

    Attributes:
        path: names from the outermost group to this one, "encoder/layer.5".
        name: the last part of the path.
        about: the usual term for the group's nodes, "residual block"; "" where the group's name says it.
        nodes: the nodes in the group and in the groups inside it, in file order.

    Examples:
        >>> group = model.groups["block1"]
        >>> group.name, len(group.nodes)
        ('block1', 7)
    """

    path: str
    name: str
    about: str
    nodes: tuple[Node, ...] = field(repr=False)
    _graph: ModelGraph = field(repr=False, compare=False)

    def rename(self, name: str) -> str:
        """Give the group another name, in the metadata of its nodes.

        Args:
            name: without slashes.

        Returns:
            str: the group's new path.

        Raises:
            EditError: `name` is no valid name of a group.

        Examples:
            >>> model.groups["block1"].rename("first block")
            'first block'
        """
        return edits.group_nodes(self._graph, [self._graph.nodes[node.id] for node in self.nodes], name)

    def dissolve(self) -> None:
        """Let what is in the group stand in the one around it.

        Raises:
            EditError: the nodes are no longer a group.

        Examples:
            >>> model.groups["block1"].dissolve()
            >>> "block1" in model.groups
            False
        """
        edits.ungroup_nodes(self._graph, [self._graph.nodes[node.id] for node in self.nodes])


class Groups(Mapping[str, NodeGroup]):
    """The groups of a model by path, outer ones first: by scopes, names of weights, structure, and by hand."""

    __slots__ = ("_groups", "_model")

    def __init__(self, model: "GroupEditing") -> None:
        self._model, graph = model, model.graph
        from onnxlab.graph.query.hierarchy import Hierarchy

        hierarchy = Hierarchy()
        with graph.lock:
            hierarchy.refresh(graph.index)
            self._groups: dict[str, NodeGroup] = {}
            for group in reversed(hierarchy.groups.values()):
                path = hierarchy.path(group.id)
                number = 1
                while (key := path if number == 1 else f"{path} ({number})") in self._groups:
                    number += 1
                records = sorted(map(graph.nodes.__getitem__, nodes_inside(hierarchy, group.id)), key=lambda n: n.label)
                nodes = tuple(Node(graph, record.id) for record in records)
                self._groups[key] = NodeGroup(key, group.name, group.about, nodes, graph)

    def __getitem__(self, path: str) -> NodeGroup:
        if (group := self._groups.get(path)) is not None:
            return group
        close = get_close_matches(str(path), self._groups, 3)
        hint = f"did you mean {', '.join(map(repr, close))}?" if close else "list(model.groups) names all"
        raise NameLookupError(f"there is no group {path!r}; {hint}")

    def __contains__(self, path: object) -> bool:
        return path in self._groups

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def __repr__(self) -> str:
        return f"<Groups: {len(self)}>"

    def make(self, nodes: NodeKeys, name: str) -> str:
        """Make nodes a group; see `Model.group_nodes`.

        Args:
            nodes: one or several, as positions, names or handles.
            name: name of the group, without slashes.

        Returns:
            str: the group's path.

        Raises:
            EditError: the nodes cannot be one box.

        Examples:
            >>> model.groups.make(["/stem/bn/BatchNormalization", "/stem/relu/Relu"], "norm and relu")
            'stem/norm and relu'
        """
        return self._model.group_nodes(nodes, name)

    def clear(self) -> int:
        """Take away all that was grouped by hand; see `Model.clear_groups`.

        Returns:
            int: number of nodes whose metadata changed.

        Examples:
            >>> model.groups.clear()
            0
        """
        return self._model.clear_groups()


class GroupEditing(Lookup):
    """Groups of a model and their edits; see `Model`."""

    __slots__ = ()

    @property
    def groups(self) -> Groups:
        """The groups of the picture, by path: each can be renamed and dissolved, and nodes made a group.

        Edits of groups are written to the metadata of the nodes, `onnxlab.group`: they are saved with the model, stay
        with nodes that are renamed or copied, and are undone like any edit. `clear` removes all of them.

        Examples:
            >>> model.groups["block1"].rename("first block")
            'first block'
            >>> commit = model.undo()
            >>> "block1" in model.groups
            True
        """
        return Groups(self)

    def group_nodes(self, nodes: NodeKeys, name: str) -> str:
        """Make nodes a group of the picture, or rename the group whose nodes they all are.

        Args:
            nodes: one or several, as positions, names or handles.
            name: name of the group, without slashes.

        Returns:
            str: the group's path.

        Raises:
            EditError: a path leaves the nodes and comes back, or another group reads some and is read by others.

        Examples:
            >>> model.group_nodes(["/stem/bn/BatchNormalization", "/stem/relu/Relu"], "norm and relu")
            'stem/norm and relu'
        """
        return edits.group_nodes(self.graph, self._node_records(nodes), name)

    def ungroup_nodes(self, nodes: NodeKeys) -> None:
        """Dissolve the group whose nodes these are: what is in it stands in the one around it.

        Args:
            nodes: all nodes of the group, as positions, names or handles.

        Raises:
            EditError: there is no group of just these nodes.

        Examples:
            >>> model.ungroup_nodes(model.groups["block1"].nodes)
            >>> "block1" in model.groups
            False
        """
        edits.ungroup_nodes(self.graph, self._node_records(nodes))

    def clear_groups(self) -> int:
        """Take away all that was grouped, renamed and dissolved by hand.

        Returns:
            int: number of nodes whose metadata changed.

        Examples:
            >>> model.clear_groups()
            0
        """
        return edits.clear_groups(self.graph)
