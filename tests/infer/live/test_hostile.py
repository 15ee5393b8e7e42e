"""Models made to hurt: each is answered within seconds, with facts or a diagnostic."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import onnx
import onnx.checker
import onnx.shape_inference
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.infer.rules import budget
from onnxlab.shapes import UNKNOWN, Expr
from tests.infer.support.hostile_models import MODELS, nested_functions, text
from tests.infer.support.models import ints, one_node, parsed

SECONDS = 4.0  # of processor time; 2 s on an idle machine


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize("name", MODELS)
def test_every_one_is_answered(name: str) -> None:
    model = MODELS[name]()
    graph = ModelGraph(model)
    inference = Inference(graph)
    fact = inference.fact(graph.resolve_value(model.graph.output[0].name))
    assert fact is not UNKNOWN or inference.diagnostics
    for dim in fact.shape or ():
        assert isinstance(dim, Expr) or 0 <= dim < 2**63
    for strict in (False, True):
        with contextlib.suppress(onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
            onnxlab.infer_shapes(model, strict_mode=strict, data_prop=True)


def test_thirty_levels_of_functions_are_walked_once_each() -> None:
    graph = ModelGraph(nested_functions(30))
    assert str(Inference(graph).fact(graph.resolve_value("y"))) == "float32[n,3]"


@pytest.mark.parametrize("levels", [1, 5])
def test_recursive_functions_are_refused(levels: int) -> None:
    inference = Inference(ModelGraph(nested_functions(levels, cyclic=True)))
    assert {"recursive-function"} <= {d.code for d in inference.diagnostics}


def test_functions_nested_too_deep_are_reported() -> None:
    inference = Inference(ModelGraph(nested_functions(400)))
    assert {"too-deep"} <= {d.code for d in inference.diagnostics}


def test_doubling_concat_chains_are_not_followed() -> None:
    nodes = [helper.make_node("Shape", ["x"], ["v0"])]
    nodes += [helper.make_node("Concat", [f"v{n}", f"v{n}"], [f"v{n + 1}"], axis=0) for n in range(60)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", 3])
    graph = ModelGraph(helper.make_model(helper.make_graph(nodes, "g", [x], [])))
    inference = Inference(graph)
    last = inference.fact(graph.resolve_value("v60"))
    assert last.shape == (2**61,)
    assert last.known is None  # type: ignore[attr-defined]


def test_sizes_that_overflow_are_reported() -> None:
    nodes = [helper.make_node("Concat", [f"v{n}", f"v{n}"], [f"v{n + 1}"], axis=0) for n in range(70)]
    x = helper.make_tensor_value_info("v0", TensorProto.FLOAT, [3])
    graph = ModelGraph(helper.make_model(helper.make_graph(nodes, "g", [x], [])))
    inference = Inference(graph)
    assert str(inference.fact(graph.resolve_value("v70"))) != ""
    assert {"dim-out-of-range"} == {d.code for d in inference.diagnostics}


def test_squaring_symbols_stay_bounded() -> None:
    nodes = [helper.make_node("Flatten", ["x"], ["f"], axis=2)]
    nodes += [helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [helper.make_node("Mul", [f"s{n}", f"s{n}"], [f"s{n + 1}"]) for n in range(40)]
    nodes += [helper.make_node("ConstantOfShape", ["s40"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", "b"])
    graph = ModelGraph(helper.make_model(helper.make_graph(nodes, "g", [x], [])))
    fact = Inference(graph).fact(graph.resolve_value("y"))
    assert fact.rank == 2
    assert len(str(fact)) < 2000


@pytest.mark.parametrize(
    ("op_type", "inputs", "label"),
    [
        ("ConstantOfShape", [ints(10**6, 10**6)], "1000000×1000000"),
        ("Expand", [(1, [1]), ints(10**12)], "1000000000000"),
        ("Tile", [(1, [10**6]), ints(10**9)], "1000000000000000"),
        ("ConstantOfShape", [ints(2**62, 2**62, 2**62)], f"{2**62}×{2**62}×{2**62}"),
    ],
)
def test_huge_shapes_are_only_written_down(op_type: str, inputs: list[object], label: str) -> None:
    (fact,), _ = one_node(op_type, inputs)
    assert fact.label() == label


def test_a_huge_range_is_counted_and_not_made() -> None:
    numbers = [helper.make_tensor("", TensorProto.INT64, [], [n]) for n in (0, 2**62, 1)]
    (fact,), _ = one_node("Range", numbers)
    assert fact.shape == (2**62,)


def test_an_endless_loop_and_loops_in_loops_end() -> None:
    text = "v1 = Concat <axis = 0> (v, v)"
    for level in range(20):
        text = f"""v1 = Loop (, c, v) <body = b{level} (int64 i{level}, bool d{level}, float[n] w{level})
            => (bool e{level}, float[n] u{level}) {{ e{level} = Identity(d{level})  {
            text.replace("(v, v)", f"(w{level}, v)").replace("v1 =", f"u{level} =", 1)
        } }}>"""
    graph = parsed(f"agraph (float[4] v, bool c) => (v1) {{ {text} }}")
    assert Inference(graph).fact(graph.resolve_value("v1")).dtype is not None


COUNTED: dict[str, list[Any]] = {
    "Reshape": [(1, [2, 3]), (7, [2**40])],
    "Expand": [(1, [2, 3]), (7, [2**40])],
    "ConstantOfShape": [(7, [2**40])],
    "Unsqueeze": [(1, [2, 3]), (7, [2**63 - 1])],
    "Tile": [(1, [2, 3]), (7, [2**40])],
    "Resize": [(1, [2, 3]), None, None, (7, [2**40])],
    "CenterCropPad": [(1, [2, 3]), (7, [2**40])],
    "AffineGrid": [(1, [2, 2, 3]), (7, [2**40])],
    "MaxUnpool": [(1, [1, 1, 2, 2]), (7, [1, 1, 2, 2]), (7, [2**40])],
    "ReduceSum": [(1, [2, 3]), (7, [2**40])],
}


@pytest.mark.parametrize("op_type", COUNTED)
def test_lists_of_a_trillion_sizes_or_axes_make_no_dims(op_type: str) -> None:
    names = [f"x{slot}" if arguments else "" for slot, arguments in enumerate(COUNTED[op_type])]
    inputs = [
        helper.make_tensor_value_info(name, *arguments)
        for name, arguments in zip(names, COUNTED[op_type], strict=True)
        if arguments
    ]
    attributes: dict[str, Any] = {"kernel_shape": [2, 2]} if op_type == "MaxUnpool" else {}
    node = helper.make_node(op_type, names, ["y"], **attributes)
    model = helper.make_model(
        helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")]),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=9,
    )  # fmt: skip
    inference = Inference(ModelGraph(model))
    assert (inference.fact(inference._graph.resolve_value("y")).rank or 0) <= 64
    for strict in (False, True):
        with contextlib.suppress(onnx.shape_inference.InferenceError):
            onnxlab.infer_shapes(model, strict_mode=strict, data_prop=True)


@pytest.mark.parametrize("pieces", [2**40, 1])
def test_a_split_into_other_pieces_than_it_has_outputs_is_refused_before_onnx_is_asked(pieces: int) -> None:
    node = helper.make_node("Split", ["x"], ["a", "y"], num_outputs=pieces)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 3])
    model = helper.make_model(
        helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")]),
        opset_imports=[helper.make_opsetid("", 18)], ir_version=9,
    )  # fmt: skip
    inference = Inference(ModelGraph(model))
    assert [(d.code, d.found) for d in inference.diagnostics] == [("bad-attribute", str(pieces))]
    with pytest.raises(onnx.shape_inference.InferenceError, match="num_outputs is"):  # onnx's own rule aborts
        onnxlab.infer_shapes(model, strict_mode=True)


def test_more_dims_than_arrays_have_are_unknown_and_reported() -> None:
    values = {
        "x": helper.make_tensor_value_info("x", TensorProto.FLOAT, [1] * 65),
        "u": helper.make_tensor_value_info("u", TensorProto.FLOAT, [1] * 64),
    }
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Unsqueeze", ["u", "axes"], ["v"]),
        helper.make_node("Relu", ["w"], ["z"]),
    ]
    weights = [
        helper.make_tensor("axes", TensorProto.INT64, [1], [0]),
        helper.make_tensor("w", TensorProto.FLOAT, [1] * 70, [0.0]),
    ]
    graph = ModelGraph(helper.make_model(helper.make_graph(nodes, "g", list(values.values()), [], weights)))
    inference = Inference(graph)
    for name in "xyvwz":
        assert str(inference.fact(graph.resolve_value(name))) == "float32[?]"
    assert [(d.code, d.severity, d.found) for d in inference.diagnostics] == [
        ("rank-too-large", "warning", f"{rank} dims") for rank in (65, 65, 70)
    ]


def test_polynomials_of_polynomials_end_as_unknown_sizes() -> None:
    nodes, last = [], "x"
    for n in range(12):
        nodes += [
            helper.make_node("Shape", [last], [f"s{n}"]),
            helper.make_node("Mul", [f"s{n}", f"s{n}"], [f"m{n}"]),
            helper.make_node("Add", [f"m{n}", f"s{n}"], [f"q{n}"]),
            helper.make_node("ConstantOfShape", [f"q{n}"], [f"c{n}"]),
        ]
        last = f"c{n}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "M"])
    graph = ModelGraph(helper.make_model(helper.make_graph(nodes, "g", [x], [])))
    inference = Inference(graph)
    assert {"size-too-complex"} == {d.code for d in inference.diagnostics}
    first, second = inference.fact(graph.resolve_value("c11")).shape or ()
    assert isinstance(first, Expr)
    assert first is not second
    early = (inference.fact(graph.resolve_value("c2")).shape or ())[0]
    assert isinstance(early, Expr)
    assert early.symbols == {"N"}


@pytest.mark.parametrize(("limit", "amount", "op_type"), [("SECONDS", -1.0, "Exp"), ("PARTS", -10_000, "Log")])
def test_inference_that_takes_too_much_ends_with_a_diagnostic(
    monkeypatch: pytest.MonkeyPatch, limit: str, amount: float, op_type: str
) -> None:
    model = text(f"z = {op_type} (x) w = Unsqueeze (z, none) y = Abs (w)", inputs=f"float[only_in_{op_type}, 3] x")
    with monkeypatch.context() as patch:
        patch.setattr(budget, limit, amount)
        graph = ModelGraph(model)
        inference = Inference(graph)
        assert [d.code for d in inference.diagnostics] == ["inference-budget"]
        assert inference.fact(graph.resolve_value("y")) is UNKNOWN
    graph = ModelGraph(model)
    assert str(Inference(graph).fact(graph.resolve_value("y"))) == f"float32[1,only_in_{op_type},3]"


def test_a_power_that_no_type_holds_is_not_computed() -> None:
    integers = [helper.make_tensor(name, TensorProto.INT64, [], [n]) for name, n in (("a", 3), ("b", 2**62))]
    (fact,), _ = one_node("Pow", integers)
    assert str(fact) == "int64[]"
    (fact,), _ = one_node("Pow", [ints(-1, 0, 1, 2), ints(2**62, 2**62, 2**62, 62)])
    assert fact.value is not None
    assert fact.value.tolist() == [1, 0, 1, 2**62]


def test_a_slice_of_a_trillion_integers_is_no_list() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.UINT64, [2**40])
    ends = [
        helper.make_tensor("starts", TensorProto.INT32, [1, 1], [2**31 - 1]),
        helper.make_tensor("ends", TensorProto.INT32, [8], [-1, 2**31 - 1, 2, 0, 3, 2, 1, 0]),
        helper.make_tensor("axes", TensorProto.INT64, [1, 8], [2**63 - 1, -(2**63), 2**62, 2**62, 1, 2**63 - 1, 0, 2]),
    ]
    node = helper.make_node("Slice", ["x", "starts", "ends", "axes"], ["y"])
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")], ends)
    with contextlib.suppress(onnx.shape_inference.InferenceError):
        onnxlab.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), data_prop=True)
