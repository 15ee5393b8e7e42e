"""Rewrites inside of bodies and functions, decided Ifs, and what loops compute anew in every iteration."""

import numpy as np
import onnx
import onnx.parser

import onnxlab
from tests.support import corpus
from tests.transforms.test_simplify import by_onnxruntime, operators, parsed

IF = """
    z = Constant<value = float {0}>() s = ReduceSum<keepdims = 0>(x) c = Greater(s, z)
    y = If (c) <then_branch = t () => (float[b,4] p) { a = Identity(x) k = Constant<value = float {2}>()
        l = Exp(k) q = Mul(a, l) p = Identity(q) }, else_branch = e () => (float[b,4] q) { q = Neg(x) }>
"""

LOOP = """
    n = Constant<value = int64 {3}>() t = Constant<value = bool {1}>()
    y = Loop (n, t, x) <body = g (int64 i, bool c, float[b,4] v) => (bool c, float[b,4] w) {
        e = Exp(x) r = Relu(e) w = Add(v, r) }>
"""


def same(model: onnxlab.Model, before: onnx.ModelProto) -> None:
    for size in (1, 3):
        feeds = {"x": np.random.default_rng(size).normal(size=(size, 4)).astype(np.float32)}
        for old, new in zip(by_onnxruntime(before, feeds), by_onnxruntime(model.proto, feeds), strict=True):
            np.testing.assert_allclose(new, old, rtol=1e-5)


def simplified(body: str) -> onnxlab.Model:
    proto = parsed(body)
    before = onnx.ModelProto.FromString(proto.SerializeToString())
    model = onnxlab.load(proto)
    receipt = model.simplify()
    assert not receipt.refused, receipt
    assert receipt.verdict in ("bit equal", "equal within noise")
    same(model, before)
    return model


def test_nodes_of_bodies_are_rewritten_and_folded() -> None:
    model = simplified(IF)
    inside = [node.op_type for node in model.graph.nodes.values() if node.scope != model.graph.main.id]
    assert sorted(inside) == ["Mul", "Neg"]


def test_a_decided_if_is_what_its_branch_does() -> None:
    body = """
        c = Constant<value = bool {0}>()
        a = If (c) <then_branch = t () => (float[b,4] p) { p = Neg(x) },
                    else_branch = e () => (float[b,4] q) { k = Exp(x) q = Relu(k) }>
        y = Abs(a)
    """
    model = simplified(body)
    assert operators(model) == ["Exp", "Relu", "Abs"]


def test_an_if_whose_branch_gives_an_outer_value() -> None:
    body = """
        c = Constant<value = bool {1}>() d = Relu(x)
        a = If (c) <then_branch = t () => (float[b,4] p) { p = Identity(d) },
                    else_branch = e () => (float[b,4] q) { q = Neg(x) }>
        y = Abs(a)
    """
    assert operators(simplified(body)) == ["Relu", "Abs"]


def test_what_no_iteration_changes_is_computed_once() -> None:
    model = simplified(LOOP)
    assert [name for name in operators(model) if name != "Constant"] == ["Exp", "Relu", "Loop"]


def test_functions_are_rewritten_unless_the_call_decides() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18, "l" : 1]>
        g (float[b,4] x) => (float[b,4] y) { a = l.twice<k = 2.0>(x) y = Relu(a) }
        <domain: "l", opset_import: ["" : 18]>
        twice <k> (v) => (w) { f = Constant<value_float: float = @k>() o = Constant<value = float {1}>()
            a = Identity(v) b = Mul(a, o) c = Transpose<perm = [1, 0]>(b) d = Transpose<perm = [1, 0]>(c)
            w = Mul(d, f) }
    """
    proto = onnx.parser.parse_model(text)
    before = onnx.ModelProto.FromString(proto.SerializeToString())
    model = onnxlab.load(proto)
    assert not model.simplify().refused
    same(model, before)
    assert [node.op_type for node in model.proto.functions[0].node] == ["Constant", "Mul"]


def test_weights_of_models_of_before_ir_version_four_are_constants() -> None:
    proto = parsed("a = Exp(w) y = Mul(x, a)", opset=9)
    proto.ir_version = 3
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.full(4, 2, np.float32), "w"))
    proto.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [4]))
    model = onnxlab.load(proto)
    model.simplify()
    assert operators(model) == ["Mul"]
    assert [value.name for value in model.inputs] == ["x"]


def test_protected_graphs_and_prefixes_stay() -> None:
    proto = parsed("a = Identity(x) b = Identity(a) y = Relu(b)")
    proto.graph.node[0].name = "enc/one"
    proto.graph.node[1].name = "dec/two"
    model = onnxlab.load(proto)
    model.simplify(protect=["enc/"])
    assert operators(model) == ["Identity", "Relu"]
    model = onnxlab.load(parsed(IF))
    branch = next(scope for scope in model.graph.scopes.values() if scope.attribute == "then_branch")
    model.simplify(protect=[model.graph.scope_path(branch)])
    assert "Exp" in [node.op_type for node in model.graph.nodes.values()]


def test_weights_are_no_inputs_once_a_model_is_of_ir_version_4() -> None:
    model = onnxlab.load(corpus.path("light_squeezenet"))
    assert model.graph.header.ir_version == 3
    model.simplify(verify=False)
    assert model.graph.header.ir_version == 4
    assert [value.name for value in model.proto.graph.input] == ["data_0"]
    model.undo()
    assert (model.graph.header.ir_version, len(model.proto.graph.input)) == (3, 53)
