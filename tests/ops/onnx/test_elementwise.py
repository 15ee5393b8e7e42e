import numpy as np
import pytest

from tests.ops.support.single_node import agree, floats, ints, run


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Equal", "Less", "Greater"])
@pytest.mark.parametrize("opset", [7, 13, 21])
def test_broadcasting(op_type, opset):
    a, b = np.abs(floats(2, 3, 1, 4)) + 1, np.abs(floats(3, 5, 1, seed=1)) + 1
    if (op_type, opset) == ("Equal", 7):
        a, b = a.astype(np.int32), b.astype(np.int32)
    if op_type in ("Max", "Min") and opset == 7:
        b = a[::-1].copy()
    agree(op_type, a, b, opset=opset)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integers_divide_towards_zero(dtype):
    a, b = ints(50, dtype=dtype), ints(50, low=1, high=9, seed=1, dtype=dtype)
    b[::2] *= -1
    (y,) = run("Div", a, b, opset=14)
    np.testing.assert_array_equal(y, np.trunc(a / b).astype(dtype))
    if dtype != np.int8:
        agree("Div", a, b, opset=14)
    agree("Mod", a, b, opset=13)
    agree("Mod", a, b, opset=13, fmod=1)


def test_division_of_integers_by_zero_is_an_error():
    with pytest.raises(ZeroDivisionError, match="input B holds a 0"):
        run("Div", ints(3), np.zeros(3, np.int64), opset=14)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -1.5])
def test_powers(exponent):
    base = np.abs(floats(40)) + 0.1
    agree("Pow", base, np.float32(exponent).reshape(()), opset=15)
    agree("Pow", base, np.array([int(exponent * 2)], np.int64), opset=15)


def test_broadcasting_of_opset_6_runs_along_an_axis():
    a, b = floats(2, 3, 4, 5), floats(3, 4, seed=1)
    (y,) = run("Add", a, b, opset=6, broadcast=1, axis=1)
    np.testing.assert_array_equal(y, a + b[:, :, None])
    with pytest.raises(ValueError, match="without broadcast=1"):
        run("Add", a, b, opset=6)


def test_variadic_operators():
    inputs = [floats(3, 4), floats(4, seed=1), floats(3, 1, seed=2), floats(1, seed=3)]
    for op_type in ("Sum", "Mean", "Max", "Min"):
        agree(op_type, *inputs, opset=13)


def test_half_precision_rounds_like_onnxruntime():
    a, b = floats(100, dtype=np.float16), floats(100, seed=1, dtype=np.float16)
    for op_type in ("Add", "Mul", "Div"):
        agree(op_type, a, b, opset=14, rtol=1e-3)


def test_where_takes_strings():
    words = np.array(["a", "b", "c"], object)
    (y,) = run("Where", np.array([True, False, True]), words, np.array("x", object), opset=16)
    assert y.tolist() == ["a", "x", "c"]
