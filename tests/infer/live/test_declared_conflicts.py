"""Declared types that contradict what inference finds: those of body inputs too."""

from typing import Any

import onnx
import pytest

import onnxlab
from onnxlab.errors import Diagnostic
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference

SCAN = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] s, float[5, 2] x) => (float[2] e, float[5, 2] ys)
{ e, ys = Scan <num_scan_inputs = 1, body = b (DECLARED a, float[2] i) => (float[2] o, float[2] p)
    { o = Add (a, i)  p = Identity (i) }> (s, x) }
"""
SEQUENCE = """
<ir_version: 8, opset_import: ["" : 17]>
g (seq(float[2]) x) => (seq(float[2]) y)
{ y = SequenceMap <body = b (DECLARED a) => (float[2] o) { o = Neg (a) }> (x) }
"""
LOOP = """
<ir_version: 8, opset_import: ["" : 17]>
g (int64 n, bool c, float[2] s) => (float[2] e)
{ e = Loop <body = b (int64 i, bool d, DECLARED a) => (bool o, float[2] p) { o = Identity (d)  p = Neg (a) }>
    (n, c, s) }
"""
GROWING = """
<ir_version: 8, opset_import: ["" : 17]>
g (int64 n, bool c, float[2] s) => (e)
{ e = Loop <body = b (int64 i, bool d, DECLARED a) => (bool o, p) { o = Identity (d)  p = Concat <axis = 0> (a, a) }>
    (n, c, s) }
"""


def conflicts(text: str, declared: str) -> tuple[ModelGraph, list[Diagnostic]]:
    graph = ModelGraph(onnx.parser.parse_model(text.replace("DECLARED", declared)))
    return graph, [problem for problem in Inference(graph).diagnostics if problem.code.startswith("declared-")]


@pytest.mark.parametrize("text", [SCAN, SEQUENCE, LOOP])
@pytest.mark.parametrize(
    ("declared", "code"),
    [
        ("float[2, 2]", "declared-rank"),
        ("float", "declared-rank"),
        ("double[2]", "declared-type"),
        ("float[3]", "declared-dim"),
    ],
)
def test_a_body_input_is_declared_as_it_is_given(text: str, declared: str, code: str) -> None:
    """onnx and onnxruntime refuse these."""
    graph, problems = conflicts(text, declared)
    (problem,) = [problem for problem in problems if "body input 'a'" in problem.message]
    assert problem.code == code
    assert graph.nodes[problem.node].op_type in ("Scan", "SequenceMap", "Loop")


@pytest.mark.parametrize("text", [SCAN, SEQUENCE, LOOP, GROWING])
@pytest.mark.parametrize("declared", ["float[2]", "float[n]", "float[]"])
def test_what_fits_is_no_conflict(text: str, declared: str) -> None:
    if (text, declared) != (GROWING, "float[2]"):
        assert not conflicts(text, declared)[1]


def test_an_edit_corrects_the_declaration_of_a_body_input() -> None:
    model = onnxlab.load(onnx.parser.parse_model(LOOP.replace("DECLARED", "float[2]")))
    graph = model.graph
    edits.set_shape(graph, graph.values[graph.resolve_value("s")], [7])
    assert not [problem for problem in model.check() if problem.code.startswith("declared-")]


@pytest.mark.parametrize(("declared", "codes"), [("int64", []), ("string", ["declared-type"])])
def test_keys_of_maps_are_compared(declared: str, codes: str) -> None:
    text = f"""
    <ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
    g (float[2, 3] x) => (seq(map({declared}, float)) z)
    {{ z = ai.onnx.ml.ZipMap <classlabels_int64s = [1, 2, 3]> (x) }}
    """
    assert [problem.code for problem in Inference(ModelGraph(onnx.parser.parse_model(text))).diagnostics] == codes


@pytest.mark.parametrize("place", ["input", "output", "value_info"])
def test_a_declared_dim_below_zero_is_told(place: Any) -> None:
    """A negative dim is taken as unknown, so that nothing contradicts it; onnx compares it as a size."""
    imports = '<ir_version: 8, opset_import: ["" : 17]>'
    text = f"{imports} g (float[3] x) => (float[3] y) <float[3] t> {{ t = Neg (x) y = Neg (t) }}"
    model = onnx.parser.parse_model(text)
    assert not Inference(ModelGraph(model)).diagnostics
    getattr(model.graph, place)[0].type.tensor_type.shape.dim[0].dim_value = -(2**31)
    (problem,) = Inference(ModelGraph(model)).diagnostics
    assert (problem.code, problem.found) == ("dim-negative", str(-(2**31)))


def test_odd_types_in_bodies_are_told() -> None:
    """Inference knows nothing of them that another type could contradict."""
    model = onnx.parser.parse_model(LOOP.replace("DECLARED", "float[2]"))
    assert not onnxlab.check(model)
    body = model.graph.node[0].attribute[-1].g
    body.output[1].type.opaque_type.SetInParent()
    assert {problem.code for problem in onnxlab.check(model)} == {"value-type-opaque", "declared-type"}
    body.output[1].type.tensor_type.elem_type = 99
    assert "value-type-unknown" in [problem.code for problem in onnxlab.check(model)]
    body.output[1].type.tensor_type.elem_type = 0  # which onnxruntime does not load
    assert [problem.code for problem in onnxlab.check(model)] == ["value-type-unknown"]
    body.output[1].type.sequence_type.elem_type.tensor_type.elem_type = 0
    assert {problem.code for problem in onnxlab.check(model)} >= {"value-type-unknown"}
    body.output[1].type.sequence_type.elem_type.Clear()
    assert {problem.code for problem in onnxlab.check(model)} >= {"value-type"}
    body.output[1].ClearField("type")
    assert not onnxlab.check(model)


def test_an_opaque_type_of_a_known_value_is_told() -> None:
    imports = '<ir_version: 8, opset_import: ["" : 17]>'
    text = f"{imports} g (float[3] x) => (float[3] y) <float[3] t> {{ t = Neg (x) y = Neg (t) }}"
    model = onnx.parser.parse_model(text)
    model.graph.value_info[0].type.opaque_type.SetInParent()
    assert [problem.code for problem in onnxlab.check(model)] == ["declared-type"]


@pytest.mark.parametrize(
    ("declared", "code"),
    [("float[2]", "declared-type"), ("uint8[3]", "declared-dim"), ("uint8[2, 1]", "declared-rank"), ("uint8[n]", "")],
)
@pytest.mark.parametrize("name", ["x", "y"])
def test_an_output_that_is_an_input_or_listed_twice_is_declared_alike(name: str, declared: str, code: str) -> None:
    """onnx refuses these; onnxruntime takes whichever it reads last."""
    text = f"g (uint8[2] x) => (uint8[2] y, {declared} {name}) {{ y = Identity (x) }}"
    graph = ModelGraph(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> {text}'))
    problems = [(problem.code, problem.value) for problem in Inference(graph).diagnostics]
    assert problems == ([(code, graph.main.outputs[1])] if code else [])


@pytest.mark.parametrize("name", ["x", "y"])
def test_an_output_that_is_an_input_or_listed_twice_has_no_negative_dim(name: str) -> None:
    text = f"g (uint8[2] x) => (uint8[2] y, uint8[1] {name}) {{ y = Identity (x) }}"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> {text}')
    model.graph.output[1].type.tensor_type.shape.dim[0].dim_value = -(2**31)
    problems = Inference(ModelGraph(model)).diagnostics
    assert [(problem.code, problem.found) for problem in problems] == [("dim-negative", str(-(2**31)))]


def test_a_sparse_tensor_is_no_dense_one() -> None:
    """onnx refuses to merge them, within sequences too."""
    text = SEQUENCE.replace("seq(float[2]) y", "seq(float[2]) y, seq(sparse_tensor(float[2])) z")
    text = text.replace("{ y =", "{ z = SequenceMap <body = c (a) => (float[2] o) { o = Abs (a) }> (x) y =")
    _, problems = conflicts(text, "float[2]")
    assert [problem.code for problem in problems] == ["declared-type"]


def test_a_state_of_a_scan_has_its_shape_in_all_iterations() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[SIZE] start, float[3, 2] x) => (float[n] y, float[3, 2] z) {
            y, z = Scan <num_scan_inputs = 1, body = b (float[2] sum, float[2] row) => (float[2] next, float[2] out) {
                next = Add(sum, row)
                out = Identity(next)
            }> (start, x)
        }"""
    models = {size: onnxlab.load(onnx.parser.parse_model(text.replace("SIZE", size))) for size in ("2", "99", "1")}
    assert models["2"].check() == []
    assert str(models["2"].fact(models["2"].outputs[0])) == "float32[2]"
    (first, *_) = models["99"].check()
    assert (first.code, first.severity) == ("shape-mismatch", "error")
    (first, *_) = models["1"].check()
    assert "a Scan keeps the shapes of its states, but the body gets [1] for 'sum' and makes [2] of it" in first.message


@pytest.mark.parametrize("heads", ["", "<kv_num_heads = 3, q_num_heads = 3>"])
def test_queries_keys_and_values_of_attention_have_one_rank(heads: str) -> None:
    """onnxruntime refuses others when it runs them, onnx where the declared output tells."""
    text = f"""<ir_version: 10, opset_import: ["" : 23]>
        g (float[2, 3, 2, 8] q, float[2, 6, 24] k, float[2, 3, 6, 5] v) => (float[2, 3, 4, 5] y)
        {{ y = Attention {heads} (q, k, v) }}"""
    (problem,) = Inference(ModelGraph(onnx.parser.parse_model(text))).diagnostics
    assert (problem.code, problem.found) == ("rank-mismatch", "ranks 4, 3 and 4")
