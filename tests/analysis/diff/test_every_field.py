"""Fields that few models have: a difference tells of each, and a patch takes each over or is refused."""

from collections.abc import Callable, MutableSequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.analysis.diff.outline import outline
from onnxlab.errors import EditError

Mutation = Callable[[onnx.ModelProto], object]


def trained() -> onnx.ModelProto:
    """y = F(x · w), whose w is made by an initialization and updated by an algorithm, spread over two devices."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"], name="mm"), helper.make_node("F", ["m"], ["y"], domain="f")],
        "g", [info("x", TensorProto.FLOAT, ["n", 2])], [info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(np.eye(2, dtype=np.float32), "w")],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    function = helper.make_function("f", "F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], imports[:1])
    function.value_info.append(info("b", TensorProto.FLOAT, [None, 2]))
    model = helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=11)
    model.configuration.add(name="pair", num_devices=2, device=["a", "b"])
    spec = model.graph.node[0].device_configurations.add(configuration_id="pair").sharding_spec.add(tensor_name="w")
    spec.device.extend([0, 1])
    training = model.training_info.add()
    training.initialization.name, training.algorithm.name = "i", "a"
    constant = numpy_helper.from_array(np.ones((2, 2), np.float32))
    training.initialization.node.append(helper.make_node("Constant", [], ["w0"], value=constant))
    training.initialization.output.append(info("w0", TensorProto.FLOAT, [2, 2]))
    training.algorithm.node.append(helper.make_node("Neg", ["w"], ["w1"]))
    training.algorithm.output.append(info("w1", TensorProto.FLOAT, [2, 2]))
    training.initialization_binding.add(key="w", value="w0")
    training.update_binding.add(key="w", value="w1")
    return model


MUTATIONS: dict[str, tuple[Mutation, str]] = {
    "update": (lambda m: setattr(m.training_info[0].update_binding[0], "value", "w"), "w1 → w"),
    "update key": (lambda m: setattr(m.training_info[0].update_binding[0], "key", "v"), "update_binding"),
    "no update": (lambda m: m.training_info[0].ClearField("update_binding"), "update_binding"),
    "initial": (lambda m: setattr(m.training_info[0].initialization_binding[0], "value", "w"), "w0 → w"),
    "no initialization": (lambda m: m.training_info[0].ClearField("initialization"), "initialization: removed"),
    "no algorithm": (lambda m: m.training_info[0].ClearField("algorithm"), "algorithm: removed"),
    "no training": (lambda m: m.ClearField("training_info"), "training_info[0]: removed"),
    "devices": (lambda m: setattr(m.configuration[0], "num_devices", 3), "configuration"),
    "sharding": (lambda m: m.graph.node[0].device_configurations[0].sharding_spec[0].device.append(2), "mm"),
    "no sharding": (lambda m: m.graph.node[0].ClearField("device_configurations"), "device_configurations"),
    "weight's text": (lambda m: setattr(m.graph.initializer[0], "doc_string", "of Paris"), "of Paris"),
    "weight's notes": (lambda m: m.graph.initializer[0].metadata_props.add(key="k", value="v"), "metadata of w"),
    "inside": (lambda m: m.functions[0].value_info[0].type.tensor_type.shape.dim.add(), "F"),
    "not inside": (lambda m: m.functions[0].ClearField("value_info"), "declaration b"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_difference_tells_of_every_field(name: str) -> None:
    mutate, words = MUTATIONS[name]
    first, other = onnxlab.load(trained()), trained()
    mutate(other)
    second = onnxlab.load(other)
    difference = onnxlab.diff(first, second)
    assert len(difference) >= 1
    assert words in str(difference)
    assert len(onnxlab.diff(second, first)) >= 1
    before = first.to_bytes()
    try:
        first.patch(difference)
    except EditError:
        assert name.startswith("no ")
        assert first.to_bytes() == before
    else:
        assert first.to_bytes() == second.to_bytes()
        first.undo()
        assert first.to_bytes() == before


def test_names_alone_change_no_binding_and_no_device() -> None:
    first, second = onnxlab.load(trained()), onnxlab.load(trained())
    second.value("w").name = "kernel"
    assert {change.kind for change in onnxlab.diff(first, second)} == {"renamed"}
    assert len(onnxlab.diff(first, second, ignore=["names"])) == 0


def _longer() -> onnx.ModelProto:
    model = trained()
    places = helper.make_tensor("", TensorProto.INT64, [2], [0, 3])
    sparse = helper.make_sparse_tensor(helper.make_tensor("s", TensorProto.FLOAT, [2], [1.0, 2.0]), places, [2, 2])
    model.graph.sparse_initializer.append(sparse)
    model.graph.node[0].attribute.append(helper.make_attribute("long", list(range(50))))
    model.graph.node[0].attribute.append(helper.make_attribute("sparse", sparse))
    model.functions[0].attribute_proto.append(helper.make_attribute("alpha", 1.0))
    return model


def _first(numbers: MutableSequence[int], number: int) -> None:
    numbers[0] = number


LINES: dict[str, Mutation] = {
    "a binding": lambda m: setattr(m.training_info[0].update_binding[0], "value", "w"),
    "a node of training": lambda m: setattr(m.training_info[0].algorithm.node[0], "op_type", "Abs"),
    "a long attribute": lambda m: _first(m.graph.node[0].attribute[0].ints, 7),
    "places of an attribute": lambda m: _first(m.graph.node[0].attribute[1].sparse_tensor.indices.int64_data, 1),
    "places of an initializer": lambda m: _first(m.graph.sparse_initializer[0].indices.int64_data, 1),
    "an attribute of a function": lambda m: setattr(m.functions[0].attribute_proto[0], "f", 2.0),
    "an opset of a function": lambda m: setattr(m.functions[0].opset_import[0], "version", 17),
    "an overload": lambda m: setattr(m.functions[0], "overload", "second"),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_a_line_of_text_tells_of_every_part_that_computes(name: str) -> None:
    other = _longer()
    LINES[name](other)
    first, second = (outline(onnxlab.load(model).graph).split("\n") for model in (_longer(), other))
    assert len(set(second) - set(first)) == 1
