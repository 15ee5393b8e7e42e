"""Rules of ONNX Runtime's own operators against the shapes that it makes, with the inputs' sizes and with symbols."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxlab import ops
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.shapes import TensorFact
from tests.infer.live.test_truth import contradictions_of_run
from tests.ops.support.single_node import check_facts, floats, i64, ints, model
from tests.support.corpus import Corpus
from tests.support.oracle import new_session

MS = "com.microsoft"
U8, I8 = np.uint8, np.int8
ONE = np.float32(0.1)
EMITTED = """
    FusedConv FusedGemm FusedMatMul Gelu BiasGelu FastGelu QuickGelu BiasAdd SkipLayerNormalization BiasSoftmax
    SkipSimplifiedLayerNormalization EmbedLayerNormalization Attention MultiHeadAttention GroupQueryAttention
    RotaryEmbedding MatMulNBits MatMulIntegerToFloat DynamicQuantizeMatMul DynamicQuantizeLSTM QLinearAdd QLinearMul
    QLinearConv QLinearConcat QLinearSigmoid QLinearSoftmax QLinearLeakyRelu QLinearAveragePool QLinearReduceMean
    QLinearGlobalAveragePool QLinearWhere QAttention QGemm QEmbedLayerNormalization NhwcMaxPool NhwcFusedConv
    QuantizeLinear DequantizeLinear Tokenizer MoE QMoE GatherBlockQuantized DecoderMaskedMultiHeadAttention
    SparseAttention PackedAttention GroupNorm SkipGroupNorm BiasSplitGelu GreedySearch BeamSearch Sampling
""".split()  # noqa: SIM905 - fifty names read better without quotes


def test_what_exporters_and_the_optimizer_emit_has_a_rule() -> None:
    assert [name for name in EMITTED if ops.find_rule(MS, name, 1) is None] == []
    blocked = ("Conv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "ReorderInput", "ReorderOutput")
    assert [name for name in (*blocked, "Upsample") if ops.find_rule("com.microsoft.nchwc", name, 1) is None] == []


def known_shapes(proto: onnx.ModelProto) -> list[bool]:
    """Of each output, whether every dim is a number."""
    graph = ModelGraph(proto)
    inference = Inference(graph)
    facts = [inference.fact(graph.resolve_value(info.name)) for info in proto.graph.output]
    return [fact.shape is not None and all(isinstance(dim, int) for dim in fact.shape) for fact in facts]


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs", "attributes"),
    [
        ("CDist", [floats(3, 4), floats(5, 4)], 1, {"metric": "euclidean"}),
        ("ExpandDims", [floats(2, 3), np.array(-1, np.int32)], 1, {}),
        ("GatherND", [floats(2, 3, 4), np.zeros((5, 2), np.int64)], 1, {}),
        ("Pad", [floats(2, 3), i64(0, 1, 2, 0)], 1, {}),
        ("Trilu", [floats(3, 4)], 1, {}),
        ("Range", [np.int64(2), np.int64(9)], 1, {}),
        ("MurmurHash3", [ints(2, 3, dtype=np.int32)], 1, {"positive": 0}),
        ("MurmurHash3", [ints(2, 3, dtype=np.int32)], 1, {}),
        ("NGramRepeatBlock", [np.ones((2, 4), np.int64), floats(2, 9)], 1, {"ngram_size": 2}),
        ("NhwcMaxPool", [ints(1, 6, 8, 3, dtype=I8)], 1, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
        ("QLinearAveragePool", [ints(1, 6, 8, 3, low=0, dtype=U8), ONE, U8(1), ONE, U8(1)], 1,
         {"kernel_shape": [3, 3], "channels_last": 1}),
        ("QLinearWhere", [np.ones((3, 1), bool), ints(1, 4, low=0, dtype=U8), ONE, U8(0), ints(3, 4, low=0, dtype=U8),
                          ONE, U8(0), ONE, U8(0)], 1, {}),
        ("MaxpoolWithMask", [floats(1, 2, 6, 6), np.ones((1, 2, 6, 6), np.int32)], 1, {"kernel_shape": [2, 2]}),
        ("ConvTransposeWithDynamicPads", [floats(1, 4, 5, 5), floats(4, 2, 3, 3), i64(0, 1, 0, 1)], 1,
         {"strides": [2, 2]}),
        ("CropAndResize", [floats(1, 3, 8, 8), np.array([[0, 0, 1, 1]] * 2, np.float32), np.zeros(2, np.int32),
                           np.array([4, 5], np.int32)], 1, {}),
        ("UnfoldTensor", [floats(2, 9)], 1, {"dim": 1, "size": 3, "step": 2}),
        ("SampleOp", [floats(2, 3)], 1, {}),
        ("MatMulInteger16", [ints(2, 3, dtype=np.int16), ints(3, 4, dtype=np.int16)], 1, {}),
        ("GatherBlockQuantized", [ints(8, 16, low=0, high=255, dtype=U8), i64(0, 3, 1), floats(8, 1)], 1,
         {"bits": 4, "block_size": 32, "gather_axis": 0, "quantize_axis": 1}),
        ("WordConvEmbedding", [ints(3, 7, low=1, high=9, dtype=np.int32), floats(5, 1, 3, 4), floats(5), floats(9, 4)],
         1, {"conv_window_size": 3, "embedding_size": 5, "char_embedding_size": 4}),
        ("MoE", [floats(2, 8), floats(2, 3), floats(3, 16, 8), None, floats(3, 8, 16)], 1, {"activation_type": "gelu"}),
        ("QAttention", [ints(1, 3, 8, low=0, dtype=U8), ints(8, 24, dtype=I8), floats(24), ONE, ONE, None, U8(0),
                        I8(0)], 1, {"num_heads": 2}),
        ("FusedGemm", [floats(3, 4), floats(4, 5), floats(5)], 1, {"activation": "Relu"}),
        ("FusedMatMul", [floats(3, 2, 4), floats(4, 2, 5)], 1, {"transBatchA": 1, "transBatchB": 1}),
        ("FusedMatMul", [floats(4, 2, 3), floats(2, 5, 4)], 1, {"transBatchA": 1, "transA": 1, "transB": 1}),
        ("FusedMatMul", [floats(3, 2, 6, 4), floats(2, 6, 4, 5)], 1, {"transBatchA": 1}),
        ("LinearAttention", [floats(2, 3, 8), floats(2, 3, 8), floats(2, 3, 10)], 2,
         {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}),
        ("CausalConvWithState", [floats(2, 4, 5), floats(4, 1, 3)], 2, {}),
        ("QLinearSoftmax", [ints(2, 9, low=0, high=255, dtype=U8), ONE, U8(0), np.float32(1 / 256), U8(0)], 1,
         {"axis": 1, "opset": 13}),
        ("QEmbedLayerNormalization",
         [ints(1, 4, low=0, high=5, dtype=np.int32), None, ints(9, 8, low=0, dtype=U8), ints(6, 8, low=0, dtype=U8),
          None, ints(8, low=0, dtype=U8), ints(8, low=0, dtype=U8), None, ONE, ONE, None, ONE, ONE,
          U8(0), U8(0), None, U8(0), U8(0)], 2, {}),
        ("NGramHashMapping", [ints(2, 5, low=1), ints(3, low=1), ints(4, low=1), ints(2, 2, low=1)], 2,
         {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 0}),
        ("EngramGate", [floats(2, 3, 2, 8), floats(2, 3, 2, 8), floats(2, 3, 8), floats(2, 8), floats(2, 8)], 1, {}),
        ("LinearAttentionGate", [floats(2, 3, 4), floats(4), floats(4), floats(2, 3, 4)], 2, {}),
        ("HyperConnectionPreMix", [floats(2, 3, 4, 8), floats(2, 3, 4)], 1, {}),
        ("HyperConnectionPostMix", [floats(2, 3, 4, 8), floats(2, 3, 8), floats(2, 3, 4)], 1, {}),
        ("Attention", [floats(2, 1, 16), floats(16, 48), floats(48), None, floats(2, 2, 4, 3, 4)], 2, {"num_heads": 4}),
        ("DecoderMaskedMultiHeadAttention",
         [floats(2, 1, 16), floats(2, 1, 16), floats(2, 1, 16), None, None, floats(2, 4, 3, 4), floats(2, 4, 3, 4),
          np.array([1], np.int32)], 3, {"num_heads": 4, "past_present_share_buffer": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_the_shapes_are_those_of_a_run(
    op_type: str, inputs: list[Any], outputs: int, attributes: dict[str, Any]
) -> None:
    arrays = [array if array is None else np.asarray(array) for array in inputs]
    proto = model(op_type, arrays, attributes, 1, MS, outputs)
    feeds = {f"x{slot}": array for slot, array in enumerate(arrays) if array is not None}
    session = new_session(proto.SerializeToString(), None)
    check_facts(proto, feeds, session.run(None, feeds))
    for name, array in feeds.items():  # as constants: what depends on them is known too
        if array.dtype.kind == "i" and array.size <= 8:
            proto.graph.initializer.append(numpy_helper.from_array(array, name))
    check_facts(proto, feeds, session.run(None, feeds))
    assert known_shapes(proto) == [True] * outputs


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs", "attributes"),
    [
        ("Unique", [np.array([2, 1, 2, 5], np.float32)], 3, {}),
        ("DynamicTimeWarping", [floats(4, 6)], 1, {}),
        ("BifurcationDetector", [i64(4, 5, 6, 7), i64(4, 5), i64(0), i64(1, 2, 3, 4, 5)], 2, {}),
        ("Tokenizer", [np.array(["a b", "c d e"], object)], 1,
         {"separators": [" "], "mark": 0, "pad_value": "#", "mincharnum": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_depends_on_data_is_left_open(
    op_type: str, inputs: list[Any], outputs: int, attributes: dict[str, Any]
) -> None:
    proto = model(op_type, inputs, attributes, 1, MS, outputs)
    feeds = {f"x{slot}": array for slot, array in enumerate(inputs)}
    check_facts(proto, feeds, new_session(proto.SerializeToString(), None).run(None, feeds))


def optimized(proto: onnx.ModelProto | Path, folder: Path) -> onnx.ModelProto:
    """The model as ONNX Runtime's optimizer writes it for this processor."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    options.log_severity_level = 4
    source = str(proto) if isinstance(proto, Path) else proto.SerializeToString()
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return onnx.load(folder / "optimized.onnx")


def image_model() -> onnx.ModelProto:
    """Convolutions, pooling and an upsampling of an image of 32 channels and symbolic sizes."""
    weights = [numpy_helper.from_array(floats(32, 32, 3, 3, seed=seed), f"w{seed}") for seed in range(2)]
    weights.append(numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales"))
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["c", "w1"], ["d"], strides=[2, 2]),
        helper.make_node("Resize", ["d", "", "scales"], ["e"], mode="nearest", nearest_mode="floor",
                         coordinate_transformation_mode="asymmetric"),
        helper.make_node("GlobalAveragePool", ["e"], ["f"]),
    ]  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 32, "h", "w"])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 4) for name in "ef"]
    graph = helper.make_graph(nodes, "image", [x], outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_blocked_images_keep_their_dims(tmp_path: Path) -> None:
    proto = optimized(image_model(), tmp_path)
    kinds = {(node.domain, node.op_type) for node in proto.graph.node}
    if ("com.microsoft.nchwc", "Conv") not in kinds:
        pytest.skip("this processor has no blocked kernels")
    del proto.graph.value_info[:]
    for info in proto.graph.output:
        info.type.tensor_type.ClearField("shape")
    graph = ModelGraph(proto)
    inference = Inference(graph)
    for node in graph.nodes.values():
        fact = inference.fact(node.outputs[0])
        assert isinstance(fact, TensorFact)
        assert fact.shape is not None, node.proto.op_type
        assert str(fact).startswith("float32[n,32,"), node.proto.op_type
    feeds = {"x": floats(2, 32, 20, 27)}
    names = [info.name for info in proto.graph.output]
    run = new_session(proto.SerializeToString(), None).run(names, feeds)
    assert contradictions_of_run(graph, inference, feeds | dict(zip(names, run, strict=True))) == []


@pytest.mark.parametrize("name", ["bert_base", "light_squeezenet", "resnet101_qdq"])
def test_what_the_optimizer_makes_of_real_models_is_known(name: str, corpus: Corpus, tmp_path: Path) -> None:
    proto = optimized(corpus[name], tmp_path)
    del proto.graph.value_info[:]
    graph = ModelGraph(proto, tmp_path)
    inference = Inference(graph)
    fused = [node for node in graph.nodes.values() if node.domain.startswith("com.microsoft")]
    assert fused
    missing = {node.proto.op_type for node in fused if inference.fact(node.outputs[0]).shape is None}
    assert missing == set()
    assert [d for d in inference.diagnostics if d.severity == "error" or d.code == "unknown-operator"] == []
