"""`diff` and `compare`: the structural difference of two models, and their values pair by pair."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxlab.argument_types import expect, tolerance_of
from onnxlab.errors import FeedError, LoadError
from onnxlab.formats.source import ModelSource
from onnxlab.limits import Limits
from onnxlab.model.model import Model
from onnxlab.model.opening import load

if TYPE_CHECKING:
    from onnxlab.analysis.compare.sides import RecordedSide, RunSide
    from onnxlab.analysis.diff.change import Ignorable
    from onnxlab.analysis.diff.matching import Fingerprints
    from onnxlab.execution.base.provider import Provider
    from onnxlab.model.viewable_diffs import ModelComparison, ModelDiff

    Providers = Sequence[str | Provider]

Inputs = Mapping[str, Any] | None


def diff(
    a: Model | ModelSource,
    b: Model | ModelSource,
    *,
    ignore: Collection[Ignorable] = (),
    tolerance: float = 0.0,
    inputs: Mapping[str, Any] | None = None,
) -> ModelDiff:
    """Compare two models by structure, whatever their nodes and values are called.

    Nodes, values, bodies, functions, initializers, metadata and opsets are matched and compared. `print` it, ask for
    `to_markdown` or `to_json`, look at `changes` and `regions`, or make the changes elsewhere: `model.patch(diff)`.

    Args:
        a, b: a Model each, or what `onnxlab.load` takes: any format.
        ignore: kinds of changes to leave out: "names", "order", "docs", "metadata", "declarations", "weights",
            "attributes", "opsets", "producer", "defaults" (attributes that one side sets to their default).
        tolerance: how far stored tensors may be apart to count as equal, relative to the largest magnitude.
        inputs: inputs of `a` to run both models on ({}: made-up ones), so that values that structure cannot tell apart
            are paired by equal elements. Only `compare` judges the elements themselves.

    Returns:
        ModelDiff: true where there is a difference; `view()` shows both graphs side by side.

    Raises:
        LoadError: a file is missing, or is no model.
        FeedError, RunError: as `Model.run`, with `inputs`.
        TypeError: a side is None.
        ValueError: `ignore` has an unknown word.

    Examples:
        >>> other = onnxlab.load()
        >>> other.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
        >>> print(onnxlab.diff(model, other))
        1 changed; 24 of 24 nodes matched
        ~ node /stem/relu/Relu: operator Relu → Sigmoid
    """
    from onnxlab.model.viewable_diffs import ModelDiff

    _refuse_none(a, b)
    left, right = (side if isinstance(side, Model) else load(side) for side in (a, b))
    with left.graph.lock, right.graph.lock:
        prints = None if inputs is None else _fingerprints(left, right, inputs)
        difference = ModelDiff(lambda: (left, right), (left.graph, right.graph), ignore, tolerance, prints)
        difference.changes  # noqa: B018 (now, since the models may be edited later)
    return difference


def fixed_sizes(left: Model, right: Model) -> dict[str, int]:
    """Sizes of symbolic dims of inputs that the other model fixes, so that made-up inputs fit both."""
    others = {value.name: right.fact(value.name).shape for value in right.inputs}
    sizes: dict[str, int] = {}
    for value in left.inputs:
        for dim, other in zip(left.fact(value.name).shape or (), others.get(value.name) or (), strict=False):
            if not isinstance(dim, int) and isinstance(other, int):
                sizes.setdefault(str(dim), other)
    return sizes


def _refuse_none(*sides: object) -> None:
    """Raise TypeError for a side that is None, for which `load` would open the sample model."""
    if any(side is None for side in sides):
        raise TypeError("a difference is of two models: give a Model, or what onnxlab.load takes, for each; given None")


def _fingerprints(left: Model, right: Model, inputs: Mapping[str, Any]) -> Fingerprints:
    from onnxlab.analysis.diff.fingerprints import fingerprints

    feeds = left.sample_inputs(inputs)
    limits = _of_trials(feeds, inputs)
    return fingerprints(_side(left, None, limits, "first"), _side(right, None, limits, "second"), feeds)


def _of_trials(feeds: Mapping[str, Any], inputs: Inputs) -> Limits | None:
    """The limits of runs on these feeds: those of trials where some are made up, else none."""
    from onnxlab.execution.run.trial_runs import trial_limits

    made_up = len(feeds) > len(inputs) if isinstance(inputs, Mapping) else inputs is None and bool(feeds)
    return trial_limits(10) if made_up else None


def compare(  # noqa: PLR0913
    a: Model | ModelSource,
    b: Model | ModelSource | Mapping[str, Any] | None = None,
    inputs: Inputs | tuple[Inputs, Inputs] = None,
    *,
    local: bool = False,
    since: int | str = 0,
    providers: Providers | None = None,
    b_providers: Providers | None = None,
    tolerance: float | None = None,
    limits: Limits | None = None,
) -> ModelComparison:
    """Run two models on the same inputs, pair their values by structure, and say where they diverge beyond roundings.

    Args:
        a: the reference: a Model, or what `onnxlab.load` takes.
        b: the other model; or recorded values: `{name: array}`, or a folder of .npy files named after the values of
            `a`; None: `a` as it is now, with another state of its history (`since`) as the reference.
        inputs: arrays by input of `a`; missing ones are made up. A pair of such mappings gives each model its own
            inputs, as one sample alone and in a batch: where the sizes of values differ, the part that both share is
            compared.
        local: also run each node of `b` on the inputs of its partner in `a`. This tells nodes that err by themselves
            from nodes that only pass an error on.
        since: with `b` None, the state of the history that is the reference.
        providers: as of `Model.run`.
        b_providers: providers of the other model; default: the same. `["onnxruntime"]`, with the same model as `b`,
            compares two providers.
        tolerance: how far values may be apart, relative to the largest magnitude of each, to count as equal; default:
            what roundings explain.
        limits: of each run; default: 5 minutes and 1,000,000 iterations of loops where inputs are made up.

    Returns:
        ModelComparison: print it; `first` is the first pair that diverges, `guilty` lists the pairs whose own node
            errs; `view()` shows the errors on both graphs, `arrays(name)` has both sides of a value.

    Raises:
        LoadError: a file is missing, or is no model.
        FeedError, RunError: as `Model.run`; ValueError: a tolerance below 0.

    Examples:
        >>> other = onnxlab.load()
        >>> other.nodes["/stem/relu/Relu"].op_type = "Abs"
        >>> onnxlab.compare(model, other).first.node
        '/stem/relu/Relu'
        >>> bool(onnxlab.compare(model, other, tolerance=2))
        False
    """
    from onnxlab.analysis.compare.sides import RecordedSide, whose

    left = a if isinstance(a, Model) else load(a)
    first, second = providers, providers if b_providers is None else b_providers
    most = None if tolerance is None else tolerance_of(tolerance)
    if limits is not None:
        expect(limits, Limits, "limits", "onnxlab.Limits(…)")
    if isinstance(inputs, tuple) and len(inputs) != 2:
        raise FeedError(f"a tuple of inputs has those of the first and of the second model, given {len(inputs)}")
    ours, others = inputs if isinstance(inputs, tuple) else (inputs, None)
    recorded_in = isinstance(b, str | PathLike) and Path(b).is_dir()
    right = b if b is None or recorded_in or isinstance(b, Model | Mapping) else load(b)
    with whose(_called("first", left)):
        feeds = left.runner.sample_inputs(ours, sizes=fixed_sizes(left, right) if isinstance(right, Model) else None)
    limits = limits or _of_trials(feeds, ours)
    if isinstance(b, Mapping) or (recorded_in and isinstance(b, str | PathLike)):
        recorded = RecordedSide(b if isinstance(b, Mapping) else Path(b))
        return _compared((left, None), (_side(left, first, limits, "first"), recorded), (feeds, None), local, most)
    if not isinstance(right, Model):
        left, right = left.earlier(since), left
    sides = _side(left, first, limits, "first"), _side(right, second, limits, "second")
    return _compared((left, right), sides, (feeds, others), local, most)


def _side(model: Model, providers: Providers | None, limits: Limits | None, place: str) -> RunSide:
    from onnxlab.analysis.compare.sides import RunSide

    return RunSide(model.graph, model.inference.fact, providers, limits, _called(place, model))


def _called(place: str, model: Model) -> str:
    return f"the {place} model ({model.name!r})"


def _compared(
    models: tuple[Model, Model | None],
    sides: tuple[RunSide, RunSide | RecordedSide],
    feeds: tuple[Mapping[str, Any], Mapping[str, Any] | None],
    local: bool,
    tolerance: float | None,
) -> ModelComparison:
    """Run both sides and keep them, so that a view can compute single values and compare again."""
    from onnxlab.analysis.compare.comparing import compare_recorded, compare_runs
    from onnxlab.analysis.compare.sides import RunSide
    from onnxlab.analysis.diff.difference import Diff
    from onnxlab.analysis.diff.matching import GraphMatching
    from onnxlab.model.viewable_diffs import Compared, ModelComparison, versions_of

    a, b = sides
    versions, matching = versions_of(a, b), GraphMatching()
    a.runs = 0
    if isinstance(b, RunSide):
        b.runs = 0
        matching = Diff(a.graph, b.graph).matching
        result = compare_runs(a, b, matching, *feeds, local=local)
    else:
        result = compare_recorded(a, b, feeds[0])
        if result.unpaired and not result.entries:
            names = ", ".join(map(repr, result.unpaired[:3]))
            raise LoadError(f"no recorded array is called like a value of the model; its values are {names} …")
    again = partial(_compared, models, sides, feeds, local, tolerance)
    compared = Compared(models, a, b, matching, feeds, again, versions)
    result = result.within(tolerance)
    return ModelComparison(result.entries, result.unpaired, result.runs, result.tolerance, compared)
