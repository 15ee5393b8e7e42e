"""The weight of declared types, by the policy; contradictions of inference are always reported, under either policy."""

import onnx
import onnx.shape_inference
import pytest
from onnx import parser

from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference, Policy, infer_shapes
from onnxlab.infer.facts.policy import Prefer

MODEL = """
    <ir_version: 9, opset_import: ["" : 18]>
    g (float[2, 3] x, float[n, 3] v, int64[2] s) => (float[2, 3] end)
    <float[9, 3] wrong, float[m, 3] said, float[4, 5] open, float[2, 3] end>
    { wrong = Relu(x)  after = Neg(wrong)  said = Relu(v)  open = Reshape(x, s)  more = Neg(open)  end = Relu(x) }
"""
FOUND = {
    "inferred": ["[2,3]", "[2,3]", "[n,3]", "[open.0,open.1]", "[open.0,open.1]"],
    "refine": ["[2,3]", "[2,3]", "[n,3]", "[4,5]", "[4,5]"],
    "declared": ["[9,3]", "[9,3]", "[m,3]", "[4,5]", "[4,5]"],
}


def shapes(inference: Inference, graph: ModelGraph) -> list[str]:
    names = ("wrong", "after", "said", "open", "more")
    return [str(inference.fact(graph.resolve_value(name))).removeprefix("float32") for name in names]


def conflicts(inference: Inference) -> list[tuple[str, str, str]]:
    return [(d.code, d.expected, d.found) for d in inference.diagnostics]


@pytest.mark.parametrize("prefer", ["inferred", "refine", "declared"])
def test_what_is_true_by_each_policy(prefer: Prefer) -> None:
    graph = ModelGraph(parser.parse_model(MODEL))
    inference = Inference(graph, Policy(prefer=prefer))
    assert shapes(inference, graph) == FOUND[prefer]
    assert conflicts(inference) == [("declared-dim", "float32[9,3]", "float32[2,3]")]


def test_a_policy_can_be_set_later_and_edits_follow_it() -> None:
    graph = ModelGraph(parser.parse_model(MODEL))
    inference = Inference(graph)
    graph.followers.append(inference.follow)
    inference.policy = Policy(prefer="declared")
    assert shapes(inference, graph) == FOUND["declared"]
    edits.set_shape(graph, graph.values[graph.resolve_value("x")], [9, 3])
    assert conflicts(inference) == [("declared-dim", "float32[2,3]", "float32[9,3]")]
    graph.undo()
    assert conflicts(inference) == [("declared-dim", "float32[9,3]", "float32[2,3]")]
    inference.policy = Policy()
    assert shapes(inference, graph)[:3] == FOUND["inferred"][:3]


def test_strict_mode_raises_where_a_declared_shape_is_wrong_and_check_type_does_not() -> None:
    model = parser.parse_model(MODEL)
    infer_shapes(model)
    infer_shapes(model, check_type=True)
    for infer in (infer_shapes, onnx.shape_inference.infer_shapes):
        with pytest.raises(onnx.shape_inference.InferenceError):
            infer(model, strict_mode=True)


def test_what_is_no_policy_is_refused_and_changes_nothing() -> None:
    graph = ModelGraph(parser.parse_model(MODEL))
    inference = Inference(graph)
    with pytest.raises(ValueError, match="'inferred', 'refine', 'declared'"):
        Policy(prefer="both")
    with pytest.raises(TypeError, match="given 'declared'"):
        inference.policy = "declared"
    assert shapes(inference, graph) == FOUND["inferred"]
