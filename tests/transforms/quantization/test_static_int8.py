"""Models in 8 bits by ranges of real inputs: against onnxruntime as written and as fused, what stays, odd numbers."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

import onnxlab
from onnxlab.cli import main
from onnxlab.errors import FeedError, NameLookupError, TransformError
from tests.support.oracle import Oracle

Arrays = dict[str, np.ndarray]


def network(opset: int = 18, ir_version: int = 9, **changed: Any) -> onnx.ModelProto:
    """Convolutions around a sum, pooling, a concatenation, and a product with logits; `changed` weights."""
    rng = np.random.default_rng(3)
    weights = {
        "w1": rng.normal(size=(8, 3, 3, 3)) * np.geomspace(0.02, 2, 8).reshape(-1, 1, 1, 1), "b1": rng.normal(size=8),
        "w2": rng.normal(size=(8, 8, 3, 3)) / 8, "b2": rng.normal(size=8),
        "w3": rng.normal(size=(8, 8, 1, 1)) / 3, "fc": rng.normal(size=(10, 16)), "fc_b": rng.normal(size=10),
        **changed,
    }  # fmt: skip
    text = f"""<ir_version: {ir_version}, opset_import: ["" : {opset}]> net (float[n,3,12,12] x) => (float[n,10] y) {{
        c1 = Conv<pads = [1,1,1,1]>(x, w1, b1)
        r1 = Relu(c1)
        p1 = MaxPool<kernel_shape = [2,2], strides = [2,2]>(r1)
        c2 = Conv<pads = [1,1,1,1]>(p1, w2, b2)
        s = Add(c2, p1)
        r2 = Relu(s)
        c3 = Conv(r2, w3)
        both = Concat<axis = 1>(r2, c3)
        mean = GlobalAveragePool(both)
        flat = Flatten(mean)
        y = Gemm<transB = 1>(flat, fc, fc_b)
    }}"""
    proto = onnx.parser.parse_model(text)
    stored = [numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in weights.items()]
    proto.graph.initializer.extend(stored)
    if ir_version < 4:
        proto.graph.input.extend(helper.make_tensor_value_info(t.name, 1, list(t.dims)) for t in stored)
    return proto


def inputs(count: int = 4, seed: int = 0, scale: float = 1.0) -> list[Arrays]:
    rng = np.random.default_rng(seed)
    return [{"x": (scale * rng.normal(size=(2, 3, 12, 12))).astype(np.float32)} for _ in range(count)]


def parsed(body: str, shape: str = "float[n,8]", opset: int = 18, **weights: Any) -> onnx.ModelProto:
    text = f'<ir_version: 9, opset_import: ["" : {opset}]> g ({shape} x) => (float[] y) {{ {body} }}'
    proto = onnx.parser.parse_model(text)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    proto.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in weights.items()
    )
    return proto


def fused(data: bytes, folder: Path, x64: str = "1") -> tuple[Any, Counter[str]]:
    """A session of onnxruntime with all its optimizations, and its operators; sums of 8 bits saturate without x64."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", x64)
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session, Counter(node.op_type for node in onnx.load(folder / "optimized.onnx").graph.node)


def off(now: Any, before: Any) -> float:
    return float(np.max(np.abs(now - before)) / np.max(np.abs(before)))


@pytest.mark.parametrize("activations", ["uint8", "int8"])
@pytest.mark.parametrize("reduce_range", [False, True])
def test_it_computes_nearly_the_same_here_and_in_onnxruntime(
    activations: Any, reduce_range: bool, ort_run: Oracle, tmp_path: Path
) -> None:
    model, others = onnxlab.load(network()), inputs(2, 7)
    start, before = model.to_bytes(), [model.run(feeds)["y"] for feeds in others]
    options: dict[str, Any] = {"calibrate": inputs(), "activations": activations, "reduce_range": reduce_range}
    seen = model.quantize("int8", dry_run=True, **options)
    assert model.to_bytes() == start
    receipt = model.quantize("int8", **options)
    assert (receipt.nodes, receipt.bytes, receipt.unfit) == (seen.nodes, seen.bytes, ())
    assert [str(entry) for entry in receipt.applied] == [str(entry) for entry in seen.applied]
    assert (receipt.verdict, len(receipt.applied)) == ("rounded", 11)
    assert receipt.bytes[1] < 0.45 * receipt.bytes[0]
    session, op_types = fused(model.to_bytes(), tmp_path)
    assert op_types["QGemm"] == 1
    if activations == "uint8":  # with int8 around zero it keeps each Relu, and products before them in floats
        assert op_types["QLinearConv"] == 3
        assert not {"Relu", "Add", "Concat", "GlobalAveragePool", "DequantizeLinear"} & op_types.keys()
    for feeds, expected in zip(others, before, strict=True):
        now = model.run(feeds)["y"]
        assert off(now, expected) < 0.06
        np.testing.assert_allclose(now, ort_run(model.to_bytes(), feeds)["y"], rtol=1e-4, atol=1e-5)
        assert off(session.run(None, feeds)[0], expected) < 0.06
    assert not model.diagnostics
    now_bytes, script, again = model.to_bytes(), model.history.to_python(), onnxlab.load(start)
    namespace: dict[str, Any] = {"__name__": "script"}
    exec(script, namespace)
    namespace["replay"](again)
    assert again.to_bytes() == now_bytes
    model.undo()
    assert model.to_bytes() == start


def scales_of(model: onnxlab.Model, name: str) -> tuple[np.ndarray, Any]:
    """The scales of a weight, and the axis along which they are."""
    (node,) = [node for node in model.nodes if node.outputs and node.outputs[0].name == name]
    assert node.op_type == "DequantizeLinear"
    array = model.graph.array(model.value(node.inputs[1].name).id)
    assert array is not None
    return array, dict(node.attributes).get("axis")


def test_scales_are_of_the_channels_that_a_product_makes() -> None:
    model = onnxlab.load(network())
    model.quantize("int8", calibrate=inputs())
    scales, axis = scales_of(model, "w1")
    assert (scales.shape, axis) == ((8,), 0)
    np.testing.assert_allclose(
        scales, np.abs(numpy_helper.to_array(network().graph.initializer[0])).max((1, 2, 3)) / 127
    )
    assert scales_of(model, "fc")[1] == 0
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(2, 8)).astype(np.float32)}
    model = onnxlab.load(
        parsed("a = Gemm(x, w) b = MatMul(a, v) y = Relu(b)", w=rng.normal(size=(8, 6)), v=rng.normal(size=(6, 4)))
    )
    model.quantize("int8", calibrate=feeds)
    assert scales_of(model, "w")[1] == 1
    assert scales_of(model, "v")[1] == 1
    model = onnxlab.load(parsed("y = MatMul(x, w)", w=rng.normal(size=(3, 8, 4))))
    model.quantize("int8", calibrate=feeds)
    assert scales_of(model, "w") == (scales_of(model, "w")[0], None)


def test_zeros_and_constants_have_scales() -> None:
    model = onnxlab.load(network(w2=np.zeros((8, 8, 3, 3)), b2=np.zeros(8)))
    receipt = model.quantize("int8", calibrate=[{"x": np.zeros((1, 3, 12, 12), np.float32)}])
    assert receipt.verdict in ("rounded", "bit equal", "equal within noise")
    assert np.isfinite(model.run(inputs(1)[0])["y"]).all()


def test_a_bias_far_beyond_its_weight_fits_into_int32(ort_run: Oracle) -> None:
    """A scale of the weight alone would give a bias of 1e11 steps."""
    model = onnxlab.load(network(w2=np.full((8, 8, 3, 3), 1e-10), b2=np.linspace(-5, 5, 8)))
    feeds = inputs()
    before = model.run(feeds[0])["y"]
    model.quantize("int8", calibrate=feeds)
    assert off(model.run(feeds[0])["y"], before) < 0.06
    np.testing.assert_allclose(model.run(feeds[0])["y"], ort_run(model.to_bytes(), feeds[0])["y"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays(number: float) -> None:
    weight = np.ones((8, 8, 3, 3))
    weight[3, 0, 0, 0] = number
    receipt = onnxlab.load(network(w2=weight)).quantize("int8", calibrate=inputs(), verify=False)
    reasons = {place.place: place.why for place in receipt.unfit}
    assert reasons["Conv#3"] == "w2: it has NaN or infinities, which int8 does not"
    feeds = inputs(1)
    feeds[0]["x"][0, 0, 0, 0] = number
    receipt = onnxlab.load(network()).quantize("int8", calibrate=feeds, verify=False)
    reasons = {place.place: place.why for place in receipt.unfit}
    assert reasons["Conv#0"] == "x: it has NaN or infinities on inputs of the calibration"
    assert receipt.applied == () or "Conv#0" not in {entry.place for entry in receipt.applied}


def test_inputs_without_elements_and_of_other_sizes_are_measured() -> None:
    model = onnxlab.load(network())
    feeds = [{"x": np.zeros((0, 3, 12, 12), np.float32)}, inputs(1)[0], {"x": np.ones((5, 3, 12, 12), np.float32)}]
    assert model.quantize("int8", calibrate=feeds).applied
    assert np.isfinite(model.run(feeds[1])["y"]).all()


def test_weights_that_others_read_too_stay_for_them(ort_run: Oracle) -> None:
    rng = np.random.default_rng(0)
    proto = parsed(
        "a = MatMul(x, w) t = Tanh(a) b = MatMul(t, w) c = Neg(w) d = ReduceMean<keepdims = 0>(c) y = Add(b, d)",
        w=rng.normal(size=(8, 8)),
    )
    proto.graph.output.append(helper.make_tensor_value_info("c", 1, [8, 8]))
    model, feeds = onnxlab.load(proto), {"x": rng.normal(size=(4, 8)).astype(np.float32)}
    before = model.run(feeds)
    model.quantize("int8", calibrate=feeds)
    now, expected = model.run(feeds), ort_run(model.to_bytes(), feeds)
    np.testing.assert_array_equal(now["c"], before["c"])
    np.testing.assert_allclose(now["y"], expected["y"], rtol=1e-4, atol=1e-5)
    assert Counter(node.op_type for node in model.nodes)["DequantizeLinear"] == 3  # the weight's is one for both


def test_a_bias_that_is_another_name_of_a_weight_is_stored(ort_run: Oracle) -> None:
    """Exporters name equal weights once, and others by Identity."""
    rng = np.random.default_rng(0)
    body = "b2 = Identity(b1) a = Gemm(x, w, b1) r = Relu(a) c = Gemm(r, w, b2) y = Neg(c)"
    model = onnxlab.load(parsed(body, w=rng.normal(size=(8, 8)), b1=rng.normal(size=8)))
    feeds = {"x": rng.normal(size=(4, 8)).astype(np.float32)}
    before = model.run(feeds)["y"]
    receipt = model.quantize("int8", calibrate=feeds)
    assert [entry.what.split()[0] for entry in receipt.applied] == ["Gemm", "Relu", "Gemm"]
    assert "Identity" not in {node.op_type for node in model.nodes}
    assert "b1" not in {value.name for value in model.graph.values.values() if value.initializer is not None}
    assert off(model.run(feeds)["y"], before) < 0.03
    np.testing.assert_allclose(model.run(feeds)["y"], ort_run(model.to_bytes(), feeds)["y"], rtol=1e-4, atol=1e-5)


def test_an_output_beside_what_is_only_moved_keeps_its_numbers(tmp_path: Path) -> None:
    """onnxruntime moves a QuantizeLinear up past a Transpose, and would cut off an output."""
    rng = np.random.default_rng(0)
    body = "k = Concat<axis = 1>(x, x) t = Transpose<perm = [1, 0]>(k) y = MatMul(t, w)"
    proto = parsed(body, w=rng.normal(size=(4, 8)))
    proto.graph.output.append(helper.make_tensor_value_info("k", 1, ["n", 16]))
    model = onnxlab.load(proto)
    model.quantize("int8", calibrate={"x": rng.normal(size=(4, 8)).astype(np.float32)})
    feeds = {"x": 10 * rng.normal(size=(4, 8)).astype(np.float32)}
    session, _ = fused(model.to_bytes(), tmp_path)
    np.testing.assert_allclose(session.run(["k"], feeds)[0], model.run(feeds)["k"], rtol=1e-5)
    np.testing.assert_array_equal(model.run(feeds)["k"], np.concatenate([feeds["x"]] * 2, axis=1))


def test_nodes_of_bodies_and_functions_stay() -> None:
    branches = [
        f"{name} = g{name} () => (float[n,8] {name}r) {{ {name}r = MatMul(x, w) }}"
        for name in ("then_branch", "else_branch")
    ]
    body = f"a = MatMul(x, w) f = ReduceSum<keepdims = 0>(a) c = Cast<to = 9>(f) y = If<{', '.join(branches)}>(c)"
    rng = np.random.default_rng(0)
    model, feeds = (
        onnxlab.load(parsed(body, w=rng.normal(size=(8, 8)))),
        {"x": rng.normal(size=(4, 8)).astype(np.float32)},
    )
    before = model.run(feeds)["y"]
    receipt = model.quantize("int8", calibrate=feeds)
    assert len(receipt.applied) == 1
    assert [p.why for p in receipt.unfit].count("calibration measures values of the main graph alone") == 2
    np.testing.assert_allclose(model.run(feeds)["y"], before, rtol=1e-5, atol=1e-6)
    model = onnxlab.load(network())
    model.make_function([model.nodes[0], model.nodes[1]], "Block")
    receipt = model.quantize("int8", calibrate=inputs())
    assert "calibration measures values of the main graph alone" in {p.why for p in receipt.unfit}
    assert receipt.applied


def test_other_types_and_quantized_models_stay() -> None:
    model = onnxlab.load(parsed("h = Cast<to = 10>(x) m = MatMul(h, v) y = Cast<to = 1>(m)"))
    model = onnxlab.load(network())
    model.quantize("float16")
    receipt = model.quantize("int8", calibrate=inputs(), verify=False)
    assert not receipt.applied
    assert any("float16, not float32" in place.why for place in receipt.unfit)
    model = onnxlab.load(network())
    model.quantize("int8", calibrate=inputs())
    data = model.to_bytes()
    receipt = model.quantize("int8", calibrate=inputs())
    assert not receipt.applied
    assert any("quantized already" in place.why for place in receipt.unfit)
    assert model.to_bytes() == data


def test_models_of_old_versions(ort_run: Oracle) -> None:
    with pytest.raises(
        TransformError, match=r"int8 needs operators of ai.onnx 13, .* imports 12; .*convert_opset\(13\)"
    ):
        onnxlab.load(network(opset=12)).quantize("int8", calibrate=inputs())
    model = onnxlab.load(network(opset=13, ir_version=3))
    before = model.run(inputs(1)[0])["y"]
    assert len(model.quantize("int8", calibrate=inputs()).applied) == 11
    now = model.run(inputs(1)[0])["y"]
    assert off(now, before) < 0.06
    np.testing.assert_allclose(now, ort_run(model.to_bytes(), inputs(1)[0])["y"], rtol=1e-4, atol=1e-5)


def test_weights_beside_the_file_are_read(tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0)
    model, held = onnxlab.load(tmp_path / "m.onnx"), onnxlab.load(network())
    for kind in (model, held):
        kind.quantize("int8", calibrate=inputs())
    np.testing.assert_array_equal(model.run(inputs(1)[0])["y"], held.run(inputs(1)[0])["y"])
    (tmp_path / "m.onnx.data").unlink(missing_ok=True)
    for path in tmp_path.iterdir():
        if path.name != "m.onnx":
            path.unlink()


def test_names_and_operators_that_stay() -> None:
    receipt = onnxlab.load(network()).quantize("int8", calibrate=inputs(), protect=["c1", "y"], leave="Concat")
    kinds = Counter(entry.what.split()[0] for entry in receipt.applied)
    assert kinds["Conv"] == 2
    assert not {"Gemm", "Concat"} & kinds.keys()
    with pytest.raises(NameLookupError, match=r"leave has 'Cnov': no node has this operator"):
        onnxlab.load(network()).quantize("int8", calibrate=inputs(), leave=["Cnov"])
    weights = onnxlab.load(network()).quantize("int8_weights", leave=["Conv", "Gemm"], dry_run=True)
    assert not weights.applied


def test_what_it_needs_is_said() -> None:
    model = onnxlab.load(network())
    with pytest.raises(TransformError, match=r"int8 needs ranges of values: give inputs .*calibrate="):
        model.quantize("int8")
    with pytest.raises(TransformError, match="calibrate has no inputs"):
        model.quantize("int8", calibrate=[])
    with pytest.raises(TypeError, match="calibrate is int"):
        model.quantize("int8", calibrate=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an entry of calibrate is 3, a int"):
        model.quantize("int8", calibrate=[3])  # type: ignore[list-item]
    with pytest.raises(FeedError, match="input 1 of the calibration does not fit the model"):
        model.quantize("int8", calibrate=[*inputs(1), {"x": np.zeros((1, 4), np.float32)}])
    with pytest.raises(TransformError, match="ranges is 'max': expected one of minmax, percentile, mse"):
        model.quantize("int8", calibrate=inputs(), ranges="max")  # type: ignore[arg-type]
    with pytest.raises(TransformError, match="activations is 'int4'"):
        model.quantize("int8", calibrate=inputs(), activations="int4")  # type: ignore[arg-type]
    assert not model.history.labels


def test_outliers_are_cut_where_that_loses_less() -> None:
    """One element of 20,000 is a hundred times the others."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2500, 8)).astype(np.float32)
    x[7, 3] = 400
    scales = {}
    for ranges in ("minmax", "percentile", "mse"):
        model = onnxlab.load(parsed("y = MatMul(x, w)", w=rng.normal(size=(8, 8))))
        model.quantize("int8", calibrate={"x": x}, ranges=ranges, verify=False)  # type: ignore[arg-type]
        scales[ranges] = float(model.graph.array(model.value("x_scale").id))  # type: ignore[arg-type]
    assert scales["minmax"] == pytest.approx((400 - x.min()) / 255, rel=1e-5)
    assert scales["percentile"] < scales["minmax"] / 20
    assert scales["mse"] <= scales["minmax"]


def test_the_command_line_calibrates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target, folder = tmp_path / "m.onnx", tmp_path / "small.onnx", tmp_path / "inputs"
    onnx.save(network(), source)
    folder.mkdir()
    for number, feeds in enumerate(inputs()):
        np.savez(folder / f"{number}.npz", **feeds)
    words = ["quantize", str(source), "int8", "-o", str(target)]
    assert main(words) == 3
    assert "int8 needs ranges of values" in capsys.readouterr().err
    assert not target.exists()
    assert main([*words, "--calibrate", str(folder), "--leave", "Gemm", "--reduce-range", "--ranges", "mse"]) == 0
    assert "10 × int8" in capsys.readouterr().out
    expected = onnxlab.load(network())
    expected.quantize("int8", calibrate=inputs(), leave=["Gemm"], reduce_range=True, ranges="mse")
    np.testing.assert_array_equal(onnxlab.load(target).run(inputs(1)[0])["y"], expected.run(inputs(1)[0])["y"])
