"""Take a node out and join what it read to what read it."""

from typing import Any

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertFormal, InsertNode, RemoveFormal, RemoveNode, RenameValue, SetInputs
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.connecting import reading
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from onnxlab.graph.protos import glow_dialect


def bypass_node(graph: ModelGraph, node: NodeRecord) -> None:
    """Remove a node and join its first input to the readers of its first output."""
    outputs = [graph.values[vid] for vid in node.outputs if vid]
    read = [value for value in outputs if value.uses or value.formal_outputs]
    if not read:
        graph.apply(RemoveNode(node.id))
        return
    output = read[0]
    if output.formal_outputs and glow_dialect.is_save_node(node.proto, output.info):
        raise EditError(
            f"{graph.label(node)} is how Glow saves the output {output.name!r}, which goes by its name; remove the "
            "output before, or take saveName out of its doc string"
        )
    if len(read) > 1 or output.id != node.outputs[0]:
        others = ", ".join(repr(value.name) for value in read if value.id != node.outputs[0])
        label = graph.label(node)
        raise EditError(f"{label} cannot be bypassed: {others} would lose its producer; rewire its readers first")
    source = _data_input(graph, node)
    if source is None:
        raise EditError(
            f"{graph.label(node)} cannot be bypassed: it has no input to put in the place of {output.name!r}; "
            "let its readers read another value (replace_uses), then remove it"
        )
    if output.formal_outputs:
        bypass_to_output(graph, node, source, output)
        return
    for change in _read_instead(graph, output, source):
        graph.apply(change)
    graph.apply(RemoveNode(node.id))


def _data_input(graph: ModelGraph, node: NodeRecord) -> ValueRecord | None:
    """The input that a bypass keeps.

    The candidates are the inputs that are no initializers, or all inputs where every one is. The first candidate that
    the operator's schema types like the output (X of Where, not its condition) is taken, else the first candidate.
    Inputs by which an If, Loop or Scan controls its bodies are no candidates.
    """
    inputs = [(slot, graph.values[vid]) for slot, vid in enumerate(node.inputs) if vid]
    inputs = [pair for pair in inputs if pair[1].initializer is None] or inputs
    if len(inputs) == 1 and not node.bodies:
        return inputs[0][1]
    schema = graph.schema(node)
    output = schema.output(0) if schema else None
    if schema and output:
        for slot, value in inputs:
            if (formal := schema.input(slot)) and formal.type_str == output.type_str:
                return value
    return inputs[0][1] if inputs and not node.bodies else None


def _read_instead(graph: ModelGraph, old: ValueRecord, new: ValueRecord) -> list[SetInputs]:
    """Let every reader of a value read another one."""
    return [reading(graph, graph.nodes[reader], old, new) for reader in {node: None for node, _ in old.uses}]


def bypass_to_output(
    graph: ModelGraph, node: NodeRecord, source: ValueRecord, output: ValueRecord, alike: bool = False
) -> None:
    """Bypass a node that makes an output of the graph, whose name has to stay.

    The input is renamed to the output where it can be; a graph input, an initializer, a value of an outer scope or
    another output cannot be renamed, so an Identity node copies it to the output.

    Args:
        alike: whether the input holds what the output held: dims that the output declares then stay.
    """
    if source.producers and source.scope == node.scope and not source.formal_outputs:
        name = output.name
        readers = _read_instead(graph, output, source)
        position = graph.scopes[node.scope].position(node)
        graph.apply(*readers, RemoveNode(node.id))
        _adopt_name(graph, source, name, position)
        graph.touch.adopted(source, alike)
        return
    identity = onnx.NodeProto(op_type="Identity", name=node.name, input=[source.name], output=[output.name])
    position = graph.scopes[node.scope].position(node)
    graph.apply(RemoveNode(node.id), InsertNode(node.scope, position, identity))


def _adopt_name(graph: ModelGraph, value: ValueRecord, name: str, position: int) -> None:
    """Rename a value to that of a graph output which nothing makes any more, and make it that output."""
    scope = graph.scopes[value.scope]
    outputs = scope.proto.output
    formals = [index for index in range(len(outputs)) if _formal_name(outputs[index]) == name]
    if not formals:
        raise EditError(f"{name!r} is read by the body of a node; rewire it there first")
    infos = [outputs[index] for index in formals]
    for index in reversed(formals):
        graph.apply(RemoveFormal(scope.id, "output", index))
    graph.apply(RenameValue(value.id, name))
    for index, info in zip(formals, infos, strict=True):
        graph.apply(InsertFormal(scope.id, "output", index, info, {name: value.id}))


def _formal_name(info: Any) -> str:
    return info if isinstance(info, str) else str(info.name)
