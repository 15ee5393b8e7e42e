"""`diff` and `compare`: the structural difference of two models, and their values pair by pair."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxlab.execution.base.provider import Provider
from onnxlab.infer import Inference
from onnxlab.limits import Limits
from onnxlab.model.model import Model
from onnxlab.model.opening import load
from onnxlab.model.source import ModelSource

if TYPE_CHECKING:
    from onnxlab.analysis.compare.comparison import Comparison
    from onnxlab.analysis.compare.sides import RunSide
    from onnxlab.analysis.diff.change import Ignorable
    from onnxlab.analysis.diff.difference import Diff

Providers = Sequence[str | Provider]


def diff(
    a: Model | ModelSource,
    b: Model | ModelSource,
    *,
    ignore: Collection[Ignorable] = (),
    tolerance: float = 0.0,
) -> Diff:
    """Compare two models by structure, whatever their nodes and values are called.

    Nodes, values, bodies, functions, initializers, metadata and opsets are matched and compared. `print` it, ask for
    `to_markdown` or `to_json`, look at `changes` and `regions`, or make the changes elsewhere: `model.patch(diff)`.

    Args:
        a, b: a Model each, or what `onnxlab.load` takes: any format.
        ignore: what is to be left out: "names", "order", "docs", "metadata", "declarations", "weights", "attributes",
            "opsets", "producer".
        tolerance: how far stored tensors may be apart to count as equal, relative to the largest magnitude.

    Returns:
        Diff: true where there is a difference.

    Raises:
        LoadError: a file is missing, or is no model.
        ValueError: there is nothing of such a name to be ignored.

    Examples:
        >>> other = onnxlab.load()
        >>> other.nodes["/stem/relu/Relu"].op_type = "Sigmoid"
        >>> print(onnxlab.diff(model, other))
        1 changed; 24 of 24 nodes matched
        ~ node /stem/relu/Relu: operator Relu → Sigmoid
    """
    from onnxlab.analysis.diff.difference import Diff

    left, right = (side if isinstance(side, Model) else load(side) for side in (a, b))
    with left.graph.lock, right.graph.lock:
        difference = Diff(left.graph, right.graph, ignore, tolerance)
        difference.changes  # noqa: B018 (now, since the models may be edited later)
    return difference


def compare(
    a: Model | ModelSource,
    b: Model | ModelSource | Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    *,
    local: bool = False,
    since: int | str = 0,
    providers: Providers | None = None,
    b_providers: Providers | None = None,
    limits: Limits | None = None,
) -> Comparison:
    """Run two models on the same inputs, pair their values by structure, and say where they diverge beyond roundings.

    Args:
        a: the reference: a Model, or what `onnxlab.load` takes.
        b: the other model; or recorded values: `{name: array}`, or a folder of .npy files called by the values of `a`;
            None: `a` as it is now, against what it was at another state of its history.
        inputs: arrays by input of `a`; those that are missing are made up.
        local: also run each node of `b` on what the nodes of `a` read, so that a node that is off is told from those
            that only pass it on.
        since: with `b` None, the state of the history that is the reference.
        providers: as of `Model.run`.
        b_providers: of the other model, where they are others: `["onnxruntime"]` with `b` the same model compares two.
        limits: of each run.

    Returns:
        Comparison: print it; `first` is where they diverge, `guilty` the nodes that are off by themselves.

    Raises:
        LoadError: a file is missing, or is no model.
        FeedError, RunError: as `Model.run`.

    Examples:
        >>> other = onnxlab.load()
        >>> other.nodes["/stem/relu/Relu"].op_type = "Abs"
        >>> onnxlab.compare(model, other).first.node
        '/stem/relu/Relu'
    """
    from onnxlab.analysis.compare.comparing import compare_recorded, compare_runs
    from onnxlab.analysis.compare.sides import RecordedSide, RunSide
    from onnxlab.analysis.diff.difference import Diff

    left = a if isinstance(a, Model) else load(a)
    first, second = providers, providers if b_providers is None else b_providers
    feeds = left.sample_inputs(inputs)
    if isinstance(b, Mapping) or (isinstance(b, str | PathLike) and Path(b).is_dir()):
        recorded = RecordedSide(b if isinstance(b, Mapping) else Path(b))
        return compare_recorded(RunSide(left.graph, left.inference.fact, first, limits), recorded, feeds)
    sides = _sides(left, b, left.history.position_of(since), (first, second), limits)
    matching = Diff(sides[0].graph, sides[1].graph).matching
    return compare_runs(*sides, matching, feeds, local=local)


def _sides(
    left: Model,
    b: Model | ModelSource | None,
    position: int,
    providers: tuple[Providers | None, Providers | None],
    limits: Limits | None,
) -> tuple[RunSide, RunSide]:
    """Both models; without a second one, the first as it was and as it is."""
    from onnxlab.analysis.compare.sides import RunSide
    from onnxlab.analysis.diff.versions import as_of

    now = left.graph, left.inference.fact
    if b is None:
        before = as_of(left.graph, position)
        return RunSide(before, Inference(before).fact, providers[0], limits), RunSide(*now, providers[1], limits)
    other = b if isinstance(b, Model) else load(b)
    return RunSide(*now, providers[0], limits), RunSide(other.graph, other.inference.fact, providers[1], limits)
