import warnings

import numpy as np
import onnx
import onnx.reference
import pytest

import onnxlab
from onnxlab.execution.numba.provider import NumbaProvider
from tests.ops.support.single_node import agree, floats, i64, ints, run

NAMES = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axes", [None, [0], [1, -1]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_by_attribute_and_by_input(name, axes, keepdims):
    x = np.abs(floats(3, 4, 5)) + 0.1
    attributes = {"axes": axes} if axes else {}
    agree(f"Reduce{name}", x, opset=12, keepdims=keepdims, **attributes)
    agree(f"Reduce{name}", x, i64(*axes) if axes else None, opset=18, keepdims=keepdims)


@pytest.mark.parametrize("name", ["Sum", "Max", "Min", "Mean", "Prod"])
def test_integers_keep_their_type(name):
    agree(f"Reduce{name}", ints(3, 4, low=-5, high=5, dtype=np.int32), i64(1), opset=18)


def test_no_axes_can_mean_nothing_to_do():
    agree("ReduceSum", floats(2, 3), i64(), opset=13, noop_with_empty_axes=1)


@pytest.mark.parametrize("providers", [["numpy"], [NumbaProvider(background=False), "numpy"]])
@pytest.mark.parametrize(("dtype", "expected"), [(np.float32, np.nan), (np.float16, np.nan), (np.int32, 0)])
def test_a_mean_of_nothing_is_nan_as_in_the_reference_and_0_of_integers(providers, dtype, expected):
    """ONNX leaves it undefined. Seen: integers got NaN cast, which is another number on each processor."""
    elem_type = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x, y = (onnx.helper.make_tensor_value_info(name, elem_type, [2, None, 3]) for name in "xy")
    node = onnx.helper.make_node("ReduceMean", ["x"], ["y"], axes=[1])
    graph = onnx.helper.make_graph([node], "g", [x], [y])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    feeds = {"x": np.zeros((2, 0, 3), dtype)}
    with warnings.catch_warnings(action="error"):
        (mean,) = onnxlab.load(model).run(feeds, providers=providers).values()
    assert mean.dtype == dtype
    np.testing.assert_array_equal(mean, np.full((2, 1, 3), expected, dtype))
    if mean.dtype.kind == "f":
        with warnings.catch_warnings(action="ignore"):
            reference = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
        np.testing.assert_array_equal(mean, *reference)


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
def test_arg_of_equal_elements(op_type, last):
    agree(op_type, ints(4, 9, low=0, high=3).astype(np.float32), opset=13, axis=1, select_last_index=last, keepdims=0)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_sums(exclusive, reverse):
    agree("CumSum", floats(3, 4), np.array(1, np.int64), opset=14, exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize("keepdims", [0, 1, 2, -1])
@pytest.mark.parametrize("op_type", ["ReduceMean", "ReduceMax", "ArgMax", "ReduceL2"])
@pytest.mark.parametrize("providers", [None, [NumbaProvider(background=False, least=0), "numpy"]])
def test_reduced_dims_are_kept_where_keepdims_is_1(keepdims, op_type, providers, ort_run):
    attributes = {"axis": 1} if op_type == "ArgMax" else {"axes": [1]}
    node = onnx.helper.make_node(op_type, ["x"], ["y"], keepdims=keepdims, **attributes)
    infos = [onnx.helper.make_tensor_value_info(name, 1 + 6 * (name == "y" and op_type == "ArgMax"), shape)
             for name, shape in (("x", [2, 3, 4]), ("y", None))]  # fmt: skip
    graph = onnx.helper.make_graph([node], "g", infos[:1], infos[1:])
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    expected = ort_run(proto.SerializeToString(), {"x": x})["y"]
    model = onnxlab.Model(proto)
    assert model.fact("y").shape == expected.shape
    np.testing.assert_allclose(model.run(x, providers=providers)["y"], expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", range(1, 10))
def test_sums_of_short_rows_are_those_of_numpy_to_the_bit(length, dtype):
    """Rows are added column by column; NaN, infinities, zeros of both signs, subnormal and large numbers."""
    generator = np.random.default_rng(length)
    x = generator.standard_normal((9, 70, length)) * 10.0 ** generator.integers(-44, 38, (9, 70, length))
    x = x.astype(dtype)
    x[0, :20], x[1, :20, 0], x[1, 20:40, -1], x[2, :5] = -0.0, np.nan, np.inf, 1e-45
    for keepdims in (0, 1):
        for array in (x, x[:1, :3], x[:, ::2], x[:0], x.transpose(1, 0, 2), x.T.copy().T, x[..., ::-1]):
            (y,) = run("ReduceSum", array, i64(-1), opset=18, keepdims=keepdims)
            expected = np.sum(array, axis=-1, keepdims=keepdims == 1)
            assert (y.dtype, y.shape) == (dtype, expected.shape)
            y[np.isnan(y)] = expected[np.isnan(expected)] = 0
            assert y.tobytes() == expected.tobytes()


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[0], [1], [0, 2], [-1], [0, 1, 2]])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_are_those_of_numpy(dtype, axes, keepdims):
    x = floats(7, 33, 5).astype(dtype)
    for array in (x, x[::2], x.T):
        (y,) = run("ReduceMean", array, np.array(axes), opset=18, keepdims=keepdims)
        expected = np.mean(array, tuple(axes), keepdims=bool(keepdims))
        assert (y.dtype, y.shape) == (dtype, expected.shape)
        if axes == [0] or axes == [1]:  # others are products with BLAS
            np.testing.assert_array_equal(y, expected)
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
