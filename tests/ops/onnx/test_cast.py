import numpy as np
import pytest

from onnxlab import dtypes
from tests.ops.support.single_node import agree, run

NUMBERS = [
    dtypes.FLOAT,
    dtypes.DOUBLE,
    dtypes.FLOAT16,
    dtypes.INT8,
    dtypes.UINT8,
    dtypes.INT32,
    dtypes.INT64,
    dtypes.BOOL,
]


@pytest.mark.parametrize("source", NUMBERS)
@pytest.mark.parametrize("target", NUMBERS)
def test_between_numbers(source, target):
    x = np.array([0, 1, 2.7, 100, 17.5]).astype(dtypes.to_numpy(source))
    agree("Cast", x, opset=13, to=target)


def test_strings():
    x = np.float32([1.5, -0.1, 1e10, np.nan, np.inf, -np.inf, 3])
    (text,) = agree("Cast", x, opset=13, to=dtypes.STRING)
    agree("Cast", text, opset=13, to=dtypes.FLOAT)
    with pytest.raises(ValueError, match="a text that is no int64"):
        run("Cast", np.array(["1", "two"], object), opset=13, to=dtypes.INT64)


SMALL = {dtypes.FLOAT8E4M3FN: 448, dtypes.FLOAT8E5M2: 57344, dtypes.FLOAT8E4M3FNUZ: 240, dtypes.FLOAT8E5M2FNUZ: 57344}


@pytest.mark.parametrize(("target", "largest"), SMALL.items())
def test_small_floats_saturate_where_asked(target, largest):
    x = np.float32([1e6, -1e6, np.inf, 0, np.nan])
    (y,) = run("Cast", x, opset=19, to=target, saturate=1)
    np.testing.assert_array_equal(y.astype(np.float32), [largest, -largest, largest, 0, np.nan])
    (y,) = run("Cast", x, opset=19, to=target, saturate=0)
    assert not np.isfinite(y.astype(np.float32)[:3]).any()


def test_bits_stay_the_same():
    (y,) = run("BitCast", np.float32([1.0]), opset=26, to=dtypes.INT32)
    assert y.tolist() == [0x3F800000]
    with pytest.raises(ValueError, match="differ in width"):
        run("BitCast", np.float32([1.0]), opset=26, to=dtypes.INT64)
