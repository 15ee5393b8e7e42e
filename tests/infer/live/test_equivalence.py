"""Random edits, undo and redo: after each step the live facts are those that inference from scratch finds."""

import os
from typing import Any

import numpy as np
import onnx
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from onnxlab.errors import EditError
from onnxlab.graph import edits
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.infer.facts.type_protos import fact_of_type
from onnxlab.infer.rules.schema_checks import contradiction
from onnxlab.shapes import VARIES
from tests.graph.support.models import branches, chain
from tests.infer.support.models import shape_chain

LONG = bool(os.environ.get("ONNXLAB_LONG"))
OPERATORS = ["Relu", "Neg", "Identity", "Shape", "Size", "Transpose", "NonZero", "Flatten", "ReduceSum", "Not", "Bogus"]
DIMS = st.lists(st.sampled_from([1, 2, 3, 64, "batch", "n", None]), max_size=4)


def pinned(inference: Inference) -> list[tuple[str, int, int]]:
    """Diagnostics without their texts: these name unknown dims after values, by the name that they had then."""
    return [(d.code, d.node, d.value) for d in inference.diagnostics]


class LiveFacts(RuleBasedStateMachine):
    """Edits of a model with bodies and functions while an Inference follows."""

    build = staticmethod(lambda: shape_chain())

    def __init__(self) -> None:
        super().__init__()
        self.graph: ModelGraph = self.build()
        self.inference = Inference(self.graph)
        self.known = dict(self.inference.facts)
        self.graph.followers.append(self.follow)
        self.first = dict(self.inference.facts)
        self.count = 0

    def follow(self, commit: Any) -> None:
        for vid, (old, new) in self.inference.follow(commit).items():
            assert old is not new
            self.known[vid] = new

    def attempt(self, edit: Any) -> None:
        try:
            edit()
        except EditError:
            return

    def node(self, number: int) -> Any:
        nodes = list(self.graph.nodes.values())
        return nodes[number % len(nodes)] if nodes else None

    def value(self, number: int) -> Any:
        values = list(self.graph.values.values())
        return values[number % len(values)]

    numbers = st.integers(0, 10_000)

    @rule(number=numbers, bypass=st.booleans())
    def remove(self, number: int, bypass: bool) -> None:
        if node := self.node(number):
            self.attempt(lambda: edits.remove_nodes(self.graph, [node], bypass))

    @rule(number=numbers, other=numbers)
    def rewire(self, number: int, other: int) -> None:
        node = self.node(number)
        if node and node.inputs:
            slot = other % len(node.inputs)
            self.attempt(lambda: edits.set_input(self.graph, node, slot, self.value(other).name))

    @rule(number=numbers)
    def rename(self, number: int) -> None:
        self.count += 1
        self.attempt(lambda: edits.rename_value(self.graph, self.value(number), f"new_{self.count}"))

    @rule(number=numbers, operator=st.sampled_from(OPERATORS))
    def replace(self, number: int, operator: str) -> None:
        if node := self.node(number):
            self.attempt(lambda: edits.set_operator(self.graph, node, operator))

    @rule(number=numbers, dims=DIMS)
    def reshape_input(self, number: int, dims: list[Any]) -> None:
        inputs = self.graph.main.inputs
        value = self.graph.values[inputs[number % len(inputs)]]
        self.attempt(lambda: edits.set_shape(self.graph, value, dims))

    @rule(number=numbers, amount=st.integers(-3, 3))
    def set_integer(self, number: int, amount: int) -> None:
        node = self.node(number)
        name = next((a.name for a in node.proto.attribute if a.type == 2), "axis") if node else ""
        if node:
            self.attempt(lambda: edits.set_attribute(self.graph, node, name, amount))

    @rule(number=numbers, items=st.lists(st.integers(-2, 40), min_size=1, max_size=3))
    def set_constant(self, number: int, items: list[int]) -> None:
        stored = [value for value in self.graph.values.values() if value.initializer is not None]
        if stored:
            value = stored[number % len(stored)]
            self.attempt(lambda: edits.set_initializer(self.graph, value, np.array(items, np.int64)))

    @rule()
    def undo(self) -> None:
        self.graph.undo()

    @rule()
    def redo(self) -> None:
        self.graph.redo()

    @invariant()
    def facts_are_those_from_scratch(self) -> None:
        scratch = Inference(self.graph)
        live, fresh = self.inference.facts, scratch.facts
        different = {
            self.graph.values[vid].name: (str(self.inference.fact(vid)), str(scratch.fact(vid)))
            for vid in self.graph.values
            if self.inference.fact(vid) is not scratch.fact(vid)
        }
        assert different == {}
        assert set(live) - set(fresh) <= {vid for vid, f in live.items() if f is self.inference.fact(0)}
        assert pinned(self.inference) == pinned(scratch)

    @invariant()
    def deltas_tell_everything(self) -> None:
        for vid in self.graph.values:
            assert self.known.get(vid, self.inference.fact(0)) is self.inference.fact(vid)

    @invariant()
    def onnx_does_not_contradict(self) -> None:
        if any(d.severity == "error" or d.code.startswith("declared-") for d in self.inference.diagnostics):
            return  # after an error onnx goes on with declared types
        bare = onnx.ModelProto()
        bare.CopyFrom(self.graph.proto)
        del bare.graph.value_info[:]
        for output in bare.graph.output:
            output.ClearField("type")
        try:
            inferred = onnx.shape_inference.infer_shapes(bare, data_prop=True)
        except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError):
            return  # a graph that onnx refuses as a whole
        for info in (*inferred.graph.value_info, *inferred.graph.output):
            value = self.graph.values.get(self.graph.main.names.get(info.name, 0))
            if value is not None and value.producers:
                theirs = fact_of_type(info.type, lambda axis: VARIES)
                assert contradiction(theirs, self.inference.fact(value.id)) == "", (info.name, str(theirs))

    def teardown(self) -> None:
        while self.graph.undo():
            pass
        assert {vid: self.inference.fact(vid) for vid in self.first} == self.first


class LiveFactsOfBranches(LiveFacts):
    build = staticmethod(lambda: ModelGraph(branches()))


class LiveFactsOfChain(LiveFacts):
    build = staticmethod(lambda: ModelGraph(chain()))


for machine in (LiveFacts, LiveFactsOfBranches, LiveFactsOfChain):
    machine.TestCase.settings = settings(
        max_examples=300 if LONG else 15,
        stateful_step_count=30 if LONG else 15,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

TestLiveFacts = LiveFacts.TestCase
TestLiveFactsOfBranches = LiveFactsOfBranches.TestCase
TestLiveFactsOfChain = LiveFactsOfChain.TestCase
