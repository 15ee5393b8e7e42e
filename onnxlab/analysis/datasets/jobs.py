"""Jobs over samples: what is run for each, and what is counted. A job is sent to workers, a part comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from onnxlab.analysis.datasets.metrics import Metric, measured
from onnxlab.analysis.datasets.part import Part
from onnxlab.analysis.datasets.samples import label_of, sample_of
from onnxlab.analysis.datasets.sessions import Payload, Session, session
from onnxlab.analysis.datasets.tally import Tally, numbers_of
from onnxlab.errors import FeedError, LoadError, RunError, RunStopped, UnsupportedOperatorError

Models = Mapping[str, Payload]

_OF_THE_SAMPLE = (LoadError, FeedError, RunError, OSError, ValueError, TypeError, ArithmeticError, MemoryError)


class Job(Protocol):
    """What is done with samples."""

    @property
    def digest(self) -> str:
        """Names the job and its models, to tell whether a checkpoint is of it."""

    def start(self) -> Part:
        """A part of no samples."""

    def count(self, part: Part, sessions: Sequence[Session], feeds: dict[str, Any], target: Any, index: int) -> None:
        """Run one sample and count it; changes nothing where it raises."""

    def sessions(self, models: Models) -> list[Session]:
        """The models of the job in this process."""


def run_chunk(job: Job, models: Models, items: Iterable[Any]) -> Part:
    """Count some samples in a row. A sample that cannot be used is noted, and the next one is taken.

    Raises:
        UnsupportedOperatorError: the model cannot run at all.
    """
    sessions = job.sessions(models)
    part = job.start()
    for index, item in enumerate(items):
        try:
            feeds, target = sample_of(item, sessions[0].inputs)
            job.count(part, sessions, feeds, target, index)
        except (UnsupportedOperatorError, RunStopped):
            raise
        except _OF_THE_SAMPLE as error:
            part.fail(index, label_of(item), error)
        part.seen += 1
    return part


@dataclass(frozen=True, slots=True)
class StatisticsJob:
    """Statistics of values of one model.

    Attributes:
        model: digest of its payload.
        names: of the values.
        channels: for values of which channels are counted too, the axis and the number of them.
        providers: as of `Model.run`.
    """

    model: str
    names: tuple[str, ...]
    channels: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    providers: tuple[str, ...] | None = None

    @property
    def digest(self) -> str:
        """Names the job."""
        return repr((self.model, self.names, sorted(self.channels.items()), self.providers))

    def start(self) -> Part:
        """A part of no samples."""
        places = [f"{name}[{place}]" for name, (_, size) in self.channels.items() for place in range(size)]
        return Part({"values": Tally(self.names), "channels": Tally(places, histograms=False)})

    def sessions(self, models: Models) -> list[Session]:
        """The one model."""
        return [session(models[self.model], self.providers)]

    def count(self, part: Part, sessions: Sequence[Session], feeds: dict[str, Any], target: Any, index: int) -> None:
        """Run one sample and count its values."""
        values = sessions[0].run(feeds, self.names)
        arrays = [values.get(name) for name in self.names]
        rows = [row for name, place in self.channels.items() for row in _by_channel(values.get(name), *place)]
        part.tallies["values"].add(arrays, index)
        if rows:
            part.tallies["channels"].add(rows, index)
        if len(part.texts) < len(self.names):
            part.texts |= {
                name: type_of(value) for name, value in zip(self.names, arrays, strict=True) if name not in part.texts
            }


def type_of(value: Any) -> str:
    """Element type of an array, or what else a value is."""
    if value is None:
        return "none"
    return str(value.dtype) if isinstance(value, np.ndarray) else type(value).__name__


def _by_channel(array: Any, axis: int, size: int) -> list[Any]:
    """The elements of each channel; None for each where the array has not so many."""
    if not isinstance(array, np.ndarray) or not -array.ndim <= axis < array.ndim or array.shape[axis] != size:
        return [None] * size
    return list(np.ascontiguousarray(np.moveaxis(array, axis, 0)).reshape(size, -1))


@dataclass(frozen=True, slots=True)
class EvaluationJob:
    """Errors of one model against another.

    Attributes:
        a, b: digests of their payloads: the reference and the other.
        pairs: names of values in both.
        inputs: name in the second model of each input of the first.
        metrics: by name, what else is measured of the outputs.
        outputs: pairs that metrics are given.
        providers, b_providers: of both.
    """

    a: str
    b: str
    pairs: tuple[tuple[str, str], ...]
    inputs: Mapping[str, str]
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    outputs: tuple[tuple[str, str], ...] = ()
    providers: tuple[str, ...] | None = None
    b_providers: tuple[str, ...] | None = None

    @property
    def digest(self) -> str:
        """Names the job; of a metric its name alone is known."""
        names = sorted(self.metrics)
        return repr((self.a, self.b, self.pairs, sorted(self.inputs.items()), names, self.providers, self.b_providers))

    def start(self) -> Part:
        """A part of no samples."""
        names = [name for name, _ in self.pairs]
        return Part(
            {
                "reference": Tally(names, histograms=False),
                "difference": Tally(names),
                "relative": Tally(names),
                "metrics": Tally(list(self.metrics)),
            }
        )

    def sessions(self, models: Models) -> list[Session]:
        """The reference and the other."""
        return [session(models[self.a], self.providers), session(models[self.b], self.b_providers)]

    def count(self, part: Part, sessions: Sequence[Session], feeds: dict[str, Any], target: Any, index: int) -> None:
        """Run one sample by both models and count the errors."""
        names = dict.fromkeys([*self.pairs, *self.outputs])
        first_values = sessions[0].run(feeds, [name for name, _ in names])
        renamed = {self.inputs[name]: array for name, array in feeds.items() if name in self.inputs}
        its = sessions[1].run(renamed, [name for _, name in names])
        numbers = measured(
            self.metrics, {name: first_values[name] for name, _ in self.outputs},
            {name: its[other] for name, other in self.outputs}, target,
        )  # fmt: skip
        errors = [_error(first_values.get(name), its.get(other)) for name, other in self.pairs]
        part.tallies["reference"].add([reference for reference, _, _ in errors], index)
        part.tallies["difference"].add([difference for _, difference, _ in errors], index)
        part.tallies["relative"].add([relative for _, _, relative in errors], index)
        if numbers:
            part.tallies["metrics"].add([np.float64(number) for number in numbers], index)


def _error(reference: Any, other: Any) -> tuple[Any, Any, Any]:
    """(reference, difference, largest difference ÷ peak) in float64; infinite where they are no pair."""
    left, right = numbers_of(reference), numbers_of(other)
    if left is None or right is None or left.shape != right.shape or np.shape(reference) != np.shape(other):
        same = left is None and right is None and bool(np.array_equal(reference, other))
        return None, None, np.float64(0.0 if same else np.inf)
    wide = left.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = right.astype(np.float64) - wide
    # NaN or an infinity on both sides is no difference
    difference[(np.isnan(wide) & np.isnan(right.astype(np.float64))) | (wide == right)] = 0.0
    finite = np.abs(wide[np.isfinite(wide)])
    peak, largest = float(finite.max(initial=0.0)), float(np.abs(difference).max(initial=0.0))
    relative = largest / peak if peak else (0.0 if largest == 0 else np.inf)
    return wide, difference, np.float64(np.inf if np.isnan(relative) else relative)


Progress = Callable[[int, int | None, str], None]
"""progress(samples done, samples in all or None, a note)."""
