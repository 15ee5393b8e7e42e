"""Networks with channels in blocks, as ONNX Runtime's optimizer saves them, run as if they had none."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser

import onnxlab
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.ops.base.image_layouts import BLOCKED
from onnxlab.ops.nchwc.images import block_size
from tests.execution.support.internals import By
from tests.execution.support.regions import Eager

IMAGES = """<ir_version: 8, opset_import: ["" : {}]> g (float[n, 3, {}, 13] x) => (y) {{
    a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w0, b0)
    b = Relu (a)
    c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)
    d = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1], group = 16> (c, w1)
    e = HardSigmoid (d)
    f = Mul (e, c)
    p = GlobalAveragePool (f)
    q = Conv <kernel_shape = [1, 1]> (p, w2)
    r = Sigmoid (q)
    s = Mul (f, r)
    t = Conv <kernel_shape = [1, 1]> (s, w3, b3)
    u = Concat <axis = 1> (s, t)
    y = Conv <kernel_shape = [1, 1]> (u, w4)
}}"""
SHAPES = {
    "w0": (16, 3, 3, 3), "b0": (16,), "w1": (16, 1, 3, 3), "w2": (16, 16, 1, 1), "w3": (20, 16, 1, 1), "b3": (20,),
    "w4": (20, 36, 1, 1),
}  # fmt: skip


def images(opset=13, height=12):
    rng = np.random.default_rng(0)
    model = parser.parse_model(IMAGES.format(opset, height))
    for name, shape in SHAPES.items():
        array = (rng.standard_normal(shape) / max(1, np.prod(shape[1:])) ** 0.5).astype(np.float32)  # type: ignore[operator]
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def saved(model, path):
    """The model as ONNX Runtime saves it for this processor."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(path)


def parts(model):
    """The plan, as an ordinary run makes it."""
    feeds = [info.name for info in model.proto.graph.input]
    return model.runner.partition(
        [info.name for info in model.proto.graph.output], feeds, model.runner.by([Eager(), NumpyProvider()])
    )


def by_regions(model, feeds):
    return model.run(feeds, providers=[Eager(), NumpyProvider()])


@pytest.mark.parametrize("opset", [9, 11, 13, 17])
@pytest.mark.parametrize("height", [12, 7])
def test_the_same_values_in_one_region(opset, height, tmp_path, ort_run):
    plain = images(opset, height)
    model = onnxlab.Model(saved(plain, tmp_path / "saved.onnx"))
    assert any(node.domain == BLOCKED for node in model.nodes)
    assert [part.provider for part in parts(model).parts] == ["numba"]
    for count in (1, 3):
        feeds = {"x": np.random.default_rng(count).standard_normal((count, 3, height, 13), np.float32)}
        (expected,) = ort_run(plain.SerializeToString(), feeds).values()
        for results in (by_regions(model, feeds), model.run(feeds)):
            np.testing.assert_allclose(results["y"], expected, rtol=1e-5, atol=1e-5)


def test_a_blocked_value_that_is_asked_for_stays_in_blocks(tmp_path):
    model = onnxlab.Model(saved(images(), tmp_path / "saved.onnx"))
    feeds = {"x": np.random.default_rng(3).standard_normal((2, 3, 12, 13), np.float32)}
    blocked = next(node for node in model.nodes if node.domain == BLOCKED and node.op_type == "MaxPool").outputs[0].name
    runner = By(model.runner, [Eager(), NumpyProvider()])
    expected = model.run(feeds, [blocked, "y"])
    for name, actual in runner.run(feeds, [blocked, "y"], keep=False).items():
        np.testing.assert_allclose(actual, expected[name], rtol=1e-5, atol=1e-5)
    rest = runner.run({blocked: expected[blocked]}, ["y"], keep=False)
    np.testing.assert_allclose(rest["y"], expected["y"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("reader", ["Reshape", "Softmax", "Transpose", "ReduceMean", "Shape"])
def test_what_looks_at_blocks_keeps_them(reader):
    """Not what ONNX Runtime writes, but what a file may hold."""
    size = block_size()
    reorder = helper.make_node("ReorderInput", ["x"], ["b"], domain=BLOCKED)
    pool = helper.make_node("MaxPool", ["b"], ["m"], domain=BLOCKED, kernel_shape=[1, 1])
    back = helper.make_node("ReorderOutput", ["m"], ["z"], domain=BLOCKED, channels=2 * size)
    other = helper.make_node(reader, ["m", "shape"] if reader == "Reshape" else ["m"], ["y"])
    graph = helper.make_graph(
        [reorder, pool, other, back], "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2 * size, 3, 5])],
        [helper.make_empty_tensor_value_info(name) for name in ("y", "z")],
        [numpy_helper.from_array(np.array([-1, 6]), "shape")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(BLOCKED, 1)]
    model = onnxlab.Model(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    x = np.random.default_rng(4).standard_normal((1, 2 * size, 3, 5), np.float32)
    expected, actual = model.run({"x": x}), by_regions(model, {"x": x})
    for name, array in expected.items():
        np.testing.assert_allclose(actual[name], array, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(actual["z"], x)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("missing", [0, 3])
def test_blocks_that_are_not_full(missing, last):
    size = block_size()
    channels = 2 * size - missing
    shape = [2, 3, 5, channels] if last else [2, channels, 3, 5]
    reorder = helper.make_node("ReorderInput", ["x"], ["b"], domain=BLOCKED, channels_last=last)
    pool = helper.make_node("AveragePool", ["b"], ["m"], domain=BLOCKED, kernel_shape=[2, 2])
    back = helper.make_node("ReorderOutput", ["m"], ["y"], domain=BLOCKED, channels=channels, channels_last=last)
    graph = helper.make_graph(
        [reorder, pool, back], "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_empty_tensor_value_info("y")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(BLOCKED, 1)]
    model = onnxlab.Model(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    assert [part.provider for part in parts(model).parts] == ["numba"]
    x = np.random.default_rng(5).standard_normal(shape, np.float32)
    np.testing.assert_allclose(by_regions(model, {"x": x})["y"], model.run({"x": x})["y"], rtol=1e-6, atol=1e-6)
