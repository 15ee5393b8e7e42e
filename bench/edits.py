"""Edit a network, then new outputs: against what onnxruntime needs for the same, a new session of the changed model.

Processor time of one thread on both sides, the fastest of as many repeats of each: of ours an edit and the run after
it; of onnxruntime's to serialize the model, make a session and run it, at its better of all optimizations and none.
"Plain" is `model.run(feeds)`: compiled runs, of which the first after an edit begins where the edit matters, with what
an earlier run of the same inputs noted there; the first edit of all finds the few states that every long run notes, and
with other inputs all is computed. "Exact" is `model.run(feeds, exact=True)`, node by node with NumPy, which computes
again what an edit reaches. Promises are for plain runs. All results are compared with those of a runner that has seen
nothing before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import onnx

import onnxlab
from bench import networks
from bench.measure import Figure, Line, timed
from onnxlab.execution.base import background
from onnxlab.execution.numba.provider import NumbaProvider
from onnxlab.execution.run.provider_names import named
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edits import bypassing, set_attribute, set_initializer
from onnxlab.graph.index.records import NodeRecord, ValueRecord
from tests.support.corpus import inputs, path

Feeds = dict[str, Any]
Session = Callable[[Any, str, int], Any]
_FEW = 8
_on_one = partial(timed, clock=time.process_time)


@dataclass(frozen=True, slots=True)
class Network:
    """A network, what it is fed, and how many times faster an edit is promised to be: middle, end, the first of all.

    `repeats` make the shorter runs as little noise as the longer ones. `tolerance` is of plain runs, where NumPy may
    answer after an edit; otherwise results are those of a new runner to the bit.
    """

    name: str
    proto: onnx.ModelProto
    feeds: Feeds
    middle: float = 6.0
    end: float = 40.0
    first: float = 3.0
    repeats: int = 8
    tolerance: float = 0.0


def rows(session: Session) -> Iterator[Line]:
    """Other weights for the product in the middle and the last one; then smaller edits in the middle of BERT-base.

    Args:
        session: `session(bytes, level of optimization, threads)`.
    """
    bert = Network("BERT-base", networks.bert_base(), networks.words())
    swin = Network("swin_s", onnx.load(path("swin_s")), inputs("swin_s", path("swin_s")), tolerance=1e-4)
    for network in (Network("ResNet-50", networks.resnet50(), networks.picture(), repeats=30), bert, swin):
        yield from _times_faster(network, session)
    yield from _beyond_a_run(bert)


@dataclass(slots=True)
class Edited:
    """A model whose runner outlives edits.

    Attributes:
        keep: whether runs keep all values; otherwise they are plain.
        others: more feeds: each run is of others than the one before.
        runs, spent: seconds of runs without and with an edit before them; `first` of the first edit and run.
    """

    network: Network
    keep: bool
    others: tuple[Feeds, ...] = ()
    runs: list[float] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    first: float = 0.0
    model: Any = None
    feeds: Any = None

    def __post_init__(self) -> None:
        self.model = onnxlab.load(onnx.ModelProto.FromString(self.network.proto.SerializeToString()))
        self.feeds = cycle((self.network.feeds, *self.others))
        for _ in range(4):
            self.run()
            background.wait()

    def run(self) -> tuple[Feeds, Any]:
        """The inputs and outputs of a run."""
        feeds = next(self.feeds)
        return feeds, self.model.run(feeds, exact=self.keep)

    def products(self) -> list[ValueRecord]:
        """The weights of products, in order."""
        graph = self.model.graph
        weights = [node.inputs[1] for node in graph.nodes.values() if node.op_type in ("Conv", "MatMul", "Gemm")]
        return [graph.values[value] for value in weights if graph.array(value) is not None]

    def middle(self, op_type: str) -> NodeRecord:
        """The node of an operator that is in the middle of all."""
        nodes: list[NodeRecord] = [node for node in self.model.graph.nodes.values() if node.op_type == op_type]
        return nodes[len(nodes) // 2]

    def scaled(self, value: ValueRecord) -> Callable[[], None]:
        """An edit: another constant each time, all made beforehand."""
        graph = self.model.graph
        first: Any = graph.array(value.id)
        others = [first * np.float32(1 + number / 1000) for number in range(1, self.network.repeats + 2)]
        return lambda: set_initializer(graph, value, others.pop())

    def measure(self, edit: Callable[[], None]) -> None:
        """Time a run, and an edit with the run after it, in turn."""

        def edit_and_run() -> None:
            edit()
            self.run()

        if not self.spent:
            self.first = _on_one(edit_and_run)
            background.wait()  # what is compiled where runs keep values is what edits reach
        for _ in range(self.network.repeats):
            self.runs.append(_on_one(self.run))
            self.spent.append(_on_one(edit_and_run))

    def check(self) -> None:
        """Raise where a run gives what a runner that has seen nothing does not give."""
        providers = named([NumbaProvider(1, background=False), "numpy"])
        fresh = Runner(self.model.graph, self.model.inference.fact, providers, threads=1)
        feeds, ours = self.run()
        theirs = fresh.run(feeds, keep=False)
        for name, array in theirs.items():
            share = 1e-4 if self.keep else self.network.tolerance  # other parts, other sums
            tolerance = share * float(np.abs(array).max())
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
    theirs = min(fresh(level) for _ in range(network.repeats // 2) for level in levels)
    for where, promise in (("middle", network.middle), ("end", network.end)):
        label = f"edit the {where} of {network.name}"
        for keep, how in ((False, "plain"), (True, "exact")):
            edited = Edited(network, keep)
            weights = edited.products()
            edited.measure(edited.scaled(weights[len(weights) // 2 if where == "middle" else -1]))
            edited.check()
            spent, run = min(edited.spent), min(edited.runs)
            note = f"{spent * 1e3:.3g} ms; without an edit {run * 1e3:.3g}, the first of all {edited.first * 1e3:.3g}"
            least = None if keep else promise
            yield Figure(f"{label}, {how}: times faster", theirs / spent, "×", at_least=least, note=note)
            if not keep:
                note = f"{edited.first * 1e3:.3g} ms, against a new session of {theirs * 1e3:.3g} ms"
                first = theirs / edited.first
                yield Figure(
                    f"{label}, the first edit of all: times faster", first, "×", at_least=network.first, note=note
                )


def _beyond_a_run(network: Network) -> Iterator[Line]:
    """Edits that change little, in the middle: what they take beyond a compiled run of everything.

    Of few words, since the difference of two long runs would be lost in what the machine does besides; and of others
    than in the run before, so that all is computed after an edit too.
    """
    places = range(0, 3 * _FEW, _FEW)  # runs with and without an edit take turns: each is to see all of them
    few, *others = [{name: array[:, at : at + _FEW] for name, array in network.feeds.items()} for at in places]
    edited = Edited(replace(network, feeds=few), keep=False, others=tuple(others))
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
    for kind, edit in kinds.items():
        edited.runs, edited.spent = [], []
        edited.measure(edit)
        edited.check()
        twice = edit is bypass  # two edits with a run after each
        beyond = (edited.beyond - min(edited.runs) * 1e3) / 2 if twice else edited.beyond
        note = "each of the two" if twice else "processor time of the edit and the run after it"
        yield Figure(f"edit BERT-base's middle: {kind}, beyond a run of {_FEW} words", beyond, "ms", note=note)
