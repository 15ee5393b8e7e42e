import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.errors import RunError
from tests.ops.support.single_node import agree, floats, run


@pytest.mark.parametrize("opset", [7, 8, 9, 13, 14, 15])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (2, 3, 4, 5)])
def test_batch_normalization_of_every_opset(opset, shape):
    x, parameters = floats(*shape), [floats(3, seed=seed) for seed in (1, 2, 3)]
    agree("BatchNormalization", x, *parameters, np.abs(floats(3, seed=4)) + 0.1, opset=opset, momentum=0.7)


def test_batch_normalization_in_training():
    x = floats(4, 3, 5)
    agree("BatchNormalization", x, floats(3), floats(3, seed=1), floats(3, seed=2), np.abs(floats(3)) + 1, opset=15,
          outputs=3, training_mode=1, rtol=1e-4)  # fmt: skip


@pytest.mark.parametrize("axis", [-1, 1, -3])
def test_layer_normalization(axis):
    x = floats(2, 30, 7) * 3 + 1
    scale = floats(*x.shape[axis:], seed=1)
    agree("LayerNormalization", x, scale, floats(*x.shape[axis:], seed=2), opset=17, outputs=3, axis=axis)


def test_means_far_from_zero_keep_their_precision():
    x = (floats(4, 1000) + 1000).astype(np.float32)
    (y,) = run("LayerNormalization", x, np.ones(1000, np.float32), opset=17)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    np.testing.assert_allclose(y, expected, atol=2e-3)


def test_others():
    x = floats(2, 4, 5, 6)
    agree("InstanceNormalization", x, floats(4), floats(4, seed=1), opset=6)
    agree("LRN", x, opset=13, size=3, alpha=0.1)
    agree("LpNormalization", x, opset=1, axis=1, p=1)
    agree("MeanVarianceNormalization", x, opset=13)


def test_dropout_does_nothing_at_inference():
    x = floats(3, 4)
    agree("Dropout", x, opset=10, outputs=2)
    agree("Dropout", x, opset=13, outputs=2)


@pytest.mark.parametrize("scale", [TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize("x", [TensorProto.FLOAT16, TensorProto.FLOAT])
def test_rms_normalization_takes_a_scale_of_its_own_type(x, scale, ort_run):
    """The schema allows another type; onnx and onnxruntime refuse it."""
    node = helper.make_node("RMSNormalization", ["x", "s"], ["y"])
    infos = [helper.make_tensor_value_info("x", x, [2, 3]), helper.make_tensor_value_info("s", scale, [3])]
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", scale, [2, 3])])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    lab = onnxlab.Model(proto)
    feeds = lab.sample_inputs()
    if x == scale:
        result, expected = lab.run(feeds)["y"], ort_run(proto.SerializeToString(), feeds)["y"]
        np.testing.assert_allclose(result, expected, rtol=2e-3)
        assert result.dtype == expected.dtype
        return
    with pytest.raises(onnx.shape_inference.InferenceError):
        onnx.checker.check_model(proto, full_check=True)
    with pytest.raises(Exception, match="Type Error"):
        ort_run(proto.SerializeToString(), feeds)
    assert [problem.code for problem in lab.check() if problem.severity == "error"] == ["type-mismatch"]
    with pytest.raises(RunError, match="strict=False"):
        lab.run(feeds)
