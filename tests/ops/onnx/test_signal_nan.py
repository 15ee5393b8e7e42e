"""NaN in a signal reaches every part of its spectrum, and no other one's."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.ops.support.random_ml import check_everywhere
from tests.ops.support.single_node import agree


@pytest.mark.parametrize("length", [15, 16])
@pytest.mark.parametrize("onesided", [0, 1])
def test_fourier_transforms(length, onesided):
    x = np.random.default_rng(0).standard_normal((3, length, 1)).astype(np.float32)
    x[1, 4] = np.nan
    (result,) = agree("DFT", x, opset=17, axis=1, onesided=onesided)
    np.testing.assert_array_equal(np.isnan(result).all(axis=(1, 2)), [False, True, False])
    assert not np.isnan(result[[0, 2]]).any()


def test_frames():
    x = np.random.default_rng(0).standard_normal((2, 128, 1)).astype(np.float32)
    x[0, 40] = np.nan
    constants = {"step": np.array(16), "window": np.hanning(32).astype(np.float32), "length": np.array(32)}
    node = helper.make_node("STFT", ["x", "step", "window", "length"], ["y"])
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph([node], "g", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (result,) = check_everywhere(model.SerializeToString(), {"x": x})
    assert np.isnan(result).sum() == 2 * 17 * 2


@pytest.mark.parametrize("op_type", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows_of_few_numbers(op_type):
    for size in (0, 1, 2, 3):
        (periodic,) = agree(op_type, np.array(size), opset=17, periodic=1)
        (symmetric,) = agree(op_type, np.array(size), opset=17, periodic=0)
        assert np.isfinite(periodic).all()
        assert np.isnan(symmetric).all() == (size < 2)
