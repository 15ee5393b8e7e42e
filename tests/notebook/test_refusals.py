"""Whatever a page sends: one reply to each message, and what is refused has changed nothing."""

import base64
import json
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import onnxlab
from onnxlab.graph.edits import EDITS
from onnxlab.notebook.protocol.methods import METHODS
from onnxlab.notebook.protocol.schema import MAX_TEXT
from onnxlab.notebook.session.session import Session
from tests.notebook.conftest import Page, edit

LATER = {
    "run", "overlay", "profile", "rewrites", "gains", "rewrite", "memory", "watches", "check",
    "pair", "paired_tensor", "paired_nodes", "compare_values", "counterparts", "compare",
}  # fmt: skip
"""Answered on a thread of their own, and tested where they are at home."""

IDS = st.integers(0, 12)
SCALARS = (
    st.none() | st.booleans() | IDS | st.floats() | st.text(max_size=5) | st.sampled_from(["x", "Relu", "value", "?"])
)
JUNK = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
GIVEN = st.dictionaries(
    st.sampled_from(sorted({key for spec in EDITS.values() for key in spec.parameters})), JUNK, max_size=5
)


@st.composite
def requests(draw: st.DrawFn) -> Any:
    """Mostly well-formed requests with wrong insides; some that are none at all."""
    method = draw(st.sampled_from([name for name in METHODS if name not in LATER]))
    params = {name: draw(JUNK | IDS | st.lists(IDS, max_size=3)) for name in METHODS[method].parameters}
    if method == "edit":
        name = draw(st.sampled_from(list(EDITS)))
        takes = {key: draw(JUNK | IDS) for key in EDITS[name].parameters}
        params.update(edit=name, on=draw(st.sampled_from([*EDITS[name].subjects, "nodes"])))
        params.update(subject=draw(st.lists(IDS, max_size=2)), parameters=draw(st.just(takes) | GIVEN))
    whole = {"id": draw(st.integers(1, 2**53 - 1)), "method": method, "params": params}
    return draw(st.just(whole) | st.just(whole) | st.just({**whole, "id": draw(JUNK)}) | JUNK)


def small() -> onnx.ModelProto:
    """x → Add(w) → Relu → y."""
    nodes = [helper.make_node("Add", ["x", "w"], ["a"], "add"), helper.make_node("Relu", ["a"], ["y"], "relu")]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    weight = numpy_helper.from_array(np.ones(2, np.float32), "w")
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight]), ir_version=10)


@settings(max_examples=150, deadline=None)
@given(st.lists(requests(), min_size=1, max_size=4))
def test_what_is_refused_has_changed_nothing(messages: list[Any]) -> None:
    model = onnxlab.load(small())
    sent: list[dict[str, Any]] = []
    session = Session(model, lambda content, buffers: sent.append(content))
    for message in messages:
        before, seen = model.to_bytes(), len(sent)
        session.receive(message)
        replies = [reply for reply in sent[seen:] if "event" not in reply]
        assert len(replies) == 1, "each message has one reply"
        json.dumps(replies[0], allow_nan=False)
        if "error" in replies[0]:
            assert model.to_bytes() == before, replies[0]
            assert replies[0]["error"]["code"] != "internal", (message, replies[0])
    while model.undo() is not None:
        pass
    assert model.to_bytes() == onnxlab.load(small()).to_bytes()
    session.close()


def test_what_is_too_large_is_refused() -> None:
    model = onnxlab.load(small())
    sent: list[dict[str, Any]] = []
    session = Session(model, lambda content, buffers: sent.append(content))
    node = model.nodes["relu"].id
    long = "x" * (MAX_TEXT + 1)
    for method, params in (
        ("edit", edit("rename_node", node, name=long)),
        ("edit", edit("set_doc_string", node, text=long)),
        ("edit", edit("duplicate_nodes", *[node] * (MAX_TEXT + 1), on="nodes")),
        ("upload", {"file": "a", "name": "a", "offset": 0, "data": base64.b64encode(long.encode()).decode()}),
    ):
        session.receive({"id": 1, "method": method, "params": params})
        assert sent[-1]["error"]["code"] == "malformed", method
        assert len(sent[-1]["error"]["message"]) < 300
    assert model.version == 0


def test_what_cannot_be_meant_is_refused_with_one_reply() -> None:
    model = onnxlab.load(small())
    sent: list[dict[str, Any]] = []
    session = Session(model, lambda content, buffers: sent.append(content))
    node, deep = model.nodes["relu"].id, []
    for _ in range(5000):
        deep = [deep]
    far = [edit("set_input", node, slot=2**31 - 1, value=value) for value in (0, model.value("x").id)]
    for number, params, method, code in (
        (1, {"node": deep}, "inspect", "malformed"),
        (2, edit("rename_node", node, name="half \ud800 of a pair"), "edit", "malformed"),
        (3, {**far[0], "version": None}, "edit", "refused"),
        (4, far[1], "edit", "refused"),
        (5, {"file": "f", "name": "f.npy", "offset": 0, "data": "½"}, "upload", "malformed"),
        (6, edit("set_opset", domain="nope", version=0), "edit", "gone"),
    ):
        session.receive({"id": number, "method": method, "params": params})
        assert (sent[-1]["id"], sent[-1]["error"]["code"]) == (number, code), sent[-1]
    session.receive({"id": deep, "method": "inspect", "params": {}})
    assert sent[-1]["error"]["code"] == "malformed"
    assert model.version == 0
    session.close()


@pytest.mark.parametrize("shape", [["N"], [-1], [0, 2**62, 2**62], [2**62]], ids=str)
def test_a_tensor_by_hand_of_a_shape_that_none_has(page: Page, model: onnxlab.Model, shape: list[Any]) -> None:
    tensor = {"dtype": "float32", "shape": shape, "numbers": 1}
    reply = page.refused("edit", **edit("set_attribute", model.nodes[0], name="w2", value=tensor))
    assert reply["code"] in ("refused", "malformed"), reply
