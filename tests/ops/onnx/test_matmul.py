import numpy as np
import pytest

from onnxlab import ops
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


@pytest.mark.parametrize("equation", [
    "btc,bsc->bts", "ij,jk->ik", "ij,jk->ki", "ij,jk", "ij,kj->ik", "bhid,bhjd->bhij", "bhij,bhjd->bihd", "abc,cbd->ad",
    "i,i->", "ij,j->i", "i,j->ij", "ii,ij->j", "ij,ij->ij", "ijk,ij->k", "ij,jk->j", "ij,jk->k", "a b, b c -> a c",
    "...ij,...jk->...ik", "ab,ba->",
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
@pytest.mark.parametrize("size", [0, 1, 3, 9])
def test_sums_of_two_operands(equation, dtype, size):
    """Products of stacks of matrices by BLAS, all others by NumPy, of any layout."""
    terms = equation.replace(" ", "").split("->")[0].split(",")
    sizes = {letter: size if letter in "bj" else place + 1 for place, letter in enumerate("abcdhijkst")}
    shapes = [[sizes[letter] for letter in term.replace("...", "")] for term in terms]
    inputs = [(floats(*shape, seed=seed) * 4).astype(dtype) for seed, shape in enumerate(shapes)]
    expected = np.einsum(equation, *(array.astype(np.float64) for array in inputs))
    for operands in (inputs, [np.ascontiguousarray(array.T).T for array in inputs]):
        y = ops.find_kernel("", "Einsum", 12).function(*operands, equation=equation)
        assert y.dtype == dtype
        assert y.shape == expected.shape
        if dtype == np.int32:
            np.testing.assert_array_equal(y, expected)
        else:
            np.testing.assert_allclose(y, expected, rtol=2e-2 if dtype == np.float16 else 1e-4, atol=1e-2)


def test_sums_stretch_sizes_of_one_and_keep_what_is_no_number():
    einsum = ops.find_kernel("", "Einsum", 12).function
    a, b = floats(3, 1, 4), floats(3, 5, 2)
    np.testing.assert_allclose(einsum(a, b, equation="bji,bjk->bik"), np.einsum("bji,bjk->bik", a, b), rtol=1e-5)
    a = floats(2, 3, 4)
    a[1, 2, 0] = np.nan
    y = einsum(a, floats(2, 4, 5), equation="bij,bjk->bik")
    assert np.isnan(y[1, 2]).all()
    assert np.isnan(y).sum() == 5
