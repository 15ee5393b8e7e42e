"""Edits that tidy a model: order, dead nodes, unused initializers and functions."""

from bisect import bisect_left
from collections.abc import Iterable

from onnxlab.graph.edit.changes import MoveNode, RemoveEntry, RemoveFunction, RemoveNode
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.transaction import Transaction
from onnxlab.graph.edits.recording.edit_spec import recorded
from onnxlab.graph.index.index import function_key
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord


@recorded
def sort_nodes(graph: ModelGraph, scope: Scope | None = None) -> int:
    """Put producers before consumers in the file order of a scope, or of all; returns how many nodes were moved.

    The longest subsequence of nodes in order is not moved. Nodes on a cycle stay behind the others.
    """
    moved = 0
    with graph.edit() as edit:
        for unsorted in [scope] if scope else list(graph.scopes.values()):
            if unsorted.backward:
                moved += _sort(graph, edit, unsorted)
    return moved


def _sort(graph: ModelGraph, edit: Transaction, scope: Scope) -> int:
    """Move every node that is not in the longest part in order right behind the one that shall precede it."""
    order = graph.index.topological(scope)
    place = {node: position for position, node in enumerate(scope.node_ids)}
    in_place = longest_increasing([place[node] for node in order])
    last: NodeRecord | None = None
    for position, node_id in enumerate(order):
        node = graph.nodes[node_id]
        if position not in in_place:
            # counted without the node, which was behind or before the node that it is to follow
            target = scope.position(last) + 1 if last else 0
            edit.apply(MoveNode(node_id, target - (scope.position(node) < target)))
        last = graph.nodes[node_id]
    return len(order) - len(in_place)


def longest_increasing(numbers: list[int]) -> set[int]:
    """Positions of a longest increasing subsequence of distinct numbers, in n log n."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for position, number in enumerate(numbers):
        at = bisect_left(tails, number)
        before.append(ends[at - 1] if at else -1)
        tails[at : at + 1] = [number]
        ends[at : at + 1] = [position]
    positions = set()
    position = ends[-1] if ends else -1
    while position >= 0:
        positions.add(position)
        position = before[position]
    return positions


@recorded
def drop_dead_nodes(graph: ModelGraph) -> int:
    """Remove every node that no output of its graph depends on, bodies and functions included; returns how many.

    A node without outputs is kept, since it must have some effect.
    """
    count = 0
    with graph.edit() as edit:
        waiting = [node for node in graph.nodes.values() if is_dead(graph, node)]
        while waiting:
            node = waiting.pop()
            if node.id not in graph.nodes or not is_dead(graph, node):
                continue
            read = {*node.inputs, *graph.index.captures(node)}
            edit.apply(RemoveNode(node.id))
            count += 1
            waiting.extend(makers(graph, read))
    return count


def is_dead(graph: ModelGraph, node: NodeRecord) -> bool:
    """Whether a node makes something, and nothing reads it."""
    return bool(node.outputs) and not any(vid and _is_used(graph.values[vid]) for vid in node.outputs)


def _is_used(value: ValueRecord) -> bool:
    return bool(value.uses or value.formal_outputs)


def makers(graph: ModelGraph, values: Iterable[int]) -> list[NodeRecord]:
    """The nodes that make some values, given by their ids."""
    producers = [graph.values[vid].producer for vid in values if vid in graph.values]
    return [graph.nodes[producer[0]] for producer in producers if producer and producer[0] in graph.nodes]


@recorded
def drop_unused_initializers(graph: ModelGraph) -> int:
    """Remove every stored tensor without a reader; returns how many. Defaults of graph inputs stay.

    A tensor in a quantization annotation or a training binding counts as read.
    """
    unused = unused_initializers(graph)
    remove_stored(graph, unused)
    return len(unused)


def unused_initializers(graph: ModelGraph) -> list[ValueRecord]:
    """The stored tensors without a reader that nothing else names."""
    bound = {entry.value for info in graph.proto.training_info for entry in info.update_binding}
    bound |= {entry.key for info in graph.proto.training_info for entry in info.update_binding}
    bound |= {entry.key for info in graph.proto.training_info for entry in info.initialization_binding}
    unused = []
    for value in graph.values.values():
        if value.initializer is None or _is_used(value) or value.is_input or value.name in bound:
            continue
        if not graph.scopes[value.scope].places("quantization_annotation").positions(value.name):
            unused.append(value)
    return unused


def remove_stored(graph: ModelGraph, values: Iterable[ValueRecord]) -> None:
    """Take the data of stored tensors away."""
    with graph.edit() as edit:
        for value in values:
            scope = graph.scopes[value.scope]
            for field in ("initializer", "sparse_initializer"):
                for position in reversed(scope.places(field).positions(value.name)):
                    edit.apply(RemoveEntry(scope.id, field, position))


@recorded
def drop_unused_functions(graph: ModelGraph) -> int:
    """Remove every function that no node calls, directly or through another function; returns how many."""
    unused = uncalled_functions(graph)
    with graph.edit() as edit:
        for scope in reversed(unused):
            edit.apply(RemoveFunction(scope))
    return len(unused)


def uncalled_functions(graph: ModelGraph) -> list[int]:
    """Scope ids of the functions that no node calls, directly or through another function."""
    used: set[int] = set()
    waiting = [scope for scope in graph.scopes.values() if scope.kind in ("graph", "training")]
    while waiting:
        for called in calls_from(graph, waiting.pop()):
            if called not in used:
                used.add(called)
                waiting.append(graph.scopes[called])
    return [scope for scope in graph.index.function_ids if scope not in used]


def calls_from(graph: ModelGraph, scope: Scope) -> Iterable[int]:
    """Scope ids of the functions that nodes of a scope and of its bodies call; may repeat."""
    for node_id in scope.node_ids:
        node = graph.nodes[node_id]
        called = graph.index.functions.get(function_key(node.proto))
        if called is not None:
            yield called
        for bodies in node.bodies.values():
            for body in bodies:
                yield from calls_from(graph, graph.scopes[body])
