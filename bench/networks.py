"""Two networks in full width with random weights: ResNet-50 and a BERT-base encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.support.corpus import path

_LAYERS, _WIDTH, _HEADS, _INNER, _WORDS = 12, 768, 12, 3072, 30522


def resnet50() -> onnx.ModelProto:
    """The structure of `light_resnet50`, whose weights are all made by ConstantOfShape, with numbers in their place."""
    model = onnx.load(path("light_resnet50"))
    rng = np.random.default_rng(0)
    sizes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    weights, used = [], {node.input[0] for node in model.graph.node if node.op_type == "ConstantOfShape"}
    roles = _roles(model.graph.node)
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            shape = tuple(int(size) for size in sizes[node.input[0]])
            weights.append(numpy_helper.from_array(_weights(rng, roles.get(node.output[0], ""), shape), node.output[0]))
    nodes = [node for node in model.graph.node if node.op_type != "ConstantOfShape"]
    left = [tensor for tensor in model.graph.initializer if tensor.name not in used]
    inputs = [value for value in model.graph.input if value.name not in used]
    for field, items in (("node", nodes), ("initializer", [*left, *weights]), ("input", inputs)):
        model.graph.ClearField(field)
        getattr(model.graph, field).extend(items)
    return model


def picture() -> dict[str, np.ndarray[Any, Any]]:
    """Feeds of `resnet50`."""
    return {"gpu_0/data_0": np.random.default_rng(0).standard_normal((1, 3, 224, 224), dtype=np.float32)}


def words() -> dict[str, np.ndarray[Any, Any]]:
    """Feeds of `bert_base`: 128 words."""
    return {"ids": np.random.default_rng(0).integers(0, _WORDS, (1, 128))}


def _roles(nodes: Sequence[Any]) -> dict[str, str]:
    """{name: "scale", "variance" or ""} of what feeds a BatchNormalization."""
    roles = {}
    for node in nodes:
        if node.op_type == "BatchNormalization":
            roles[node.input[1]] = "scale"
            roles[node.input[4]] = "variance"
    return roles


def _weights(rng: np.random.Generator, role: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Numbers that keep the size of activations: variances near 1, small biases, weights by their fan-in."""
    if role:
        return rng.uniform(0.5, 1.0, shape).astype(np.float32)
    fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 100
    return (rng.standard_normal(shape, dtype=np.float32) * np.float32((2 / fan_in) ** 0.5)).astype(np.float32)


class _Encoder:
    """Nodes and initializers of an encoder, as exporters write it."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def weight(self, *shape: int) -> str:
        array = self.rng.standard_normal(shape, dtype=np.float32) * np.float32(shape[0] ** -0.5)
        return self.constant(array)

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def linear(self, x: str, rows: int, columns: int) -> str:
        return self.node("Add", self.node("MatMul", x, self.weight(rows, columns)), self.weight(columns))

    def norm(self, x: str) -> str:
        scale, bias = np.ones(_WIDTH, np.float32), np.zeros(_WIDTH, np.float32)
        return self.node("LayerNormalization", x, self.constant(scale), self.constant(bias), axis=-1)

    def layer(self, x: str, apart: str, together: str) -> str:
        """Attention and a perceptron, each with its residual and norm."""
        heads = [
            self.node("Transpose", self.node("Reshape", self.linear(x, _WIDTH, _WIDTH), apart), perm=perm)
            for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        ]
        scale = self.constant(np.array((_WIDTH // _HEADS) ** -0.5, np.float32))
        scores = self.node("Softmax", self.node("Mul", self.node("MatMul", heads[0], heads[1]), scale), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", scores, heads[2]), perm=[0, 2, 1, 3])
        x = self.norm(self.node("Add", self.linear(self.node("Reshape", mixed, together), _WIDTH, _WIDTH), x))
        inner = self.node("Gelu", self.linear(x, _WIDTH, _INNER))
        return self.norm(self.node("Add", self.linear(inner, _INNER, _WIDTH), x))


def bert_base() -> onnx.ModelProto:
    """An encoder of BERT-base's size: int64 `ids` [batch, length] to float32 [batch, length, 768]."""
    encoder = _Encoder()
    apart = encoder.constant(np.array([0, 0, _HEADS, _WIDTH // _HEADS]))
    together = encoder.constant(np.array([0, 0, _WIDTH]))
    x = encoder.norm(encoder.node("Gather", encoder.weight(_WORDS, _WIDTH), "ids"))
    for _ in range(_LAYERS):
        x = encoder.layer(x, apart, together)
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])]
    outputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", "length", _WIDTH])]
    graph = helper.make_graph(encoder.nodes, "bert_base", inputs, outputs, encoder.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
