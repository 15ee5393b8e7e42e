"""Two models side by side: the difference as sent to the page, the numbers of both, and the exported page."""

import base64
import gzip
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxlab
from onnxlab.errors import EditError
from onnxlab.model.viewable_diffs import ModelComparison, ModelDiff
from onnxlab.notebook.panels.pairing import KINDS, Pairing, alone
from onnxlab.notebook.protocol.messages import ProtocolError
from onnxlab.notebook.protocol.pairs import PAIRS
from onnxlab.notebook.protocol.schema import mismatch
from onnxlab.notebook.session.pair_session import PairSession

SUBJECT = ModelDiff | ModelComparison


class Sides:
    """The far side of a session of two models."""

    def __init__(self, subject: SUBJECT) -> None:
        self.replies: dict[tuple[str, int], dict[str, Any]] = {}
        self.events: list[tuple[str, str]] = []
        self.arrived = threading.Condition()
        self.last = 0
        self.session = PairSession(subject, self._take)

    def _take(self, content: dict[str, Any], buffers: list[bytes]) -> None:
        message = json.loads(json.dumps(content["message"], allow_nan=False))
        with self.arrived:
            if "event" in message:
                self.events.append((content["side"], message["event"]))
            else:
                self.replies[content["side"], message["id"]] = message
            self.arrived.notify_all()

    def ask(self, side: str, method: str, **params: Any) -> dict[str, Any]:
        self.last += 1
        key = side, self.last
        message = {"id": self.last, "method": method, "params": params}
        self.session.receive({"side": side, "message": message})
        with self.arrived:
            assert self.arrived.wait_for(lambda: key in self.replies, timeout=100)
        return self.replies[key]


@pytest.fixture
def models() -> tuple[onnxlab.Model, onnxlab.Model]:
    return onnxlab.load(), onnxlab.load()


@pytest.fixture
def wrong(models: tuple[onnxlab.Model, onnxlab.Model]) -> Iterator[Sides]:
    models[1].nodes["/block1/conv1/Conv"].attributes["pads"] = [0, 0, 2, 2]
    sides = Sides(onnxlab.compare(*models, local=True))
    yield sides
    sides.session.close()


def test_changes_have_the_nodes_of_both_sides(models: tuple[onnxlab.Model, onnxlab.Model]) -> None:
    a, b = models
    b.nodes["/stem/relu/Relu"].op_type = "Abs"
    answer = Pairing(onnxlab.diff(a, b)).pair(again=False)
    relu = a.nodes["/stem/relu/Relu"].id, b.nodes["/stem/relu/Relu"].id
    (change,) = answer["changes"]
    assert (change["kind"], change["a_nodes"], change["b_nodes"]) == ("changed", [relu[0]], [relu[1]])
    assert [side["nodes"] for side in answer["colors"]] == [[relu[0]], [relu[1]]]
    assert answer["errors"] is None
    assert answer["sides"] == 2


def test_fused_nodes_and_what_reads_other_weights_are_colored() -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.simplify(verify=False)
    answer = Pairing(onnxlab.diff(a, b)).pair(again=False)
    kinds = dict(zip(answer["colors"][0]["nodes"], answer["colors"][0]["kinds"], strict=True))
    assert KINDS[kinds[a.nodes["/stem/bn/BatchNormalization"].id]] == "fused"
    assert KINDS[kinds[a.nodes["/head/Shape"].id]] == "removed"
    assert any(a.nodes["/stem/bn/BatchNormalization"].id in region["a_nodes"] for region in answer["regions"])


def test_the_pair_follows_edits(models: tuple[onnxlab.Model, onnxlab.Model]) -> None:
    pairing = Pairing(onnxlab.diff(*models))
    assert pairing.pair(again=False)["changes"] == []
    models[1].nodes["/stem/relu/Relu"].op_type = "Abs"
    assert len(pairing.pair(again=False)["changes"]) == 1


def test_errors_and_numbers_of_both_sides(wrong: Sides, models: tuple[onnxlab.Model, onnxlab.Model]) -> None:
    answer = wrong.ask("a", "pair", again=False)["result"]
    assert mismatch(PAIRS["pair"].answer, answer) == ""
    errors = answer["errors"]
    guilty = errors["a"][errors["guilty"][0]]
    assert models[0].graph.values[guilty].name == "block1/conv1_out"
    assert errors["diverges"] == errors["guilty"][0]
    assert len({len(errors[name]) for name in ("a", "b", "relative", "noise", "local", "first", "problems")}) == 1
    cells = {
        of: np.array(
            wrong.ask("a", "paired_tensor", value=guilty, of=of, at=[0, 0, 2, 2], height=2, width=2)["result"]["cells"]
        )
        for of in ("a", "b", "difference")
    }
    assert np.allclose(cells["b"] - cells["a"], cells["difference"], atol=1e-6)
    assert np.abs(cells["difference"]).max() > 0


def test_numbers_of_edited_models_are_refused_until_they_are_compared_again(
    wrong: Sides, models: tuple[onnxlab.Model, onnxlab.Model]
) -> None:
    value = models[0].value("block1/conv1_out").id
    models[1].undo()
    answer = wrong.ask("a", "pair", again=False)["result"]
    assert answer["stale"] is True
    reply = wrong.ask("a", "paired_tensor", value=value, of="a")
    assert "compare them again" in reply["error"]["message"]
    again = wrong.ask("a", "pair", again=True)["result"]
    assert (again["stale"], again["errors"]["diverges"]) == (False, -1)
    assert "result" in wrong.ask("a", "paired_tensor", value=value, of="difference")


@pytest.mark.parametrize("params", [{"value": 10**9, "of": "a"}, {"value": 1, "of": "neither"}])
def test_what_was_not_compared_is_refused(wrong: Sides, params: dict[str, Any]) -> None:
    assert wrong.ask("b", "paired_tensor", **params)["error"]["code"] in ("nothing", "malformed")


def test_both_sides_answer_as_views_of_their_model(wrong: Sides, models: tuple[onnxlab.Model, onnxlab.Model]) -> None:
    for side, model in zip("ab", models, strict=True):
        conv = model.nodes["/block1/conv1/Conv"]
        answers = {
            row["name"]: row["value"] for row in wrong.ask(side, "inspect", node=conv.id)["result"]["attributes"]
        }
        assert answers["pads"] == list(conv.attributes["pads"])
    models[1].nodes["/stem/relu/Relu"].op_type = "Abs"
    assert ("b", "commit") in wrong.events
    assert ("a", "commit") not in wrong.events


def test_messages_without_a_side_are_dropped_and_closed_sessions_let_go(wrong: Sides) -> None:
    for content in (None, [], {}, {"side": "c", "message": {}}, {"side": "a"}):
        wrong.session.receive(content)
    wrong.session.close()
    wrong.session.close()


def test_recorded_values_are_one_side(tmp_path: Path) -> None:
    model = onnxlab.load()
    run = model.run({"image": np.zeros((1, 1, 8, 8), np.float32)}, ["logits"])
    comparison = onnxlab.compare(model, {"logits": run["logits"] + 1}, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    pairing = Pairing(comparison)
    answer = pairing.pair(again=False)
    assert (answer["sides"], answer["errors"]["b"]) == (1, [0])
    assert answer["errors"]["diverges"] == 0
    part, _ = pairing.tensor(model.value("logits").id, "difference", rows=None, columns=None, at=None, top=0, left=0,
                             height=1, width=2, pixels=None)  # fmt: skip
    assert np.allclose(part["cells"], 1)
    assert comparison.to_html(tmp_path / "page.html").exists()


def test_a_view_of_one_model_refuses_questions_about_two() -> None:
    with pytest.raises(ProtocolError, match="shows one model"):
        alone(onnxlab.load(), again=False)


def test_arrays_of_edited_models_are_refused(models: tuple[onnxlab.Model, onnxlab.Model]) -> None:
    comparison = onnxlab.compare(*models)
    ours, theirs = comparison.arrays("logits")
    assert np.array_equal(ours, theirs)
    models[0].nodes["/stem/relu/Relu"].op_type = "Abs"
    with pytest.raises(EditError, match="compare them again"):
        comparison.arrays("logits")
    with pytest.raises(KeyError, match="was not compared"):
        comparison.arrays("nowhere")


def test_the_page_holds_both_models_and_no_markup_of_theirs(tmp_path: Path) -> None:
    a, b = onnxlab.load(), onnxlab.load()
    b.nodes["/stem/relu/Relu"].name = "<img src=x onerror=alert(1)></script>"
    page = onnxlab.diff(a, b).to_html(tmp_path / "diff.html").read_text(encoding="utf-8")
    assert "<img" not in page
    packed = re.search(r'id="model">([^<]*)<', page)
    assert packed is not None
    recorded = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    assert len(recorded["sides"]) == 2
    answer = recorded["sides"][0]["answers"]["pair"][""]
    assert [change["kind"] for change in answer["changes"]] == ["renamed"]


def test_changes_since_can_be_looked_at() -> None:
    model = onnxlab.load()
    model.nodes["/stem/relu/Relu"].op_type = "Abs"
    answer = Pairing(model.changes_since()).pair(again=False)
    assert [change["new"] for change in answer["changes"]] == ["Abs"]
    assert answer["colors"][0]["nodes"]


def test_a_view_closes_and_lets_go(models: tuple[onnxlab.Model, onnxlab.Model]) -> None:
    view = onnxlab.diff(*models).view(height=500)
    assert (view.height, view.sides, view.is_open) == (500, 2, True)
    assert "text/plain" in view._repr_mimebundle_()
    view.close()
    view.close()
    assert not view.is_open
    with pytest.raises(onnxlab.OnnxlabError, match="cannot be shown"):
        onnxlab.diff(*models).view(height=1)
