"""Kernels of Glow's operators against numbers by hand and against onnx's own operators."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import onnxlab
from onnxlab.errors import RunError

Array = np.ndarray[Any, np.dtype[Any]]


def run(op_type: str, *arrays: Array, outputs: int = 1, **attributes: Any) -> list[Array]:
    names = [f"x{place}" for place in range(len(arrays))]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, arrays, strict=True)
    ]
    results = [f"y{place}" for place in range(outputs)]
    node = helper.make_node(op_type, names, results, **attributes)
    declared = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in results]
    graph = helper.make_graph([node], "g", inputs, declared)
    model = helper.make_model(
        graph, producer_name="GlowONNXModelWriter", ir_version=7, opset_imports=[helper.make_opsetid("", 9)]
    )
    by_name = onnxlab.load(model).run(dict(zip(names, arrays, strict=True)))
    return [by_name[name] for name in results]


QUANTIZED = {"o0_elemKind": "i8", "o0_qScale": 0.5, "o0_qOffset": 1}


def test_floats_become_the_nearest_integers_ties_to_even_within_limits() -> None:
    x = np.array([0, 0.25, 0.75, -0.25, 1e9, -1e9], np.float32)
    assert run("Glow_Quantize", x, **QUANTIZED)[0].tolist() == [1, 2, 2, 0, 127, -128]


def test_integers_become_what_they_stand_for() -> None:
    x = np.array([1, 3, -128], np.int8)
    result = run("Glow_Dequantize", x, o0_elemKind="float", i0_qScale=0.5, i0_qOffset=1)[0]
    assert result.tolist() == [0, 1, -64.5]


def test_quantized_sums_are_quantized_anew() -> None:
    a, b = np.array([1, 3], np.int8), np.array([5, 127], np.int8)
    places = {"i0_qScale": 0.5, "i0_qOffset": 1, "i1_qScale": 0.25, "i1_qOffset": 1}
    assert run("Glow_Add", a, b, **QUANTIZED, **places)[0].tolist() == [3, 66]


@pytest.mark.parametrize(
    ("op_type", "compute"),
    [("Glow_Add", np.add), ("Glow_Sub", np.subtract), ("Glow_Mul", np.multiply), ("Glow_MatMul", np.matmul)],
)
def test_floats_as_numpy(op_type: str, compute: Any) -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 3, 3)).astype(np.float32)
    np.testing.assert_array_equal(run(op_type, a, b, o0_elemKind="float")[0], compute(a, b))


def test_the_largest_first_and_the_first_of_equal_ones() -> None:
    x = np.array([[1, 5, 5, -128]], np.int8)
    values, places = run("Glow_TopK", x, outputs=2, K=3, o0_elemKind="i8", o1_elemKind="index32")
    assert (values.tolist(), places.tolist(), places.dtype) == ([[5, 5, 1]], [[1, 2, 0]], np.int32)
    with pytest.raises(RunError, match="K is 9; expected 0 to 4"):
        run("Glow_TopK", x, outputs=2, K=9, o0_elemKind="i8", o1_elemKind="index64")


@pytest.mark.parametrize("group", [1, 2])
def test_convolution_as_that_of_onnx(group: int) -> None:
    rng = np.random.default_rng(group)
    x, filters = rng.integers(-9, 9, (1, 5, 6, 4)), rng.integers(-9, 9, (6, 2, 3, 4 // group))
    scales, offsets = rng.uniform(0.1, 1, 6).astype(np.float32), rng.integers(-3, 3, 6).astype(np.int32)
    bias = rng.integers(-9, 9, 6).astype(np.int32)
    result = run(
        "Glow_ChannelwiseQuantizedConvolution", x.astype(np.int8), filters.astype(np.int8), bias, scales, offsets,
        scales, offsets * 0, Kernels=[2, 3], Strides=[1, 2], Pads=[1, 0, 0, 1], Group=group, Dilation=[2, 1],
        FusedActivation="NONE", o0_elemKind="float", i0_qScale=0.5, i0_qOffset=2,
    )[0]  # fmt: skip
    node = helper.make_node(
        "Conv", ["x", "w", "b"], ["y"], kernel_shape=[2, 3], strides=[1, 2], pads=[1, 0, 0, 1], dilations=[2, 1],
        group=group,
    )  # fmt: skip
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xwby"]
    reference = ReferenceEvaluator(helper.make_model(helper.make_graph([node], "g", infos[:3], infos[3:])))
    weights = (filters - offsets.reshape(-1, 1, 1, 1)) * scales.reshape(-1, 1, 1, 1)
    feeds = {
        "x": ((x - 2) * 0.5).transpose(0, 3, 1, 2).astype(np.float32),
        "w": weights.transpose(0, 3, 1, 2).astype(np.float32),
        "b": (bias * scales).astype(np.float32),
    }
    np.testing.assert_allclose(
        result.transpose(0, 3, 1, 2), np.asarray(next(iter(reference.run(None, feeds)))), rtol=1e-4, atol=1e-4
    )


def test_a_quantized_input_without_its_scale_is_refused_by_name() -> None:
    with pytest.raises(RunError, match="i0_qScale is missing"):
        run("Glow_Dequantize", np.zeros(1, np.int8), o0_elemKind="float")
    with pytest.raises(RunError, match="elemKind is 'odd'"):
        run("Glow_Quantize", np.zeros(1, np.float32), o0_elemKind="odd", o0_qScale=1.0, o0_qOffset=0)


def test_types_are_those_that_the_attributes_say() -> None:
    node = helper.make_node(
        "Glow_TopK", ["x"], ["y", "z"], K=2, o0_elemKind="i8", o0_shape=[3, 2], o1_elemKind="index64"
    )
    info = helper.make_tensor_value_info("x", TensorProto.INT8, [3, 5])
    result = helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)
    model = onnxlab.load(helper.make_model(helper.make_graph([node], "g", [info], [result])))
    assert str(model.fact("y")) == "int8[3,2]"
    assert str(model.fact("z")) == "int64[?]"
