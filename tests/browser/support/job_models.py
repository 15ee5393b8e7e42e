"""Models for the jobs: a network of blocks, a detector with NMS, a decoder with a cache, one with NaN, a small one."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray


def _model(
    nodes: list[onnx.NodeProto], inputs: dict[str, list[int | str]], outputs: dict[str, list[int | str] | None],
    stored: dict[str, "Array"], integers: tuple[str, ...] = (),
) -> onnx.ModelProto:  # fmt: skip
    def ends(shapes: dict[str, list[int | str] | None]) -> list[onnx.ValueInfoProto]:
        kinds = {name: TensorProto.INT64 if name in integers else TensorProto.FLOAT for name in shapes}
        return [helper.make_tensor_value_info(name, kinds[name], shape) for name, shape in shapes.items()]

    graph = helper.make_graph(
        nodes, "net", ends(dict(inputs)), ends(outputs),
        [numpy_helper.from_array(array, name) for name, array in stored.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _weights(*shape: int) -> "Array":
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32) * np.float32(0.2)


def network(activation: str = "HardSwish", blocks: int = 8) -> onnx.ModelProto:
    """Blocks of Conv 3×3 and an activation, every third one with stride 2; one Conv is much larger than all others."""
    nodes, stored, at, channels = [], {}, "image", 3
    for block in range(blocks):
        width, size = (96, 7) if block == 3 else (8, 3)
        stored[f"w{block}"] = _weights(width, channels, size, size)
        nodes.append(
            helper.make_node(
                "Conv", [at, f"w{block}"], [f"c{block}"], f"/block{block}/conv/Conv", kernel_shape=[size, size],
                pads=[size // 2] * 4, strides=[2, 2] if block % 3 == 1 else [1, 1],
            )
        )  # fmt: skip
        nodes.append(helper.make_node(activation, [f"c{block}"], [f"a{block}"], f"/block{block}/act/{activation}"))
        at, channels = f"a{block}", width
    nodes.append(helper.make_node("GlobalAveragePool", [at], ["p"], "/head/pool"))
    nodes.append(helper.make_node("Flatten", ["p"], ["logits"], "/head/flatten"))
    return _model(nodes, {"image": [1, 3, 64, 64]}, {"logits": [1, 8]}, stored)


def detector() -> onnx.ModelProto:
    """A backbone, boxes and scores, then NMS and what follows it; `features` is an output that does not need NMS."""
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["f"], "/backbone/conv/Conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["f"], ["features"], "/backbone/act/Relu"),
        helper.make_node("Reshape", ["features", "to_boxes"], ["boxes"], "/head/boxes/Reshape"),
        helper.make_node("Conv", ["features", "ws"], ["s"], "/head/scores/Conv"),
        helper.make_node("Sigmoid", ["s"], ["sg"], "/head/scores/Sigmoid"),
        helper.make_node("Reshape", ["sg", "to_scores"], ["scores"], "/head/scores/Reshape"),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most"], ["sel"], "/nms/NonMaxSuppression"),
        helper.make_node("Gather", ["sel", "two"], ["which"], "/nms/Gather", axis=1),
        helper.make_node("Reshape", ["which", "flat"], ["places"], "/nms/Reshape"),
        helper.make_node("Gather", ["boxes", "places"], ["det"], "/nms/Gather_1", axis=1),
    ]
    stored = {
        "w": _weights(4, 3, 3, 3), "ws": _weights(1, 4, 1, 1), "to_boxes": np.array([1, -1, 4], np.int64),
        "to_scores": np.array([1, 1, -1], np.int64), "most": np.array([5], np.int64), "two": np.array([2], np.int64),
        "flat": np.array([-1], np.int64),
    }  # fmt: skip
    outputs: dict[str, list[int | str] | None] = {"features": [1, 4, 32, 32], "sel": ["found", 3], "det": [1, "n", 4]}
    return _model(nodes, {"image": [1, 3, 32, 32]}, outputs, stored, integers=("sel",))


def decoder(layers: int = 48) -> onnx.ModelProto:
    """A stand-in for a decoder with a cache: one hidden state and two caches for each layer, all with batch 1."""
    inputs: dict[str, list[int | str]] = {"hidden": [1, "seq", 8]}
    outputs: dict[str, list[int | str] | None] = {}
    nodes, at = [], "hidden"
    for layer in range(layers):
        for cache in ("k", "v"):
            inputs[f"past.{layer}.{cache}"] = [1, "past", 8]
            outputs[f"present.{layer}.{cache}"] = [1, "total", 8]
            wires = [f"past.{layer}.{cache}", at], [f"present.{layer}.{cache}"]
            nodes.append(helper.make_node("Concat", *wires, f"/layers.{layer}/cache/{cache}/Concat", axis=1))
        nodes.append(helper.make_node("Tanh", [at], [f"h{layer}"], f"/layers.{layer}/mlp/Tanh"))
        nodes.append(helper.make_node("Add", [f"h{layer}", at], [f"s{layer}"], f"/layers.{layer}/Add"))
        at = f"s{layer}"
    outputs[at] = [1, "seq", 8]
    return _model(nodes, inputs, outputs, {})


def faulty() -> onnx.ModelProto:
    """The logarithm of what may be negative in the middle of a chain: its output and all after it hold NaN."""
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["f"], "/stem/Conv", pads=[1, 1, 1, 1]),
        helper.make_node("Log", ["f"], ["logs"], "/middle/Log"),
        helper.make_node("Neg", ["logs"], ["n"], "/middle/Neg"),
        helper.make_node("ReduceMean", ["n"], ["y"], "/head/ReduceMean", axes=[2, 3], keepdims=0),
    ]
    return _model(nodes, {"image": [1, 3, 16, 16]}, {"y": [1, 4]}, {"w": _weights(4, 3, 3, 3)})


def loose() -> onnx.ModelProto:
    """Two branches that end in outputs, and an Add that reads one of them twice: small enough to show every node."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "left"),
        helper.make_node("Tanh", ["x"], ["b"], "right"),
        helper.make_node("Add", ["a", "a"], ["y"], "sum"),
        helper.make_node("Neg", ["b"], ["z"], "neg"),
    ]
    return _model(nodes, {"x": ["n", 4]}, {"y": ["n", 4], "z": ["n", 4]}, {})


MODELS = {
    "network": network,
    "detector": detector,
    "decoder": decoder,
    "faulty": faulty,
    "loose": loose,
}
