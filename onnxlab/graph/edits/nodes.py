"""Edits of nodes: add, remove, duplicate, move."""

from collections.abc import Iterable, Sequence

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertNode, MoveNode, RemoveNode
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.bypassing import bypass_node
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.protos.renaming import Renaming
from onnxlab.spelling import suggestion


@recorded
def add_node(
    graph: ModelGraph, proto: onnx.NodeProto, scope: Scope | None = None, position: int | None = None
) -> NodeRecord:
    """Put a node into a scope: where `position` says, else right behind the last node that makes one of its inputs.

    Raises:
        EditError: an input is unknown, an output name is taken, or the node does not fit its operator's schema.
    """
    scope = scope or graph.main
    for name in proto.input:
        if name and not graph.index.lookup(scope, name):
            raise EditError(f"no value is called {name!r}.{suggestion(name, scope.names)}")
    return insert_node(graph, proto, scope, _behind_inputs(graph, proto, scope) if position is None else position)


def insert_node(graph: ModelGraph, proto: onnx.NodeProto, scope: Scope, position: int) -> NodeRecord:
    """Put a copy of a node at a position of a scope; what it reads may follow in the same edit.

    Raises:
        EditError: there is no such position; or, when the edit ends, the node does not fit.
    """
    if not 0 <= position <= len(scope.node_ids):
        raise EditError(f"position {position} is not between 0 and {len(scope.node_ids)}, the number of nodes")
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    with graph.edit(f"add {proto.name or proto.op_type}") as edit:
        removal = edit.apply(InsertNode(scope.id, position, copy))
    return graph.nodes[removal.node]


def _behind_inputs(graph: ModelGraph, proto: onnx.NodeProto, scope: Scope) -> int:
    position = 0
    for name in proto.input:
        value = graph.values.get(graph.index.lookup(scope, name)) if name else None
        if value and value.producer and value.scope == scope.id:
            position = max(position, scope.position(graph.nodes[value.producer[0]]) + 1)
    return position


@recorded
def remove_nodes(graph: ModelGraph, nodes: Sequence[NodeRecord], bypass: bool = False) -> None:
    """Remove nodes. With `bypass` the readers of a node's first output read its first input instead.

    Raises:
        EditError: something outside still reads what a node makes and there is no bypass; nothing changed.
    """
    if not nodes:
        return
    with graph.edit():
        for node in sorted(nodes, key=lambda node: (node.scope, -graph.index.rank(node))):
            if node.id not in graph.nodes:
                continue  # already removed with the body of another node
            if bypass:
                bypass_node(graph, node)
            else:
                graph.apply(RemoveNode(node.id))


@recorded
def duplicate_nodes(graph: ModelGraph, nodes: Sequence[NodeRecord]) -> list[NodeRecord]:
    """Copy nodes of one scope, bodies and all: copies read each other where the nodes do, and make new values.

    The copies also read the same values from outside; their outputs have no other readers yet. The copies are placed
    behind the last of the nodes.

    Returns:
        The copies, in file order of the nodes.

    Raises:
        EditError: the nodes are of different scopes.
    """
    scope = scope_of(graph, nodes)
    ordered = in_file_order(nodes)
    names = FreshNames(graph, scope)
    new_names = {name: names.value(f"{name}_copy") for node in ordered for name in node.proto.output if name}
    renaming = Renaming(new_names)
    position = scope.position(ordered[-1]) + 1
    copies = []
    with graph.edit() as edit:
        for number, node in enumerate(ordered):
            copy = renaming.node(node.proto)
            if copy.name:
                copy.name = names.node(f"{copy.name}_copy")
            removal = edit.apply(InsertNode(scope.id, position + number, copy))
            copies.append(graph.nodes[removal.node])
    return copies


@recorded
def move_node(graph: ModelGraph, node: NodeRecord, position: int) -> None:
    """Put a node at another place of the file order; one that must not stand there is moved on at once.

    Raises:
        EditError: there is no such position.
    """
    count = len(graph.scopes[node.scope].node_ids)
    if not 0 <= position < count:
        raise EditError(f"position {position} is not between 0 and {count - 1}")
    graph.apply(MoveNode(node.id, position))


def scope_of(graph: ModelGraph, nodes: Iterable[NodeRecord]) -> Scope:
    """The one scope that all the nodes are in.

    Raises:
        EditError: there are no nodes, or they are of several scopes.
    """
    scopes = {node.scope: node for node in nodes}
    if not scopes:
        raise EditError("no nodes were given; name at least one")
    if len(scopes) > 1:
        first, second, *_ = scopes.values()
        raise EditError(
            f"{graph.label(first)} and {graph.label(second)} are in different graphs; choose nodes of one graph or body"
        )
    return graph.scopes[next(iter(scopes))]


def in_file_order(nodes: Iterable[NodeRecord]) -> list[NodeRecord]:
    """The nodes of one scope, each once, as the file has them."""
    return sorted({node.id: node for node in nodes}.values(), key=lambda node: node.label)
