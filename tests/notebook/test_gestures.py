"""Edits by hand: each gesture does what its line of Python does, and undo takes it back to the byte."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.graph.edits import EDITS
from onnxlab.notebook.edits.edit_commands import GESTURES
from onnxlab.notebook.session.session import Session


def small() -> onnx.ModelProto:
    """x → Conv(w) → Relu → y, with a Constant added on the way."""
    weight = numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Constant", [], ["one"], "one", value_float=1.0),
        helper.make_node("Add", ["c", "one"], ["a"], "add"),
        helper.make_node("Relu", ["a"], ["y"], "relu"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in ENDS]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


ENDS = (("x", ["n", 3, 8, 8]), ("y", None))


def wide() -> onnx.ModelProto:
    """`small` with a table, a call of a function, a dead node, an input that nobody reads, and a node out of order."""
    proto = small()
    graph = proto.graph
    table = helper.make_tensor("", TensorProto.INT64, [2, 2], [1, 2, 3, 4])
    graph.node.extend(
        [
            helper.make_node("Constant", [], ["table"], "table", value=table),
            helper.make_node("Twice", ["a"], ["twice"], "call", domain="local"),
            helper.make_node("Neg", ["late"], ["dead"], "dead"),
            helper.make_node("Neg", ["c"], ["late"], "late"),
        ]
    )
    graph.value_info.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, ["n", 4, 8, None]))
    graph.input.append(helper.make_tensor_value_info("spare", TensorProto.FLOAT, [1]))
    graph.initializer.append(numpy_helper.from_array(np.arange(6, dtype=np.float16).reshape(2, 3), "unused"))
    imports = [helper.make_opsetid("", 21)]
    body = [helper.make_node("Add", ["v", "v"], ["w"])]
    proto.functions.append(helper.make_function("local", "Twice", ["v"], ["w"], body, imports))
    proto.opset_import.append(helper.make_opsetid("local", 1))
    return proto


def piece() -> bytes:
    """Another model: in → Abs → out."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("in", "out")]
    graph = helper.make_graph([helper.make_node("Abs", ["in"], ["out"])], "piece", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()


RAMP = np.linspace(0, 1, 4, dtype=np.float32)
FILES = {"piece.onnx": piece(), "ramp.npy": b""}
Case = tuple[str, list[str], dict[str, Any]]
CASES: list[Case] = [
    ("add_node", [], {"op_type": "Sigmoid", "domain": "", "inputs": ["a"], "scope": 0}),
    ("add_node", [], {"op_type": "Sin", "domain": "", "inputs": ["late"], "scope": 0}),
    ("add_input", [], {"name": "mask", "dtype": "bool", "shape": ["n", 8, "?"], "scope": 0}),
    ("add_input", [], {"name": "mask", "dtype": "", "shape": None, "scope": 0}),
    (
        "add_initializer",
        [],
        {"name": "z", "dtype": "int64", "shape": [2], "numbers": [1, "9007199254740993"], "scope": 0},
    ),
    ("add_initializer", [], {"name": "z", "dtype": "bfloat16", "shape": [2, 2], "numbers": 0.5, "scope": 0}),
    ("add_initializer", [], {"name": "z", "dtype": "string", "shape": [2], "numbers": ["a", "b"], "scope": 0}),
    ("set_opset", [], {"domain": "local", "version": 2}),
    ("set_opset", [], {"domain": "com.example", "version": 1}),
    ("set_field", [], {"field": "producer_name", "text": "me"}),
    ("set_field", [], {"field": "ir_version", "text": "11"}),
    ("model_doc", [], {"text": "what it is"}),
    ("graph_doc", [], {"text": "what it does"}),
    ("model_metadata", [], {"key": "author", "text": "me"}),
    ("insert", [], {"file": "piece.onnx", "connect": ["a"], "feed": [], "prefix": "p_", "outputs": True}),
    ("insert", [], {"file": "piece.onnx", "connect": ["a"], "feed": ["a"], "prefix": "", "outputs": False}),
    ("convert_opset", [], {"version": 18}),
    ("insert", [], {"file": "piece.onnx", "connect": [], "feed": [], "prefix": "", "outputs": False}),
    ("sort_nodes", [], {}),
    ("refresh_declarations", [], {}),
    ("store_declarations", [], {}),
    ("drop_declarations", [], {}),
    ("drop_dead_nodes", [], {}),
    ("drop_unused_initializers", [], {}),
    ("inline_all", [], {}),
    ("duplicate", ["relu"], {}),
    ("duplicate", ["add", "relu"], {}),
    ("replace", ["relu"], {"op_type": "Sigmoid", "domain": ""}),
    ("connect", ["relu"], {"slot": 0, "value": "c"}),
    ("set_outputs", ["dead"], {"names": ["gone"]}),
    ("insert_before", ["relu"], {"slot": 0, "op_type": "Identity", "domain": ""}),
    ("move", ["one"], {"position": 0}),
    ("default_attributes", ["conv"], {"explicit": True}),
    ("set_attributes", ["conv"], {"name": "pads", "value": [0, 0, 0, 0], "type": "ints"}),
    ("set_attributes", ["conv"], {"name": "pads", "value": None, "type": ""}),
    ("set_tensor", ["table"], {"name": "value", "dtype": "int32", "shape": [3], "numbers": [1, 2, 3]}),
    ("set_tensor_elements", ["table"], {"name": "value", "elements": [[1, 7], [3, "-8"]]}),
    ("node_to_initializer", ["one"], {}),
    ("inline", ["call"], {"nested": False}),
    ("make_function", ["add", "relu"], {"name": "Block", "domain": "local", "copies": False}),
    ("node_doc", ["relu"], {"text": "rectified"}),
    ("node_metadata", ["relu"], {"key": "place", "text": "end"}),
    ("insert_after", ["c"], {"op_type": "Relu", "domain": ""}),
    ("replace_uses", ["a"], {"other": "c"}),
    ("add_output", ["c"], {}),
    ("remove_output", ["y"], {}),
    ("remove_input", ["spare"], {}),
    ("remove_initializer", ["unused"], {}),
    ("to_input", ["w"], {"keep_default": False}),
    ("to_input", ["w"], {"keep_default": True}),
    ("to_constant", ["w"], {}),
    ("set_shape", ["x"], {"shape": [1, 3, "height", "?"]}),
    ("set_dim", ["x"], {"axis": 0, "dim": 4}),
    ("set_dim", ["x"], {"axis": 1, "dim": "?"}),
    ("set_dtype", ["x"], {"dtype": "float16"}),
    ("set_array", ["unused"], {"dtype": "float32", "shape": [1, 2], "numbers": ["nan", "-inf"]}),
    ("load_array", ["unused"], {"file": "ramp.npy"}),
    ("set_elements", ["unused"], {"elements": [[0, 2.5], [5, "inf"]]}),
    ("value_doc", ["x"], {"text": "pixels"}),
    ("value_metadata", ["x"], {"key": "unit", "text": "gray"}),
]
DONE_IN_TURN = {"to_initializer", "drop_unused_functions"}
"""Gestures with something to do only after another one; they have tests of their own."""


class Hand:
    """A session with the replies that it sent."""

    def __init__(self, model: onnxlab.Model) -> None:
        self.model = model
        self.sent: list[dict[str, Any]] = []
        self.session = Session(model, lambda content, buffers: self.sent.append(content))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.session.receive({"id": 7, "method": method, "params": params})
        return next(message for message in reversed(self.sent) if "id" in message)

    def edit(self, gesture: str, subject: list[str], given: dict[str, Any]) -> dict[str, Any]:
        """A gesture with names for ids."""
        takes = GESTURES[gesture].takes
        find = self.model.value if GESTURES[gesture].subject == "value" else self.model.nodes.__getitem__
        ids = [find(name).id for name in subject]
        one = {key: self.model.value(name).id for key, name in given.items() if takes[key] == "id" and name}
        many = {
            key: [self.model.value(name).id for name in names] for key, names in given.items() if takes[key] == "ids"
        }
        if "file" in given:
            self.send_file(given["file"])
        return self.ask("edit", gesture=gesture, subject=ids, given={**given, **one, **many})

    def send_file(self, name: str, piece: int = 100) -> None:
        """As the page does: piece by piece."""
        data = FILES[name]
        for start in range(0, len(data), piece):
            part = base64.b64encode(data[start : start + piece]).decode()
            assert "result" in self.ask("upload", file=name, name=name, offset=start, data=part)


@pytest.mark.parametrize(("gesture", "subject", "given"), CASES, ids=[each[0] for each in CASES])
def test_a_gesture_does_what_its_line_does(
    gesture: str, subject: list[str], given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("ramp.npy", RAMP)
    FILES["ramp.npy"] = Path("ramp.npy").read_bytes()
    Path("piece.onnx").write_bytes(FILES["piece.onnx"])
    original = wide().SerializeToString(deterministic=True)
    by_hand, by_line = onnxlab.load(original), onnxlab.load(original)
    hand = Hand(by_hand)
    reply = hand.edit(gesture, subject, given)
    assert "result" in reply, reply
    exec(reply["result"]["python"], {"model": by_line, "np": np, "onnxlab": onnxlab})
    assert by_hand.proto.SerializeToString(deterministic=True) == by_line.proto.SerializeToString(deterministic=True)
    assert by_hand.to_bytes() != original
    event = next(message for message in hand.sent if message.get("event") == "commit")
    assert event["python"] == reply["result"]["python"]
    assert by_hand.undo() is not None
    assert by_hand.to_bytes() == original


def test_every_gesture_is_tried() -> None:
    assert {case[0] for case in CASES} | DONE_IN_TURN == set(GESTURES)


def test_every_edit_of_the_model_is_offered_by_hand() -> None:
    methods = {"remove_nodes", "rename_node", "rename_value"}  # requests of their own
    assert {edit for gesture in GESTURES.values() for edit in gesture.edits} | methods == set(EDITS)


def test_an_initializer_becomes_an_input_and_comes_back() -> None:
    model = onnxlab.load(small())
    hand = Hand(model)
    hand.edit("to_input", ["w"], {"keep_default": False})
    refused = hand.edit("to_initializer", ["w"], {})
    assert refused["error"]["code"] == "refused", "there is no default to store"
    model.undo()
    hand.edit("to_input", ["w"], {"keep_default": True})
    done = hand.edit("to_initializer", ["w"], {})
    assert done["result"]["python"] == "model.value('w').to_initializer()"
    assert [value.name for value in model.inputs] == ["x"]


def test_a_function_that_nobody_calls_is_dropped() -> None:
    model = onnxlab.load(wide())
    hand = Hand(model)
    hand.edit("inline", ["call"], {"nested": True})
    hand.edit("drop_unused_functions", [], {})
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
    assert words in hand.edit("load_array", ["unused"], {"file": name})["error"]["message"]
    unknown = hand.ask("edit", gesture="load_array", subject=[1], given={"file": "none"})
    assert "no file 'none'" in unknown["error"]["message"]
    assert model.to_bytes() == before


def test_pieces_of_a_file_come_in_order_and_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    hand = Hand(onnxlab.load(small()))
    part = base64.b64encode(b"12345").decode()
    assert hand.ask("upload", file="a", name="a", offset=0, data=part)["result"] == {"bytes": 5}
    assert "5 bytes" in hand.ask("upload", file="a", name="a", offset=9, data=part)["error"]["message"]
    assert "no base64" in hand.ask("upload", file="a", name="a", offset=5, data="*")["error"]["message"]
    monkeypatch.setattr("onnxlab.notebook.protocol.uploads.MOST", 12)
    assert hand.ask("upload", file="b", name="b", offset=0, data=part)["result"] == {"bytes": 5}
    assert hand.ask("upload", file="b", name="b", offset=5, data=part)["result"] == {"bytes": 10}, "a made room"
    assert hand.ask("upload", file="b", name="b", offset=10, data=part)["error"]["code"] == "too_large"


def test_a_selection_is_handed_out_as_a_model() -> None:
    model = onnxlab.load(wide())
    sent: list[Any] = []
    session = Session(model, lambda content, buffers: sent.append((content, buffers)))
    nodes = [model.nodes[name].id for name in ("add", "relu")]
    session.receive({"id": 1, "method": "extract", "params": {"nodes": nodes}})
    content, [data] = sent[-1]
    part = onnxlab.load(data)
    assert [node.name for node in part.nodes] == ["add", "relu"]
    assert {value.name for value in part.inputs} == {"c", "one"}
    line = content["result"]["python"]
    assert line.startswith("model.extract([model.value('y'), model.value('a')]") or "model.value('a')" in line
    onnx.checker.check_model(part.proto)


def test_the_copies_of_a_block_are_found_from_one_of_its_nodes() -> None:
    nodes = []
    for block in range(3):
        nodes.append(helper.make_node("Exp", [f"v{block}"], [f"e{block}"], f"/layer.{block}/exp"))
        nodes.append(helper.make_node("Neg", [f"e{block}"], [f"v{block + 1}"], f"/layer.{block}/neg"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("v0", "v3")]
    model = onnxlab.load(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:])))
    found = Hand(model).ask("copies", nodes=[model.nodes["/layer.1/neg"].id])["result"]["copies"]
    assert [[model.node(each).name for each in copy] for copy in found] == [["/layer.0/neg"], ["/layer.2/neg"]]


@pytest.mark.parametrize(
    ("gesture", "subject", "given", "words"),
    [
        ("explode", [], {}, "no gesture 'explode'"),
        ("duplicate", [], {}, "one nodes"),
        ("set_elements", [1], {"elements": [[-1, 2]]}, "list of [place, number]"),
        ("set_array", [1], {"dtype": "float32", "shape": [2], "numbers": None}, "numbers of set_array"),
        ("replace", [1], {"op_type": 3, "domain": ""}, "op_type of replace is a text"),
        ("replace", [1], {"op_type": "Relu"}, "takes op_type, domain"),
        ("set_shape", [1], {"shape": [-1]}, "list of dims"),
        ("duplicate", [99_999], {}, "not in the model"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    gesture: str, subject: list[int], given: Any, words: str
) -> None:
    model = onnxlab.load(small())
    hand, before = Hand(model), model.to_bytes()
    reply = hand.ask("edit", gesture=gesture, subject=subject, given=given)
    assert words in reply["error"]["message"]
    assert model.to_bytes() == before
    assert model.version == 0


def test_a_wire_that_closes_a_cycle_is_refused_with_the_reason() -> None:
    model = onnxlab.load(small())
    hand = Hand(model)
    relu, conv = model.nodes["relu"].id, model.nodes["conv"].id
    found = hand.ask("targets", value=model.value("y").id, nodes=[relu, conv])["result"]
    assert found["allowed"] == {}
    assert "depend on itself" in found["refused"][str(conv)]
    assert "depend on itself" in hand.edit("connect", ["conv"], {"slot": 0, "value": "y"})["error"]["message"]
    free = hand.ask("targets", value=model.value("x").id, nodes=[relu])["result"]
    assert free["allowed"] == {str(relu): [0]}


def test_the_history_is_a_list_to_step_through() -> None:
    model = onnxlab.load(small())
    hand, before = Hand(model), model.to_bytes()
    hand.edit("replace", ["relu"], {"op_type": "Sigmoid", "domain": ""})
    model.nodes["add"].name = "plus"
    hand.edit("insert_after", ["c"], {"op_type": "Relu", "domain": ""})
    found = hand.ask("history")["result"]
    assert found["position"] == 3
    assert [step["python"] for step in found["steps"]] == [
        "model.nodes['relu'].replace('Sigmoid')", "", "model.value('c').insert_after('Relu')",
    ]  # fmt: skip
    after = model.to_bytes()
    hand.ask("go_to", position=0)
    assert model.to_bytes() == before
    hand.ask("go_to", position=3)
    assert model.to_bytes() == after
    assert "4 steps" not in str(hand.ask("go_to", position=3))
    assert hand.ask("go_to", position=9)["error"]["code"] == "malformed"


def test_the_palette_lists_what_the_model_imports() -> None:
    hand = Hand(onnxlab.load(small()))
    found = {item["op"]: item for item in hand.ask("operators")["result"]["operators"]}
    assert len(found) > 150
    assert found["Conv"]["inputs"] == [2, 3]
    assert not any("::" in op for op in found)
    assert "convolution" in hand.ask("operator_doc", op="Conv")["result"]["text"]
    assert hand.ask("operator_doc", op="Convv")["error"]["code"] == "gone"


def test_small_tensors_are_sent_whole_and_large_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnxlab.load(wide())
    hand = Hand(model)
    table = hand.ask("elements", node=model.nodes["table"].id, name="value")["result"]
    assert table == {"dtype": "int64", "shape": [2, 2], "numbers": [1, 2, 3, 4]}
    assert hand.ask("elements", value=model.value("unused").id)["result"]["numbers"][-1] == 5
    model.value("unused").array = np.array([0.1, np.nan, 1e-8], np.float32)
    assert hand.ask("elements", value=model.value("unused").id)["result"]["numbers"] == [0.1, "nan", 1e-8]
    assert "no tensor" in hand.ask("elements", value=model.value("a").id)["error"]["message"]
    monkeypatch.setattr("onnxlab.notebook.session.editor.MOST_TYPED", 2)
    assert hand.ask("elements", value=model.value("unused").id)["error"]["code"] == "too_large"
