"""Random edits, undo, redo, saves, refusals and interrupts leave index and model whole.

After each step the index equals a rebuilt one and the model is as valid as it was; undoing all gives the first bytes,
redoing all the last.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import networkx as nx
import onnx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.transaction import Transaction
from onnxlab.graph.index.named_entries import mentioned_names
from tests.graph.support.models import branches, chain, nameless, state
from tests.graph.support.random_edits import EDITS, ENTRIES, Draw
from tests.graph.support.torture import torture

LONG = bool(os.environ.get("ONNXLAB_LONG"))
NUMBERS = st.tuples(*[st.integers(0, 10_000)] * 3)
NAMES = st.sampled_from(sorted(EDITS))


class Edits(RuleBasedStateMachine):
    model = staticmethod(branches)

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.open(self.model())

    def open(self, proto: onnx.ModelProto) -> None:
        self.graph = ModelGraph(proto)
        self.graph.nx()
        self.before = self.graph.proto.SerializeToString()
        self.index = state(self.graph)

    def draw(self, numbers: tuple[int, int, int]) -> Draw:
        self.count += 1
        return Draw(self.graph, numbers, self.count)

    @precondition(lambda self: self.graph.nodes)
    @rule(name=NAMES, numbers=NUMBERS)
    def edit(self, name: str, numbers: tuple[int, int, int]) -> None:
        """Nothing changes where an edit is refused."""
        before, index = self.graph.proto.SerializeToString(), state(self.graph)
        try:
            EDITS[name](self.draw(numbers))
        except EditError:
            self.is_as_before(before, index)

    @precondition(lambda self: self.graph.nodes)
    @rule(names=st.lists(NAMES, min_size=1, max_size=3), numbers=NUMBERS, after=st.integers(1, 4), signal=st.booleans())
    def interrupted(self, names: list[str], numbers: tuple[int, int, int], after: int, signal: bool) -> None:
        """Ctrl-C between two changes, or in the middle of one: the edit is taken back as a whole."""
        before, index = self.graph.proto.SerializeToString(), state(self.graph)
        draw = self.draw(numbers)
        try:
            with _interrupts(after, signal), self.graph.edit("interrupted"):
                for name in names:
                    EDITS[name](draw)
                raise EditError("nothing interrupted it")
        except (EditError, KeyboardInterrupt):
            pass
        self.is_as_before(before, index)

    def is_as_before(self, before: bytes, index: Any) -> None:
        assert self.graph.transaction is None
        assert self.graph.proto.SerializeToString() == before
        assert state(self.graph) == index

    @rule()
    def undo(self) -> None:
        self.graph.undo()

    @rule()
    def redo(self) -> None:
        self.graph.redo()

    @rule()
    def save_and_load(self) -> None:
        self.undo_and_redo_all()
        self.open(onnx.ModelProto.FromString(self.graph.proto.SerializeToString()))

    @invariant()
    def index_is_what_a_rebuild_gives(self) -> None:
        rebuilt = ModelGraph(onnx.ModelProto.FromString(self.graph.proto.SerializeToString()))
        assert nameless(self.graph) == nameless(rebuilt)
        assert _edges(self.graph) == _edges(rebuilt)
        assert set(self.graph.index.functions) == set(rebuilt.index.functions)
        assert self.graph.index.unsorted == {scope.id for scope in self.graph.scopes.values() if scope.backward}
        for scope in self.graph.scopes.values():
            for field in () if scope.is_function else ENTRIES:
                for position, message in enumerate(getattr(scope.proto, field)):
                    for name in mentioned_names(field, message):
                        assert position in scope.places(field).positions(name)

    @invariant()
    def the_model_is_valid(self) -> None:
        """All three models are to begin with, so every edit that was not refused must have left them so."""
        assert not self.graph.index.undefined
        for value in self.graph.values.values():
            assert len(value.producers) + value.is_input <= 1, value.name
        for scope in self.graph.scopes.values():
            assert nx.is_directed_acyclic_graph(self.graph.nx(scope)), self.graph.scope_path(scope)

    def teardown(self) -> None:
        self.undo_and_redo_all()

    def undo_and_redo_all(self) -> None:
        after, index = self.graph.proto.SerializeToString(), state(self.graph)
        done = len(self.graph.history.labels)
        while self.graph.undo():
            pass
        self.is_as_before(self.before, self.index)
        for _ in range(done):
            assert self.graph.redo()
        self.is_as_before(after, index)


@contextmanager
def _interrupts(after: int, signalled: bool) -> Iterator[None]:
    """Interrupt the `after`-th change: before it is made, or by a signal while it is being made."""
    apply, count = Transaction.apply, 0

    def interrupt(transaction: Transaction, change: Any, statement: str = "") -> Any:
        nonlocal count
        count += 1
        if count != after:
            return apply(transaction, change, statement)
        if not signalled:
            raise KeyboardInterrupt
        make = type(change).apply

        def interrupted(change: Any, graph: ModelGraph) -> Any:
            signal.raise_signal(signal.SIGINT)
            return make(change, graph)

        with mock.patch.object(type(change), "apply", interrupted):
            return apply(transaction, change, statement)

    with mock.patch.object(Transaction, "apply", interrupt):
        yield


def _edges(graph: ModelGraph) -> list[Any]:
    """The edges of all scopes as networkx has them, by places instead of ids."""

    def place(node: int) -> tuple[str, int]:
        scope = graph.scopes[graph.nodes[node].scope]
        return graph.scope_path(scope), scope.position(graph.nodes[node])

    return sorted(
        (place(maker), place(user), data["name"], data["kind"], key[0])
        for scope in graph.scopes.values()
        for maker, user, key, data in graph.nx(scope).edges(keys=True, data=True)
    )


class ChainEdits(Edits):
    model = staticmethod(chain)


class TortureEdits(Edits):
    model = staticmethod(torture)


_SETTINGS = settings(
    max_examples=70 if LONG else 30,
    stateful_step_count=50 if LONG else 20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestBranches = Edits.TestCase
pytest.mark.slow(TestBranches)
TestBranches.settings = _SETTINGS
TestChain = ChainEdits.TestCase
TestChain.settings = _SETTINGS
TestTorture = TortureEdits.TestCase
pytest.mark.slow(TestTorture)
TestTorture.settings = _SETTINGS
