"""Nodes and weights of models that are made, named as exporters name them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


class Maker:
    """Nodes and weights of a graph; `named` is False where nodes are to have no names."""

    def __init__(self, named: bool = True) -> None:
        self.named = named
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, onnx.TensorProto] = {}
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self._scopes: list[str] = []
        self._random = np.random.default_rng(0)
        self._channels: dict[str, int] = {}

    @contextmanager
    def scope(self, *names: str) -> Iterator[None]:
        """Name what is made inside after a module."""
        self._scopes += names
        yield
        del self._scopes[-len(names) :]

    def input(self, name: str, dims: Sequence[int | str], dtype: int = FLOAT) -> str:
        """An input of the graph."""
        self.inputs.append(helper.make_tensor_value_info(name, dtype, dims))
        return name

    def output(self, name: str, value: str, dims: Sequence[int | str], dtype: int = FLOAT) -> None:
        """Give a value out under a name of its own, which it has from now on."""
        for node in self.nodes:
            for values in (node.input, node.output):
                for place in [place for place, existing in enumerate(values) if existing == value]:
                    values[place] = name
        self.outputs.append(helper.make_tensor_value_info(name, dtype, dims))

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """A node; the name of its output, or those of several."""
        number = len(self.nodes)
        path = "/".join(["", *self._scopes, f"{op}_{number}"])
        results = [f"{path}_output_{slot}" if self.named else f"p2o.value.{number}.{slot}" for slot in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, results, path if self.named else "", **attributes))
        return results[0] if outputs == 1 else results

    def weight(self, name: str, *dims: int) -> str:
        """A weight named after the module that is being made."""
        full = ".".join([*self._scopes, name]) if self.named else name
        array = self._random.standard_normal(dims).astype(np.float32) * np.float32(0.1)
        self.weights.setdefault(full, numpy_helper.from_array(array, full))
        return full

    def constant(self, value: Any, dtype: str = "i8") -> str:
        """A weight that is named after what it holds."""
        array = np.asarray(value, dtype)
        name = f"const_{dtype}_{'_'.join(map(str, array.ravel().tolist()))}_{array.ndim}"
        self.weights.setdefault(name, numpy_helper.from_array(array, name))
        return name

    def conv(
        self, x: str, channels_in: int, channels_out: int, kernel: int = 3, stride: int = 1, group: int = 1
    ) -> str:
        """A convolution with bias that keeps the size, but for its stride."""
        weight, bias = (
            self.weight("weight", channels_out, channels_in // group, kernel, kernel),
            self.weight("bias", channels_out),
        )
        pads = [kernel // 2] * 4
        return str(self.node("Conv", x, weight, bias, strides=[stride] * 2, pads=pads, group=group))

    def linear(self, x: str, channels_in: int, channels_out: int) -> str:
        """A product with a weight, and a bias."""
        return str(
            self.node(
                "Add",
                self.node("MatMul", x, self.weight("weight", channels_in, channels_out)),
                self.weight("bias", channels_out),
            )
        )

    def silu(self, x: str) -> str:
        """A value times its own sigmoid."""
        return str(self.node("Mul", x, self.node("Sigmoid", x)))

    def group_norm(self, x: str, channels: int, groups: int = 4) -> str:
        """Group normalization as torch exports it: in one instance a group."""
        shape = self.node("Shape", x)
        flat = self.node("Reshape", x, self.constant([0, groups, -1]))
        ones, zeros = self.constant(np.ones(groups), "f4"), self.constant(np.zeros(groups), "f4")
        whole = self.node("Reshape", self.node("InstanceNormalization", flat, ones, zeros), shape)
        scaled = self.node("Mul", whole, self.weight("weight", channels, 1, 1))
        return str(self.node("Add", scaled, self.weight("bias", channels, 1, 1)))

    def layer_norm(self, x: str, width: int) -> str:
        """Normalization along the last axis."""
        return str(
            self.node("LayerNormalization", x, self.weight("weight", width), self.weight("bias", width), axis=-1)
        )

    def model(self, name: str) -> onnx.ModelProto:
        """The graph as a valid model."""
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, list(self.weights.values()))
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        onnx.checker.check_model(proto)
        return proto
