import numpy as np
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab import dtypes, ops
from onnxlab.errors import RunError
from onnxlab.execution.numba.provider import NumbaProvider
from tests.ops.support.single_node import agree, floats, ints, run

U8, I8 = np.uint8, np.int8


@pytest.mark.parametrize("dtype", [U8, I8, np.uint16, np.int16])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_quantize_and_dequantize(dtype, axis):
    count = (1 if axis is None else (3, 5)[axis],)
    x = floats(3, 5) * 5
    scale = (np.abs(floats(*count, seed=1)) + 0.01).astype(np.float32)
    low = 0 if np.iinfo(dtype).min == 0 else -9
    zero = ints(*count, low=low, high=9, dtype=dtype)
    if axis is None:
        scale, zero = scale.reshape(()), zero.reshape(())
    attributes = {} if axis is None else {"axis": axis}
    (y,) = agree("QuantizeLinear", x, scale, zero, opset=21, **attributes)
    agree("DequantizeLinear", y, scale, zero, opset=21, **attributes)


def test_ties_round_to_even():
    x = np.arange(-8, 9, dtype=np.float32) / 2
    (y,) = agree("QuantizeLinear", x, np.float32(1), I8(0), opset=13)
    np.testing.assert_array_equal(y, np.rint(x))


def test_blocks():
    x = ints(4, 7, low=-8, high=7, dtype=I8)
    agree("DequantizeLinear", x, np.abs(floats(4, 3)) + 1, ints(4, 3, low=-3, high=3, dtype=I8), opset=21, axis=1,
          block_size=3)  # fmt: skip


def test_four_bit_integers_saturate():
    x = np.float32([-100, -8, 0.4, 7, 100])
    (y,) = run("QuantizeLinear", x, np.float32(1), opset=21, output_dtype=dtypes.INT4)
    assert y.dtype == dtypes.to_numpy(dtypes.INT4)
    assert y.astype(int).tolist() == [-8, -8, 0, 7, 7]


@pytest.mark.parametrize("x", [floats(50), np.abs(floats(50)), np.zeros(4, np.float32), np.float32([5])])
def test_dynamic_quantization(x):
    agree("DynamicQuantizeLinear", x, opset=11, outputs=3)


@pytest.mark.parametrize(
    "providers", [None, [NumbaProvider(background=False, least=0), "numpy"]], ids=["numpy", "numba"]
)
def test_nan_is_no_part_of_the_range_and_the_lowest_level(providers):
    names = ("y", "scale", "zero")
    node = helper.make_node("DynamicQuantizeLinear", ["x"], names)
    values = [helper.make_tensor_value_info(name, 1 if name in ("x", "scale") else 2, None) for name in ("x", *names)]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    model = onnxlab.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)]))
    x = np.float32([-1, 2, 0.5, 1] * 5)
    expected = model.run({"x": x}, strict=False)
    outputs = model.run({"x": np.append(x, np.float32("nan"))}, strict=False, providers=providers)
    assert outputs["y"].tolist() == [*expected["y"].tolist(), 0]
    assert (outputs["scale"], outputs["zero"]) == (expected["scale"], expected["zero"])


@pytest.mark.parametrize("rows", [False, True])
def test_integer_products_with_zero_points(rows):
    a, b = ints(4, 300, low=0, high=100, dtype=U8), ints(300, 6, low=-60, high=60, seed=1, dtype=I8)
    a_zero = ints(4, low=0, high=9, dtype=U8).reshape(4) if rows else U8(7)
    b_zero = ints(6, low=-9, high=9, dtype=I8) if rows else I8(-3)
    (y,) = run("MatMulInteger", a, b, a_zero, b_zero, opset=10)
    left = a.astype(int) - (a_zero[:, None].astype(int) if rows else 7)  # type: ignore[index]
    right = b.astype(int) - (b_zero.astype(int) if rows else -3)
    np.testing.assert_array_equal(y, left @ right)


def test_long_integer_products_are_exact():
    a, b = np.full((2, 5000), 255, U8), np.full((5000, 3), 255, U8)
    (y,) = run("MatMulInteger", a, b, opset=10)
    assert (y == 255 * 255 * 5000).all()


def scales(*values):
    return [np.float32(value) for value in values]


@pytest.mark.parametrize("group", [1, 2])
def test_integer_convolutions(group):
    x, w = ints(2, 4, 7, 8, low=0, high=50, dtype=U8), ints(4, 4 // group, 3, 3, low=0, high=30, seed=1, dtype=U8)
    geometry = {"pads": [1, 1, 0, 1], "strides": [2, 1], "group": group}
    agree("ConvInteger", x, w, U8(5), U8(3), opset=10, **geometry)
    x_scale, y_scale = scales(0.1, 2.5)
    w_scale = np.abs(floats(4)) + 0.1
    agree("QLinearConv", x, x_scale, U8(5), w.astype(I8), w_scale, np.zeros(4, I8), y_scale, U8(20),
          ints(4, dtype=np.int32), opset=10, **geometry)  # fmt: skip


def test_quantized_matrix_product():
    a, b = ints(3, 4, 50, low=0, high=60, dtype=U8), ints(3, 50, 5, low=0, high=60, seed=1, dtype=U8)
    a_scale, b_scale, y_scale = scales(0.02, 0.03, 0.5)
    agree("QLinearMatMul", a, a_scale, U8(10), b, b_scale, U8(12), y_scale, U8(100), opset=10)


def _quantization(op_type: str, scale: tuple[int, ...], zero_point: tuple[int, ...]) -> bytes:
    """A node whose scale and zero point are inputs of these shapes."""
    types = {"x": (TensorProto.FLOAT, (2, 3)), "s": (TensorProto.FLOAT, scale), "z": (TensorProto.UINT8, zero_point)}
    kind = TensorProto.UINT8
    if op_type == "DequantizeLinear":
        types["x"], kind = (TensorProto.UINT8, (2, 3)), TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info(name, *kinds) for name, kinds in types.items()]
    outputs = [helper.make_tensor_value_info("y", kind, (2, 3))]
    graph = helper.make_graph([helper.make_node(op_type, [*types], ["y"])], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9).SerializeToString()


@pytest.mark.parametrize("op_type", ["QuantizeLinear", "DequantizeLinear"])
@pytest.mark.parametrize(
    ("scale", "zero_point", "fits"),
    [((3,), (3,), True), ((), (1,), True), ((1,), (), True), ((3,), (), False), ((3,), (1,), False), ((), (3,), False),
     ((3,), (2,), False), ((3,), (4,), False), ((1,), (1, 1), False)],
)  # fmt: skip
def test_a_zero_point_has_the_shape_of_its_scale(op_type, scale, zero_point, fits, ort_run):
    x = np.ones((2, 3), np.float32 if op_type == "QuantizeLinear" else np.uint8)
    feeds = {"x": x, "s": np.full(scale, 0.5, np.float32), "z": np.ones(zero_point, np.uint8)}
    data = _quantization(op_type, scale, zero_point)
    model = onnxlab.load(data)
    if fits:
        assert model.check() == []
        np.testing.assert_array_equal(model.run(feeds)["y"], ort_run(data, feeds)["y"])
        return
    with pytest.raises(Exception, match="zero_point"):
        ort_run(data, feeds)
    (problem,) = model.check()
    assert (problem.code, problem.severity) == ("zero-point-shape", "error")
    with pytest.raises(RunError, match="zero point"):
        model.run(feeds)


@pytest.mark.parametrize("odd", [[], [np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [np.nan, np.inf], [3e38, -3e38]])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (0, 3), (5, 4, 6)])
def test_ranges_with_what_is_no_number(shape, odd):
    """Levels are those of a range without NaN, which becomes the lowest level."""
    x = floats(*shape) if shape else np.array(1.5, np.float32)
    x.reshape(-1)[: len(odd)] = odd[: x.size]
    kernel = ops.find_kernel("", "DynamicQuantizeLinear", 11).function
    for array in (x, x.T, x[..., ::-1] if x.ndim else x):
        with np.errstate(all="ignore"):
            y, scale, zero = kernel(array)
            numbers = array[~np.isnan(array)]
            low, high = np.float32(min(numbers.min(initial=0), 0)), np.float32(max(numbers.max(initial=0), 0))
            width = (high - low) / np.float32(255) if high != low else np.float32(1)
            levels = np.rint(array / width) + np.float32(zero)
        assert (y.dtype, y.shape, scale.shape, zero.shape) == (np.uint8, array.shape, (), ())
        np.testing.assert_array_equal(scale, width)
        np.testing.assert_array_equal(y, np.where(np.isnan(levels), 0, np.clip(levels, 0, 255)).astype(np.uint8))
