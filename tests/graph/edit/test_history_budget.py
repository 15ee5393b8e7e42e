"""The budget of the history: the oldest steps go, the others undo to the same bytes, and followers are notified."""

import gc
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from weakref import ref

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import onnxlab
from onnxlab.errors import EditError, JournalWarning, OnnxlabWarning
from onnxlab.graph.protos.long_lists import LONG

COUNT = LONG + 4
LIST = 2 * COUNT
"""Bytes of a list of integers that need two bytes each, as the history keeps it."""
NAME = len("f_y")


def forest() -> onnx.ModelProto:
    """Two nodes with a long list each."""
    info = helper.make_tensor_value_info
    nodes = [
        helper.make_node("F", [a], [b], name=f"f_{b}", domain="d", a=list(range(1000, 1000 + COUNT)))
        for a, b in ("xy", "yz")
    ]
    graph = helper.make_graph(nodes, "g", [info("x", 1, [2])], [info("z", 1, [2])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("d", 1)])


def opened(budget: int | None = None) -> onnxlab.Model:
    model = onnxlab.load(forest())
    if budget is not None:
        model.history.budget = budget
    return model


def edit(model: onnxlab.Model, number: int, node: int = 0) -> None:
    """Another list of the same length."""
    model.nodes[node].attributes["a"] = list(range(10_000 + number, 10_000 + number + COUNT))


def test_the_oldest_steps_go_with_one_warning() -> None:
    model = opened(2 * LIST + NAME)
    edit(model, 0)
    edit(model, 1)
    assert (model.history.held, model.history.dropped) == (2 * LIST, [])
    after_two = model.to_bytes()
    with pytest.warns(OnnxlabWarning, match=r"the oldest edit can be undone no more.*model\.history\.budget"):
        edit(model, 2, node=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        model.nodes[0].name = "renamed"
        edit(model, 3)
    history = model.history
    assert (len(history.dropped), len(history.labels), history.position, len(history)) == (2, 3, 5, 5)
    assert repr(history).endswith(", dropped=2)")
    assert history.held <= history.budget
    while history.labels:
        model.undo()
    assert (model.to_bytes(), history.position) == (after_two, 2)
    for go in (model.undo, lambda: model.undo(0), lambda: model.graph.travel(1), history.to_python):
        with pytest.raises(EditError, match=r"model\.history\.budget = …, in bytes, keeps more"):
            go()
    assert history.position == 2
    model.undo(5)
    assert (model.to_bytes(), history.position) != (after_two, 2)
    assert history.position_of(2) == 2


def test_what_is_dropped_is_given_back() -> None:
    model = opened(LIST)
    edit(model, 0)
    lists = [ref(model.history._done[0].changes[0].proto)]  # type: ignore[attr-defined]
    with pytest.warns(OnnxlabWarning):
        edit(model, 1)
    gc.collect()
    assert lists[0]() is None


def test_a_smaller_budget_takes_effect_at_once_and_none_keeps_nothing() -> None:
    model = opened()
    assert model.history.budget >= 256 << 20
    for number in range(4):
        edit(model, number)
    with pytest.warns(OnnxlabWarning, match="the oldest 2 edits"):
        model.history.budget = 2 * LIST
    assert len(model.history.dropped) == 2
    model.history.budget = 0
    assert (model.history.labels, model.history.held) == ([], 0)
    assert model.dirty
    with pytest.raises(EditError):
        model.undo()


@pytest.mark.parametrize("wrong", [-1, 1.5, "much", None])
def test_a_budget_is_a_number_of_bytes(wrong: Any) -> None:
    with pytest.raises(EditError, match="a number of bytes from 0 on"):
        opened().history.budget = wrong


def test_without_edits_there_is_nothing_to_undo_and_nothing_is_refused() -> None:
    model = opened(0)
    assert model.undo() is None
    model.graph.travel(0)
    assert "replay" in model.history.to_python()


@pytest.mark.filterwarnings("error")
def test_a_warning_that_is_an_error_costs_no_edit() -> None:
    model = opened(0)
    with pytest.raises(OnnxlabWarning):
        edit(model, 5)
    assert model.nodes[0].attributes["a"][0] == 10_005
    assert (model.version, model.history.position, model.dirty) == (1, 1, True)
    model.nodes[0].name = "the next one"


def test_what_was_not_saved_counts_what_was_dropped(tmp_path: Path) -> None:
    model = opened(10 * LIST)
    edit(model, 0)
    model.save(tmp_path / "m.onnx")
    model.nodes[0].name = "renamed"
    edit(model, 1)
    with pytest.warns(OnnxlabWarning):
        model.history.budget = 0
    assert model.files.unsaved == model.history.dropped[1:]
    assert len(model.files.unsaved) == 2
    model.save()
    assert (model.dirty, model.files.unsaved) == (False, [])


@pytest.mark.slow
def test_a_journal_is_recovered_whatever_it_undoes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the machine has less memory by then: nothing is dropped before the last of its steps is made."""
    monkeypatch.setenv("ONNXLAB_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("onnxlab.graph.edit.history.LEAST_BUDGET", LIST + NAME)
    monkeypatch.setattr("onnxlab.graph.edit.history.available_memory", lambda: 0)
    path = tmp_path / "m.onnx"
    onnx.save(forest(), path)
    code = (
        "import os, sys, onnxlab\n"
        "model = onnxlab.load(sys.argv[1])\n"
        "for number in range(4):\n"
        f"    model.nodes[0].attributes['a'] = list(range(10_000 + number, 10_000 + number + {COUNT}))\n"
        "for _ in range(3):\n"
        "    model.undo()\n"
        "model.nodes[1].name = 'renamed'\n"
        "os._exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], timeout=60, check=False)
    with pytest.warns(JournalWarning):
        model = onnxlab.load(path)
    assert model.files.recover() == 8
    assert (model.nodes[0].attributes["a"][0], model.nodes[1].name) == (10_000, "renamed")
    assert len(model.history.labels) == 2


STEPS = st.one_of(
    st.tuples(st.just("list"), st.integers(0, 1)),
    st.tuples(st.sampled_from(["name", "undo", "redo"]), st.just(0)),
    st.tuples(st.sampled_from(["travel", "budget"]), st.integers(0, 6)),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(STEPS, max_size=14), st.integers(0, 4))
@pytest.mark.filterwarnings("ignore::onnxlab.errors.OnnxlabWarning")
def test_random_edits_within_a_budget(steps: list[tuple[str, int]], lists: int) -> None:
    """Undoing restores the bytes, and an edit never leaves more than the budget."""
    model = opened(lists * LIST)
    history, states = model.history, [model.to_bytes()]
    for number, (action, argument) in enumerate(steps):
        position, dropped = history.position, len(history.dropped)
        if action in ("list", "name"):
            del states[position + 1 :]
            if action == "list":
                edit(model, number, argument)
            else:
                model.nodes[0].name = f"n{number}"
            states.append(model.to_bytes())
            assert history.held <= history.budget
        elif action == "budget":
            history.budget = argument * LIST
        elif action == "redo":
            assert (model.redo() is None) == (position + 1 == len(states))
        elif (action == "undo" and 0 < position == dropped) or (action == "travel" and argument < dropped):
            with pytest.raises(EditError):
                model.undo() if action == "undo" else model.graph.travel(argument)
        elif action == "undo":
            assert (model.undo() is None) == (position == 0)
        else:
            model.graph.travel(argument)
        assert model.to_bytes() == states[history.position]
        assert len(history) == len(states) - 1 == len(history.all_labels)
        assert model.dirty == (history.position != 0)
        steps_left = [*history._done, *history._undone]
        assert history.held == sum(step.held for step in steps_left)
    model.graph.travel(len(history.dropped))
    assert model.to_bytes() == states[len(history.dropped)]
    model.graph.travel(len(states) - 1)
    assert model.to_bytes() == states[-1]
