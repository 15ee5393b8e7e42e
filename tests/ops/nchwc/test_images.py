import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import onnxlab
from onnxlab.ops.nchwc.images import block_size, blocked, unblocked
from tests.ops.support.single_node import agree, floats

NCHWC = {"opset": 1, "domain": "com.microsoft.nchwc"}
SIZE = block_size()


def filters(m, c, *k):
    """Random filters, as dims say and as ONNX Runtime stores them."""
    w = floats(m, c, *k, seed=3)
    if c % SIZE:
        return w, np.ascontiguousarray(w.reshape(m // SIZE, SIZE, c, *k).transpose(0, 2, 3, 4, 1)).reshape(w.shape)
    split = w.reshape(m // SIZE, SIZE, c // SIZE, SIZE, *k)
    return w, np.ascontiguousarray(split.transpose(0, 2, 4, 5, 3, 1)).reshape(w.shape)


def test_blocks():
    x = floats(2, 2 * SIZE, 3, 4)
    assert blocked(x)[1].reshape(2, 3, 4, SIZE)[1, 2, 3, 5] == x[1, SIZE + 5, 2, 3]
    np.testing.assert_array_equal(unblocked(blocked(x)), x)
    agree("ReorderInput", x, **NCHWC)
    agree("ReorderInput", floats(2, 3, 4, SIZE + 4), channels_last=1, **NCHWC)
    agree("ReorderOutput", blocked(x), channels=SIZE + 4, **NCHWC)
    agree("ReorderOutput", blocked(x), channels=SIZE + 4, channels_last=1, **NCHWC)


@pytest.mark.parametrize(("channels", "group"), [(3, 1), (2 * SIZE, 1), (2 * SIZE, 2 * SIZE)])
def test_convolutions(channels, group):
    x = floats(1, channels, 7, 8)
    image = x if channels == 3 else blocked(x)
    _, stored = filters(2 * SIZE, channels // group, 3, 3)
    bias, total = floats(2 * SIZE), floats(1, 2 * SIZE, 4, 4, seed=5)
    geometry = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2], "group": group}
    agree("Conv", image, stored, bias, rtol=1e-4, **geometry, **NCHWC)
    agree("Conv", image, stored, bias, total, activation="Relu", rtol=1e-4, **geometry, **NCHWC)


def test_pools_and_upsampling():
    x = blocked(floats(1, SIZE, 6, 7))
    agree("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0], **NCHWC)
    agree("AveragePool", x, kernel_shape=[2, 3], count_include_pad=1, pads=[1, 1, 1, 1], **NCHWC)
    agree("GlobalMaxPool", x, **NCHWC)
    agree("GlobalAveragePool", x, **NCHWC)
    agree("Upsample", x, scales=[1, 1, 2, 3], **NCHWC)
    agree("Upsample", x, scales=[1, 1, 2, 2], mode="linear", coordinate_transformation_mode="half_pixel", **NCHWC)


def test_a_plain_image_that_is_no_whole_number_of_blocks_is_refused():
    with pytest.raises(ValueError, match="whole blocks of 8"):
        unblocked(floats(1, 6, 2, 2))


def test_a_model_that_onnxruntime_saved_for_this_processor(tmp_path):
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p", "v"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "p"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["y"]),
    ]
    weights = {"w": floats(32, 3, 3, 3), "b": floats(32), "v": floats(32, 32, 3, 3, seed=1) * 0.1}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x = {"x": floats(1, 3, 8, 8)}
    saved = onnxlab.load(tmp_path / "saved.onnx")
    assert any(node.domain == "com.microsoft.nchwc" for node in saved.nodes)
    (expected,) = session.run(None, x)
    np.testing.assert_allclose(saved.run(x)["y"], expected, rtol=1e-4, atol=1e-5)
