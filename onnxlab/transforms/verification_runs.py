"""The model that is verified: how it is run, on which inputs, and whether these say anything."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onnxlab.argument_types import several
from onnxlab.errors import FeedError, OnnxlabError
from onnxlab.execution.run.runner import Runner
from onnxlab.execution.run.trial_runs import TrialRuns
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.shapes import Fact
from onnxlab.transforms import measured_loss, verification
from onnxlab.transforms.rounding import rounded_runs
from onnxlab.transforms.verification import Case, Feeds, Judgment, RunModel

SEARCH_SECONDS: Final = 10.0
"""Time to search for sizes on which a model runs, where it does not run on the usual ones."""

_LARGER: Final = (1, 16, 64, 256, 1024, 4096, 16384)


@dataclass(frozen=True, slots=True)
class Trust:
    """The ways to verify a rewrite.

    Attributes:
        verify: whether the model is run before and after.
        samples: inputs to run it on, None for made-up ones.
        finite_only: whether differences are accepted that show for NaN and infinities alone.
        regions: whether the nodes of each application are run apart from the model too, as for rules of users.
        loses: whether the rewrite is to lose precision, so that outputs are only to be finite and near.
        at_most: where it loses precision, the largest accepted difference as part of an output's largest element.
    """

    verify: bool = True
    samples: Sequence[Feeds] | None = None
    finite_only: bool = False
    regions: bool = False
    loses: bool = False
    at_most: float | None = None

    def accepts(self, judged: Judgment) -> bool:
        """Whether a rewrite with this judgment may stay."""
        good = ("not run", "bit equal", "equal within noise", "rounded")
        return judged.verdict in good or (self.finite_only and judged.verdict == "finite inputs only")

    def judge(self, run: RunModel, before: Sequence[Case]) -> Judgment:
        """The verdict of what a model makes now, with what it made before."""
        return measured_loss.judge(run, before, self.at_most) if self.loses else verification.judge(run, [*before])


class Subject:
    """A model that is run.

    Args:
        graph: the model.
        inference: its facts.
    """

    def __init__(self, graph: ModelGraph, inference: Inference) -> None:
        self.graph = graph
        self.inference = inference
        self._trials = TrialRuns(Runner(graph, inference.fact))  # one for all runs: it keeps what it compiled

    def run(self, feeds: Feeds) -> Mapping[str, Any]:
        """The outputs for inputs; values that are kept stay as they are."""
        return self._trials(feeds)

    def rounded(self) -> list[RunModel]:
        """Runs in which what nodes compute is off by a rounding."""
        return rounded_runs(self.graph, self.inference.fact)

    def cases(self, trust: Trust) -> list[Case]:
        """The outputs of the model for inputs of every kind; where it runs on none, for inputs of other sizes."""
        cases = measured_loss.cases if trust.loses else verification.cases
        known = cases(self.run, self.samples(trust))
        if trust.samples is None and known and all(case.failed for case in known):
            known = cases(self.run, self._of_other_sizes()) or known
        return known

    def samples(self, trust: Trust) -> list[Feeds]:
        """Inputs to verify with: those given, else made-up ones of several sizes; none where none can be made.

        Raises:
            FeedError: given ones do not fit the model: nothing would be verified.
        """
        if trust.samples is not None:
            samples = several(trust.samples, Mapping, "samples", "a list of {input: array}")
            return [self._complete(number, sample) for number, sample in enumerate(samples)]
        runner = Runner(self.graph, self.inference.fact)
        feeds: list[Feeds] = []
        try:
            feeds.append(runner.sample_inputs(None, seed=0))
            feeds += [sized for sizes in _SIZES if (sized := self._sized(runner, sizes)) is not None]
        except OnnxlabError:
            pass
        return feeds

    def _complete(self, number: int, sample: Feeds) -> Feeds:
        """A sample of the user as it is, when each of its arrays fits an input and each needed input has one."""
        inputs = {self.graph.values[vid].name for vid in self.graph.main.inputs}
        stored = {
            self.graph.values[vid].name
            for vid in self.graph.main.inputs
            if self.graph.values[vid].initializer is not None
        }
        runner = Runner(self.graph, self.inference.fact)
        try:
            runner.checked(sample)
        except FeedError as error:
            raise FeedError(f"sample {number} does not fit the model: {error}") from error
        if wrong := [name for name in sample if name not in inputs] + sorted(inputs - stored - sample.keys()):
            names, expected = (", ".join(map(repr, words)) for words in (wrong, sorted(inputs - stored)))
            raise FeedError(f"sample {number} has other names than the inputs: {names}; expected {expected}")
        return sample

    def _symbols(self) -> list[str]:
        """Names of the symbolic dims of the inputs."""
        facts = [self.inference.fact(vid) for vid in self.graph.main.inputs]
        return list(dict.fromkeys(str(dim) for fact in facts for dim in fact.shape or () if not isinstance(dim, int)))

    def _sized(self, runner: Runner, sizes: Callable[[int], int]) -> Feeds | None:
        """Inputs with other sizes of the symbolic dims; None where there are none, or they cannot be made up."""
        names = self._symbols()
        if not names:
            return None
        try:
            return runner.sample_inputs(None, seed=1, sizes={name: sizes(place) for place, name in enumerate(names)})
        except OnnxlabError:
            return None

    def _of_other_sizes(self) -> list[Feeds]:
        """Inputs of sizes on which the model runs, and more of other sizes; none where the search finds none."""
        runner = Runner(self.graph, self.inference.fact)
        end = time.perf_counter() + SEARCH_SECONDS
        for sizes in _larger(self._symbols()):
            if time.perf_counter() > end:
                break
            feeds = self._tried(runner, sizes)
            if feeds is not None:
                most = max(sizes.values())
                others = [{name: size if size < most else 2 * size for name, size in sizes.items()}]
                others.append({name: size if size == most else 3 * size for name, size in sizes.items()})
                more = [self._tried(runner, other) for other in others]
                return [feeds, *(extra for extra in more if extra is not None)]
        return []

    def _tried(self, runner: Runner, sizes: Mapping[str, int]) -> Feeds | None:
        """Inputs of some sizes; None where the model does not run on them."""
        try:
            feeds = runner.sample_inputs(None, seed=0, sizes=sizes)
            self.run(feeds)
        except OnnxlabError:
            return None
        return feeds

    def facts(self) -> dict[str, Fact]:
        """The known facts of the inputs, by name."""
        return {self.graph.values[vid].name: self.inference.fact(vid) for vid in self.graph.main.inputs}

    def compute(self, names: Sequence[str]) -> dict[str, Any]:
        """Arrays of values that depend on no input."""
        return self._trials({}, list(names))

    def doubts(self, known: list[Case]) -> str:
        """The reason why the cases prove nothing, "" where they do."""
        if all(case.failed for case in known):
            return "the model could not be run, so that nothing was verified: " + next(
                (case.failed for case in known), "no inputs can be made up for it"
            )
        endless = [case for case in known if case.endless]
        if endless:
            kinds = ", ".join(dict.fromkeys(case.kind for case in endless))
            return f"on some inputs ({kinds}) the model did not end, so that these say nothing: {endless[0].failed}"
        if not verification.reacts(self.run, known):
            return "the outputs hardly depend on the inputs, so that equal ones say little"
        return ""


def _larger(names: Sequence[str]) -> Iterator[dict[str, int]]:
    """Sizes to try: one dim large, the last one first, and the others 1; then all of them large."""
    for size in _LARGER if names else ():
        for large in reversed(names):
            yield {name: size if name == large else 1 for name in names}
        yield dict.fromkeys(names, size)


_SIZES: Final[tuple[Callable[[int], int], ...]] = (lambda place: 1, lambda place: 3 + place)
"""Sizes of the symbolic dims by their place: all of them one, and all of them different."""
