"""Questions of the page beside edits: files in pieces, parts of the model, the palette, small tensors."""

import base64
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxlab
from onnxlab.notebook.session.session import Session
from tests.notebook.hand import Hand, small, wide


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
    assert [node.name for node in part.nodes] == ["one", "add", "relu"], "Constants come along"
    assert {value.name for value in part.inputs} == {"c"}
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
    copies = Hand(model).ask("copies", nodes=[model.nodes["/layer.1/neg"].id])["result"]["copies"]
    assert [[model.node(ident).name for ident in copy] for copy in copies] == [["/layer.0/neg"], ["/layer.2/neg"]]


def test_the_palette_lists_what_the_model_imports() -> None:
    hand = Hand(onnxlab.load(small()))
    operators = {item["op"]: item for item in hand.ask("operators")["result"]["operators"]}
    assert len(operators) > 150
    assert operators["Conv"]["inputs"] == [2, 3]
    assert not any("::" in op for op in operators)
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
