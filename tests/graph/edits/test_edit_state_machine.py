"""Every edit of a Model at random, with undo, redo, refusals and interrupts; at the end the script of the history.

After each step the index equals a rebuilt one; undoing all gives the first bytes, and the script makes the last ones on
another copy.
"""

import os
from typing import Any
from unittest import mock

import onnx
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from onnxlab.errors import EditError
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.graph.edit.transaction import Transaction
from onnxlab.model import Model
from tests.graph.edits.test_structure_edits import blocks, nested
from tests.graph.support.composite_edits import COMPOSITE, Pick
from tests.graph.support.models import branches, nameless, state, untidy

LONG = bool(os.environ.get("ONNXLAB_LONG"))
NUMBERS = st.tuples(*[st.integers(0, 10_000)] * 3)
NAMES = st.sampled_from(sorted(COMPOSITE))


class Composites(RuleBasedStateMachine):
    proto = staticmethod(branches)

    def __init__(self) -> None:
        super().__init__()
        self.model = Model(self.proto())
        self.before, self.index = self.model.to_bytes(), state(self.model.graph)
        self.count = 0

    def pick(self, numbers: tuple[int, int, int]) -> Pick:
        self.count += 1
        return Pick(self.model, numbers, self.count)

    def refused(self, edit: Any, *errors: type[BaseException]) -> None:
        """Make an edit; where it fails nothing may have changed."""
        before, index = self.model.to_bytes(), state(self.model.graph)
        try:
            edit()
        except errors:
            assert self.model.to_bytes() == before
            assert state(self.model.graph) == index
        assert self.model.graph.transaction is None

    @precondition(lambda self: self.model.graph.nodes)
    @rule(name=NAMES, numbers=NUMBERS)
    def edit(self, name: str, numbers: tuple[int, int, int]) -> None:
        pick = self.pick(numbers)

        def one_step() -> None:
            with self.model.edit(name):
                COMPOSITE[name](pick)

        self.refused(one_step, EditError)

    @precondition(lambda self: self.model.graph.nodes)
    @rule(names=st.lists(NAMES, min_size=2, max_size=3), numbers=NUMBERS, fails=st.booleans())
    def several(self, names: list[str], numbers: tuple[int, int, int], fails: bool) -> None:
        def edit() -> None:
            with self.model.edit("several"):
                for name in names:
                    if self.model.graph.nodes:
                        COMPOSITE[name](self.pick(numbers))
                if fails:
                    raise EditError("stop here")

        self.refused(edit, EditError)

    @precondition(lambda self: self.model.graph.nodes)
    @rule(name=NAMES, numbers=NUMBERS, after=st.integers(0, 3))
    def interrupted(self, name: str, numbers: tuple[int, int, int], after: int) -> None:
        pick, apply, left = self.pick(numbers), Transaction.apply, [after]

        def stop(transaction: Transaction, change: Any, statement: str = "") -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return apply(transaction, change, statement)

        def edit() -> None:
            with self.model.edit("interrupted"), mock.patch.object(Transaction, "apply", stop):
                COMPOSITE[name](pick)

        self.refused(edit, EditError, KeyboardInterrupt)

    @rule()
    def undo(self) -> None:
        self.model.undo()

    @rule(to=st.integers(0, 40))
    def travel(self, to: int) -> None:
        self.model.undo(to=to % (len(self.model.history) + 1))

    @invariant()
    def index_is_what_a_rebuild_gives(self) -> None:
        rebuilt = ModelGraph(onnx.ModelProto.FromString(self.model.proto.SerializeToString()))
        assert nameless(self.model.graph) == nameless(rebuilt)

    def teardown(self) -> None:
        after, labels = self.model.to_bytes(), self.model.history.labels
        copy = Model(onnx.ModelProto.FromString(self.before))
        namespace: dict[str, Any] = {"__name__": "script"}
        exec(self.model.history.to_python(), namespace)
        namespace["replay"](copy)
        assert (copy.to_bytes(), copy.history.labels) == (after, labels)
        self.model.undo(to=0)
        assert self.model.to_bytes() == self.before
        assert state(self.model.graph) == self.index
        self.model.undo(to=len(labels))
        assert self.model.to_bytes() == after


class BlockComposites(Composites):
    proto = staticmethod(lambda: blocks(3))


class NestedComposites(Composites):
    proto = staticmethod(nested)


class UntidyComposites(Composites):
    proto = staticmethod(untidy)


_SETTINGS = settings(
    max_examples=300 if LONG else 16,
    stateful_step_count=50 if LONG else 12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestBranches = Composites.TestCase
TestBranches.settings = _SETTINGS
TestBlocks = BlockComposites.TestCase
TestBlocks.settings = _SETTINGS
TestNested = NestedComposites.TestCase
TestNested.settings = _SETTINGS
TestUntidy = UntidyComposites.TestCase
TestUntidy.settings = _SETTINGS
