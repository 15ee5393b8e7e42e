"""What would help a model: each rule alone, where it applies, what it gains, measured, and what running both says."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from onnxlab.errors import EditError, OnnxlabError
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.printable import printable
from onnxlab.transforms import engine, verification
from onnxlab.transforms.engine import PASSES, Plan, count_nodes
from onnxlab.transforms.receipt import Verdict
from onnxlab.transforms.rewriting import Options
from onnxlab.transforms.rules.rule import AnyRule
from onnxlab.transforms.subject import Subject, Trust
from onnxlab.transforms.verified import Rewrite

MOST_RUNS_BYTES: Final = 1 << 29
"""Of a model: larger ones are not copied for onnxruntime, and its time is not told."""

_REPEATS: Final = 3


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A rule or pass that would change something.

    Attributes:
        rule: its name.
        doc: what it does.
        places: labels of the nodes at which it applies first.
        nodes: how many nodes fewer there would be.
        bytes: how many bytes fewer the model would have.
        seconds: by provider ("numpy", "onnxruntime"), how much less a run would take.
        verdict: what running the model before and after said.
    """

    rule: str
    doc: str
    places: tuple[str, ...]
    nodes: int
    bytes: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    verdict: Verdict = "not run"

    def __str__(self) -> str:
        gained = [f"{self.nodes} nodes", f"{self.bytes:,} bytes"]
        gained += [f"{1000 * seconds:.3g} ms of {name}" for name, seconds in self.seconds.items()]
        return printable(f"{self.rule} at {len(self.places)} places: {', '.join(gained)} less; {self.verdict}")


class _TakeBackError(Exception):
    """Ends an edit that was only tried."""


def suggestions(
    graph: ModelGraph, inference: Inference, rules: Sequence[AnyRule], options: Options, trust: Trust, timed: bool
) -> list[Suggestion]:
    """What each rule and pass would gain alone, the largest gain of nodes first; nothing stays of it."""
    with graph.lock:
        docs = {rule.name: rule.doc for rule in rules}
        tried = Rewrite(graph, inference, "suggest", engine.standard(rules), options, trust).look()
        by_name = {rule.name: rule for rule in rules}
        names = [name for name in tried.counts if name in by_name]
        plans: dict[str, Plan] = {name: engine.only([by_name[name]]) for name in names}
        plans |= {name: engine.standard((), (name, "unused")) for name in PASSES}
        subject = Subject(graph, inference)
        known = subject.cases(trust) if trust.verify else []
        before = _Measured(graph, inference.fact, known, timed)
        candidates = [
            _tried(graph, inference, name, docs.get(name, PASS_DOCS.get(name, "")), plan, options, known, before)
            for name, plan in plans.items()
        ]
    return sorted(
        (suggestion for suggestion in candidates if suggestion is not None),
        key=lambda suggestion: (-suggestion.nodes, -suggestion.bytes),
    )


PASS_DOCS: Final = {name: (module.__doc__ or "").strip() for name, module in PASSES.items()}


class _Measured:
    """Nodes, bytes and times of a model as it is now."""

    def __init__(self, graph: ModelGraph, fact: Any, known: list[verification.Case], timed: bool) -> None:
        self.nodes = count_nodes(graph)
        self.bytes = graph.proto.ByteSize()
        self.timed = timed
        self.seconds: dict[str, float] = {}
        case = next((case for case in known if not case.failed), None)
        if not timed or case is None:
            return
        feeds = dict(case.feeds)
        runner = Runner(graph, fact)
        self.seconds["numpy"] = _least(lambda: runner.run(feeds, keep=False, seed=0, strict=False))
        session = _session(graph) if self.bytes < MOST_RUNS_BYTES else None
        if session is not None:
            self.seconds["onnxruntime"] = _least(lambda: session.run(None, feeds))


def _session(graph: ModelGraph) -> Any:
    """A session of onnxruntime with the model; None where it is not installed or refuses the model."""
    try:
        import onnxruntime

        return onnxruntime.InferenceSession(graph.proto.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception:
        return None


def _least(run: Any) -> float:
    """The least seconds of a few runs, after one that warms up; infinite where it fails."""
    best = float("inf")
    for number in range(_REPEATS + 1):
        start = time.perf_counter()
        try:
            run()
        except Exception:
            return float("inf")
        if number:
            best = min(best, time.perf_counter() - start)
    return best


def _tried(
    graph: ModelGraph, inference: Inference, name: str, doc: str, plan: Plan, options: Options,
    known: list[verification.Case], before: _Measured,
) -> Suggestion | None:  # fmt: skip
    suggestion: Suggestion | None = None
    subject = Subject(graph, inference)
    try:
        with graph.edit("suggest"):
            done = engine.rewrite(graph, inference.facts, subject.compute, plan, options)
            if not done.applied:
                raise _TakeBackError
            runner = Runner(graph, done.fact)
            judged = verification.judge(lambda feeds: runner.run(dict(feeds), keep=False, seed=0, strict=False), known)
            now = _Measured(graph, done.fact, known, before.timed)
            gained = {
                key: before.seconds[key] - seconds
                for key, seconds in now.seconds.items()
                if key in before.seconds and max(seconds, before.seconds[key]) < float("inf")
            }
            places = tuple(application.place for application in done.applied)
            suggestion = Suggestion(
                name, doc, places, before.nodes - now.nodes, before.bytes - now.bytes, gained, judged.verdict
            )
            raise _TakeBackError
    except _TakeBackError:
        return suggestion
    except (EditError, OnnxlabError):
        return None
