"""Inputs, outputs, initializers, constants, metadata and opsets: edited, refused, undone to the same bytes."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxlab.errors import EditError
from onnxlab.model import Model
from tests.graph.edits.test_edits import check_undo
from tests.graph.support.models import branches, chain, state, tensor


@pytest.fixture
def model() -> Model:
    return Model(chain())


def test_dims_types_inputs_and_outputs(model: Model) -> None:
    before, index = model.to_bytes(), state(model.graph)
    x = model.value("x")
    x.set_dim(0, 4)
    x.set_dim(-1, "width")
    x.set_dtype("float16")
    assert str(model.fact("x")) == "float16[4,3,8,width]"
    model.add_input("scale", "float16", [1], position=0)
    model.add_output("r_out", position=0)
    assert [value.name for value in model.inputs] == ["scale", "x"]
    assert [value.name for value in model.outputs] == ["r_out", "y"]
    assert model.proto.graph.output[0].type.HasField("tensor_type")
    for wrong, says in ((9, "no axis 9"), (0, "≥ 0")):
        with pytest.raises(EditError, match=says):
            x.set_dim(wrong, -1)
    with pytest.raises(EditError, match="is no element type; there are float"):
        x.set_dtype("float17")
    with pytest.raises(EditError, match="'x' is read by c but nothing makes it"):
        model.remove_input("x")
    with pytest.raises(EditError, match="is called 'w' already"):
        model.add_input("w", "float32", [1])
    model.remove_input("scale")
    model.remove_output("r_out")
    check_undo(model.graph, before, index)


def test_function_inputs_are_by_position() -> None:
    model = Model(branches())
    before, index = model.to_bytes(), state(model.graph)
    model.add_input("more", scope="local::Twice")
    with pytest.raises(EditError, match="add the new one at the end"):
        model.add_input("first", scope="local::Twice", position=0)
    with pytest.raises(EditError, match="t1 passes 'v' to the function"):
        model.remove_input("local::Twice/v")
    check_undo(model.graph, before, index)


def test_initializer_to_input_and_back(model: Model) -> None:
    before, index = model.to_bytes(), state(model.graph)
    w = model.value("w")
    w.to_input()
    assert w.initializer is None
    assert str(model.fact("w")) == "float32[4,3,1,1]"
    with pytest.raises(EditError, match="has no default; give the array"):
        w.to_initializer()
    with pytest.raises(EditError, match="declared with the shape"):
        w.to_initializer(np.zeros((4, 3), np.float32))
    with pytest.raises(EditError, match="declared float32, the tensor is float64"):
        w.to_initializer(np.zeros((4, 3, 1, 1)))
    w.to_initializer(np.ones((4, 3, 1, 1), np.float32))
    w.to_input(keep_default=True)
    with pytest.raises(EditError, match="declared with the shape"):
        w.array = np.zeros((1,), np.float32)
    w.to_initializer()
    assert not w.is_input
    assert w.array.sum() == 12
    check_undo(model.graph, before, index)


def test_numbers_take_the_type_of_the_initializer(model: Model) -> None:
    model.proto.graph.initializer[0].doc_string = "weights"
    model = Model(model.proto)
    model.value("w").array = [[[[1]], [[2]], [[3]]]] * 4
    assert model.value("w").array.dtype == np.float32
    assert model.value("w").initializer.doc_string == "weights"  # type: ignore[union-attr]
    count = model.add_initializer("count", np.int64(3))
    with pytest.raises(EditError, match=r"holds int64, which cannot say 1.5"):
        count.array = 1.5
    with pytest.raises(EditError, match="takes a NumPy array or TensorProto, got dict"):
        count.array = {}
    with pytest.raises(EditError, match="read by c but nothing makes it"):
        model.remove_initializer("w")
    model.remove_initializer("count")
    assert "count" not in [tensor.name for tensor in model.proto.graph.initializer]


CONSTANTS = {
    "value": numpy_helper.from_array(np.arange(3, dtype=np.int16)),
    "value_float": 1.5, "value_floats": [1.0, 2.0], "value_int": 7, "value_ints": [1, 2],
    "value_string": "a", "value_strings": ["a", "b"],
    "sparse_value": helper.make_sparse_tensor(
        helper.make_tensor("v", TensorProto.FLOAT, [1], [3.0]),
        helper.make_tensor("i", TensorProto.INT64, [1], [2]), [5],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONSTANTS)
def test_constants_become_initializers_and_back(kind: str) -> None:
    nodes = [helper.make_node("Constant", [], ["k"], name="k", **{kind: CONSTANTS[kind]}),
             helper.make_node("Identity", ["k"], ["y"])]  # fmt: skip
    proto = helper.make_model(helper.make_graph(nodes, "g", [], [onnx.ValueInfoProto(name="y")]))
    model = Model(proto)
    before, index = model.to_bytes(), state(model.graph)
    expected = model.run()["y"]
    ident = model.value("k").id
    array = model.value("k").array  # seen: None for weights that are Constants, as Paddle's exporter writes all of them
    np.testing.assert_array_equal(array, expected)
    assert array is not None
    assert not array.flags.writeable
    with pytest.raises(EditError, match=r"only initializers hold data; `producer\.to_initializer\(\)` makes one"):
        model.value("k").array = array
    stored = model.nodes["k"].to_initializer()
    assert stored.id == ident, "the same value"
    np.testing.assert_array_equal(model.run()["y"], expected)
    again = stored.to_constant()
    assert (again.op_type, again.position, again.outputs[0].id) == ("Constant", 0, ident)
    np.testing.assert_array_equal(model.run()["y"], expected)
    check_undo(model.graph, before, index)


def test_a_constant_of_a_function_s_attribute_has_no_array() -> None:
    node = onnx.NodeProto(op_type="Constant", output=["y"])
    node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR, ref_attr_name="weights")
    model = Model(helper.make_model(helper.make_graph([node], "g", [], [onnx.ValueInfoProto(name="y")])))
    assert model.value("y").array is None


def test_texts_of_everything() -> None:
    model = Model(branches())
    before, index = model.to_bytes(), state(model.graph)
    node, value = model.nodes["if/else/exp"], model.value("h")
    for bearer in (model, node, value, model.value("x"), model.value("y"), model.value("if/else/exp_out")):
        bearer.doc_string = "said"
        bearer.metadata["a"] = "1"
        bearer.metadata["b"] = "2"
        bearer.metadata["a"] = "3"
        del bearer.metadata["b"]
        assert (bearer.doc_string, dict(bearer.metadata)) == ("said", {"a": "3"})
    model.graph_doc_string = "graph"
    model.graph_metadata["c"] = "4"
    model.set_field("producer_name", "me")
    assert model.proto.graph.metadata_props[0].value == "4"
    for wrong in (lambda: model.metadata.update(a=1), lambda: model.set_field("ir_version", "x")):  # type: ignore[call-overload]
        with pytest.raises(EditError):
            wrong()
    onnx.checker.check_model(model.proto)
    check_undo(model.graph, before, index)


def test_opsets_are_judged_by_the_nodes() -> None:
    model = Model(branches())
    before, index = model.to_bytes(), state(model.graph)
    model.opsets[""] = 21
    model.opsets["com.microsoft"] = 1
    assert dict(model.opsets) == {"": 21, "local": 1, "com.microsoft": 1}
    del model.opsets["com.microsoft"]
    with pytest.raises(EditError, match="2 nodes use local"):
        del model.opsets["local"]
    check_undo(model.graph, before, index)
    nodes = [helper.make_node("LayerNormalization", ["x", "s"], ["y"], name="ln")]
    graph = helper.make_graph(nodes, "g", [tensor("x", [2, 3]), tensor("s", [3])], [tensor("y", [2, 3])])
    model = Model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    with pytest.raises(EditError, match=r"1 nodes do not fit ai.onnx 16: ln: there is no LayerNormalization in it"):
        model.opsets["ai.onnx"] = 16
    assert model.opsets[""] == 17


def test_no_opset_is_set_that_onnx_does_not_know() -> None:
    model = Model(branches())
    for domain, version in (("", 99), ("ai.onnx", 99), ("ai.onnx.ml", 40), ("ai.onnx.preview.training", 2)):
        with pytest.raises(EditError, match=rf"knows {domain or 'ai.onnx'} up to version \d+, .* give a version up to"):
            model.opsets[domain] = version
    model.opsets["com.example"] = 99
    proto = branches()
    proto.opset_import[0].version = 99
    newer = Model(proto)
    assert newer.opsets[""] == 99
    newer.opsets[""] = 21
    newer.undo()
    assert newer.opsets[""] == 99


def test_defaults_come_and_go(model: Model) -> None:
    from onnxlab.graph import edits

    before, index = model.to_bytes(), state(model.graph)
    conv = model.nodes["c"]
    edits.default_attributes(model.graph, model.graph.nodes[model.nodes["c"].id])
    assert set(conv.attributes) == {"strides"}, "auto_pad said its default"
    edits.default_attributes(model.graph, model.graph.nodes[model.nodes["c"].id], explicit=True)
    assert set(conv.attributes) == {"strides", "auto_pad", "group"}
    check_undo(model.graph, before, index)


def test_tidying() -> None:
    names = ["a", "b", "c", "d", "e"]
    nodes = [
        helper.make_node("Relu", [source], [name], name=name)
        for name, source in zip(names, ["b", "x", "a", "x", "d"], strict=True)
    ]
    proto = helper.make_model(helper.make_graph(nodes, "g", [tensor("x")], [tensor("c")]))
    proto.graph.initializer.append(numpy_helper.from_array(np.zeros(2, np.float32), "unused"))
    proto.graph.value_info.append(tensor("e"))
    proto.functions.append(
        helper.make_function(
            "f", "F", ["v"], ["o"], [helper.make_node("Abs", ["v"], ["o"])], [helper.make_opsetid("", 20)]
        )
    )
    model = Model(proto)
    before, index = model.to_bytes(), state(model.graph)
    assert model.sort_nodes() == 1
    assert [node.name for node in model.nodes] == ["b", "a", "c", "d", "e"]
    assert (model.drop_dead_nodes(), model.drop_unused_initializers(), model.drop_unused_functions()) == (2, 1, 1)
    assert [node.name for node in model.nodes] == ["b", "a", "c"]
    assert not model.proto.graph.value_info
    assert (model.drop_dead_nodes(), len(model.history.labels)) == (0, 4), "nothing to do is no step"
    check_undo(model.graph, before, index)
