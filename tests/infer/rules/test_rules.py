"""Shape rules: symbolic results that onnx does not give, and refusals that name both sides."""

from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from onnx import TensorProto

from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from tests.infer.support.models import ints, one_node, parsed

F, I = TensorProto.FLOAT, TensorProto.INT64  # noqa: E741


def floats(*items: float) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(np.array(items, np.float32))


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "expected"),
    [
        ("Reshape", [(F, ["b", "s", 768]), ints(0, -1, 12, 64)], {}, "float32[b,s,12,64]"),
        ("Reshape", [(F, ["b", "s", 6]), ints(-1, 4)], {}, "float32[b*s + floor((b*s)/2),4]"),
        ("Flatten", [(F, ["b", "c", "h", "w"])], {}, "float32[b,c*h*w]"),
        ("Conv", [(F, ["n", 3, "h", "w"]), (F, [8, 3, 3, 3])], {"strides": [2, 2], "pads": [1] * 4},
         "float32[n,8,floor((h + 1)/2),floor((w + 1)/2)]"),
        ("Conv", [(F, ["n", 3, "h", 8]), (F, [8, 3, 3, 3])], {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
         "float32[n,8,floor((h + 1)/2),4]"),
        ("MaxPool", [(F, [1, 4, "h", 7])], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
         "float32[1,4,floor((h + 1)/2),4]"),
        ("ConvTranspose", [(F, ["n", 4, "h", 5]), (F, [4, 2, 3, 3])], {"strides": [2, 2]}, "float32[n,2,2*h + 1,11]"),
        ("Concat", [(F, ["a", 2]), (F, ["b", 2])], {"axis": 0}, "float32[a + b,2]"),
        ("Slice", [(F, ["n", 8]), ints(1), ints(2**63 - 1), ints(0)], {}, "float32[max(n - 1, 0),8]"),
        ("Slice", [(F, ["n", 8]), ints(0), ints(-1), ints(1)], {}, "float32[n,7]"),
        ("Slice", [(F, ["n", 8]), ints(0), ints(3), ints(0)], {}, "float32[min(n, 3),8]"),
        ("Add", [(F, ["a", 1]), (F, [1, "b"])], {}, "float32[a,b]"),
        ("Add", [(F, ["a"]), (F, ["b"])], {}, "float32[broadcast(a, b)]"),
        ("Add", [(F, ["a"]), (F, [3])], {}, "float32[3]"),
        ("MatMul", [(F, ["b", 12, "s", 64]), (F, [64, "t"])], {}, "float32[b,12,s,t]"),
        ("Gemm", [(F, [4, "m"]), (F, ["n", 4])], {"transA": 1, "transB": 1}, "float32[m,n]"),
        ("Einsum", [(F, ["b", "i", "j"]), (F, ["b", "j", "k"])], {"equation": "bij,bjk->bik"}, "float32[b,i,k]"),
        ("Einsum", [(F, ["b", 4, 5])], {"equation": "...ij->...ji"}, "float32[b,5,4]"),
        ("Tile", [(F, ["a", 2]), ints(3, 2)], {}, "float32[3*a,4]"),
        ("Expand", [(F, ["a", 1]), ints(1, 5)], {}, "float32[a,5]"),
        ("Pad", [(F, ["a", 2]), ints(1, 0, 2, 3)], {}, "float32[a + 3,5]"),
        ("Resize", [(F, [1, 3, "h", "w"]), None, floats(1, 1, 2, 0.5)], {}, "float32[1,3,2*h,floor(w/2)]"),
        ("DepthToSpace", [(F, ["n", 16, "h", 2])], {"blocksize": 2}, "float32[n,4,2*h,4]"),
        ("Gather", [(F, [30, 8]), (I, ["b", "s"])], {}, "float32[b,s,8]"),
        ("GatherND", [(F, ["b", "s", 8]), (I, ["n", 2])], {}, "float32[n,8]"),
        ("TopK", [(F, ["b", 100]), ints(5)], {}, "float32[b,5]"),
        ("NonZero", [(F, ["b", 100])], {}, "int64[2,y0.1]"),
        ("NonZero", [(F, [])], {}, "int64[y0.0,y0.1]"),
        ("OneHot", [(I, ["b"]), ints(10), floats(0, 1)], {}, "float32[b,10]"),
        ("ReduceMean", [(F, ["b", "s", 8]), ints(-1)], {"keepdims": 0}, "float32[b,s]"),
        ("ArgMax", [(F, ["b", 8])], {"axis": 1, "keepdims": 0}, "int64[b]"),
        ("LSTM", [(F, ["s", "b", 4]), (F, [2, 32, 4]), (F, [2, 32, 8])],
         {"hidden_size": 8, "direction": "bidirectional"}, "float32[s,2,b,8]"),
        ("SpaceToDepth", [(F, ["n", 4, "h", 4])], {"blocksize": 2}, "float32[n,16,floor(h/2),2]"),
        ("EyeLike", [(F, ["n", "n"])], {"dtype": 7}, "int64[n,n]"),
        ("STFT", [(F, [1, "n", 1]), onnx.helper.make_tensor("", I, [], [32]), None,
                  onnx.helper.make_tensor("", I, [], [128])], {}, "float32[1,floor(n/32) - 3,65,2]"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)  # fmt: skip
def test_shapes_stay_symbolic(op_type: str, inputs: list[Any], attributes: dict[str, Any], expected: str) -> None:
    outputs = {"TopK": 2}.get(op_type, 1)
    facts, inference = one_node(op_type, inputs, outputs, **attributes)
    assert str(facts[0]) == expected
    assert inference.diagnostics == []


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "code", "expected", "actual"),
    [
        ("Conv", [(F, [1, 4, 8, 8]), (F, [8, 3, 3, 3])], {}, "channel-mismatch", "3 channels", "4 channels"),
        ("Conv", [(F, [1, 4, 2, 2]), (F, [8, 4, 3, 3])], {}, "window-too-large", "at least 3", "2"),
        ("Conv", [(F, [1, 4, 8, 8]), (F, [8, 4, 3, 3])], {"pads": [1, 1]}, "bad-attribute", "4 values", "2 values"),
        ("Conv", [(F, [1, 4, 8, 8]), (F, [8, 4, 3, 3])], {"kernel_shape": [5, 5]}, "bad-attribute", "3", "5"),
        ("Reshape", [(F, [2, 3]), ints(4, 2)], {}, "element-count", "6 elements", "8 elements"),
        ("Reshape", [(F, [2, 3]), ints(4, -1)], {}, "element-count", "a multiple of 4 elements", "6 elements"),
        ("MatMul", [(F, [2, 3]), (F, [4, 5])], {}, "shape-mismatch", "3", "4"),
        ("Gemm", [(F, [2, 3, 4]), (F, [4, 5])], {}, "rank-mismatch", "a matrix", "rank 3"),
        ("Add", [(F, [2, 3]), (F, [4])], {}, "shape-mismatch", "3 or 1", "4"),
        ("Concat", [(F, [2, 3]), (F, [2, 4])], {"axis": 0}, "shape-mismatch", "3", "4"),
        ("Transpose", [(F, [2, 3])], {"perm": [0, 0]}, "bad-attribute", "a permutation of 0 to 1", "[0, 0]"),
        ("Gather", [(F, [3, 2]), ints(5)], {}, "index-out-of-range", "-3 to 2", "5"),
        ("Softmax", [(F, [3])], {"axis": 7}, None, "", ""),
        ("Squeeze", [(F, [2, 1]), ints(0)], {}, "shape-mismatch", "1", "2"),
        ("Unsqueeze", [(F, [2]), ints(9)], {}, "axis-out-of-range", "-2 to 1", "9"),
        ("Split", [(F, [6]), ints(2, 3)], {}, "shape-mismatch", "6", "5"),
        ("Add", [(F, [2]), (I, [2])], {}, "type-mismatch", "tensor(float)", "tensor(int64)"),
        ("Relu", [], {}, "arity", "1", "0"),
        ("Range", [ints(0), ints(4), ints(0)], {}, "shape-mismatch", "a step that is not 0", "0"),
    ],
)
def test_refusals_name_both_sides(
    op_type: str, inputs: list[Any], attributes: dict[str, Any], code: str | None, expected: str, actual: str
) -> None:
    facts, inference = one_node(op_type, inputs, 2 if op_type == "Split" else 1, **attributes)
    errors = [d for d in inference.diagnostics if d.severity == "error"]
    if code is None:
        return
    assert [(d.code, d.expected, d.found) for d in errors] == [(code, expected, actual)]
    assert errors[0].message.startswith(f"node ({op_type}): ")
    if inputs and code != "type-mismatch":
        assert facts[0].shape is None


def test_computed_sizes_of_an_exporter_resolve() -> None:
    """Shape → Cast → Mul → Floor → Cast → Concat → Resize, as torch exports an interpolation."""
    graph = parsed("""
        agraph (float[1, 3, h, w] x) => (y)
        <int64[1] two = {2}, int64[1] four = {4}, int64[1] zero = {0}, float scale = {1.5}, int64[1] low = {0}>
        {
            shape = Shape(x)
            space = Slice(shape, two, four, zero)
            as_float = Cast <to = 1> (space)
            scaled = Mul(as_float, scale)
            floored = Floor(scaled)
            sizes = Cast <to = 7> (floored)
            first = Slice(shape, low, two, zero)
            target = Concat <axis = 0> (first, sizes)
            empty = Constant <value_floats = [0.0]> ()
            y = Resize(x, , , target)
        }
    """)
    assert str(Inference(graph).fact(graph.resolve_value("y"))) == "float32[1,3,floor(h/2) + h,floor(w/2) + w]"


def test_where_over_a_comparison_with_minus_one_resolves() -> None:
    """Where(Equal(shape, -1), ones, shape): how Expand is exported."""
    graph = parsed("""
        agraph (float[b, 1] x) => (y)
        <int64[2] wanted = {-1, 7}, int64[2] minus = {-1, -1}, int64[2] ones = {1, 1}>
        { same = Equal(wanted, minus)  target = Where(same, ones, wanted)  y = Expand(x, target) }
    """)
    assert str(Inference(graph).fact(graph.resolve_value("y"))) == "float32[b,7]"


def test_an_unknown_scalar_names_the_sizes_made_from_it() -> None:
    graph = parsed("""
        agraph (int64 n) => (y, z) <int64 zero = {0}, int64 one = {1}>
        {
            y = Range(zero, n, one)
            axes = Constant <value_ints = [0]> ()
            m = Unsqueeze(n, axes)
            z = ConstantOfShape(m)
        }
    """)
    inference = Inference(graph)
    assert str(inference.fact(graph.resolve_value("y"))) == "int64[max(n, 0)]"
    assert inference.fact(graph.resolve_value("z")).rank == 1


def test_a_loop_keeps_what_no_iteration_changes() -> None:
    graph = parsed("""
        agraph (float[n, 4] x, int64 trips, bool go) => (same, grown, scans)
        {
            same, grown, scans = Loop (trips, go, x, x) <
                body = b (int64 i, bool c, float[p, 4] s, float[q, 4] g)
                    => (bool d, float[p, 4] t, float[r, 4] h, float[p, 4] o)
                { d = Identity(c)  t = Relu(s)  h = Concat <axis = 0> (g, x)  o = Neg(s) }
            >
        }
    """)
    inference = Inference(graph)
    facts = {name: str(inference.fact(graph.resolve_value(name))) for name in ("same", "grown", "scans")}
    assert facts == {"same": "float32[n,4]", "grown": "float32[grown.0,4]", "scans": "float32[scans.0,n,4]"}


STEPS = {
    "n": "count", "more": "more_of", "less": "less_of", "7": "seven", "1": "single", "99": "many",
    "9223372036854775807": "all", "": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "compared", "expected"),
    [
        ("n", "n", "float32[n,4]"),
        ("7", "7", "float32[7,4]"),
        ("n", "more", "float32[n,4]"),
        ("n", "less", "float32[scans.0,4]"),  # the comparison fails before the count ends
        ("1", "less", "float32[1,4]"),
        ("", "7", "float32[7,4]"),
        ("99", "7", "float32[7,4]"),  # the condition ends it
        ("9223372036854775807", "7", "float32[7,4]"),
        ("", "n", "float32[scans.0,4]"),
        ("", "1", "float32[1,4]"),
    ],
)
def test_a_loop_whose_condition_compares_a_counter_runs_as_often_as_it_counts(
    limit: str, compared: str, expected: str
) -> None:
    """Such as tf2onnx makes of recurrent layers: the counter, as a float, against the number of steps."""
    graph = parsed(
        """
        agraph (float[n, 4] x) => (counted, scans)
        <int32 zero = {0}, int32 one = {1}, int64 two = {2}, int64 seven = {7}, int64 single = {1}, bool go = {1},
         int64 many = {99}, int64 all = {9223372036854775807}>
        {
            shape = Shape(x)  first = Constant<value_int = 0>()  count = Gather(shape, first)
            more_of = Add(count, two)  less_of = Sub(count, two)
            steps = Cast<to = 1>(COMPARED)
            counted, scans = Loop (LIMIT, go, zero) <
                body = b (int64 i, bool c, int32 t) => (bool d, int32 u, float[4] o) {
                    u = Add(t, one)  reached = Cast<to = 1>(u)  number = Cast<to = 1>(i)
                    in_time = Less(reached, steps)  in_count = Less(number, steps)  d = And(in_time, in_count)
                    o = Gather(x, t)
                }
            >
        }
    """.replace("LIMIT", STEPS[limit]).replace("COMPARED", STEPS[compared])
    )
    inference = Inference(graph)
    assert str(inference.fact(graph.resolve_value("scans"))) == expected
    assert str(inference.fact(graph.resolve_value("counted"))) == "int32[]"
    assert inference.diagnostics == []
    body = next(scope for scope in graph.scopes.values() if scope.kind == "subgraph")
    assert str(inference.fact(body.names["u"]).known) == "u", "what stays is true of any iteration"  # type: ignore[attr-defined]


def test_a_known_condition_takes_its_branch() -> None:
    graph = parsed("""
        agraph (float[n, 4] x) => (y)
        <bool go = {1}>
        {
            y = If (go) <then_branch = t () => (float[n, 4] a) { a = Relu(x) },
                         else_branch = e () => (float[m] b) { b = Flatten(x) }>
        }
    """)
    assert str(Inference(graph).fact(graph.resolve_value("y"))) == "float32[n,4]"


def test_a_function_is_inferred_for_each_call_and_attribute() -> None:
    graph = parsed("""
        agraph (float[n, 4] x, float[2, 3, 4] z) => (a, b, c)
        { a = local.f <axis = 0> (x)  b = local.f (z)  c, d = local.g (x) }
        <opset_import: ["" : 20], domain: "local">
        f <axis: int = 1> (v) => (w) { w = Softmax <axis: int = @axis> (v) }
        <opset_import: ["" : 20], domain: "local">
        g (v) => (p, q) { p = NonZero(v)  q = NonZero(p) }
    """)
    inference = Inference(graph)
    assert str(inference.fact(graph.resolve_value("a"))) == "float32[n,4]"
    assert str(inference.fact(graph.resolve_value("b"))) == "float32[2,3,4]"
    first, second = inference.fact(graph.resolve_value("c")), inference.fact(graph.resolve_value("d"))
    assert str(first) == "int64[2,c.1]"
    assert first.shape is not None
    assert second.shape is not None
    assert first.shape[1] is not second.shape[1]


def test_two_calls_have_unknown_sizes_of_their_own() -> None:
    graph = parsed("""
        agraph (float[4] x, float[4] y) => (a, b) { a = local.g (x)  b = local.g (y) }
        <opset_import: ["" : 20], domain: "local"> g (v) => (p) { p = NonZero(v) }
    """)
    inference = Inference(graph)
    a, b = (inference.fact(graph.resolve_value(name)).shape for name in "ab")
    assert a is not None
    assert b is not None
    assert a[1] is not b[1]


def test_com_microsoft_operators_have_rules() -> None:
    facts, inference = one_node(
        "SkipLayerNormalization", [(F, ["b", "s", 8]), (F, ["b", "s", 8]), (F, [8])], 4, domain="com.microsoft"
    )
    assert [str(fact) for fact in facts] == ["float32[b,s,8]", "float32[b,s,1]", "float32[b,s,1]", "float32[b,s,8]"]
    assert inference.diagnostics == []


def test_elements_are_known_where_all_operands_are() -> None:
    (fact,), _ = one_node("Mul", [ints(4, 5), ints(2, 3)])
    assert fact.value is not None
    assert fact.value.tolist() == [8, 15]
    (fact,), _ = one_node("Mul", [(I, [2]), ints(2, 3)])
    assert fact.value is None


COL2IM = """
    <ir_version: 9, opset_import: ["" : 18]>
    g (float[SHAPE] x, int64[K] sizes) => (y) <int64[2] image = {5, 5}, int64[2] block = {1, 5}> { y = Col2Im LISTS }
"""


@pytest.mark.parametrize(
    ("shape", "length", "lists", "fact", "actual"),
    [
        ("1, 10, 5", "k", "(x, image, block)", "float32[1,2,5,5]", ""),
        ("N, C, 5", "k", "(x, image, block)", "float32[N,y.1,5,5]", ""),
        ("N, 10, 5", "2", "(x, sizes, block)", "float32[N,2,y.2,y.3]", ""),
        ("1, 10, 5", "2", "(x, image, sizes)", "float32[1,y.1,5,5]", ""),
        ("1, 10, 5", "2147483647", "(x, sizes, block)", "float32[?]", "2"),
        ("1, 10, 5", "k", "<pads = [0, 1, 0, 1, 0, 1]> (x, image, block)", "float32[?]", "3"),
        ("1, 10, 5", "k", "<strides = [1]> (x, image, block)", "float32[?]", "1"),
        ("1, 11, 5", "k", "(x, image, block)", "float32[?]", "11"),
        ("10, 5", "k", "(x, image, block)", "float32[?]", "[10, 5]"),
    ],
)  # fmt: skip
def test_the_lists_of_col2im_are_of_one_length(shape: str, length: str, lists: str, fact: str, actual: str) -> None:
    text = COL2IM.replace("SHAPE", shape).replace("K", length).replace("LISTS", lists)
    graph = ModelGraph(onnx.parser.parse_model(text))
    inference = Inference(graph)
    assert str(inference.fact(graph.resolve_value("y"))) == fact
    assert [problem.found for problem in inference.diagnostics] == ([actual] if actual else [])


@pytest.mark.parametrize(("condition", "inner", "actual"), [("", "", ""), ("[1]", "[1]", ""), ("[N]", "[N]", ""),
                                                           ("[1]", "", "bool[1]"), ("", "[1]", "bool[]")])  # fmt: skip
def test_the_condition_of_a_loop_keeps_its_rank_in_the_body(condition: str, inner: str, actual: str) -> None:
    """The ranks are merged as by onnxruntime; the value in a run has the shape that the body declares."""
    text = f"""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[2] x, bool{condition} c, int64 n) => (float[2] y) {{
            y = Loop (n, c, x) <body = b (int64 i, bool{inner} k, float[2] s) => (bool k2, float[2] t) {{
                empty = Constant <value = int64[0] {{}}> ()
                k2 = Reshape (k, empty)
                t = Neg (s)
            }}>
        }}
    """
    inference = Inference(ModelGraph(onnx.parser.parse_model(text)))
    assert [problem.found for problem in inference.diagnostics] == ([actual] if actual else [])


SCAN_8 = """
    <ir_version: 3, opset_import: ["" : 8]>
    g (float[b, 2] start, float[b, 3, 2] x) => (y, z) {
        y, z = Scan <num_scan_inputs = 1, body = l (float[2] sum, float[2] row) => (ELEM[2] next, o) {
            next = Add(sum, row)
            o = ROW
        }> (, start, x)
    }
"""


@pytest.mark.parametrize(
    ("elem", "row", "actual"),
    [("float", "Neg(next)", ""), ("int64", "Neg(next)", "float32[2]"), ("float", "Concat <axis = 7> (row, row)", "7")],
)
def test_the_body_of_a_scan_of_version_8_is_inferred(elem: str, row: str, actual: str) -> None:
    """A Scan of version 8 has a batch axis in front, and comes with the lengths of sequences, or without."""
    text = SCAN_8.replace("ELEM", elem).replace("ROW", row)
    graph = ModelGraph(onnx.parser.parse_model(text))
    inference = Inference(graph)
    assert [problem.found for problem in inference.diagnostics] == ([actual] if actual else [])
    if actual != "7":
        facts = [str(inference.fact(graph.resolve_value(name))) for name in "yz"]
        assert facts == ["float32[b,2]", "float32[b,3,2]"]
