"""The history as Python: readable where it can be, the same bytes always; undo to any step."""

from typing import Any

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.errors import EditError
from onnxlab.graph.changes import SetAttribute, SetField
from onnxlab.model import Model
from tests.graph.models import branches, chain


def replayed(model: Model, before: bytes) -> bytes:
    """What the script of a model's history makes of the bytes that it was loaded from."""
    copy = onnxlab.load(before)
    namespace: dict[str, Any] = {"__name__": "script"}
    exec(model.history.to_python(), namespace)
    namespace["replay"](copy)
    assert copy.history.labels == model.history.labels
    return copy.to_bytes()


def test_a_script_reads_like_what_was_done() -> None:
    model = Model(chain())
    before = model.to_bytes()
    model.nodes["c"].attributes["strides"] = [1, 1]
    model.nodes["r"].name = "relu"
    model.value("r_out").name = "activated"
    model.add_node("Neg", ["y"], ["z"], name="n")
    model.nodes["n"].remove()
    script = model.history.to_python()
    for line in (
        "with model.edit('set strides of c') as edit:",
        "model.nodes['c'].attributes['strides'] = [1, 1]",
        "model.nodes['r'].name = 'relu'",
        "model.value('r_out').name = 'activated'",
        "model.insert_node(onnx.helper.make_node('Neg', ['y'], ['z'], name='n'), 3)",
        "model.nodes['n'].remove()",
    ):
        assert line in script
    assert replayed(model, before) == model.to_bytes()


def test_dims_and_arrays_are_written_as_people_do() -> None:
    model = Model(chain())
    before = model.to_bytes()
    model.value("x").set_dim(0, None)
    model.value("x").set_dim(-1, "width")
    model.value("y").set_shape(["batch", 4, 4, 4])
    model.value("x").set_dtype("float16")
    model.value("w").array = np.full((4, 3, 1, 1), 0.25, np.float32)
    model.add_initializer("axes", np.array([0, -1]))
    model.add_initializer("one", np.float32(1.5))
    model.value("one").array = 2
    model.add_initializer("many", np.zeros(100))
    model.add_initializer("endless", np.array([np.inf]))
    with model.edit("in one"):
        model.value("x").set_dim(1, 4)
        model.value("w").array = np.full((4, 4, 1, 1), -1.0, np.float32)
    script = model.history.to_python()
    for line in (
        "model.value('x').set_dim(0, None)",
        "model.value('x').set_dim(3, 'width')",
        "model.value('y').set_dim(0, 'batch')",
        "model.value('x').set_dtype('float16')",
        "model.value('w').array = np.array([[[[0.25]], [[0.25]], [[0.25]]], ",
        "model.add_initializer('axes', np.array([0, -1], 'int64'))",
        "model.add_initializer('one', np.array(1.5, 'float32'))",
        "model.value('one').array = np.array(2.0, 'float32')",
        "model.value('x').set_dim(1, 4)",
    ):
        assert line in script
    assert replayed(model, before) == model.to_bytes()


def test_everything_awkward_is_replayed() -> None:
    model = Model(branches())
    before = model.to_bytes()
    graph = model.graph
    model.nodes["if/then/inner/then/neg"].name = ""
    model.nodes["t2"].name = ""
    model.nodes[2].doc_string = "a 'quoted'\nline"
    model.node_at("if/then_branch/inner/then_branch", 0).metadata["k"] = "v"
    model.add_initializer("small", np.arange(3))
    model.add_initializer("large", np.zeros(5000, np.float32))
    model.add_initializer("text", np.array(["a", "ü"], object))
    attribute = onnx.AttributeProto(name="own", type=onnx.AttributeProto.INTS)
    graph.apply(SetAttribute(model.nodes[0].id, "own", attribute), label="an empty list")
    graph.apply(
        SetAttribute(model.nodes[0].id, "first", onnx.helper.make_attribute("first", b"\xff"), 0), label="bytes"
    )
    graph.apply(SetField(("model", 0), "producer_name", None), label="absent")
    unknown = onnx.NodeProto.FromString(
        onnx.NodeProto(op_type="Neg", input=["x"], output=["n"]).SerializeToString() + b"\xfa\x7f\x01a"
    )
    model.insert_node(unknown, 0)
    model.inline()
    model.make_function(["if"], "Chosen")
    assert replayed(model, before) == model.to_bytes()
    model.undo(to=4)
    assert replayed(model, before) == model.to_bytes(), "what was undone is not in it"


def test_undo_to_any_step() -> None:
    model = Model(chain())
    states = [model.to_bytes()]
    value = model.value("r_out")
    for number in range(4):
        model.nodes["r"].doc_string = str(number)
        value.name = f"r{number}"
        states += [b"", model.to_bytes()]
    model.undo(to=2)
    assert model.to_bytes() == states[2]
    commit = model.undo(to="rename r2 to r3")
    assert model.to_bytes() == states[8]
    assert (commit.kind, commit.label) == ("redo", "rename r2 to r3")
    model.undo(to=-4)
    assert model.to_bytes() == states[4]
    assert model.undo(to=0).kind == "undo"
    assert model.undo(to=0) is None
    assert model.to_bytes() == states[0]
    with pytest.raises(EditError, match="the history of 8 edits has no 9"):
        model.undo(to=9)
    with pytest.raises(EditError, match="has no 'nothing'; a number from 0, or one of 'document r'"):
        model.undo(to="nothing")
