"""Models with a planted difference of which is known what became of every value."""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import helper

UNARY = ("Relu", "Sigmoid", "Tanh", "Neg", "Exp", "Abs", "Softplus", "Identity")
BINARY = ("Add", "Mul", "Sub", "Div")
_FLOAT, _INT, _INTS = onnx.AttributeProto.FLOAT, onnx.AttributeProto.INT, onnx.AttributeProto.INTS


def copied(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def renamed_and_shuffled(model: onnx.ModelProto, rng: random.Random) -> tuple[onnx.ModelProto, dict[str, str]]:
    """All values of the main graph under other names, its nodes without names and in another order; the new names."""
    result = copied(model)
    graph = result.graph
    names = {name for node in graph.node for name in node.output}
    names |= {message.name for field in (graph.initializer, graph.input) for message in field}
    listed = sorted(names - {""})
    rng.shuffle(listed)
    table = {name: f"r{number}" for number, name in enumerate(listed)}
    _rename(graph, table, True)
    for field in (graph.initializer, graph.input, graph.value_info):
        for message in field:
            message.name = table.get(message.name, message.name)
    _reorder(graph, _shuffled(graph, rng))
    return result, table


def _rename(graph: onnx.GraphProto, table: Mapping[str, str], outputs: bool = False) -> None:
    """Replace what nodes read, in bodies too, and what bodies return; with `made` what nodes of this graph make."""
    for node in graph.node:
        node.input[:] = [table.get(name, name) for name in node.input]
        if outputs:
            node.name = ""
            node.output[:] = [table.get(name, name) for name in node.output]
        for body in _bodies(node):
            _rename(body, table)
            for output in body.output:
                output.name = table.get(output.name, output.name)
    if outputs:
        for output in graph.output:
            output.name = table.get(output.name, output.name)


def _bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    for body in _bodies(node):
        for inner in body.node:
            yield from _reads(inner)
        yield from (output.name for output in body.output)


def _shuffled(graph: onnx.GraphProto, rng: random.Random) -> list[onnx.NodeProto]:
    """The nodes in a random order in which each comes behind those it reads from."""
    producers = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
    needs = [
        {producers[name] for name in _reads(node) if producers.get(name, at) != at}
        for at, node in enumerate(graph.node)
    ]
    behind = defaultdict(list)
    for at, before in enumerate(needs):
        for position in before:
            behind[position].append(at)
    left = [len(before) for before in needs]
    ready, order = [at for at, count in enumerate(left) if not count], []
    while ready:
        order.append(ready.pop(rng.randrange(len(ready))))
        for at in behind[order[-1]]:
            left[at] -= 1
            if not left[at]:
                ready.append(at)
    return [graph.node[at] for at in order]


def _reorder(graph: onnx.GraphProto, nodes: list[onnx.NodeProto]) -> None:
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def edited(model: onnx.ModelProto, share: float, rng: random.Random) -> tuple[onnx.ModelProto, set[str]]:
    """A share of the nodes edited: attributes, operators, weights, nodes in and out; and the values that are gone."""
    result = copied(model)
    graph = result.graph
    outputs = {output.name for output in graph.output}
    weights = {tensor.name: tensor for tensor in graph.initializer}
    removed: set[int] = set()
    inserted: dict[int, onnx.NodeProto] = {}
    for at in rng.sample(range(len(graph.node)), max(1, int(len(graph.node) * share))):
        node = graph.node[at]
        produced = [name for name in node.output if name]
        inner = len(produced) == 1 and produced[0] not in outputs
        kind = rng.choice(("attribute", "operator", "remove", "insert", "weight"))
        if (kind == "weight" and _perturb(node, weights, rng)) or (kind == "attribute" and _retune(node, rng)):
            continue
        if kind in ("operator", "weight") and _replace(node, rng):
            continue
        if kind == "remove" and inner and node.input and node.input[0] not in weights:
            removed.add(at)
        elif produced and produced[0] not in outputs:
            inserted[at] = helper.make_node(rng.choice(UNARY), [produced[0]], [f"inserted_{at}"])
    _rename(graph, {node.input[0]: node.output[0] for node in inserted.values()})
    bypass: dict[str, str] = {}
    for at in sorted(removed):
        source = graph.node[at].input[0]
        bypass[graph.node[at].output[0]] = bypass.get(source, source)
    _rename(graph, bypass)
    for node in inserted.values():
        node.input[0] = bypass.get(node.input[0], node.input[0])
    nodes = []
    for at, node in enumerate(graph.node):
        nodes += [entry for entry in (None if at in removed else node, inserted.get(at)) if entry is not None]
    _reorder(graph, nodes)
    _drop_dead(graph)
    return result, set(bypass)


def _perturb(node: onnx.NodeProto, weights: Mapping[str, onnx.TensorProto], rng: random.Random) -> bool:
    candidates = [weights[name] for name in node.input if name in weights]
    candidates = [tensor for tensor in candidates if tensor.data_type == onnx.TensorProto.FLOAT and tensor.raw_data]
    if not candidates:
        return False
    tensor = rng.choice(candidates)
    with np.errstate(over="ignore"):
        tensor.raw_data = (np.frombuffer(tensor.raw_data, np.float32) * np.float32(1.01) + np.float32(1e-3)).tobytes()
    return True


def _retune(node: onnx.NodeProto, rng: random.Random) -> bool:
    candidates = [item for item in node.attribute if item.type in (_FLOAT, _INT) or (item.type == _INTS and item.ints)]
    if not candidates:
        return False
    attribute = rng.choice(candidates)
    if attribute.type == _FLOAT:
        attribute.f += 0.5
    elif attribute.type == _INT:
        attribute.i += 1
    else:
        attribute.ints[0] += 1
    return True


def _replace(node: onnx.NodeProto, rng: random.Random) -> bool:
    family = next((family for family in (UNARY, BINARY) if node.op_type in family), None)
    if family is None or node.domain:
        return False
    node.op_type = rng.choice([name for name in family if name != node.op_type])
    del node.attribute[:]
    return True


def _drop_dead(graph: onnx.GraphProto) -> None:
    """Editors leave nothing behind that no output needs."""
    while True:
        read = {output.name for output in graph.output}.union(*map(_reads, graph.node))
        alive = [node for node in graph.node if any(name in read for name in node.output if name)]
        if len(alive) == len(graph.node):
            break
        _reorder(graph, alive)
    for at in range(len(graph.initializer) - 1, -1, -1):
        if graph.initializer[at].name not in read:
            del graph.initializer[at]
