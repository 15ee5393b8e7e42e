"""The history as Python: readable where it can be, the same bytes always; undo to any step."""

from contextlib import suppress
from typing import Any

import numpy as np
import onnx
import pytest

import onnxlab
from onnxlab.errors import EditError
from onnxlab.graph.edit.changes import InsertFormal, RenameValue, SetAttribute, SetField
from onnxlab.model import Model
from tests.graph.support.models import branches, chain


def replayed(model: Model, before: bytes) -> bytes:
    """The bytes that the script of a model's history makes of those that it was loaded from."""
    copy = onnxlab.load(before)
    namespace: dict[str, Any] = {"__name__": "script"}
    exec(model.history.to_python(), namespace)
    namespace["replay"](copy)
    assert copy.history.labels == model.history.labels
    return copy.to_bytes()


def check_script(model: Model, before: bytes, lines: tuple[str, ...]) -> None:
    """A script that has these lines, no primitive change, and makes the same bytes."""
    script = model.history.to_python()
    for line in lines:
        assert line in script
    assert "edit.apply" not in script
    assert replayed(model, before) == model.to_bytes()


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
        "model.add_node('Neg', ['y'], ['z'], name='n')",
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
        "model.value('x').set_dim(-1, 'width')",
        "model.value('y').set_shape(['batch', 4, 4, 4])",  # its name followed that of x
        "model.value('x').set_dtype('float16')",
        "model.value('w').array = np.full((4, 3, 1, 1), 0.25, 'float32')",
        "model.add_initializer('axes', np.array([0, -1], 'int64'))",
        "model.add_initializer('one', np.float32(1.5))",
        "model.value('one').array = 2",
        "model.add_initializer('many', np.full((100,), 0.0, 'float64'))",
        "model.add_initializer('endless', np.array([np.inf], 'float64'))",
        "model.value('x').set_dim(1, 4)",
    ):
        assert line in script
    assert replayed(model, before) == model.to_bytes()


def test_arrays_are_written_as_they_were_when_they_were_set() -> None:
    """The statement waits; the array may change meanwhile. One of many elements that differ has no expression."""
    model = Model(chain())
    before = model.to_bytes()
    array = np.array([0.5, -0.0, 0.25], np.float32)
    model.add_initializer("w2", np.zeros(3, np.float32))
    model.value("w2").array = array
    array[:] = 7
    assert model.history.last_statement() == "model.value('w2').array = np.array([0.5, -0.0, 0.25], 'float32')"
    model.value("w2").array = np.arange(65, dtype=np.float32)
    assert model.history.last_statement() == "model.value('w2').array = array"
    model.value("w2").array = np.full(65, np.nan, np.float32)
    assert model.history.last_statement() == "model.value('w2').array = np.full((65,), np.nan, 'float32')"
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


def test_inputs_outputs_and_opsets_are_written_as_people_do() -> None:
    model = Model(chain())
    before = model.to_bytes()
    model.add_input("mask", "bool", ["batch", None, 4], position=0)
    model.add_input("bare")
    model.add_output("r_out", 0, dtype="float32", shape=["batch", 4, 4, 4])
    model.remove_output("r_out")
    model.remove_input("mask")
    model.opsets["com.microsoft"] = 1
    model.opsets[""] = 20
    del model.opsets["com.microsoft"]
    with model.edit("in one"):
        model.add_input("late", "float32")
        model.add_node("Neg", ["late"], ["early"])
        model.add_output("early", dtype="float32", shape=[])
    lines = (
        "model.add_input('mask', dtype='bool', shape=['batch', None, 4], position=0)",
        "model.add_input('bare')",
        "model.add_output('r_out', dtype='float32', shape=['batch', 4, 4, 4], position=0)",
        "model.remove_output(model.value('r_out'))",
        "model.remove_input(model.value('mask'))",
        "model.opsets['com.microsoft'] = 1",
        "model.opsets[''] = 20",
        "del model.opsets['com.microsoft']",
        "model.add_input('late', dtype='float32')",
        "model.add_output('early', dtype='float32', shape=[])",
    )
    check_script(model, before, lines)


SCOPES = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
g (float[2] x, int64 n, bool c) => (float[2] y, float[2] z, float[2] w) {
  y = If (c) <then_branch = t () => (float[2] a) { a = Neg(x) }, else_branch = e () => (float[2] b) { b = Abs(x) }>
  z = If (c) <then_branch = t () => (float[2] d) { d = Neg(x) }, else_branch = e () => (float[2] f) { f = Abs(x) }>
  w = local.f(x)
}
<domain: "local", opset_import: ["" : 18]> f (u) => (v) { v = Relu(u) }"""


def scopes(names: str = "one two call") -> Model:
    """Two If nodes and a call, by these names."""
    proto = onnx.parser.parse_model(SCOPES)
    for node, name in zip(proto.graph.node, names.split(), strict=True):
        node.name = name
    return Model(proto)


def test_bodies_are_told_apart_where_their_nodes_have_one_name() -> None:
    model = scopes("same same same")
    before = model.to_bytes()
    for number in (0, 1):
        body = model.graph.scopes[model.graph.nodes[model.nodes[number].id].bodies["then_branch"][0]]
        node = model.node(body.node_ids[0])
        node.set_inputs(["x"])
        model.graph.apply(SetField(("scope", body.id), "doc_string", str(number)), label="document a body")
        node.outputs[0].name = f"renamed_{number}"
    assert model.graph.names.find_scope("If#1/then").id == model.graph.nodes[model.nodes[1].id].bodies["then_branch"][0]
    assert replayed(model, before) == model.to_bytes()


def test_what_functions_and_bodies_take_and_give_is_written_as_people_do() -> None:
    model = scopes()
    before = model.to_bytes()
    model.add_input("scale", scope="local::f")
    model.insert_node(onnx.helper.make_node("Mul", ["u", "scale"], ["scaled"]), 0, scope="local::f")
    model.add_output(model.value_at("local::f", "scaled"), scope="local::f")
    model.remove_output(model.value_at("local::f", "scaled"), scope="local::f")
    model.node_at("local::f", 0).remove()
    model.remove_input(model.value_at("local::f", "scale"))
    model.opsets_of("local::f")["com.microsoft"] = 1
    model.opsets_of("local::f")[""] = 17
    del model.opsets_of("local::f")["com.microsoft"]
    with model.edit("two values"):
        for branch in ("then", "else"):
            model.add_output("x", dtype="float32", shape=[2], scope=f"one/{branch}_branch")
        model.nodes["one"].set_outputs(["y", "same"])
    with model.edit("one value"):
        model.nodes["one"].set_outputs(["y"])
        for branch in ("then", "else"):
            model.remove_output("x", scope=f"one/{branch}")
    lines = (
        "model.add_input('scale', scope='local::f')",
        "model.add_output(model.value_at('local::f', 'scaled'), scope='local::f')",
        "model.remove_output(model.value_at('local::f', 'scaled'), scope='local::f')",
        "model.remove_input(model.value_at('local::f', 'scale'))",
        "model.opsets_of('local::f')['com.microsoft'] = 1",
        "model.opsets_of('local::f')[''] = 17",
        "del model.opsets_of('local::f')['com.microsoft']",
        "model.add_output(model.value('x'), dtype='float32', shape=[2], scope='one/then_branch')",
        "model.remove_output(model.value('x'), scope='one/else_branch')",
    )
    check_script(model, before, lines)


def test_outputs_of_functions_and_bodies_are_refused_where_they_would_shift_others() -> None:
    model = scopes()
    before = model.to_bytes()
    relu = model.value_at("local::f", "v")
    with pytest.raises(EditError, match="'v' is an output already"):
        model.add_output(relu, scope="local::f")
    with pytest.raises(EditError, match="take outputs by position"):
        model.add_output(model.value_at("local::f", "u"), 0, scope="local::f")
    with pytest.raises(EditError, match="'v' is not visible in one/then_branch"):
        model.add_output(relu, scope="one/then")
    with pytest.raises(EditError, match="call takes 'v' from the function; change the calls first"):
        model.remove_output(relu, scope="local::f")
    with pytest.raises(EditError, match="'x' is no output of one/then_branch"):
        model.remove_output("x", scope="one/then")
    with pytest.raises(EditError, match="one/then_branch is no function"):
        model.opsets_of("one/then")
    assert model.to_bytes() == before


def test_a_conversion_is_one_statement() -> None:
    model = scopes("same same same")
    before = model.to_bytes()
    model.convert_opset(21)
    with model.edit("and more"):
        model.nodes[2].doc_string = "before"
        model.convert_opset(22)
        model.nodes[2].doc_string = "after"
    with model.edit("refused in part"):
        model.convert_opset(20)
        with suppress(EditError), model.edit("inner"):
            model.convert_opset(19)
            model.convert_opset(0)
    script = model.history.to_python()
    for line in ("model.convert_opset(21)", "model.convert_opset(22)", "model.convert_opset(20)"):
        assert line in script
    assert "convert_opset(19)" not in script
    assert "edit.apply" not in script
    assert replayed(model, before) == model.to_bytes()


def test_what_only_changes_can_say_stays_a_change() -> None:
    model = Model(branches())
    before = model.to_bytes()
    documented = onnx.helper.make_tensor_value_info("documented", onnx.TensorProto.FLOAT, [1], "with a text")
    untyped = onnx.ValueInfoProto(name=model.graph.values[model.graph.nodes[model.nodes[0].id].outputs[0]].name)
    model.graph.apply(InsertFormal(model.graph.main.id, "input", 0, documented), label="documented")
    model.graph.apply(InsertFormal(model.graph.main.id, "output", 0, untyped), label="untyped")
    model.graph.apply(SetField(("model", 0), "opset_import", (onnx.helper.make_opsetid("", 21),)), label="unjudged")
    assert model.history.to_python().count("edit.apply(") == 3
    assert replayed(model, before) == model.to_bytes()


def test_the_history_holds_data_once_and_replays_what_was_renamed_since() -> None:
    model = Model(chain())
    before = model.to_bytes()
    array = np.full((4, 3, 1, 1), 0.25, np.float32)
    array.view(np.uint32)[0] = 0x7FC00001  # a NaN that no Python expression gives
    model.value("w").array = array
    (done,) = model.graph.history._done[-1].deeds
    assert done.change.tensor is model.graph.values[model.value("w").id].initializer  # type: ignore[attr-defined]
    model.value("w").name = "weights"
    model.value("weights").array = array * 2
    assert replayed(model, before) == model.to_bytes()


def test_steps_that_no_handle_makes_are_written_as_changes() -> None:
    sparse = onnx.SparseTensorProto(dims=[4])
    sparse.values.CopyFrom(onnx.helper.make_tensor("x", onnx.TensorProto.FLOAT, [1], [1.0]))
    sparse.indices.CopyFrom(onnx.helper.make_tensor("", onnx.TensorProto.INT64, [1], [0]))
    model = Model(chain())
    model.graph.main.proto.sparse_initializer.add().CopyFrom(sparse)
    model = onnxlab.load(model.graph.proto.SerializeToString())
    before, x = model.to_bytes(), model.value("x").id
    model.graph.apply(SetField(("tensor", x), "doc_string", "of the tensor, not of the input"))
    model.graph.apply(RenameValue(x, "x"))
    assert replayed(model, before) == model.to_bytes()


def test_an_input_without_a_name_is_found_by_its_place() -> None:
    proto = chain()
    proto.graph.input.add()
    model = onnxlab.load(proto.SerializeToString())
    before = model.to_bytes()
    model.graph.apply(RenameValue(model.graph.main.inputs[-1], "named"))
    model.undo()
    model.graph.apply(RenameValue(model.graph.main.inputs[-1], "other"))
    assert "RenameValue(value=model.inputs[1].id, name='other')" in model.history.to_python()
    assert replayed(model, before) == model.to_bytes()
