import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import onnxlab

X = np.array([-1, 2], np.float32)


def text(kind):
    graph = "g (float[2] x) => (float[2] y) { a = Neg (x) y = Exp (a) }"
    function = '<domain: "local", opset_import: ["" : 21]> F (x) => (y) { a = Neg (x) y = Exp (a) }'
    if kind == "model":
        return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {graph}')
    return onnx.parser.parse_graph(graph) if kind == "graph" else onnx.parser.parse_function(function)


@pytest.mark.parametrize("kind", ["model", "graph", "function"])
def test_a_proto_runs(kind):
    np.testing.assert_allclose(onnxlab.run(text(kind), {"x": X})["y"], np.exp(-X), rtol=1e-6)


def test_a_model_runs_as_in_onnx_reference():
    (expected,) = ReferenceEvaluator(text("model")).run(None, {"x": X})
    np.testing.assert_array_equal(onnxlab.run(text("model"), {"x": X})["y"], expected)


def test_one_node_with_a_body_of_another_domain():
    body = onnx.parser.parse_graph("b () => (y) { y = com.microsoft.Gelu (x) }")
    other = onnx.parser.parse_graph("b () => (y) { y = Neg (x) }")
    node = onnx.helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=other)
    graph = onnx.helper.make_graph([node], "g", [onnx.ValueInfoProto(name="c"), onnx.ValueInfoProto(name="x")],
                                   [onnx.ValueInfoProto(name="y")])  # fmt: skip
    assert onnxlab.run(graph, {"c": np.array(False), "x": X})["y"].tolist() == [1, -2]
    assert onnxlab.run(graph, {"c": np.array(True), "x": np.zeros(2, np.float32)})["y"].tolist() == [0, 0]
    relu = onnx.helper.make_node("Relu", ["x"], ["y"])
    assert onnxlab.run(relu, {"x": X})["y"].tolist() == [0, 2]
