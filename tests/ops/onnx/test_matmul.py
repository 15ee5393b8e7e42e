import numpy as np
import pytest

from tests.ops.support.single_node import agree, floats


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize(("width", "columns"), [(3, 5), (96, 200)])
def test_few_rows_times_small_and_large_matrices(rows, width, columns):
    agree("MatMul", floats(rows, width), floats(width, columns, seed=1), opset=13, rtol=1e-4)
    agree("MatMul", floats(width, rows).T, floats(width, columns, seed=1), opset=13, rtol=1e-4)
    agree("MatMul", floats(2, rows, width), floats(2, width, columns, seed=1), opset=13, rtol=1e-4)
    agree("MatMul", floats(rows, width), floats(2, 3, width, columns, seed=1), opset=13, rtol=1e-4)


def test_special_numbers_and_nothing():
    special = np.array([[np.nan, 1, np.inf], [0, -np.inf, 2]], np.float32)
    agree("MatMul", special, np.ones((3, 2), np.float32), opset=13)
    agree("MatMul", np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), opset=13)
