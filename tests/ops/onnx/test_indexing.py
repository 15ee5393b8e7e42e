import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxlab import ops
from tests.ops.support.single_node import agree, floats, i64, ints, run


@pytest.mark.parametrize("indices", [np.array(-1), i64(0, -1, 2), i64(1, 2, 0, -3).reshape(2, 2)])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(indices, axis):
    agree("Gather", floats(3, 3, 4), np.asarray(indices, np.int64), opset=13, axis=axis)


def test_gather_of_a_string_scalar_is_an_array():
    (y,) = run("Gather", np.array(["a", "b"], object), np.array(1, np.int64), opset=13)
    assert isinstance(y, np.ndarray)
    assert y.shape == ()


def test_indices_out_of_range_are_named():
    with pytest.raises(IndexError, match=r"indices run from 0 to 7: axis 0 has 3 elements \(-3 to 2\)"):
        run("Gather", floats(3), i64(0, 7), opset=13)
    with pytest.raises(IndexError, match="axis 1 has 2 elements"):
        run("GatherElements", floats(3, 2), i64(5).reshape(1, 1), opset=13, axis=1)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter(reduction):
    data = floats(5, 6)
    indices = np.array([[0, 1, -1], [2, 1, 4]], np.int64)
    if reduction == "none":
        indices[1, 1] = 3
    agree("ScatterElements", data, indices, floats(2, 3, seed=1), opset=18, reduction=reduction)
    agree("ScatterND", data, i64(1, -2, 3).reshape(3, 1), floats(3, 6, seed=1), opset=18, reduction=reduction)
    rows, columns = np.broadcast_to(np.int32([[2], [0], [-1]]), (3, 6)), np.broadcast_to(i64(3, 1), (5, 2))
    agree("ScatterElements", data, rows, floats(3, 6, seed=2), opset=18, reduction=reduction)
    agree("ScatterElements", data, columns, floats(5, 2, seed=2), opset=18, axis=1, reduction=reduction)
    if reduction != "none":  # the same place more than once
        places = np.broadcast_to(np.int64([[3], [0], [3]]), (3, 6))
        agree("ScatterElements", data, places, floats(3, 6, seed=3), opset=18, reduction=reduction)
        agree("ScatterElements", data, places.T[:5], floats(5, 3, seed=3), opset=18, axis=1, reduction=reduction)
    agree("ScatterND", data, i64(1, -2, 1, -2, 3, 0).reshape(3, 2), floats(3, seed=1), opset=18, reduction=reduction)


@pytest.mark.parametrize("batch_dims", [0, 1])
def test_gather_nd(batch_dims):
    agree("GatherND", floats(2, 3, 4), ints(2, 5, 2, low=0, high=2), opset=13, batch_dims=batch_dims)


@settings(max_examples=50, deadline=None)
@given(size=st.integers(1, 6), start=st.integers(-9, 9), end=st.integers(-9, 9), step=st.sampled_from([-3, -1, 1, 2]))
def test_slice_clamps(size, start, end, step):
    agree("Slice", floats(2, size), i64(start), i64(end), i64(-1), i64(step), opset=13)


def test_slice_to_the_very_ends():
    agree("Slice", floats(4, 5), i64(-1, 0), i64(-(2**63), 2**63 - 1), i64(0, 1), i64(-1, 2), opset=13)
    agree("Slice", floats(4, 5), opset=9, starts=[1], ends=[-1], axes=[1])


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_top_k_of_equal_elements_goes_by_index(largest, dtype):
    x = ints(3, 20, low=0, high=5).astype(dtype)
    agree("TopK", x, i64(7), opset=11, outputs=2, largest=largest)
    agree("TopK", x, i64(2), opset=11, outputs=2, largest=largest, axis=0)


def test_unique_in_both_orders():
    x = ints(4, 3, low=0, high=4).astype(np.float32)
    for attributes in ({}, {"sorted": 0}, {"axis": 0}, {"axis": 1, "sorted": 0}):
        agree("Unique", x, opset=11, outputs=4, **attributes)


def test_one_hot_and_non_zero():
    agree("OneHot", i64(1, -1, 9, 3), i64(4), np.float32([2, 5]), opset=11, axis=0)
    agree("NonZero", ints(3, 4, low=0, high=2), opset=13)
    agree("Compress", floats(3, 4), np.array([True, False, True]), opset=11, axis=0)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("wide", [2, 3])
def test_scatter_of_more_expanded_entries_than_copies(reduction, wide):
    entries = np.array([0, 3, 3, -1, 1, 0, 3, 2, 2], np.int64)
    indices = np.broadcast_to(entries[:, None], (9, 2))
    data, updates = floats(4, wide), floats(9, 2, seed=1)
    (y,) = run("ScatterElements", data, indices, updates, opset=18, reduction=reduction)
    (expected,) = run("ScatterElements", data, indices.copy(), updates, opset=18, reduction=reduction)
    np.testing.assert_array_equal(y, expected)
    with pytest.raises(IndexError, match="indices run from -1 to 4: axis 0 has 4 elements"):
        run("ScatterElements", data, np.where(indices == 2, 4, indices), updates, opset=18, reduction=reduction)
    with pytest.raises(IndexError, match="indices run from -1 to 4: axis 0 has 4 elements"):
        run("ScatterElements", data, np.broadcast_to(np.where(entries == 2, 4, entries)[:, None], (9, 2)), updates,
            opset=18, reduction=reduction)  # fmt: skip


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_the_first_of_equal_elements_come_first(dtype, axis, largest):
    x = (floats(4, 30, 7) * 2).astype(np.int64).astype(dtype)
    for array in (x, x[:, ::-1], x.transpose(0, 2, 1)):
        for count in (0, 1, 3):
            agree("TopK", array, np.array([count]), opset=11, outputs=2, axis=axis, largest=largest)


def test_largest_of_nothing_and_of_what_is_no_number():
    top_k = ops.find_kernel("", "TopK", 11).function
    for shape in ((0, 4), (3, 0), (0,)):
        values, indices = top_k(np.zeros(shape, np.float32), np.array([0]))
        assert values.shape == indices.shape == (*shape[:-1], 0)
    values, indices = top_k(np.array([[1, np.nan, 3], [2, 2, np.nan]], np.float32), np.array([2]))
    np.testing.assert_array_equal(values, [[np.nan, 3], [np.nan, 2]])
    np.testing.assert_array_equal(indices, [[1, 2], [2, 0]])
    for dtype in ("e", "?"):
        values, _ = top_k(np.array([[1, 0, 1]]).astype(dtype), np.array([1]))
        assert values.dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16])
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scattered_indices_of_any_rank_sign_and_layout(reduction, dtype):
    """One index tuple alone, none at all, negative ones, those of other strides; and those that are out of range."""
    scatter = ops.find_kernel("", "ScatterND", 18).function
    data = (floats(4, 5) * 3).astype(dtype)
    combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}.get(reduction)
    for indices in (i64(1), i64(-4), i64(2, -1), i64(0).reshape(1, 1), i64(1, -4, 3).reshape(3, 1),
                    np.zeros((0, 2), int),
                    np.array([[[0, 1], [2, -5]], [[3, 4], [-1, 0]]]).transpose(1, 0, 2),
                    np.zeros((2, 0), int)[:1]):  # fmt: skip
        updates = (floats(*indices.shape[:-1], *data.shape[indices.shape[-1] :], seed=3) * 2).astype(dtype)
        expected = data.copy()
        for place in np.ndindex(*indices.shape[:-1]):
            where = tuple(indices[place])
            expected[where] = updates[place] if combine is None else combine(expected[where], updates[place])
        np.testing.assert_array_equal(scatter(data, indices, updates, reduction=reduction), expected)
    for indices in (i64(4), i64(-5), i64(0, 5), np.array([[0, 0], [1, -6]])):
        updates = np.zeros((*indices.shape[:-1], *data.shape[indices.shape[-1] :]), dtype)
        with pytest.raises(IndexError):
            scatter(data, indices, updates, reduction=reduction)
