"""Names that one thread looks up while another changes them."""

import threading
from typing import Any

import pytest

import onnxlab
from onnxlab.errors import EditError, NameLookupError
from onnxlab.graph.state import names


def test_a_lookup_and_an_edit_do_not_bring_names_up_to_date_together(monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnxlab.load()
    first, second = list(model.nodes)[:2]
    with pytest.raises(NameLookupError):
        model.nodes["nothing"]  # suggestions need all names, which are kept up to date from here on
    assert model.graph.names.nodes_called(model.graph.main, first.name) == [first.id]
    strike, meanwhile = names._strike, threading.Event()  # noqa: SLF001
    failures = list[Exception]()

    def rename() -> None:
        try:
            second.name = "second"
        except Exception as error:
            failures.append(error)

    other = threading.Thread(target=rename)

    def slow(*arguments: Any) -> None:
        if not meanwhile.is_set():
            meanwhile.set()
            other.start()
            other.join(0.3)  # the thread waits for the names; without a lock it ends before
        strike(*arguments)

    first.name = "first"
    monkeypatch.setattr(names, "_strike", slow)
    assert model.graph.names.nodes_called(model.graph.main, "first") == [first.id]
    other.join()
    assert meanwhile.is_set()
    assert not failures
    assert model.graph.names.nodes_called(model.graph.main, "second") == [second.id]


def test_two_threads_do_not_give_one_name_to_two_nodes() -> None:
    model = onnxlab.load()
    nodes, start, refused = list(model.nodes)[:4], threading.Barrier(4), list[EditError]()

    def rename(node: Any) -> None:
        start.wait()
        try:
            node.name = "wanted"
        except EditError as error:
            refused.append(error)

    workers = [threading.Thread(target=rename, args=(node,)) for node in nodes]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(refused) == 3
    assert len(model.graph.names.nodes_called(model.graph.main, "wanted")) == 1
