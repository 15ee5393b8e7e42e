"""References to attributes of functions, on nodes that are in none."""

import numpy as np
import pytest
from onnx import AttributeProto, TensorProto, helper

import onnxlab
from onnxlab.errors import RunError


def softmax(in_function: bool) -> onnxlab.Model:
    """Softmax whose axis refers to `axis` of a function; in the main graph, or in a function that has it."""
    node = helper.make_node("Softmax", ["x"], ["y"], "s")
    node.attribute.append(AttributeProto(name="axis", ref_attr_name="axis", type=AttributeProto.INT, i=0))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    functions = []
    if in_function:
        node.attribute[0].ClearField("i")
        functions = [helper.make_function("local", "F", ["x"], ["y"], [node], opsets[:1], ["axis"])]
        node = helper.make_node("F", ["x"], ["y"], "call", domain="local", axis=0)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    graph = helper.make_graph([node], "g", [x], [y])
    return onnxlab.load(helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=9))


def test_a_reference_outside_of_a_function_is_an_error_and_not_run() -> None:
    model = softmax(in_function=False)
    (problem,) = [item for item in model.check() if item.code == "attribute-reference"]
    assert problem.severity == "error"
    assert "'axis'" in problem.message
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with pytest.raises(RunError, match="refers to an attribute of a function"):
        model.run({"x": x})
    assert np.allclose(model.run({"x": x}, strict=False)["y"].sum(axis=-1), 1)  # the default axis
    model.nodes["s"].attributes["axis"] = 0
    assert np.allclose(model.run({"x": x})["y"].sum(axis=0), 1)


def test_a_reference_inside_of_a_function_is_none() -> None:
    model = softmax(in_function=True)
    assert not [item for item in model.check() if item.code == "attribute-reference"]
    assert np.allclose(model.run({"x": np.eye(2, 3, dtype=np.float32)})["y"].sum(axis=0), 1)
