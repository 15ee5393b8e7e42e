"""Node messages that wait: read in the order and with the content of messages that never wait."""

import random
from collections.abc import Callable

import onnx
import pytest

import onnxlab
from onnxlab.errors import EditError
from onnxlab.graph import edits
from onnxlab.graph.edit.changes import MoveNode
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.index.records import NodeRecord, Scope
from tests.graph.support.models import branches, chain, state
from tests.graph.support.random_edits import EDITS, Draw


def step(graph: ModelGraph, name: str, numbers: tuple[int, int, int], count: int) -> bool:
    """Undo, redo or make an edit; returns whether it was made."""
    if name in ("undo", "redo"):
        return getattr(graph, name)() is not None
    try:
        EDITS[name](Draw(graph, numbers, count))
    except EditError:
        return False
    return True


def messages_are_live(graph: ModelGraph, scope: Scope) -> None:
    for ident, proto in zip(scope.node_ids, scope.proto.node, strict=True):
        assert graph.nodes[ident].proto is proto
        for bodies in graph.nodes[ident].bodies.values():
            for body in bodies:
                messages_are_live(graph, graph.scopes[body])


@pytest.mark.parametrize("seed", range(8))
def test_a_graph_in_which_they_wait_is_the_same(seed: int) -> None:
    rng = random.Random(seed)
    data = branches().SerializeToString()
    waiting, plain = (ModelGraph(onnx.ModelProto.FromString(data), shared=shared) for shared in (False, True))
    names = [*EDITS, *["undo", "redo"] * 8, *["move_node", "insert_node", "insert_node_with_body", "bypass_node"] * 3]
    for count in range(120):
        name, numbers = rng.choice(names), (rng.randrange(99), rng.randrange(99), rng.randrange(99))
        if not plain.nodes:
            break
        assert step(waiting, name, numbers, count) == step(plain, name, numbers, count)
        if rng.random() < 0.15:
            assert waiting.proto.SerializeToString() == plain.proto.SerializeToString()
            messages_are_live(waiting, waiting.main)
            assert state(waiting) == state(plain)
    waiting.travel(0)
    assert waiting.proto.SerializeToString() == data


def bypass(graph: ModelGraph, node: NodeRecord) -> None:
    edits.remove_nodes(graph, [node], bypass=True)


def move(graph: ModelGraph, node: NodeRecord) -> None:
    graph.apply(MoveNode(node.id, 2))


def add(graph: ModelGraph, node: NodeRecord) -> None:
    edits.add_node(graph, onnx.NodeProto(op_type="Neg", input=[node.proto.output[0]], output=["added"]))


@pytest.mark.parametrize("edit", [bypass, move, add])
def test_what_is_taken_back_was_never_done(edit: Callable[[ModelGraph, NodeRecord], None]) -> None:
    graph = ModelGraph(chain(), shared=False)
    nodes = graph.header.graph.node
    messages, names = list(nodes), [proto.name for proto in nodes]
    edit(graph, graph.nodes[graph.main.node_ids[1]])
    assert [proto.name for proto in nodes] == names, "it waits"
    graph.undo()
    assert all(now is before for now, before in zip(graph.proto.graph.node, messages, strict=True))
    graph.redo()
    assert [proto.name for proto in graph.proto.graph.node] == [
        graph.nodes[ident].name for ident in graph.main.node_ids
    ]
    messages_are_live(graph, graph.main)
    graph.undo()
    assert [proto.name for proto in graph.proto.graph.node] == names


def test_a_proto_that_was_handed_out_follows_every_edit() -> None:
    model = onnxlab.load(chain().SerializeToString())
    model.nodes[1].remove(bypass=True)
    proto = model.proto
    for _ in range(2):
        assert len(proto.graph.node) == len(model.nodes)
        model.undo()
    loaded = chain()
    model = onnxlab.load(loaded)
    model.nodes[1].remove(bypass=True)
    assert len(loaded.graph.node) == len(model.nodes)
