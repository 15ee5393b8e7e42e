"""Edits by hand: each gesture does what its line of Python does, and undo takes it back to the byte."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.notebook.gestures import GESTURES
from onnxlab.notebook.session import Session


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

Case = tuple[str, list[str], dict[str, Any]]
CASES: list[Case] = [
    ("add_node", [], {"op_type": "Sigmoid", "domain": "", "inputs": ["a"]}),
    ("duplicate", ["relu"], {}),
    ("duplicate", ["add", "relu"], {}),
    ("replace", ["relu"], {"op_type": "Sigmoid", "domain": ""}),
    ("connect", ["relu"], {"slot": 0, "value": "c"}),
    ("insert_before", ["relu"], {"slot": 0, "op_type": "Identity", "domain": ""}),
    ("insert_after", ["c"], {"op_type": "Relu", "domain": ""}),
    ("add_output", ["c"], {}),
    ("remove_output", ["y"], {}),
    ("to_input", ["w"], {}),
    ("to_constant", ["w"], {}),
    ("set_shape", ["x"], {"shape": [1, 3, "height", "?"]}),
    ("set_dtype", ["x"], {"dtype": "float16"}),
]


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
        value = GESTURES[gesture].subject == "value"
        ids = [(self.model.value if value else self.model.nodes.__getitem__)(name).id for name in subject]
        values = {key: self.model.value(name).id for key, name in given.items() if key == "value"}
        lists = {key: [self.model.value(name).id for name in names] for key, names in given.items() if key == "inputs"}
        return self.ask("edit", gesture=gesture, subject=ids, given={**given, **values, **lists})


@pytest.mark.parametrize(("gesture", "subject", "given"), CASES, ids=[f"{each[0]}-{len(each[1])}" for each in CASES])
def test_a_gesture_does_what_its_line_does(gesture: str, subject: list[str], given: dict[str, Any]) -> None:
    original = small().SerializeToString(deterministic=True)
    by_hand, by_line = onnxlab.load(original), onnxlab.load(original)
    hand = Hand(by_hand)
    reply = hand.edit(gesture, subject, given)
    assert "result" in reply, reply
    exec(reply["result"]["python"], {"model": by_line})
    assert by_hand.proto.SerializeToString(deterministic=True) == by_line.proto.SerializeToString(deterministic=True)
    assert by_hand.to_bytes() != original
    event = next(message for message in hand.sent if message.get("event") == "commit")
    assert event["python"] == reply["result"]["python"]
    assert by_hand.undo() is not None
    assert by_hand.to_bytes() == original


def test_every_gesture_is_tried() -> None:
    assert {case[0] for case in CASES} | {"to_initializer"} == set(GESTURES)


def test_an_initializer_becomes_an_input_and_comes_back() -> None:
    model = onnxlab.load(small())
    hand = Hand(model)
    hand.edit("to_input", ["w"], {})
    refused = hand.edit("to_initializer", ["w"], {})
    assert refused["error"]["code"] == "refused", "there is no default to store"


@pytest.mark.parametrize(
    ("gesture", "subject", "given", "words"),
    [
        ("explode", [], {}, "no gesture 'explode'"),
        ("duplicate", [], {}, "one nodes"),
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
