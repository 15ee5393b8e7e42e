import subprocess
import sys

import numpy as np
import onnx
import pytest

from onnxlab import dtypes


def test_ints_and_names_are_those_of_onnx() -> None:
    for proto_name, elem_type in onnx.TensorProto.DataType.items():
        assert getattr(dtypes, proto_name) == elem_type
        assert dtypes.proto_name(elem_type) == proto_name
        assert dtypes.parse(proto_name) == dtypes.parse(dtypes.name(elem_type)) == elem_type
    assert set(dtypes.ELEM_TYPES) == set(onnx.TensorProto.DataType.values()) - {0}


@pytest.mark.parametrize("elem_type", dtypes.ELEM_TYPES)
def test_numpy_dtypes_are_those_of_onnx_and_come_back(elem_type: int) -> None:
    dtype = dtypes.to_numpy(elem_type)
    assert dtype == onnx.helper.tensor_dtype_to_np_dtype(elem_type)
    assert dtypes.from_numpy(dtype) == elem_type
    if elem_type != dtypes.STRING and dtypes.bits(elem_type) >= 8:
        assert dtypes.bits(elem_type) == dtype.itemsize * 8


def test_parse_takes_many_spellings() -> None:
    assert dtypes.parse("tensor(float)") == dtypes.parse(np.float32) == dtypes.parse(np.dtype("f4")) == 1
    assert dtypes.parse("float8_e4m3fn") == dtypes.FLOAT8E4M3FN
    assert dtypes.parse(np.dtype("U3")) == dtypes.STRING
    assert dtypes.name(99) == "elem_type 99"


@pytest.mark.parametrize("wrong", ["float33", 99, np.dtype("M8[s]"), True])
def test_parse_says_what_is_wrong(wrong: str) -> None:
    with pytest.raises(ValueError, match="no ONNX element type"):
        dtypes.parse(wrong)


def test_undefined_has_neither_dtype_nor_size() -> None:
    with pytest.raises(ValueError, match="undefined has no NumPy dtype"):
        dtypes.to_numpy(0)
    with pytest.raises(ValueError, match="undefined has no size"):
        dtypes.bits(0)


def test_kinds() -> None:
    assert [dtypes.is_float(t) for t in (dtypes.BFLOAT16, dtypes.INT8)] == [True, False]
    assert [dtypes.is_integer(t) for t in (dtypes.UINT4, dtypes.BOOL)] == [True, False]


def test_importing_is_cheap() -> None:
    code = "import sys, onnxlab.dtypes; assert not {'onnx', 'ml_dtypes'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
