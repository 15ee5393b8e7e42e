"""Changes of a Model since another state of its history, the effect of a difference, and values that went wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from onnxlab.formats.journals.journal import Journal
from onnxlab.formats.source import Source
from onnxlab.model.running import RunnerOwner

if TYPE_CHECKING:
    from onnxlab.analysis.diff.change import Ignorable
    from onnxlab.analysis.diff.difference import Diff
    from onnxlab.analysis.hunt.hunting import Hunt
    from onnxlab.analysis.watches.watches import Checked, Watches
    from onnxlab.execution.base.provider import Provider
    from onnxlab.model.viewable_diffs import ModelDiff


class Comparing(RunnerOwner):
    """Differences of a Model, as members."""

    __slots__ = ()

    _watches: Watches | None
    _source: Source
    _journal: Journal

    @property
    def watches(self) -> Watches:
        """The watched expressions, as `watch` adds them: iterating checks each against the last run.

        Examples:
            >>> checked = model.watch("probabilities", "max <= 1")
            >>> len(model.watches)
            1
        """
        if self._watches is None:
            from onnxlab.analysis.watches.watches import Watches

            tell = self.runner.on_demand.tell
            self._watches = Watches(self.graph, self.inference.fact, self.runner.store, tell)  # type: ignore[misc]
        return self._watches

    def changes_since(self, state: int | str = 0, *, ignore: Collection[Ignorable] = ()) -> ModelDiff:
        """Compare the model with what it was at another state of its history.

        Args:
            state: a number of edits since the model was loaded, negative from now, or the label of the edit that led
                to it; 0 is the model as loaded.
            ignore: as of `onnxlab.diff`.

        Returns:
            ModelDiff: from that state to now; `view()` shows both side by side.

        Raises:
            EditError: the history has no such state, or had to drop the edits since then.

        Examples:
            >>> model.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
            >>> print(model.changes_since().changes[0])
            node /stem/relu/Relu: operator Relu → Sigmoid
        """
        from onnxlab.analysis.diff.versions import as_of
        from onnxlab.model.viewable_diffs import ModelDiff

        with self.graph.lock:
            position = self.graph.history.position_of(state)
            before = as_of(self.graph, position)
            return ModelDiff(lambda: (self.earlier(position), self), (before, self.graph), ignore)

    def earlier(self, state: int | str) -> Self:
        """Make a model of what this one was at another state of its history.

        Args:
            state: as of `changes_since`.

        Returns:
            Model: a new model without history; this one stays as it is.

        Raises:
            EditError: the history has no such state, or had to drop the edits since then.

        Examples:
            >>> model.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
            >>> model.earlier(0).nodes["/stem/relu/Relu"].op_type
            'Relu'
        """
        from onnxlab.analysis.diff.versions import as_of

        with self.graph.lock:
            before = as_of(self.graph, self.graph.history.position_of(state))
            source = Source(base_dir=self.graph.base_dir, strings=self._source.strings)
            return type(self)(before.proto, source)  # type: ignore[call-arg]

    def patch(self, diff: Diff, *, strict: bool = True) -> list[str]:
        """Make the changes of a difference to this model, as one step of the history.

        A model that equals the first one of the difference becomes the second one to the byte, unless something was
        ignored. In any other model, the nodes and values that correspond to the first one by structure are changed;
        names and documentation that this model has of its own stay.

        Args:
            diff: of two models, from `onnxlab.diff`.
            strict: refuse where something that changed is not in this model, or was changed in it too (a wire, an
                attribute, elements, a type); False makes the other changes, and in conflicts those of the difference.

        Returns:
            list[str]: labels of what the difference changes and this model does not have, and of conflicts.

        Raises:
            EditError: something is missing, both changed one thing, the models were edited since, or the result would
                not be valid.

        Examples:
            >>> other = onnxlab.load()
            >>> other.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
            >>> model.patch(onnxlab.diff(model, other))
            []
            >>> model.nodes["/stem/relu/Relu"].op_type
            'Sigmoid'
        """
        from onnxlab.analysis.diff.patching import patch
        from onnxlab.formats import foreign
        from onnxlab.model.viewable_diffs import ModelDiff

        strings = {}
        if isinstance(diff, ModelDiff):
            theirs = diff.models()[1]._source.strings
            strings = foreign.brought(self.graph.proto, self._source.strings, diff.a.proto, diff.b.proto, theirs)
        with self._journal.bringing(strings):
            missing = patch(self.graph, diff, strict=strict)
        self._source = self._source.with_strings(strings)  # type: ignore[misc]  # a slot of `Saving`, a base of Model
        return missing

    def hunt(
        self, inputs: Mapping[str, Any] | None = None, *, providers: Sequence[str | Provider] | None = None
    ) -> Hunt:
        """Run once and look for values that went wrong, in the order in which they are made.

        The findings are NaN and infinities with the node where they begin, numbers that float16 cannot hold, channels
        that are zero throughout, and activations with half of their elements at an end of their range.

        Args:
            inputs: arrays by input; missing ones are made up.
            providers: as of `run`.

        Returns:
            Hunt: print it; true where there are findings.

        Raises:
            FeedError, RunError: as `run`.

        Examples:
            >>> model.hunt({"image": np.full((1, 1, 8, 8), np.inf, np.float32)}).first("nan").node
            '/stem/conv/Conv'
        """
        from onnxlab.analysis.compare.sides import RunSide
        from onnxlab.analysis.hunt.hunting import hunt
        from onnxlab.execution.run.trial_runs import trial_limits

        side = RunSide(self.graph, self.inference.fact, providers, trial_limits(10) if inputs is None else None)
        return hunt(side, self.runner.sample_inputs(inputs))

    def watch(self, name: str, expression: str) -> Checked:
        """Watch a value, what a node makes, or every value: `model.watches` checks it against the last run.

        An expression compares measures (abs_max, min, max, mean, std, nan, inf, zeros, count, shape, rank, dtype) with
        numbers and sizes, joined by and, or, not: `abs_max < 65504 and nan == 0`, `shape == (batch, 80, None)`; or with
        a file in the model's folder: `close_to("ref.npz", 1e-4)`.

        Args:
            name: of a value or a node; "*" is every value.
            expression: the condition on the value.

        Returns:
            Checked: whether the expression holds now; "unknown" where nothing was run.

        Raises:
            NameLookupError: nothing has this name.
            WatchError: the expression cannot be read.

        Examples:
            >>> model.watch("logits", "shape == (batch, 10)").state
            'holds'
            >>> model.watch("*", "nan == 0").state
            'unknown'
            >>> done = model.run(np.zeros((1, 1, 8, 8), np.float32))
            >>> [each.state for each in model.watches]
            ['holds', 'holds']
            >>> model.metadata["onnxlab.watches"] = model.watches.to_json()  # which the file brings along
        """
        return self.watches.add(name, expression)
