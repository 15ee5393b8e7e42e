"""Edits that move things between models and graphs keep every field, and the model stays valid for its IR version."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.formats.journals.change_codec import decode, encode

W = np.arange(6, dtype=np.float32)


def old_model(ir_version: int, stored: bool = True) -> onnx.ModelProto:
    """y = x + w, with an initializer w that is a graph input too."""
    x, w, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [6]) for name in "xwy")
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"], "add")], "g", [x, w], [y], [numpy_helper.from_array(W, "w")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=ir_version)
    if ir_version < 3:
        del model.opset_import[:]
        model.graph.node[0].attribute.add(name="broadcast", i=1, type=onnx.AttributeProto.INT)
    return model


EDITS = {
    "add_initializer": lambda model: model.add_initializer("v", W),
    "remove_input": lambda model: model.remove_input("w"),
    "to_initializer": lambda model: model.value("w").to_initializer(),
    "from an input": lambda model: model.value("x").to_initializer(W),
    "constant": lambda model: model.insert_node(
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(W)), 0
    ).to_initializer(),
}


@pytest.mark.parametrize("ir_version", [1, 2, 3, 4])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_initializer_that_is_no_input_raises_the_ir_version(ir_version: int, edit: Any) -> None:
    model = onnxlab.load(old_model(ir_version))
    before = model.to_bytes()
    edit(model)
    assert model.proto.ir_version == 4
    onnx.checker.check_model(model.proto)
    assert ("IR version" in model.history.labels[-1]) == (ir_version < 4)
    script: dict[str, Any] = {}
    exec(model.history.to_python(), script)
    copy = onnxlab.load(old_model(ir_version))
    script["replay"](copy)
    assert copy.to_bytes() == model.to_bytes()
    model.undo(to=0)
    assert model.to_bytes() == before


def test_what_was_wrong_with_a_file_raises_nothing() -> None:
    proto = old_model(3)
    del proto.graph.input[1]
    model = onnxlab.load(proto)
    model.value("w").array = W * 2
    model.nodes["add"].name = "sum"
    assert model.proto.ir_version == 3


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_said_of_an_initializer_stands_in_its_tensor(sparse: bool) -> None:
    proto = old_model(8)
    del proto.graph.input[1]
    if sparse:
        values = numpy_helper.from_array(W[:2], "w")
        indices = numpy_helper.from_array(np.array([0, 1]))
        del proto.graph.initializer[:]
        proto.graph.sparse_initializer.append(onnx.SparseTensorProto(values=values, indices=indices, dims=[6]))
    model = onnxlab.load(proto)
    graph, before = model.graph, model.to_bytes()
    value = model.value("w")
    value.metadata["scale"] = "2"
    value.doc_string = "weights"
    stored = model.proto.graph.sparse_initializer[0].values if sparse else model.proto.graph.initializer[0]
    assert stored.doc_string == value.doc_string == "weights"
    entries = [(entry.key, entry.value) for entry in stored.metadata_props]
    assert entries == [*value.metadata.items()] == [("scale", "2")]
    assert not model.proto.graph.value_info
    for step in graph.history._done:
        for change in step.changes:
            assert decode(graph, encode(graph, change)) == change
    del value.metadata["scale"]
    value.doc_string = ""
    assert model.to_bytes() == before
    model.undo(to=0)
    assert model.to_bytes() == before


def test_documentation_goes_with_an_initializer_that_becomes_an_input_and_back() -> None:
    proto = old_model(8)
    del proto.graph.input[1]
    model = onnxlab.load(proto)
    model.value("w").metadata["scale"] = "2"
    model.value("w").doc_string = "weights"
    model.value("w").to_input()
    assert (dict(model.value("w").metadata), model.value("w").doc_string) == ({"scale": "2"}, "weights")
    model.value("w").to_initializer(W)
    assert (dict(model.value("w").metadata), model.value("w").doc_string) == ({"scale": "2"}, "weights")


def rich_model(name: str = "pair", devices: int = 2) -> onnx.ModelProto:
    """With documentation, metadata, dims without a size and a device configuration at every place."""
    proto = old_model(11)
    proto.opset_import[0].version = 23
    del proto.graph.input[1]
    for info in (*proto.graph.input, *proto.graph.output):
        info.doc_string = f"about {info.name}"
        info.metadata_props.add(key="k", value=info.name)
        info.type.denotation = "IMAGE"
        info.type.tensor_type.shape.dim[0].Clear()
    node = proto.graph.node[0]
    node.doc_string = "adds"
    node.metadata_props.add(key="from", value="here")
    proto.configuration.add(name=name, num_devices=devices)
    node.device_configurations.add(configuration_id=name, pipeline_stage=1)
    return proto


def test_extracting_everything_keeps_every_field() -> None:
    proto = rich_model()
    part = onnxlab.load(proto).extract(outputs="y").proto
    for info in part.graph.output:  # its shape is what inference found
        del info.type.tensor_type.shape.dim[:]
        info.type.tensor_type.shape.dim.add()
        info.type.denotation = "IMAGE"
    assert part == proto


def test_inserting_brings_device_configurations() -> None:
    model = onnxlab.load(rich_model())
    model.insert(onnxlab.load(rich_model()), {"x": "y"}, prefix="same/")
    model.insert(onnxlab.load(rich_model(devices=3)), {"x": "y"}, prefix="other/")
    assert [(configuration.name, configuration.num_devices) for configuration in model.proto.configuration] == [
        ("pair", 2),
        ("pair_1", 3),
    ]
    placed = [node.device_configurations[0].configuration_id for node in model.proto.graph.node]
    assert placed == ["pair", "pair", "pair_1"]


def test_inserting_reads_data_in_that_lies_beside_the_other_model(tmp_path: Path) -> None:
    proto = old_model(8)
    del proto.graph.initializer[:], proto.graph.input[1]
    raw = numpy_helper.from_array(W, "c")
    proto.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=raw))
    tensor = proto.graph.node[0].attribute[0].t
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    onnx.save(proto, tmp_path / "other.onnx")
    model = onnxlab.load(old_model(8))
    model.insert(tmp_path / "other.onnx", {"x": "y"}, prefix="o/")
    np.testing.assert_array_equal(model.run({"x": W})["o/y"], W * 3)
