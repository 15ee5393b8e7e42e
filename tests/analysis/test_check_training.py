"""Checks of what training is bound to."""

import onnx
from onnx import TensorProto, helper

import onnxlab


def trained(key: str, result: str) -> onnx.ModelProto:
    """y = x + w, with an algorithm that makes w1 of w, and one binding."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"], name="add")], "g", [info("x", TensorProto.FLOAT, [2])],
        [info("y", TensorProto.FLOAT, [2])], [helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    training = model.training_info.add()
    training.algorithm.name = "a"
    training.algorithm.node.append(helper.make_node("Neg", ["w"], ["w1"], name="neg"))
    training.algorithm.output.append(info("w1", TensorProto.FLOAT, [2]))
    training.update_binding.add(key=key, value=result)
    return model


def test_bindings_that_lead_nowhere_are_warned_of() -> None:
    assert onnxlab.check(trained("w", "w1")) == []
    (problem,) = onnxlab.check(trained("w", "gone"))
    assert (problem.severity, problem.code) == ("warning", "training-binding")
    assert "binds 'w' to 'gone', and 'gone' is no output of the algorithm" in problem.message
    (problem,) = onnxlab.check(trained("x", "w1"))
    assert "'x' is no initializer of the model" in problem.message
    model = onnxlab.load(trained("w", "w1"))
    model.value("w").name = "kernel"
    assert model.check() == []
