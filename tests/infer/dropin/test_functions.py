"""infer_shapes in the place of onnx's: signature, results, exceptions."""

import gc
from pathlib import Path

import onnx
import onnx.shape_inference
import pytest
from onnx import TensorProto, helper, parser

from onnxlab.graph.edit.readonly_graph import ReadOnlyGraph
from onnxlab.infer import infer_function_output_types, infer_node_outputs, infer_shapes
from onnxlab.infer.dropin import functions
from tests.infer.support.models import shape_chain
from tests.support.corpus import Corpus


def types(model: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    return {info.name: info.type for info in [*model.graph.value_info, *model.graph.output]}


@pytest.mark.parametrize("name", ["light_squeezenet", "bert_base", "silero_vad_if", "functions_ts"])
def test_it_knows_what_onnx_knows(name: str, corpus: Corpus) -> None:
    model = onnx.load(corpus[name], load_external_data=False)
    del model.graph.value_info[:]
    theirs = types(onnx.shape_inference.infer_shapes(model, data_prop=True))
    ours = types(infer_shapes(model, data_prop=True))
    for value, declared in theirs.items():
        if declared.HasField("tensor_type"):
            assert ours[value].tensor_type.elem_type == declared.tensor_type.elem_type, value
            if declared.tensor_type.HasField("shape"):
                assert len(ours[value].tensor_type.shape.dim) == len(declared.tensor_type.shape.dim), value
                for inferred, dim in zip(
                    ours[value].tensor_type.shape.dim, declared.tensor_type.shape.dim, strict=True
                ):
                    assert not dim.dim_value or inferred.dim_value == dim.dim_value, value


@pytest.mark.slow
def test_nothing_large_is_left_for_the_garbage_collector(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "LARGE", 0)
    calls = onnx.load(corpus["functions_ts"]), onnx.load(corpus["silero_vad_if"])
    wrong = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (int64 x) => (y) { y = Erf (x, x) }')
    for model in calls:
        infer_shapes(model)
    gc.collect()
    gc.disable()
    try:
        for model in calls:
            infer_shapes(model, data_prop=True)
        with pytest.raises(onnx.shape_inference.InferenceError):
            infer_shapes(wrong, check_type=True, strict_mode=True)
        assert not any(type(tracked) is ReadOnlyGraph for tracked in gc.get_objects()), (
            "a large message would stay with it"
        )
    finally:
        gc.enable()


def test_bytes_are_taken_and_the_argument_is_left_alone() -> None:
    model = shape_chain().proto
    before = model.SerializeToString()
    inferred = infer_shapes(before, data_prop=True)
    assert model.SerializeToString() == before
    dims = types(inferred)["flat"].tensor_type.shape.dim
    assert [dims[0].dim_param, dims[1].dim_value] == ["batch*seq", 64]
    body = next(node for node in inferred.graph.node if node.op_type == "If").attribute[0].g
    assert body.output[0].type.tensor_type.shape.dim[0].dim_param == "2*batch*seq"


def test_data_prop_decides_whether_computed_sizes_are_followed() -> None:
    dims = types(infer_shapes(shape_chain().proto))["flat"].tensor_type.shape.dim
    assert [dim.dim_param for dim in dims] == ["unk__0", "unk__1"]


@pytest.mark.parametrize("argument", ["model.onnx", Path("model.onnx"), None, 3])
def test_other_arguments_are_refused(argument: object) -> None:
    with pytest.raises(TypeError, match="ModelProto or bytes"):
        infer_shapes(argument)


def wrong() -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [2]), ("y", [3])))
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "y"], ["z"])], "g", [x, y], [onnx.ValueInfoProto(name="z")]
    )
    return helper.make_model(graph)


def test_strict_mode_raises_and_the_other_does_not() -> None:
    assert types(infer_shapes(wrong()))["z"].tensor_type.elem_type == TensorProto.FLOAT
    with pytest.raises(onnx.shape_inference.InferenceError, match=r"Add#0"):
        infer_shapes(wrong(), strict_mode=True)


def test_check_type_raises_for_a_type_that_does_not_fit() -> None:
    model = wrong()
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 2
    infer_shapes(model)
    with pytest.raises(onnx.shape_inference.InferenceError, match="same type"):
        infer_shapes(model, check_type=True)


def test_every_error_is_in_the_one_exception() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x, float[3] y) => (float[n] sum, float[7] joined)
        { sum = Add(x, y)  joined = Concat<axis = 0>(x, y)  bad = MatMul(x, y) }
    """)
    with pytest.raises(onnx.shape_inference.InferenceError) as caught:
        infer_shapes(model, strict_mode=True)
    assert all(name in str(caught.value) for name in ("Add#0", "joined", "MatMul#2"))


@pytest.mark.parametrize("wrong", ["d = Add(a, b)", "e = Neg(a)"], ids=["refused", "declared of another rank"])
@pytest.mark.parametrize("unknown", ["x.Unknown", "com.microsoft.QuickGelu"], ids=["to all", "to onnx"])
def test_what_comes_after_an_unknown_operator_is_not_raised(unknown: str, wrong: str) -> None:
    text = (
        '<ir_version: 8, opset_import: ["" : 17, "x" : 1, "com.microsoft" : 1]>'
        " g (float[2] a, float[3] b) => (c, float[1, n] e) { %s }"
    )
    for infer in (onnx.shape_inference.infer_shapes, infer_shapes):
        infer(parser.parse_model(text % f"c = {unknown}(a) {wrong}"), strict_mode=True)
        with pytest.raises(onnx.shape_inference.InferenceError):
            infer(parser.parse_model(text % f"{wrong} c = {unknown}(a)"), strict_mode=True)


def test_only_what_comes_before_an_unknown_operator_is_told() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "x" : 1]> g (float[2] a, float[3] b) => (c)'
        " { d = Add(a, b) c = x.Unknown(a) e = Add(a, b) }"
    )
    with pytest.raises(onnx.shape_inference.InferenceError, match="Add#0") as raised:
        infer_shapes(model, strict_mode=True)
    assert "Add#2" not in str(raised.value)


@pytest.mark.parametrize("data_prop", [True, False])
@pytest.mark.parametrize("opset", [12, 14, 21])
@pytest.mark.parametrize("target", ["Concat<axis = 0>(n, one, rest)", "Concat<axis = 0>(one, one, rest)"])
@pytest.mark.parametrize("declared", ["1, n", "n, 2, 24", "1, 1, n"])
def test_a_declared_shape_is_wrong_where_onnx_says_so(declared: str, target: str, opset: int, data_prop: bool) -> None:
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[batch, 4, 6] x) => (float[{declared}] y)'
        "<int64[1] first = {0}, int64[1] one = {1}, int64[1] rest = {24}>"
        f" {{ sizes = Shape(x) n = Gather(sizes, first) target = {target} y = Reshape(x, target) }}"
    )
    raised = []
    for infer in (onnx.shape_inference.infer_shapes, infer_shapes):
        try:
            infer(model, strict_mode=True, data_prop=data_prop)
        except onnx.shape_inference.InferenceError:
            raised.append(infer)
    assert len(raised) in (0, 2), raised


@pytest.mark.parametrize(
    ("text", "raises"),
    [
        ('["local" : 1]> g (float[2] a) => (c) { c = Relu(a) }', onnx.shape_inference.InferenceError),
        ('["" : 17, "l" : 1]> g (float[2] a) => (c) { c = Relu(a) } <opset_import: ["l" : 1], domain: "l">'
         " f (x) => (y) { y = l.h(x) } <opset_import: [\"l\" : 1], domain: \"l\"> h (x) => (y) { y = l.f(x) }",
         onnx.checker.ValidationError),
    ],
    ids=["no opset import", "functions that call each other"],
)  # fmt: skip
def test_what_onnx_raises_whatever_the_options(text: str, raises: type[Exception]) -> None:
    model = parser.parse_model("<ir_version: 8, opset_import: " + text)
    for infer in (onnx.shape_inference.infer_shapes, infer_shapes):
        with pytest.raises(raises):
            infer(model)


def test_a_call_must_take_every_output_in_strict_mode_only() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18, "l" : 1]> g (float[1] x) => (float[1] y) { y = l.f(x) }
        <opset_import: ["" : 18], domain: "l"> f (x) => (a, b) { a = Identity(x) b = Identity(x) }
    """)
    infer_shapes(model)
    with pytest.raises(onnx.shape_inference.InferenceError, match="makes 2"):
        infer_shapes(model, strict_mode=True)


@pytest.mark.parametrize(("operator", "first"), [("Add", 2**63 - 1), ("Sub", -(2**63)), ("Mul", 2**63 - 1)])
def test_integers_that_overflow_raise_in_strict_mode(operator: str, first: int) -> None:
    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 18]> g () => (z)
        {{ a = Constant<value_ints = [{first}]>()  b = Constant<value_ints = [2]>()  s = {operator}(a, b)
           z = ConstantOfShape(s) }}
    """)
    assert not types(infer_shapes(model, data_prop=True))["z"].tensor_type.shape.dim[0].dim_value
    with pytest.raises(onnx.shape_inference.InferenceError, match="int64 cannot hold"):
        infer_shapes(model, strict_mode=True, data_prop=True)


def tensor_type(*dims: int | str | None) -> onnx.TypeProto:
    return helper.make_tensor_type_proto(TensorProto.FLOAT, dims)


def test_one_node_with_its_constants_and_captures() -> None:
    node = helper.make_node("Reshape", ["x", "s"], ["y"])
    schema = onnx.defs.get_schema("Reshape", 20)
    input_types = {"x": tensor_type("n", 6), "s": helper.make_tensor_type_proto(TensorProto.INT64, [2])}
    data = {"s": helper.make_tensor("s", TensorProto.INT64, [2], [-1, 3])}
    dims = infer_node_outputs(schema, node, input_types, data)["y"].tensor_type.shape.dim
    assert [dims[0].dim_param, dims[1].dim_value] == ["2*n", 3]
    dims = infer_node_outputs(schema, node, input_types)["y"].tensor_type.shape.dim
    assert [dim.WhichOneof("value") for dim in dims] == [None, None]
    with pytest.raises(KeyError):
        infer_node_outputs(schema, node, {"x": input_types["x"]})
    with pytest.raises(onnx.checker.ValidationError):
        infer_node_outputs(
            onnx.defs.get_schema("Add", 14), helper.make_node("Add", ["x", "x", "x"], ["y"]), input_types
        )


def test_one_node_of_a_schema_that_is_not_registered() -> None:
    schema = onnx.defs.OpSchema(
        "Twice", "nowhere", 1, inputs=[onnx.defs.OpSchema.FormalParameter("x", "tensor(float)")],
        outputs=[onnx.defs.OpSchema.FormalParameter("y", "tensor(float)")],
    )  # fmt: skip
    schema.set_type_and_shape_inference_function(lambda ctx: ctx.set_output_type(0, ctx.get_input_type(0)))
    node = helper.make_node("Twice", ["x"], ["y"], domain="nowhere")
    assert infer_node_outputs(schema, node, {"x": tensor_type(2)}) == {"y": tensor_type(2)}


def test_outputs_of_a_function_by_types_and_attributes() -> None:
    function = parser.parse_function("""
        <opset_import: ["" : 18], domain: "l"> f <axis> (a, b, c) => (joined, clipped)
        { joined = Concat <axis: int = @axis> (a, b)  clipped = Clip(a, c) }
    """)
    at = helper.make_attribute("axis", 1)
    joined, clipped = infer_function_output_types(function, [tensor_type("n", 2), tensor_type("n", 3)], [at])
    assert joined == tensor_type("n", 5)
    assert clipped == tensor_type("n", 2)
    with pytest.raises(onnx.shape_inference.InferenceError):
        infer_function_output_types(function, [tensor_type(2, 2), tensor_type(3)], [at])


@pytest.mark.parametrize("elem_type", [TensorProto.INT32, TensorProto.UNDEFINED])
def test_a_list_of_sizes_in_a_wrong_type_gives_no_rank(elem_type: int) -> None:
    sizes = helper.make_tensor("x", TensorProto.INT32, [2], [4, 3])
    sizes.data_type = elem_type
    node = helper.make_node("ConstantOfShape", ["x"], ["y"])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    model = helper.make_model(helper.make_graph([node], "g", [], [output], [sizes]))
    assert not infer_shapes(model).graph.output[0].type.tensor_type.HasField("shape")
    with pytest.raises(onnx.shape_inference.InferenceError):
        infer_shapes(model, strict_mode=True)


@pytest.mark.parametrize(
    ("op_type", "attributes"), [("RandomNormal", {"shape": ["a"]}), ("HannWindow", {"output_datatype": -1})]
)
def test_attributes_of_a_wrong_type_or_value_are_survived(op_type: str, attributes: dict[str, object]) -> None:
    inputs = [] if op_type == "RandomNormal" else ["n"]
    node = helper.make_node(op_type, inputs, ["y"], **attributes)
    sizes = [helper.make_tensor("n", TensorProto.INT64, [], [5])]
    graph = helper.make_graph([node], "g", [], [onnx.ValueInfoProto(name="y")], sizes)
    infer_shapes(helper.make_model(graph))


def test_names_that_are_not_utf_8_are_written_as_onnx_does() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["NAME"]), helper.make_node("Neg", ["NAME"], ["y"])]
    x, y = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3]), onnx.ValueInfoProto(name="y")
    data = helper.make_model(helper.make_graph(nodes, "g", [x], [y])).SerializeToString()
    model = onnx.ModelProto.FromString(data.replace(b"NAME", b"\xff\xfe\xfd\xfc"))
    theirs = onnx.shape_inference.infer_shapes(model).graph.value_info[0].SerializeToString()
    assert infer_shapes(model).graph.value_info[0].SerializeToString() == theirs
