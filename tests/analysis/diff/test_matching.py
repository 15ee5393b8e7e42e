"""Matching against planted truth: all names replaced, all nodes shuffled, some edited."""

import random

import onnx
import onnx.parser
import pytest

import onnxlab
from tests.analysis.diff.truth import edited, renamed_and_shuffled
from tests.support import corpus

MODELS = (
    "bert_base",
    "gpt2_kv",
    "light_squeezenet",
    "rapidocr_cls",
    "silero_vad_op18_ifless",
    "functions_ts",
    "stft_audio",
)


def shares(name: str, share: float) -> tuple[float, float]:
    """The shares of a model's values that are matched rightly and wrongly."""
    a, rng = onnxlab.load(corpus.path(name)), random.Random(7)
    proto, gone = edited(a.proto, share, rng) if share else (a.proto, set())
    proto, table = renamed_and_shuffled(proto, rng)
    b = onnxlab.load(proto)
    pairs = onnxlab.diff(a, b).matching.values
    right = wrong = total = 0
    for vid in a.graph.main.names.values():
        old = a.graph.values[vid].name
        present = old not in gone and table.get(old) in b.graph.main.names
        total += present
        if vid in pairs:
            agrees = present and b.graph.values[pairs[vid]].name == table[old]
            right, wrong = right + agrees, wrong + (not agrees)
    return right / total, wrong / total


@pytest.mark.parametrize("name", MODELS)
def test_other_names_and_another_order_change_nothing(name: str) -> None:
    assert shares(name, 0) == (1, 0)


@pytest.mark.parametrize("name", MODELS)
def test_a_twentieth_of_the_nodes_edited(name: str) -> None:
    right, wrong = shares(name, 0.05)
    assert right >= 0.97
    assert wrong <= 0.01


def test_bodies_and_functions_are_matched() -> None:
    a = onnxlab.load(corpus.path("silero_vad_if"))
    proto, _ = renamed_and_shuffled(a.proto, random.Random(0))
    diff = onnxlab.diff(a, proto)
    assert len(diff.matching.nodes) == len(a.graph.nodes)
    assert len(diff.matching.scopes) == len(a.graph.scopes)
    assert {change.kind for change in diff} <= {"renamed", "moved"}


def test_names_that_are_kept_tell_twins_apart() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[4] x) => (float[4] y) {
        a = Relu(x) b = Relu(x) c = Neg(a) d = Neg(b) y = Add(c, d) }"""
    a = onnxlab.load(onnx.parser.parse_model(text))
    other = text.replace("d = Neg(b)", "d = Exp(b)").replace("a = Relu(x) b = Relu(x)", "b = Relu(x) a = Relu(x)")
    b = onnxlab.load(onnx.parser.parse_model(other))
    diff = onnxlab.diff(a, b)
    names = {a.graph.values[vid].name: b.graph.values[other].name for vid, other in diff.matching.values.items()}
    assert names == {name: name for name in "xabcdy"}
    assert [str(change) for change in diff.of_kind("changed")] == ["node Exp#3: operator Neg → Exp"]


def test_a_constant_is_the_same_value_as_an_initializer() -> None:
    header = '<ir_version: 9, opset_import: ["" : 18]> g (float[2] x) => (float[2] y)'
    a = onnxlab.load(onnx.parser.parse_model(header + " { c = Constant <value = float[2] {1, 2}> () y = Add(x, c) }"))
    b = onnxlab.load(onnx.parser.parse_model(header + " <float[2] k = {1, 2}> { y = Add(x, k) }"))
    diff = onnxlab.diff(a, b, ignore=["names"])
    assert [str(change) for change in diff] == ["value k: storage a Constant → an initializer"]
    assert not diff.regions


def test_what_is_fused_is_found_by_name_where_its_reader_became_another() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.nodes["/stem/relu/Relu"].op_type = "Abs"
    b.simplify(verify=False)
    diff = onnxlab.diff(a, b)
    names = {a.graph.values[vid].name: b.graph.values[other].name for vid, other in diff.matching.values.items()}
    assert names["stem/bn_out"] == "stem/bn_out"
    assert "stem/conv_out" not in names


def test_what_stands_behind_fused_products_is_matched() -> None:
    head = (
        '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2] x) => (float[n, 2] y) <float[2, 2] w = {1, 2, 3, 4}, '
    )
    head += "float[2] b = {5, 6}, float[2, 2] v = {7, 8, 9, 10}, float[2] c = {11, 12}> "
    text = "{ p = MatMul(x, w) q = Add(p, b) r = Relu(q) s = MatMul(r, v) t = Add(s, c) y = Abs(t) }"
    a = onnxlab.load(onnx.parser.parse_model(head + text))
    b = onnxlab.load(onnx.parser.parse_model(head + "{ k = Gemm(x, w, b) l = Relu(k) m = Gemm(l, v, c) y = Abs(m) }"))
    pairs = onnxlab.diff(a, b).matching.values
    names = {a.graph.values[ours].name: b.graph.values[theirs].name for ours, theirs in pairs.items()}
    assert {"q": "k", "r": "l", "t": "m", "y": "y"}.items() <= names.items()
    assert names.keys().isdisjoint({"p", "s"})
