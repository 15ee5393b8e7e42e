"""The size of the blocks of channels, which ONNX Runtime's processor chose and no file names."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import onnxlab
from onnxlab.execution.numpy.provider import NumpyProvider
from onnxlab.infer import Inference
from onnxlab.ops.base.image_layouts import BLOCKED
from tests.execution.planning.test_nchwc_to_nchw import saved


def convolution(channels, filters, group=1):
    """A convolution and a Relu, as a user writes them."""
    w = np.random.default_rng(channels).standard_normal((filters, channels // group, 3, 3), np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], group=group),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, ["N", channels, 6, 6])],
        [helper.make_tensor_value_info("y", 1, None)], [numpy_helper.from_array(w, "w")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("channels", [1, 3, 4, 8, 12, 16, 24, 32])
@pytest.mark.parametrize("filters", [8, 16, 24, 32])
def test_convolutions_that_onnxruntime_saved(channels, filters, tmp_path, ort_run):
    plain = convolution(channels, filters)
    model = onnxlab.Model(saved(plain, tmp_path / "saved.onnx"))
    feeds = {"x": np.random.default_rng(1).standard_normal((2, channels, 6, 6), np.float32)}
    (expected,) = ort_run(plain.SerializeToString(), feeds).values()
    for results in (model.run(feeds), model.run(feeds, providers=[NumpyProvider()])):
        np.testing.assert_allclose(results["y"], expected, rtol=1e-4, atol=1e-4)


def in_blocks(array, size):
    """An image in blocks, or filters in blocks of both axes."""
    n, c, *k = array.shape
    return np.ascontiguousarray(np.moveaxis(array.reshape(n, c // size, size, *k), 2, -1)).reshape(array.shape)


def filters_in_blocks(w, size):
    m, c, *k = w.shape
    split = w.reshape(m // size, size, c // size, size, *k)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 3, 1)).reshape(w.shape)


def two_convolutions(size, middle):
    """16 → `middle` → 16 channels in blocks of `size`, and the same without blocks."""
    rng = np.random.default_rng(size)
    weights = [rng.standard_normal(shape, np.float32) for shape in ((middle, 16, 1, 1), (16, middle, 1, 1))]
    nodes = [
        helper.make_node("ReorderInput", ["x"], ["b"], domain=BLOCKED),
        helper.make_node("Conv", ["b", "w0"], ["c"], "first", domain=BLOCKED),
        helper.make_node("Conv", ["c", "w1"], ["d"], "second", domain=BLOCKED),
        helper.make_node("ReorderOutput", ["d"], ["y"], domain=BLOCKED, channels=16),
    ]
    tensors = [numpy_helper.from_array(filters_in_blocks(w, size), f"w{place}") for place, w in enumerate(weights)]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, [1, 16, 3, 3])],
        [helper.make_tensor_value_info("y", 1, None)], tensors,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(BLOCKED, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), weights


def test_blocks_of_8_are_known_by_one_convolution_of_the_model():
    """The first image has 16 channels, which could be one block of 16: the values between tell."""
    proto, (w0, w1) = two_convolutions(8, 24)
    x = np.random.default_rng(0).standard_normal((1, 16, 3, 3), np.float32)
    expected = np.einsum("oc,ncij->noij", w1[..., 0, 0] @ w0[..., 0, 0], x)
    model = onnxlab.Model(proto)
    for results in (model.run({"x": x}), model.run({"x": x}, providers=[NumpyProvider()])):
        np.testing.assert_allclose(results["y"], expected, rtol=1e-4, atol=1e-4)
    blocked = model.run({"x": x}, ["b"])["b"]
    np.testing.assert_array_equal(blocked, in_blocks(x, 8))


def test_an_edit_that_tells_the_size_counts_at_once():
    proto, _ = two_convolutions(8, 32)
    model = onnxlab.Model(proto)
    x = np.random.default_rng(0).standard_normal((1, 16, 3, 3), np.float32)
    model.run({"x": x})
    other, (w0, w1) = two_convolutions(8, 24)
    for tensor in other.graph.initializer:
        model.value(tensor.name).array = numpy_helper.to_array(tensor)
    expected = np.einsum("oc,ncij->noij", w1[..., 0, 0] @ w0[..., 0, 0], x)
    np.testing.assert_allclose(model.run({"x": x})["y"], expected, rtol=1e-4, atol=1e-4)


def test_blocks_of_two_sizes_are_refused():
    proto, _ = two_convolutions(8, 24)
    plain = np.zeros((16, 8, 1, 1), np.float32)  # 8 channels that are not in blocks: fewer than a block has
    proto.graph.initializer.append(numpy_helper.from_array(plain, "w2"))
    proto.graph.input.append(helper.make_tensor_value_info("z", 1, [1, 8, 3, 3]))
    proto.graph.node.append(helper.make_node("Conv", ["z", "w2"], ["e"], "third", domain=BLOCKED))
    proto.graph.output.append(onnx.ValueInfoProto(name="e"))
    model = onnxlab.Model(proto)
    with pytest.raises(onnxlab.OnnxlabError, match="8 in first, 16 in third"):
        model.run({"x": np.zeros((1, 16, 3, 3), np.float32), "z": np.zeros((1, 8, 3, 3), np.float32)})


def test_a_model_that_does_not_tell_its_size_is_doubted_and_may_be_told(monkeypatch):
    proto, (w0, w1) = two_convolutions(8, 32)
    x = np.random.default_rng(0).standard_normal((1, 16, 3, 3), np.float32)
    expected = np.einsum("oc,ncij->noij", w1[..., 0, 0] @ w0[..., 0, 0], x)
    (doubt,) = [problem for problem in onnxlab.check(proto) if problem.code == "block-size"]
    assert doubt.severity == "warning"
    assert "ONNXLAB_BLOCK_SIZE" in doubt.hint
    monkeypatch.setenv("ONNXLAB_BLOCK_SIZE", "8")
    np.testing.assert_allclose(onnxlab.Model(proto).run({"x": x})["y"], expected, rtol=1e-4, atol=1e-4)
    monkeypatch.setenv("ONNXLAB_BLOCK_SIZE", "16")
    assert not np.allclose(onnxlab.Model(proto).run({"x": x})["y"], expected, rtol=1e-4, atol=1e-4)
    monkeypatch.setenv("ONNXLAB_BLOCK_SIZE", "many")
    with pytest.raises(onnxlab.OnnxlabError, match="ONNXLAB_BLOCK_SIZE=many: expected 8 or 16"):
        onnxlab.Model(proto).run({"x": x})


def test_the_doubt_infers_nothing_anew(monkeypatch):
    model, begun = onnxlab.load(two_convolutions(8, 32)[0]), []
    begin = Inference.__init__
    monkeypatch.setattr(
        Inference, "__init__", lambda self, *rest, **named: begun.append(rest) or begin(self, *rest, **named)
    )
    assert "block-size" in [problem.code for problem in model.check()]
    assert not begun


def test_a_model_that_tells_its_size_is_not_doubted(monkeypatch):
    proto, _ = two_convolutions(8, 24)
    assert "block-size" not in [problem.code for problem in onnxlab.check(proto)]
    monkeypatch.setenv("ONNXLAB_BLOCK_SIZE", "16")
    model = onnxlab.Model(proto)
    assert model.run({"x": np.ones((1, 16, 3, 3), np.float32)})["y"].any()
