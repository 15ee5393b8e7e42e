"""Strings that are no UTF-8, in attributes as in tensors: they run, and come back to the same bytes."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab

ODD = b"\xff\xfe"
READ = ODD.decode("utf-8", "surrogateescape")


def model(node: onnx.NodeProto, inputs: list[str], **attributes: Any) -> onnxlab.Model:
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    declared = [helper.make_tensor_value_info(name, TensorProto.STRING, [None]) for name in inputs]
    graph = helper.make_graph([node], "g", declared, [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 4)]
    proto = helper.make_model(graph, opset_imports=imports, ir_version=9)
    proto.graph.output[0].ClearField("type")
    return onnxlab.load(proto)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [({"value_string": ODD}, READ), ({"value_strings": [b"a", ODD]}, ["a", READ])],
)
@pytest.mark.parametrize("exact", [False, True])
def test_a_constant(attributes: dict[str, Any], expected: Any, exact: bool) -> None:
    opened = model(helper.make_node("Constant", [], ["y"]), [], **attributes)
    assert opened.run(exact=exact, strict=False)["y"].tolist() == expected


def test_labels_that_are_compared_with_odd_strings() -> None:
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml")
    opened = model(node, ["x"], keys_strings=[b"a", ODD], values_int64s=[7, 8])
    assert opened.run(np.array([READ, "a", "b"], object), strict=False)["y"].tolist() == [8, 7, -1]


def test_a_constant_becomes_an_initializer_of_the_same_bytes() -> None:
    opened = model(helper.make_node("Constant", [], ["c"]), [], value_strings=[ODD])
    opened.add_node("Identity", ["c"], ["y"])
    opened.fold()
    assert ODD in opened.to_bytes()
    assert opened.run(strict=False)["y"].tolist() == [READ]
