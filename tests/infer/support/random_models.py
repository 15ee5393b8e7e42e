"""Random well-formed models: many operators, chains that compute shapes, broadcasting, bodies; the same for a seed.

`random_model(seed)` gives a model whose inputs have symbolic dims, and feeds for two bindings of these. A node is
proposed at random and kept where onnx's reference evaluator computes it for both bindings, so that no rule of ours
has a say in what is well-formed.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence

import numpy as np
import onnx
import onnx.reference
from onnx import TensorProto, helper

from tests.infer.support.model_builder import OPSET, SIZES, Builder, RandomModel, Template
from tests.infer.support.random_sizes import (
    calculate,
    compare_sizes,
    counted,
    dim,
    filled,
    measure,
    reshape,
    reshape_by_zero,
    scale,
    whole_size,
)


def unary(b: Builder) -> None:
    b.add(b.random.choice(("Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Identity", "Floor", "Ceil")), [b.floats()])


def binary(b: Builder) -> None:
    b.add(b.random.choice(("Add", "Sub", "Mul", "Max", "Min")), [b.floats(), b.floats()])


def where(b: Builder) -> None:
    x, y = b.floats(), b.floats()
    (mask,) = b.add(b.random.choice(("Greater", "Less", "Equal")), [x, y])
    b.add("Where", [mask, x, y])


def cast(b: Builder) -> None:
    (whole,) = b.add("Cast", [b.floats()], to=b.random.choice((TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)))
    b.add("Cast", [whole], to=TensorProto.FLOAT)


def soft(b: Builder) -> None:
    x = b.floats()
    b.add(b.random.choice(("Softmax", "LogSoftmax", "Hardmax")), [x], axis=b.axis(x))


def transpose(b: Builder) -> None:
    x = b.floats()
    b.add("Transpose", [x], perm=b.random.sample(range(b.rank(x)), b.rank(x)))


def unsqueeze(b: Builder) -> None:
    x = b.floats()
    b.add("Unsqueeze", [x, b.constant([b.random.randint(-b.rank(x) - 1, b.rank(x))])])


def squeeze(b: Builder) -> None:
    x = b.pick(lambda array: array.dtype == np.float32 and 1 in array.shape)
    b.add("Squeeze", [x, b.constant([b.values[x][0].shape.index(1)])])


def flatten(b: Builder) -> None:
    x = b.floats()
    b.add("Flatten", [x], axis=b.random.randint(0, b.rank(x)))


def concat(b: Builder) -> None:
    x = b.floats()
    b.add("Concat", [x, b.floats(b.rank(x)), *([x] if b.random.random() < 0.3 else [])], axis=b.axis(x))


def split(b: Builder) -> None:
    x = b.floats()
    axis = b.axis(x)
    parts = min(b.random.randint(1, 3), *(array.shape[axis] for array in b.values[x]))
    if b.random.random() < 0.5:
        b.add("Split", [x], parts, axis=axis, num_outputs=parts)
    else:
        size = min(array.shape[axis] for array in b.values[x])
        (rest,) = b.add("Sub", [dim(b, x, axis), b.constant([size // 2])])
        (sizes,) = b.add("Concat", [b.constant([size // 2]), rest], axis=0)
        b.add("Split", [x, sizes], 2, axis=axis)


def slice_(b: Builder) -> None:
    x = b.floats()
    count = b.random.randint(1, b.rank(x))
    axes = b.random.sample(range(b.rank(x)), count)
    if b.random.random() < 0.3:
        b.add("Slice", [x, b.constant([0]), b.scalars(), b.constant(axes[:1])])
        return
    starts = [b.random.choice((0, 1, -1, -3, 2)) for _ in axes]
    ends = [b.random.choice((1, 3, -1, 2**31 - 1, 2**63 - 1, -(2**63))) for _ in axes]
    steps = [b.random.choice((1, 1, 1, 2, -1, -2)) for _ in axes]
    b.add("Slice", [x, *map(b.constant, (starts, ends, axes, steps))])


def gather(b: Builder) -> None:
    x = b.floats()
    index = b.random.choice(([0], 0, [[0, 1], [1, 0]], [-1, 0, 0]))
    b.add("Gather", [x, b.constant(index)], axis=b.axis(x))


def gather_elements(b: Builder) -> None:
    x = b.floats()
    axis = b.axis(x)
    (order,) = b.add("ArgMin", [x], axis=axis, keepdims=1)
    b.add("GatherElements", [x, order], axis=axis)


def gather_nd(b: Builder) -> None:
    x = b.floats()
    depth = b.random.randint(1, b.rank(x))
    b.add("GatherND", [x, b.constant(np.zeros((3, depth)))])


def pad(b: Builder) -> None:
    x = b.floats()
    b.add("Pad", [x, b.constant([b.random.choice((0, 0, 1, 2)) for _ in range(2 * b.rank(x))])])


def tile(b: Builder) -> None:
    x = b.floats()
    b.add("Tile", [x, b.constant([b.random.randint(1, 2) for _ in range(b.rank(x))])])


def expand(b: Builder) -> None:
    x = b.floats()
    (shape,) = b.add("Shape", [b.floats()])
    b.add("Expand", [x, shape])


def reduce(b: Builder) -> None:
    x = b.floats()
    axes = b.random.sample(range(b.rank(x)), b.random.randint(0, b.rank(x)))
    name = b.random.choice(("ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2", "ReduceProd"))
    b.add(name, [x, b.constant(axes)], keepdims=b.random.randint(0, 1))


def arg_max(b: Builder) -> None:
    x = b.floats()
    (index,) = b.add(b.random.choice(("ArgMax", "ArgMin")), [x], axis=b.axis(x), keepdims=b.random.randint(0, 1))
    b.add("Cast", [index], to=TensorProto.FLOAT)


def top_k(b: Builder) -> None:
    x = b.floats()
    axis = b.axis(x)
    (k,) = b.add("Min", [dim(b, x, axis), b.constant([b.random.randint(1, 4)])])
    b.add("TopK", [x, k], 2, axis=axis)


def mat_mul(b: Builder) -> None:
    x = b.floats()
    if b.random.random() < 0.5:
        (y,) = b.add("Transpose", [x], perm=[*range(b.rank(x) - 2), b.rank(x) - 1, b.rank(x) - 2])
    else:
        y = b.floats()
    if min(b.rank(x), b.rank(y)) == 0:
        raise ValueError("ONNX Runtime refuses scalars")
    b.add("MatMul", [x, y])


def gemm(b: Builder) -> None:
    x = b.floats(2)
    b.add("Gemm", [x, x], transA=1) if b.random.random() < 0.5 else b.add("Gemm", [x, x], transB=1)


def einsum(b: Builder) -> None:
    b.add("Einsum", [b.floats(2)], equation=b.random.choice(("ij->ji", "ij->i", "ij->")))


def window(b: Builder) -> None:
    """Convolution and pooling over an image made from present values."""
    x = b.floats()
    (flat,) = b.add("Reshape", [x, b.constant([1, 1, b.values[x][0].shape[0] if b.random.random() < 0.2 else 1, -1])])
    strides, pads = [1, b.random.randint(1, 3)], [b.random.randint(0, 1) for _ in range(4)]
    kernel = [1, b.random.randint(1, 3)]
    pads[0] = pads[2] = 0
    if b.random.random() < 0.5:
        weights = b.constant(np.ones((2, 1, *kernel)), np.float32)
        b.add("Conv", [flat, weights], kernel_shape=kernel, strides=strides, pads=pads)
    else:
        pads = [min(amount, size - 1) for amount, size in zip(pads, kernel * 2, strict=True)]
        b.add(b.random.choice(("MaxPool", "AveragePool")), [flat], kernel_shape=kernel, strides=strides, pads=pads)


def resize(b: Builder) -> None:
    x = b.floats()
    if b.rank(x) == 0:
        raise ValueError("no axis to resize")
    factors = [b.random.choice((1.0, 2.0, 0.5, 1.5)) for _ in range(b.rank(x))]
    b.add("Resize", [x, "", b.constant(factors, np.float32)], mode="nearest")


def one_hot(b: Builder) -> None:
    x = b.floats()
    (index,) = b.add("ArgMax", [x], axis=b.axis(x), keepdims=1)
    b.add("OneHot", [index, b.constant(b.random.randint(2, 5)), b.constant([0, 1], np.float32)])


def running(b: Builder) -> None:
    x = b.floats()
    b.add("CumSum", [x, b.constant(b.axis(x))])


def chosen(b: Builder) -> None:
    """Sizes that depend on data."""
    x = b.pick(lambda array: array.dtype == np.float32 and array.ndim > 0)
    kind = b.random.choice(("NonZero", "Compress", "Unique"))
    if kind == "NonZero":
        (indices,) = b.add("NonZero", [x])
        b.add("Cast", [indices], to=TensorProto.FLOAT)
    elif kind == "Compress":
        (mask,) = b.add("Greater", [x, b.constant(0.3, np.float32)])
        (flat,) = b.add("Reshape", [mask, b.constant([-1])])
        (values,) = b.add("Reshape", [x, b.constant([-1])])
        b.add("Compress", [values, flat])
    else:
        b.add("Unique", [x], 4)


def sequences(b: Builder) -> None:
    x = b.floats()
    axis = b.random.randrange(b.rank(x))
    parts = helper.make_node("SplitToSequence", [x], [b.name()], axis=axis, keepdims=1)
    back = helper.make_node("ConcatFromSequence", [parts.output[0]], [b.name()], axis=b.random.randrange(b.rank(x)))
    results = []
    for array in b.values[x]:
        pieces = np.split(array, array.shape[axis], axis)
        results.append([np.concatenate(pieces, back.attribute[0].i)])
    b.nodes.append(parts)
    b.keep(back, results)


# -- bodies -------------------------------------------------------------------------------------------------------


def body(b: Builder, x: str) -> onnx.NodeProto:
    """A node over a captured or carried value, with the arrays of its result not yet kept."""
    if b.random.random() < 0.5:
        return helper.make_node(b.random.choice(("Relu", "Neg", "Identity")), [x], [b.name()])
    return helper.make_node("Concat", [x, x], [b.name()], axis=b.axis(x))


def if_(b: Builder) -> None:
    x = b.floats()
    n, m = b.scalars(), b.scalars()
    (flag,) = b.add("Less", [n, m])
    nodes = [body(b, x) for _ in range(2)]
    results = [[b.run(node, binding) for binding in range(len(SIZES))] for node in nodes]
    graphs = [
        helper.make_graph([node], f"branch{at}", [], [onnx.ValueInfoProto(name=node.output[0])])
        for at, node in enumerate(nodes)
    ]
    node = helper.make_node("If", [flag], [b.name()], then_branch=graphs[0], else_branch=graphs[1])
    outputs = [results[0 if b.values[flag][binding][0] else 1][binding] for binding in range(len(SIZES))]
    b.keep(node, outputs)


def loop(b: Builder) -> None:
    """Carries a value through a few iterations, some of which make it longer; stacks another where it may."""
    x, count = b.floats(), b.scalars()
    grows = b.random.random() < 0.4
    axis = b.axis(x)
    step = helper.make_node("Concat", ["carried", x], ["next"], axis=axis)
    if not grows:
        step = helper.make_node(b.random.choice(("Neg", "Relu")), ["carried"], ["next"])
    stacked = helper.make_node("Tanh", [x], ["stacked"])
    again = helper.make_node("Identity", ["go"], ["on"])
    inputs = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        helper.make_tensor_value_info("carried", TensorProto.FLOAT, None),
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in ("on", "next", "stacked")]
    graph = helper.make_graph([again, step, stacked], "body", inputs, outputs)
    (trips,) = b.add("Squeeze", [count, b.constant([0])])
    node = helper.make_node("Loop", [trips, b.constant(True, bool), x], [b.name(), b.name()], body=graph)
    results = []
    for array, number in zip(b.values[x], b.values[trips], strict=True):
        times = int(number)
        if not 1 <= times <= 8:
            raise ValueError("too many iterations, or none, where ONNX Runtime cannot tell what would be stacked")
        carried = np.concatenate([array] * (times + 1), axis) if grows else array
        results.append([carried, np.stack([array] * times)])
    b.keep(node, results)


TEMPLATES: tuple[Template, ...] = (
    unary, binary, binary, binary, where, cast, soft, transpose, unsqueeze, squeeze, flatten, concat, split, slice_,
    slice_, gather, gather_elements, gather_nd, pad, tile, expand, reduce, arg_max, top_k, mat_mul, gemm, einsum,
    window, resize, one_hot, running, chosen, sequences, measure, measure, calculate, calculate, scale, compare_sizes,
    reshape, reshape, reshape_by_zero, filled, counted, whole_size, if_, loop,
)  # fmt: skip


def random_model(seed: int, size: int = 12) -> RandomModel:
    """The model of a seed, with about `size` proposals that were kept."""
    chance = random.Random(seed)
    b = Builder(chance)
    infos, numbers = [], np.random.RandomState(seed)
    inputs: Sequence[tuple[str, Sequence[str | int]]] = (("x", ("a", "b")), ("y", ("b", 4)), ("z", ("a", 1, "c")))
    for name, dims in inputs:
        infos.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        shapes = [[sizes[dim] if isinstance(dim, str) else int(dim) for dim in dims] for sizes in SIZES]
        b.values[name] = tuple(numbers.standard_normal(shape).astype(np.float32) for shape in shapes)
    feeds = tuple({info.name: b.values[info.name][binding] for info in infos} for binding in range(len(SIZES)))
    node_count = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _ in range(4 * size):
            before = len(b.nodes), len(b.tensors), dict(b.values)
            try:
                chance.choice(TEMPLATES)(b)
                node_count += 1
            except Exception:  # the reference evaluator refuses with any exception
                del b.nodes[before[0] :]
                del b.tensors[before[1] :]
                b.values = before[2]
            if node_count >= size:
                break
    defined = [info.name for info in infos] + [tensor.name for tensor in b.tensors]
    outputs = [onnx.ValueInfoProto(name=name) for node in b.nodes for name in node.output if name not in defined]
    kinds = {name: helper.np_dtype_to_tensor_dtype(arrays[0].dtype) for name, arrays in b.values.items()}
    for info in outputs:
        if info.name in kinds:
            info.type.tensor_type.elem_type = kinds[info.name]
    graph = helper.make_graph(b.nodes, f"random_{seed}", infos, [o for o in outputs if o.name in kinds], b.tensors)
    return RandomModel(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9), feeds)
