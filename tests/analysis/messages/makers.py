"""Calls by which the installed onnx, onnxruntime and NumPy say each of the commonest error messages."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, checker, helper, parser, shape_inference, version_converter

Maker = Callable[[], Any]


def model(body: str, opset: int = 17, ir: int = 10, imports: str = "") -> onnx.ModelProto:
    """A model of a graph in the language of onnx.parser."""
    return parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}{imports}]> g {body}')


def session(proto: onnx.ModelProto | bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    data = proto if isinstance(proto, bytes) else proto.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run(proto: onnx.ModelProto, feeds: dict[str, Any], outputs: list[str] | None = None) -> Any:
    return session(proto).run(outputs, feeds)


def infer(proto: onnx.ModelProto) -> Any:
    return shape_inference.infer_shapes(proto, strict_mode=True, check_type=True)


def floats(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


RELU = model("(float[2,3] x) => (float[2,3] y) { [relu1] y = Relu (x) }")
ADD = model("(float[2] x, int64[2] i) => (float[2] y) { [add1] y = Add (x, i) }")
STALE = model("(float[2,3] x, float[3,4] w) => (float[2,5] y) { [mm] y = MatMul (x, w) }")
BROADCAST = model("(float[2,3] x, float[2,4] b) => (float[2,3] y) { [plus] y = Add (x, b) }")
MISSPELT = model("(float[2] x) => (float[2] y) { [f] y = Relo (x) }")
CUSTOM = model("(float[2] x) => (float[2] y) { [f] y = my.ops.Foo (x) }", imports=', "my.ops" : 1')
UNIMPORTED = model("(float[2] x) => (float[2] y) { [f] y = my.ops.Foo (x) }")
NEW_OPSET = model("(float[2,3] x) => (float[2,3] y) { [relu1] y = Relu (x) }", 99)
NEW_IR = model("(float[2,3] x) => (float[2,3] y) { [relu1] y = Relu (x) }", ir=99)
UPSAMPLE = model("(float[1,1,2,2] x, float[4] s) => (float[1,1,4,4] y) { [up] y = Upsample (x, s) }")
KERNEL = model("(float[1,1,5,5] x, float[1,1,3,3] w) => (float[1,1,3,3] y) { [c] y = Conv <kernel = [3,3]> (x, w) }")
DANGLING = model("(float[2] x) => (float[2] y) { [a] y = Add (x, z) }")
UNSORTED = model("(float[2] x) => (float[2] y) { [a] y = Add (x, z) [b] z = Relu (x) }")
TWICE = model("(float[2] x) => (float[2] y) { [one] y = Relu (x) [two] y = Abs (x) }")
CHANNELS = model("(float[n,3,5,5] x, float[2,4,3,3] w) => (float[n,m,3,3] y) { [conv1] y = Conv (x, w) }")
FREE_CHANNELS = model("(float[n,c,5,5] x, float[m,k,3,3] w) => (float[n,m,3,3] y) { [conv1] y = Conv (x, w) }")
RESHAPE = model("(float[n] x, int64[2] s) => (float[a,b] y) { [shape1] y = Reshape (x, s) }")
FIXED_RESHAPE = model(
    "(float[6] x) => (float[4,2] y) { s = Constant <value = int64[2] {4, 2}> () [shape1] y = Reshape (x, s) }"
)
ONE_NAME = model("(float[2] x) => (float[2] y) { [n] a = Relu (x) [n] y = Neg (a) }")
LEFT_OUT = model("(float[2] x) => (float[2] y) { [r] y = Relu () }")
LEFT_OUT.graph.node[0].input.append("")
INTEGER_RELU = model("(int64[2] i) => (int64[2] y) { [r] y = Relu (i) }", 13)
UNIMPLEMENTED = model("(bfloat16[2] i) => (bfloat16[2] y) { [m] y = Cos (i) }", 22)
SHAPELESS = model("(float[2,3] x) => (float[2,3] y) { [relu1] y = Relu (x) }")
SHAPELESS.graph.output[0].type.tensor_type.ClearField("shape")
NORMALIZATION = model("(float[2,4] x, float[4] s) => (float[2,4] y) { [ln] y = LayerNormalization (x, s) }")


def without_weights(use: Callable[[str], Any]) -> Any:
    """Use the path of a model whose file of weights is missing."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [1000], bytes(4000), raw=True)
    proto = model("(float[1000] x) => (float[1000] y) { [a] y = Add (x, w) }")
    proto.graph.initializer.append(weight)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        (Path(folder) / "weights.bin").unlink()
        return use(str(path))


SAID: dict[str, tuple[Maker, ...]] = {
    "E01": (lambda: checker.check_model(ADD, full_check=True), lambda: session(ADD)),
    "E02": (lambda: infer(STALE),),
    "E03": (lambda: infer(BROADCAST),),
    "E04": (lambda: checker.check_model(MISSPELT), lambda: session(MISSPELT)),
    "E05": (lambda: session(CUSTOM),),
    "E06": (lambda: checker.check_model(UNIMPORTED),),
    "E07": (lambda: session(NEW_OPSET),),
    "E08": (lambda: session(NEW_IR), lambda: checker.check_model(NEW_IR)),
    "E09": (lambda: checker.check_model(UPSAMPLE), lambda: session(UPSAMPLE)),
    "E10": (lambda: checker.check_model(KERNEL), lambda: session(KERNEL)),
    "E11": (lambda: session(DANGLING), lambda: checker.check_model(UNSORTED)),
    "E12": (lambda: session(TWICE), lambda: checker.check_model(TWICE)),
    "E13": (
        lambda: run(RELU, {"x": floats(3)}),
        lambda: run(RELU, {"x": floats(2, 4)}),
        lambda: run(RELU, {"x": np.zeros((2, 3))}),
        lambda: run(RELU, {"input": floats(2, 3)}),
        lambda: run(RELU, {"x": floats(2, 3)}, ["zz"]),
    ),
    "E14": (lambda: run(FREE_CHANNELS, {"x": floats(1, 3, 5, 5), "w": floats(2, 4, 3, 3)}),),
    "E15": (lambda: run(RESHAPE, {"x": floats(6), "s": np.array([4, 2])}),),
    "E16": (lambda: session(INTEGER_RELU), lambda: infer(INTEGER_RELU)),
    "E17": (lambda: session(UNIMPLEMENTED),),
    "E18": (lambda: checker.check_model(SHAPELESS),),
    "E20": (
        lambda: onnx.load_model_from_string(b"\x08\x0a\x3a\xff\xff\xff\x0fcut"),
        lambda: session(b"version https://git-lfs.github.com/spec/v1"),
    ),
    "E21": (
        lambda: without_weights(checker.check_model),
        lambda: without_weights(onnxruntime.InferenceSession),
        lambda: without_weights(onnx.load),
    ),
    "E22": (lambda: version_converter.convert_version(NORMALIZATION, 13),),
    "E25": (lambda: session(ONE_NAME),),
    "E26": (lambda: session(LEFT_OUT),),
    "E23": (lambda: np.testing.assert_allclose(np.array([1.0, 2.0]), np.array([1.0, 2.1]), rtol=1e-3),),
}
"""Calls that raise, by the code of the message."""

TOLD = {
    "E19": (
        "google.protobuf.message.EncodeError: Failed to serialize proto",
        "ValueError: Message onnx.ModelProto exceeds maximum protobuf size of 2GB: 2400000000",
        "The proto size is larger than the 2 GB limit. Please use save_as_external_data to save tensors separately",
    ),
    "E24": (
        "torch.onnx.errors.UnsupportedOperatorError: Exporting the operator 'aten::tile' to ONNX opset version 17 is "
        "not supported. Please feel free to request support or submit a pull request",
    ),
}
"""Messages that take a model of 2 GiB, or torch: as they are printed."""

MODELS = {
    "E01": (ADD, "add1"), "E02": (STALE, None), "E03": (BROADCAST, "plus"), "E04": (MISSPELT, "f"),
    "E05": (CUSTOM, None), "E06": (UNIMPORTED, "f"), "E07": (NEW_OPSET, None), "E08": (NEW_IR, None),
    "E09": (UPSAMPLE, "up"), "E10": (KERNEL, "c"), "E11": (UNSORTED, None), "E12": (TWICE, None),
    "E14": (CHANNELS, None), "E15": (FIXED_RESHAPE, None), "E16": (INTEGER_RELU, "r"), "E18": (SHAPELESS, None),
    "E25": (ONE_NAME, "n"), "E26": (LEFT_OUT, "r"),
}  # fmt: skip
"""Models in which onnxlab itself says the same, and the node that the other tools name."""
