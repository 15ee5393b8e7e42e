"""Matrices of products in 4 bits: what blocks hold, against onnxruntime; what stays; refusals with a way out."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import onnxlab
from onnxlab.cli import main
from onnxlab.errors import TransformError
from tests.support.oracle import Oracle
from tests.transforms.test_quantization import feeds_for, network, off

FORMS = ["int4_weights", "uint4_weights"]


def product(rows: int, columns: int, body: str = "y = MatMul(x, w)", opset: int = 21) -> onnx.ModelProto:
    """A product of x with `rows` columns; blocks of very different sizes, one of zeros and one far from zero."""
    rng = np.random.default_rng(rows)
    weight = rng.normal(size=(rows, columns)) * np.geomspace(1e-3, 10, rows).reshape(-1, 1)
    weight[:20, 1], weight[:, 2] = 0, 5 + weight[:, 2]
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> g (float[n,{rows}] x) => (float[n,m] y) {{ {body} }}'
    proto = onnx.parser.parse_model(text)
    weight = weight if "transB" not in body else weight.T
    proto.graph.initializer.append(numpy_helper.from_array(weight.astype(np.float32), "w"))
    return proto


def feeds_of(rows: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).normal(size=(3, rows)).astype(np.float32)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("body", ["y = MatMul(x, w)", "y = Gemm(x, w)", "y = Gemm<transB = 1>(x, w)"])
@pytest.mark.parametrize(("rows", "block"), [(64, 16), (65, 32), (40, 64), (33, 16)])
def test_blocks_are_of_the_elements_that_are_summed(
    form: Any, body: str, rows: int, block: int, ort_run: Oracle
) -> None:
    model, feeds = onnxlab.load(product(rows, 48, body)), feeds_of(rows)
    start, weight = model.to_bytes(), model.value("w").array
    receipt = model.quantize(form, block_size=block, samples=[feeds])
    assert [entry.place for entry in receipt.applied] == ["w"]
    assert receipt.bytes[1] <= 0.55 * receipt.bytes[0]
    (node,) = [node for node in model.nodes if node.op_type == "DequantizeLinear"]
    axis = 1 if "transB" in body else 0
    assert (node.attributes["axis"], node.attributes["block_size"]) == (axis, block)
    scales = model.graph.array(model.value(node.inputs[1].name).id)
    assert scales is not None
    assert scales.shape[axis] == -(-rows // block)
    back = model.run(feeds, ["w"])["w"]
    steps = np.repeat(scales, block, axis).take(np.arange(rows), axis)
    assert np.all(np.abs(back - weight) <= 0.5001 * steps + 1e-30)
    np.testing.assert_array_equal(back[weight == 0], 0)
    for _ in range(3):
        now = model.run(feeds)["y"]
        np.testing.assert_allclose(now, ort_run(model.to_bytes(), feeds)["y"], rtol=1e-4, atol=1e-4)
    assert not model.diagnostics
    model.undo()
    assert model.to_bytes() == start


@pytest.mark.parametrize("form", FORMS)
def test_weights_of_bodies_too_and_tables_not(form: Any, ort_run: Oracle) -> None:
    model, feeds = onnxlab.load(network(opset=21, ir_version=10)), feeds_for(True)
    before = model.run(feeds)
    receipt = model.quantize(form)
    assert [entry.place for entry in receipt.applied] == ["first", "second"]
    assert [str(place) for place in receipt.unfit] == [
        f"{form} at table: it is no matrix of products alone, of which runtimes read blocks"
    ]
    assert off(model.run(feeds), before) < 0.4
    assert off(model.run(feeds), ort_run(model.to_bytes(), feeds, ["logits", "label"])) < 1e-4


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite_stays(number: float) -> None:
    proto = product(64, 48)
    weight = numpy_helper.to_array(proto.graph.initializer[0]).copy()
    weight[3, 3] = number
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "w"))
    receipt = onnxlab.load(proto).quantize("int4_weights", verify=False)
    assert [place.why for place in receipt.unfit] == ["it has NaN or infinities, which int4 does not"]


def test_models_of_old_versions_and_other_sizes_are_refused(tmp_path: Path) -> None:
    model = onnxlab.load(product(64, 48, opset=20))
    with pytest.raises(TransformError, match=r"int4_weights needs .*ai.onnx 21, .* imports 20; .*convert_opset\(21\)"):
        model.quantize("int4_weights")
    model.convert_opset(21)
    for size in (0, 8, 33):
        with pytest.raises(TransformError, match=f"block_size is {size}: expected a power of two from 16 on"):
            model.quantize("int4_weights", block_size=size)
    with pytest.raises(TypeError, match="block_size is 'x'"):
        model.quantize("int4_weights", block_size="x")  # type: ignore[arg-type]
    model.save(tmp_path / "m.onnx")
    words = ["quantize", str(tmp_path / "m.onnx"), "uint4_weights", "--block-size", "64", "-o"]
    assert main([*words, str(tmp_path / "small.onnx")]) == 0
    small = onnxlab.load(tmp_path / "small.onnx")
    assert [node.attributes["block_size"] for node in small.nodes if node.op_type == "DequantizeLinear"] == [64]
    assert (tmp_path / "small.onnx").stat().st_size < 0.4 * (tmp_path / "m.onnx").stat().st_size


def test_onnxruntime_multiplies_the_blocks_as_they_are(tmp_path: Path) -> None:
    import onnxruntime

    model = onnxlab.load(product(64, 48))
    model.quantize("int4_weights")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 4
    onnxruntime.InferenceSession(model.to_bytes(), options, providers=["CPUExecutionProvider"])
    assert [node.op_type for node in onnx.load(tmp_path / "optimized.onnx").graph.node] == ["MatMulNBits"]
