"""Rewriting a Model: fewer nodes that compute the same, tried before it stays."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from onnxlab.errors import OnnxlabError
from onnxlab.execution.run.runner import Runner
from onnxlab.graph.edit.model_graph import ModelGraph
from onnxlab.infer import Inference
from onnxlab.transforms.receipt import Receipt
from onnxlab.transforms.rewriting import Rewriting as Done
from onnxlab.transforms.simplification import BUDGET, PASSES, count_nodes, rewrite
from onnxlab.transforms.verification import Case, Judgment, cases, judge

_ACCEPTED = ("bit equal", "equal within noise")


class _TakeBackError(Exception):
    """Ends an edit that was only to be looked at."""


class Rewriting:
    """Rewrites of a Model, as members."""

    __slots__ = ()

    graph: ModelGraph
    inference: Inference
    runner: Runner

    def simplify(
        self,
        *,
        verify: bool = True,
        samples: Sequence[Mapping[str, Any]] | None = None,
        protect: Collection[str] = (),
        budget: int = BUDGET,
        finite_only: bool = False,
        dry_run: bool = False,
    ) -> Receipt:
        """Leave less of the main graph without changing what it computes, as one step of the history.

        What depends on no input is computed and stored, sizes that inference knows are stored, and nodes that do
        nothing, undo or repeat each other, or that nothing needs are taken out. Names of values that stay are kept.

        Args:
            verify: run the model before and after on inputs of several kinds; a pass that changes an output is taken
                back, and the receipt says which.
            samples: inputs to verify with, in place of made-up ones.
            protect: names of nodes and values that stay as they are.
            budget: bytes that stored results may add to the model.
            finite_only: accept what differs for NaN and infinities alone.
            dry_run: only say what would be done.

        Returns:
            Receipt: each application of a pass, what was lost, and what running both models said.

        Raises:
            EditError: the model must not be edited.

        Examples:
            >>> receipt = model.simplify()
            >>> receipt.nodes[1] <= receipt.nodes[0]
            True
        """
        with self.graph.lock:
            before = count_nodes(self.graph)
            if dry_run:
                return self._tried(before, tuple(PASSES), protect, budget)
            known = cases(self._run, self._samples(samples)) if verify else []
            accepted = (*_ACCEPTED, "not run", *(("finite inputs only",) if finite_only else ()))
            passes, refused = tuple(PASSES), dict[str, str]()
            done, judged = self._applied(passes, protect, budget, known)
            if judged.verdict not in accepted:
                self.graph.undo()
                passes, refused = self._sound(known, protect, budget, accepted)
                done, judged = self._applied(passes, protect, budget, known)
                if judged.verdict not in accepted:  # passes that are sound alone are not together
                    self.graph.undo()
                    return Receipt((), (before, before), (), {**refused, "all together": judged.why}, judged.verdict)
            return Receipt(
                tuple(done.applied), (before, count_nodes(self.graph)), tuple(done.lost), refused, judged.verdict
            )

    def _applied(
        self, passes: Collection[str], protect: Collection[str], budget: int, known: list[Case]
    ) -> tuple[Done, Judgment]:
        with self.graph.edit("simplify"):
            done = self._rewritten(passes, protect, budget)
        return done, judge(self._run, known)

    def _rewritten(self, passes: Collection[str], protect: Collection[str], budget: int) -> Done:
        runner = Runner(self.graph, self.inference.fact)
        return rewrite(
            self.graph,
            self.inference.fact,
            lambda names: runner.run({}, list(names), keep=False, strict=False),
            passes,
            protect,
            budget,
        )

    def _tried(self, before: int, passes: Collection[str], protect: Collection[str], budget: int) -> Receipt:
        """The rewrite tried; nothing stays of it."""
        receipt = Receipt()
        try:
            with self.graph.edit("simplify"):
                done = self._rewritten(passes, protect, budget)
                receipt = Receipt(tuple(done.applied), (before, count_nodes(self.graph)), tuple(done.lost))
                raise _TakeBackError
        except _TakeBackError:
            return receipt

    def _sound(
        self, known: list[Case], protect: Collection[str], budget: int, accepted: Collection[str]
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """The passes that change no output when they run alone, and why the others are refused."""
        sound, refused = [], {}
        for name in PASSES:
            version = self.graph.version
            _, judged = self._applied((name,), protect, budget, known)
            if judged.verdict in accepted:
                sound.append(name)
            else:
                refused[name] = judged.why
            if self.graph.version != version:
                self.graph.undo()
        return tuple(sound), refused

    def _samples(self, samples: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
        """Inputs to verify with: those given, else made-up ones of several sizes; none where none can be made."""
        if samples is not None:
            return list(samples)
        try:
            return [self.runner.sample_inputs(None, seed=seed) for seed in (0, 1)]
        except OnnxlabError:
            return []

    def _run(self, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
        """The outputs of the model for inputs; values that are kept stay as they are."""
        return Runner(self.graph, self.inference.fact).run(dict(feeds), keep=False, seed=0, strict=False)
