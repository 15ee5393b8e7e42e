"""Suggestions for a model: each rule alone, where it applies, its measured gain, and the verdict of running both."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import onnx

from onnxlab.analysis.memory.timeline import timeline
from onnxlab.errors import EditError, OnnxlabError
from onnxlab.execution.run.runner import Runner
from onnxlab.execution.run.trial_runs import TrialRuns
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.limits import available_memory
from onnxlab.printable import printable
from onnxlab.transforms import pipeline, verification
from onnxlab.transforms.pipeline import PASS_OF, PASSES, Pipeline, count_nodes
from onnxlab.transforms.receipt import Verdict
from onnxlab.transforms.rewriting import RewriteOptions
from onnxlab.transforms.rules.rule import AnyRule
from onnxlab.transforms.verification_runs import Subject, Trust
from onnxlab.transforms.verified_rewrites import Rewrite

MOST_RUNS_BYTES: Final = 1 << 29
"""Bytes of the largest model whose runs are timed, since the model has to be copied."""

COPIES: Final = 8
"""Copies of a model in memory while runs are measured: before and after, with onnxruntime's sessions of both."""

_REPEATS: Final = 5
_WARM: Final = 2  # runs that are not timed, in which programs are compiled and buffers made


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A rule or pass that would change something.

    Attributes:
        rule: the name of the rule or pass.
        doc: its documentation.
        places: labels of the nodes at which it applies first.
        nodes: how many nodes fewer there would be.
        bytes: how many bytes fewer the model would have.
        peak: how many bytes fewer a run would hold at its peak, by the shapes; 0 where no size is known.
        seconds: by provider ("numpy", "onnxruntime"), how many seconds of processor time a run would save, on one
            thread in onnxruntime; 0 within the noise of runs.
        verdict: the verdict of running the model before and after.
        why: what differs and by how much, in words.
    """

    rule: str
    doc: str
    places: tuple[str, ...]
    nodes: int
    bytes: int
    peak: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    verdict: Verdict = "not run"
    why: str = ""

    def __str__(self) -> str:
        gained = [f"{self.nodes} nodes", f"{self.bytes:,} bytes", f"{self.peak:,} bytes at the peak"]
        gained += [f"{1000 * seconds:.3g} ms of {name}" for name, seconds in self.seconds.items()]
        verdict = f"{self.verdict}: {self.why}" if self.why else self.verdict
        return printable(f"{self.rule} at {len(self.places)} places: {', '.join(gained)} less; {verdict}")

    def as_dict(self) -> dict[str, object]:
        """The suggestion as JSON holds it."""
        return {
            "rule": self.rule,
            "doc": self.doc,
            "places": list(self.places),
            "nodes": self.nodes,
            "bytes": self.bytes,
            "peak": self.peak,
            "seconds": dict(self.seconds),
            "verdict": self.verdict,
            "why": self.why,
        }


def suggestions(
    graph: ModelGraph,
    inference: Inference,
    rules: Sequence[AnyRule],
    options: RewriteOptions,
    trust: Trust,
    timed: bool,
) -> list[Suggestion]:
    """The gain of each rule and pass alone, the largest gain of nodes first; the model is left as it was."""
    with graph.lock:
        docs = {rule.name: rule.doc for rule in rules}
        tried = Rewrite(graph, inference, "suggest", pipeline.standard(rules), options, trust).look()
        by_name = {rule.name: rule for rule in rules}
        names = [name for name in tried.counts if name in by_name]
        plans: dict[str, Pipeline] = {name: pipeline.only([by_name[name]]) for name in names}
        plans |= {name: pipeline.standard((), (name, "unused")) for name in PASSES}
        before = _Measured(graph, inference, _known(graph, inference, trust), timed)
        candidates = [
            _tried(before, name, docs.get(name, PASS_DOCS.get(name, "")), plan, options, trust)
            for name, plan in plans.items()
        ]
    return sorted(
        (suggestion for suggestion in candidates if suggestion is not None),
        key=lambda suggestion: (-suggestion.nodes, -suggestion.bytes),
    )


def suggestion(
    graph: ModelGraph, inference: Inference, name: str, doc: str, plan: Pipeline, options: RewriteOptions, trust: Trust,
    timed: bool,
) -> list[Suggestion]:  # fmt: skip
    """The gain of one rewrite, in a list; none where it would change nothing. The model is left as it was."""
    with graph.lock:
        before = _Measured(graph, inference, _known(graph, inference, trust), timed)
        tried = _tried(before, name, doc, plan, options, trust)
        return [] if tried is None else [tried]


def _known(graph: ModelGraph, inference: Inference, trust: Trust) -> list[verification.Case]:
    return Subject(graph, inference).cases(trust) if trust.verify else []


PASS_DOCS: Final = {name: (module.__doc__ or "").strip() for name, module in PASSES.items()}


class _Measured:
    """Nodes, bytes and memory of a model as it is now, and how it is run on inputs, by provider."""

    def __init__(self, graph: ModelGraph, inference: Inference, known: list[verification.Case], timed: bool) -> None:
        self.graph, self.inference, self.known = graph, inference, known
        self.nodes = count_nodes(graph)
        self.bytes = graph.proto.ByteSize()
        self.runs: dict[str, Callable[[], Any]] = {}
        case = next((case for case in known if not case.failed), None)
        self.peak = _peak(graph, inference, {} if case is None else case.feeds)
        if not timed or case is None or self.bytes > min(MOST_RUNS_BYTES, available_memory() // COPIES):
            return
        feeds, proto = dict(case.feeds), onnx.ModelProto()
        proto.CopyFrom(graph.proto)  # runs of a graph that is being edited prepare everything each time
        copy = ModelGraph(proto, graph.base_dir)
        runner = Runner(copy, Inference(copy).fact)
        self.runs["numpy"] = lambda: runner.run(feeds, keep=False, seed=0, strict=False)
        session = _session(graph)
        if session is not None:
            self.runs["onnxruntime"] = lambda: session.run(None, feeds)


def _gained(before: _Measured, now: _Measured) -> dict[str, float]:
    """Seconds of processor time that a run saves, by provider: least of a few runs in turn; 0 within their noise."""
    gained = {}
    for provider in [name for name in before.runs if name in now.runs]:
        sides = before.runs[provider], now.runs[provider]
        spent: tuple[list[float], list[float]] = ([], [])
        try:
            for number in range(_WARM + _REPEATS):
                for run, seconds in zip(sides, spent, strict=True):
                    start = time.process_time()
                    run()
                    if number >= _WARM:
                        seconds.append(time.process_time() - start)
        except Exception:
            continue
        (least, second), (least_now, second_now) = sorted(spent[0])[:2], sorted(spent[1])[:2]
        noise = max(second - least, second_now - least_now)
        gained[provider] = least - least_now if abs(least - least_now) > noise else 0.0
    return gained


def _peak(graph: ModelGraph, inference: Inference, feeds: Mapping[str, Any]) -> int:
    """The most bytes that are alive in a run, 0 where they cannot be computed."""
    try:
        return timeline(graph, inference, {}, feeds).peak
    except (OnnxlabError, ValueError):
        return 0


def _session(graph: ModelGraph) -> Any:
    """A session of onnxruntime with the model; None where it is not installed or refuses the model."""
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # it writes past Python, into the terminal
        options.intra_op_num_threads = 1  # idle threads spin, which counts as processor time
        levels = onnxruntime.GraphOptimizationLevel  # above layouts, 1.31 crashes at a Transpose and MatMul in float16
        options.graph_optimization_level = getattr(levels, "ORT_ENABLE_LAYOUT", levels.ORT_ENABLE_ALL)
        providers = ["CPUExecutionProvider"]
        return onnxruntime.InferenceSession(graph.proto.SerializeToString(), options, providers=providers)
    except Exception:
        return None


def _tried(
    before: _Measured, name: str, doc: str, plan: Pipeline, options: RewriteOptions, trust: Trust
) -> Suggestion | None:
    graph, inference, known = before.graph, before.inference, before.known
    subject = Subject(graph, inference)
    try:
        with graph.edit("suggest") as edit:
            edit.take_back()
            done = pipeline.rewrite(graph, inference.facts, subject.compute, plan, options)
            if not done.applied:
                return None
            judged = trust.judge(TrialRuns(Runner(graph, done.fact), times=3), known)
            now = _Measured(graph, inference, known, bool(before.runs))
            places = tuple(
                application.place
                for application in done.applied
                if PASS_OF.get(application.rule, application.rule) == name
            )
            return Suggestion(
                name,
                doc,
                places,
                before.nodes - now.nodes,
                before.bytes - now.bytes,
                before.peak - now.peak,
                _gained(before, now),
                judged.verdict,
                judged.why,
            )
    except (EditError, OnnxlabError):
        return None
