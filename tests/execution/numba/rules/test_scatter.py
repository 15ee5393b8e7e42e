"""Scatter and gather by tuples, places of the largest, and integers, against NumPy's kernels and onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.execution.support.integer_operands import oracle
from tests.execution.support.regions import assert_close, check


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def one(op_type, feeds, outputs=1, opset=18, domain="", after=(), **attributes):
    """A model of one node, and of those that follow it: {input: array} become its inputs."""
    kinds = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
             for name, array in feeds.items()]  # fmt: skip
    names = [f"y{number}" for number in range(outputs)]
    node = helper.make_node(op_type, list(feeds), names, domain=domain, **attributes)
    results = [helper.make_empty_tensor_value_info(name) for name in (after[-1].output if after else names)]
    graph = helper.make_graph([node, *after], "g", kinds, results)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def both(model, feeds, tolerance=2e-6, **options):
    """Kernels against NumPy and onnxruntime."""
    ours = check(model, feeds, tolerance, **options)
    for name, expected in oracle(model, feeds).items():
        assert ours[name].dtype == expected.dtype
        assert_close(ours[name], expected, tolerance, name)


REDUCTIONS = ("none", "add", "mul", "max", "min")


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("wide", [np.int32, np.int64])
def test_scatter_elements(rng, reduction, axis, wide):
    data = rng.standard_normal((5, 7, 4)).astype(np.float32)
    shape = [3, 6, 4]
    size = data.shape[axis]
    if reduction == "none":  # the order of colliding updates is not defined
        shape[axis] = size
        indices = np.argsort(rng.random(shape), axis).astype(wide)
    else:
        indices = rng.integers(-size, size, shape).astype(wide)
    feeds = {"data": data, "indices": indices, "updates": rng.standard_normal(shape).astype(np.float32)}
    both(one("ScatterElements", feeds, axis=axis, reduction=reduction), feeds, threads=2)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_scatter_nd(rng, reduction, parts):
    data = rng.standard_normal((5, 7, 4)).astype(np.float32)
    places = np.stack(np.unravel_index(rng.permutation(int(np.prod(data.shape[:parts])))[:4], data.shape[:parts]), -1)
    indices = places if reduction == "none" else np.concatenate([places, places - np.array(data.shape[:parts])])
    feeds = {"data": data, "indices": indices.astype(np.int64),
             "updates": rng.standard_normal((len(indices), *data.shape[parts:])).astype(np.float32)}  # fmt: skip
    both(one("ScatterND", feeds, reduction=reduction), feeds)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.bool_, np.uint8])
def test_what_is_moved_may_be_of_any_type(rng, dtype):
    data, indices = (rng.standard_normal((6, 5)) * 9).astype(dtype), rng.integers(-6, 6, (4, 5))
    both(one("GatherElements", {"data": data, "indices": indices}, axis=0), {"data": data, "indices": indices})
    tuples = rng.integers(-5, 5, (2, 3, 2))
    both(one("GatherND", {"data": data, "indices": tuples}), {"data": data, "indices": tuples})
    rows = np.array([[1], [4]])
    feeds = {"data": data, "indices": rows, "updates": data[2:4]}
    both(one("ScatterND", feeds), feeds)


def test_indices_beyond_the_data_are_an_error(rng):
    feeds = {"data": np.zeros((3, 2), np.float32), "indices": np.array([[3]]), "updates": np.ones((1, 2), np.float32)}
    model = one("ScatterND", feeds)
    with pytest.raises(Exception, match="ScatterND"):
        check(model, feeds)


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("keep", [0, 1])
def test_places_of_the_largest(rng, op_type, axis, last, keep):
    x = rng.integers(-3, 3, (4, 9, 5)).astype(np.float32)
    model = one(op_type, {"x": x}, axis=axis, select_last_index=last, keepdims=keep)
    both(model, {"x": x})
    x[1, 2:4, 3] = np.nan
    check(model, {"x": x})


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 3, 4])
@pytest.mark.parametrize("shape", [(4, 9, 5), (40, 90, 7)], ids=["few", "many"])
def test_top_k(rng, largest, axis, count, shape):
    x = rng.integers(-3, 3, shape).astype(np.float32)
    node = helper.make_node("TopK", ["x", "k"], ["values", "places"], axis=axis, largest=largest)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_empty_tensor_value_info(name) for name in ("values", "places")],
        [helper.make_tensor("k", TensorProto.INT64, [1], [count])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    both(model, {"x": x})
    x[2, 3:6, 1] = np.nan
    check(model, {"x": x})


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
def test_integers(rng, op_type, dtype):
    limits = np.iinfo(dtype)
    a = np.array([[1, -2, 7, limits.max, limits.min, 3]] * 3, dtype)
    for b in (a[::-1].copy(), a[0], a[:, :1].copy(), np.array(7, dtype), np.array([[-2]], dtype)):
        feeds = {"a": a, "b": b}
        check(one(op_type, feeds), feeds, 0)


@pytest.mark.parametrize("source", [np.int64, np.int32, np.bool_, np.float32])
@pytest.mark.parametrize("target", [np.int64, np.int32, np.bool_, np.float32])
def test_casts(source, target):
    x = np.array([0, 1, -1, 5, -7, 100], np.float32).astype(source)
    model = one("Cast", {"x": x}, to=int(helper.np_dtype_to_tensor_dtype(np.dtype(target))))
    check(model, {"x": x}, 0, compiled=(source, target) != (np.float32, np.int32))


def test_numbers_beyond_integers_are_cast_as_by_numpy():
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**62, -(2.0**63), 2.0**63, -0.9, 0.9], np.float32)
    check(one("Cast", {"x": x}, to=TensorProto.INT64), {"x": x}, 0)


def test_counting_and_choosing_stay_in_one_region(rng):
    """The steps of a greedy decoder: the best word, whether it is the last one, its row of a table."""
    table = rng.standard_normal((9, 4)).astype(np.float32)
    nodes = [
        helper.make_node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
        helper.make_node("Equal", ["best", "stop"], ["ends"]),
        helper.make_node("Not", ["ends"], ["going"]),
        helper.make_node("Unsqueeze", ["best", "axes"], ["column"]),
        helper.make_node("Cast", ["column"], ["small"], to=TensorProto.INT32),
        helper.make_node("Gather", ["table", "small"], ["row"]),
        helper.make_node("Add", ["best", "one"], ["next"]),
    ]
    outputs = ("going", "row", "next")
    weights = [helper.make_tensor("table", TensorProto.FLOAT, table.shape, table.ravel().tolist()),
               helper.make_tensor("stop", TensorProto.INT64, [1], [3]),
               helper.make_tensor("one", TensorProto.INT64, [], [1]),
               helper.make_tensor("axes", TensorProto.INT64, [1], [1])]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 9])],
                              [helper.make_empty_tensor_value_info(name) for name in outputs], weights)  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    both(model, {"scores": rng.standard_normal((6, 9)).astype(np.float32)})
