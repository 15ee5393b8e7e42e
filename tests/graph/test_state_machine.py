"""Random edits, undo and redo: after each step the index equals a rebuilt one; undoing all gives the first bytes."""

import os
from typing import Any

import onnx
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from onnxlab.errors import EditError
from onnxlab.graph import edits
from onnxlab.graph.changes import MoveNode
from onnxlab.graph.modelgraph import ModelGraph
from onnxlab.graph.records import NodeRecord, ValueRecord
from tests.graph.models import branches, chain, nameless, state

LONG = bool(os.environ.get("ONNXLAB_LONG"))


class Edits(RuleBasedStateMachine):
    model = staticmethod(branches)

    def __init__(self) -> None:
        super().__init__()
        self.graph = ModelGraph(self.model())
        self.graph.nx()
        self.before = self.graph.proto.SerializeToString()
        self.index = state(self.graph)
        self.count = 0

    def attempt(self, edit: Any) -> None:
        """Make an edit; where it is refused nothing may have changed."""
        before, index = self.graph.proto.SerializeToString(), state(self.graph)
        try:
            edit()
        except EditError:
            assert self.graph.proto.SerializeToString() == before
            assert state(self.graph) == index

    def node(self, number: int) -> NodeRecord:
        nodes = list(self.graph.nodes.values())
        return nodes[number % len(nodes)]

    def value(self, number: int) -> ValueRecord:
        values = list(self.graph.values.values())
        return values[number % len(values)]

    def new_name(self) -> str:
        self.count += 1
        return f"new_{self.count}"

    numbers = st.integers(0, 10_000)

    @precondition(lambda self: self.graph.nodes)
    @rule(number=numbers, bypass=st.booleans())
    def remove(self, number: int, bypass: bool) -> None:
        self.attempt(lambda: edits.remove_nodes(self.graph, [self.node(number)], bypass))

    @precondition(lambda self: self.graph.nodes)
    @rule(number=numbers, other=numbers)
    def rewire(self, number: int, other: int) -> None:
        node = self.node(number)
        if node.inputs:
            slot = other % len(node.inputs)
            self.attempt(lambda: edits.set_input(self.graph, node, slot, self.value(other).name))

    @rule(number=numbers)
    def rename_value(self, number: int) -> None:
        self.attempt(lambda: edits.rename_value(self.graph, self.value(number), self.new_name()))

    @precondition(lambda self: self.graph.nodes)
    @rule(number=numbers)
    def rename_node(self, number: int) -> None:
        self.attempt(lambda: edits.rename_node(self.graph, self.node(number), self.new_name()))

    @rule(number=numbers)
    def add(self, number: int) -> None:
        value = self.value(number)
        proto = onnx.helper.make_node("Neg", [value.name], [self.new_name()])
        self.attempt(lambda: edits.add_node(self.graph, proto, self.graph.scopes[value.scope]))

    @precondition(lambda self: self.graph.nodes)
    @rule(number=numbers, other=numbers)
    def move(self, number: int, other: int) -> None:
        node = self.node(number)
        position = other % len(self.graph.scopes[node.scope].node_ids)
        self.attempt(lambda: self.graph.apply(MoveNode(node.id, position)))

    @precondition(lambda self: self.graph.nodes)
    @rule(number=numbers, fails=st.booleans())
    def several(self, number: int, fails: bool) -> None:
        def edit() -> None:
            with self.graph.edit("several"):
                edits.rename_value(self.graph, self.value(number), self.new_name())
                edits.remove_nodes(self.graph, [self.node(number)], bypass=True)
                if fails:
                    raise EditError("stop here")

        self.attempt(edit)

    @rule()
    def undo(self) -> None:
        self.graph.undo()

    @rule()
    def redo(self) -> None:
        self.graph.redo()

    @invariant()
    def index_is_what_a_rebuild_gives(self) -> None:
        rebuilt = ModelGraph(onnx.ModelProto.FromString(self.graph.proto.SerializeToString()))
        assert nameless(self.graph) == nameless(rebuilt)
        assert self.graph.nx().number_of_edges() == rebuilt.nx().number_of_edges()

    def teardown(self) -> None:
        after, index = self.graph.proto.SerializeToString(), state(self.graph)
        done = len(self.graph.history.labels)
        while self.graph.undo():
            pass
        assert self.graph.proto.SerializeToString() == self.before
        assert state(self.graph) == self.index
        for _ in range(done):
            assert self.graph.redo()
        assert self.graph.proto.SerializeToString() == after
        assert state(self.graph) == index


class ChainEdits(Edits):
    model = staticmethod(chain)


_SETTINGS = settings(
    max_examples=400 if LONG else 25,
    stateful_step_count=50 if LONG else 20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestBranches = Edits.TestCase
TestBranches.settings = _SETTINGS
TestChain = ChainEdits.TestCase
TestChain.settings = _SETTINGS
