"""What onnxruntime runs is run and not alarmed about; what it refuses to load is refused by `run` too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab

FLOAT = TensorProto.FLOAT
X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
OrtRun = Callable[..., dict[str, Any]]


def info(name: str, shape: Any, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: list[onnx.NodeProto], inputs: Any = None, outputs: Any = None, opset: int = 17, ir: int = 9, **graph: Any
) -> onnx.ModelProto:
    inputs = inputs or [info("x", [2, 3])]
    made = helper.make_graph(nodes, "g", inputs, outputs or [info("y", None)], **graph)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=imports if ir >= 3 else [], ir_version=ir)


def test_a_sparse_initializer_is_read_as_a_dense_one(ort_run: OrtRun) -> None:
    values, indices = helper.make_tensor("w", FLOAT, [2], [5.0, 7.0]), helper.make_tensor("", 7, [2], [0, 4])
    sparse = helper.make_sparse_tensor(values, indices, [2, 3])
    add = helper.make_node("Add", ["x", "w"], ["y"])
    proto = model([add], outputs=[info("y", [2, 3])], sparse_initializer=[sparse])
    opened = onnxlab.Model(proto)
    assert opened.check() == []
    assert str(opened.fact("y")) == "float32[2,3]"
    np.testing.assert_array_equal(opened.run(X)["y"], ort_run(proto.SerializeToString(), {"x": X})["y"])


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        ("Elu", (0.5,)), ("Softplus", ()), ("Softsign", ()), ("ThresholdedRelu", (0.5,)), ("Celu", (0.5,)),
        ("Selu", (1.6, 0.0, 1.05)), ("ParametricSoftplus", (0.5, 2.0)), ("ScaledTanh", (0.5, 2.0)),
        ("LeakyRelu", (0.2,)), ("HardSigmoid", (0.3, 0.4)), ("Relu", ()), ("Tanh", ()), ("Sigmoid", ()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("providers", [None, ["numba", "numpy"]])
def test_a_fused_gemm_ends_with_any_activation_of_onnxruntime(
    activation: str, parameters: tuple[float, ...], providers: list[str] | None, ort_run: OrtRun
) -> None:
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    given: dict[str, Any] = {"activation": activation, **dict(zip(names, parameters, strict=False))}
    weight = onnx.numpy_helper.from_array(np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2), "w")
    node = helper.make_node("FusedGemm", ["x", "w"], ["y"], domain="com.microsoft", **given)
    proto = model([node], initializer=[weight])
    found = onnxlab.Model(proto).run(X, providers=providers)["y"]
    np.testing.assert_allclose(found, ort_run(proto.SerializeToString(), {"x": X})["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pads", [0, 1])
@pytest.mark.parametrize("shapes", [((1, 0, 4, 4), (2, 0, 3, 3)), ((0, 2, 4, 4), (2, 2, 3, 3)), ((1, 0, 8), (2, 0, 3))])
@pytest.mark.parametrize("providers", [None, ["numba", "numpy"]])
def test_a_convolution_of_nothing_is_its_bias(shapes: Any, pads: int, providers: list[str] | None) -> None:
    x, w = (np.zeros(shape, np.float32) for shape in shapes)  # onnxruntime hangs in some of these
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=[pads] * 2 * (x.ndim - 2))
    proto = model([node], [info("x", x.shape), info("w", w.shape), info("b", [2])])
    found = onnxlab.Model(proto).run({"x": x, "w": w, "b": np.array([3, 4], np.float32)}, providers=providers)["y"]
    assert found.shape == (len(x), 2, *(size - 2 + 2 * pads for size in x.shape[2:]))
    np.testing.assert_array_equal(found, np.broadcast_to([[3], [4]], (*found.shape[:2], 1)).reshape(
        len(x), 2, *(1,) * (x.ndim - 2)) + 0 * found)  # fmt: skip


@pytest.mark.parametrize("ir", [1, 2])
def test_a_model_of_before_opsets_is_inferred_and_checked_as_opset_1(ir: int) -> None:
    add = helper.make_node("Add", ["x", "b"], ["s"], broadcast=1, axis=0)
    proto = model([add, helper.make_node("Reshape", ["s"], ["y"], shape=[3, 2])], [info("x", [2, 3]), info("b", [2])],
                  [info("y", [3, 2])], ir=ir)  # fmt: skip
    opened = onnxlab.Model(proto)
    assert opened.check() == []
    assert str(opened.fact("y")) == "float32[3,2]"
    assert opened.run({"x": X, "b": np.ones(2, np.float32)})["y"].shape == (3, 2)


def test_an_axis_of_a_scalar_is_refused_as_by_onnxruntime_and_said_so(ort_run: OrtRun) -> None:
    proto = model([helper.make_node("Squeeze", ["x"], ["y"], axes=[0])], [info("x", [])], opset=11)
    opened = onnxlab.Model(proto)
    assert "a scalar has no axes" in str(opened.diagnostics[0])
    with pytest.raises(onnxlab.errors.RunError, match="a scalar has no axes"):
        opened.run(np.float32(1))
    with pytest.raises(Exception, match="Squeeze"):
        ort_run(proto.SerializeToString(), {"x": np.array(1, np.float32)})
