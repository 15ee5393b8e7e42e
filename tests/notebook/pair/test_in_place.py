"""A second model in the place of a view: what can be chosen, what the page may ask for, and the way back."""

import base64
import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import IPython
import numpy as np
import pytest
import traitlets

import onnxlab
from onnxlab.errors import OnnxlabError, RunStopped
from onnxlab.notebook.protocol.pairs import PAIRS
from onnxlab.notebook.protocol.schema import mismatch
from onnxlab.notebook.widgets.widget import ModelWidget


class Far:
    """The page of a widget: asks as the page does, by side or as the single view."""

    def __init__(self, view: ModelWidget, monkeypatch: pytest.MonkeyPatch) -> None:
        self.view = view
        self.replies: dict[int, dict[str, Any]] = {}
        self.arrived = threading.Condition()
        self.last = 0
        monkeypatch.setattr(view, "send", self._take)

    def _take(self, content: dict[str, Any], buffers: Any = None) -> None:
        message = content.get("message", content)
        with self.arrived:
            if "id" in message:
                self.replies[message["id"]] = message
            self.arrived.notify_all()

    def begin(self, method: str, side: str = "", **params: Any) -> int:
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        content = {"side": side, "message": message} if side else message
        self.view._handle_custom_msg(content, [])  # noqa: SLF001 (as ipywidgets does)
        return self.last

    def wait(self, request: int) -> dict[str, Any]:
        with self.arrived:
            assert self.arrived.wait_for(lambda: request in self.replies, timeout=100)
        return self.replies[request]

    def ask(self, method: str, side: str = "", **params: Any) -> dict[str, Any]:
        return self.wait(self.begin(method, side, **params))

    def listed(self) -> list[dict[str, Any]]:
        answer = self.ask("counterparts")["result"]
        assert mismatch(PAIRS["counterparts"].answer, answer) == ""
        rows: list[dict[str, Any]] = answer["counterparts"]
        return rows


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Far]:
    model = onnxlab.load()
    model.save(tmp_path / "own.onnx")
    model.nodes["/stem/relu/Relu"].op_type = "Abs"
    model.nodes["/block1/conv1/Conv"].attributes["pads"] = [0, 0, 2, 2]
    view = ModelWidget(model)
    yield Far(view, monkeypatch)
    view.close()


def test_states_models_and_files_are_offered_without_their_paths(
    far: Far, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnxlab.load().save(tmp_path / "other.onnx")
    (tmp_path / "notes.txt").write_text("no model")
    held = onnxlab.load()

    variables = {"model": far.view.model, "other": held, "_hidden": onnxlab.load(), "number": 3}
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(user_ns=variables))
    rows = far.listed()
    titles = [(row["kind"], row["title"]) for row in rows if row["kind"] != "model" or row["title"] == "other"]
    assert titles == [
        ("state", "own.onnx"),
        ("state", "as loaded"),
        ("state", "after: make /stem/relu/Relu a Abs"),
        ("model", "other"),
        ("file", "other.onnx"),
    ]
    assert not any(str(tmp_path) in str(row) for row in rows)


@pytest.mark.parametrize(("title", "place"), [("as loaded", 0), ("own.onnx", 0), ("other.onnx", 1)])
def test_a_state_comes_first_and_another_model_second(far: Far, tmp_path: Path, title: str, place: int) -> None:
    onnxlab.load().save(tmp_path / "other.onnx")
    chosen = next(row["id"] for row in far.listed() if row["title"] == title)
    assert far.ask("compare", counterpart=chosen)["result"] == {}
    assert far.view.sides == 2
    pair = far.ask("pair", "a", again=False)["result"]
    assert mismatch(PAIRS["pair"].answer, pair) == ""
    assert title in pair["names"][place]
    assert pair["counts"] == {"changed": 2}
    operator = next(change for change in pair["changes"] if change["field"] == "operator")
    assert (operator["old"], operator["new"]) == (("Relu", "Abs") if place == 0 else ("Abs", "Relu"))


def test_a_file_of_the_page_is_compared_and_stays_apart(far: Far) -> None:
    data = base64.b64encode(onnxlab.load().to_bytes()).decode()
    far.ask("upload", file="f", name="sent.onnx", offset=0, data=data)
    before = far.view.model
    assert far.ask("compare", file="f")["result"] == {}
    assert far.view.model is before
    assert far.ask("pair", "b", again=False)["result"]["names"][1] == "sent.onnx"


def test_what_is_no_model_or_no_choice_is_refused_and_the_view_stays(far: Far) -> None:
    far.ask("upload", file="f", name="sent.onnx", offset=0, data=base64.b64encode(b"no model at all").decode())
    assert "sent.onnx" in far.ask("compare", file="f")["error"]["message"]
    assert far.ask("compare", counterpart="../../etc/passwd")["error"]["code"] == "gone"
    for params in ({}, {"counterpart": "1", "file": "f"}, {"file": "unknown"}):
        assert far.ask("compare", **params)["error"]["code"] == "malformed"
    assert far.view.sides == 0
    with pytest.raises(traitlets.TraitError, match="show_pair"):
        far.view.sides = 2  # the page cannot make a pair of nothing


def test_a_choice_of_a_history_that_went_on_otherwise_is_refused(far: Far) -> None:
    chosen = next(row["id"] for row in far.listed() if row["title"].startswith("after"))
    model = far.view.model
    model.undo()
    model.undo()
    model.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
    assert "other edits" in far.ask("compare", counterpart=chosen)["error"]["message"]


def test_a_listed_model_is_not_kept_alive(far: Far, tmp_path: Path) -> None:
    other = ModelWidget(onnxlab.load())
    other.model.save(tmp_path / "short_lived.onnx")
    alive = weakref.ref(other.model)
    named = [row["id"] for row in far.listed() if (row["kind"], row["title"]) == ("model", "short_lived.onnx")]
    other.close()
    del other
    gc.collect()
    assert alive() is None
    (chosen,) = named
    assert far.ask("compare", counterpart=chosen)["error"]["code"] == "gone"


def test_a_file_that_is_gone_is_refused(far: Far, tmp_path: Path) -> None:
    chosen = next(row["id"] for row in far.listed() if row["title"] == "own.onnx")
    (tmp_path / "own.onnx").unlink()
    assert "own.onnx" in far.ask("compare", counterpart=chosen)["error"]["message"]


def test_the_page_ends_a_pair_and_another_model_does_too(far: Far) -> None:
    far.view.show_pair(onnxlab.diff(far.view.model, onnxlab.load()))
    far.view.set_state({"sides": 0})
    assert "error" not in far.ask("snapshot")  # the one model answers again
    far.view.show_pair(onnxlab.diff(far.view.model, onnxlab.load()))
    far.view.show_model(onnxlab.load())
    assert far.view.sides == 0
    far.view.close()
    with pytest.raises(OnnxlabError, match="closed"):
        far.view.show_pair(None)


def test_values_are_compared_on_inputs_of_the_page(far: Far) -> None:
    far.view.show_pair(onnxlab.diff(onnxlab.load(), far.view.model))
    answer = far.ask("compare_values", "a", local=True, inputs={"image": {"how": "ones"}}, sizes={"batch": 3})
    result = answer["result"]
    assert mismatch(PAIRS["compare_values"].answer, result) == ""
    errors = result["errors"]
    first = far.view.model.graph.values[errors["b"][errors["diverges"]]].name
    assert first == "stem/relu_out"
    part = far.ask("paired_tensor", "a", value=errors["a"][0], of="a")["result"]
    assert part["shape"][0] == 3
    assert "image" in far.ask("compare_values", "a", local=False, inputs={"no": {"how": "ones"}})["error"]["message"]


def test_a_comparison_of_values_can_be_stopped(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    far.view.show_pair(onnxlab.diff(onnxlab.load(), far.view.model))
    begun, ended = threading.Event(), threading.Event()

    def slow(*models: Any, limits: onnxlab.Limits, **options: Any) -> None:
        begun.set()
        assert limits.stop.wait(100)
        ended.set()
        raise RunStopped("the run was stopped")

    monkeypatch.setattr("onnxlab.notebook.panels.pairing.compare", slow)
    request = far.begin("compare_values", "a", local=False)
    assert begun.wait(100)
    assert "under way" in far.ask("compare_values", "b", local=False)["error"]["message"]
    assert far.ask("stop_comparing", "a")["result"] == {"stopped": True}
    assert far.wait(request)["error"]["code"] == "stopped"
    assert ended.is_set()
    assert far.ask("stop_comparing", "a")["result"] == {"stopped": False}


def test_nodes_stand_side_by_side_with_how_far_weights_are_apart(far: Far) -> None:
    model, other = far.view.model, onnxlab.load()
    name = other.nodes["/block1/conv1/Conv"].inputs[1].name
    weights = other.value(name).array.copy()
    weights.reshape(-1)[:5] += np.float32(0.5)
    other.value(name).array = weights
    far.view.show_pair(onnxlab.diff(other, model))
    nodes = {side: owner.nodes["/block1/conv1/Conv"].id for side, owner in (("a", other), ("b", model))}
    answer = far.ask("paired_nodes", "a", **nodes)["result"]
    assert mismatch(PAIRS["paired_nodes"].answer, answer) == ""
    rows = {row["part"]: row for row in answer["rows"]}
    assert [part for part, row in rows.items() if row["differs"]] == ["pads", "input 1"]
    assert (rows["pads"]["a"], rows["pads"]["b"]) == ("[1, 1, 1, 1]", "[0, 0, 2, 2]")
    assert rows["input 1"]["weights"].startswith("5 of 576 elements differ, by at most 0.5, ")
    alone = far.ask("paired_nodes", "a", a=None, b=nodes["b"])["result"]["rows"]
    assert all(row["a"] == "" for row in alone)
    assert far.ask("paired_nodes", "a", a=99_999, b=None)["error"]["code"] == "gone"
