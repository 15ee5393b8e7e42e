"""Runs that a page asks for: statistics, stops, deadlines and failures."""

import threading
import time
from typing import Any

import pytest

import onnxlab
from onnxlab.limits import Limits
from tests.notebook.conftest import Page, edit


def test_a_run_replies_with_statistics(page: Page, model: onnxlab.Model) -> None:
    conv, relu = model.nodes[0], model.nodes[1]
    reply = page.ask("run", nodes=[conv.id, relu.id], seed=3)
    by_name = {value["name"]: value for value in reply["values"]}
    assert set(by_name) == {"c", "r"}
    assert by_name["r"]["min"] >= 0
    assert sum(by_name["c"]["histogram"]["counts"]) == by_name["c"]["count"]
    assert page.ask("value", value=model.value("r").id)["statistics"] == by_name["r"]
    model.nodes[0].attributes["strides"] = [2, 2]
    assert page.ask("value", value=model.value("r").id)["statistics"] is None
    progress = [event for event in page.events if event["event"] == "progress"]
    assert progress[-1]["done"] == progress[-1]["total"] == 2


def test_a_run_can_be_stopped(page: Page, model: onnxlab.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(nodes: Any, feeds: Any, *, limits: Any, progress: Any, seed: int) -> None:
        while True:
            limits.check()
            time.sleep(0.005)

    monkeypatch.setattr(model.runner, "run", slowly)
    run = page.send("run", nodes=None)
    assert page.ask("stop", run=run) == {"stopped": True}
    assert page.wait(run)["error"]["code"] == "stopped"
    assert page.ask("stop", run=run) == {"stopped": False}


def test_a_run_from_the_page_has_a_deadline(page: Page, model: onnxlab.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines: list[float | None] = []
    run = model.runner.run

    def noted(*args: Any, limits: Limits, **options: Any) -> Any:
        deadlines.append(limits.deadline)
        return run(*args, limits=limits, **options)

    monkeypatch.setattr(model.runner, "run", noted)
    page.ask("run", nodes=None)
    page.ask("run", nodes=None, deadline=5)
    page.ask("run", nodes=None, deadline=0)
    page.session.deadline = 1e-9
    late = page.wait(page.send("run", nodes=None))["error"]
    assert deadlines == [60, 5, None, 1e-9]
    assert late["code"] == "run"
    assert "view.deadline" in late["hint"]


def test_a_run_that_fails_names_its_node(page: Page, model: onnxlab.Model) -> None:
    pool = model.nodes["/head/pool"]
    page.ask("edit", **edit("set_attribute", pool, name="kernel_shape", value=[99, 99]))
    error = page.wait(page.send("run", nodes=None))["error"]
    assert (error["code"], error["node"]) == ("run", pool.id)


def test_results_of_a_model_that_was_edited_meanwhile_are_not_kept(
    page: Page, model: onnxlab.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.ask("run", nodes=None)
    began, go_on, run_nodes = threading.Event(), threading.Event(), model.runner.run_nodes

    def slowly(*chosen: Any, **named: Any) -> Any:
        arrays = run_nodes(*chosen, **named)
        began.set()
        assert go_on.wait(60)
        return arrays

    monkeypatch.setattr(model.runner, "run_nodes", slowly)
    value = model.value("r").id
    request = page.send("run", nodes=[model.nodes["/stem/relu"].id])
    assert began.wait(60)
    model.nodes["/stem/relu"].replace("Neg")
    go_on.set()
    assert [row["id"] for row in page.wait(request)["result"]["values"]] == [value]
    assert page.ask("value", value=value)["statistics"] is None
    assert page.wait(page.send("tensor", value=value, height=1))["result"]["source"] != "run"
