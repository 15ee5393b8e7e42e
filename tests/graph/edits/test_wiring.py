"""Wires and nodes on them: checked before they are drawn, one step each, undone to the same bytes."""

import numpy as np
import onnx
import pytest
from onnx import helper

import onnxlab
from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.model import Model
from tests.graph.edits.test_edits import check_undo
from tests.graph.support.models import branches, chain, state, tensor
from tests.support.oracle import oracle


@pytest.fixture
def model() -> Model:
    return Model(chain())


def test_a_wire_is_refused_with_its_reason(model: Model) -> None:
    assert model.can_connect("x", "r", 0) is None
    assert "depend on itself" in str(model.can_connect("y", "c", 0))
    assert "depend on itself" in str(model.can_connect("r_out", "r", 0))
    assert "takes at most 1 inputs; there is no slot 1" in str(model.can_connect("x", "r", 1))
    with pytest.raises(EditError, match="depend on itself"):
        model.connect("y", "c", 0)
    model.connect("x", "r", 0)
    assert model.nodes["r"].inputs[0].name == "x"


def test_types_and_scopes_forbid_wires() -> None:
    model = Model(branches())
    assert "'flag' there" in str(model.can_connect("flag", "if/else/exp", 0))
    assert "expected" in str(model.can_connect("flag", "if/else/exp", 0))
    assert "not visible" in str(model.can_connect("if/else/exp_out", "t2", 0))
    assert model.can_connect("x", "if/then/inner/then/neg", 0) is None
    assert "depend on itself" in str(model.can_connect("chosen", "if/then/inner/then/neg", 0))


def test_targets_agree_with_single_questions_and_with_what_happens() -> None:
    model = onnxlab.load()
    graph = model.graph
    for name in ("block1/add_out", "image", "probabilities"):
        value = graph.values[model.value(name).id]
        targets = edits.Targets(graph, value)
        for node in list(graph.nodes.values()):
            refused = targets.refusal(node, 0)
            assert refused == edits.can_connect(graph, value, node, 0)
            try:
                edits.set_input(graph, node, 0, name)
            except EditError:
                assert refused
            else:
                assert not refused
                graph.undo()


def test_insert_on_one_wire_and_behind_a_value(model: Model) -> None:
    before, index = model.to_bytes(), state(model.graph)
    added = model.nodes["a"].insert_before(1, "Cast", to=onnx.TensorProto.FLOAT)
    assert [value.name for value in model.nodes["a"].inputs] == ["r_out", added.outputs[0].name]
    assert model.nodes["r"].inputs[0].name == "c_out", "the other reader stays"
    last = model.value("y").insert_after("Neg")
    assert model.value("y").producer == last
    assert model.nodes["a"].outputs[0].name == "y_before_Neg"
    assert [out.name for out in model.outputs] == ["y"]
    model.value("w").insert_after("Identity")
    assert model.nodes["c"].inputs[1].name == "w_Identity"
    onnx.checker.check_model(model.proto, full_check=True)
    check_undo(model.graph, before, index)


def test_a_captured_value_is_read_behind_the_new_node() -> None:
    model = Model(branches())
    before, index = model.to_bytes(), state(model.graph)
    model.value("h").insert_after("Abs")
    assert model.nodes["if/then/inner/then/neg"].inputs[0].name == "h_Abs"
    assert model.nodes["if/else/exp"].inputs[0].name == "h_Abs"
    check_undo(model.graph, before, index)


def test_replace_uses_of_some_readers(model: Model) -> None:
    before, index = model.to_bytes(), state(model.graph)
    model.value("r_out").replace_uses("c_out")
    assert [value.name for value in model.nodes["a"].inputs] == ["c_out", "c_out"]
    with pytest.raises(EditError, match="depend on itself"):
        model.value("c_out").replace_uses("r_out", [model.nodes["r"]])
    check_undo(model.graph, before, index)


def test_duplicates_read_each_other_and_keep_bodies() -> None:
    model = Model(branches())
    before, index = model.to_bytes(), state(model.graph)
    copies = model.duplicate(["t1", "if"])
    assert [copy.name for copy in copies] == ["t1_copy", "if_copy"]
    assert model.nodes["if_copy/else/exp"].inputs[0].name == "h_copy", "the capture follows"
    assert model.nodes["if/else/exp"].inputs[0].name == "h"
    onnx.checker.check_model(model.proto)
    check_undo(model.graph, before, index)


def test_an_operator_is_replaced_with_what_survives(model: Model) -> None:
    before, index = model.to_bytes(), state(model.graph)
    conv = model.nodes["c"]
    conv.attributes["group"] = 1
    conv.replace("ConvTranspose", output_padding=[0, 0])
    assert set(conv.attributes) == {"strides", "auto_pad", "group", "output_padding"}
    with pytest.raises(EditError, match=r"has no operator 'Conf'. Did you mean 'Conv'"):
        conv.replace("Conf")
    with pytest.raises(EditError, match=r"does not import the operator domain 'com.microsoft'"):
        conv.replace("FusedConv", "com.microsoft")
    with pytest.raises(EditError, match="has 2 inputs, its operator takes 1"):
        conv.replace("MaxPool", kernel_shape=[1, 1])
    check_undo(model.graph, before, index)


def test_edges_of_a_selection_of_names() -> None:
    graph = ModelGraph(chain())
    with pytest.raises(EditError, match="reads nothing, so there is no wire"):
        edits.insert_on_edge(graph, graph.nodes[graph.resolve_node("r")], 3, helper.make_node("Neg", [], []))
    with pytest.raises(EditError, match="no nodes were given"):
        edits.duplicate_nodes(graph, [])


def test_inserted_nodes_compute(model: Model) -> None:
    feeds = {"x": np.random.default_rng(0).random((2, 3, 8, 8), np.float32)}
    model.value("y").insert_after("Neg")
    (expected,) = oracle()(chain().SerializeToString(), feeds).values()
    (actual,) = oracle()(model.to_bytes(), feeds).values()
    np.testing.assert_array_equal(actual, -expected)


def hidden() -> onnx.ModelProto:
    """A branch that defines `a` itself, which hides the `a` around it: the checker forbids it, files have it."""
    then = helper.make_graph(
        [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Add", ["b", "a"], ["t"], name="in_then")],
        "t", [], [tensor("t", [2])],
    )  # fmt: skip
    other = helper.make_graph([helper.make_node("Neg", ["b"], ["t"])], "e", [], [tensor("t", [2])])
    nodes = [
        helper.make_node("Abs", ["x"], ["a"], name="abs"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("If", ["flag"], ["y"], name="if", then_branch=then, else_branch=other),
    ]
    flag = helper.make_tensor_value_info("flag", onnx.TensorProto.BOOL, [])
    graph = helper.make_graph(nodes, "g", [tensor("x", [2]), flag], [tensor("y", [2])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def test_a_hidden_name_is_never_read_by_mistake() -> None:
    model = Model(hidden())
    before = model.to_bytes()
    for edit in (lambda: model.nodes["relu"].remove(bypass=True), lambda: model.value("b").replace_uses("a")):
        with pytest.raises(EditError, match="'a' is not visible from in_then, which reads 'b'"):
            edit()
        assert model.to_bytes() == before
    model.value("b").replace_uses("a", [model.nodes["if/else/t"]])
    assert model.nodes["if/else/t"].inputs == (model.value("a"),)


def test_a_bypass_keeps_the_input_that_is_typed_like_the_output() -> None:
    nodes = [
        helper.make_node("Greater", ["x", "x"], ["mask"]),
        helper.make_node("Where", ["mask", "x", "z"], ["w"], name="where"),
        helper.make_node("Neg", ["w"], ["y"], name="neg"),
    ]
    graph = helper.make_graph(nodes, "g", [tensor("x", [2]), tensor("z", [2])], [tensor("y", [2])])
    model = Model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))
    model.nodes["where"].remove(bypass=True)
    assert model.nodes["neg"].inputs[0].name == "x", "not the condition"
    model = Model(branches())
    with pytest.raises(EditError, match="if cannot be bypassed: it has no input to put in the place of 'chosen'"):
        model.nodes["if"].remove(bypass=True)


def test_nodes_are_added_with_handles_and_fresh_outputs() -> None:
    model = Model(chain())
    added = model.add_node("TopK", [model.value("r_out"), model.add_initializer("k", np.array([1]))], name="best")
    assert [value.name for value in added.outputs] == ["best_out0", "best_out1"], "as many as it must have"
    twice = model.add_node("Relu", [added.outputs[0]])
    assert twice.outputs[0].name == "Relu_out"
    with pytest.raises(EditError, match="values are given as names or handles, got 3"):
        model.add_node("Relu", [3])
    with pytest.raises(NameLookupError, match="is a node, not a value"):
        model.connect(added, twice, 0)
    with pytest.raises(NameLookupError, match="belongs to another model"):
        model.connect(Model(chain()).value("x"), twice, 0)
    twice.remove()
    with pytest.raises(NameLookupError, match="not in the model any more"):
        model.connect("x", twice, 0)


def test_a_single_name_stands_for_a_list_of_one() -> None:
    model = onnxlab.load()
    node = model.add_node("Relu", "logits", "kept")
    assert [value.name for value in node.inputs] == ["logits"]
    assert [value.name for value in node.outputs] == ["kept"]
    node.set_inputs(model.value("image"))
    node.set_outputs("other")
    assert list(node.proto.input) == ["image"]
    assert list(node.proto.output) == ["other"]
