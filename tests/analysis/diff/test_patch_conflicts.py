"""A difference applied to a third model: orders, and what that model changed in the same places."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import onnxlab
from onnxlab.errors import EditError

HEAD = '<ir_version: 9, opset_import: ["" : 18, "local" : 1]>'
TEXT = f"""{HEAD}
g (float[N,2] x, float[N,2] z) => (float[N,2] u, float[N,2] v) <float[2] k = {{2, 3}}> {{
    a = Neg(x)
    b = Mul(z, k)
    u = Add(a, b)
    s = Softmax<axis = 1>(b)
    v = Sub(s, a)
}}"""


def models(text: str = TEXT, count: int = 3) -> list[onnxlab.Model]:
    return [onnxlab.Model(onnx.parser.parse_model(text)) for _ in range(count)]


def reordered() -> onnxlab.Model:
    """The model with other orders of inputs, outputs and nodes."""
    proto = onnx.parser.parse_model(TEXT)
    for field, order in (
        (proto.graph.input, (1, 0)),
        (proto.graph.output, (1, 0)),
        (proto.graph.node, (1, 3, 0, 4, 2)),
    ):
        entries = [type(field[0]).FromString(entry.SerializeToString()) for entry in field]
        del field[:]
        field.extend([entries[at] for at in order])
    return onnxlab.Model(proto)


def orders(model: onnxlab.Model) -> list[list[str]]:
    nodes = [node.op_type for node in model.nodes]
    return [[value.name for value in values] for values in (model.inputs, model.outputs)] + [nodes]


def test_inputs_outputs_and_nodes_are_moved() -> None:
    (first, third), second = models(count=2), reordered()
    third.nodes[0].name = "another"
    before, unchanged = third.to_bytes(), orders(third)
    assert third.patch(onnxlab.diff(first, second)) == []
    assert orders(third) == orders(second)
    third.undo()
    assert third.to_bytes() == before
    assert third.patch(onnxlab.diff(first, second, ignore=["order"])) == []
    assert orders(third) == unchanged


def test_a_moved_input_comes_behind_the_one_before_it_and_what_is_new_here_stays() -> None:
    (first, third), second = models(count=2), reordered()
    third.add_input("own", "float32", [1], position=0)
    third.patch(onnxlab.diff(first, second))
    assert [value.name for value in third.inputs] in (["own", "z", "x"], ["z", "x", "own"], ["z", "own", "x"])


def test_another_order_here_is_a_conflict() -> None:
    text = f"{HEAD} g (float[2] x, float[2] z, float[2] w) => (float[2] y) {{ a = Sub(x, z) y = Div(a, w) }}"
    first, second, third = models(text)
    for model, order in ((second, "zxw"), (third, "xwz")):
        inputs = sorted(model.proto.graph.input, key=lambda info, order=order: order.index(info.name))
        inputs = [onnx.ValueInfoProto.FromString(info.SerializeToString()) for info in inputs]
        del model.proto.graph.input[:]
        model.proto.graph.input.extend(inputs)
    first, second, third = (onnxlab.Model(model.proto) for model in (first, second, third))
    with pytest.raises(EditError, match=r"a conflict: .*the order of the inputs"):
        third.patch(onnxlab.diff(first, second))
    assert third.patch(onnxlab.diff(first, second), strict=False) == ["the order of the inputs"]
    assert third.patch(onnxlab.diff(first, second)) == []
    assert sorted(value.name for value in third.inputs) == ["w", "x", "z"]


def test_an_output_comes_a_second_time() -> None:
    first, second, third = models()
    second.proto.graph.output.add().CopyFrom(second.proto.graph.output[0])
    second = onnxlab.Model(second.proto)
    third.nodes[0].name = "another"
    third.patch(onnxlab.diff(first, second))
    assert [value.name for value in third.outputs] == ["u", "v", "u"]
    third.patch(onnxlab.diff(second, first))
    assert [value.name for value in third.outputs] == ["u", "v"]


def test_inputs_of_a_function_move_with_what_its_calls_give() -> None:
    text = f"""{HEAD} g (float[2] x, float[2] z) => (float[2] y) {{ y = local.F(x, z) }}
    <domain: "local", opset_import: ["" : 18]> F (p, q) => (r) {{ r = Sub(p, q) }}"""
    first, second, third = (onnxlab.Model(onnx.parser.parse_model(text)) for _ in range(3))
    changed = onnx.parser.parse_model(text.replace("F (p, q)", "F (q, p)").replace("F(x, z)", "F(z, x)"))
    second, feeds = onnxlab.Model(changed), {"x": np.float32([5, 6]), "z": np.float32([1, 2])}
    third.nodes[0].name = "another"
    third.patch(onnxlab.diff(first, second))
    np.testing.assert_array_equal(third.run(feeds)["y"], first.run(feeds)["y"])


def wire(model: onnxlab.Model, to: str) -> None:
    model.nodes[2].set_input(1, {"theirs": "a", "ours": "x"}[to])


def attribute(model: onnxlab.Model, to: str) -> None:
    model.nodes[3].attributes["axis"] = {"theirs": 0, "ours": -2}[to]


def operator(model: onnxlab.Model, to: str) -> None:
    model.nodes[0].op_type = {"theirs": "Abs", "ours": "Exp"}[to]


def elements(model: onnxlab.Model, to: str) -> None:
    model.value("k").array = np.full(2, {"theirs": 7, "ours": 8}[to], np.float32)


def declared(model: onnxlab.Model, to: str) -> None:
    model.value("x").set_dim(0, {"theirs": 4, "ours": 5}[to])


def note(model: onnxlab.Model, to: str) -> None:
    model.metadata["made by"] = to


def count(model: onnxlab.Model, to: str) -> None:
    model.nodes[0].metadata["count"] = to


def opset(model: onnxlab.Model, to: str) -> None:
    model.opsets["local"] = {"theirs": 2, "ours": 3}[to]


def removal(model: onnxlab.Model, to: str) -> None:
    if to == "theirs":
        model.remove([model.nodes[3]], bypass=True)
    else:
        model.nodes[3].attributes["axis"] = 0


CHANGES: dict[Callable[[onnxlab.Model, str], None], str] = {
    wire: "input 1 of Add#2",
    attribute: "attribute axis of Softmax#3",
    operator: "op_type of Exp#0",
    elements: "the elements of k",
    declared: "the type of input x, the type of output u, the type of output v",
    note: "metadata_props made by of the model",
    count: "metadata_props count of Neg#0",
    opset: "opset_import local of the model",
    removal: "Softmax#3, which goes",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_both_changed_is_a_conflict(change: Any) -> None:
    first, second, third = models()
    change(second, "theirs")
    change(third, "ours")
    difference, before = onnxlab.diff(first, second), third.to_bytes()
    with pytest.raises(EditError, match=r"a conflict: .*strict=False") as refused:
        third.patch(difference)
    assert f": {CHANGES[change]};" in str(refused.value)
    assert third.to_bytes() == before
    assert third.patch(difference, strict=False) == re.split(", (?=the)", CHANGES[change])
    assert not onnxlab.diff(third, second)


@pytest.mark.parametrize("change", [change for change in CHANGES if change is not removal])
def test_what_both_changed_alike_is_none(change: Any) -> None:
    first, second, third = models()
    change(second, "theirs")
    change(third, "theirs")
    third.nodes[1].name = "own"
    assert third.patch(onnxlab.diff(first, second)) == []
    assert not onnxlab.diff(third, second, ignore=["names"])


def test_a_function_that_both_brought_is_a_conflict_where_it_differs() -> None:
    first, second, third = models()
    for model, op_type in ((second, "Neg"), (third, "Abs")):
        body = onnx.helper.make_node(op_type, ["p"], ["r"])
        imports = [onnx.helper.make_opsetid("", 18)]
        model.proto.functions.append(onnx.helper.make_function("local", "F", ["p"], ["r"], [body], imports))
    first, second, third = (onnxlab.Model(model.proto) for model in (first, second, third))
    difference = onnxlab.diff(first, second)
    with pytest.raises(EditError, match="function local::F"):
        third.patch(difference)
    assert third.patch(difference, strict=False) == ["function local::F"]
    assert third.proto.functions[0].node[0].op_type == "Neg"


def test_names_and_documentation_of_its_own_stay_without_a_word() -> None:
    first, second, third = models()
    for model, text in ((second, "theirs"), (third, "ours")):
        model.nodes[0].name = model.nodes[0].doc_string = model.doc_string = text
        model.value("a").name = f"a_{text}"
    assert third.patch(onnxlab.diff(first, second)) == []
    assert {third.nodes[0].name, third.nodes[0].doc_string, third.doc_string} == {"ours"}
    assert third.nodes[0].outputs[0].name == "a_ours"


def test_a_tensor_that_cannot_be_read_is_the_same_under_another_name() -> None:
    proto = onnx.parser.parse_model(TEXT)
    proto.graph.initializer[0].CopyFrom(onnx.TensorProto(name="k", dims=[2], data_type=1, float_data=[1]))
    first, second = onnxlab.Model(proto), onnxlab.Model(onnx.ModelProto.FromString(proto.SerializeToString()))
    second.value("k").name = "another"
    assert [change.kind for change in onnxlab.diff(first, second)] == ["renamed"]


def annotated(model: onnxlab.Model, name: str, scale: str) -> onnxlab.Model:
    """The model with a quantization annotation, a declaration and a text, all of values inside."""
    graph = model.proto.graph
    entry = onnx.StringStringEntryProto(key="SCALE_TENSOR", value=scale)
    graph.quantization_annotation.append(onnx.TensorAnnotation(tensor_name=name, quant_parameter_tensor_names=[entry]))
    graph.value_info.append(onnx.helper.make_tensor_value_info(name, 1, ["N", 2]))
    graph.initializer[0].doc_string = f"the scale of {name}"
    graph.initializer[0].metadata_props.add(key="of", value=name)
    return onnxlab.Model(model.proto)


def test_annotations_declarations_and_texts_of_tensors_come_under_the_names_here() -> None:
    first, second, third = models()
    second = annotated(second, "a", "k")
    third.value("a").name, third.value("k").name = "inner", "two"
    before = third.to_bytes()
    assert third.patch(onnxlab.diff(first, second)) == []
    graph = third.proto.graph
    (annotation,) = graph.quantization_annotation
    assert (annotation.tensor_name, annotation.quant_parameter_tensor_names[0].value) == ("inner", "two")
    assert [info.name for info in graph.value_info] == ["inner"]
    assert (graph.initializer[0].doc_string, graph.initializer[0].metadata_props[0].value) == ("the scale of a", "a")
    third.undo()
    assert third.to_bytes() == before
    third.patch(onnxlab.diff(first, second, ignore=["declarations", "docs", "metadata"]))
    assert third.to_bytes() == before
    third.patch(onnxlab.diff(first, second))
    third.patch(onnxlab.diff(second, first))
    assert third.to_bytes() == before


def test_another_annotation_here_is_a_conflict_and_another_declaration_stays() -> None:
    first, second, third = models()
    second, third = annotated(second, "a", "k"), annotated(third, "a", "b")
    third.proto.graph.value_info[0].type.tensor_type.shape.dim[1].dim_param = "own"
    third = onnxlab.Model(third.proto)
    with pytest.raises(EditError, match="the annotation of a;"):
        third.patch(onnxlab.diff(first, second))
    assert third.patch(onnxlab.diff(first, second), strict=False) == ["the annotation of a"]
    assert third.proto.graph.quantization_annotation[0].quant_parameter_tensor_names[0].value == "k"
    assert third.proto.graph.value_info[0].type.tensor_type.shape.dim[1].dim_param == "own"
