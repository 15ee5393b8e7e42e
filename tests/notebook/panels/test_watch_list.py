"""Watches as the page adds, lists and removes them."""

import onnxlab
from tests.notebook.conftest import Page


def test_the_page_adds_lists_and_removes_watches(page: Page, model: onnxlab.Model) -> None:
    assert page.ask("watches")["watches"] == []
    value = model.value("r").id
    (watch,) = page.ask("watch", value=value, text="min >= 0")["watches"]
    assert (watch["name"], watch["state"], watch["values"]) == ("r", "unknown", [value])
    page.ask("run", nodes=None)
    assert page.ask("watches")["watches"][0]["state"] == "holds"
    everything = page.ask("watch", value=None, text="max < 0")["watches"][1]
    assert (everything["name"], everything["state"]) == ("*", "fails")
    assert everything["why"]
    model.nodes["/stem/relu"].op_type = "Neg"
    assert page.ask("watches")["watches"][0]["state"] == "unknown"
    assert [row["text"] for row in page.ask("unwatch", place=0)["watches"]] == ["max < 0"]


def test_what_cannot_be_read_is_refused_in_words(page: Page, model: onnxlab.Model) -> None:
    assert "measures are" in page.refused("watch", value=model.value("r").id, text="min >")["message"]
    assert page.refused("watch", value=10**9, text="nan == 0")["code"] == "gone"
    assert page.refused("watch", value=None, text="__import__('os')")["code"] == "failed"
    assert page.ask("watches")["watches"] == []
