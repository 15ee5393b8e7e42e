"""Values of bodies and functions as outputs of the model: what they were, by onnxruntime and by watching a run."""

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.errors import EditError
from onnxlab.model import Model
from tests.graph.edit.test_script import replayed
from tests.graph.edits.test_edits import check_undo
from tests.graph.support.models import branches, state
from tests.support.corpus import Corpus, inputs
from tests.support.oracle import oracle


@pytest.mark.parametrize(
    ("value", "output_name", "fact"),
    [
        ("Loop#4/body/even", "Loop#4/even", "bool[max(n, 0)]"),
        ("Loop#4/body/s2", "Loop#4/s2", "float32[max(n, 0),B,D]"),  # which it carries on to the next
        ("Scan#9/body/o", "Scan#9/o", "float32[max(n, 0),B,D]"),
        ("local::norm/d", "Loop#4/norm#7/d", "float32[max(n, 0),B,D]"),
    ],
)
def test_what_iterations_make_is_collected(corpus: Corpus, value: str, output_name: str, fact: str) -> None:
    model = onnxlab.load(corpus["script_control"])
    feeds = inputs("script_control", corpus["script_control"])
    before, index = model.to_bytes(), state(model.graph)
    (output,) = model.add_output(value)
    assert (output.name, str(model.fact(output)), output.is_output) == (output_name, fact, True)
    onnx.checker.check_model(model.proto, full_check=True)
    expected = oracle()(model.to_bytes(), feeds)
    np.testing.assert_allclose(model.run(feeds)[output_name], expected[output_name], rtol=1e-5, atol=1e-6)
    if "::" not in value:
        watched = np.stack(model.run(feeds, outputs=[value])[value])  # type: ignore[call-overload]
        np.testing.assert_allclose(watched, expected[output_name], rtol=1e-5, atol=1e-6)
    assert replayed(model, before) == model.to_bytes()
    check_undo(model.graph, before, index)


def test_every_call_returns_what_a_function_makes() -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 20, "f" : 1]>
    twice (float[3] x) => (float[3] y) { [one] a = f.F(x) [two] y = f.F(a) }
    <opset_import: ["" : 20], domain: "f">
    F (v) => (o) { h = Neg(v) o = Exp(h) }"""
    model = Model(onnx.parser.parse_model(text))
    before, index = model.to_bytes(), state(model.graph)
    assert [value.name for value in model.add_output("f::F/h", 0)] == ["one/h", "two/h"]
    assert [value.name for value in model.outputs] == ["one/h", "two/h", "y"]
    onnx.checker.check_model(model.proto, full_check=True)
    x = np.array([0, 1, -1], np.float32)
    arrays = oracle()(model.to_bytes(), {"x": x})
    np.testing.assert_allclose(arrays["one/h"], -x)
    np.testing.assert_allclose(arrays["two/h"], -np.exp(-x), rtol=1e-6)
    check_undo(model.graph, before, index)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("if/then/inner_out", r"in one branch of if \(If\) alone, .* run\(outputs=\['if/then_branch/inner_out'\]\)"),
        ("y", "'y' is an output already"),
    ],
)
def test_what_cannot_be_an_output_says_why(value: str, says: str) -> None:
    model = Model(branches())
    before = model.to_bytes()
    with pytest.raises(EditError, match=says):
        model.add_output(value)
    assert model.to_bytes() == before


def test_a_loop_cannot_collect_what_is_no_tensor(corpus: Corpus) -> None:
    model = onnxlab.load(corpus["script_control"])
    with pytest.raises(EditError, match=r"'q2' is no tensor, so Loop#4 \(Loop\) cannot collect it"):
        model.add_output("Loop#4/body/q2")
