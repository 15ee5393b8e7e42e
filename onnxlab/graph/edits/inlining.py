"""Replace calls of functions by what the functions do."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertEntry, InsertNode, RemoveFunction, RemoveNode
from onnxlab.graph.edit.merging import adopt_opsets, all_nodes
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edits.naming import FreshNames
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, Scope
from onnxlab.graph.protos.renaming import Renaming

MOST_NODES = 1_000_000
"""Most nodes that calls become: functions that each call another one twice double them at each level."""


@recorded
def inline_call(graph: ModelGraph, node: NodeRecord, nested: bool = False) -> list[NodeRecord]:
    """Replace one call of a function by the function's nodes; with `nested` also the calls among these.

    An attribute reference is replaced by the call's attribute or the function's default, or removed where there is
    neither. Values inside get fresh names that begin with the call's name. The function stays, for other calls.

    Returns:
        The nodes in the place of the call.

    Raises:
        EditError: the node calls no function of the model, or the function uses operators with another meaning at the
            opset version that the scope of the call imports; with `nested`, a function calls itself, or more than
            `MOST_NODES` nodes would come.
    """
    called = graph.index.functions.get(function_key(node.proto))
    if called is None:
        raise EditError(f"{graph.label(node)} ({node.op_type}) calls no function of this model")
    if nested:
        _refuse_many(_expanded(graph, [called], in_bodies=False))
    added: list[NodeRecord] = []
    with graph.edit():
        waiting = [node]
        while waiting:
            for inner in _inline(graph, waiting.pop()):
                calls = nested and function_key(inner.proto) in graph.index.functions
                (waiting if calls else added).append(inner)
    return added


@recorded
def inline_function(graph: ModelGraph, function: Scope) -> int:
    """Replace every call of a function and remove the function, as one step; returns how many calls there were."""
    key = function_key(function.proto)
    count = 0
    with graph.edit():
        calls = [node for node in graph.nodes.values() if function_key(node.proto) == key]
        if any(graph.root(graph.scopes[node.scope]) is function for node in calls):
            raise EditError(f"{function.name} calls itself, so it cannot be inlined")
        _refuse_many(len(calls) * len(function.node_ids))
        for node in calls:
            if node.id in graph.nodes:  # else it stood in a body of another call, which is no operator's
                _inline(graph, node)
                count += 1
        graph.apply(RemoveFunction(function.id))
    return count


@recorded
def inline_functions(graph: ModelGraph) -> int:
    """Replace every call of every function, nested ones too, and remove the functions, as one step."""
    count = 0
    _refuse_many(_expanded(graph, [graph.main.id, *graph.index.function_ids], in_bodies=True))
    with graph.edit():
        while graph.index.function_ids:
            callers = _callers(graph)
            leaf = next(scope for scope in graph.index.function_ids if scope not in callers)
            count += inline_function(graph, graph.scopes[leaf])
    return count


def _callers(graph: ModelGraph) -> set[int]:
    """Functions that call a function."""
    return {
        root.id
        for node in graph.nodes.values()
        if function_key(node.proto) in graph.index.functions
        and (root := graph.root(graph.scopes[node.scope])).is_function
    }


def _expanded(graph: ModelGraph, roots: Iterable[int], in_bodies: bool) -> int:
    """The nodes that the largest of some functions and graphs has once the calls inside are replaced.

    Args:
        in_bodies: whether calls in bodies are replaced too.

    Raises:
        EditError: a function calls itself.
    """
    sizes, calls = Counter[int](), defaultdict[int, Counter[int]](Counter)
    for node in graph.nodes.values():
        root = graph.root(graph.scopes[node.scope]).id
        function = graph.index.functions.get(function_key(node.proto)) if in_bodies or node.scope == root else None
        if function is None:
            sizes[root] += 1
        else:
            calls[root][function] += 1
    pending, order, reached = [*roots], TopologicalSorter[int](), set[int]()
    while pending:
        if (root := pending.pop()) not in reached:
            reached.add(root)
            order.add(root, *calls[root])
            pending += calls[root]
    try:
        for root in order.static_order():
            sizes[root] += sum(count * sizes[function] for function, count in calls[root].items())
    except CycleError as error:
        path = graph.scope_path(graph.scopes[next((root for root in roots if root in error.args[1]), error.args[1][0])])
        raise EditError(f"{path} calls itself, so it cannot be inlined with what it calls") from None
    return max(sizes[root] for root in reached)


def _refuse_many(count: int) -> None:
    if count > MOST_NODES:
        raise EditError(f"the calls would become {count:,} nodes, more than {MOST_NODES:,}: inline some functions only")


def _inline(graph: ModelGraph, node: NodeRecord) -> list[NodeRecord]:
    """Replace a call; its position, and those of the nodes in its place, are in order."""
    function = graph.scopes[graph.index.functions[function_key(node.proto)]].proto
    scope, call = graph.scopes[node.scope], node.proto
    position = scope.position(node)
    label = call.name or next(filter(None, call.output), call.op_type)
    if len(call.input) > len(function.input) or len(call.output) > len(function.output):
        raise EditError(f"{graph.label(node)} passes more than the function {function.name} takes or gives")
    fresh = FreshNames(graph, scope)
    names, extra = _names(call, function, fresh, label)
    renaming = Renaming(names, lambda name: fresh.value(f"{label}/{name}"), attributes=_attributes(call, function))
    adopt_opsets(graph, function.opset_import, all_nodes(function.node), scope, f"the function {function.name}")
    protos = [renaming.node(inner) for inner in function.node] + extra
    infos = [renaming.info(info) for info in function.value_info if names.get(info.name)]
    graph.apply(RemoveNode(node.id))
    added: list[NodeRecord] = []
    for number, proto in enumerate(protos):
        if proto.name:
            proto.name = fresh.node(f"{label}/{proto.name}")
        graph.apply(InsertNode(scope.id, position + number, proto))
        added.append(graph.nodes[scope.node_ids[position + number]])
    for info in infos:
        if not scope.places("value_info").positions(info.name) and _is_plain(graph, scope, info.name):
            graph.apply(InsertEntry(scope.id, "value_info", len(scope.proto.value_info), info))
    return added


def _is_plain(graph: ModelGraph, scope: Scope, name: str) -> bool:
    """Whether a value is made here and no output, so that value_info may declare it."""
    vid = scope.names.get(name, 0)
    return bool(vid) and bool(graph.values[vid].producers) and not graph.values[vid].formal_outputs


def _names(
    call: onnx.NodeProto, function: onnx.FunctionProto, fresh: FreshNames, label: str
) -> tuple[dict[str, str], list[onnx.NodeProto]]:
    """The names of a function's values at the call; Identity nodes for outputs that are inputs too."""
    names: dict[str, str] = {}
    for slot, name in enumerate(function.input):
        names[name] = call.input[slot] if slot < len(call.input) else ""
    extra = []
    for slot, name in enumerate(function.output):
        actual = call.output[slot] if slot < len(call.output) else ""
        if name in names:  # an input, or an output given twice
            if actual and not names[name]:
                raise EditError(f"{label} leaves out {name!r}, which {function.name} returns as it is; pass a value")
            if actual:
                extra.append(onnx.NodeProto(op_type="Identity", input=[names[name]], output=[actual]))
        else:
            names[name] = actual or fresh.value(f"{label}/{name}")
    for node in function.node:
        for name in node.output:
            if name and name not in names:
                names[name] = fresh.value(f"{label}/{name}")
    return names, extra


def _attributes(call: onnx.NodeProto, function: onnx.FunctionProto) -> dict[str, onnx.AttributeProto]:
    """The values of references to a function's attributes: the call's, else the defaults."""
    attributes = {attribute.name: attribute for attribute in function.attribute_proto}
    attributes.update((attribute.name, attribute) for attribute in call.attribute)
    return attributes
