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
