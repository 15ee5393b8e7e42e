"""Runs that feed other values than inputs: what-ifs, which read kept values and leave them as they are."""

from typing import Any

import numpy as np
import onnx
import pytest

from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from tests.execution.support.internals import By
from tests.execution.support.models import runner

CHAIN = "g (float[n, 4] x) => (float[n, 4] y) { a = Neg (x) b = Relu (a) c = Tanh (b) y = Add (c, x) }"
X = np.ones((2, 4), np.float32)


@pytest.mark.parametrize("providers", [["numpy"], ["numba", "numpy"], ["onnxruntime", "numpy"]])
@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("keep", ["border", False])
def test_a_what_if_may_come_again_and_again(providers: list[str], is_whole: bool, keep: Any) -> None:
    """Seen: the second of the same shapes raised ValueError, or was noted as the last run with what it fed."""
    run = runner(CHAIN)
    hot = By(run, providers)
    expected = hot.run({"x": X}, keep="border")["y"]
    for turn in range(1, 7):
        feeds = {"b": np.full_like(X, turn)} | ({"x": X * turn} if is_whole or not keep else {})
        output = hot.run(feeds, keep=keep)["y"]
        np.testing.assert_allclose(output, np.tanh(feeds["b"]) + feeds.get("x", X), rtol=1e-6)
        np.testing.assert_array_equal(hot.run(None, keep="border")["y"], expected)
        for name, array in {"x": X, "b": np.zeros_like(X), "y": expected}.items():
            np.testing.assert_array_equal(run.value(name), array)
    np.testing.assert_array_equal(hot.run({"b": X, "x": X}, keep="border")["y"], np.tanh(X) + X)
    np.testing.assert_array_equal(run.value("b"), np.zeros_like(X))


def test_fed_initializers_are_those_of_their_run_alone() -> None:
    """Seen: from the second run of the same shapes on, they stayed for looks and runs without feeds."""
    floats, size = onnx.TensorProto.FLOAT, np.array([2, 3], np.float32)
    ends = [onnx.helper.make_tensor_value_info(name, floats, dims) for name, dims in (("x", ["n", 2]), ("w", [2]))]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Mul", ["x", "w"], ["y"])], "g", ends,
        [onnx.helper.make_tensor_value_info("y", floats, ["n", 2])], [onnx.numpy_helper.from_array(size, "w")],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, ir_version=3, opset_imports=[onnx.helper.make_opsetid("", 8)])
    run, x = Runner(ModelGraph(model)), np.ones((3, 2), np.float32)
    for by in (["numpy"], ["numba", "numpy"]):
        hot = By(run, by)
        for turn in range(6):
            assert hot.run({"x": x}, keep="border")["y"].tolist() == [[2, 3]] * 3
            assert hot.run({"x": x, "w": size + turn}, keep="border")["y"].tolist() == [[2 + turn, 3 + turn]] * 3
            assert run.value("y").tolist() == hot.run(None, keep="border")["y"].tolist() == [[2, 3]] * 3
