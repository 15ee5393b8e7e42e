"""Models made to hurt: each is answered within seconds, with facts or a diagnostic."""

import contextlib
import time
from collections.abc import Iterator

import onnx
import onnx.checker
import onnx.shape_inference
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.shapes import UNKNOWN, Expr
from tests.infer.hostile_models import MODELS, nested_functions
from tests.infer.models import ints, one_node, parsed

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
    assert last.known is None


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
    (fact,), _ = one_node(op_type, inputs)  # type: ignore[arg-type]
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
