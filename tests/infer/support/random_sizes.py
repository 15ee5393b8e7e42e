"""Random chains that compute sizes, and reshapes by them."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.infer.support.model_builder import Builder


def dim(b: Builder, x: str, axis: int) -> str:
    """One dim of a value as a vector of one element, the way one of several exporters writes it."""
    (shape,) = b.add("Shape", [x])
    axis %= b.rank(x)
    if b.random.random() < 0.5:
        return b.add("Slice", [shape, b.constant([axis]), b.constant([axis + 1]), b.constant([0])])[0]
    (scalar,) = b.add("Gather", [shape, b.constant(axis)], axis=0)
    return b.add("Unsqueeze", [scalar, b.constant([0])])[0]


def measure(b: Builder) -> None:
    x = b.floats()
    dim(b, x, b.axis(x))


def calculate(b: Builder) -> None:
    name = b.random.choice(("Add", "Sub", "Mul", "Div", "Min", "Max", "Mod"))
    other = b.constant([b.random.randint(1, 5)]) if b.random.random() < 0.5 else b.scalars()
    b.add(name, [b.scalars(), other])


def scale(b: Builder) -> None:
    (number,) = b.add("Cast", [b.scalars()], to=TensorProto.FLOAT)
    (scaled,) = b.add("Mul", [number, b.constant([b.random.choice((0.5, 1.5, 2.0, 0.1))], np.float32)])
    (rounded,) = b.add(b.random.choice(("Floor", "Ceil", "Identity")), [scaled])
    b.add("Cast", [rounded], to=TensorProto.INT64)


def compare_sizes(b: Builder) -> None:
    n, m = b.scalars(), b.scalars()
    (same,) = b.add(b.random.choice(("Equal", "Less", "GreaterOrEqual")), [n, m])
    b.add("Where", [same, n, b.constant([2])])


def reshape(b: Builder) -> None:
    """To sizes computed from dims: some kept, the rest in one."""
    x = b.floats()
    keep = [dim(b, x, axis) for axis in range(b.random.randint(0, max(b.rank(x) - 1, 0)))]
    parts = [*keep, b.constant([-1])]
    if b.random.random() < 0.3:
        parts.append(b.constant([1]))
    (target,) = b.add("Concat", parts, axis=0)
    b.add("Reshape", [x, target])


def reshape_by_zero(b: Builder) -> None:
    x = b.floats()
    zero_count = b.random.randint(0, max(b.rank(x) - 1, 0))
    b.add("Reshape", [x, b.constant([0] * zero_count + [-1])])


def filled(b: Builder) -> None:
    (shape,) = b.add("Concat", [b.scalars(), b.constant([b.random.randint(1, 3)])], axis=0)
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [1.5])
    b.add("ConstantOfShape", [shape], value=value)


def counted(b: Builder) -> None:
    (scalar,) = b.add("Squeeze", [b.scalars(), b.constant([0])])
    (numbers,) = b.add("Range", [b.constant(0), scalar, b.constant(b.random.choice((1, 2, 3)))])
    b.add("Cast", [numbers], to=TensorProto.FLOAT)


def whole_size(b: Builder) -> None:
    (size,) = b.add("Size", [b.floats()])
    b.add("Unsqueeze", [size, b.constant([0])])
