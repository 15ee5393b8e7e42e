"""The readers of each node of a scope, and which nodes read nothing but initializers and each other: sources.

For few nodes, loops over their records compute both; for many, arrays (`wires.py`), which take longer to set up. The
results are the same.
"""

from collections.abc import Iterator, Mapping, Sequence

from onnxlab.graph.index.records import NodeRecord, Scope, ValueRecord
from onnxlab.graph.query.wires import Connections, Readers, Wires

FEW = 2000
"""Nodes of a scope up to which loops take less time."""


def sources_of(graph: Connections, scope: Scope, wires: Wires | None) -> tuple[Readers, bytearray]:
    """Return the readers of each node, and whether it is a source, by its place in topological order.

    Args:
        wires: the wires of the scope; None where loops take less time.
    """
    return _of_few(graph, scope, graph.topological(scope)) if wires is None else _of_many(graph, wires)


def _of_many(graph: Connections, wires: Wires) -> tuple[Readers, bytearray]:
    nodes, values, ids = graph.nodes, graph.values, wires.order
    readers = wires.consumers(lambda node: _read_inside(graph, node))
    is_read = readers.columns[1] > 0

    def is_stored(value: int) -> bool:
        record = values[value]
        return record.initializer is not None and not record.producers

    def may(node: int) -> bool:
        return bool(is_read[node]) and not nodes[int(ids[node])].bodies

    return readers, wires.fed_by(is_stored, may)


def _of_few(graph: Connections, scope: Scope, order: Sequence[int]) -> tuple[Readers, bytearray]:
    nodes = graph.nodes
    makers = _makers(nodes, order)
    consumers = _consumers(graph, scope, order, makers)
    sources = bytearray(len(order))
    for number, ident in enumerate(order):
        node = nodes[ident]
        if consumers[number] and not node.bodies and _is_source(node, graph.values, makers, sources):
            sources[number] = True
    return Readers(consumers), sources


def _makers(nodes: Mapping[int, NodeRecord], order: Sequence[int]) -> dict[int, int]:
    """{value id: position in `order` of the first node that makes it}."""
    return {vid: number for number in range(len(order) - 1, -1, -1) for vid in nodes[order[number]].outputs if vid}


def _consumers(graph: Connections, scope: Scope, order: Sequence[int], makers: Mapping[int, int]) -> list[list[int]]:
    """Positions of the readers of each node, in the order of the file; from the inputs, of which there are few."""
    nodes, maker_of = graph.nodes, makers.get
    consumers: list[list[int]] = [[] for _ in order]
    position = _in_file_order(scope, order) if scope.backward else enumerate(order)
    for number, ident in position:
        node = nodes[ident]
        for vid in node.inputs:
            if (maker := maker_of(vid)) is not None:
                consumers[maker].append(number)
        if node.bodies:
            for vid in _read_inside(graph, node):
                if (maker := maker_of(vid)) is not None:
                    consumers[maker].append(number)
    return consumers


def _in_file_order(scope: Scope, order: Sequence[int]) -> Iterator[tuple[int, int]]:
    place = {node: number for number, node in enumerate(order)}
    return ((place[node], node) for node in scope.node_ids)


def _read_inside(graph: Connections, node: NodeRecord) -> Iterator[int]:
    """The values that the nodes in the bodies of a node read."""
    waiting = [body for bodies in node.bodies.values() for body in bodies]
    while waiting:
        for ident in graph.scopes[waiting.pop(0)].node_ids:
            inner = graph.nodes[ident]
            yield from inner.inputs
            waiting += [body for bodies in inner.bodies.values() for body in bodies]


def _is_source(
    node: NodeRecord, values: Mapping[int, ValueRecord], makers: Mapping[int, int], sources: bytearray
) -> bool:
    """Whether a node reads nothing but initializers, and what comes of nothing else."""
    for ident in node.inputs:
        if ident:
            maker = makers.get(ident)
            if maker is None:
                value = values[ident]
                if value.initializer is None or value.producers:
                    return False
            elif not sources[maker]:
                return False
    return True
