"""Edits of wires: what a node reads and makes, and new nodes on them."""

from collections.abc import Iterable, Sequence

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertFormal, InsertNode, RemoveFormal, RenameValue, SetInputs, SetOutputs
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.connecting import MOST_SLOTS, reading
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.edits.nodes import add_node
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.spelling import suggestion


@recorded
def set_input(graph: ModelGraph, node: NodeRecord, slot: int, name: str) -> None:
    """Let an input slot of a node read the value called `name`; "" leaves an optional input out.

    Raises:
        EditError: no such value is visible from the node, or the edge would close a cycle.
    """
    if slot < 0:
        raise EditError(f"input slots are counted from 0; {graph.label(node)} has no slot {slot}")
    if slot >= MOST_SLOTS:
        raise EditError(f"{graph.label(node)} has no slot {slot}: a node has at most {MOST_SLOTS:,} inputs")
    names = list(node.proto.input)
    names += [""] * (slot + 1 - len(names))
    names[slot] = name
    while names and not names[-1]:
        names.pop()
    set_inputs(graph, node, names)


@recorded
def set_inputs(graph: ModelGraph, node: NodeRecord, names: Sequence[str]) -> None:
    """Let a node read the values of these names, by slot; "" leaves an optional input out.

    Raises:
        EditError: a value is not visible from the node, or the wires would close a cycle.
    """
    scope = graph.scopes[node.scope]
    for name in () if graph.transaction else names:  # inside an edit, a value may follow later
        if name and name not in node.proto.input and not graph.index.lookup(scope, name):
            where = graph.label(node)
            raise EditError(f"no value is called {name!r} where {where} stands.{suggestion(name, scope.names)}")
    graph.apply(SetInputs(node.id, tuple(names)))


@recorded
def set_outputs(graph: ModelGraph, node: NodeRecord, names: Sequence[str]) -> None:
    """Let a node make values of these names, by slot; "" leaves an optional output out.

    A new name is a new value; use `rename_value` to keep the readers of a value.

    Raises:
        EditError: another node makes a value of that name, or a value that is still read would have no producer.
    """
    graph.apply(SetOutputs(node.id, tuple(names)))


@recorded
def redirect(
    graph: ModelGraph, old: ValueRecord, new: ValueRecord, readers: Iterable[NodeRecord] | None = None
) -> None:
    """Let all nodes that read a value, or only those given, read another one; outputs of graphs stay.

    Raises:
        EditError: the other value is not visible where a reader stands, or depends on a reader.
    """
    chosen = None if readers is None else {node.id for node in readers}
    with graph.edit() as edit:
        for node_id in dict.fromkeys(node for node, _ in old.uses):
            if chosen is not None and node_id not in chosen:
                continue
            edit.apply(reading(graph, graph.nodes[node_id], old, new))


@recorded
def insert_on_edge(
    graph: ModelGraph, node: NodeRecord, slot: int, proto: onnx.NodeProto, data_slot: int = 0
) -> NodeRecord:
    """Put a new node on one wire: it reads what the slot read, and the slot reads its first output.

    Args:
        proto: the new node; its input `data_slot` is overwritten, an output without a name gets a fresh name.

    Raises:
        EditError: the slot reads nothing, or the new node does not fit.
    """
    if not 0 <= slot < len(node.inputs) or not node.inputs[slot]:
        raise EditError(f"input {slot} of {graph.label(node)} reads nothing, so there is no wire to insert a node on")
    source = graph.values[node.inputs[slot]].name
    scope = graph.scopes[node.scope]
    with graph.edit():
        added = _prepared(proto, source, data_slot, FreshNames(graph, scope))
        record = add_node(graph, added, scope, scope.position(node))
        names = list(node.proto.input)
        names[slot] = added.output[0]
        graph.apply(SetInputs(node.id, tuple(names)))
    return record


@recorded
def insert_after(graph: ModelGraph, value: ValueRecord, proto: onnx.NodeProto, data_slot: int = 0) -> NodeRecord:
    """Put a new node behind a value: all that read the value, outputs of its graph included, read the new node.

    An output of the graph keeps its name, and the value itself gets a fresh name.

    Raises:
        EditError: the value is an input and an output at once, or returned by a body, or the node does not fit.
    """
    scope = graph.scopes[value.scope]
    formals = sorted(at for where, at in value.formal_outputs if where == scope.id)
    if len(formals) != len(value.formal_outputs):
        raise EditError(f"{value.name!r} is also returned by the body of a node; insert the {proto.op_type} inside it")
    if formals and not value.producer:
        raise EditError(f"{value.name!r} is an input or initializer and an output at once; it cannot be renamed")
    position = scope.position(graph.nodes[value.producer[0]]) + 1 if value.producer else 0
    names = FreshNames(graph, scope)
    with graph.edit() as edit:
        readers = list(dict.fromkeys(node for node, _ in value.uses))
        infos = [scope.proto.output[at] for at in formals]
        output = value.name if formals else ""
        for at in reversed(formals):
            edit.apply(RemoveFormal(scope.id, "output", at))
        if formals:
            edit.apply(RenameValue(value.id, names.value(f"{value.name}_before_{proto.op_type}")))
        added = _prepared(proto, value.name, data_slot, names, output)
        removal = edit.apply(InsertNode(scope.id, position, added))
        result = graph.values[scope.names[added.output[0]]]
        for reader in readers:
            edit.apply(reading(graph, graph.nodes[reader], value, result))
        for at, info in zip(formals, infos, strict=True):
            edit.apply(InsertFormal(scope.id, "output", at, info))
    return graph.nodes[removal.node]


def _prepared(
    proto: onnx.NodeProto, source: str, data_slot: int, names: FreshNames, output: str = ""
) -> onnx.NodeProto:
    """A copy of a node that reads `source`, with a name for its first output (given, or fresh) and for itself."""
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    copy.input.extend([""] * (data_slot + 1 - len(copy.input)))
    copy.input[data_slot] = source
    if not copy.output:
        copy.output.append("")
    copy.output[0] = output or names.value(copy.output[0] or f"{source}_{proto.op_type}")
    if copy.name:
        copy.name = names.node(copy.name)
    return copy
