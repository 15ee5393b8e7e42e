"""Graphs that a call passes to a function, whose node refers to them, and graphs that are absent."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import onnxlab
from onnxlab.errors import RunError, UnsupportedOperatorError

CALL = """<ir_version: 8, opset_import: ["":18, "l":1]>
g (bool c, float[2] x) => (float[2] y) {{ {before}y = l.f <branch = t () => (float[2] a) {{ {body} }}> (c, x) }}
<domain: "l", opset_import: ["":18]>
f <branch> (c, x) => (y) {{
    w = Exp (x)
    y = If (c) <then_branch: graph = @branch, else_branch = e () => (float[2] b) {{ b = Abs (x) }}>
}}"""
FEEDS = {"c": np.array(True), "x": np.array([3, -1], np.float32)}


def _model(body: str, before: str = "") -> onnx.ModelProto:
    return parser.parse_model(CALL.format(body=body, before=before))


@pytest.mark.parametrize("truth", [True, False])
def test_a_passed_graph_runs_as_by_onnxruntime(truth: bool) -> None:
    proto = _model("a = Constant <value_floats = [4.0, 5.0]> ()")
    feeds = FEEDS | {"c": np.array(truth)}
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feeds)
    model = onnxlab.load(proto)
    assert not model.check()
    for _ in range(3):
        assert np.array_equal(model.run(feeds)["y"], expected)


@pytest.mark.parametrize("before", ["", "w = Neg (x) ", "u = Neg (x) w = Identity (u) "])
def test_a_passed_graph_that_reads_names_of_outside_is_refused(before: str) -> None:
    """onnxruntime takes the function's value of a name, which need not be that around the call."""
    proto = _model("a = Neg (w)" if before else "a = Neg (x)", before)
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, FEEDS)
    model = onnxlab.load(proto)
    with pytest.raises(UnsupportedOperatorError, match=r"of outside.*model\.inline\(\)"):
        model.run(FEEDS)
    model.inline()
    assert np.allclose(model.run(FEEDS)["y"], expected)


def test_an_absent_graph_is_no_body() -> None:
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["":18]> g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Neg (x) },
            else_branch = e () => (float[2] b) { b = Abs (x) }>
    }""")
    for _ in range(300):  # so that the index is read from the file's bytes
        proto.graph.node.add(op_type="Neg", input=["x"], output=[f"n{len(proto.graph.node)}"])
    proto.graph.node.add().CopyFrom(proto.graph.node[0])
    proto.graph.node[-1].output[0] = "z"
    proto.graph.node[0].attribute[0].ClearField("g")
    (absent, present), data = [n for n in onnxlab.load(proto).nodes if n.op_type == "If"], proto.SerializeToString()
    assert absent.attributes["then_branch"] is None
    assert present.attributes["then_branch"] is not None
    model = onnxlab.load(onnx.ModelProto.FromString(data))
    assert {"attribute-value", "attribute-missing"} <= {problem.code for problem in model.check()}
    with pytest.raises(RunError, match="required attribute 'then_branch' is missing"):
        model.run(FEEDS)
    assert np.array_equal(model.run(FEEDS, outputs=["z"])["z"], [-3, 1])
    assert model.to_bytes() == data
