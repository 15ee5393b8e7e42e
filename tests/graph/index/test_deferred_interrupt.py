"""Ctrl-C waits for the end of a change, comes at once between two, and finds its handler again afterwards."""

import signal
from typing import Any
from unittest import mock

import pytest

from onnxlab.graph.edit.changes import SetField
from onnxlab.graph.edit.model_graph import ModelGraph
from tests.graph.support.models import chain, state

NAME = SetField(("model", 0), "producer_name", "other")


def test_between_two_changes_it_comes_at_once() -> None:
    graph = ModelGraph(chain())
    before, handler, reached = graph.proto.SerializeToString(), signal.getsignal(signal.SIGINT), []

    def edit() -> None:
        with graph.edit("two changes"):
            graph.apply(NAME)
            reached.append("first")
            signal.raise_signal(signal.SIGINT)
            reached.append("second")

    with pytest.raises(KeyboardInterrupt):
        edit()
    assert reached == ["first"]
    assert graph.proto.SerializeToString() == before
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("nested", [False, True])
def test_in_a_change_it_waits_for_its_end(nested: bool) -> None:
    graph = ModelGraph(chain())
    index, handler, applied = state(graph), signal.getsignal(signal.SIGINT), []
    apply = SetField.apply

    def interrupted(change: Any, on: ModelGraph) -> Any:
        signal.raise_signal(signal.SIGINT)
        applied.append(change)
        return apply(change, on)

    def edit() -> None:
        with graph.edit("outer"):
            if nested:
                with graph.edit("inner"):
                    graph.apply(NAME)
            else:
                graph.apply(NAME)

    with mock.patch.object(SetField, "apply", interrupted), pytest.raises(KeyboardInterrupt):
        edit()
    assert applied[0] == NAME, "the change was made to its end, and then taken back"
    assert (state(graph), graph.transaction) == (index, None)
    assert signal.getsignal(signal.SIGINT) is handler
    edit()
    assert graph.proto.producer_name == "other"
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_foreign_signal_handler_is_called_and_left_alone() -> None:
    graph, heard = ModelGraph(chain()), []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        handler = signal.getsignal(signal.SIGINT)
        with graph.edit("heard"):
            graph.apply(NAME)
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]
    assert graph.version == 1
