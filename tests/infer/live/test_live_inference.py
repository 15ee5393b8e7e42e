"""Live inference: facts follow edits, retract, come back on undo, and nothing is written into the protos."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxlab.errors import EditError
from onnxlab.graph import edits
from onnxlab.graph.edit.changes import SetField
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.infer.walk.walker import Walker
from onnxlab.shapes import UNKNOWN
from tests.graph.support.models import branches, chain
from tests.infer.support.models import fact, parsed, shape_chain


@pytest.fixture
def live() -> tuple[ModelGraph, Inference, list[dict]]:
    graph = shape_chain()
    inference = Inference(graph)
    deltas: list[dict] = []
    graph.followers.append(lambda commit: deltas.append(inference.follow(commit)))
    return graph, inference, deltas


def texts(graph: ModelGraph, inference: Inference) -> dict[str, str]:
    return {name: str(inference.fact(vid)) for name, vid in graph.main.names.items()}


def test_a_computed_reshape_resolves_to_symbols() -> None:
    shown = texts(graph := shape_chain(), Inference(graph))
    assert shown["target"] == "int64[2]"
    assert shown["flat"] == "float32[batch*seq,64]"
    assert shown["y"] == "float32[batch*seq,32]"
    assert shown["z"] == "float32[z.0,32]"
    assert shown["w"] == "float32[batch*seq,32]"
    assert shown["f"] == "float32[batch*seq,16]"


def test_values_in_bodies_and_functions_have_facts() -> None:
    graph = shape_chain()
    inference = Inference(graph)
    inside = {graph.values[vid].name: str(f) for vid, f in inference.facts.items()}
    assert inside["t"] == "float32[2*batch*seq,32]"
    assert inside["v2"] == "float32[batch*seq,32]"
    assert inside["left"] == "float32[batch*seq,16]"


def test_facts_retract_when_an_input_changes(live: tuple[ModelGraph, Inference, list[dict]]) -> None:
    graph, inference, deltas = live
    before = dict(inference.facts)
    edits.set_shape(graph, graph.values[graph.resolve_value("x")], [2, "n", 32])
    assert texts(graph, inference)["flat"] == "float32[2*n,32]"
    assert inference.fact(graph.resolve_value("m")).shape is None
    (problem,) = [d for d in inference.diagnostics if d.severity == "error"]
    assert (problem.expected, problem.found) == ("32", "64")
    assert graph.nodes[problem.node].op_type == "MatMul"
    assert {graph.values[vid].name for vid in deltas[-1]} >= {"x", "batch", "flat", "m", "y", "z", "w", "f", "left"}
    graph.undo()
    assert dict(inference.facts) == before
    assert all(inference.facts[vid] is value for vid, value in before.items())
    assert not [d for d in inference.diagnostics if d.severity == "error"]


def test_an_edit_stops_where_nothing_changes(live: tuple[ModelGraph, Inference, list[dict]]) -> None:
    graph, inference, deltas = live
    before = inference._frame.evaluated
    relu = graph.values[graph.resolve_value("y")].producers[0][0]
    edits.set_operator(graph, graph.nodes[relu], "Sigmoid")
    assert deltas[-1] == {}
    assert inference._frame.evaluated - before == 1


def test_edits_inside_bodies_and_functions_reach_outside(live: tuple[ModelGraph, Inference, list[dict]]) -> None:
    graph, inference, deltas = live
    then = next(node for node in graph.nodes.values() if node.op_type == "Concat" and graph.scopes[node.scope].owner)
    edits.set_attribute(graph, then, "axis", 1)
    assert texts(graph, inference)["z"] == "float32[batch*seq,z.1]"
    constant = next(n for n in graph.nodes.values() if n.op_type == "Constant" and graph.scopes[n.scope].is_function)
    edits.set_attribute(graph, constant, "value_ints", [32 - 8, 8])
    assert "f" in {graph.values[vid].name for vid in deltas[-1]}
    assert inference.fact(graph.resolve_value("f")).shape is None
    graph.undo()
    graph.undo()
    assert texts(graph, inference) == texts(shape_chain(), Inference(shape_chain())) | texts(graph, inference)


def test_nothing_is_written_into_the_protos(live: tuple[ModelGraph, Inference, list[dict]]) -> None:
    graph, _inference, _deltas = live
    before = graph.proto.SerializeToString()
    edits.set_shape(graph, graph.values[graph.resolve_value("x")], [2, 3, 64])
    graph.undo()
    assert graph.proto.SerializeToString() == before


def test_declared_types_do_not_feed_inference_but_conflicts_are_reported() -> None:
    graph = ModelGraph(chain())
    inference = Inference(graph)
    assert str(inference.fact(graph.resolve_value("r_out"))) == "float32[N,4,4,4]"
    inference_of = {**texts(graph, inference)}
    assert inference_of["y"] == "float32[N,4,4,4]"
    graph.followers.append(inference.follow)
    edits.set_attribute(graph, graph.nodes[graph.resolve_node("c")], "strides", [1, 1])
    assert str(inference.fact(graph.resolve_value("r_out"))) == "float32[N,4,8,8]"
    conflicts = [d for d in inference.diagnostics if d.code == "declared-dim"]
    assert [graph.values[d.value].name for d in conflicts] == ["y", "r_out"] or len(conflicts) == 2
    assert conflicts[0].expected == "float32[N,4,4,4]"
    assert conflicts[0].found == "float32[N,4,8,8]"
    graph.undo()
    assert inference.diagnostics == []


def test_an_unknown_operator_has_the_declared_type() -> None:
    graph = parsed("agraph (float[2] x) => (float[b, ?] y, z) { y = Odd(x)  z = Relu(y) }")
    inference = Inference(graph)
    assert str(inference.fact(graph.resolve_value("z"))) == "float32[b,y.1]"
    (problem,) = inference.diagnostics
    assert (problem.severity, problem.code) == ("info", "unknown-operator")


def test_opset_changes_are_followed() -> None:
    graph = ModelGraph(branches())
    inference = Inference(graph)
    graph.followers.append(inference.follow)
    imports = (helper.make_opsetid("", 12), helper.make_opsetid("local", 1))
    assert str(inference.fact(graph.resolve_value("y"))) == "float32[2]"
    graph.apply(SetField(("model", 0), "opset_import", imports))
    assert str(inference.fact(graph.resolve_value("y"))) == "float32[2]"
    graph.undo()
    assert dict(inference.facts) == dict(Inference(graph).facts)


def test_follow_survives_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ModelGraph(chain())
    inference = Inference(graph)
    graph.followers.append(inference.follow)
    monkeypatch.setattr(inference, "_update", lambda touched: 1 / 0)
    edits.set_attribute(graph, graph.nodes[graph.resolve_node("c")], "strides", [1, 1])
    assert str(inference.fact(graph.resolve_value("y"))) == "float32[N,4,8,8]"


def test_a_rule_that_fails_is_a_diagnostic_or_gives_way_to_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxlab.ops.base import registry

    def broken(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(registry, "find_rule", lambda *key: registry.ShapeRule(*key, broken))  # type: ignore[call-arg]
    monkeypatch.setattr("onnxlab.ops.find_rule", lambda *key: registry.ShapeRule(*key, broken))  # type: ignore[call-arg]
    graph = ModelGraph(chain())
    assert str(fact(graph, "y")) == "float32[N,4,4,4]"  # by onnx's own rules


def test_an_incomplete_graph_is_inferred_as_far_as_it_goes() -> None:
    model = chain()
    del model.graph.input[:]
    inference = Inference(graph := ModelGraph(model))
    assert inference.fact(graph.resolve_value("x")) is UNKNOWN
    assert {d.code for d in inference.diagnostics if d.severity == "error"} == {"undefined-value"}
    assert inference.fact(graph.resolve_value("w")).shape == (4, 3, 1, 1)


def test_declaration_states_what_is_known() -> None:
    graph = shape_chain()
    info = Inference(graph).declaration(graph.resolve_value("flat"))
    assert info.name == "flat"
    dims = info.type.tensor_type.shape.dim
    assert [dims[0].dim_param, dims[1].dim_value] == ["batch*seq", 64]


def test_a_cyclic_file_is_answered() -> None:
    node = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    model = helper.make_model(helper.make_graph(node, "cycle", [x], [onnx.ValueInfoProto(name="b")]))
    graph = ModelGraph(model)
    inference = Inference(graph)
    graph.followers.append(inference.follow)
    edits.rename_value(graph, graph.values[graph.resolve_value("a")], "c")
    assert "c" in graph.main.names


UNDONE = {
    "shape": lambda graph: edits.set_shape(graph, graph.values[graph.resolve_value("x")], [2, "n", 64]),
    "wire": lambda graph: edits.set_input(graph, _first(graph, "MatMul"), 0, "x"),
    "operator": lambda graph: edits.set_operator(graph, _first(graph, "Relu"), "Shape"),
    "removal": lambda graph: edits.remove_nodes(graph, [_first(graph, "Relu")], bypass=True),
    "body": lambda graph: edits.set_attribute(graph, _first(graph, "Concat", owned=True), "axis", 1),
    "name": lambda graph: edits.rename_value(graph, graph.values[graph.resolve_value("m")], "other"),
}


def _first(graph: ModelGraph, op_type: str, owned: bool = False) -> Any:
    nodes = graph.nodes.values()
    return next(n for n in nodes if n.op_type == op_type and bool(graph.scopes[n.scope].owner) == owned)


@pytest.mark.parametrize("edit", UNDONE)
def test_undo_infers_no_node_outside_of_the_edit_and_its_cone(edit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = shape_chain()
    inference = Inference(graph)
    before = dict(inference.facts)
    inferred: set[int] = set()
    touched: set[int] = set()
    infer_node = Walker.infer_node

    def counted(walker: Walker, frame: Any, node: Any) -> Any:
        inferred.add(node.id)
        return infer_node(walker, frame, node)

    def follow(commit: Any) -> None:
        touched.update(commit.touched.nodes | commit.touched.removed_nodes)
        inference.follow(commit)

    graph.followers.append(follow)
    monkeypatch.setattr(Walker, "infer_node", counted)
    UNDONE[edit](graph)
    by_edit = set(inferred)
    assert by_edit
    inferred.clear()
    graph.undo()
    assert inferred <= by_edit | touched
    assert len(inferred) < len(graph.nodes)
    assert all(inference.facts[vid] is known for vid, known in before.items())


def test_a_replaced_tensor_is_read_again_by_every_inference() -> None:
    graph = parsed("agraph (float[4, 6] x) => (y) <int64[2] s = {3, -1}> { y = Reshape(x, s) }")
    assert str(Inference(graph).fact(graph.resolve_value("y"))) == "float32[3,8]"
    edits.set_initializer(graph, graph.values[graph.resolve_value("s")], np.array([2, -1]))
    assert str(Inference(graph).fact(graph.resolve_value("y"))) == "float32[2,12]"
    graph.undo()
    assert str(Inference(graph).fact(graph.resolve_value("y"))) == "float32[3,8]"


def test_bodies_that_are_not_walked_again_leave_nothing() -> None:
    graph = parsed(
        "agraph (float[4] x, bool c) => (y) <bool no = {0}> { y = If (c) <"
        "then_branch = a () => (float[n] t) { t = Relu(x) }, else_branch = b () => (float[n] e) { e = Neg(x) }> }"
    )
    inference = Inference(graph)
    graph.followers.append(inference.follow)
    inside = next(scope.names["t"] for scope in graph.scopes.values() if "t" in scope.names)
    assert str(inference.fact(inside)) == "float32[4]"
    (owner,) = (node for node in graph.nodes.values() if node.op_type == "If")
    edits.set_input(graph, owner, 0, "no")
    assert inference.facts == Inference(graph).facts


def test_a_call_follows_its_function_after_an_edit_of_it_was_refused() -> None:
    graph = parsed("""
        agraph (float[2, 3] x) => (y) { h = local.Twice(x)  y = Relu(h) }
        <opset_import: ["" : 18], domain: "local"> Twice (a) => (b) { b = Concat<axis = 0>(a, a) }
    """)
    inference = Inference(graph)
    graph.followers.append(inference.follow)
    call, function = graph.main.node_ids[0], graph.scopes[graph.index.function_ids[0]]
    with pytest.raises(EditError, match="nothing makes it"), graph.edit():
        edits.set_outputs(graph, graph.nodes[call], ["other"])
    edits.set_attribute(graph, graph.nodes[function.node_ids[0]], "axis", 1)
    assert str(fact(graph, "y", inference)) == "float32[2,6]"
    assert inference.facts == Inference(graph).facts
