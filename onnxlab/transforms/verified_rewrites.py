"""Rewrites that are tried before they stay: run before and after, taken back where an output differs, and noted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import onnx

from onnxlab.errors import EditError
from onnxlab.execution.run.runner import Runner
from onnxlab.execution.run.trial_runs import TrialRuns
from onnxlab.garbage_collection import no_collection
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.transforms import verification
from onnxlab.transforms.metadata_transfer import MetadataLoss, lost, statements
from onnxlab.transforms.pipeline import Pipeline, count_bytes, count_constants, count_nodes, rewrite
from onnxlab.transforms.receipt import Application, Receipt, RefusedRewrite
from onnxlab.transforms.regions import Regions
from onnxlab.transforms.rewriting import RewriteOptions, Rewriting
from onnxlab.transforms.shrinking import shrunk
from onnxlab.transforms.verification import Case, Feeds, Judgment
from onnxlab.transforms.verification_runs import Subject, Trust

MOST_REFUSALS: Final = 24
"""Applications that are taken back one by one, before the whole rewrite is."""

MOST_MEASURED: Final = 128
"""Applications whose loss is measured one by one where a bound is exceeded; of more, neighbors are together."""

MOST_COPIED: Final = 1 << 26
"""Bytes of the largest model for which inputs that show a difference are made smaller, which needs a copy of it."""

_TWICE: Final = 2  # refused places of a rule after which it is refused everywhere


def compared(before: Subject, after: Subject, trust: Trust) -> Judgment:
    """The verdict of running two models on the same inputs."""
    known = before.cases(trust)
    judged = verification.judge_with_noise(after.run, known, before.rounded)
    judged = shrunk(judged, before.run, after.run, before.facts())
    doubts = before.doubts(known)
    return replace(judged, why=judged.why or doubts) if doubts else judged


@dataclass(slots=True)
class _Tried:
    """The result of an attempt."""

    applied: tuple[Application, ...] = ()
    lost: tuple[MetadataLoss, ...] = ()
    nodes: int = 0
    judged: Judgment = field(default_factory=lambda: Judgment("not run"))
    refused: tuple[RefusedRewrite, ...] = ()
    unfit: tuple[RefusedRewrite, ...] = ()
    constants: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, graph: ModelGraph) -> "_Tried":
        """The sizes of a model as it is."""
        return cls(nodes=count_nodes(graph), constants=count_constants(graph), bytes=count_bytes(graph))


def _receipt(before: _Tried, now: _Tried, refused: Sequence[RefusedRewrite] = (), note: str = "") -> Receipt:
    return Receipt(
        now.applied, (before.nodes, now.nodes), now.lost, tuple(refused), now.judged.verdict, note, now.unfit,
        (before.constants, now.constants), (before.bytes, now.bytes),
    )  # fmt: skip


class Rewrite:
    """One rewrite of a model: a preview, or one step of the history.

    Args:
        graph: the model.
        inference: its facts.
        label: the label of the step.
        plan: the rewriting to do.
        options: the limits of it.
        trust: how the rewrite is verified.
    """

    def __init__(
        self, graph: ModelGraph, inference: Inference, label: str, plan: Pipeline, options: RewriteOptions, trust: Trust
    ) -> None:
        self._graph = graph
        self._inference = inference
        self._label = label
        self._plan = plan
        self._options = options
        self._trust = trust
        self._said = statements(graph)
        self._known: list[Case] = []
        self._is_rounded = trust.loses  # whether the noise of what nodes compute is measured
        self._is_weighed = trust.at_most is None  # whether the loss of each application was measured
        self._regions = Regions()
        self._subject = Subject(graph, inference)

    def look(self) -> Receipt:
        """Return what the rewrite would do; the model stays as it was."""
        with self._graph.lock:
            self._refuse()
            before = _Tried.of(self._graph)
            return _receipt(before, self._attempt(replace(self._options, traced=True), keep=False))

    def do(self) -> Receipt:
        """Rewrite the model, without the applications that change an output."""
        with self._graph.lock:
            self._refuse()
            before, note, subject = _Tried.of(self._graph), "", self._subject
            if self._trust.verify:
                self._known = subject.cases(self._trust)
                note = subject.doubts(self._known)
            options, refused = self._options, list[RefusedRewrite]()
            if self._trust.verify and (note or self._trust.regions) and not self._trust.loses:
                options = replace(options, regions=True)
            while True:
                tried = self._attempt(options, keep=True)
                if tried.refused:
                    refused += tried.refused
                    options = replace(options, refused=options.refused | self._places(options, tried.refused))
                    continue
                if self._trust.accepts(tried.judged):
                    note = note or (tried.judged.why if self._trust.loses else "")
                    return _receipt(before, tried, refused, note)
                if not self._is_rounded:
                    self._known, self._is_rounded = verification.with_noise(subject.rounded(), self._known), True
                    options = replace(options, regions=True)  # noise may be large: regions alone amplify little
                    continue
                if not self._is_weighed:
                    costly, self._is_weighed = self._costly(options, tried), True
                    refused += costly
                    options = replace(options, refused=options.refused | self._places(options, costly))
                    continue
                if len(refused) >= MOST_REFUSALS:
                    if self._trust.loses and options.most is None:
                        refused.append(RefusedRewrite("all others", "", tried.judged.why))
                        options = replace(options, most=self._most(options, tried)[0])
                        continue
                    refused.append(RefusedRewrite("all together", "", tried.judged.why))
                    return _receipt(before, replace(before, judged=tried.judged), refused, note)
                culprit = self._culprit(options, tried)
                refused.append(culprit[0])
                options = culprit[1]

    def _refuse(self) -> None:
        if self._graph.read_only:
            raise EditError(self._graph.read_only)
        if self._graph.uninferred:
            raise EditError(f"rules are of ONNX's operators, and those of this model are not: {self._graph.uninferred}")

    def _attempt(self, options: RewriteOptions, keep: bool, against: Subject | None = None) -> _Tried:
        """Rewrite and judge inside of an edit; the edit stays where `keep` is set and the judgment accepted.

        Args:
            options: the limits of the rewrite.
            keep: whether an accepted edit stays.
            against: the model as it was, to search for the smallest inputs that show a difference; None for no search.
        """
        tried = _Tried()
        try:
            with self._graph.edit(self._label) as edit:
                if not keep:
                    edit.take_back()
                with no_collection():
                    done = rewrite(self._graph, self._inference.facts, self._subject.compute, self._plan, options)
                tried = replace(
                    _Tried.of(self._graph),
                    applied=tuple(done.applied if done.traces is None else done.traces.told(done.applied)),
                    lost=lost(self._said, statements(self._graph)),
                    unfit=tuple(done.unfit.values()) if self._trust.regions or self._trust.loses else (),
                )
                if self._known and done.applied:
                    tried.judged = self._trust.judge(self._runs(done), self._known)
                    if against is not None:
                        tried.judged = shrunk(tried.judged, against.run, self._runs(done), against.facts())
                elif self._known:
                    tried.judged = Judgment("bit equal")
                if keep:
                    self._judge_regions(done, tried)
                if tried.refused or not self._trust.accepts(tried.judged):
                    edit.take_back()
        except EditError as error:
            tried.judged = Judgment("different", f"the model would not be valid: {error}")
        return tried

    def _judge_regions(self, done: Rewriting, tried: _Tried) -> None:
        """Judge each application of a rule by its nodes alone; those that are not accepted become refusals."""
        verdicts: dict[tuple[str, str], Judgment] = {}
        for region in done.regions:
            verdicts[region.rule, region.place] = self._regions.judge(region)
        refusals = []
        for application in tried.applied:
            judged = verdicts.get((application.rule, application.value))
            if judged is not None and not self._trust.accepts(judged):
                refusals.append(
                    RefusedRewrite(application.rule, application.place, judged.why, judged.feeds, application.value)
                )
        tried.refused = tuple(refusals)
        tried.applied = tuple(
            replace(application, verdict=verdicts[application.rule, application.value].verdict)
            if (application.rule, application.value) in verdicts
            else application
            for application in tried.applied
        )

    def _costly(self, options: RewriteOptions, tried: _Tried) -> list[RefusedRewrite]:
        """The applications that cost most, as few of them as a bound on the loss allows; each was measured alone."""
        applied = tried.applied
        names = {(entry.rule, entry.value) for entry in applied}
        size = -(-len(applied) // MOST_MEASURED)
        costs: list[tuple[float, RefusedRewrite]] = []
        for start in range(0, len(applied), size):
            group = applied[start : start + size]
            others = names - {(entry.rule, entry.value) for entry in group}
            judged = self._attempt(replace(options, refused=options.refused | others), False).judged
            alone = "alone" if size == 1 else "with what is next to it"
            why = f"{alone}, {judged.why}" if judged.why else "alone, it costs nothing; with the others it does"
            costs += [(judged.loss, RefusedRewrite(item.rule, item.place, why, value=item.value)) for item in group]
        costs.sort(key=lambda cost: -cost[0])
        worst, good, bad = [refusal for _, refusal in costs], len(costs), 0
        while good - bad > 1:
            middle = (good + bad) // 2
            places = self._places(options, worst[:middle])
            judged = self._attempt(replace(options, refused=options.refused | places), False).judged
            good, bad = (middle, bad) if self._trust.accepts(judged) else (good, middle)
        return worst[:good]

    def _most(self, options: RewriteOptions, tried: _Tried) -> tuple[int, _Tried]:
        """The largest number of first applications after which the model is accepted, and an attempt with one more."""
        good, bad, last = 0, len(tried.applied), tried
        while bad - good > 1:
            middle = (good + bad) // 2
            attempt = self._attempt(replace(options, most=middle), keep=False)
            if self._trust.accepts(attempt.judged):
                good = middle
            else:
                bad, last = middle, attempt
        return good, last

    def _culprit(self, options: RewriteOptions, tried: _Tried) -> tuple[RefusedRewrite, RewriteOptions]:
        """The first application after which the model is not accepted, and options without it."""
        good, last = self._most(options, tried)
        bad = good + 1
        if last.judged.feeds and self._graph.proto.ByteSize() <= MOST_COPIED:
            copy = onnx.ModelProto()
            copy.CopyFrom(self._graph.proto)
            before = ModelGraph(copy, self._graph.base_dir)
            last = self._attempt(replace(options, most=bad), False, Subject(before, Inference(before)))
        application = (
            last.applied[min(bad, len(last.applied)) - 1] if last.applied else Application("all together", "", "")
        )
        refusal = RefusedRewrite(
            application.rule, application.place, last.judged.why, last.judged.feeds, application.value
        )
        return refusal, replace(options, refused=options.refused | self._places(options, (refusal,)))

    def _runs(self, done: Rewriting) -> Callable[[Feeds], Mapping[str, Any]]:
        """A function that runs the model inside of the edit, before inference knows its new values."""
        return TrialRuns(Runner(self._graph, done.fact), times=3)

    def _places(self, options: RewriteOptions, refused: Sequence[RefusedRewrite]) -> set[tuple[str, str]]:
        """(rule, place) pairs to refuse: each refused place, and "" for rules that were refused twice before."""
        before = [rule for rule, _ in options.refused]
        rules = {refusal.rule for refusal in refused if before.count(refusal.rule) >= _TWICE and not self._trust.loses}
        return {(refusal.rule, refusal.value) for refusal in refused} | {(rule, "") for rule in rules}
