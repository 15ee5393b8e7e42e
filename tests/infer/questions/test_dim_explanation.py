"""Explanations: where dims come from, by asking the rules; where they are lost, and which edits made them."""

import onnx
import pytest

import onnxlab
from onnxlab import Model
from onnxlab.errors import NameLookupError
from onnxlab.infer import Inference
from onnxlab.infer.questions.dim_explanation import Explanation
from tests.infer.support.models import parsed, shape_chain


def explained(text: str, name: str, axis: int | None = None) -> Explanation:
    graph = parsed(text)
    return Inference(graph).explain(graph.resolve_value(name), axis)


def names(explanation: Explanation) -> set[str]:
    return {step.name for step in explanation.steps}


def test_a_dim_leads_back_through_elements_to_the_inputs_that_it_is_made_of() -> None:
    graph = shape_chain()
    explanation = Inference(graph).explain(graph.resolve_value("y"), 0)
    assert {"x[0]", "x[1]", "element 0 of target", "element 0 of seq"} <= names(explanation)
    assert "kernel[0]" not in names(explanation)
    assert "x[2]" not in names(explanation)
    assert explanation.first_loss is None
    assert "flat[0] = batch*seq: Reshape" in str(explanation)


def test_equal_dims_that_hide_each_other_are_probed_together() -> None:
    explanation = explained("agraph (float[n, 64] a, float[n, 64] b) => (float[?, ?] y) { y = Add(a, b) }", "y", 1)
    assert names(explanation) == {"y[1]", "a[1]", "b[1]"}


def test_a_dim_given_by_attributes_says_so() -> None:
    explanation = explained("agraph (float[n] a) => (float y) { s = Constant <value_ints = [3, 5]> () "
                      "y = Expand(a, s) }", "s")  # fmt: skip
    assert "the attribute of Constant" in str(explanation)
    explanation = explained("agraph (float[n, 8, 8] x, float[4, 8, 3] w) => (float[?, ?, ?] y) "
                      "{ y = Conv <strides = [2], pads = [1, 1]> (x, w) }", "y", 2)  # fmt: skip
    assert "strides=[2]" in str(explanation)
    assert names(explanation) == {"y[2]", "x[2]", "w[2]"}


@pytest.mark.parametrize(
    ("body", "at", "why"),
    [
        ("z = NonZero(x) y = Cast <to = 1> (z)", "z[1]", "NonZero counts its output while it runs"),
        ("z = Odd(x) y = Relu(z)", "z", "the operator 'Odd' is unknown"),
        ("z = Range(n, m, n) y = Neg(z)", "z[0]", "only known when the model runs"),
        ("z = MatMul(x, k) y = Relu(z)", "z", "the node is refused"),
    ],
)
def test_the_first_operator_that_lost_a_dim_is_named(body: str, at: str, why: str) -> None:
    text = f"agraph (float[a, 3] x, float[4, 2] k, float n, float m) => (float[?] y) {{ {body} }}"
    explanation = explained(text, "y")
    first = explanation.first_loss
    assert first is not None
    assert (first.name, why in first.lost) == (at, True)
    assert f"lost first at {at}" in str(explanation)


def test_branches_that_disagree_and_loops_are_followed_into_their_bodies() -> None:
    graph = shape_chain()
    inference = Inference(graph)
    branches = inference.explain(graph.resolve_value("z"), 0)
    assert branches.steps[0].lost == "its bodies do not agree on it"
    assert {"t[0]", "e[0]", "x[0]"} <= names(branches)
    assert {"v2[0]", "m[0]", "x[0]"} <= names(inference.explain(graph.resolve_value("w"), 0))


def test_calls_are_followed_into_functions_and_out_again() -> None:
    graph = shape_chain()
    inference = Inference(graph)
    explanation = inference.explain(graph.resolve_value("f"), 0)
    assert {"out[0]", "a[0]", "y[0]", "x[0]"} <= names(explanation)
    assert {"element 0 of size"} <= names(inference.explain(graph.resolve_value("f"), 1))


def test_edits_on_the_way_are_named_until_they_are_undone() -> None:
    model = Model(shape_chain().proto)
    model.value("x").set_shape([2, "n", 64])
    explanation = model.explain("flat", axis=0)
    assert [step.name for step in explanation.steps if step.edits] == ["x[0]", "x[1]"]
    assert "edited by" in str(explanation)
    model.undo()
    assert model.explain("flat", axis=0).edits == ()


def test_a_missing_axis_is_an_error() -> None:
    graph = shape_chain()
    with pytest.raises(NameLookupError, match="no axis 7"):
        Inference(graph).explain(graph.resolve_value("y"), 7)


def test_explaining_keeps_nothing() -> None:
    graph = shape_chain()
    inference = Inference(graph)
    before = dict(inference.facts)
    for vid in before:
        inference.explain(vid)
    assert dict(inference.facts) == before
    assert dict(Inference(graph).facts) == before


def test_what_has_no_dims_and_what_is_no_value_is_said() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]> g (float[N, 3] x) => (y) {
        s = SequenceConstruct (x)
        [zip] y = ai.onnx.ml.ZipMap <classlabels_int64s = [1, 2, 3]> (x)
    }"""
    model = onnxlab.load(onnx.parser.parse_model(text))
    for value in ("s", "y"):
        explained = model.explain(value)
        assert explained.first_loss is None
        assert "it has no dims of its own" in str(explained)
    with pytest.raises(NameLookupError, match="no value is called 'zip'; it is a node, which makes 'y'"):
        model.explain("zip")
    with pytest.raises(NameLookupError, match="is a node, not a value; its inputs and outputs are values"):
        model.explain(model.nodes["zip"])  # type: ignore[arg-type]
    with pytest.raises(NameLookupError, match="no value of the model has the id 1000"):
        model.explain(1000)
