"""Models put behind, in front of and into others: onnxruntime computes what the two compute after each other."""

import numpy as np
import onnx.parser
import pytest

import onnxlab
from onnxlab.errors import EditError
from onnxlab.model import Model
from tests.graph.edits.test_edits import check_undo
from tests.graph.support.models import branches, chain, state
from tests.support.oracle import oracle

PIXELS = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["" : 20]>
pixels (uint8[batch, 8, 8, 1] image) => (float[batch, 1, 8, 8] scaled, float[batch, 8, 8, 1] wide) {
    wide = Cast<to = 1>(image)
    unit = Constant<value_float = 0.0625>()
    small = Mul(wide, unit)
    scaled = Transpose<perm = [0, 3, 1, 2]>(small)
}""")
DOUBLE = onnx.parser.parse_model(
    '<ir_version: 9, opset_import: ["" : 20]> double (float[N] x) => (float[N] y) { y = Add(x, x) }'
)
IMAGES = np.random.default_rng(0).integers(0, 16, (3, 8, 8, 1), np.uint8)


def test_in_front_of_an_input_that_it_stands_in_for() -> None:
    model = onnxlab.load()
    before, index = model.to_bytes(), state(model.graph)
    expected = oracle()(before, {"image": (IMAGES / np.float32(16)).astype("f4").transpose(0, 3, 1, 2)})
    names = model.insert(PIXELS, feed={"image": "scaled"}, add_outputs=False)
    assert names["image"] == "image", "the name is free when the old input is gone"
    assert [str(model.fact(value)) for value in model.inputs] == ["uint8[batch,8,8,1]"]
    assert [value.name for value in model.outputs] == ["probabilities"]
    assert [node.op_type for node in model.nodes][:5] == ["Cast", "Constant", "Mul", "Transpose", "Conv"], "sorted"
    onnx.checker.check_model(model.proto, full_check=True)
    arrays = oracle()(model.to_bytes(), {"image": IMAGES})
    np.testing.assert_array_equal(arrays["probabilities"], expected["probabilities"])
    assert model.history.labels == ["insert pixels"]
    check_undo(model.graph, before, index)


def test_onto_a_wire_that_a_body_reads_too() -> None:
    model = Model(branches())
    before, index = model.to_bytes(), state(model.graph)
    model.insert(DOUBLE, connect={"x": "h"}, feed={"h": "y"}, prefix="twice_")
    assert [value.name for value in model.outputs] == ["y"], "what feeds is no output"
    assert {reader.name for reader, _ in model.value("twice_y").uses} == {"neg", "abs", "exp"}
    feeds = {"x": np.array([0.25, -1], np.float32), "flag": np.array(False)}
    expected = oracle()(before, {**feeds, "x": feeds["x"]}, ["y"])["y"]
    np.testing.assert_allclose(oracle()(model.to_bytes(), feeds)["y"], 2 * np.exp(4 * feeds["x"]), rtol=1e-6)
    np.testing.assert_allclose(expected, 2 * np.exp(2 * feeds["x"]), rtol=1e-6)
    check_undo(model.graph, before, index)


def test_the_outputs_that_are_wanted_and_an_input_that_is_still_read() -> None:
    model = onnxlab.load()
    model.add_node("Shape", ["image"], ["size"])
    model.add_output("size")
    size = next(node for node in model.nodes if node.op_type == "Shape")
    names = model.insert(PIXELS, feed={"image": "scaled"}, add_outputs=["wide"])
    assert [value.name for value in model.outputs] == ["probabilities", "size", names["wide"]]
    assert size.inputs[0].name == names["scaled"], "every reader there was"
    model = onnxlab.load()
    model.add_output("image")
    names = model.insert(PIXELS, feed={"image": "scaled"})
    assert names["image"] == "image_1", "the input is an output too, so it stays"
    assert model.value("image").is_input


def test_a_model_into_itself() -> None:
    model = Model(chain())
    before, index = model.to_bytes(), state(model.graph)
    assert model.insert(model)["y"] == "y_1"
    assert [value.name for value in model.outputs] == ["y", "y_1"]
    onnx.checker.check_model(model.proto, full_check=True)
    check_undo(model.graph, before, index)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"feed": {"image": "scale"}}, "has no output 'scale'. Did you mean 'scaled'"),
        ({"add_outputs": ["image"]}, "has no output 'image'"),
        ({"connect": {"image": "stem/relu_out"}}, "'stem/relu_out' is float32 and 'image' of the other model uint8; "),
        ({"connect": {"picture": "image"}}, "has no input 'picture'"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, object], says: str) -> None:
    model = onnxlab.load()
    before = model.to_bytes()
    with pytest.raises(EditError, match=says):
        model.insert(PIXELS, **arguments)
    assert model.to_bytes() == before


def test_a_circle_is_refused() -> None:
    model = onnxlab.load()
    before = model.to_bytes()
    with pytest.raises(EditError, match="/stem/conv/Conv would depend on itself"):
        model.insert(DOUBLE, connect={"x": "probabilities"}, feed={"image": "y"})
    assert model.to_bytes() == before


def calling(functions: str, call: str = "local.F", opset: int = 18, domains: str = "") -> onnx.ModelProto:
    """A model of one call, and functions of the domain `local` in the words of the parser."""
    return onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : {opset}, "local" : 1{domains}]>\n'
        f"calls (float[1, N] x) => (float[M, K] y) {{ y = {call}(x) }}\n{functions}"
    )


def function(name: str, nodes: str, imports: str = '"" : 18, "local" : 1', domain: str = "local") -> str:
    return f'<domain: "{domain}", opset_import: [{imports}]>\n{name} (a) => (b) {{ {nodes} }}\n'


ROW = {"x": np.array([[1, 2, 3]], np.float32)}
CALLER = function("F", "b = local.G(a)")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (CALLER + function("G", "b = Neg(a)"), CALLER + function("G", "b = Exp(a)")),
        (function("F", "b = Neg(a)"), function("F", "b = local.F_1(a)") + function("F_1", "b = Exp(a)")),
        (
            function("F", "b = Neg(a)"),
            function("F", "b = loc2.G(a)", '"" : 18, "loc2" : 1') + function("G", "b = Exp(a)", domain="loc2"),
        ),
    ],
    ids=["an equal caller of another function", "a name that a function of theirs has", "a domain of functions alone"],
)
def test_inserted_functions_mean_what_they_meant(ours: str, theirs: str) -> None:
    domains = ', "loc2" : 1' if "loc2" in theirs else ""
    model, other = Model(calling(ours)), calling(theirs, domains=domains)
    before, index = model.to_bytes(), state(model.graph)
    model.insert(other, prefix="b_")
    onnx.checker.check_model(model.proto, full_check=True)
    arrays = oracle()(model.to_bytes(), {**ROW, "b_x": ROW["x"]})
    np.testing.assert_array_equal(arrays["y"], oracle()(before, ROW)["y"])
    np.testing.assert_array_equal(arrays["b_y"], oracle()(other.SerializeToString(), ROW)["y"])
    check_undo(model.graph, before, index)


def test_a_function_does_not_take_the_place_of_an_operator() -> None:
    model = Model(calling("", "com.microsoft.Gelu", domains=', "com.microsoft" : 1'))
    expected = oracle()(model.to_bytes(), ROW)["y"]
    negating = function("Gelu", "b = Neg(a)", domain="com.microsoft")
    other = calling(negating, "com.microsoft.Gelu", domains=', "com.microsoft" : 1')
    model.insert(other, prefix="b_")
    assert model.nodes[1].op_type == "Gelu_1"
    np.testing.assert_array_equal(oracle()(model.to_bytes(), {**ROW, "b_x": ROW["x"]})["y"], expected)
    with pytest.raises(EditError, match=r"the other model has an operator com.microsoft::Gelu.*inline\(function="):
        Model(other).insert(calling("", "com.microsoft.Gelu", domains=', "com.microsoft" : 1'))


def test_an_inserted_function_in_words_of_another_opset_is_refused() -> None:
    old = calling(function("F", "b = Softmax(a)", '"" : 12'), opset=12)
    says = r"function local::F uses ai.onnx 12, the model 20, and Softmax differ.*convert"
    with pytest.raises(EditError, match=says):
        Model(DOUBLE).insert(old)
