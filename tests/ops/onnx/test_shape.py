import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.support.single_node import agree, floats, i64, ints, run


def test_reshape_copies_zeros_and_infers_one():
    x = floats(2, 3, 4)
    for dims in ([0, -1], [4, 3, 2], [0, 0, 2, -1], [-1]):
        agree("Reshape", x, i64(*dims), opset=13)
    agree("Reshape", floats(0, 3), i64(3, 0), opset=14, allowzero=1)
    with pytest.raises(ValueError, match=r"shape \(2, 3, 4\) \(24 elements\) does not fit shape \[5, -1\]"):
        run("Reshape", x, i64(5, -1), opset=13)
    with pytest.raises(ValueError, match=r"shape \[-2, 12\] holds -2"):
        run("Reshape", x, i64(-2, 12), opset=13)


@pytest.mark.parametrize("opset", [11, 13])
def test_squeeze_and_unsqueeze_by_attribute_and_input(opset):
    x = floats(1, 3, 1, 2)
    as_input = opset >= 13
    for op_type, axes in (("Squeeze", [0, -2]), ("Unsqueeze", [0, -1, 2])):
        inputs, attributes = ((x, i64(*axes)), {}) if as_input else ((x,), {"axes": axes})
        agree(op_type, *inputs, opset=opset, **attributes)
    agree("Squeeze", x, opset=opset)
    with pytest.raises(ValueError, match="axis 1 is not 1"):
        run("Squeeze", x, i64(1), opset=13)


def test_split_into_unequal_parts():
    x = floats(7, 2)
    agree("Split", x, opset=18, outputs=3, num_outputs=3)
    agree("Split", x, i64(1, 0, 6), opset=13, outputs=3)
    agree("Split", x, opset=2, outputs=2, split=[3, 4])
    with pytest.raises(ValueError, match="does not add up to the 7"):
        run("Split", x, i64(1, 2), opset=13, outputs=2)


@settings(max_examples=40, deadline=None)
@given(shape=st.lists(st.integers(2, 5), min_size=1, max_size=3), data=st.data(),
       mode=st.sampled_from(["constant", "reflect", "edge", "wrap"]))  # fmt: skip
def test_pad(shape, data, mode):
    low = -1 if mode == "constant" else 0
    pads = data.draw(st.lists(st.integers(low, 1), min_size=2 * len(shape), max_size=2 * len(shape)))
    agree("Pad", floats(*shape), i64(*pads), np.float32(2.5), opset=19, mode=mode)


def test_expand_is_a_view_of_any_size():
    (y,) = run("Expand", floats(3, 1), i64(2, 1, 6), opset=13)
    assert y.shape == (2, 3, 6)
    assert not y.flags.writeable
    agree("Expand", floats(3, 1), i64(2, 1, 6), opset=13)


def test_tile_concat_and_depth():
    x = floats(1, 8, 2, 3)
    agree("Tile", x, i64(2, 1, 3, 1), opset=13)
    agree("Concat", x, x[:, :3], opset=13, axis=-3)
    for mode in ("DCR", "CRD"):
        agree("DepthToSpace", x, opset=13, blocksize=2, mode=mode)
    agree("SpaceToDepth", floats(1, 3, 4, 6), opset=13, blocksize=2)


def test_concat_leaves_out_an_empty_vector():
    (y,) = run("Concat", np.zeros(0, np.float32), floats(2, 3), opset=13, axis=0)
    assert y.shape == (2, 3)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
def test_transpose_any_type(dtype):
    agree("Transpose", ints(2, 3, 4).astype(dtype), opset=13, perm=[2, 0, 1])


def test_inputs_without_elements_are_left_out_where_they_do_not_fit():
    for empty in (floats(2, 0), floats(0)):
        np.testing.assert_array_equal(run("Concat", empty, floats(2, 2), opset=13, axis=0)[0], floats(2, 2))


def test_pads_that_cut_more_than_there_is():
    for pads in ([-2, 5], [3, -2], [-1, 0], [4, -5]):
        agree("Pad", floats(1, 1), i64(0, pads[0], 0, pads[1]), np.float32(7), opset=18, mode="constant")
    agree("Pad", floats(2, 2), i64(3, -3, 2, 3), np.float32(7), opset=18, mode="constant")
    with pytest.raises(ValueError, match="leave nothing of axis 0: mode 'edge' has nothing to repeat"):
        run("Pad", floats(2), i64(-2, 3), opset=18, mode="edge")


def test_optional_inputs_without_elements_count_as_absent():
    none = np.zeros(0, np.int64)
    assert run("Squeeze", floats(1, 3, 1), none, opset=13)[0].shape == (3,)
    assert [part.shape for part in run("Split", floats(6), none, opset=13, outputs=2)] == [(3,), (3,)]
    boxes, scores = np.array([[[0, 0, 1, 1], [0, 2, 1, 3]]], np.float32), np.array([[[0.9, 0.8]]], np.float32)
    nothing = np.zeros(0, np.float32)
    outputs = run("NonMaxSuppression", boxes, scores, np.array([2]), nothing, nothing, opset=11)
    assert len(outputs[0]) == 2


def test_index_tuples_of_no_indices():
    agree("GatherND", floats(2, 2), np.zeros((2, 0), np.int64), opset=13)
    agree("GatherND", floats(2, 3, 2), np.zeros((2, 4, 0), np.int64), opset=13, batch_dims=1)
    agree("Hardmax", floats(4, 0), opset=13)


@pytest.mark.parametrize("count", [0, 2, 4, 2**62])
def test_split_into_another_number_than_its_outputs_is_refused(count):
    with pytest.raises(ValueError, match=f"num_outputs is {count}: expected 3"):
        run("Split", floats(7, 2), opset=18, outputs=3, num_outputs=count)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("pads", [(2, 0, 1, 3), (-1, 7, 9, -1), (0, -2, 0, 0)])
def test_pads_of_small_and_of_large_tensors_are_the_same(pads, mode):
    x = floats(3, 4)
    (y,) = run("Pad", x, i64(*pads), opset=19, mode=mode)
    (large,) = run("Pad", np.broadcast_to(x, (1 << 14, 3, 4)), i64(*pads), None, i64(1, 2), opset=19, mode=mode)
    np.testing.assert_array_equal(large[7], y)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, bool, np.int64, object, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("shape", "sizes"),
    [((), (2, 3)), ((3,), ()), ((2, 1, 4), (3, 1)), ((1, 1), (5, 1, 7)), ((2, 0), (3, 1, 1)), ((1, 0, 1), (4, 1, 6)),
     ((2, 3), (2, 3)), ((4, 1), (0,))],
)  # fmt: skip
def test_expanded_tensors_are_read_only_views(dtype, shape, sizes):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for array in (x, x.T.copy().T, np.broadcast_to(x, shape)):
        (y,) = run("Expand", array, i64(*sizes), opset=13)
        expected = np.broadcast_to(array, np.broadcast_shapes(shape, sizes))
        assert (y.shape, y.dtype, y.flags.writeable) == (expected.shape, expected.dtype, False)
        assert (y == expected).all()


@pytest.mark.parametrize("sizes", [(3,), (2, -1), (2, 1, 3)])
def test_sizes_that_do_not_fit_are_refused(sizes):
    with pytest.raises(ValueError, match=r"shape mismatch|negative"):
        run("Expand", floats(1, 2), i64(*sizes), opset=13)
