"""Models in fewer bits: what they compute against onnxruntime, what stays and why, undo to the byte, refusals."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

import onnxlab
from onnxlab.cli import main
from onnxlab.cli.verbs import rewrite
from onnxlab.errors import EditError, TransformError
from onnxlab.transforms.quantization import forms
from tests.support.oracle import Oracle

ALL = tuple(
    form for form in get_args(forms.FormName) if not form.startswith(("int8_d", "int4", "uint4")) and form != "int8"
)
"""Those without files of tests of their own, such as test_static_int8.py."""
ON_ORT = [form for form in ALL if form != "bfloat16"]  # onnxruntime's processors have no bfloat16 to compute in


def network(opset: int = 18, ir_version: int = 9, **arrays: np.ndarray) -> onnx.ModelProto:
    """Two products with a mask between them, an embedding, and an If that reads a weight from inside."""
    rng = np.random.default_rng(5)
    stored = {
        "table": rng.normal(size=(64, 32)), "first": rng.normal(size=(32, 64)) * np.linspace(0.01, 10, 64),
        "bias": rng.normal(size=(64,)), "mask": np.array([0.0, -3e38] * 32), "second": rng.normal(size=(64, 32)),
        **arrays,
    }  # fmt: skip
    branches = [
        helper.make_graph([helper.make_node("MatMul", ["logits", "first"], [name]),
                           helper.make_node("Neg", [name], [result])],
                          name, [], [helper.make_tensor_value_info(result, 1, ["n", 64])])
        for name, result in (("then", "then_result"), ("else", "else_result"))
    ]  # fmt: skip
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["embedded"], "embed"),
        helper.make_node("MatMul", ["embedded", "first"], ["product"], "first_product"),
        helper.make_node("Add", ["product", "bias"], ["biased"], "add"),
        helper.make_node("Min", ["biased", "mask"], ["masked"], "masking"),
        helper.make_node("Max", ["masked", "bias"], ["kept"], "keep"),
        helper.make_node("MatMul", ["kept", "second"], ["logits"], "second_product"),
        helper.make_node("If", ["flag"], ["chosen"], "choice", then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("ArgMax", ["chosen"], ["label"], "pick", axis=1),
    ]
    graph = helper.make_graph(
        nodes, "network",
        [helper.make_tensor_value_info("ids", 7, ["n"]), helper.make_tensor_value_info("flag", 9, [])],
        [helper.make_tensor_value_info("logits", 1, ["n", 32]), helper.make_tensor_value_info("label", 7, None)],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in stored.items()],
    )  # fmt: skip
    if ir_version < 4:
        graph.input.extend(helper.make_tensor_value_info(t.name, 1, list(t.dims)) for t in graph.initializer)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def feeds_for(flag: bool) -> dict[str, np.ndarray]:
    return {"ids": np.arange(0, 60, 7, dtype=np.int64), "flag": np.array(flag)}


def off(now: Any, before: Any, name: Any = "logits") -> float:
    """The difference as part of the largest element."""
    return float(np.max(np.abs(now[name] - before[name])) / np.max(np.abs(before[name])))


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("form", ALL)
def test_a_form_computes_nearly_the_same_here_and_in_onnxruntime(form: Any, flag: bool, ort_run: Oracle) -> None:
    model = onnxlab.load(network())
    start, feeds = model.to_bytes(), feeds_for(flag)
    before = model.run(feeds)
    seen = model.quantize(form, dry_run=True)
    assert model.to_bytes() == start
    assert seen.verdict == "not run"
    receipt = model.quantize(form)
    assert receipt.verdict == "rounded"
    assert (receipt.nodes, receipt.bytes, receipt.unfit) == (seen.nodes, seen.bytes, seen.unfit)
    assert [str(entry) for entry in receipt.applied] == [str(entry) for entry in seen.applied]
    assert receipt.bytes[1] < 0.7 * receipt.bytes[0]
    for _ in range(3):  # the fast path begins at the second run
        assert off(model.run(feeds), before) < 0.04
    if form in ON_ORT:
        assert off(ort_run(model.to_bytes(), feeds, list(before)), before) < 0.04
    assert not model.diagnostics
    script, again = model.history.to_python(), onnxlab.load(start)
    assert model.history.labels == [f"quantize to {form}"]
    now = model.to_bytes()
    namespace: dict[str, Any] = {"__name__": "script"}
    exec(script, namespace)
    namespace["replay"](again)
    assert again.to_bytes() == now
    model.undo()
    assert model.to_bytes() == start
    model.redo()
    assert model.to_bytes() == now


def test_int8_scales_follow_the_axis_that_loses_least() -> None:
    model = onnxlab.load(network())
    receipt = model.quantize("int8_weights")
    weights = {entry.place: entry.what for entry in receipt.applied}
    assert set(weights) == {"table", "first", "second"}
    assert "64 scales along axis 1" in weights["first"]  # its columns have sizes of 0.01 to 10
    (node,) = [node for node in model.nodes if node.outputs[0].name == "first"]
    levels, scales, zeros = (model.graph.array(model.value(value.name).id) for value in node.inputs)
    assert zeros is not None
    assert not zeros.any()
    assert levels is not None
    assert scales is not None
    assert levels.dtype == np.int8
    np.testing.assert_array_equal(np.max(np.abs(levels), axis=0), 127)
    original = onnxlab.load(network()).value("first").array
    assert np.all(np.abs(levels * scales - original) <= 0.5001 * scales)


def test_numbers_beyond_float16_keep_their_node_in_float32() -> None:
    model = onnxlab.load(network())
    receipt = model.quantize("float16")
    assert [str(place) for place in receipt.unfit] == [
        "float16 at masking: mask: it reaches -3e+38, and float16 ends at 65504"
    ]
    assert model.fact("masked").dtype == np.float32
    assert model.fact("product").dtype == np.float16
    assert model.fact("logits").dtype == np.float32  # an output keeps its type
    assert model.value("second").array.dtype == np.float16
    assert not onnxlab.load(network()).quantize("bfloat16").unfit


def test_scalars_that_would_be_zero_keep_their_node() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[n,4] x) => (float[n,4] y)
        <float tiny = {1e-12}> { a = Relu(x) b = Add(a, tiny) y = Sqrt(b) }"""
    receipt = onnxlab.load(onnx.parser.parse_model(text)).quantize("float16", dry_run=True)
    (place,) = receipt.unfit
    assert str(place) == "float16 at Add#1: tiny: it reaches 1e-12, which is 0 in float16"


def test_what_makes_infinities_is_taken_back() -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]> g (float[n,8] x) => (float[n,8] y)
        <float factor = {6e4}, float share = {1e-4}>
        { a = Relu(x) b = Mul(a, factor) c = Mul(b, factor) d = Mul(c, share) e = Mul(d, share) y = Neg(e) }"""
    model = onnxlab.load(onnx.parser.parse_model(text))
    start = model.to_bytes()
    samples = [{"x": np.full((2, 8), 3, np.float32)}]
    receipt = model.quantize("float16", samples=samples)
    assert receipt.verdict in ("rounded", "bit equal")
    assert receipt.applied
    assert {refusal.place for refusal in receipt.refused} & {"Mul#1", "Mul#2"}
    assert np.isfinite(model.run(samples[0])["y"]).all()
    model.undo()
    assert model.to_bytes() == start


def test_a_bound_takes_back_what_exceeds_it() -> None:
    model = onnxlab.load(network())
    receipt = model.quantize("int8_weights", at_most=1e-3)
    assert len(receipt.refused) + len(receipt.applied) == 3
    assert receipt.refused
    assert receipt.verdict in ("rounded", "bit equal")
    loose = onnxlab.load(network()).quantize("int8_weights", at_most=0.5)
    assert not loose.refused


def test_protected_nodes_keep_their_weights() -> None:
    model = onnxlab.load(network())
    receipt = model.quantize("int8_weights", protect=["second_product", "table"])
    assert [entry.place for entry in receipt.applied] == ["first"]
    receipt = onnxlab.load(network()).quantize("float16", protect=["second_product"])
    assert "second_product" not in [entry.place for entry in receipt.applied]


def test_models_of_old_versions(ort_run: Oracle) -> None:
    model = onnxlab.load(network(opset=12))
    with pytest.raises(
        TransformError, match=r"needs operators of ai.onnx 13, .* imports 12; .* model.convert_opset\(13\)"
    ):
        model.quantize("int8_weights")
    model.convert_opset(13)
    assert len(model.quantize("int8_weights").applied) == 3
    old = onnxlab.load(network(opset=9, ir_version=3))
    before = old.run(feeds_for(True))
    receipt = old.quantize("float16_weights")
    assert len(receipt.applied) == 3
    assert "IR version 3 → 4" in old.history.labels[0]
    assert off(old.run(feeds_for(True)), before) < 0.02
    assert off(ort_run(old.to_bytes(), feeds_for(True), ["logits"]), before) < 0.02


def test_defaults_of_inputs_and_outputs_stay() -> None:
    proto = network()
    proto.graph.input.add().CopyFrom(helper.make_tensor_value_info("first", 1, [32, 64]))
    proto.graph.output.add().CopyFrom(helper.make_tensor_value_info("second", 1, [64, 32]))
    receipt = onnxlab.load(proto).quantize("int8_weights")
    assert {str(place).split(": ", 1)[1] for place in receipt.unfit} == {
        "it is an output of its graph",
        "it is the default of an input; take the input away first (input_to_initializer)",
    }  # fmt: skip
    assert [entry.place for entry in receipt.applied] == ["table"]


def test_nodes_of_functions_wait_until_they_are_inlined() -> None:
    model = onnxlab.load(network())
    model.make_function(["first_product", "add"], "Block")
    (place,) = [place for place in model.quantize("float16", dry_run=True).unfit if place.place == "Block"]
    assert place.why == "it is a function; inline it first"
    model.inline()
    assert not [place for place in model.quantize("float16").unfit if "function" in place.why]


def test_quantized_models_stay_as_they_are() -> None:
    model = onnxlab.load(network())
    model.quantize("int8_weights")
    assert not model.quantize("int8_weights").applied
    before = {node.name for node in model.nodes}
    model.quantize("float16")
    assert not [node.name for node in model.nodes if node.op_type == "Cast" and node.inputs[0].name == "first"]
    assert before <= {node.name for node in model.nodes}


@pytest.mark.parametrize("wrong", ["int4", "", None, 5])
def test_forms_that_there_are_not(wrong: Any) -> None:
    with pytest.raises(TransformError, match="is no form; use one of int8, "):
        onnxlab.load().quantize(wrong)


@pytest.mark.parametrize(("bound", "error"), [("much", TypeError), (-0.1, EditError), (float("nan"), EditError)])
def test_bounds_are_parts_from_zero_on(bound: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="a part of an output's largest element"):
        onnxlab.load().quantize("float16", at_most=bound)


def test_a_form_is_measured_before_it_is_made() -> None:
    model = onnxlab.load(network())
    (suggested,) = model.suggest(level="int8_weights", timed=False)
    assert suggested.verdict == "rounded"
    assert "off by up to" in suggested.why
    assert suggested.bytes > 10_000
    assert model.version == 0


def test_the_command_line_quantizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert get_args(forms.FormName) == rewrite.FORMS
    source, target = tmp_path / "m.onnx", tmp_path / "small.onnx"
    onnx.save(network(), source)
    assert main(["quantize", str(source), "float16"]) == 0
    assert "not applied: float16 at masking" in capsys.readouterr().out
    assert not target.exists()
    assert main(["quantize", str(source), "int8_weights", "-o", str(target), "--at-most", "0.1", "--strict"]) == 0
    assert "; outputs: rounded" in capsys.readouterr().out
    assert target.stat().st_size < 0.5 * source.stat().st_size
    assert main(["suggest", str(source), "--level", "float16_weights"]) == 0
    assert "float16_weights at 3 places" in capsys.readouterr().out
