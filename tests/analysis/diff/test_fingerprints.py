"""Ties that structure leaves are broken by values."""

import onnx.parser

import onnxlab
from onnxlab.model.viewable_diffs import ModelDiff

HEADER = '<ir_version: 9, opset_import: ["" : 18]> g (float[4,4] x) => (float[4,4] {0}, float[4,4] {1})'
A = HEADER.replace("{0}", "m").replace("{1}", "n") + "<float k = {2}, float l = {3}> { m = Mul(x, k) n = Mul(x, l) }"
B = HEADER.replace("{0}", "u").replace("{1}", "v") + (
    "<int64 p = {3}, int64 q = {2}> { r = Cast<to=1>(p) s = Cast<to=1>(q) u = Mul(x, r) v = Mul(x, s) }"
)


def pairs(diff: ModelDiff) -> dict[str, str]:
    return {diff.a.values[ours].name: diff.b.values[theirs].name for ours, theirs in diff.matching.values.items()}


def test_values_tell_apart_what_structure_cannot() -> None:
    a, b = (onnxlab.load(onnx.parser.parse_model(text)) for text in (A, B))
    by_order = pairs(onnxlab.diff(a, b))
    assert (by_order["m"], by_order["n"]) == ("u", "v"), "structure has nothing but the order"
    by_values = pairs(onnxlab.diff(a, b, inputs={}))
    assert (by_values["m"], by_values["n"]) == ("v", "u")


def test_equal_models_stay_so() -> None:
    assert not onnxlab.diff(onnxlab.load(), onnxlab.load(), inputs={})


def test_a_model_that_does_not_run_is_compared_all_the_same() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.nodes["/head/fc/Gemm"].attributes["transB"] = 0
    assert [str(change) for change in onnxlab.diff(a, b, inputs={})] == [str(change) for change in onnxlab.diff(a, b)]
