"""Edits of the page: each does what its statement does, and undo takes it back to the byte."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.graph.edits import EDITS
from onnxlab.notebook.edits.edit_requests import NOT_BY_HAND
from tests.notebook.conftest import Page, edit
from tests.notebook.hand import FILES, RAMP, Hand, inserted, small, typed, wide

Case = tuple[str, str, list[str], dict[str, Any]]
CASES: list[Case] = [
    ("add_node", "model", [], {"op_type": "Sigmoid", "domain": "", "inputs": ["a"], "scope": 0}),
    ("add_node", "model", [], {"op_type": "Sin", "inputs": ["late"]}),
    ("add_input", "model", [], {"name": "mask", "dtype": "bool", "shape": ["n", 8, "?"], "scope": 0}),
    ("add_input", "model", [], {"name": "mask", "dtype": "", "shape": None, "scope": 0}),
    ("add_initializer", "model", [], {"name": "z", "array": typed("int64", [2], [1, "9007199254740993"]), "scope": 0}),
    ("add_initializer", "model", [], {"name": "z", "array": typed("bfloat16", [2, 2], 0.5), "scope": 0}),
    ("add_initializer", "model", [], {"name": "z", "array": typed("string", [2], ["a", "b"])}),
    ("add_initializer", "model", [], {"name": "z", "array": typed("int4", [3], [1, -8, 7])}),
    ("set_opset", "model", [], {"domain": "local", "version": 2}),
    ("set_opset", "model", [], {"domain": "com.example", "version": 1}),
    ("set_model_field", "model", [], {"field": "producer_name", "value": "me"}),
    ("set_model_field", "model", [], {"field": "ir_version", "value": "11"}),
    ("set_doc_string", "model", [], {"text": "what it is"}),
    ("set_doc_string", "graph", [], {"text": "what it does"}),
    ("set_doc_string", "node", ["relu"], {"text": "rectified"}),
    ("set_doc_string", "value", ["x"], {"text": "pixels"}),
    ("set_metadata", "model", [], {"key": "author", "text": "me"}),
    ("set_metadata", "graph", [], {"key": "author", "text": "me"}),
    ("set_metadata", "node", ["relu"], {"key": "place", "text": "end"}),
    ("set_metadata", "value", ["x"], {"key": "unit", "text": "gray"}),
    ("insert_model", "model", [], inserted(["a"], [], prefix="p_")),
    ("insert_model", "model", [], inserted(["a"], ["a"], outputs=False)),
    ("insert_model", "model", [], inserted([], [], outputs=False)),
    ("set_binding", "model", [], {"variable": "count", "output": "next"}),
    ("convert_opset", "model", [], {"version": 18}),
    ("sort_nodes", "model", [], {}),
    ("set_declarations", "model", [], {"action": "refresh"}),
    ("set_declarations", "model", [], {"action": "store"}),
    ("set_declarations", "model", [], {"action": "drop"}),
    ("cut", "model", [], {"outputs": ["a"], "inputs": []}),
    ("cut", "model", [], {"outputs": [], "inputs": ["a"], "siblings": False}),
    ("replace_dim", "model", [], {"old": "n", "new": "batch"}),
    ("replace_dim", "model", [], {"old": 8, "new": 16, "axis": 2}),
    ("drop_dead_nodes", "model", [], {}),
    ("drop_unused_initializers", "model", [], {}),
    ("inline_functions", "model", [], {}),
    ("remove_nodes", "nodes", ["dead"], {"bypass": False}),
    ("remove_nodes", "nodes", ["add", "relu"], {"bypass": True}),
    ("duplicate_nodes", "nodes", ["relu"], {}),
    ("duplicate_nodes", "nodes", ["add", "relu"], {}),
    ("make_function", "nodes", ["add", "relu"], {"name": "Block", "domain": "local", "copies": False}),
    ("group_nodes", "nodes", ["add", "relu"], {"name": "sum and relu"}),
    ("rename_node", "node", ["relu"], {"name": "rectify"}),
    ("set_operator", "node", ["relu"], {"op_type": "Sigmoid", "domain": ""}),
    ("set_input", "node", ["relu"], {"slot": 0, "value": "c"}),
    ("set_inputs", "node", ["add"], {"values": ["one", "c"]}),
    ("set_outputs", "node", ["dead"], {"names": ["gone"]}),
    ("insert_on_edge", "node", ["relu"], {"slot": 0, "op_type": "Identity", "domain": ""}),
    ("move_node", "node", ["one"], {"position": 0}),
    ("default_attributes", "node", ["conv"], {"explicit": True}),
    ("set_attribute", "node", ["conv"], {"name": "pads", "value": [0, 0, 0, 0]}),
    ("set_attribute", "nodes", ["call", "call"], {"name": "own", "value": {"type": "float", "value": "nan"}}),
    ("set_attribute", "node", ["table"], {"name": "value", "value": typed("int32", [3], [1, 2, 3])}),
    ("set_attribute", "node", ["table"], {"name": "value", "value": {"elements": [[1, 7], [3, "-8"]]}}),
    ("clear_attribute", "nodes", ["conv", "relu"], {"name": "pads"}),
    ("clear_attribute", "node", ["conv"], {"name": "pads"}),
    ("constant_to_initializer", "node", ["one"], {}),
    ("inline_call", "node", ["call"], {"nested": False}),
    ("rename_value", "value", ["a"], {"name": "sum"}),
    ("insert_after", "value", ["c"], {"op_type": "Relu", "domain": ""}),
    ("redirect", "value", ["a"], {"other": "c"}),
    ("add_output", "value", ["c"], {}),
    ("remove_output", "value", ["y"], {}),
    ("remove_input", "value", ["spare"], {}),
    ("remove_behind", "value", ["late"], {}),
    ("remove_initializer", "value", ["unused"], {}),
    ("initializer_to_input", "value", ["w"], {"keep_default": False}),
    ("initializer_to_input", "value", ["w"], {"keep_default": True}),
    ("initializer_to_constant", "value", ["w"], {}),
    ("set_shape", "value", ["x"], {"shape": [1, 3, "height", "?"]}),
    ("set_dim", "value", ["x"], {"axis": 0, "dim": 4}),
    ("set_dim", "value", ["x"], {"axis": 1, "dim": "?"}),
    ("set_dtype", "value", ["x"], {"dtype": "float16"}),
    ("set_initializer", "value", ["unused"], {"array": typed("float32", [1, 2], ["nan", "-inf"])}),
    ("set_initializer", "value", ["unused"], {"array": {"file": "ramp.npy"}}),
    ("set_initializer", "value", ["unused"], {"array": {"elements": [[0, 2.5], [5, "inf"]]}}),
]
DONE_IN_TURN = {"input_to_initializer", "drop_unused_functions", "ungroup_nodes", "clear_groups"}
"""Edits with something to do only after another one; they have tests of their own."""


@pytest.mark.parametrize(("edit", "on", "subject", "parameters"), CASES, ids=[case[0] for case in CASES])
def test_an_edit_does_what_its_statement_does(
    edit: str, on: str, subject: list[str], parameters: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("ramp.npy", RAMP)
    FILES["ramp.npy"] = Path("ramp.npy").read_bytes()
    Path("piece.onnx").write_bytes(FILES["piece.onnx"])
    original = wide().SerializeToString(deterministic=True)
    by_hand, by_line, by_script = (onnxlab.load(original) for _ in range(3))
    hand = Hand(by_hand)
    reply = hand.edit(edit, on, subject, parameters)
    assert "result" in reply, reply
    exec(reply["result"]["python"], {"model": by_line, "np": np, "onnxlab": onnxlab})
    assert by_hand.proto.SerializeToString(deterministic=True) == by_line.proto.SerializeToString(deterministic=True)
    namespace: dict[str, Any] = {"__name__": "script"}
    monkeypatch.chdir("/")  # a script needs no file beside the model
    exec(by_hand.history.to_python(), namespace)
    namespace["replay"](by_script)
    assert by_hand.to_bytes() == by_script.to_bytes()
    assert by_hand.to_bytes() != original
    if parameters.get("array") == {"file": "ramp.npy"}:
        assert reply["result"]["python"] == "model.value('unused').array = np.load('ramp.npy')"
    event = next(message for message in hand.sent if message.get("event") == "commit")
    assert event["python"] == reply["result"]["python"] == hand.ask("history")["result"]["steps"][0]["python"]
    if "node" not in EDITS[edit].subjects or on == "node":
        assert by_line.history.labels == by_hand.history.labels
    assert by_hand.undo() is not None
    assert by_hand.to_bytes() == original


def test_every_edit_is_tried() -> None:
    assert {case[0] for case in CASES} | DONE_IN_TURN == set(EDITS) - NOT_BY_HAND


def test_an_edit_made_in_code_is_shown_in_python() -> None:
    model = onnxlab.load(wide())
    hand = Hand(model)
    model.nodes["conv"].attributes["pads"] = [0, 0, 0, 0]
    model.drop_dead_nodes()
    with model.edit("two at once"):
        model.value("x").set_dim(0, 4)
        model.nodes["relu"].name = "rectify"
    model.value("w").array = np.linspace(0, 1, 108, dtype=np.float32).reshape(4, 3, 3, 3)
    shown = [step["python"] for step in hand.ask("history")["result"]["steps"]]
    assert shown == [
        "model.nodes['conv'].attributes['pads'] = [0, 0, 0, 0]",
        "model.drop_dead_nodes()",
        "with model.edit('two at once') as edit:\n    model.value('x').set_dim(0, 4)\n"
        "    model.nodes['relu'].name = 'rectify'",
        "model.value('w').array = array",
    ]
    assert [event["python"] for event in hand.sent if event.get("event") == "commit"] == shown


def test_several_nodes_get_an_attribute_as_one_step() -> None:
    model = onnxlab.load(wide())
    hand = Hand(model)
    hand.edit("set_attribute", "nodes", ["conv", "relu"], {"name": "group", "value": 1})
    assert model.history.labels == []
    hand.edit("duplicate_nodes", "nodes", ["conv"], {})
    hand.edit("set_attribute", "nodes", ["conv", "conv_copy"], {"name": "strides", "value": [2, 2]})
    assert model.history.labels == ["duplicate conv", "set strides of 2 nodes"]
    assert model.nodes["conv_copy"].attributes["strides"] == [2, 2]


def test_an_initializer_becomes_an_input_and_comes_back() -> None:
    model = onnxlab.load(small())
    hand = Hand(model)
    hand.edit("initializer_to_input", "value", ["w"], {"keep_default": False})
    refused = hand.edit("input_to_initializer", "value", ["w"], {})
    assert refused["error"]["code"] == "refused", "there is no default to store"
    model.undo()
    hand.edit("initializer_to_input", "value", ["w"], {"keep_default": True})
    done = hand.edit("input_to_initializer", "value", ["w"], {})
    assert done["result"]["python"] == "model.value('w').to_initializer()"
    assert [value.name for value in model.inputs] == ["x"]


def test_a_function_without_calls_is_dropped() -> None:
    model = onnxlab.load(wide())
    hand = Hand(model)
    hand.edit("inline_call", "node", ["call"], {"nested": True})
    hand.edit("drop_unused_functions", "model", [], {})
    assert not model.proto.functions


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("w.npy", b"no array", "no array that can be read"),
        ("w.pb", b"\xff\xff", "no tensor that can be read"),
    ],
)
def test_a_file_that_holds_no_tensor_is_refused(name: str, data: bytes, words: str) -> None:
    model = onnxlab.load(wide())
    hand, before = Hand(model), model.to_bytes()
    FILES[name] = data
    assert words in hand.edit("set_initializer", "value", ["unused"], {"array": {"file": name}})["error"]["message"]
    parameters = {"array": {"file": "none"}}
    unknown = hand.ask("edit", edit="set_initializer", on="value", subject=[model.value("w").id], parameters=parameters)
    assert "no file 'none'" in unknown["error"]["message"]
    assert model.to_bytes() == before


@pytest.mark.parametrize(
    ("edit", "on", "subject", "parameters", "words"),
    [
        ("explode", "model", [], {}, "no edit 'explode'"),
        ("for_each_copy", "nodes", [1], {}, "no edit 'for_each_copy'"),
        ("duplicate_nodes", "nodes", [], {}, "done to nodes, got 0 ids"),
        ("set_dim", "node", [1], {"axis": 0, "dim": 1}, "set_dim is done to value, got 'node'"),
        ("set_initializer", "value", [1], {"array": {"elements": [[-1, 2]]}}, "array of set_initializer is an array"),
        ("set_initializer", "value", [1], {"array": typed("float32", [2], None)}, "array of set_initializer is"),
        ("set_operator", "node", [1], {"op_type": 3, "domain": ""}, "op_type of set_operator is a text"),
        ("set_operator", "node", [1], {"domain": ""}, "takes op_type, domain"),
        ("set_operator", "node", [1], {"op_type": "Relu", "more": 1}, "takes op_type, domain, got op_type, more"),
        ("set_shape", "value", [1], {"shape": [-1]}, "list of dims"),
        ("duplicate_nodes", "nodes", [99_999], {}, "not in the model"),
        ("initializer_to_input", "value", [0], {"keep_default": True}, "no value was chosen"),
        ("initializer_to_constant", "value", [0], {}, "no value was chosen"),
        ("input_to_initializer", "value", [0], {"array": {"elements": [[1, 2.5]]}}, "no value was chosen"),
        (
            "add_initializer",
            "model",
            [],
            {"name": "t", "array": {"elements": [[2, 2.5]]}},
            "give the type and the shape",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    edit: str, on: str, subject: list[int], parameters: Any, words: str
) -> None:
    model = onnxlab.load(small())
    hand, before = Hand(model), model.to_bytes()
    reply = hand.ask("edit", edit=edit, on=on, subject=subject, parameters=parameters)
    assert words in reply["error"]["message"]
    assert model.to_bytes() == before
    assert model.version == 0


def test_a_wire_that_closes_a_cycle_is_refused_with_the_reason() -> None:
    model = onnxlab.load(small())
    hand = Hand(model)
    relu, conv = model.nodes["relu"].id, model.nodes["conv"].id
    targets = hand.ask("targets", value=model.value("y").id, nodes=[relu, conv])["result"]
    assert targets["allowed"] == {}
    assert "depend on itself" in targets["refused"][str(conv)]
    assert "depend on itself" in hand.edit("set_input", "node", ["conv"], {"slot": 0, "value": "y"})["error"]["message"]
    free = hand.ask("targets", value=model.value("x").id, nodes=[relu])["result"]
    assert free["allowed"] == {str(relu): [0]}


def test_the_history_is_a_list_to_step_through() -> None:
    model = onnxlab.load(small())
    hand, before = Hand(model), model.to_bytes()
    hand.edit("set_operator", "node", ["relu"], {"op_type": "Sigmoid", "domain": ""})
    model.nodes["add"].name = "plus"
    hand.edit("insert_after", "value", ["c"], {"op_type": "Relu", "domain": ""})
    history = hand.ask("history")["result"]
    assert history["position"] == 3
    assert [step["python"] for step in history["steps"]] == [
        "model.nodes['relu'].replace('Sigmoid')",
        "model.nodes['add'].name = 'plus'",
        "model.value('c').insert_after('Relu')",
    ]
    after = model.to_bytes()
    hand.ask("go_to", position=0)
    assert model.to_bytes() == before
    hand.ask("go_to", position=3)
    assert model.to_bytes() == after
    assert "4 steps" not in str(hand.ask("go_to", position=3))
    assert hand.ask("go_to", position=9)["error"]["code"] == "malformed"


def test_moves_that_follow_from_an_edit_are_not_told() -> None:
    """A model put onto a wire stands behind its reader at first."""
    model = onnxlab.load(wide())
    hand = Hand(model)
    shown = hand.edit("insert_model", "model", [], inserted(["a"], ["a"], outputs=False))["result"]["python"]
    assert shown == "model.insert('piece.onnx', {'in': 'a'}, add_outputs=False, feed={'a': 'out'})"
    model.add_node("Neg", ["x"], ["last"], position=len(model.nodes))
    with model.edit("read what comes late") as _:
        model.nodes["conv"].set_input(0, "last")
    assert model.history.statements()[-1] == "model.nodes['conv'].set_input(0, 'last')"
    copy = onnxlab.load(wide())
    namespace: dict[str, Any] = {"__name__": "script"}
    exec(model.history.to_python(), namespace)
    namespace["replay"](copy)
    assert copy.to_bytes() == model.to_bytes()


@pytest.mark.parametrize(("name", "parameters"), [
    ("set_metadata", {"key": "place", "text": "here"}),
    ("insert_on_edge", {"slot": 0, "op_type": "Identity"}),
    ("default_attributes", {}),
    ("default_attributes", {"explicit": True}),
])  # fmt: skip
def test_edits_of_several_nodes_are_one_step(
    name: str, parameters: dict[str, Any], page: Page, model: onnxlab.Model
) -> None:
    before = model.to_bytes()
    page.ask("edit", **edit(name, *model.nodes[:2], on="nodes", **parameters))
    assert len(model.history) <= 1
    assert "2 nodes" in "".join(model.history.labels) or name == "default_attributes"
    assert (model.undo() is None) == (model.to_bytes() == before and not parameters)
    assert model.to_bytes() == before


def test_null_counts_as_left_out(page: Page, model: onnxlab.Model) -> None:
    page.ask("edit", **edit("remove_output", model.value("y"), scope=None))
    assert len(model.outputs) == 0
