"""A model with values of many kinds: attention, boxes of a detector, a sound, a classifier."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, TOKENS = 4, 24
FOUND = np.array([[[0.1, 0.1, 0.5, 0.6, 0.9, 2], [0.5, 0.3, 0.9, 0.9, 0.7, 5], [0.51, 0.3, 0.9, 0.9, 0.6, 5],
                   [0.2, 0.7, 0.4, 0.9, 0.1, 1]]], np.float32)  # fmt: skip


def values() -> onnx.ModelProto:
    """Each of its outputs is looked at in another way."""
    rng = np.random.default_rng(1)
    time = np.arange(16_000) / 16_000
    chirp = np.sin(2 * np.pi * (200 * time + 2500 * time**2)).astype(np.float32)[None]
    near = -np.abs(np.arange(TOKENS)[:, None] - np.arange(TOKENS)) / np.arange(1, HEADS + 1)[:, None, None]
    stored = {
        "w": rng.standard_normal((8, 3, 3, 3)).astype(np.float32) * np.float32(0.3),
        "boxes": FOUND,
        "scores": (near + rng.standard_normal(near.shape) * 0.4).astype(np.float32)[None],
    }
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["edges"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["edges"], ["features"], "relu"),
        helper.make_node("Identity", ["boxes"], ["detections"], "head"),
        helper.make_node("Softmax", ["scores"], ["weights"], "softmax", axis=-1),
        helper.make_node("Add", ["audio", "audio"], ["louder"], "gain"),
    ]

    def end(name: str, shape: list[int]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    inputs = [end("image", [1, 3, 64, 96]), end("audio", list(chirp.shape))]
    outputs = [
        end("features", [1, 8, 64, 96]), end("detections", [1, 4, 6]), end("weights", [1, HEADS, TOKENS, TOKENS]),
        end("louder", list(chirp.shape)),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "values", inputs, outputs, [numpy_helper.from_array(array, name) for name, array in stored.items()]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


CELL = """import json, numpy as np, onnxlab
model = onnxlab.load({path!r})
rows, columns = np.mgrid[0:64, 0:96]
image = np.stack([rows / 64, columns / 96, np.hypot(rows - 32, columns - 48) / 60])[None].astype(np.float32)
time = np.arange(16_000) / 16_000
audio = np.sin(2 * np.pi * (200 * time + 2500 * time**2)).astype(np.float32)[None]
model.run({{"image": image, "audio": audio}})
view = onnxlab.show(model, height=720)
view"""
