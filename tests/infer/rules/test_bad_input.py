"""Nodes that are wrong: each has a diagnostic that names it, what was expected and found; the rest is inferred."""

import onnx
import pytest
from onnx import parser

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from tests.infer.support.models import parsed

MODEL = """
    <ir_version: 9, opset_import: ["" : 18, "other" : 1, "local" : 1, "com.microsoft" : 1]>
    g (float[n2, 4] x, int64[3] i, bool flag, int64 n, float s, seq(float[2]) q, float[1, 3, 8, 8] img) => (z)
    <int64[2] neg = {-1, 2}, float[4] none = {0, 0, 0, 0}>
    { before = Relu(x)  NODE  after = Neg(b)  z = Neg(before) }
    <opset_import: ["" : 18], domain: "local"> f (p) => (o) { o = Relu(p) }
    <opset_import: ["" : 18, "local" : 1], domain: "local"> r (p) => (o) { o = local.r(p) }
"""
FLOAT, INT = "tensor(float)", "tensor(int64)"


@pytest.mark.parametrize(
    ("node", "code", "expected", "actual"),
    [
        # types
        ("b = Add(x, i)", "type-mismatch", FLOAT, INT),
        ("b = Reshape(x, s)", "type-mismatch", INT, FLOAT),
        ("b = If(x) <then_branch = t () => (a) {a = Relu(x)}, else_branch = e () => (a) {a = Neg(x)}>",
         "type-mismatch", "tensor(bool)", FLOAT),
        ("b = If(flag) <then_branch = t () => (a) {a = Relu(x)}, else_branch = e () => (a) {a = Shape(x)}>",
         "type-mismatch", "float32[n2,4]", "int64[2]"),
        ("b = SequenceInsert(q, i)", "type-mismatch", "float32[2]", "int64[3]"),
        ("b = SequenceAt(x, n)", "type-mismatch", "seq(tensor(bool))", FLOAT),
        # ranks
        ("b = MatMul(x, s)", "rank-mismatch", "at least a vector", "a scalar"),
        ("b = Conv(x, x)", "rank-mismatch", "spatial dims", "[n2, 4]"),
        ("b = Gemm(x, s)", "rank-mismatch", "a matrix", "rank 0"),
        ("b = LSTM(x, x, x)", "rank-mismatch", "[seq, batch, input size]", "rank 2"),
        ("b = DepthToSpace <blocksize = 2> (x)", "rank-mismatch", "at least 4 dims", "2 dims"),
        ("b, k = TopK(x, i)", "rank-mismatch", "[1]", "[3]"),
        # attributes
        ("b = Cast(x)", "attribute-missing", "int", "none"),
        ("b = Concat(x, x)", "attribute-missing", "int", "none"),
        ("b = Constant()", "attribute-missing", "one of its attributes", "none"),
        ("b = If(flag) <then_branch = t () => (a) {a = Relu(x)}>", "attribute-missing", "graph", "none"),
        ("b = com.microsoft.MatMulNBits(x, x, x)", "attribute-missing", "int", "none"),
        ('b = Concat <axis = "x"> (x, x)', "attribute-type", "int", "string"),
        ("b = Concat <axis = 1.5> (x, x)", "attribute-type", "int", "float"),
        ("b = Transpose <perm = 1> (x)", "attribute-type", "ints", "int"),
        ("b = Transpose <perm = [0]> (x)", "bad-attribute", "a permutation of 0 to 1", "[0]"),
        ("b = Softmax <axis = 7> (x)", "axis-out-of-range", "-2 to 1", "7"),
        ("b = Cast <to = 99> (x)", "bad-attribute", "a TensorProto.DataType", "99"),
        ("b = MaxPool <kernel_shape = [0, 2]> (img)", "bad-attribute", "values from 1 on", "0"),
        ("b = MaxPool <kernel_shape = [2, 2], strides = [0, 1]> (img)", "bad-attribute", "values from 1 on", "0"),
        # elements
        ("b = Tile(x, neg)", "shape-mismatch", "numbers from 0 on", "-1"),
        ("b = ConstantOfShape(neg)", "shape-mismatch", "sizes from 0 on", "-1"),
        ("b = Resize(img, , none)", "shape-mismatch", "scales above 0", "[0.0, 0.0, 0.0, 0.0]"),
        # numbers of inputs and outputs
        ("b = Add(x)", "arity", "2", "1"),
        ("b = Add(, x)", "arity", "A", "nothing"),
        ("b = Relu(x, x)", "arity", "1", "2"),
        ("b, c = Relu(x)", "arity", "1", "2"),
        ("b = Slice(x, i)", "arity", "at least 3", "2"),
        ("b = Resize(x)", "arity", "scales or sizes", "none"),
        ("b = local.f(x, x)", "arity", "1", "2"),
        ("b, c = local.f(x)", "function-outputs", "1", "2"),
        ("b = Loop(n, flag, x) <body = l (j) => (o) {o = Identity(j)}>", "shape-mismatch", "3 inputs", "1 inputs"),
        ("b = Loop(n, flag, x) <body = l (j, k, s) => (k2, s2, o) {k2 = Identity(k) s2 = Neg(s) o = Tanh(s)}>",
         "arity", "1", "2"),
        ("b, c = Loop(n, flag, , x) <body = l (j, k, s, t) => (k2, s, t2) {k2 = Identity(k) t2 = Neg(t)}>",
         "arity", "value", "nothing"),
        ("b = Scan <num_scan_inputs = 1, body = l (s) => (o, p) {o = Neg(s) p = Tanh(s)}> (x)", "arity", "1", "2"),
        ("b, c = Scan <num_scan_inputs = 1, body = l (s) => (o) {o = Neg(s)}> (x)", "arity", "2", "1"),
        ("b = If(flag) <then_branch = t () => (a, c) {a = Relu(x) c = Neg(x)}, else_branch = e () => (a) {a = Neg(x)}>",
         "arity", "1", "2"),
        ("b = SequenceMap <body = l (s, t) => (o) {o = Neg(s)}> (q)", "arity", "1", "2"),
        ("b = If(flag) <then_branch = t (c) => (a) {a = Relu(x)}, else_branch = e () => (a) {a = Neg(x)}>",
         "arity", "0", "1"),
        ("b = SequenceMap <body = l (s) => (o, p) {o = Neg(s) p = Tanh(s)}> (q)", "arity", "1", "2"),
        ("b = Relu(ghost)", "undefined-value", "a value that a node makes", "ghost"),
        # operators and domains
        ("b = Nonsense(x)", "unknown-operator", "an operator that is known", "Nonsense"),
        ("b = other.Op(x)", "unknown-operator", "an operator that is known", "other::Op"),
        ("b = StringSplit(x)", "unknown-operator", "an operator that is known", "StringSplit"),
        ("b = absent.Op(x)", "missing-opset", "an opset import of 'absent'", "none"),
        ("b = local.r(x)", "recursive-function", "", ""),
    ],
    ids=lambda value: value.split("(")[0] if isinstance(value, str) and "=" in value else "",
)  # fmt: skip
def test_a_wrong_node_is_named_and_the_rest_is_inferred(node: str, code: str, expected: str, actual: str) -> None:
    graph = ModelGraph(parser.parse_model(MODEL.replace("NODE", node)))
    inference = Inference(graph)
    by_code = {diagnostic.code: diagnostic for diagnostic in reversed(inference.diagnostics)}  # the first of each
    assert code in by_code, list(by_code)
    problem = by_code[code]
    assert problem.severity == ("info" if code == "unknown-operator" else "error")
    assert expected in problem.expected
    assert actual in problem.found
    assert graph.nodes[problem.node].proto.op_type in node.replace("local.r", "r Relu")
    assert str(inference.fact(graph.resolve_value("z"))) == "float32[n2,4]"
    assert not {d.code for d in inference.diagnostics} & {"rule-failed"}


def test_an_initializer_without_an_element_type_is_named() -> None:
    graph = parsed("g () => (y) { y = Neg(w) }")
    tensor = onnx.TensorProto(name="w", dims=[2], raw_data=bytes(8))
    graph.proto.graph.initializer.append(tensor)
    problems = Inference(ModelGraph(graph.proto)).diagnostics
    assert [(problem.code, "'w'" in problem.message, "UNDEFINED" in problem.message) for problem in problems] == [
        ("bad-tensor", True, True)
    ]
