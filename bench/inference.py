"""Speed of inference against onnx's, what an edit costs, and (see inference_truth.py) whether the facts are true."""

import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import onnx
import onnx.inliner

import onnxlab
from bench.comparisons import toggle
from bench.inference_truth import rows as truth
from bench.measure import Figure, Line, Row, compare
from bench.models import CORPUS, many_nodes
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.infer.facts.policy import DEFAULT_POLICY
from onnxlab.infer.rules import operator_cache
from onnxlab.infer.walk.operator_catalogue import catalogue_of
from tests.support.corpus import NAMES

LARGE = 300
"""Nodes, those of called functions counted at each call, from which a model's inference is worth timing."""

EDITS = 12
"""Nodes of each model whose attributes are edited."""

AGAINST = "infer_shapes(data_prop=True)"


def rows() -> Iterator[Line]:
    """From scratch, the drop-in, edits, growth; then coverage and truth."""
    yield from scratch()
    yield from dropin()
    yield from edits()
    yield growth()
    yield from truth()


def by_onnx(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Infer shapes with onnx, elements included."""
    return onnx.shape_inference.infer_shapes(proto, data_prop=True)


def opened(path: Path) -> onnxlab.Model:
    """A model without a file behind it, so that edits leave no journal."""
    return onnxlab.Model(onnx.load(path, load_external_data=False))


@cache
def large() -> dict[str, onnxlab.Model]:
    """The large models of the corpus, opened and inferred."""
    models = {name: opened(CORPUS[name]) for name in NAMES}
    return {name: model for name, model in models.items() if nodes(model) >= LARGE}


def nodes(model: onnxlab.Model) -> int:
    """Nodes with functions inlined."""
    proto = onnx.inliner.inline_local_functions(model.proto) if model.proto.functions else model.proto
    return len(model.graph.nodes) if proto is model.proto else len(proto.graph.node)


def mean(ratios: list[float]) -> float:
    """The geometric mean of some ratios."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def scratch() -> Iterator[Line]:
    """All facts of a loaded model from its inputs on; and the first time, when no message was read before."""
    again = []
    for name, model in large().items():
        row = compare(
            f"infer {name}",
            partial(Inference, model.graph),
            partial(by_onnx, model.proto),
            against=AGAINST,
            promise=1.5,
            repeats=7,
        )
        again.append(row.ratio)
        yield row
    note = f"{len(again)} models of at least {LARGE} nodes, against {AGAINST}"
    yield Figure("infer a loaded model: geometric mean of the ratios", mean(again), at_most=1.0, note=note)
    ratios_by_model = {name: every_rule(model).ratio for name, model in large().items()}
    worst = max(ratios_by_model, key=lambda name: ratios_by_model[name])
    yield Figure(
        "the same, every rule asked again: geometric mean", mean([*ratios_by_model.values()]), at_most=1.0, note=note
    )
    yield Figure("the same: worst", ratios_by_model[worst], at_most=1.5, note=worst)
    firsts = [first_time(model) for model in large().values()]
    yield Figure("the same when no node was read before: geometric mean", mean(firsts), note=note)
    yield Figure("the same: worst", max(firsts), note=note)


def every_rule(model: onnxlab.Model) -> Row:
    """Inference that remembers what the nodes are but nothing of what was inferred, beside onnx's."""

    def ours() -> None:
        catalogue_of(model.graph, DEFAULT_POLICY).forget_outcomes()
        Inference(model.graph)

    return compare("", ours, partial(by_onnx, model.proto), against=AGAINST, repeats=7)


def first_time(model: onnxlab.Model, repeats: int = 5) -> float:
    """Ratio of the first inference of a fresh graph, whose messages have not been looked at, to onnx's."""
    ours = theirs = math.inf
    for _ in range(repeats):
        graph = ModelGraph(model.proto, model.graph.base_dir)
        ours = min(ours, once(partial(Inference, graph)))
        theirs = min(theirs, once(partial(by_onnx, model.proto)))
    return ours / theirs


def once(action: Any) -> float:
    """Seconds that one call of `action` takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def dropin() -> Iterator[Line]:
    """onnxlab.infer_shapes, which reads a proto and writes one, in the place of onnx's.

    Models of a process share what was inferred for the operators of ONNX. The first rows give each model a process of
    its own, and forget before each call what the last one met; the last rows keep it.
    """
    alone = ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1)
    with alone as pool:
        first = dict(zip(large(), pool.map(first_of_a_process, large()), strict=True))
    again = {name: as_dropin(model, None) for name, model in large().items()}
    for label, ratios in {"drop-in, first model of a process": first, "drop-in, met before": again}.items():
        worst = max(ratios, key=lambda name: ratios[name])
        yield Figure(f"{label}: geometric mean", mean(list(ratios.values())), at_most=4, note=f"against {AGAINST}")
        yield Figure(f"{label}: worst", ratios[worst], at_most=4, note=worst)


def first_of_a_process(name: str) -> float:
    """`as_dropin` of a corpus model where no other one was opened."""
    return as_dropin(opened(CORPUS[name]), operator_cache.forget)


def as_dropin(model: onnxlab.Model, before: Callable[[], None] | None) -> float:
    """Ratio of processor times, ours to onnx's, one thread each; in so many turns that a quiet one is among them."""
    ours, theirs = partial(onnxlab.infer_shapes, model.proto, data_prop=True), partial(by_onnx, model.proto)
    return compare("", ours, theirs, against=AGAINST, repeats=15, clock=time.process_time, before=before).ratio


def edits() -> Iterator[Line]:
    """One edit, every fact after it up to date when it returns."""
    model = opened(many_nodes())
    yield compare(
        "edit 1 of 100,000 nodes, local effect",
        toggle(model.nodes["turn_12500"], "perm", [0, 2, 1], [1, 0, 2]),
        partial(by_onnx, model.proto),
        against=AGAINST,
        promise=1 / 1000,
        repeats=5,
        inner=20,
    )
    times = {name: attribute_edits(opened(CORPUS[name])) for name in NAMES}
    every = list(itertools.chain.from_iterable(times.values()))
    note = f"{len(every)} edits, up to {EDITS} in each of {len(times)} models"
    yield Figure("edit an attribute: median over the corpus", statistics.median(every), "s", at_most=1e-3, note=note)
    medians = {name: statistics.median(seconds) for name, seconds in times.items() if seconds}
    slowest = max(medians, key=lambda name: medians[name])
    yield Figure("the same: median of the slowest model", medians[slowest], "s", note=slowest)
    yield whole_cone()
    yield from undone()


def attribute_edits(model: onnxlab.Model) -> list[float]:
    """Seconds of single edits: integer attributes of nodes spread over the model, to another value and back."""
    seconds = []
    editable = [(node, name) for node in model.nodes if (name := integer_attribute(node))]
    for node, name in editable[:: max(1, len(editable) // EDITS)][:EDITS]:
        value = node.attributes[name]
        other = [*value[:-1], value[-1] + 1] if isinstance(value, list) else value + 1
        seconds.append(min(assign(node, name, assigned) for assigned in (other, value) * 3))
    return seconds


def integer_attribute(node: Any) -> str:
    """The name of an integer attribute that the node has, or of integers; "" for none."""
    for name, value in node.attributes.items():
        if isinstance(value, int) or (isinstance(value, list) and value and isinstance(value[-1], int)):
            return str(name)
    return ""


def assign(node: Any, name: str, value: Any) -> float:
    """Seconds that setting one attribute takes."""
    return once(partial(node.attributes.__setitem__, name, value))


def whole_cone() -> Row:
    """The batch of swin_s, to another size each time: every value that depends on data changes, no rule is spared."""
    model = opened(CORPUS["swin_s"])
    value = model.inputs[0]
    dims: list[Any] = list(model.fact(value).shape or ())
    sizes = itertools.count(2)
    return compare(
        "edit the batch of swin_s: the cone is the model",
        lambda: value.set_shape([next(sizes), *dims[1:]]),
        partial(by_onnx, model.proto),
        against=AGAINST,
        promise=1.0,
        repeats=5,
    )


def undone() -> Iterator[Figure]:
    """Nodes that undo infers, as a share of those that the edit did; counted, not timed."""
    shares = []
    for name in ("swin_s", "bert_base", "resnet50"):
        model = opened(CORPUS[name])
        op_type, key, value = ("Conv", "strides", [1, 1]) if name == "resnet50" else ("Transpose", "perm", [2, 1, 0, 3])
        node = next(node for node in model.nodes if node.op_type == op_type and len(node.attributes[key]) == len(value))
        start = model.inference.evaluated
        node.attributes[key] = value
        edited = model.inference.evaluated
        model.undo()
        shares.append((model.inference.evaluated - edited) / (edited - start))
    yield Figure("nodes inferred by undo ÷ by the edit, at most", max(shares), at_most=1, note="swin_s, bert_base, …")


def growth() -> Figure:
    """Time of a hundred thousand nodes by that of ten thousand."""
    graphs = [opened(many_nodes(count)).graph for count in (10_000, 100_000)]
    small, big = (min(once(partial(Inference, graph)) for _ in range(3)) for graph in graphs)
    return Figure("ten times the nodes: times the time", big / small, at_most=12, note="10,000 and 100,000 nodes")
