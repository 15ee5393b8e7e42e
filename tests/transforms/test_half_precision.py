"""Models in half precision, and the loss of models in fewer bits: operators and values out of the ordinary."""

import numpy as np
import onnx
import onnx.parser
from onnx import helper

import onnxlab
from tests.support.oracle import Oracle
from tests.transforms.test_quantization import network


def test_sums_of_integers_are_scaled_before_they_are_rounded() -> None:
    """A product of int8 reaches more than float16 holds until its scale is multiplied in."""
    model = onnxlab.load(onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
        sums (uint8[N, 512] x, float[1] scale) => (float[N, 4] y) <int8[512, 4] w = {WEIGHTS}> {
            sum = MatMulInteger(x, w)
            wide = Cast<to = 1>(sum)
            scaled = Mul(wide, scale)
            y = Tanh(scaled)
        }""".replace("WEIGHTS", ", ".join(["127"] * 2048))))  # fmt: skip
    receipt = model.quantize("float16")
    assert [application.place for application in receipt.applied] == ["Tanh#3"]
    assert [place.place for place in receipt.unfit if "quantized" in place.why] == ["Mul#2"]
    feeds = {"x": np.full((1, 512), 255, np.uint8), "scale": np.float32([1e-8])}
    assert model.run(feeds)["y"].max() < 0.2


def test_elements_of_sequences_are_judged_like_outputs() -> None:
    proto = network()
    proto.graph.node.append(helper.make_node("SequenceConstruct", ["logits", "logits"], ["both"]))
    proto.graph.output.append(helper.make_tensor_sequence_value_info("both", 1, None))
    del proto.graph.output[:2]
    receipt = onnxlab.load(proto).quantize("int8_weights", at_most=0.05)
    assert receipt.applied
    assert receipt.verdict == "rounded"


def test_scatters_that_onnxruntime_has_not_in_half_stay(ort_run: Oracle) -> None:
    model = onnxlab.load(onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
        scattered (float[3] x, int64[2] at, float[2] u) => (float[3] y) {
            d = Mul(x, x)
            y = ScatterElements<reduction = "add">(d, at, u)
        }"""))  # fmt: skip
    feeds = {"x": np.float32([1, 2, 3]), "at": np.int64([0, 0]), "u": np.float32([1, 1])}
    expected = ort_run(model.to_bytes(), feeds)
    model.quantize("float16")
    np.testing.assert_allclose(ort_run(model.to_bytes(), feeds)["y"], expected["y"], rtol=1e-3)


def test_bits_stay_those_of_float32() -> None:
    model = onnxlab.load(onnx.parser.parse_model("""<ir_version: 12, opset_import: ["" : 26]>
        bits (float[3] x) => (int32[3] y) { d = Mul(x, x) y = BitCast<to = 6>(d) }"""))  # fmt: skip
    receipt = model.quantize("float16", verify=False)
    assert [(place.place, place.why) for place in receipt.unfit] == [("BitCast#1", "BitCast keeps its type")]
    onnx.checker.check_model(model.proto, full_check=True)
