"""`statistics` and `evaluate`: values of a model, and errors of one against another, over whole data sets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from onnxlab.analysis.datasets import CHUNK
from onnxlab.argument_types import several
from onnxlab.errors import NameLookupError
from onnxlab.execution.run.progress_bar import bar
from onnxlab.formats.source import ModelSource
from onnxlab.graph.handles.handles import Value
from onnxlab.model.model import Model
from onnxlab.model.opening import load

if TYPE_CHECKING:
    from onnxlab.analysis.datasets.evaluation import Evaluation
    from onnxlab.analysis.datasets.metrics import Metric
    from onnxlab.analysis.datasets.table import DatasetStatistics

    Metrics = str | Metric | Sequence[str | Metric] | Mapping[str, Metric] | None

Progress = Callable[[int, int | None, str], Any] | bool | None
File = str | PathLike[str]


def statistics(
    model: Model | ModelSource,
    samples: Any,
    values: Literal["*"] | Sequence[str] = "*",
    *,
    channels: Collection[str] = (),
    providers: Sequence[str] | None = None,
    client: Any = None,
    checkpoint: File | None = None,
    chunk: int = CHUNK,
    progress: Progress = True,
) -> DatasetStatistics:  # fmt: skip
    """Count the values of a model over a data set, in one pass and constant memory.

    Each value has its range, mean, deviation, NaN, infinities, zeros, quantiles, and the samples with its largest
    magnitudes; `ranges("entropy")` calibrates. A sample that cannot be used is noted and skipped.

    Args:
        model: a Model, or what `onnxlab.load` takes.
        samples: an iterable or sequence of samples, a folder of .npz, .npy or .pb files, a Dask bag or array. A sample
            is {input: array}, an array where there is one input, or a pair of these and a target.
        values: names; "*": everything that depends on inputs.
        channels: names of values whose channels, along axis 1, are counted too.
        providers: as of `Model.run`, by name.
        client: a `distributed.Client`; the workers of its cluster do the counting.
        checkpoint: a file, written every ten seconds, from which an interrupted pass goes on.
        chunk: number of samples that are counted together; on a cluster, one task.
        progress: called with (samples done, all or None, a note); True draws a bar in the terminal.

    Returns:
        DatasetStatistics: print it; `["name"]` is one value.

    Raises:
        NameLookupError: no value has such a name.
        LoadError: the model, the samples or the checkpoint cannot be read.
        RunError: no sample could be used.

    Examples:
        >>> images = [np.full((1, 1, 8, 8), number, np.float32) for number in range(3)]
        >>> table = onnxlab.statistics(model, images)
        >>> table.samples, table["stem/relu_out"].count
        (3, 1536)
    """
    from onnxlab.analysis.datasets.jobs import StatisticsJob
    from onnxlab.analysis.datasets.passes import one_pass
    from onnxlab.analysis.datasets.sessions import payload_of
    from onnxlab.analysis.datasets.table import table_of
    from onnxlab.analysis.datasets.varying import channels_of, varying_values

    loaded = model if isinstance(model, Model) else load(model)
    graph = loaded.graph
    with graph.lock:
        names = varying_values(graph) if values == "*" else _names(loaded, values, "values")
        by_channel = channels_of(graph, loaded.inference.fact, _names(loaded, channels, "channels"))
        payload = payload_of(graph, loaded.inference.policy)
    names = list(dict.fromkeys([*names, *by_channel]))
    job = StatisticsJob(payload.digest, tuple(names), by_channel, None if providers is None else tuple(providers))
    with _drawn(progress, loaded.name) as advance:
        part = one_pass(
            job, {payload.digest: payload}, samples, chunk=chunk, checkpoint=checkpoint, client=client, progress=advance
        )
    return table_of(part)


def evaluate(
    a: Model | ModelSource,
    b: Model | ModelSource,
    samples: Any,
    metric: Metrics = None,
    *,
    values: Literal["*"] | Sequence[str] | None = None,
    providers: Sequence[str] | None = None,
    b_providers: Sequence[str] | None = None,
    client: Any = None,
    checkpoint: File | None = None,
    chunk: int = CHUNK,
    progress: Progress = True,
) -> Evaluation:  # fmt: skip
    """Run two models over a data set and tell how far the second is off, and what metrics say.

    Args:
        a: the reference: a Model, or what `onnxlab.load` takes.
        b: the other model.
        samples: as of `onnxlab.statistics`.
        metric: "top1", "top5", "mse", a function `(outputs of a, outputs of b, target) -> number`, or several of these.
        values: names of values of `a`; "*": all that are paired by structure; default: the outputs.
        providers: as of `Model.run`, by name.
        b_providers: providers of the other model; default: the same.
        client: a `distributed.Client`; the workers of its cluster run the models.
        checkpoint: a file from which an interrupted pass goes on.
        chunk: number of samples that are counted together; on a cluster, one task.
        progress: as of `onnxlab.statistics`.

    Returns:
        Evaluation: print it; `metrics`, `worst_error`, `["name"]`.

    Raises:
        NameLookupError: no value has such a name, or a value has no partner in the other model.
        ValueError: no metric has such a name.
        LoadError: a model, the samples or the checkpoint cannot be read.
        RunError: no sample could be used.

    Examples:
        >>> other = onnxlab.load()
        >>> other.nodes["/stem/relu/Relu"].op_type = "LeakyRelu"
        >>> images = np.random.default_rng(0).standard_normal((4, 1, 1, 8, 8)).astype(np.float32)
        >>> onnxlab.evaluate(model, other, images, metric="top1")["probabilities"].worst[0][1] < 0.5
        True
    """
    from onnxlab.analysis.datasets.evaluation import evaluation_of
    from onnxlab.analysis.datasets.jobs import EvaluationJob
    from onnxlab.analysis.datasets.metrics import metrics_of
    from onnxlab.analysis.datasets.passes import one_pass
    from onnxlab.analysis.datasets.sessions import payload_of

    first, other = (model if isinstance(model, Model) else load(model) for model in (a, b))
    outputs = _outputs(first, other)
    pairs = outputs if values is None else _pairs(first, other, values)
    sent = [payload_of(model.graph, model.inference.policy) for model in (first, other)]
    second = providers if b_providers is None else b_providers
    job = EvaluationJob(
        sent[0].digest, sent[1].digest, tuple(pairs), _inputs(first, other), metrics_of(metric), tuple(outputs),
        None if providers is None else tuple(providers), None if second is None else tuple(second),
    )  # fmt: skip
    models = {payload.digest: payload for payload in sent}
    with _drawn(progress, f"{first.name} against {other.name}") as advance:
        part = one_pass(job, models, samples, chunk=chunk, checkpoint=checkpoint, client=client, progress=advance)
    return evaluation_of(part)


def _drawn(progress: Progress, name: str) -> Any:
    """A context manager that gives the function to call with the progress."""
    if progress is True:
        return bar(name, " samples")
    return nullcontext(progress or None)


def _names(model: Model, keys: Any, argument: str) -> list[str]:
    """The names of values of the main graph; raises TypeError where the argument holds none."""
    kinds: Any = (str, Value)
    return [_name(model, key) for key in several(keys, kinds, argument, "names or handles of values")]


def _name(model: Model, name: str | Value) -> str:
    """The name of a value of the main graph."""
    record = model._value_record(name)
    if record.scope != model.graph.main.id:
        raise NameLookupError(f"{name!r} is inside of a body; only values of the main graph are counted")
    return record.name


def _outputs(first: Model, other: Model) -> list[tuple[str, str]]:
    """Outputs of both by name, and by position where a name is not there."""
    names = [value.name for value in other.outputs]
    pairs = []
    for place, value in enumerate(first.outputs):
        if value.name in names:
            pairs.append((value.name, value.name))
        elif place < len(names) and names[place] not in {output.name for output in first.outputs}:
            pairs.append((value.name, names[place]))
    if not pairs:
        raise NameLookupError(
            f"the models have no output in common: {names} and {[value.name for value in first.outputs]}"
        )
    return pairs


def _inputs(first: Model, other: Model) -> dict[str, str]:
    """The input of the second model for each of the first, by name, else by position."""
    names = [value.name for value in other.inputs]
    partners = {value.name: value.name for value in first.inputs if value.name in names}
    for place, value in enumerate(first.inputs):
        if value.name not in partners and place < len(names) and names[place] not in partners.values():
            partners[value.name] = names[place]
    return partners


def _pairs(first: Model, other: Model, values: Literal["*"] | Sequence[str]) -> list[tuple[str, str]]:
    """Values of both that are paired by structure."""
    from onnxlab.analysis.compare.sides import made_values
    from onnxlab.analysis.datasets.varying import varying_values
    from onnxlab.analysis.diff.difference import Diff

    with first.graph.lock, other.graph.lock:
        matching = Diff(first.graph, other.graph).matching.values
        ours, its = first.graph.values, other.graph.values
        order = [vid for vid in made_values(first.graph) if vid in matching and its[matching[vid]].producers]
        pairs = {
            ours[vid].name: its[matching[vid]].name for vid in order if its[matching[vid]].scope == other.graph.main.id
        }
    if values == "*":
        varying = set(varying_values(first.graph))
        return [pair for pair in pairs.items() if pair[0] in varying]
    names = [_name(first, name) for name in values]
    if missing := [name for name in names if name not in pairs]:
        raise NameLookupError(f"the other model has nothing that corresponds to {', '.join(map(repr, missing))}")
    return [(name, pairs[name]) for name in names]
