"""Builders of random models: a node is kept where the reference evaluator computes it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx.reference
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]


OPSET = 18


SIZES = ({"a": 2, "b": 3, "c": 6}, {"a": 5, "b": 4, "c": 8})


"""The two bindings of the inputs' symbols."""


MAX_ELEMENTS = 4000


@dataclass(frozen=True)
class RandomModel:
    """A model, and feeds for each binding."""

    model: onnx.ModelProto
    feeds: tuple[dict[str, Array], ...]


@dataclass
class Builder:
    """A graph as it grows: every value with its array for each binding."""

    random: random.Random
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: list[onnx.TensorProto] = field(default_factory=list)
    values: dict[str, tuple[Array, ...]] = field(default_factory=dict)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def constant(self, items: Any, dtype: Any = np.int64) -> str:
        """The name of a new initializer."""
        array, name = np.asarray(items, dtype), self.name()
        self.tensors.append(numpy_helper.from_array(array, name))
        self.values[name] = tuple(array for _ in SIZES)
        return name

    def pick(self, accept: Callable[[Array], bool]) -> str:
        """A value that fits for each binding, rather a late than an early one. Raises LookupError without one."""
        names = [name for name, arrays in self.values.items() if all(map(accept, arrays))]
        if not names:
            raise LookupError("no value fits")
        return names[max(self.random.randrange(len(names)) for _ in range(2))]

    def floats(self, rank: int | None = None) -> str:
        return self.pick(lambda array: array.dtype == np.float32 and rank in (None, array.ndim))

    def scalars(self) -> str:
        """A size that a chain computed: an int64 vector of one element."""
        return self.pick(lambda array: array.dtype == np.int64 and array.shape == (1,) and -100 < array[0] < 100)

    def rank(self, name: str) -> int:
        return self.values[name][0].ndim

    def axis(self, name: str) -> int:
        rank = self.rank(name)
        return self.random.randrange(-rank, rank)

    def add(self, op_type: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node whose values the reference evaluator can compute. Raises where it cannot."""
        node = helper.make_node(op_type, inputs, [self.name() for _ in range(outputs)], **attributes)
        self.keep(node, [self.run(node, binding) for binding in range(len(SIZES))])
        return list(node.output)

    def run(self, node: onnx.NodeProto, binding: int) -> list[Array]:
        evaluator = onnx.reference.ReferenceEvaluator(node, opsets={"": OPSET})
        feeds = {name: self.values[name][binding] for name in node.input if name}
        return [np.asarray(array) for array in evaluator.run(None, feeds)]

    def keep(self, node: onnx.NodeProto, outputs: Sequence[Sequence[Array]]) -> None:
        for arrays in zip(*outputs, strict=True):
            if len({(array.dtype, array.ndim) for array in arrays}) > 1:
                raise ValueError("its type or rank depends on the binding")
            if any(array.size > MAX_ELEMENTS or 0 in array.shape for array in arrays):
                raise ValueError("too large, or empty: there, ONNX Runtime's own shapes are not to be trusted")
        self.nodes.append(node)
        self.values.update(zip(node.output, zip(*outputs, strict=True), strict=True))


Template = Callable[[Builder], object]
