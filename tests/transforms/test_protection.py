"""Nodes, values, graphs and functions that are protected: no rule and no pass touches them."""

from functools import partial

import onnx
import onnx.parser
import pytest

import onnxlab
from onnxlab.errors import NameLookupError
from tests.transforms.test_simplify import operators, parsed

DEAD = "a = Exp(x) b = Neg(a) y = Relu(x)"
PAIR = "t = Transpose<perm = [1, 0]>(x) r = Relu(t) y = Transpose<perm = [1, 0]>(r)"


@pytest.mark.parametrize(
    ("body", "protected", "left"),
    [
        (DEAD, "b", ["Exp", "Neg", "Relu"]),
        (DEAD, "a", ["Exp", "Relu"]),
        ("a = Identity(x) y = Relu(a)", "a", ["Identity", "Relu"]),
        ("a = Exp(x) y = Identity(a)", "a", ["Exp", "Identity"]),
        ("a = Relu(x) y = Relu(a)", "a", ["Relu", "Relu"]),
        ("a = Exp(x) b = Exp(x) y = Add(a, b)", "b", ["Exp", "Exp", "Add"]),
        ("c = Constant<value = float[4] {1, 2, 3, 4}>() d = Exp(c) y = Add(x, d)", "d", ["Constant", "Exp", "Add"]),
        (PAIR, "r", ["Transpose", "Relu", "Transpose"]),
    ],
)
def test_a_protected_value_is_made_as_before(body: str, protected: str, left: list[str]) -> None:
    model = onnxlab.load(parsed(body))
    model.optimize("layout", protect=[protected])
    assert operators(model) == left
    assert protected in model.graph.main.names
    open_model = onnxlab.load(parsed(body))
    open_model.optimize("layout")
    assert operators(open_model) != left


IF = """t = Constant<value = bool {1}>() y = If (t) <then_branch = inner () => (float p) { n = Identity(x) p = Neg(n) },
        else_branch = other () => (float q) { q = Abs(x) }>"""
LOOP = """n = Constant<value = int64 {2}>() t = Constant<value = bool {1}>()
          y = Loop (n, t, x) <body = inner (int64 i, bool c, float[b,4] v) => (bool d, float[b,4] w) {
          d = Identity(c) e = Exp(x) k = Identity(e) w = Add(v, k) }>"""


@pytest.mark.parametrize("body", [IF, LOOP])
@pytest.mark.parametrize("protected", ["inner", "path"])
def test_a_protected_graph_is_left_as_it_is(body: str, protected: str) -> None:
    model = onnxlab.load(parsed(body))
    scope = next(scope for scope in model.graph.scopes.values() if scope.name == "inner")
    name = model.graph.scope_path(scope) if protected == "path" else protected
    before = [node.SerializeToString() for node in scope.proto.node]
    model.simplify(protect=[name])
    scope = next(scope for scope in model.graph.scopes.values() if scope.name == "inner")
    assert [node.SerializeToString() for node in scope.proto.node] == before


def test_nodes_by_the_beginning_of_their_names() -> None:
    proto = parsed("a = Identity(x) b = Identity(a) y = Relu(b)")
    for node, name in zip(proto.graph.node, ("enc/a", "dec/b", "dec/y"), strict=True):
        node.name = name
    model = onnxlab.load(proto)
    model.simplify(protect=["enc/"])
    assert [node.name for node in model.nodes] == ["enc/a", "dec/y"]


def test_a_protected_function_stays_though_nothing_calls_it() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18, "mine" : 1]> g (float[3] x) => (float[3] y) { y = Relu(x) }
              <domain: "mine", opset_import: ["" : 18]> f (a) => (c) { b = Identity(a) c = Neg(b) }
              <domain: "mine", opset_import: ["" : 18]> h (a) => (c) { c = Neg(a) }"""
    model = onnxlab.load(onnx.parser.parse_model(text))
    model.simplify(protect=["mine::f"])
    assert [function.name for function in model.proto.functions] == ["f"]
    assert len(model.proto.functions[0].node) == 2


def test_a_protected_initializer_stays_and_is_read() -> None:
    proto = parsed("c = Add(x, v) y = Add(c, w)", inputs="float[b,4] x, float[4] v, float[4] w")
    for name in ("v", "w"):
        tensor = onnx.helper.make_tensor(name, 1, [4], [1.0, 2.0, 3.0, 4.0])
        proto.graph.initializer.append(tensor)
    del proto.graph.input[1:]
    model = onnxlab.load(proto)
    model.simplify(protect=["w"])
    assert [tensor.name for tensor in model.proto.graph.initializer] == ["v", "w"]


def test_why_not_says_that_a_rule_would_take_what_is_protected() -> None:
    model = onnxlab.load(parsed("a = Relu(x) b = Relu(a) y = Neg(b)"))
    receipt = model.rewrite("relu_again", protect=["a"], dry_run=True)
    assert receipt.applied == ()


@pytest.mark.parametrize(
    ("protected", "words"),
    [("nope", r"protect has 'nope': no node"), ("stm", "Did you mean 'stem'"), ("ste/", "Did you mean 'stem'"),
     ("/", "no name of a node begins with '/'"), ("", r"protect has ''.*begins with '/'\.$"),
     ("block", "called so; write 'block/' for all nodes"), ("block/*", "called so; write 'block/' for all nodes")],
)  # fmt: skip
def test_a_name_that_protects_nothing_is_refused(protected: str, words: str) -> None:
    proto = parsed("a = Identity(x) y = Relu(a)")
    proto.graph.node[0].name, proto.graph.node[1].name = "stem", "block/relu"
    model = onnxlab.load(proto)
    for rewrite in (
        partial(model.simplify, dry_run=True), partial(model.optimize, "layout"), model.fold,
        partial(model.rewrite, "relu_again"),
    ):  # fmt: skip
        with pytest.raises(NameLookupError, match=words):
            rewrite(protect=["stem", protected])
    assert len(model.nodes) == 2
