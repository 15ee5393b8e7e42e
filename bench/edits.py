"""Edit a network, then new outputs: against what onnxruntime needs for the same, a new session of the changed model.

Processor time of one thread on both sides, the fastest of as many repeats of each: of ours an edit and the run after
it; of onnxruntime's to serialise the model, make a session and run it, at its better of all optimisations and none.
"By regions" are compiled runs, which keep no values: all is computed again, by the one plan of the whole. `Model.run`
as it is called in a notebook keeps all values, node by node with NumPy, and computes again what an edit reaches. All
results are compared with those of a runner that has seen nothing before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import onnx

import onnxlab
from bench import networks
from bench.measure import Figure, Line, timed
from onnxlab.execution.numba_provider import NumbaProvider
from onnxlab.execution.providers import named
from onnxlab.execution.runner import Runner
from onnxlab.graph.edits import bypassing, set_attribute, set_initializer
from onnxlab.graph.records import NodeRecord, ValueRecord

Feeds = dict[str, Any]
Session = Callable[[Any, str, int], Any]
_REPEATS = 8
_FEW = 8
_on_one = partial(timed, clock=time.process_time)


@dataclass(frozen=True, slots=True)
class Network:
    """A network, what it is fed, and how many times faster an edit is promised to be: in its middle, at its end."""

    name: str
    proto: onnx.ModelProto
    feeds: Feeds
    middle: float
    end: float = 30.0


def rows(session: Session) -> Iterator[Line]:
    """Other weights for the product in the middle and the last one; then smaller edits in the middle of BERT-base.

    Args:
        session: `session(bytes, level of optimisation, threads)`.
    """
    bert = Network("BERT-base", networks.bert_base(), networks.words(), 6.0)
    for network in (Network("ResNet-50", networks.resnet50(), networks.picture(), 4.0), bert):
        yield from _times_faster(network, session)
    yield from _beyond_a_run(bert)


@dataclass(slots=True)
class Edited:
    """A model whose runner outlives edits.

    Attributes:
        keep: whether runs keep values, as those of `Model.run`; otherwise they are compiled.
        runs, spent: seconds of runs without and with an edit before them.
    """

    network: Network
    keep: bool
    runs: list[float] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    model: Any = None
    runner: Any = None

    def __post_init__(self) -> None:
        self.model = onnxlab.load(onnx.ModelProto.FromString(self.network.proto.SerializeToString()))
        self.runner = self._fresh()
        for _ in range(2):
            self.run()

    def _fresh(self) -> Runner:
        providers = named([NumbaProvider(1, background=False), "numpy"])
        return Runner(self.model.graph, self.model.inference.fact, providers, threads=1)

    def run(self) -> Any:
        """The outputs."""
        if self.keep:
            return self.model.run(self.network.feeds)
        return self.runner.run(self.network.feeds, keep=False)

    def products(self) -> list[ValueRecord]:
        """The weights of products, in order."""
        graph = self.model.graph
        found = [node.inputs[1] for node in graph.nodes.values() if node.op_type in ("Conv", "MatMul", "Gemm")]
        return [graph.values[value] for value in found if graph.array(value) is not None]

    def middle(self, op_type: str) -> NodeRecord:
        """The node of an operator that is in the middle of all."""
        found: list[NodeRecord] = [node for node in self.model.graph.nodes.values() if node.op_type == op_type]
        return found[len(found) // 2]

    def scaled(self, value: ValueRecord) -> Callable[[], None]:
        """An edit: another constant each time, all made beforehand."""
        graph = self.model.graph
        first: Any = graph.array(value.id)
        others = [first * np.float32(1 + number / 1000) for number in range(1, _REPEATS + 1)]
        return lambda: set_initializer(graph, value, others.pop())

    def measure(self, edit: Callable[[], None]) -> None:
        """Time a run, and an edit with the run after it, in turn."""

        def edit_and_run() -> None:
            edit()
            self.run()

        for _ in range(_REPEATS):
            self.runs.append(_on_one(self.run))
            self.spent.append(_on_one(edit_and_run))

    def check(self) -> None:
        """Raise where a run gives what a runner that has seen nothing does not give."""
        ours, theirs = self.run(), self._fresh().run(self.network.feeds, keep=False)
        for name, array in theirs.items():
            tolerance = 1e-4 * float(np.abs(array).max()) if self.keep else 0.0  # other parts, other sums
            np.testing.assert_allclose(ours[name], array, rtol=0, atol=tolerance, err_msg=name)

    @property
    def beyond(self) -> float:
        """Milliseconds of an edit beyond a run."""
        return (min(self.spent) - min(self.runs)) * 1e3


def _times_faster(network: Network, session: Session) -> Iterator[Line]:
    data = network.proto.SerializeToString

    def fresh(level: str) -> float:
        return _on_one(lambda: session(data(), level, 1).run(None, network.feeds))

    levels = ("ORT_ENABLE_ALL", "ORT_DISABLE_ALL")
    theirs = min(fresh(level) for _ in range(_REPEATS // 2) for level in levels)
    ways = (("middle", network.middle, False), ("middle", network.middle, True), ("end", network.end, True))
    for where, promise, keep in ways:
        edited = Edited(network, keep)
        weights = edited.products()
        edited.measure(edited.scaled(weights[len(weights) // 2 if where == "middle" else -1]))
        edited.check()
        how = "by Model.run" if keep else "by regions"
        note = f"against a new session; {min(edited.spent) * 1e3:.3g} ms"
        note += "" if keep else f", {edited.beyond:.2g} beyond a run"
        what = f"edit the {where} of {network.name}, {how}: times faster"
        yield Figure(what, theirs / min(edited.spent), "×", at_least=promise, note=note)


def _beyond_a_run(network: Network) -> Iterator[Line]:
    """Edits that change little, in the middle: what they take beyond a run by regions.

    Of few words, since the difference of two long runs would be lost in what the machine does besides.
    """
    few = {name: array[:, :_FEW] for name, array in network.feeds.items()}
    edited = Edited(replace(network, feeds=few), keep=False)
    graph, norm, curve = edited.model.graph, edited.middle("LayerNormalization"), edited.middle("Gelu")
    scale, bias = (graph.values[value] for value in (norm.inputs[1], edited.middle("Add").inputs[1]))
    epsilon = 1e-5

    def attribute() -> None:
        nonlocal epsilon
        epsilon *= 1.1
        set_attribute(graph, graph.nodes[norm.id], "epsilon", epsilon)

    def bypass() -> None:
        with graph.edit("bypass"):
            bypassing.bypass_node(graph, graph.nodes[curve.id])
        edited.run()
        graph.undo()

    kinds = {"a weight": edited.scaled(edited.products()[len(edited.products()) // 2]), "a bias": edited.scaled(bias),
             "a norm's scale": edited.scaled(scale), "an attribute": attribute,
             "a node removed, and its removal undone": bypass}  # fmt: skip
    for what, edit in kinds.items():
        edited.runs, edited.spent = [], []
        edited.measure(edit)
        edited.check()
        twice = edit is bypass  # two edits with a run after each
        found = (edited.beyond - min(edited.runs) * 1e3) / 2 if twice else edited.beyond
        note = "each of the two" if twice else "processor time of the edit and the run after it"
        yield Figure(f"edit BERT-base's middle: {what}, beyond a run of {_FEW} words", found, "ms", note=note)
