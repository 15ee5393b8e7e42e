"""Repeated blocks: other sets of nodes that do the same as a given one, verified wire by wire.

Two nodes match when operator, domain, overload and attributes are equal byte for byte, and the nodes have equally many
inputs and outputs. Two blocks match when their nodes match one by one, every wire inside one block has a counterpart in
the other, and values from outside are of the same kind: an initializer of the same type and shape, or no initializer.
"""

from collections.abc import Iterator, Sequence

import onnx

from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, ValueRecord

Step = tuple[int, str, int, int, int]
"""The wire to the next node of a block: (known node, "up" or "down", output slot, input slot, next node)."""


def find_copies(graph: ModelGraph, nodes: Sequence[NodeRecord]) -> list[dict[int, int]]:
    """All other blocks of the same scope that are like the given one: {node id of the block: node id of the copy}.

    Copies share no node with the block or with each other; they come in file order.

    Raises:
        EditError: wires among the nodes do not connect all of them.
    """
    block = {node.id: node for node in nodes}
    signatures = {ident: signature(node) for ident, node in block.items()}
    start, candidates = _rarest(graph, block, signatures)
    plan = _plan(graph, block, start)
    used = set(block)
    copies = []
    for candidate in candidates:
        if candidate not in used:
            for copy in _matches(graph, plan, signatures, {start: candidate}):
                if used.isdisjoint(copy.values()) and _is_verified(graph, block, copy):
                    copies.append(copy)
                    used.update(copy.values())
                    break
    return copies


def signature(node: NodeRecord) -> tuple[object, ...]:
    """The properties that must be equal for two nodes to match, names and wires apart."""
    proto = node.proto
    protos = proto.attribute
    attributes = sorted([attribute.SerializeToString(deterministic=True) for attribute in protos]) if protos else ()
    shape = (tuple(map(bool, node.inputs)), tuple(map(bool, node.outputs)))
    return (node.domain, proto.op_type, proto.overload, shape, *attributes)


def _rarest(
    graph: ModelGraph, block: dict[int, NodeRecord], signatures: dict[int, tuple[object, ...]]
) -> tuple[int, list[int]]:
    """The node of the block with the fewest like it in the scope, and these in file order."""
    scope = graph.scopes[next(iter(block.values())).scope]
    operators = {node.proto.op_type for node in block.values()}
    alike: dict[tuple[object, ...], list[int]] = {key: [] for key in signatures.values()}
    for ident in scope.node_ids:
        node = graph.nodes[ident]
        if node.proto.op_type in operators and (key_of_node := signature(node)) in alike:
            alike[key_of_node].append(ident)
    start = min(block, key=lambda ident: (len(alike[signatures[ident]]), block[ident].label))
    return start, alike[signatures[start]]


def _plan(graph: ModelGraph, block: dict[int, NodeRecord], start: int) -> list[Step]:
    """An order in which every node of the block is reached from one before it, upwards where it can be."""
    plan: list[Step] = []
    known, waiting = {start}, [start]
    while waiting:
        at = waiting.pop(0)
        for step in _neighbors(graph, block, at):
            if step[4] not in known:
                known.add(step[4])
                waiting.append(step[4])
                plan.append(step)
    if missing := [node for ident, node in block.items() if ident not in known]:
        raise EditError(
            f"{graph.label(missing[0])} is not joined to {graph.label(block[start])} by wires of the selection; "
            "choose a block that hangs together"
        )
    return plan


def _neighbors(graph: ModelGraph, block: dict[int, NodeRecord], at: int) -> Iterator[Step]:
    for slot, vid in enumerate(block[at].inputs):
        if vid and (producer := graph.values[vid].producer) and producer[0] in block:
            yield at, "up", producer[1], slot, producer[0]
    for out, vid in enumerate(block[at].outputs):
        for use, slot in graph.values[vid].uses if vid else ():
            if use in block:
                yield at, "down", out, slot, use


def _matches(
    graph: ModelGraph, plan: list[Step], signatures: dict[int, tuple[object, ...]], first: dict[int, int]
) -> Iterator[dict[int, int]]:
    """Every way to lay the plan onto the graph; steps with several possibilities are tried one after another."""
    choices = [iter([first])]
    while choices:
        partial = next(choices[-1], None)
        if partial is None:
            choices.pop()
        elif len(choices) > len(plan):
            yield partial
        else:
            choices.append(_onward(graph, plan[len(choices) - 1], signatures, partial))


def _onward(
    graph: ModelGraph, step: Step, signatures: dict[int, tuple[object, ...]], partial: dict[int, int]
) -> Iterator[dict[int, int]]:
    known, way, out, slot, following = step
    node, values, nodes = graph.nodes[partial[known]], graph.values, graph.nodes
    used = set(partial.values())
    if way == "up":
        vid = node.inputs[slot]
        producer = values[vid].producer if vid else None
        possible = [producer[0]] if producer and producer[1] == out else []
    else:
        vid = node.outputs[out]
        possible = sorted((use for use, at in values[vid].uses if at == slot), key=lambda use: nodes[use].label)
    for candidate in possible:
        same_scope = nodes[candidate].scope == node.scope
        if candidate not in used and same_scope and signature(nodes[candidate]) == signatures[following]:
            yield {**partial, following: candidate}


def _is_verified(graph: ModelGraph, block: dict[int, NodeRecord], copy_of: dict[int, int]) -> bool:
    """Whether all wires agree: those inside one to one, those from outside by kind, and the same value to the same."""
    values: dict[int, int] = {}
    back: dict[int, int] = {}
    for ident, node in block.items():
        copy = graph.nodes[copy_of[ident]]
        for ours, theirs in zip([*node.inputs, *node.outputs], [*copy.inputs, *copy.outputs], strict=True):
            if not ours and not theirs:
                continue
            if values.setdefault(ours, theirs) != theirs:
                return False
            if _made_inside(graph, ours, block) and back.setdefault(theirs, ours) != ours:
                return False
            if not _same_kind(graph.values[ours], graph.values[theirs], block, copy_of):
                return False
    return all(
        graph.index.captures(node) == graph.index.captures(graph.nodes[copy_of[ident]])
        for ident, node in block.items()
        if node.bodies
    )


def _made_inside(graph: ModelGraph, value: int, block: dict[int, NodeRecord]) -> bool:
    producer = graph.values[value].producer
    return bool(producer and producer[0] in block)


def _same_kind(ours: ValueRecord, theirs: ValueRecord, block: dict[int, NodeRecord], copy_of: dict[int, int]) -> bool:
    maker, other = ours.producer, theirs.producer
    if maker and maker[0] in block:
        return other == (copy_of[maker[0]], maker[1])
    if other and other[0] in copy_of.values():
        return False
    return _stored_shape(ours) == _stored_shape(theirs)


def _stored_shape(value: ValueRecord) -> tuple[object, ...] | None:
    """(type, dims) of an initializer, None for other values."""
    stored = value.initializer
    if stored is None:
        return None
    sparse = isinstance(stored, onnx.SparseTensorProto)
    return ((stored.values if sparse else stored).data_type, tuple(stored.dims), sparse)
