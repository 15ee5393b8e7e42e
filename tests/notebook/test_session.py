"""Questions of a view and their answers: one reply per request, events in order, refusals without effect."""

import base64
import builtins
import itertools
import os
import re
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.errors import JournalWarning, OnnxlabWarning
from onnxlab.graph.edit.changes import SetField
from onnxlab.notebook.protocol import outbox
from onnxlab.notebook.session.session import PROBE
from tests.notebook.conftest import Page, edit


def column(page: Page, name: str) -> list[int]:
    """A section of the last snapshot."""
    snapshot = page.replies[page.last]["result"]
    offset, length = snapshot["sections"][name]
    return np.frombuffer(page.buffers[page.last][0], "<i4")[offset : offset + length].tolist()


def test_hello_offers_a_probe_and_falls_back_to_base64(page: Page) -> None:
    assert page.ask("hello")["session"] == page.session.id
    assert page.buffers[page.last] == [PROBE]
    page.ask("probe", ok=False)
    page.ask("snapshot")
    reply = page.replies[page.last]
    assert page.buffers[page.last] == []
    page.ask("probe", ok=True)
    page.ask("snapshot")
    assert base64.b64decode(reply["b64"][0]) == page.buffers[page.last][0]


def names(page: Page, of: str = "names") -> list[str]:
    """Names of the last snapshot in full."""
    decoded = [""]
    for coded in page.replies[page.last]["result"][of]:
        decoded.append(decoded[-1][: ord(coded[0]) - ord("0")] + coded[1:])
    return decoded[1:]


def test_a_snapshot_holds_wires_names_labels_and_groups(page: Page, model: onnxlab.Model) -> None:
    snapshot = page.ask("snapshot")
    assert (snapshot["n"], snapshot["m"]) == (4, 6)
    assert names(page) == ["/stem/conv", "/stem/relu", "/head/pool", "/head/flatten"]
    assert [snapshot["ops"][number] for number in column(page, "node_op")] == ["Conv", "Relu", "MaxPool", "Flatten"]
    assert {group["name"] for group in snapshot["groups"]} == {"stem", "head"}
    values = dict(zip(column(page, "value_id"), names(page, "value_names"), strict=True))
    pointers, flat = column(page, "in_ptr"), column(page, "in_val")
    assert [[values[vid] for vid in flat[low:high]] for low, high in itertools.pairwise(pointers)] == [
        ["x", "w"], ["c"], ["r"], ["p"],
    ]  # fmt: skip
    labels = dict(
        zip(names(page, "value_names"), (snapshot["labels"][i] for i in column(page, "value_label")), strict=True)
    )
    assert labels["p"] == "n×4×4×4"
    assert {snapshot["types"][place] for place in column(page, "value_label")} == {"float32"}
    flags = dict(zip(names(page, "value_names"), column(page, "value_flags"), strict=True))
    assert (flags["x"], flags["y"], flags["w"], flags["c"]) == (1, 2, 4, 0)


def test_an_edit_sends_its_effect_before_its_reply(page: Page, model: onnxlab.Model) -> None:
    conv = model.nodes["/stem/conv"]
    version = page.ask("snapshot")["version"]
    reply = page.ask("edit", **edit("set_attribute", conv, name="strides", value=[2, 2]), version=version)
    (event,) = page.events
    assert event["version"] == reply["version"] == version + 1
    assert event["origin"] == page.session.id
    facts = {value: fact for value, *fact in zip(*event["facts"], strict=True)}
    assert facts[model.value("p").id] == ["n×4×2×2", "float32"]
    assert event["refusal"] is None
    assert event["groups"] is None
    assert event["history"]["undo"] == "set strides of /stem/conv"
    page.ask("undo", version=reply["version"])
    assert page.events[-1]["kind"] == "undo"
    assert not page.events[-1]["dirty"]


def test_a_snapshot_that_was_made_ahead_is_of_the_model_as_it_is(page: Page) -> None:
    page.session.prepare()
    assert page.ask("snapshot") == page.ask("snapshot")
    page.session.prepare()
    page.model.nodes[0].name = "another"
    assert any(name.endswith("another") for name in page.ask("snapshot")["names"])


def test_the_page_knows_the_opsets_as_they_are(page: Page) -> None:
    before = dict(page.model.opsets)
    assert page.ask("snapshot")["opsets"] == before
    page.model.opsets["com.example"] = 1
    assert page.events[-1]["opsets"] == {**before, "com.example": 1}


def test_renaming_a_node_into_another_scope_moves_it(page: Page, model: onnxlab.Model) -> None:
    relu = model.nodes["/stem/relu"]
    page.ask("edit", **edit("rename_node", relu, name="/head/relu"))
    event = page.events[-1]
    assert [group["name"] for group in event["groups"]] == ["head"]
    (record,) = [node for node in event["nodes"] if node["id"] == relu.id]
    assert record["group"] == event["groups"][0]["id"]


def test_removing_with_bypass_joins_the_wires(page: Page, model: onnxlab.Model) -> None:
    relu, pool = model.nodes["/stem/relu"], model.nodes["/head/pool"]
    page.ask("edit", **edit("remove_nodes", relu, bypass=True))
    event = page.events[-1]
    assert event["removed_nodes"] == [relu.id]
    assert next(node for node in event["nodes"] if node["id"] == pool.id)["inputs"] == [model.value("c").id]
    assert [diagnostic["severity"] for diagnostic in event["diagnostics"]] == []


@pytest.mark.parametrize(
    ("name", "parameters", "code"),
    [
        ("set_attribute", {"name": "strides", "value": "wide"}, "refused"),
        ("set_attribute", {"name": "strides", "value": [1.5, 2]}, "refused"),
        ("set_attribute", {"name": "stride", "value": [1, 1]}, "refused"),
        ("set_attribute", {"name": "auto_pad", "value": "SOMEHOW"}, "refused"),
        ("set_attribute", {"name": "group", "value": "9223372036854775808"}, "refused"),
        ("rename_node", {"name": "/stem/relu"}, "refused"),
        ("rename_node", {"name": None}, "malformed"),
        ("rename_node", {"name": "x" * (1 << 21)}, "malformed"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    page: Page, model: onnxlab.Model, name: str, parameters: dict[str, Any], code: str
) -> None:
    assert page.refused("edit", **edit(name, model.nodes[0], **parameters))["code"] == code


def test_a_parameter_too_many_is_refused(page: Page, model: onnxlab.Model) -> None:
    assert page.refused("inspect", node=model.nodes[0].id, extra=1)["code"] == "malformed"


@pytest.mark.parametrize(
    "content", [None, [], "undo", {}, {"id": 0}, {"id": "1"}, {"id": 5}, {"id": 5, "method": "eval"}]
)
def test_a_message_that_is_no_request_gets_one_error(page: Page, content: object) -> None:
    before = page.model.to_bytes()
    page.session.receive(content)
    (reply,) = page.replies.values()
    assert reply["error"]["code"] in ("malformed", "unknown_method")
    assert page.model.to_bytes() == before


def test_a_node_that_is_gone_is_said_to_be(page: Page) -> None:
    assert page.refused("inspect", node=99_999)["code"] == "gone"
    assert page.refused("edit", **edit("rename_node", 99_999, name="n"))["code"] == "gone"


def test_two_views_stay_equal(page: Page, model: onnxlab.Model) -> None:
    other = Page(model)
    page.ask("edit", **edit("set_attribute", model.nodes[0], name="group", value=1))
    model.nodes[1].name = "activation"
    assert [event["label"] for event in other.events] == [event["label"] for event in page.events]
    page.ask("snapshot"), other.ask("snapshot")
    ours, theirs = page.replies[page.last]["result"], other.replies[other.last]["result"]
    assert ours == theirs
    assert page.buffers[page.last] == other.buffers[other.last]
    other.session.close()


def test_a_stale_edit_of_what_python_changed_is_a_conflict(page: Page, model: onnxlab.Model) -> None:
    version = page.ask("snapshot")["version"]
    model.nodes[0].attributes["strides"] = [2, 2]
    node, other = model.nodes[0].id, model.nodes[1].id
    stale = edit("set_attribute", node, name="strides", value=[4, 4])
    assert page.refused("edit", **stale, version=version)["code"] == "conflict"
    assert page.refused("undo", version=version)["code"] == "conflict"
    page.ask("edit", **edit("rename_node", other, name="free"), version=version)  # untouched since: still applied
    assert model.nodes[1].name == "free"


def test_a_stale_edit_after_ones_own_is_none(page: Page, model: onnxlab.Model) -> None:
    version = page.ask("snapshot")["version"]
    for stride in (2, 4):
        request = edit("set_attribute", model.nodes[0], name="strides", value=[stride] * 2)
        page.ask("edit", **request, version=version)
    assert model.nodes[0].attributes["strides"] == [4, 4]


def test_events_are_numbered_without_a_gap(page: Page, model: onnxlab.Model) -> None:
    for number in range(20):
        model.nodes[0].name = f"n{number}"
    assert [event["seq"] for event in page.events] == list(range(1, 21))


@pytest.mark.parametrize("pause", [0.0, 0.001], ids=["at once", "longer than a gap"])
def test_a_burst_of_edits_is_cut_short_by_a_gap(
    page: Page, model: onnxlab.Model, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "RATE", 1.0)  # a machine that is busy enough makes edits more slowly than its own rate
    for number in range(500):
        model.nodes[0].name = f"n{number}"
        time.sleep(pause)
    sent = page.session._outbox
    with page.arrived:  # where edits go on after a gap was shown, the last of them may be sent
        assert page.arrived.wait_for(lambda: page.events[-1]["seq"] == sent.seq, timeout=100)
    assert len(page.events) < sent.seq
    assert page.events[-1]["seq"] >= 500
    assert "history" in [event["event"] for event in page.events]
    assert page.ask("snapshot")["names"][0] == "0n499"
    assert page.replies[page.last]["result"]["seq"] == page.events[-1]["seq"]


def test_closing_lets_go_of_the_model(page: Page, model: onnxlab.Model) -> None:
    page.session.close()
    page.session.close()
    model.nodes[0].name = "after"
    assert [event["event"] for event in page.events] == ["closed"]
    assert model._subscribers == []
    again = Page(model)
    assert again.ask("snapshot")["names"][0] == "0after"
    again.session.close()


def test_edits_from_threads_arrive_in_order(page: Page, model: onnxlab.Model) -> None:
    def edit(start: int) -> None:
        for number in range(10):
            model.nodes[start].name = f"t{start}-{number}"

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event["version"] for event in page.events] == list(range(2, 42))
    assert [event["seq"] for event in page.events] == list(range(1, 41))


def test_a_dim_is_explained(page: Page, model: onnxlab.Model) -> None:
    value = model.outputs[0].id
    explanation = page.ask("explain", value=value, axis=0)
    assert explanation["text"] == str(model.explain(value, 0))
    assert explanation["steps"][0]["value"] == value
    assert explanation["lost"] == -1
    assert page.ask("explain", value=value)["fact"] == str(model.fact(value))
    assert page.refused("explain", value=value, axis=9)["code"] == "gone"


def test_edits_that_were_never_saved_are_offered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXLAB_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "model.onnx"
    path.write_bytes(onnxlab.load().to_bytes())

    def left_behind(origin: str | None) -> None:
        child = os.fork()
        if child == 0:
            lost = onnxlab.load(path)
            lost.graph.apply(SetField(("model", 0), "producer_name", "me"), label="name it", origin=origin)
            vars(builtins)["__IPYTHON__"] = True
            lost.graph.journal._holder.at_end()  # type: ignore[attr-defined]
            os._exit(0)
        os.waitpid(child, 0)

    def opened() -> tuple[onnxlab.Model, Page]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", JournalWarning)
            model = onnxlab.load(path)
        return model, Page(model)

    left_behind(None)
    _, page = opened()
    assert page.ask("snapshot")["history"]["recoverable"] is None, "Python's edits are offered to Python alone"
    left_behind("a view")
    model, page = opened()
    assert re.fullmatch(r"1 edit of .* \('name it'\)", page.ask("snapshot")["history"]["recoverable"])
    assert page.ask("recover") == {"steps": 1}
    assert (model.proto.producer_name, page.events[-1]["history"]["recoverable"]) == ("me", None)
    page.ask("undo", version=page.events[-2]["version"])
    assert page.events[-1]["history"]["recoverable"] is None
    model.graph.journal.begin(None)  # type: ignore[attr-defined]
    left_behind("a view")
    model, page = opened()
    page.ask("discard")
    assert page.events[-1]["history"]["recoverable"] is None
    assert "no edits to recover" in page.refused("recover")["message"]


def test_edits_that_the_history_dropped_are_listed_and_not_gone_back_to(page: Page, model: onnxlab.Model) -> None:
    model.nodes[0].name = "a"
    model.nodes[0].name = "b"
    with pytest.warns(OnnxlabWarning, match="undone no more"):
        model.history.budget = 0
    model.history.budget = 1 << 20
    model.nodes[0].name = "c"
    history = page.ask("history")
    assert (len(history["steps"]), history["position"], history["dropped"]) == (3, 3, 2)
    version = page.events[-1]["version"]
    assert "can be undone no more" in page.refused("go_to", position=1, version=version)["message"]
    assert model.nodes[0].name == "c"
    page.ask("go_to", position=2, version=version)
    assert (model.nodes[0].name, page.events[-1]["history"]["undo"]) == ("b", None)
    assert "can be undone no more" in page.refused("undo", version=page.events[-1]["version"])["message"]
