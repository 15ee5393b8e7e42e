"""Reachability: ancestors, descendants, paths, convexity and the boundary of a selection.

All functions work on the nodes of one scope. A value that the body of an If, Loop or Scan captures counts as read by
that node; `via` selects whether captures count too ("any"), do not count ("data") or alone count ("capture").
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.index.topology import reachable

Via = Literal["any", "data", "capture"]
Neighbors = Callable[[int], Iterable[int]]


def _everywhere(_: int) -> bool:
    return True


def upstream(graph: ModelGraph, via: Via = "any") -> Neighbors:
    """The function that gives the nodes that make what a node reads; may repeat."""
    nodes, values, index = graph.nodes, graph.values, graph.index

    def data(at: int) -> list[int]:
        node = nodes[at]
        makers = [values[vid].producers[0][0] for vid in node.inputs if vid and values[vid].producers]
        return [maker for maker in makers if nodes[maker].scope == node.scope]

    def both(at: int) -> Iterable[int]:
        return index.producers(nodes[at]) if nodes[at].bodies else data(at)

    def captured(at: int) -> Iterator[int]:
        scope = nodes[at].scope
        for vid in index.captures(nodes[at]) if nodes[at].bodies else ():
            if vid and (producer := values[vid].producer) and nodes[producer[0]].scope == scope:
                yield producer[0]

    return {"any": both, "data": data, "capture": captured}[via]


def downstream(graph: ModelGraph, via: Via = "any") -> Neighbors:
    """The function that gives the nodes that read what a node makes; may repeat."""
    nodes, values, index = graph.nodes, graph.values, graph.index

    def chosen(at: int) -> Iterator[int]:
        for vid in nodes[at].outputs:
            if vid:
                yield from readers(graph, values[vid], via)

    return (lambda at: index.consumers(nodes[at])) if via == "any" else chosen


def readers(graph: ModelGraph, value: ValueRecord, via: Via = "any") -> Iterator[int]:
    """Ids of the nodes of a value's scope that read it themselves ("data") or in a body ("capture"); may repeat."""
    nodes, index, scope = graph.nodes, graph.index, value.scope
    for use, _ in value.uses:
        direct = nodes[use].scope == scope
        matches = via == "any" or direct == (via == "data")
        if matches and (reader := use if direct else index.owner_in(nodes[use], scope)):
            yield reader
    if via != "data":
        for body, _ in value.formal_outputs:
            owner = graph.scopes[body].owner
            if body != scope and owner and (reader := index.owner_in(nodes[owner], scope)):
                yield reader


def ancestors(graph: ModelGraph, nodes: Iterable[int], via: Via = "any") -> set[int]:
    """Ids of the nodes that the given ones depend on, themselves left out unless they depend on one another."""
    return _beyond(nodes, upstream(graph, via))


def descendants(graph: ModelGraph, nodes: Iterable[int], via: Via = "any") -> set[int]:
    """Ids of the nodes that depend on the given ones, themselves left out unless they depend on one another."""
    return _beyond(nodes, downstream(graph, via))


def _beyond(nodes: Iterable[int], neighbors: Neighbors) -> set[int]:
    return reachable({other for node in nodes for other in neighbors(node)}, neighbors, _everywhere)


def cone(graph: ModelGraph, nodes: Iterable[int], via: Via = "any") -> set[int]:
    """The nodes with all that they depend on: what must run to have their outputs."""
    return reachable(nodes, upstream(graph, via), _everywhere)


def between(graph: ModelGraph, starts: Iterable[int], ends: Iterable[int], via: Via = "any") -> set[int]:
    """Ids of the nodes on any path from one of `starts` to one of `ends`, both included where there is a path.

    The search visits only nodes between the first start and the last end in topological order.
    """
    sources, sinks = set(starts), set(ends)
    if not sources or not sinks:
        return set()
    nodes, index = graph.nodes, graph.index
    low = min(index.rank(nodes[node]) for node in sources)
    high = max(index.rank(nodes[node]) for node in sinks)
    ahead = reachable(sources, downstream(graph, via), lambda at: index.rank(nodes[at]) <= high)
    behind = reachable(sinks, upstream(graph, via), lambda at: index.rank(nodes[at]) >= low)
    return ahead & behind


def connected(graph: ModelGraph, start: int, end: int, via: Via = "any") -> bool:
    """Whether `end` depends on `start`."""
    nodes, index = graph.nodes, graph.index
    high = index.rank(nodes[end])
    step = downstream(graph, via)
    return end in reachable(set(step(start)), step, lambda at: index.rank(nodes[at]) <= high)


def paths(graph: ModelGraph, start: int, end: int, via: Via = "any") -> Iterator[tuple[int, ...]]:
    """Every path of node ids from `start` to `end`, both included, in file order, lazily: there can be very many.

    Several wires between two nodes count as one path.
    """
    inside = between(graph, [start], [end], via)
    if start not in inside or end not in inside:
        return
    step = downstream(graph, via)

    def onward(at: int) -> Iterator[int]:
        following = {node for node in step(at) if node in inside}
        return iter(sorted(following, key=lambda node: graph.nodes[node].label))

    trail, stack = [start], [iter(()) if start == end else onward(start)]
    if start == end:
        yield (start,)
    while stack:
        node = next(stack[-1], 0)
        if not node:
            stack.pop()
            trail.pop()
        elif node == end:
            yield (*trail, node)
        elif node not in trail:  # always true but in a file with cycles
            trail.append(node)
            stack.append(onward(node))


@dataclass(frozen=True, slots=True)
class BoundaryIds:
    """The values that cross the edge of a selection, by id, in the order in which the nodes first read or make them.

    Attributes:
        inputs: read inside, made outside or by the graph's inputs.
        initializers: read inside, stored in the model.
        captures: values in `inputs` and `initializers` that only bodies of the nodes read.
        outputs: made inside, read outside or returned by a graph.
        internal: made inside and read only there.
        unused: made inside and read nowhere.
    """

    inputs: tuple[int, ...]
    initializers: tuple[int, ...]
    captures: tuple[int, ...]
    outputs: tuple[int, ...]
    internal: tuple[int, ...]
    unused: tuple[int, ...]


def boundary(graph: ModelGraph, nodes: Iterable[int]) -> BoundaryIds:
    """The inputs and outputs of a selection of nodes of one scope. Costs as much as the nodes' own wires."""
    chosen = {node.id: node for node in sorted((graph.nodes[at] for at in set(nodes)), key=lambda node: node.label)}
    computed = dict.fromkeys(vid for node in chosen.values() for vid in node.outputs if vid)
    read = dict.fromkeys(vid for node in chosen.values() for vid in node.inputs if vid)
    captured = dict.fromkeys(vid for node in chosen.values() for vid in graph.index.captures(node) if vid)
    outside = [vid for vid in {**read, **captured} if vid not in computed]
    values = graph.values
    stored = tuple(vid for vid in outside if values[vid].initializer is not None)
    outputs: list[int] = []
    internal: list[int] = []
    unused: list[int] = []
    for vid in computed:
        if _leaves(graph, vid, chosen):
            outputs.append(vid)
        else:
            (internal if values[vid].uses or values[vid].formal_outputs else unused).append(vid)
    return BoundaryIds(
        tuple(vid for vid in outside if values[vid].initializer is None), stored,
        tuple(vid for vid in outside if vid not in read), tuple(outputs), tuple(internal), tuple(unused),
    )  # fmt: skip


def _leaves(graph: ModelGraph, value: int, chosen: dict[int, NodeRecord]) -> bool:
    """Whether a value that a chosen node makes is read outside of the chosen ones."""
    record = graph.values[value]
    for use, _ in record.uses:
        if graph.index.owner_in(graph.nodes[use], record.scope) not in chosen:
            return True
    for scope, _ in record.formal_outputs:
        owner = graph.scopes[scope].owner if scope != record.scope else 0
        if not owner or graph.index.owner_in(graph.nodes[owner], record.scope) not in chosen:
            return True
    return False


def hole(graph: ModelGraph, nodes: Iterable[int]) -> tuple[int, ...]:
    """A path that leaves a selection and comes back into it, its two ends inside; () where the selection is convex."""
    chosen = set(nodes)
    if not chosen:
        return ()
    index, records = graph.index, graph.nodes
    high = max(index.rank(records[node]) for node in chosen)
    step = downstream(graph)
    came: dict[int, int] = {}
    stack = []
    for node in sorted(chosen):
        for other in step(node):
            if other not in chosen and other not in came:
                came[other] = node
                stack.append(other)
    while stack:
        at = stack.pop()
        for other in step(at):
            if other in chosen:
                return _trail(came, chosen, at, other)
            if other not in came and index.rank(records[other]) <= high:
                came[other] = at
                stack.append(other)
    return ()


def _trail(came: dict[int, int], chosen: set[int], at: int, end: int) -> tuple[int, ...]:
    trail = [end, at]
    while trail[-1] not in chosen:
        trail.append(came[trail[-1]])
    return tuple(reversed(trail))


def is_convex(graph: ModelGraph, nodes: Iterable[int]) -> bool:
    """Whether every path between two nodes of a selection stays inside it, so that it could be one node."""
    return not hole(graph, nodes)


def file_order(graph: ModelGraph, nodes: Iterable[int]) -> list[int]:
    """Node ids scope by scope, as the file has them."""
    return sorted(nodes, key=lambda node: (graph.nodes[node].scope, graph.nodes[node].label))


def nodes_of(graph: ModelGraph, scope: Scope | None = None) -> Sequence[int]:
    """Ids of the nodes of a scope (default: of all scopes, main graph first)."""
    if scope is not None:
        return scope.node_ids
    return [node for inner in graph.scopes.values() for node in inner.node_ids]
