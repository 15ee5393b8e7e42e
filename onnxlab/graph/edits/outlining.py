"""Turn a selection of nodes into a function, and its copies into calls; one edit for all copies of a block."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import onnx

from onnxlab import schemas
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertFunction, InsertNode, RemoveNode, SetField, field_value
from onnxlab.graph.edit.merging import all_nodes, raise_ir_version
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.edits.nodes import in_file_order, scope_of
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.protos.name_bytes import text
from onnxlab.graph.protos.renaming import canonical, graphs_of, nodes_inside
from onnxlab.graph.protos.tensors import from_array, to_array
from onnxlab.graph.query.block_copies import find_copies
from onnxlab.graph.query.cones import boundary, hole

FUNCTIONS_SINCE = 8
"""The IR version that introduced functions."""


@recorded
def make_function(
    graph: ModelGraph, nodes: Sequence[NodeRecord], name: str, domain: str = "local", copies: bool = False
) -> list[NodeRecord]:
    """Move nodes into a new function of the model and call it in their place; returns the calls, the nodes' own first.

    Values that the nodes read from outside, initializers included, become inputs of the function; values that are read
    outside become outputs. Sparse initializers of bodies are stored with their zeros. With `copies`, every verified
    copy of the block is replaced by a call of the same function.

    Raises:
        EditError: a path leaves the selection and comes back, a function of that name exists, or the nodes refer to
            attributes of a function or are of several scopes.
    """
    scope = scope_of(graph, nodes)
    chosen = in_file_order(nodes)
    name, domain = text(name), text(domain)
    _refuse(graph, chosen, scope, name, domain)
    blocks = [{node.id: node.id for node in chosen}]
    if copies:
        copies_of_block = find_copies(graph, chosen)
        blocks += [
            copy
            for copy in copies_of_block
            if not hole(graph, copy.values()) and boundary(graph, copy.values()).outputs
        ]
    sides = boundary(graph, blocks[0])
    formals = [[*sides.inputs, *sides.initializers], _outputs(graph, chosen, blocks)]
    function = _function(graph, chosen, scope, name, domain, formals)
    fresh = FreshNames(graph, scope)
    calls = [_call(graph, chosen, block, function, formals, fresh) for block in blocks]
    with graph.edit():
        raise_ir_version(graph, FUNCTIONS_SINCE)
        _import_domain(graph, scope, domain)
        graph.apply(InsertFunction(len(graph.index.function_ids), function))
        return [_replace(graph, block.values(), call) for block, call in zip(blocks, calls, strict=True)]


def _refuse(graph: ModelGraph, nodes: list[NodeRecord], scope: Scope, name: str, domain: str) -> None:
    if not name or canonical(domain) == "":
        raise EditError("a function needs a name, and a domain of its own beside ai.onnx")
    key = (domain, name, "")
    if key in graph.index.functions:
        raise EditError(f"there is a function {domain}::{name} already; choose another name")
    if schemas.versions(domain, name) or any(function_key(node.proto) == key for node in graph.nodes.values()):
        raise EditError(f"there is an operator {domain}::{name} already; choose another name")
    if path := hole(graph, [node.id for node in nodes]):
        way = " → ".join(graph.label(graph.nodes[node]) for node in path)
        raise EditError(f"the selection cannot be one node: {way} leaves it and comes back; select what is between too")
    for node in all_nodes(node.proto for node in nodes):
        if any(attribute.ref_attr_name for attribute in node.attribute):
            raise EditError(f"{node.name or node.op_type} refers to an attribute of the function {scope.name}")


def _outputs(graph: ModelGraph, chosen: list[NodeRecord], blocks: list[dict[int, int]]) -> list[int]:
    """Values of the block that are read outside of it, in it or in any copy."""
    if not boundary(graph, blocks[0]).outputs:
        raise EditError("nothing that the selection makes is read outside of it; there would be no output")
    leaving = {place for block in blocks for place in _leaving(graph, chosen, block)}
    return [graph.nodes[node].outputs[slot] for node, slot in sorted(leaving, key=lambda at: _place(graph, at))]


def _leaving(graph: ModelGraph, chosen: list[NodeRecord], block: dict[int, int]) -> Iterable[tuple[int, int]]:
    outside = set(boundary(graph, block.values()).outputs)
    for node in chosen:
        for slot, vid in enumerate(graph.nodes[block[node.id]].outputs):
            if vid in outside:
                yield node.id, slot


def _place(graph: ModelGraph, at: tuple[int, int]) -> tuple[int, int]:
    return graph.nodes[at[0]].label, at[1]


def _function(
    graph: ModelGraph, nodes: list[NodeRecord], scope: Scope, name: str, domain: str, formals: list[list[int]]
) -> onnx.FunctionProto:
    function = onnx.FunctionProto(name=name, domain=domain)
    function.input.extend(graph.values[vid].name for vid in formals[0])
    function.output.extend(graph.values[vid].name for vid in formals[1])
    function.node.extend(node.proto for node in nodes)
    _make_dense(graph, function)
    root = graph.root(scope)
    used = {canonical(node.domain) for node in all_nodes(function.node)}
    imports = (root.proto if root.is_function else graph.proto).opset_import
    function.opset_import.extend(entry for entry in imports if canonical(entry.domain) in used)
    formal = {*formals[0], *formals[1]}
    for node in nodes:
        for vid in node.outputs:
            if vid and vid not in formal and (info := graph.values[vid].info) is not None:
                function.value_info.append(info)
    return function


def _make_dense(graph: ModelGraph, function: onnx.FunctionProto) -> None:
    """Store sparse initializers of bodies with their zeros: in functions ONNX Runtime takes none that are sparse."""
    for node in nodes_inside(function.node):
        for body in chain.from_iterable(map(graphs_of, node.attribute)):
            for sparse in body.sparse_initializer:
                body.initializer.append(from_array(to_array(sparse, graph.base_dir), sparse.values.name))
            del body.sparse_initializer[:]


def _import_domain(graph: ModelGraph, scope: Scope, domain: str) -> None:
    """Let the model (and the function that the nodes stand in) import the new function's domain."""
    roots = {("model", 0)} | ({("scope", root.id)} if (root := graph.root(scope)).is_function else set())
    for target in sorted(roots):
        imports = field_value(graph.target(target), "opset_import")  # type: ignore[arg-type]
        if all(entry.domain != domain for entry in imports):
            added = onnx.OperatorSetIdProto(domain=domain, version=1)
            graph.apply(SetField(target, "opset_import", (*imports, added)))  # type: ignore[arg-type]


def _call(
    graph: ModelGraph, nodes: list[NodeRecord], block: dict[int, int], function: onnx.FunctionProto,
    formals: list[list[int]], fresh: FreshNames,
) -> onnx.NodeProto:  # fmt: skip
    """The call that takes the place of one block; values that are read outside of it keep their names."""
    same = {vid: vid for vid in formals[0]}
    for node in nodes:
        copy = graph.nodes[block[node.id]]
        same.update(zip([*node.inputs, *node.outputs], [*copy.inputs, *copy.outputs], strict=True))
    outputs = set(boundary(graph, block.values()).outputs)
    call = onnx.NodeProto(op_type=function.name, domain=function.domain, name=fresh.node(function.name))
    call.input.extend(graph.values[same[vid]].name for vid in formals[0])
    call.output.extend(graph.values[same[vid]].name if same[vid] in outputs else "" for vid in formals[1])
    while not call.output[-1]:
        del call.output[-1]
    return call


def _replace(graph: ModelGraph, block: Iterable[int], call: onnx.NodeProto) -> NodeRecord:
    members = in_file_order(graph.nodes[ident] for ident in block)
    scope = graph.scopes[members[0].scope]
    position = scope.position(members[-1]) - len(members) + 1
    for node in reversed(members):
        graph.apply(RemoveNode(node.id))
    graph.apply(InsertNode(scope.id, position, call))
    return graph.nodes[scope.node_ids[position]]


@recorded
def for_each_copy(
    graph: ModelGraph, nodes: Sequence[NodeRecord], edit: Callable[..., Any], label: str = ""
) -> list[list[NodeRecord]]:
    """Do the same to a block and to every verified copy of it, as one step.

    Args:
        edit: called once for the block and once for each copy, with the nodes in the order of `nodes`.

    Returns:
        The nodes of each call of `edit`.

    Raises:
        EditError: wires do not connect the nodes, or the edit fails for one block; then no block is changed.
    """
    scope_of(graph, nodes)
    blocks = [list(nodes)]
    blocks += [[graph.nodes[copy[node.id]] for node in nodes] for copy in find_copies(graph, nodes)]
    with graph.edit(label or f"edit {len(blocks)} copies of {graph.label(nodes[0])}"):
        for block in blocks:
            edit(*block)
    return blocks
