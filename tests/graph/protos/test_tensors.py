"""TensorProto to array and back, with onnx.numpy_helper as oracle."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from onnxlab import dtypes
from onnxlab.errors import LoadError
from onnxlab.graph.protos import tensors

NUMERIC = [elem_type for elem_type in dtypes.ELEM_TYPES if elem_type != dtypes.STRING]
IDS = [dtypes.name(elem_type) for elem_type in NUMERIC]


def bit_patterns(elem_type: int, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """An array of the type with random bits, so that NaNs, infinities and signs are in it."""
    dtype, bits = dtypes.to_numpy(elem_type), dtypes.bits(elem_type)
    raw = np.random.RandomState(seed).randint(0, 256, int(np.prod(shape)) * dtype.itemsize).astype(np.uint8)
    raw = raw & 1 if elem_type == dtypes.BOOL else raw & ((1 << bits) - 1) if bits < 8 else raw
    return raw.view(dtype).reshape(shape)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("elem_type", NUMERIC, ids=IDS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 5)])
def test_raw_data_as_onnx_does(elem_type: int, shape: tuple[int, ...]) -> None:
    array = bit_patterns(elem_type, shape)
    theirs, ours = numpy_helper.from_array(array, "t"), tensors.from_array(array, "t")
    assert ours == theirs
    assert same_bits(tensors.to_array(ours), array)
    assert tensors.nbytes(ours) == len(ours.raw_data)


@pytest.mark.parametrize("elem_type", NUMERIC, ids=IDS)
def test_typed_fields_as_onnx_does(elem_type: int) -> None:
    array = bit_patterns(elem_type, (2, 3), seed=3)
    if dtypes.is_float(elem_type) or array.dtype.kind == "c":
        array = np.where(np.isnan(array), array.dtype.type(1), array).astype(array.dtype)
    tensor = helper.make_tensor("t", elem_type, array.shape, array.ravel().tolist())
    assert not tensor.HasField("raw_data")
    assert same_bits(tensors.to_array(tensor), numpy_helper.to_array(tensor))
    assert same_bits(tensors.to_array(tensor), array)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(NUMERIC), st.lists(st.integers(0, 4), max_size=3), st.integers(0, 1000))
def test_round_trip(elem_type: int, shape: list[int], seed: int) -> None:
    array = bit_patterns(elem_type, tuple(shape), seed)
    assert same_bits(tensors.to_array(tensors.from_array(array)), array)


def test_arrays_are_read_only() -> None:
    for array in (np.ones(3, np.float32), np.array(["a"], object), np.ones(3, bool)):
        with pytest.raises(ValueError, match="read-only"):
            tensors.to_array(tensors.from_array(array))[0] = array[0]


@pytest.mark.parametrize("elem_type", [TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE, TensorProto.COMPLEX64])
def test_dtypes_are_numpys_own(elem_type: int) -> None:
    """An equal one that is another object goes from array to array, and NumPy takes longer with it."""
    array = tensors.to_array(tensors.from_array(np.zeros(3, dtypes.to_numpy(elem_type))))
    assert array.dtype is dtypes.to_numpy(elem_type)


def test_other_layouts_and_byte_orders() -> None:
    array = np.arange(6, dtype=">i4").reshape(2, 3).T
    np.testing.assert_array_equal(tensors.to_array(tensors.from_array(array)), array)
    assert tensors.to_array(tensors.from_array(array)).dtype == np.dtype("<i4")


def test_strings_survive_even_when_they_are_no_utf8() -> None:
    tensor = TensorProto(dims=[2], data_type=TensorProto.STRING, string_data=["é".encode(), b"\xff\x00"])
    array = tensors.to_array(tensor)
    assert array[0] == "é"
    assert tensors.from_array(array) == tensor
    assert tensors.from_array(np.array(["é", "b"])).string_data[1] == b"b"


def test_a_bool_byte_of_two_is_true() -> None:
    tensor = TensorProto(dims=[3], data_type=TensorProto.BOOL, raw_data=b"\x00\x02\x01")
    assert tensors.to_array(tensor).tobytes() == b"\x00\x01\x01"


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (TensorProto(dims=[4], data_type=1, raw_data=b"\0" * 15, name="w"), r"'w' has 15 bytes .* float32\[4\] takes"),
        (TensorProto(dims=[2**40], data_type=1, raw_data=b""), "0 bytes of raw_data"),
        (TensorProto(dims=[2**62, 2**62], data_type=1, raw_data=b"\0"), "1 bytes of raw_data"),
        (TensorProto(dims=[-1], data_type=1, raw_data=b""), "dimensions are at least 0"),
        (TensorProto(dims=[2], data_type=1, float_data=[1]), "1 items of float_data.* takes 2 items"),
        (TensorProto(dims=[2], data_type=1, int32_data=[1, 2]), "0 items of float_data"),
        (TensorProto(dims=[3], data_type=22, int32_data=[1]), "1 items of int32_data.* takes 2 items"),
        (TensorProto(dims=[1], data_type=14, float_data=[1]), "1 items of float_data.* takes 2"),
        (TensorProto(dims=[2], data_type=8, string_data=[b"a"]), "1 strings.* takes 2"),
        (TensorProto(dims=[2], data_type=8, raw_data=b"ab"), "string_data only"),
        (TensorProto(dims=[1], data_type=99, raw_data=b"\0"), "element type 99, which is none of float32"),
        (TensorProto(dims=[1], raw_data=b"\0"), "element type 0"),
        (TensorProto(dims=[1], data_type=1, segment=TensorProto.Segment(begin=0, end=1)), "segments"),
    ],
)
def test_what_does_not_fit_is_refused(tensor: TensorProto, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        tensors.to_array(tensor)


def test_objects_that_are_no_strings_are_refused() -> None:
    with pytest.raises(ValueError, match=r"it holds 1 \(int\)"):
        tensors.from_array(np.array([1, "a"], object))


def sparse(values: list[float], indices: list, dims: list[int]) -> onnx.SparseTensorProto:
    tensor = numpy_helper.from_array(np.array(values, np.float32), "s")
    return helper.make_sparse_tensor(tensor, numpy_helper.from_array(np.array(indices, np.int64)), dims)


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_sparse_becomes_dense(indices: list) -> None:
    dense = tensors.to_array(sparse([1.5, 2.5], indices, [2, 3]))
    np.testing.assert_array_equal(dense, np.array([[0, 1.5, 0], [0, 0, 2.5]], np.float32))
    assert not dense.flags.writeable


@pytest.mark.parametrize(
    ("values", "indices", "dims", "message"),
    [
        ([1], [6], [2, 3], "outside"),
        ([1], [-1], [2, 3], "outside"),
        ([1], [[0, 3]], [2, 3], "outside"),
        ([1], [[0, 0, 0]], [2, 3], "outside"),
        ([1, 2], [1], [2, 3], r"expected values \[n\]"),
        ([1], [0], [2**50], "does not fit into memory"),
    ],
)
def test_broken_sparse_tensors_are_refused(values: list, indices: list, dims: list, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        tensors.to_array(sparse(values, indices, dims))


@pytest.mark.parametrize("array", [np.arange(6).reshape(2, 3).T, np.array(3, np.float32), np.zeros((0, 2), np.float16)])
def test_what_is_stored_is_known_without_decoding(array: np.ndarray) -> None:
    tensor = tensors.raw_tensor(array)
    assert isinstance(tensor, tensors.RawTensor)
    stored, decoded = tensor.array, tensors.to_array(tensor.whole())
    assert stored is not None
    assert not stored.flags.writeable
    assert (stored.dtype, stored.shape) == (decoded.dtype, decoded.shape)
    np.testing.assert_array_equal(stored, decoded)
