"""Checks of element types, of flags, and of what onnx alone refuses."""

import onnx
import pytest
from onnx import helper

import onnxlab
from onnxlab.attribute_choices import FLAGS
from tests.hostile.bases import node_cases


def test_what_onnx_alone_refuses_is_a_warning() -> None:
    reshape = helper.make_node("Reshape", ["x", "s"], ["y"])
    infos = [helper.make_tensor_value_info("x", 1, [2, 3]), helper.make_tensor_value_info("s", 7, [4, "k"])]
    graph = helper.make_graph([reshape], "g", infos, [helper.make_tensor_value_info("y", 1, [3, 2])])
    model = onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    (problem,) = model.check()
    assert (problem.code, problem.severity, problem.node) == ("refused-by-onnx", "warning", model.nodes[0].id)
    assert "shape input must be 1D tensor" in problem.message
    assert model.check(types=False) == []
    assert [item.code for item in onnxlab.check(model.proto)] == ["refused-by-onnx"]


@pytest.mark.parametrize("elem_type", [0, 99, -1, 2**31 - 1])
def test_element_types_that_do_not_exist(elem_type: int) -> None:
    for where in ("input", "output"):
        graph = helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])], "g",
            [helper.make_tensor_value_info(name, 1, [2]) for name in ("x", "idle")], [onnx.ValueInfoProto(name="y")],
        )  # fmt: skip
        graph.output[0].type.CopyFrom(graph.input[0].type)
        getattr(graph, where)[-1].type.tensor_type.elem_type = elem_type
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        assert "value-type-unknown" in [item.code for item in onnxlab.check(proto)]


def test_element_types_inside_of_others() -> None:
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [], [onnx.ValueInfoProto(name="y")])
    graph.input.add(name="x").type.sequence_type.elem_type.map_type.key_type = 7
    graph.input[0].type.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = 99
    graph.output[0].type.opaque_type.name = "thing"
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    codes = [item.code for item in onnxlab.check(proto)]
    assert "value-type-unknown" in codes
    assert "value-type-opaque" in codes


def test_a_sequence_says_what_its_elements_are() -> None:
    def refused(model: onnx.ModelProto) -> list[str]:
        with pytest.raises(Exception, match=r"elem_type|value case|type"):
            onnx.checker.check_model(model, full_check=True)
        return [problem.code for problem in onnxlab.check(model) if problem.severity == "error"]

    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20]> g (seq(float[4]) x) => (seq(float[4]) y) { y = Identity (x) }'
    )
    assert not [problem for problem in onnxlab.check(model) if problem.severity == "error"]
    model.graph.input[0].type.sequence_type.ClearField("elem_type")
    assert refused(model) == ["value-type"]
    model.graph.input[0].type.sequence_type.elem_type.SetInParent()
    assert refused(model) == ["value-type"]


def test_a_flag_is_0_or_1() -> None:
    def warned(largest: int) -> list[str]:
        model = onnx.parser.parse_model(
            '<ir_version: 9, opset_import: ["" : 20]> g (float[4] x, int64[1] k) => (float[n] y, int64[n] i) '
            f"{{ y, i = TopK <largest = {largest}, axis = -1> (x, k) }}"
        )
        return [str(problem) for problem in onnxlab.check(model) if problem.code == "attribute-flag"]

    assert warned(0) == warned(1) == []
    (text,) = warned(-2)
    assert "attribute 'largest' of TopK#0 (TopK) is -2" in text


def test_flags_are_integer_attributes_of_which_onnx_uses_0_and_1_alone() -> None:
    schemas = onnx.defs.get_all_schemas_with_history()
    flags = {
        name: attribute.default_value.i
        for schema in schemas
        for name, attribute in schema.attributes.items()
        if attribute.type == onnx.defs.OpSchema.AttrType.INT and name in FLAGS
    }
    assert flags.keys() == FLAGS
    assert set(flags.values()) == {0, 1}
    used = {
        attribute.i
        for base in node_cases()
        for node in onnx.ModelProto.FromString(base.data).graph.node
        for attribute in node.attribute
        if attribute.name in FLAGS
    }
    assert used == {0, 1}
