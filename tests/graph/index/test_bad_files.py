"""Files with faults open, in linear time, and can be mended by edits; what cannot be undone is not done."""

import time
from collections.abc import Callable

import onnx
import pytest
from onnx import TensorProto, helper

from onnxlab.errors import EditError
from onnxlab.graph import edits
from onnxlab.graph.edit.changes import (
    RemoveEntry,
    RemoveFormal,
    RemoveNode,
    RenameValue,
    SetAttribute,
    SetField,
    SetInputs,
    SetOutputs,
)
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.handles.handles import Nodes
from tests.graph.support.models import nameless, tensor


def model(nodes: list[onnx.NodeProto], output: str = "y", **fields: object) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "faulty", [tensor("x", [2])], [tensor(output, [2])], **fields)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def node(op_type: str, inputs: list[str], outputs: list[str], name: str = "", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, outputs, name=name, **attributes)


def cycle() -> onnx.ModelProto:
    return model([node("Add", ["x", "b"], ["a"], "one"), node("Neg", ["a"], ["b"], "two"), node("Abs", ["b"], ["y"])])


def self_loop() -> onnx.ModelProto:
    return model([node("Add", ["x", "y"], ["y"], "one")])


def two_producers() -> onnx.ModelProto:
    return model([quick("x", "y", name) for name in ("one", "two", "three")])


def undefined_input() -> onnx.ModelProto:
    return model([node("Add", ["x", "nowhere"], ["y"], "one")])


def unsorted() -> onnx.ModelProto:
    return model([node("Abs", ["a"], ["y"], "two"), node("Neg", ["x"], ["a"], "one")])


def equal_names() -> onnx.ModelProto:
    return model([node("Neg", ["x"], ["a"], "same"), node("Neg", ["a"], ["b"], "same"), node("Neg", ["b"], ["y"])])


def two_initializers() -> onnx.ModelProto:
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [1], [value]) for value in (1.0, 2.0, 3.0)]
    return model([node("Add", ["x", "w"], ["y"], "one")], initializer=weights)


def two_inputs() -> onnx.ModelProto:
    proto = model([node("Neg", ["x"], ["y"], "one")])
    proto.graph.input.append(tensor("x", [3]))
    return proto


def two_attributes() -> onnx.ModelProto:
    """Of one name, graphs among them."""
    bodies = [
        helper.make_graph([node("Neg", ["x"], [f"o{number}"])], "b", [], [tensor(f"o{number}")]) for number in range(3)
    ]
    proto = model([node("If", ["x"], ["y"], "one", then_branch=bodies[0], else_branch=bodies[1])])
    extra = proto.graph.node[0].attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH)
    extra.g.CopyFrom(bodies[2])
    return proto


def no_utf8() -> onnx.ModelProto:
    data = model([node("Neg", ["x"], ["AAA"], "BBB"), node("Abs", ["AAA"], ["y"])]).SerializeToString()
    return onnx.ModelProto.FromString(data.replace(b"AAA", b"\xffAA").replace(b"BBB", b"\xfeBB"))


Mend = Callable[[ModelGraph], None]
BAD: list[tuple[Callable[[], onnx.ModelProto], Mend]] = [
    (cycle, lambda graph: edits.set_input(graph, graph.nodes[Nodes(graph)["one"].id], 1, "x")),
    (self_loop, lambda graph: edits.set_input(graph, graph.nodes[Nodes(graph)["one"].id], 1, "x")),
    (two_producers, lambda graph: graph.apply(RemoveNode(Nodes(graph)["one"].id))),
    (two_producers, lambda graph: graph.apply(SetOutputs(Nodes(graph)["two"].id, ("other",)))),
    (undefined_input, lambda graph: edits.set_input(graph, graph.nodes[Nodes(graph)["one"].id], 1, "x")),
    (unsorted, lambda graph: edits.rename_value(graph, graph.values[graph.resolve_value("a")], "b")),
    (equal_names, lambda graph: edits.rename_node(graph, graph.nodes[graph.main.node_ids[0]], "other")),
    (two_initializers, lambda graph: graph.apply(RemoveEntry(graph.main.id, "initializer", 1))),
    (two_inputs, lambda graph: graph.apply(RemoveFormal(graph.main.id, "input", 0))),
    (two_attributes, lambda graph: graph.apply(SetAttribute(graph.main.node_ids[0], "then_branch", None))),
    (two_attributes, lambda graph: graph.apply(SetAttribute(graph.main.node_ids[0], "then_branch", None, 2))),
    (no_utf8, lambda graph: graph.apply(RenameValue(graph.nodes[graph.main.node_ids[0]].outputs[0], "good"))),
    (no_utf8, lambda graph: graph.apply(SetInputs(graph.main.node_ids[1], ("x",)))),
    (no_utf8, lambda graph: graph.apply(SetField(("node", graph.main.node_ids[0]), "name", "good"))),
]


@pytest.mark.parametrize(("build", "mend"), [pytest.param(*fault, id=fault[0].__name__) for fault in BAD])
def test_faults_are_looked_at_and_mended(build: Callable[[], onnx.ModelProto], mend: Mend) -> None:
    graph = ModelGraph(build())
    before = graph.proto.SerializeToString()
    assert graph.nx().number_of_nodes() == len(graph.proto.graph.node)
    assert sorted(graph.index.topological(graph.main)) == sorted(graph.main.node_ids)
    graph.snapshot()
    mend(graph)
    after = graph.proto.SerializeToString()
    assert after != before
    assert nameless(graph) == nameless(ModelGraph(onnx.ModelProto.FromString(after)))
    graph.undo()
    assert graph.proto.SerializeToString() == before
    assert nameless(graph) == nameless(ModelGraph(onnx.ModelProto.FromString(before)))
    graph.redo()
    assert graph.proto.SerializeToString() == after


def test_an_unsorted_file_stays_as_it_is_and_new_faults_are_refused() -> None:
    graph = ModelGraph(unsorted())
    two = Nodes(graph)["two"]
    edits.rename_node(graph, graph.nodes[two.id], "renamed")
    assert [node.name for node in graph.proto.graph.node] == ["renamed", "one"]
    with pytest.raises(EditError, match="would depend on itself"):
        edits.set_input(graph, graph.nodes[Nodes(graph)["one"].id], 0, "y")


def test_a_third_producer_is_refused_where_there_are_two() -> None:
    graph = ModelGraph(two_producers())
    with pytest.raises(EditError, match="every value has one producer"):
        edits.add_node(graph, node("Log", ["x"], ["y"]))


def weights(count: int) -> list[onnx.TensorProto]:
    return [onnx.TensorProto(name=f"w{i}", data_type=1, dims=[1], float_data=[1.0]) for i in range(count)]


def negations(count: int) -> list[onnx.NodeProto]:
    return [quick(f"v{i}" if i else "x", f"v{i + 1}") for i in range(count)]


def quick(read: str, output: str, name: str = "") -> onnx.NodeProto:
    return onnx.NodeProto(op_type="Neg", input=[read], output=[output], name=name)


MANY: dict[str, Callable[[int], onnx.ModelProto]] = {
    "unused initializers": lambda count: model([quick("x", "y")], initializer=weights(50_000)),
    "inputs of a node": lambda count: model([node("Concat", ["x"] * count, ["y"], axis=0)]),
    "different inputs": lambda count: model(
        [node("Sum", [f"w{i}" for i in range(count)], ["y"])], initializer=weights(count)
    ),
    "readers of a value": lambda count: model([quick("x", f"y{i}" if i else "y") for i in range(count)]),
    "producers of a value": lambda count: model([quick("x", "y") for _ in range(count)]),
    "nodes backward": lambda count: model(negations(count)[::-1], f"v{count}"),
    "a cycle": lambda count: model([*negations(count), quick(f"v{count}", "v1")], "v1"),
    "undefined values": lambda count: model([quick(f"u{i}", f"y{i}" if i else "y") for i in range(count)]),
    "equal names": lambda count: model([quick("x", f"y{i}" if i else "y", "same") for i in range(count)]),
}
"""Models of a size in which something is far from usual."""


@pytest.mark.parametrize("kind", list(MANY))
def test_time_is_linear(kind: str) -> None:
    """Opening and two edits in a second or two; anything quadratic would take minutes."""
    proto = MANY[kind](20_000 if kind == "inputs of a node" else 4_000)
    start = time.perf_counter()
    graph = ModelGraph(proto)
    graph.nx()
    first = graph.nodes[graph.main.node_ids[0]]
    edits.rename_node(graph, first, "renamed")
    edits.rename_value(graph, graph.values[graph.main.inputs[0]], "renamed")
    graph.undo()
    graph.undo()
    assert time.perf_counter() - start < 30, "no measure: it would be minutes"


def test_names_of_ten_megabytes() -> None:
    long = "n" * 10_000_000
    graph = ModelGraph(model([node("Neg", ["x"], [long], long), node("Neg", [long], ["y"])]))
    edits.rename_value(graph, graph.values[graph.resolve_value(long)], "short")
    edits.rename_node(graph, graph.nodes[graph.main.node_ids[0]], "short")
    assert len(graph.proto.SerializeToString()) < 1000


def test_bodies_nested_a_hundred_deep() -> None:
    """The innermost reads `x` of the main graph. Protobuf reads no file that is nested so deep; a proto can be."""
    proto = helper.make_model(helper.make_graph([], "main", [tensor("x")], []))
    scope = proto.graph
    for level in range(100):
        outer = scope.node.add(op_type="If", input=["c"], output=[f"o{level}"])
        scope = outer.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g
    scope.node.add(op_type="Neg", input=["x"], output=["o"])
    graph = ModelGraph(proto)
    x = graph.resolve_value("x")
    edits.rename_value(graph, graph.values[x], "renamed")
    assert scope.node[0].input[0] == "renamed"
    assert graph.index.captures(graph.nodes[graph.main.node_ids[0]]).count(x) == 1
    assert len(graph.scope_path(list(graph.scopes.values())[-1]).split("/")) == 200
    graph.undo()
    assert scope.node[0].input[0] == "x"


def test_an_edit_beside_a_fault_that_was_there_is_made() -> None:
    graph = ModelGraph(model([node("Relu", ["x"], ["a"], "bad", unknown=1), node("Neg", ["a"], ["y"], "good")]))
    before, a = graph.proto.SerializeToString(), graph.values[graph.main.names["a"]]
    added = edits.insert_after(graph, a, onnx.NodeProto(op_type="Abs", input=[""], name="added"))
    bad = graph.nodes[graph.resolve_node("bad")]
    assert graph.nodes[added.id] is added, "a record that an edit returns is the one in the model"
    assert graph.values[a.id] is a
    edits.rename_node(graph, bad, "still bad")
    with pytest.raises(EditError, match="has no attribute 'other'"):
        graph.apply(SetAttribute(bad.id, "other", onnx.helper.make_attribute("other", 1)))
    after = graph.proto.SerializeToString()
    assert [node.name for node in graph.proto.graph.node] == ["still bad", "added", "good"]
    graph.travel(0)
    assert graph.proto.SerializeToString() == before
    graph.travel(2)
    assert graph.proto.SerializeToString() == after


def test_a_new_node_without_neighbors_has_a_rank_in_an_unsorted_file() -> None:
    graph = ModelGraph(model([node("Neg", ["a"], ["y"], "second"), node("Abs", ["x"], ["a"], "first")]))
    assert graph.index.rank(graph.nodes[graph.resolve_node("second")]) == 1
    alone = edits.add_node(graph, node("Sign", ["x"], ["alone"]))
    edits.remove_nodes(graph, [alone])
    assert len(graph.nodes) == 2
